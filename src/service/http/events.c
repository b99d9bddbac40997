/* events.c - Server-Sent Events: one text of each event for all viewers, a bounded queue for each
 * viewer. */
#include "service/http/events.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "service/http/private.h"

enum { BLOCK_BYTES = 16384, INTERVALS = 64, SHORT_BYTES = 80 };

/* Shared by all viewers that have it; counted under the lock. */
struct text {
	unsigned references;
	bool latest;
	char name[24], topic[SL_EVENTS_TOPIC];
	size_t bytes;
	char data[]; /* "event: NAME\ndata: ...\n\n" */
};

struct viewer {
	struct sl_events *events;
	struct viewer *next, *previous;
	struct MHD_Connection *connection;
	char topic[SL_EVENTS_TOPIC]; /* "": all */
	uint64_t interval_ns;
	struct { /* when the last `latest` event of a topic was queued */
		char topic[SL_EVENTS_TOPIC];
		uint64_t ns;
	} last[INTERVALS];
	struct text *queue[SL_EVENTS_QUEUE]; /* the oldest first */
	unsigned n;
	size_t bytes;
	uint64_t missed;   /* since the last event that it got */
	struct text *sent; /* partly; NULL: none */
	size_t sent_bytes;
	bool suspended, ended;
};

struct sl_events {
	pthread_mutex_t lock;
	struct viewer *first;
	unsigned viewers;
	uint64_t missed;
	bool ended;
};

/* ---- texts ---- */

static struct text *make_text(const struct sl_event *e)
{
	size_t room = strlen(e->name) + strlen(e->data) + 32;
	struct text *text = malloc(sizeof(*text) + room);

	if (!text)
		return NULL;
	text->references = 1;
	text->latest = e->latest;
	snprintf(text->name, sizeof(text->name), "%s", e->name);
	snprintf(text->topic, sizeof(text->topic), "%s", e->topic ? e->topic : "");
	text->bytes =
		(size_t)snprintf(text->data, room, "event: %s\ndata: %s\n\n", e->name, e->data);
	return text;
}

static struct text *make_comment(void)
{
	static const char comment[] = ": still here\n\n";
	struct text *text = calloc(1, sizeof(*text) + sizeof(comment));

	if (!text)
		return NULL;
	text->references = 1;
	text->bytes = sizeof(comment) - 1;
	memcpy(text->data, comment, sizeof(comment));
	return text;
}

static void drop(struct text *text)
{
	if (text && !--text->references)
		free(text);
}

/* ---- queues: under the lock ---- */

static void remove_at(struct viewer *v, unsigned i)
{
	v->bytes -= v->queue[i]->bytes;
	drop(v->queue[i]);
	memmove(&v->queue[i], &v->queue[i + 1], (--v->n - i) * sizeof(*v->queue));
}

static void miss_at(struct viewer *v, unsigned i)
{
	remove_at(v, i);
	v->missed++;
	v->events->missed++;
}

/* Whether an event of that topic is due; then it counts as the last. What has no topic is always
 * due: another one may not come for a long time. */
static bool is_due(struct viewer *v, const char *topic, uint64_t now_ns)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < INTERVALS; i++) {
		if (!strcmp(v->last[i].topic, topic) && v->last[i].ns) {
			/* A little early is on time: the publisher's own clock has some jitter. */
			if (now_ns - v->last[i].ns + v->interval_ns / 8 < v->interval_ns)
				return false;
			v->last[i].ns = now_ns;
			return true;
		}
		if (v->last[i].ns < v->last[oldest].ns)
			oldest = i;
	}
	snprintf(v->last[oldest].topic, sizeof(v->last[oldest].topic), "%s", topic);
	v->last[oldest].ns = now_ns;
	return true;
}

static void push(struct viewer *v, struct text *text)
{
	for (unsigned i = 0; text->latest && i < v->n; i++)
		if (v->queue[i]->latest && !strcmp(v->queue[i]->name, text->name) &&
		    !strcmp(v->queue[i]->topic, text->topic)) {
			miss_at(v, i);
			break;
		}
	while (v->n && (v->n == SL_EVENTS_QUEUE || v->bytes + text->bytes > SL_EVENTS_BYTES))
		miss_at(v, 0);
	text->references++;
	v->queue[v->n++] = text;
	v->bytes += text->bytes;
}

static void wake(struct viewer *v)
{
	if (!v->suspended)
		return;
	v->suspended = false;
	MHD_resume_connection(v->connection);
}

static bool wants(const struct viewer *v, const struct text *text)
{
	return !v->topic[0] || !text->topic[0] || !strcmp(v->topic, text->topic);
}

void sl_events_publish(struct sl_events *events, const struct sl_event *event)
{
	struct text *text = make_text(event);
	uint64_t now_ns = sl_clock_ns();

	pthread_mutex_lock(&events->lock);
	for (struct viewer *v = events->first; v && !events->ended; v = v->next) {
		if (!text) {
			v->missed++;
			events->missed++;
		} else if (wants(v, text) &&
			   (!text->latest || !text->topic[0] || is_due(v, text->topic, now_ns))) {
			push(v, text);
			wake(v);
		}
	}
	drop(text);
	pthread_mutex_unlock(&events->lock);
}

void sl_events_keep_alive(struct sl_events *events)
{
	struct text *text = make_comment();

	pthread_mutex_lock(&events->lock);
	for (struct viewer *v = events->first; text && v; v = v->next)
		if (v->suspended && !v->n) {
			push(v, text);
			wake(v);
		}
	drop(text);
	pthread_mutex_unlock(&events->lock);
}

/* ---- a stream: on the thread of bytes ---- */

/* What comes next. NULL: nothing waits. */
static struct text *next_text(struct viewer *v)
{
	struct text *text;

	if (v->missed) {
		char data[SHORT_BYTES];
		const struct sl_event event = {"missed", NULL, data, false};

		snprintf(data, sizeof(data), "{\"missed\":%llu}", (unsigned long long)v->missed);
		text = make_text(&event);
		if (text)
			v->missed = 0;
		return text;
	}
	if (!v->n)
		return NULL;
	text = v->queue[0];
	text->references++; /* of v->sent */
	remove_at(v, 0);
	return text;
}

static ssize_t read_stream(void *arg, uint64_t at, char *to, size_t most)
{
	struct viewer *v = arg;
	ssize_t n = 0;

	pthread_mutex_lock(&v->events->lock);
	if (!v->sent) {
		v->sent = next_text(v);
		v->sent_bytes = 0;
	}
	if (v->sent) {
		size_t left = v->sent->bytes - v->sent_bytes;

		n = (ssize_t)(left < most ? left : most);
		memcpy(to, v->sent->data + v->sent_bytes, (size_t)n);
		v->sent_bytes += (size_t)n;
		if (v->sent_bytes == v->sent->bytes) {
			drop(v->sent);
			v->sent = NULL;
		}
	} else if (v->events->ended) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		v->suspended = true;
		MHD_suspend_connection(v->connection);
	}
	pthread_mutex_unlock(&v->events->lock);
	return n;
}

static void free_viewer(void *arg)
{
	struct viewer *v = arg;
	struct sl_events *events = v->events;

	pthread_mutex_lock(&events->lock);
	if (v->previous)
		v->previous->next = v->next;
	else
		events->first = v->next;
	if (v->next)
		v->next->previous = v->previous;
	events->viewers--;
	while (v->n)
		remove_at(v, 0);
	drop(v->sent);
	pthread_mutex_unlock(&events->lock);
	free(v);
}

static struct viewer *make_viewer(struct sl_http_request *r, struct sl_events *events,
				  const char *topic, uint64_t interval_ms)
{
	struct viewer *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->events = events;
	v->connection = r->connection;
	v->interval_ns = interval_ms * 1000000;
	snprintf(v->topic, sizeof(v->topic), "%s", topic);
	pthread_mutex_lock(&events->lock);
	v->next = events->first;
	if (v->next)
		v->next->previous = v;
	events->first = v;
	events->viewers++;
	pthread_mutex_unlock(&events->lock);
	return v;
}

void sl_http_answer_events(struct sl_http_request *r, struct sl_events *events, const char *topic,
			   uint64_t interval_ms, const struct sl_event *first, unsigned firsts)
{
	struct viewer *v = make_viewer(r, events, topic, interval_ms);
	struct MHD_Response *response = NULL;

	for (unsigned i = 0; v && i < firsts; i++) {
		struct text *text = make_text(&first[i]);

		pthread_mutex_lock(&events->lock);
		if (text)
			push(v, text);
		drop(text);
		pthread_mutex_unlock(&events->lock);
	}
	if (v)
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
							     read_stream, v, free_viewer);
	if (v && !response)
		free_viewer(v);
	sl_http_answer_response(r, 200, response);
	sl_http_answer_header(r, "Content-Type", "text/event-stream");
	sl_http_answer_header(r, "X-Accel-Buffering",
			      "no"); /* proxies pass each event on at once */
	r->stream = response != NULL;
}

/* ---- open and close ---- */

struct sl_events *sl_events_open(void)
{
	struct sl_events *events = calloc(1, sizeof(*events));

	if (events)
		pthread_mutex_init(&events->lock, NULL);
	return events;
}

void sl_events_end(struct sl_events *events)
{
	pthread_mutex_lock(&events->lock);
	events->ended = true;
	for (struct viewer *v = events->first; v; v = v->next)
		wake(v);
	pthread_mutex_unlock(&events->lock);
}

void sl_events_close(struct sl_events *events)
{
	if (!events)
		return;
	pthread_mutex_destroy(&events->lock);
	free(events);
}

unsigned sl_events_viewers(struct sl_events *events)
{
	unsigned n;

	pthread_mutex_lock(&events->lock);
	n = events->viewers;
	pthread_mutex_unlock(&events->lock);
	return n;
}

uint64_t sl_events_missed(struct sl_events *events)
{
	uint64_t n;

	pthread_mutex_lock(&events->lock);
	n = events->missed;
	pthread_mutex_unlock(&events->lock);
	return n;
}
