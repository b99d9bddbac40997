/* ledger_sums.h - a ledger's sums, as a status has them. */
#ifndef TESTS_LIB_LEDGER_SUMS_H
#define TESTS_LIB_LEDGER_SUMS_H

#include "core/ledger.h"

static inline const struct sl_status *ledger_status(const struct sl_ledger *ledger)
{
	static struct sl_status status;

	status = (struct sl_status){.result = -1};
	sl_ledger_status(ledger, &status);
	return &status;
}

static inline uint64_t ledger_total(const struct sl_ledger *ledger, enum sl_outcome outcome)
{
	return sl_status_total(ledger_status(ledger), outcome);
}

static inline uint64_t ledger_sent(const struct sl_ledger *ledger)
{
	return sl_status_sent(ledger_status(ledger));
}

static inline bool ledger_closed(const struct sl_ledger *ledger)
{
	return sl_status_closed(ledger_status(ledger));
}

#endif
