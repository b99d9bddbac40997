/* rejoin.c - a module whose source has ended, in a run that goes on, gets another one.
 *
 * The sequences of the module go on where the account of the one before ended. In between lie, each
 * seen to be done before the next: the dispatcher has settled that end (settled 1); it waits for
 * the module again, so that the run cannot end without it (settled 0); the old queue takes nothing
 * more, and no poller is in it. Then the lane is nobody's, and a new queue can have it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "receiver/private.h"

void sl_rejoin_drop(struct sl_receiver *r, uint32_t module)
{
	struct sl_source *s = &r->source[module];
	struct sl_feed *f = r->of[module];

	f->link->receiving->drop(f->link_state, s->transfer);
	sl_ring_grace(&f->ring, &s->left);
	s->dropped = true;
}

/* Every poller has begun another poll: it is out of the queue, and has no credit for it in mind. */
static bool left(const struct sl_receiver *r, uint32_t module)
{
	const struct sl_source *s = &r->source[module];
	const struct sl_ring *ring = &r->of[module]->ring;

	for (unsigned i = 0; i < r->pollers; i++) {
		uint64_t then = s->left.epoch[i];
		uint64_t now = atomic_load_explicit(&ring->poller[i].epoch, memory_order_acquire);

		if (now - then < (then & 1 ? 2 : 1))
			return false;
	}
	return true;
}

int sl_rejoin_begin(struct sl_receiver *r, uint32_t module, uint64_t first_frame, char *why,
		    size_t why_bytes)
{
	struct sl_source *s = &r->source[module];
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
	bool settled = atomic_load_explicit(&s->settled, memory_order_acquire);
	struct sl_feed *f = r->of[module];

	if (state == SL_SOURCE_RUNNING || atomic_load(&r->dispatched)) {
		snprintf(why, why_bytes,
			 state == SL_SOURCE_RUNNING ? "it is being sent already"
						    : "the run is over");
		return -EBUSY;
	}
	if (state != SL_SOURCE_RETURNING) {
		if (!settled)
			return -EAGAIN; /* packets may still be on their way */
		s->first_frame = first_frame;
		atomic_store_explicit(&s->state, SL_SOURCE_RETURNING, memory_order_release);
		sl_dispatcher_wake(r);
		return -EAGAIN;
	}
	if (settled)
		return -EAGAIN;
	if (!s->dropped)
		sl_rejoin_drop(r, module);
	/* The link may give it the place of any that was dropped. */
	for (uint32_t m = 0; m < r->modules; m++)
		if (r->source[m].dropped && !left(r, m))
			return -EAGAIN;
	sl_ring_rewind(&f->ring, module - f->first, s->end);
	return 0;
}

void sl_rejoin_end(struct sl_receiver *r, uint32_t module)
{
	struct sl_source *s = &r->source[module];

	s->returns++;
	s->unfinished_packets = 0;
	atomic_store_explicit(&s->next, s->end, memory_order_relaxed);
	atomic_fetch_add(&r->ledger.source_alive, 1);
	atomic_store_explicit(&s->state, SL_SOURCE_RUNNING, memory_order_release);
	sl_info("module %u is back, with sequence %llu and frame %llu", module,
		(unsigned long long)s->end, (unsigned long long)s->first_frame);
}

void sl_receiver_cancel_offer(struct sl_receiver *r, uint32_t module)
{
	struct sl_source *s = &r->source[module];
	uint32_t returning = SL_SOURCE_RETURNING;

	/* It is gone as before, and the dispatcher will settle that once more. */
	if (atomic_compare_exchange_strong(&s->state, &returning, SL_SOURCE_GONE))
		sl_dispatcher_wake(r);
}
