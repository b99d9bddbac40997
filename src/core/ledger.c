/* ledger.c - the histogram of outcomes, and when it may be called closed. */
#include <errno.h>
#include <stdlib.h>

#include "base/sequence.h"
#include "core/ledger.h"

_Static_assert((int)SL_OUTCOMES <= (int)SL_STATUS_OUTCOMES, "a status has room for every outcome");
_Static_assert((int)SL_CAUSES <= (int)SL_STATUS_CAUSES, "and for every cause");

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int sl_ledger_init(struct sl_ledger *ledger, uint32_t modules)
{
	*ledger = (struct sl_ledger){.modules = modules};
	ledger->tally = calloc(modules, sizeof(*ledger->tally));
	return ledger->tally ? 0 : -ENOMEM;
}

void sl_ledger_fini(struct sl_ledger *ledger)
{
	free(ledger->tally);
	ledger->tally = NULL;
}

void sl_ledger_begin(struct sl_ledger *ledger, uint32_t module, uint64_t sequence)
{
	struct sl_tally *tally = &ledger->tally[module];

	sl_sequence_begin(&tally->sequence);
	sl_sequence_store(&tally->first, sequence);
	sl_sequence_store(&tally->next, sequence);
	sl_sequence_end(&tally->sequence);
}

/* The module's tally, with its sequence odd; NULL: it was not this sequence's turn. */
static struct sl_tally *take_turn(struct sl_ledger *ledger, uint32_t module, uint64_t sequence)
{
	struct sl_tally *tally;

	if (module >= ledger->modules || get(&ledger->tally[module].next) != sequence) {
		sl_sequence_add(&ledger->misuse, 1);
		return NULL;
	}
	tally = &ledger->tally[module];
	sl_sequence_begin(&tally->sequence);
	sl_sequence_add(&tally->next, 1);
	return tally;
}

void sl_ledger_settle(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
		      enum sl_outcome outcome, enum sl_cause cause)
{
	struct sl_tally *tally = take_turn(ledger, module, sequence);

	if (!tally)
		return;
	sl_sequence_add(&tally->outcome[outcome], 1);
	sl_sequence_add(&tally->cause[cause], 1);
	sl_sequence_end(&tally->sequence);
}

void sl_ledger_settle_pending(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
			      bool sample)
{
	struct sl_tally *tally = take_turn(ledger, module, sequence);

	if (!tally)
		return;
	sl_sequence_add(&tally->pending, 1);
	sl_sequence_add(&tally->samples, sample);
	sl_sequence_end(&tally->sequence);
}

void sl_ledger_resolve(struct sl_ledger *ledger, uint32_t module, uint64_t count,
		       enum sl_outcome outcome, enum sl_cause cause)
{
	struct sl_tally *tally = &ledger->tally[module];
	uint64_t samples = get(&tally->samples);

	if (count > get(&tally->pending)) {
		sl_sequence_add(&ledger->misuse, 1);
		return;
	}
	samples = samples < count ? samples : count;
	sl_sequence_begin(&tally->sequence);
	sl_sequence_add(&tally->pending, -count);
	sl_sequence_add(&tally->samples, -samples);
	sl_sequence_add(&tally->outcome[outcome == SL_STORED ? SL_PRESCALED : outcome], samples);
	sl_sequence_add(&tally->outcome[outcome], count - samples);
	sl_sequence_add(&tally->cause[cause], count);
	sl_sequence_end(&tally->sequence);
}

void sl_ledger_report(struct sl_ledger *ledger, uint32_t module, uint64_t sent)
{
	struct sl_tally *tally = &ledger->tally[module];

	uint64_t first = get(&tally->first);

	if (sent > first + get(&tally->sent))
		atomic_store_explicit(&tally->sent, sent - first, memory_order_relaxed);
}

void sl_ledger_skip(struct sl_ledger *ledger, uint32_t module, uint64_t skipped)
{
	atomic_store_explicit(&ledger->tally[module].skipped, skipped, memory_order_relaxed);
}

uint64_t sl_ledger_next(const struct sl_ledger *ledger, uint32_t module)
{
	return sl_sequence_load(&ledger->tally[module].next);
}

static void column_of(const struct sl_tally *tally, struct sl_status_column *column)
{
	uint32_t before;

	do {
		before = sl_sequence_look(&tally->sequence);
		column->settled = sl_sequence_load(&tally->next) - sl_sequence_load(&tally->first);
		column->pending = sl_sequence_load(&tally->pending);
		column->samples = sl_sequence_load(&tally->samples);
		for (unsigned i = 0; i < SL_OUTCOMES; i++)
			column->outcome[i] = sl_sequence_load(&tally->outcome[i]);
		for (unsigned i = 0; i < SL_CAUSES; i++)
			column->cause[i] = sl_sequence_load(&tally->cause[i]);
	} while (!sl_sequence_same(&tally->sequence, before));
	column->sent = get(&tally->sent);
	column->skipped = get(&tally->skipped);
}

void sl_ledger_status(const struct sl_ledger *ledger, struct sl_status *status)
{
	status->modules = ledger->modules;
	for (uint32_t m = 0; m < ledger->modules && m < SL_STATUS_MODULES; m++)
		column_of(&ledger->tally[m], &status->column[m]);
	status->sources_alive = atomic_load(&ledger->source_alive);
	status->sources_gone = atomic_load(&ledger->source_died);
	status->misuse = get(&ledger->misuse);
}
