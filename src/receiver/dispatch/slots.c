/* slots.c - opens slots of every detector's ring, up to where a run, a pause or a source ends. */
#include "receiver/private.h"

/* A pause lets all modules of a detector come to the same frame: that of the module which is
 * ahead. */
static uint64_t pause_limit(struct sl_feed *f, bool pause)
{
	uint64_t limit = atomic_load_explicit(&f->pause_limit, memory_order_relaxed);

	if (pause == (limit != UINT64_MAX))
		return limit;
	limit = pause ? 0 : UINT64_MAX;
	for (uint32_t m = 0; pause && m < f->modules; m++)
		if (sl_ring_opened(&f->ring, m) > limit)
			limit = sl_ring_opened(&f->ring, m);
	atomic_store_explicit(&f->pause_limit, limit, memory_order_relaxed);
	return limit;
}

unsigned sl_slots_open(struct sl_receiver *r)
{
	bool pause = atomic_load_explicit(&r->pause, memory_order_relaxed);
	unsigned most = 0;

	for (struct sl_feed *f = r->feed; f < r->feed + r->feeds; f++) {
		uint64_t limit = atomic_load_explicit(&f->limit, memory_order_relaxed);
		uint64_t paused = pause_limit(f, pause);
		unsigned n = sl_ring_open(&f->ring, limit < paused ? limit : paused);

		most = n > most ? n : most;
	}
	return most;
}
