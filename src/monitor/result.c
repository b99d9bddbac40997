/* result.c - the verdict on a run. */
#include "monitor/result.h"

const char *sl_result_name(enum sl_result result)
{
	static const char *const name[] = {"intact", "error", "damaged", "unclosed"};

	return name[result];
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

enum sl_result sl_result_of(const struct sl_receive *r)
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
	return trouble ? SL_RESULT_DAMAGED : SL_RESULT_INTACT;
}
