/* watch.c - a thread that sees runs come and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/history/private.h"
#include "service/http/events.h"

enum { LOOK_MS = 500, LOOK_BACK = 1000, MADE_S = 60 };

void sl_history_publish(struct sl_history *h, uint64_t run)
{
	json_t *row = h->events ? sl_history_row(h, run) : NULL;
	char *text = row ? json_dumps(row, JSON_COMPACT) : NULL;
	const struct sl_event event = {"run", NULL, text, false};

	json_decref(row);
	if (text)
		sl_events_publish(h->events, &event);
	free(text);
}

/* ---- under the lock ---- */

static void add_live(struct sl_history *h, uint64_t run)
{
	if (h->lives < SL_HISTORY_LIVE)
		h->live[h->lives++] = run;
}

/* What is new since the last look; at the first one what may still live, or has crashed. */
static unsigned look_for_new(struct sl_history *h, uint64_t *fresh, unsigned most)
{
	uint64_t highest = h->highest;
	unsigned n = 0;

	if (sl_history_refresh(h))
		return 0;
	for (size_t i = 0; i < h->numbers && i < LOOK_BACK && h->number[i] > highest && n < most;
	     i++)
		fresh[n++] = h->number[i];
	if (h->numbers)
		h->highest = h->number[0] > highest ? h->number[0] : highest;
	return n;
}

/* ---- without it ---- */

/* Its folder is there, and no lock yet. After MADE_S it never becomes a run: the session that made
 * it has gone. */
static bool is_being_made(const struct sl_history *h, uint64_t run)
{
	int folder = sl_history_open_run(h, run);
	struct timespec now;
	struct stat st;
	bool young;

	if (folder < 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	young = !fstat(folder, &st) && now.tv_sec - st.st_ctim.tv_sec < MADE_S;
	close(folder);
	return young;
}

/* A run that is over already when it is first seen has ended between two looks; at the first look
 * that is history. */
static void meet(struct sl_history *h, uint64_t run, bool first)
{
	enum sl_run_state state = sl_history_state(h, run);

	if (state == SL_RUN_ENDED)
		sl_history_end_seen(h, run, false);
	else if (state == SL_RUN_LIVES)
		sl_history_see(h, run);
	if (state == SL_RUN_ENDED && !first)
		sl_history_publish(h, run);
	if (state == SL_RUN_NONE && !is_being_made(h, run))
		return;
	pthread_mutex_lock(&h->lock);
	if (state == SL_RUN_LIVES || state == SL_RUN_NONE)
		add_live(h, run);
	else if (state == SL_RUN_CRASHED)
		sl_history_to_recover(h, run);
	pthread_mutex_unlock(&h->lock);
	if (state == SL_RUN_CRASHED && !first)
		sl_history_publish(h, run);
}

/* True: it is of no more interest. */
static bool has_ended(struct sl_history *h, uint64_t run)
{
	enum sl_run_state state = sl_history_state(h, run);

	if (state == SL_RUN_LIVES) {
		sl_history_see(h, run);
		return false;
	}
	if (state != SL_RUN_NONE)
		sl_history_end_seen(h, run, state == SL_RUN_CRASHED);
	if (state == SL_RUN_NONE)
		return !is_being_made(h, run);
	if (state == SL_RUN_CRASHED) {
		pthread_mutex_lock(&h->lock);
		sl_history_to_recover(h, run);
		pthread_mutex_unlock(&h->lock);
	}
	sl_history_publish(h, run);
	return true;
}

static void look(struct sl_history *h, bool first)
{
	uint64_t fresh[LOOK_BACK], live[SL_HISTORY_LIVE];
	unsigned n, lives, kept = 0;

	pthread_mutex_lock(&h->lock);
	lives = h->lives;
	memcpy(live, h->live, sizeof(live));
	n = look_for_new(h, fresh, LOOK_BACK);
	pthread_mutex_unlock(&h->lock);
	for (unsigned i = 0; i < lives; i++)
		if (!has_ended(h, live[i]))
			live[kept++] = live[i];
	pthread_mutex_lock(&h->lock);
	memcpy(h->live, live, sizeof(live));
	h->lives = kept;
	pthread_mutex_unlock(&h->lock);
	while (n > 0) /* the oldest first */
		meet(h, fresh[--n], first);
}

static bool rest(struct sl_history *h)
{
	uint64_t until_ns = sl_clock_ns() + LOOK_MS * UINT64_C(1000000);
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				       .tv_nsec = (long)(until_ns % 1000000000)};
	bool goes_on;

	pthread_mutex_lock(&h->lock);
	while (!h->stop && sl_clock_ns() < until_ns)
		pthread_cond_timedwait(&h->wake, &h->lock, &until);
	goes_on = !h->stop;
	pthread_mutex_unlock(&h->lock);
	return goes_on;
}

void *sl_history_watch(void *arg)
{
	struct sl_history *h = arg;

	look(h, true);
	while (rest(h))
		look(h, false);
	sl_history_close_seen(h);
	return NULL;
}

/* ---- open and close ---- */

static void make_below(const struct sl_history *h, const char *name)
{
	char folder[1100];

	snprintf(folder, sizeof(folder), "%s/%s", h->own, name);
	mkdir(folder, 0700);
}

int sl_history_open(const struct sl_history_options *o, struct sl_history **history)
{
	struct sl_history *h = calloc(1, sizeof(*h));
	pthread_condattr_t attributes;
	int err;

	if (!h)
		return -ENOMEM;
	snprintf(h->program, sizeof(h->program), "%s", o->program);
	snprintf(h->root, sizeof(h->root), "%s", o->root);
	snprintf(h->own, sizeof(h->own), "%s", o->own);
	h->recovers = o->recover;
	h->events = o->events;
	h->status_of = o->status_of;
	h->arg = o->arg;
	make_below(h, "recovered");
	make_below(h, "seen");
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&h->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	err = sl_thread_start(&h->watcher, "history", NULL, sl_history_watch, h);
	if (!err && h->recovers)
		err = sl_thread_start(&h->recoverer, "recover", NULL, sl_history_recover, h);
	if (err) {
		sl_history_close(h);
		return err;
	}
	*history = h;
	return 0;
}

void sl_history_close(struct sl_history *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_broadcast(&h->wake);
	pthread_mutex_unlock(&h->lock);
	sl_thread_join(&h->watcher);
	sl_thread_join(&h->recoverer);
	for (unsigned i = 0; i < SL_HISTORY_ROWS; i++)
		json_decref(h->kept[i].row);
	free(h->number);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
