/* result.c - the verdict on a run. */
#include <errno.h>

#include "monitor/result.h"

const char *sl_result_name(enum sl_result result)
{
	static const char *const name[] = {"intact", "error", "damaged", "unclosed", "empty"};

	return name[result];
}

int sl_result_exit(enum sl_result result)
{
	return result == SL_RESULT_EMPTY ? 0 : (int)result;
}

/* Some sink took no more frames, since its disk is full or for another reason. */
static const char *sink_trouble(const struct sl_receiver *r)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++) {
		int err = r->experiment->sink[i]->where ? r->sink_error[i] : 0;

		if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG)
			return "disk full: later frames were not stored";
		if (err)
			return "a sink failed: later frames were not stored";
	}
	return NULL;
}

/* It ended with the last frame that it had offered. Where modules may miss triggers, it may have
 * sent fewer on the way. */
static bool came_to_its_end(const struct sl_receiver *r, const struct sl_source_status *s)
{
	const struct sl_ring_options *ring = &r->experiment->ring;
	unsigned unused = ring->align == SL_ALIGN_FRAME ? 64 - ring->wrap_bits : 0;
	uint64_t step = r->assembler.options.frame_step;
	uint64_t last = s->offer.first_frame + (s->offer.frames - 1) * step;

	return ring->align != SL_ALIGN_SEQUENCE && s->proven &&
	       (s->last_frame - last) << unused == 0;
}

const char *sl_result_early(const struct sl_receiver *r, const char *signal)
{
	bool fewer = false;

	if (r->overrun)
		return "overrun: a front end was faster than this receiver (ring.overrun: stop)";
	if (signal)
		return "interrupted";
	for (uint32_t m = 0; m < r->ledger.modules; m++) {
		const struct sl_source_status *s = &r->source[m];

		if (atomic_load(&s->state) == SL_SOURCE_GONE)
			return r->experiment->link->oneway
				       ? "nothing came any more (control.silence_s, wait_s)"
				       : "a front end vanished";
		/* Frames that it left out are among those that it dealt with. */
		fewer |= s->offered && atomic_load(&s->next) < s->offered && !came_to_its_end(r, s);
	}
	return fewer ? "a front end sent less than it had offered" : sink_trouble(r);
}

bool sl_outcome_is_trouble(enum sl_outcome outcome)
{
	return outcome != SL_STORED && outcome != SL_PRESCALED && outcome != SL_VETOED;
}

static void add_failures(void *arg, const char *name, uint64_t value, int failed)
{
	uint64_t *failures = arg;

	*failures += failed ? value : 0;
}

enum sl_result sl_result_of(const struct sl_receiver *r)
{
	const struct sl_experiment *e = r->experiment;
	uint64_t trouble = 0;

	if (!sl_ledger_closed(&r->ledger) || atomic_load(&r->ledger.source_died))
		return SL_RESULT_UNCLOSED;
	for (unsigned o = 0; o < SL_OUTCOMES; o++)
		if (sl_outcome_is_trouble(o))
			trouble += sl_ledger_total(&r->ledger, o);
	for (unsigned i = 0; i < e->sinks; i++) {
		trouble += r->sink_error[i] != 0;
		if (e->sink[i]->figures)
			e->sink[i]->figures(e->sink_state[i], add_failures, &trouble);
	}
	if (e->unit->figures)
		e->unit->figures(e->unit_state, add_failures, &trouble);
	trouble += atomic_load(&r->partial) + atomic_load(&r->broken);
	if (trouble)
		return SL_RESULT_DAMAGED;
	return sl_ledger_sent(&r->ledger) ? SL_RESULT_INTACT : SL_RESULT_EMPTY;
}
