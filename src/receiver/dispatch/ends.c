/* ends.c - where the frames of a module end: its source has ended, and everything that will ever
 * come of it is here; or another source goes on in its place. Part of the dispatcher's thread. */
#include "base/clock.h"
#include "receiver/private.h"

/* The highest sequence of which the source told us, by a count or by a record that arrived. */
static uint64_t last_word(struct sl_receiver *r, uint32_t module)
{
	struct sl_source *s = &r->source[module];
	uint64_t end = atomic_load_explicit(&s->next, memory_order_acquire);
	uint64_t opened = sl_feed_opened(r->of, module);
	uint64_t ns;

	if (s->proven > end)
		end = s->proven;
	/* What was given up has its outcome, too. */
	if (sl_feed_given_out(r->of, module) > end)
		end = sl_feed_given_out(r->of, module);
	for (uint64_t k = end; k < opened; k++)
		if (sl_feed_event(r->of, k, module, &ns) && k + 1 > end)
			end = k + 1;
	return end;
}

/* A source that vanished may have been in mid-frame: that frame it never reported, so it gets no
 * outcome, but a name. */
static void note_unfinished(struct sl_receiver *r, uint32_t module, uint64_t end)
{
	uint64_t opened = sl_feed_opened(r->of, module);

	for (uint64_t k = end; k < opened; k++) {
		uint32_t packets = sl_feed_packets(r->of, k, module);

		if (packets) {
			r->source[module].unfinished_sequence = k;
			r->source[module].unfinished_packets = packets;
		}
	}
}

static void end_at(struct sl_receiver *r, uint32_t module, uint64_t end)
{
	struct sl_source *s = &r->source[module];
	struct sl_feed *f = r->of[module];

	sl_assembler_end(&f->assembler, module - f->first, end);
	s->end = end;
	s->drain = (struct sl_watch){.quiet_since_ns = 0};
	/* Release: pairs with rejoin.c; `end` is settled, and who comes next begins there. */
	atomic_store_explicit(&s->settled, 1, memory_order_release);
}

/* Its source has ended, and not all that it sent is given out. */
static bool leaves_something(const struct sl_receiver *r, uint32_t module)
{
	const struct sl_source *s = &r->source[module];
	uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
	bool settled = atomic_load_explicit(&s->settled, memory_order_relaxed);

	if (state == SL_SOURCE_RUNNING || (state == SL_SOURCE_RETURNING && !settled))
		return false;
	return !settled || sl_feed_given_out(r->of, module) < s->end;
}

/* By timestamp it is not known with which frame a source will go on. So all modules wait for it,
 * and it may itself wait for plans of other modules, which ended together with it: those must have
 * left nothing. Every module that has ended by now counts as one of them. */
static bool may_wait_for(struct sl_receiver *r, uint32_t module)
{
	if (r->experiment->ring.align != SL_ALIGN_TIMESTAMP || r->source[module].cleared)
		return true;
	for (uint32_t m = 0; m < r->modules; m++)
		if (leaves_something(r, m))
			return false;
	for (uint32_t m = 0; m < r->modules; m++)
		r->source[m].cleared =
			atomic_load_explicit(&r->source[m].state, memory_order_relaxed) !=
			SL_SOURCE_RUNNING;
	return true;
}

/* Another source wants to go on where this one ended. It is waited for from now on; but not before
 * all of this one was given out, whose frames are others. */
static void resume(struct sl_receiver *r, uint32_t module)
{
	struct sl_source *s = &r->source[module];
	struct sl_feed *f = r->of[module];

	if (!atomic_load_explicit(&s->settled, memory_order_relaxed) ||
	    sl_feed_given_out(r->of, module) < s->end || !may_wait_for(r, module))
		return;
	s->cleared = false;
	sl_assembler_begin(&f->assembler, module - f->first, s->end, s->first_frame);
	/* Release: pairs with rejoin.c; the run does not end without it any more. */
	atomic_store_explicit(&s->settled, 0, memory_order_release);
}

static bool is_drained(struct sl_receiver *r, uint32_t module, uint64_t reached, uint64_t now_ns)
{
	const struct sl_sight sight = {
		.arrived = reached,
		.packets = reached ? sl_feed_packets(r->of, reached - 1, module) : 0,
		.idle = sl_receiver_idle(r),
	};

	return sl_watch_look(&r->source[module].drain, NULL, &sight, now_ns) == SL_WATCH_DRAINED;
}

/* A module's source has ended: when is everything here that will ever come? At once if it is all
 * given out; otherwise when its lane has been quiet for a while, since packets may be on their
 * way longer than the word that they were sent. */
static void check_end(struct sl_receiver *r, uint32_t module, uint64_t now)
{
	struct sl_source *s = &r->source[module];
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
	uint64_t reached = sl_feed_reached(r->of, module), end;
	uint64_t given_out = sl_feed_given_out(r->of, module);

	if (state == SL_SOURCE_RETURNING)
		resume(r, module);
	if (state == SL_SOURCE_RUNNING || state == SL_SOURCE_RETURNING ||
	    sl_feed_end(r->of, module) != UINT64_MAX)
		return;
	if (state == SL_SOURCE_DONE &&
	    given_out >= atomic_load_explicit(&s->next, memory_order_acquire)) {
		end_at(r, module, s->next);
		return;
	}
	if (!is_drained(r, module, reached, now))
		return;
	end = s->next;
	if (state == SL_SOURCE_ENDED) /* what was given up before that has its outcome, too */
		end = reached > given_out ? reached : given_out;
	if (state == SL_SOURCE_GONE || s->cut) {
		end = last_word(r, module);
		note_unfinished(r, module, end);
	}
	if (state != SL_SOURCE_DONE) /* it did not say how far it came: as far as was seen */
		atomic_store_explicit(&s->next, end, memory_order_relaxed);
	if (state != SL_SOURCE_DONE)
		sl_ledger_report(&r->ledger, module, end - r->ledger.tally[module].skipped);
	end_at(r, module, end);
}

void sl_ends_check(struct sl_receiver *r)
{
	uint64_t now = sl_clock_ns();

	for (uint32_t m = 0; m < r->modules; m++)
		check_end(r, m, now);
}
