/* slots.c - opens slots of every detector's ring, up to where a run, a pause or a source ends. */
#include "receiver/private.h"

/* Where the parts of a detector are, as a count of events; and back. Both begin with the same
 * trigger; by sequence, an offset says otherwise. */
static int64_t offset_of(const struct sl_join_options *o)
{
	return o->by == SL_ALIGN_SEQUENCE ? o->offset : 0;
}

static uint64_t events_of(const struct sl_join_options *o, uint64_t parts)
{
	int64_t from = (int64_t)parts - offset_of(o);

	return from > 0 ? (uint64_t)from * o->divider : 0;
}

static uint64_t parts_of(const struct sl_join_options *o, uint64_t events)
{
	int64_t parts = (int64_t)((events + o->divider - 1) / o->divider) + offset_of(o);

	return parts > 0 ? (uint64_t)parts : 0;
}

/* A pause lets all modules of all detectors come to the same event: that of the module which is
 * ahead, or the one that was asked for. Else an event would wait for a part that the pause holds
 * back. */
static void set_pause(struct sl_receiver *r, bool pause, uint64_t at)
{
	uint64_t event = at;

	for (unsigned d = 0; pause && d < r->feeds; d++) {
		const struct sl_join_options *o = &r->join.detector[d].options;
		const struct sl_feed *f = &r->feed[d];

		for (uint32_t m = 0; m < f->modules; m++) {
			uint64_t opened = events_of(o, sl_ring_opened(&f->ring, m));

			event = opened > event ? opened : event;
		}
	}
	for (unsigned d = 0; d < r->feeds; d++)
		atomic_store_explicit(&r->feed[d].pause_limit,
				      pause ? parts_of(&r->join.detector[d].options, event)
					    : UINT64_MAX,
				      memory_order_relaxed);
	/* Pairs with the load in sl_receiver_is_drained(). */
	atomic_store_explicit(&r->pause_seen, at, memory_order_release);
}

unsigned sl_slots_open(struct sl_receiver *r)
{
	bool pause = atomic_load_explicit(&r->pause, memory_order_relaxed);
	/* Pairs with the store in sl_receiver_pause_at(). */
	uint64_t at = atomic_load_explicit(&r->pause_at, memory_order_acquire), paused;
	unsigned most = 0;

	paused = atomic_load_explicit(&r->feed[0].pause_limit, memory_order_relaxed);
	if (pause != (paused != UINT64_MAX) ||
	    at != atomic_load_explicit(&r->pause_seen, memory_order_relaxed))
		set_pause(r, pause, at);
	for (struct sl_feed *f = r->feed; f < r->feed + r->feeds; f++) {
		uint64_t limit = atomic_load_explicit(&f->limit, memory_order_relaxed);
		unsigned n;

		paused = atomic_load_explicit(&f->pause_limit, memory_order_relaxed);
		n = sl_ring_open(&f->ring, limit < paused ? limit : paused);
		most = n > most ? n : most;
	}
	return most;
}
