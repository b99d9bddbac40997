/* watch.c - a thread that looks for sessions and asks them for their status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/registry.h"
#include "service/http/events.h"
#include "service/sessions/private.h"

enum { PATIENCE_MS = 300, KEEP_ALIVE_ROUNDS = 10 };
#define LOOKED_NS UINT64_C(1000000000)
#define AGAIN_NS  UINT64_C(3000000000) /* a session that did not answer is asked again after that */

/* ---- the list: only this thread changes entries, under the lock; it reads them without ---- */

static struct sl_entry *find(struct sl_sessions *s, const char *name)
{
	for (unsigned i = 0; i < s->entries; i++)
		if (!strcmp(s->entry[i].seen.info.name, name))
			return &s->entry[i];
	return NULL;
}

static void forget_status(struct sl_entry *e)
{
	json_decref(e->seen.status);
	e->seen.status = NULL;
	e->seen.state[0] = 0;
	e->seen.answers = false;
	sl_remote_close(e->remote);
	e->remote = NULL;
	e->patient_ns = 0;
}

static void take_info(struct sl_sessions *s, const struct sl_remote_info *info)
{
	struct sl_entry *e = find(s, info->name);

	pthread_mutex_lock(&s->lock);
	if (!e && s->entries < SL_SESSIONS_MOST) {
		e = &s->entry[s->entries++];
		memset(e, 0, sizeof(*e));
	}
	if (e) {
		/* Another session of that name, or it has crashed: nothing holds any more. */
		if (e->seen.info.started_unix_ns != info->started_unix_ns || !info->alive)
			forget_status(e);
		e->seen.info = *info;
		e->found = true;
	}
	pthread_mutex_unlock(&s->lock);
}

static void drop_gone(struct sl_sessions *s)
{
	unsigned kept = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->entries; i++) {
		if (!s->entry[i].found) {
			forget_status(&s->entry[i]);
			continue;
		}
		s->entry[i].found = false;
		if (kept != i)
			s->entry[kept] = s->entry[i];
		kept++;
	}
	s->entries = kept;
	pthread_mutex_unlock(&s->lock);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sl_entry *)a)->seen.info.name,
		      ((const struct sl_entry *)b)->seen.info.name);
}

/* why: "": the folder of sockets is as it must be. */
static void set_refusal(struct sl_sessions *s, const char *why)
{
	bool changed;

	pthread_mutex_lock(&s->lock);
	changed = strcmp(s->refusal, why) != 0;
	snprintf(s->refusal, sizeof(s->refusal), "%s", why);
	pthread_mutex_unlock(&s->lock);
	if (changed && why[0])
		sl_warn("sessions cannot be seen: %s", why);
}

static void explain_refusal(struct sl_sessions *s)
{
	int folder[SL_REGISTRY_PLACES];
	char why[sizeof(s->refusal)] = "";
	unsigned places = sl_registry_places(folder, why, sizeof(why));

	for (unsigned i = 0; i < places; i++)
		close(folder[i]);
	if (why[0])
		set_refusal(s, why);
}

bool sl_sessions_refused(struct sl_sessions *s, char *why, size_t bytes)
{
	pthread_mutex_lock(&s->lock);
	snprintf(why, bytes, "%s", s->refusal);
	pthread_mutex_unlock(&s->lock);
	return why[0] != 0;
}

static void look_for_all(struct sl_sessions *s)
{
	struct sl_remote_info *info = NULL;
	size_t n = 0;

	if (sl_remote_list(&info, &n)) {
		explain_refusal(s);
		return; /* for now: what was seen stays */
	}
	set_refusal(s, "");
	for (size_t i = 0; i < n; i++)
		take_info(s, &info[i]);
	sl_remote_free(info);
	drop_gone(s);
	pthread_mutex_lock(&s->lock);
	qsort(s->entry, s->entries, sizeof(*s->entry), by_name);
	pthread_mutex_unlock(&s->lock);
}

/* ---- status ---- */

static json_t *ask(struct sl_entry *e)
{
	json_t *reply = NULL, *status;
	char *line = NULL;

	if (!e->remote && sl_remote_open(e->seen.info.name, PATIENCE_MS, &e->remote, NULL))
		return NULL;
	if (sl_remote_request(e->remote, "{\"call\":\"status\"}", PATIENCE_MS, &line, NULL)) {
		sl_remote_close(e->remote);
		e->remote = NULL;
	} else {
		reply = json_loads(line, 0, NULL);
	}
	sl_remote_free(line);
	status = json_incref(json_object_get(reply, "status"));
	json_decref(reply);
	return status;
}

static void take_status(struct sl_sessions *s, struct sl_entry *e, json_t *status)
{
	const char *state = json_string_value(json_object_get(status, "state"));
	const char *folder = json_string_value(json_object_get(status, "folder"));
	json_int_t run = json_integer_value(json_object_get(status, "run"));

	pthread_mutex_lock(&s->lock);
	e->seen.answers = status != NULL;
	e->patient_ns = status ? 0 : sl_clock_ns() + AGAIN_NS;
	if (status) {
		json_decref(e->seen.status);
		e->seen.status = status;
		e->seen.status_ns = sl_clock_ns();
		snprintf(e->seen.state, sizeof(e->seen.state), "%s", state ? state : "");
		e->seen.info.run = run > 0 ? (uint64_t)run : 0;
		snprintf(e->seen.info.folder, sizeof(e->seen.info.folder), "%s",
			 folder ? folder : "");
	}
	pthread_mutex_unlock(&s->lock);
}

static void publish_status(struct sl_sessions *s, const struct sl_entry *e)
{
	json_t *json =
		json_pack("{s:s, s:O}", "session", e->seen.info.name, "status", e->seen.status);
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	const struct sl_event event = {"status", e->seen.info.name, text, true};

	json_decref(json);
	if (text)
		sl_events_publish(s->options.events, &event);
	free(text);
}

static void ask_all(struct sl_sessions *s)
{
	for (unsigned i = 0; i < s->entries; i++) {
		struct sl_entry *e = &s->entry[i];

		if (!e->seen.info.alive || sl_clock_ns() < e->patient_ns)
			continue;
		take_status(s, e, ask(e));
		if (e->seen.answers && s->options.events)
			publish_status(s, e);
	}
}

/* ---- changes ---- */

static bool has_changed(struct sl_sessions *s)
{
	json_t *json = sl_sessions_json(s, false);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	bool changed = text && strncmp(text, s->listed, sizeof(s->listed) - 1) != 0;

	if (changed)
		snprintf(s->listed, sizeof(s->listed), "%s", text);
	json_decref(json);
	free(text);
	return changed;
}

static void publish_changes(struct sl_sessions *s)
{
	struct sl_event event = {"sessions", NULL, NULL, true};
	json_t *json;
	char *text;

	if (!s->options.events || !has_changed(s))
		return;
	json = sl_sessions_json(s, true);
	text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(json);
	event.data = text;
	if (text)
		sl_events_publish(s->options.events, &event);
	free(text);
}

static void look(struct sl_sessions *s)
{
	look_for_all(s);
	ask_all(s);
	publish_changes(s);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Until the next round is due or asked for. True: go on. */
static bool rest(struct sl_sessions *s, uint64_t until_ns)
{
	const struct timespec until = time_of(until_ns);
	bool goes_on;

	pthread_mutex_lock(&s->lock);
	s->seen = s->begun;
	pthread_cond_broadcast(&s->looked);
	while (!s->stop && s->wanted <= s->begun && sl_clock_ns() < until_ns)
		pthread_cond_timedwait(&s->wake, &s->lock, &until);
	s->begun = s->wanted;
	goes_on = !s->stop;
	pthread_mutex_unlock(&s->lock);
	return goes_on;
}

static void *watch(void *arg)
{
	struct sl_sessions *s = arg;
	uint64_t next_ns = sl_clock_ns();
	unsigned rounds = 0;

	do {
		look(s);
		if (s->options.events && ++rounds % KEEP_ALIVE_ROUNDS == 0)
			sl_events_keep_alive(s->options.events);
		if (next_ns + SL_SESSIONS_LOOK_MS * UINT64_C(1000000) <= sl_clock_ns())
			/* in steps: rounds that were asked for change nothing */
			next_ns = sl_clock_ns();
		if (next_ns <= sl_clock_ns())
			next_ns += SL_SESSIONS_LOOK_MS * UINT64_C(1000000);
	} while (rest(s, next_ns));
	return NULL;
}

void sl_sessions_look(struct sl_sessions *s)
{
	const uint64_t end_ns = sl_clock_ns() + LOOKED_NS;
	const struct timespec end = time_of(end_ns);
	uint64_t mine;

	pthread_mutex_lock(&s->lock);
	mine = ++s->wanted;
	pthread_cond_signal(&s->wake);
	while (!s->stop && s->seen < mine && sl_clock_ns() < end_ns)
		pthread_cond_timedwait(&s->looked, &s->lock, &end);
	pthread_mutex_unlock(&s->lock);
}

/* ---- open and close ---- */

static void copy_options(struct sl_sessions *s, const struct sl_sessions_options *o)
{
	s->options = *o;
	snprintf(s->program, sizeof(s->program), "%s", o->program);
	snprintf(s->root, sizeof(s->root), "%s", o->root);
	snprintf(s->folder, sizeof(s->folder), "%s", o->folder);
	snprintf(s->logs, sizeof(s->logs), "%s", o->logs);
}

int sl_sessions_open(const struct sl_sessions_options *options, struct sl_sessions **sessions)
{
	struct sl_sessions *s = calloc(1, sizeof(*s));
	pthread_condattr_t attributes;
	int err;

	if (!s)
		return -ENOMEM;
	copy_options(s, options);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->starting, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attributes);
	pthread_cond_init(&s->looked, &attributes);
	pthread_condattr_destroy(&attributes);
	err = sl_starter_open(&s->starter);
	if (err) {
		sl_sessions_close(s);
		return err;
	}
	look(s);
	*sessions = s;
	return 0;
}

int sl_sessions_watch(struct sl_sessions *s)
{
	return sl_thread_start(&s->thread, "sessions", NULL, watch, s);
}

void sl_sessions_close(struct sl_sessions *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_cond_broadcast(&s->looked);
	pthread_mutex_unlock(&s->lock);
	sl_thread_join(&s->thread);
	sl_starter_close(&s->starter);
	for (unsigned i = 0; i < s->entries; i++)
		forget_status(&s->entry[i]);
	pthread_cond_destroy(&s->looked);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->starting);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
