/* sources.c - what sources of a run say and do: how much they sent, that they have ended or
 * vanished; and how far the receiver has seen them come. */
#include <errno.h>
#include <stdio.h>

#include "receiver/private.h"

enum {
	/* That a source without credits may claim beyond the slots. */
	OPEN_LOOP_FRAMES = SL_RING_AWAY / 2,
};

/* Counts are outside input. A source that may send only what it was granted cannot have sent
 * more than that, so a lie costs at most a ring of frames; one that takes no credits may have lost
 * more, or any have left out more, but not without bounds. */
static const char *count_problem(const struct sl_receiver *r, uint32_t module, uint64_t next,
				 uint64_t sent, uint64_t position)
{
	const struct sl_source *s = &r->source[module];
	const struct sl_feed *f = r->of[module];
	uint64_t granted = sl_feed_opened(r->of, module);

	if (s->open_loop)
		granted += OPEN_LOOP_FRAMES;
	else if (sent <= next) /* no credit is needed to leave frames out */
		granted += next - sent < OPEN_LOOP_FRAMES ? next - sent : OPEN_LOOP_FRAMES;
	if (next < atomic_load_explicit(&s->next, memory_order_relaxed) ||
	    sent < atomic_load_explicit(&r->ledger.tally[module].sent, memory_order_relaxed))
		return "it takes back what it said";
	if (sent > next)
		return "it sent more than there was";
	if (s->offered && next > s->offered)
		return "it sent more than it offered";
	if ((f->link->guards & SL_GUARD_CREDITED) &&
	    (next > granted || s->first_sequence + position / f->ring.block_bytes > granted))
		return "it sent more than it was granted";
	return NULL;
}

int sl_receiver_count(struct sl_receiver *r, uint32_t module, uint64_t next, uint64_t sent,
		      uint64_t position, bool final, char *why, size_t why_bytes)
{
	struct sl_source *s = &r->source[module];
	const char *problem = count_problem(r, module, next, sent, position);
	struct sl_feed *f = r->of[module];

	if (problem) {
		snprintf(why, why_bytes, "module %u: a count that cannot be true: %s", module,
			 problem);
		return -EPROTO;
	}
	sl_ledger_report(&r->ledger, module, sent);
	sl_ledger_skip(&r->ledger, module, next - sent);
	atomic_store_explicit(&s->next, next, memory_order_release);
	f->link->receiving->reported(f->link_state, s->transfer, position);
	if (final) {
		atomic_fetch_sub(&r->ledger.source_alive, 1);
		atomic_store_explicit(&s->state, SL_SOURCE_DONE, memory_order_release);
	}
	sl_dispatcher_wake(r);
	return 0;
}

void sl_receiver_source_lost(struct sl_receiver *r, uint32_t module)
{
	atomic_fetch_sub(&r->ledger.source_alive, 1);
	atomic_fetch_add(&r->ledger.source_died, 1);
	atomic_store_explicit(&r->source[module].state, SL_SOURCE_GONE, memory_order_release);
	sl_dispatcher_wake(r);
}

void sl_receiver_limit(struct sl_receiver *r, uint64_t sequence)
{
	atomic_store_explicit(&r->feed[0].limit, sequence, memory_order_relaxed);
}

void sl_receiver_end(struct sl_receiver *r, uint32_t module)
{
	atomic_fetch_sub(&r->ledger.source_alive, 1);
	atomic_store_explicit(&r->source[module].state, SL_SOURCE_ENDED, memory_order_release);
	sl_dispatcher_wake(r);
}

void sl_receiver_cut(struct sl_receiver *r, uint32_t module)
{
	/* What found no room is why an overrun ends the run: then it counts, too. */
	r->source[module].cut = !atomic_load(&r->overrun);
	sl_rejoin_drop(r, module);
	sl_receiver_end(r, module);
}

uint64_t sl_receiver_idle(const struct sl_receiver *r)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < r->pollers; i++) {
		uint64_t idle = atomic_load_explicit(&r->link_idle[i].polls, memory_order_relaxed);

		least = idle < least ? idle : least;
	}
	return least;
}

/* The sequence after all that it offered. */
static uint64_t last_of(const struct sl_source *s)
{
	uint64_t first = s->plan.first_sequence;

	uint64_t offered = atomic_load_explicit(&s->offered, memory_order_relaxed);

	return offered ? first + s->offer.frames : UINT64_MAX;
}

void sl_receiver_progress(const struct sl_receiver *r, uint32_t module,
			  struct sl_progress *progress)
{
	const struct sl_source *s = &r->source[module];
	const struct sl_feed *f = r->of[module];
	uint64_t reached = sl_feed_reached(r->of, module);

	*progress = (struct sl_progress){
		.first = atomic_load_explicit(&s->first, memory_order_relaxed),
		.end = last_of(s),
		.reached = reached,
		.opened = sl_feed_opened(r->of, module),
		.packets = reached ? sl_feed_packets(r->of, reached - 1, module) : 0,
		.packets_whole = s->plan.packets,
		.idle = sl_receiver_idle(r),
		.looked_ns = sl_feed_looked_at(r->of, module),
		.arrived = sl_link_packets(&r->counters),
		.waits = atomic_load_explicit(&s->can_wait, memory_order_relaxed),
		.failed = f->link->receiving->failed &&
			  f->link->receiving->failed(f->link_state, s->transfer),
	};
}

/* The dispatcher, which opens slots, decides where it stops (dispatch.c). */
void sl_receiver_pause(struct sl_receiver *r, bool pause)
{
	atomic_store_explicit(&r->pause, pause, memory_order_relaxed);
	/* Pairs with the load in sl_slots_open(). */
	atomic_store_explicit(&r->pause_at, 0, memory_order_release);
	sl_dispatcher_wake(r);
}

void sl_receiver_pause_at(struct sl_receiver *r, uint64_t sequence)
{
	atomic_store_explicit(&r->pause, true, memory_order_relaxed);
	/* Pairs with the load in sl_slots_open(). */
	atomic_store_explicit(&r->pause_at, sequence, memory_order_release);
	if (r->started)
		sl_dispatcher_wake(r);
}

bool sl_receiver_is_drained(const struct sl_receiver *r, uint64_t *next)
{
	uint64_t at = atomic_load_explicit(&r->pause_at, memory_order_relaxed);
	/* Pairs with the store in set_pause(). */
	uint64_t seen = atomic_load_explicit(&r->pause_seen, memory_order_acquire);
	uint64_t limit = atomic_load_explicit(&r->feed[0].pause_limit, memory_order_relaxed);

	if (limit == UINT64_MAX || seen != at)
		return false;
	for (uint32_t m = 0; m < r->modules; m++)
		if (atomic_load(&r->source[m].state) == SL_SOURCE_RUNNING &&
		    sl_ledger_next(&r->ledger, m) <
			    atomic_load_explicit(&r->of[m]->pause_limit, memory_order_relaxed))
			return false;
	*next = limit;
	return true;
}

void sl_receiver_abandon(struct sl_receiver *r)
{
	for (uint32_t m = 0; m < r->modules; m++)
		if (atomic_load(&r->source[m].state) == SL_SOURCE_RUNNING)
			sl_receiver_source_lost(r, m);
}

int sl_receiver_cannot_wait(const struct sl_receiver *r)
{
	for (uint32_t m = 0; m < r->modules; m++)
		if (!atomic_load_explicit(&r->source[m].can_wait, memory_order_relaxed))
			return (int)m;
	return -1;
}

bool sl_receiver_is_exhausted(const struct sl_receiver *r)
{
	for (uint32_t i = 0; i < r->modules; i++) {
		const struct sl_source *s = &r->source[i];
		uint32_t state = atomic_load(&s->state);

		if (state == SL_SOURCE_DONE)
			continue;
		if (state != SL_SOURCE_ENDED || sl_feed_reached(r->of, i) < last_of(s))
			return false;
	}
	return true;
}

bool sl_receiver_overrun(struct sl_receiver *r)
{
	for (uint32_t m = 0; r->experiment->ring.overrun == SL_OVERRUN_STOP && m < r->modules; m++)
		if (sl_feed_turned_away(r->of, m))
			atomic_store(&r->overrun, true);
	return atomic_load(&r->overrun);
}
