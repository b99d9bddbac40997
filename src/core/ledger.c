/* ledger.c - the histogram of outcomes, and when it may be called closed. */
#include <errno.h>
#include <stdlib.h>

#include <sluice/outcome.h>

/* One writer: a load and a store are enough, and readers of totals need no order between them. */
static void add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, now + n, memory_order_relaxed);
}

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
	ledger->tally[module].first = sequence;
	atomic_store_explicit(&ledger->tally[module].next, sequence, memory_order_relaxed);
}

static struct sl_tally *take_turn(struct sl_ledger *ledger, uint32_t module, uint64_t sequence)
{
	struct sl_tally *tally;

	if (module >= ledger->modules || get(&ledger->tally[module].next) != sequence) {
		add(&ledger->misuse, 1);
		return NULL;
	}
	tally = &ledger->tally[module];
	add(&tally->next, 1);
	return tally;
}

void sl_ledger_settle(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
		      enum sl_outcome outcome, enum sl_cause cause)
{
	struct sl_tally *tally = take_turn(ledger, module, sequence);

	if (!tally)
		return;
	add(&tally->outcome[outcome], 1);
	add(&tally->cause[cause], 1);
}

void sl_ledger_settle_pending(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
			      bool sample)
{
	struct sl_tally *tally = take_turn(ledger, module, sequence);

	if (!tally)
		return;
	add(&tally->pending, 1);
	add(&tally->samples, sample);
}

void sl_ledger_resolve(struct sl_ledger *ledger, uint32_t module, uint64_t count,
		       enum sl_outcome outcome, enum sl_cause cause)
{
	struct sl_tally *tally = &ledger->tally[module];
	uint64_t samples = get(&tally->samples);

	if (count > get(&tally->pending)) {
		add(&ledger->misuse, 1);
		return;
	}
	samples = samples < count ? samples : count;
	add(&tally->pending, -count);
	add(&tally->samples, -samples);
	add(&tally->outcome[outcome == SL_STORED ? SL_PRESCALED : outcome], samples);
	add(&tally->outcome[outcome], count - samples);
	add(&tally->cause[cause], count);
}

void sl_ledger_report(struct sl_ledger *ledger, uint32_t module, uint64_t sent)
{
	struct sl_tally *tally = &ledger->tally[module];

	if (sent > tally->first + get(&tally->sent))
		atomic_store_explicit(&tally->sent, sent - tally->first, memory_order_relaxed);
}

void sl_ledger_skip(struct sl_ledger *ledger, uint32_t module, uint64_t skipped)
{
	atomic_store_explicit(&ledger->tally[module].skipped, skipped, memory_order_relaxed);
}

uint64_t sl_ledger_total(const struct sl_ledger *ledger, enum sl_outcome outcome)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < ledger->modules; m++)
		total += get(&ledger->tally[m].outcome[outcome]);
	return total;
}

uint64_t sl_ledger_sent(const struct sl_ledger *ledger)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < ledger->modules; m++)
		total += get(&ledger->tally[m].sent);
	return total;
}

static bool module_closed(const struct sl_tally *tally)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SL_OUTCOMES; i++)
		sum += get(&tally->outcome[i]);
	return sum == get(&tally->sent) + get(&tally->skipped) && !get(&tally->pending) &&
	       !get(&tally->outcome[SL_NO_OUTCOME]);
}

bool sl_ledger_closed(const struct sl_ledger *ledger)
{
	if (get(&ledger->misuse) || atomic_load(&ledger->source_alive))
		return false;
	for (uint32_t m = 0; m < ledger->modules; m++)
		if (!module_closed(&ledger->tally[m]))
			return false;
	return true;
}
