/* pump.c - from a recording to a sink. */
#include "convert/pump.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"

enum { READERS = 2, ALIGN = 64 }; /* threads for a sink without workers */

struct slot {
	struct sl_frame_room room;
	void *buffer;
	uint64_t entry;
	bool ready;
	int error;
};

struct engine {
	const struct sl_pump *pump;
	bool prepares;
	unsigned threads, slots;
	struct slot slot[2 * SL_SINK_WORKERS + 1];
	struct sl_thread thread[SL_SINK_WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t room, ready; /* for a thread; for the caller */
	uint64_t taken, done;	    /* entries; guarded by the lock, likewise: */
	bool stop;
};

/* The next entry, or none: they are over. */
static bool take(struct engine *e, uint64_t *entry)
{
	bool any;

	pthread_mutex_lock(&e->lock);
	while (!e->stop && e->taken < e->pump->end && e->taken - e->done >= e->slots)
		pthread_cond_wait(&e->room, &e->lock);
	any = !e->stop && e->taken < e->pump->end;
	*entry = e->taken;
	e->taken += any;
	pthread_mutex_unlock(&e->lock);
	return any;
}

static void *read_main(void *arg)
{
	struct engine *e = arg;
	const struct sl_pump *p = e->pump;
	uint64_t entry;

	while (take(e, &entry)) {
		unsigned i = (unsigned)(entry % e->slots);
		struct slot *s = &e->slot[i];

		s->error = sl_recorded_read(p->from, entry, s->buffer, &s->room);
		if (!s->error && e->prepares && entry >= p->prepared)
			p->sink->prepare(p->state, i, &s->room.frame);
		pthread_mutex_lock(&e->lock);
		s->entry = entry;
		s->ready = true;
		pthread_cond_signal(&e->ready);
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

static int put_one(struct engine *e, uint64_t entry)
{
	const struct sl_pump *p = e->pump;
	unsigned i = (unsigned)(entry % e->slots);
	struct slot *s = &e->slot[i];
	int r;

	pthread_mutex_lock(&e->lock);
	while (!s->ready)
		pthread_cond_wait(&e->ready, &e->lock);
	pthread_mutex_unlock(&e->lock);
	r = s->error;
	if (!r)
		r = e->prepares ? p->sink->put_prepared(p->state, i, &s->room.frame)
				: p->sink->put(p->state, &s->room.frame);
	if (!r && p->after)
		r = p->after(p->arg, entry, &s->room.frame);
	pthread_mutex_lock(&e->lock);
	s->ready = false;
	e->done = entry + 1;
	pthread_cond_broadcast(&e->room);
	pthread_mutex_unlock(&e->lock);
	return r;
}

static int open_slots(struct engine *e)
{
	const struct sl_recorded *from = e->pump->from;
	uint64_t bytes = (from->frame_most + ALIGN - 1) / ALIGN * ALIGN;
	int r = 0;

	for (unsigned i = 0; i < e->slots && !r; i++) {
		e->slot[i].buffer = aligned_alloc(ALIGN, bytes);
		r = sl_frame_room_open(&e->slot[i].room, &from->run.env);
		if (!e->slot[i].buffer)
			r = -ENOMEM;
	}
	if (r)
		sl_error("%s: no memory for %u frames of %.1f MB; lower workers", from->path,
			 e->slots, (double)bytes * 1e-6);
	return r;
}

static void close_slots(struct engine *e)
{
	for (unsigned i = 0; i < e->slots; i++) {
		sl_frame_room_close(&e->slot[i].room);
		free(e->slot[i].buffer);
	}
}

static void join(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_broadcast(&e->room);
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < e->threads; i++)
		sl_thread_join(&e->thread[i]);
}

static int run(struct engine *e)
{
	int r = 0;

	for (unsigned i = 0; i < e->threads && !r; i++)
		r = sl_thread_start(&e->thread[i], "convert", NULL, read_main, e);
	for (uint64_t entry = e->pump->first; entry < e->pump->end && !r; entry++)
		r = put_one(e, entry);
	join(e);
	return r;
}

int sl_pump_run(const struct sl_pump *pump)
{
	struct engine *e = calloc(1, sizeof(*e));
	unsigned workers = pump->sink->workers ? pump->sink->workers(pump->state) : 0;
	int r;

	if (!e)
		return -ENOMEM;
	e->pump = pump;
	e->prepares = workers > 0;
	e->threads = workers ? workers : READERS;
	e->slots = sl_sink_slots(e->threads);
	e->taken = e->done = pump->first;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->room, NULL);
	pthread_cond_init(&e->ready, NULL);
	r = open_slots(e);
	if (!r)
		r = run(e);
	close_slots(e);
	pthread_cond_destroy(&e->ready);
	pthread_cond_destroy(&e->room);
	pthread_mutex_destroy(&e->lock);
	free(e);
	return r;
}
