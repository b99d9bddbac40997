/* watch.c - the thread that asks a session for its status. */
#include "service/image/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ASK_MS = 500 };
#define PERIOD_NS UINT64_C(500000000)

/* ---- a status ---- */

/* "share:NAME", or "rdma://HOST:PORT/NAME", which is the share NAME of this host. */
static void local_url(const char *where, char url[SL_IMAGE_URL])
{
	const char *name = strrchr(where, '/');

	if (!strncmp(where, "share:", 6))
		snprintf(url, SL_IMAGE_URL, "%s", where);
	else if (!strncmp(where, "rdma://", 7) && name)
		snprintf(url, SL_IMAGE_URL, "share:%s", name + 1);
}

static uint64_t whole(const json_t *object, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(object, key));

	return number > 0 ? (uint64_t)number : 0;
}

bool sl_image_status_read(const json_t *status, struct sl_image_news *news,
			  struct sl_image_sample *sample, char url[SL_IMAGE_URL])
{
	const json_t *frames = json_object_get(status, "frames");
	const char *state = json_string_value(json_object_get(status, "state"));
	const json_t *addon;
	size_t i;

	*news = (struct sl_image_news){.known = true, .there = true};
	url[0] = 0;
	if (!json_is_object(frames) || !state)
		return false;
	snprintf(news->state, sizeof(news->state), "%.15s", state);
	news->run = whole(status, "run");
	sample->frames = whole(frames, "settled");
	sample->kept = whole(frames, "kept") - whole(frames, "prescaled");
	if (sample->kept > sample->frames)
		sample->kept = 0;
	json_array_foreach(json_object_get(status, "addons"), i, addon)
	{
		const char *name = json_string_value(json_object_get(addon, "name"));
		const char *kind = json_string_value(json_object_get(addon, "kind"));
		const char *where = json_string_value(json_object_get(addon, "where"));

		if (!url[0] && name && kind && where && !strcmp(kind, "sink") &&
		    !strcmp(name, "share"))
			local_url(where, url);
	}
	news->has_share = url[0] != 0;
	return true;
}

void sl_image_count_hits(struct sl_image_watch *w, const struct sl_image_sample *sample,
			 struct sl_image_news *news)
{
	const struct sl_image_sample *last = &w->sample[(w->samples - 1) % SL_IMAGE_SAMPLES];
	const struct sl_image_sample none = {0}, *from = &none;

	if (w->samples && (sample->frames < last->frames || sample->kept < last->kept))
		w->samples = 0; /* another run */
	if (!w->samples || sample->frames != last->frames)
		w->sample[w->samples++ % SL_IMAGE_SAMPLES] = *sample;
	for (unsigned back = 1; back < w->samples && back < SL_IMAGE_SAMPLES; back++) {
		const struct sl_image_sample *s =
			&w->sample[(w->samples - 1 - back) % SL_IMAGE_SAMPLES];

		from = s;
		if (sample->frames - s->frames >= SL_IMAGE_HIT_FRAMES)
			break;
	}
	if (sample->frames <= SL_IMAGE_HIT_FRAMES)
		from = &none; /* all of the run */
	news->hit_frames = sample->frames - from->frames;
	news->hits = sample->kept - from->kept;
}

/* ---- the thread ---- */

static void tell(struct sl_image_watch *w, const struct sl_image_news *news)
{
	const uint64_t one = 1;
	bool same;

	pthread_mutex_lock(&w->lock);
	same = w->news.known && w->news.there == news->there;
	w->news = *news;
	pthread_mutex_unlock(&w->lock);
	if (!same && write(w->bell, &one, sizeof(one)) < 0)
		return; /* it rings already */
}

static void ask(struct sl_image_watch *w)
{
	struct sl_image_news news = {.known = true};
	uint64_t asked_ns = sl_clock_ns();
	struct sl_image_sample sample;
	char url[SL_IMAGE_URL], *reply = NULL;
	json_t *json;
	int err = w->remote ? 0 : sl_remote_open(w->session, ASK_MS, &w->remote, NULL);

	if (!err)
		err = sl_remote_request(w->remote, "{\"call\":\"status\"}", ASK_MS, &reply, NULL);
	json = err ? NULL : json_loads(reply, 0, NULL);
	sl_remote_free(reply);
	if (json && sl_image_status_read(json_object_get(json, "status"), &news, &sample, url)) {
		sl_image_count_hits(w, &sample, &news);
		news.asked_ns = asked_ns;
		if (url[0])
			sl_image_follow_name(w->follow, url);
	} else {
		news = (struct sl_image_news){.known = true, .there = err == -ETIMEDOUT};
		sl_remote_close(w->remote);
		w->remote = NULL;
	}
	json_decref(json);
	tell(w, &news);
}

static void *run(void *arg)
{
	struct sl_image_watch *w = arg;
	uint64_t next_ns = 0;

	for (;;) {
		bool asks, ends;

		pthread_mutex_lock(&w->lock);
		for (;;) {
			uint64_t now_ns = sl_clock_ns(), until_ns;
			struct timespec until;

			asks = now_ns < w->until_ns && now_ns >= next_ns;
			ends = w->ends;
			if (asks || ends)
				break;
			until_ns = now_ns < w->until_ns ? next_ns : now_ns + 2 * PERIOD_NS;
			until = (struct timespec){(time_t)(until_ns / 1000000000),
						  (long)(until_ns % 1000000000)};
			pthread_cond_timedwait(&w->changed, &w->lock, &until);
		}
		pthread_mutex_unlock(&w->lock);
		if (ends)
			break;
		ask(w);
		next_ns = sl_clock_ns() + PERIOD_NS;
	}
	sl_remote_close(w->remote);
	return NULL;
}

/* ---- the calls ---- */

int sl_image_watch_start(struct sl_image_watch *w, const char *session,
			 struct sl_image_follow *follow, int bell)
{
	pthread_condattr_t attributes;
	int err;

	memset(w, 0, sizeof(*w));
	w->bell = bell;
	w->follow = follow;
	snprintf(w->session, sizeof(w->session), "%s", session);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	err = sl_thread_start(&w->thread, "watch", NULL, run, w);
	if (err)
		sl_image_watch_stop(w);
	return err;
}

void sl_image_watch_stop(struct sl_image_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	sl_thread_join(&w->thread);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

void sl_image_watch_look(struct sl_image_watch *w, uint64_t until_ns)
{
	pthread_mutex_lock(&w->lock);
	if (until_ns > w->until_ns) {
		bool wakes = w->until_ns < sl_clock_ns();

		w->until_ns = until_ns;
		if (wakes)
			pthread_cond_signal(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
}

void sl_image_watch_news(struct sl_image_watch *w, struct sl_image_news *news)
{
	pthread_mutex_lock(&w->lock);
	*news = w->news;
	pthread_mutex_unlock(&w->lock);
}
