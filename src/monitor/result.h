/* result.h - how a run ended, in one word and one exit code. */
#ifndef SL_MONITOR_RESULT_H
#define SL_MONITOR_RESULT_H

#include <stdbool.h>

#include "pipeline/receive.h"

enum sl_result {
	SL_RESULT_INTACT = 0, /* ledger closed, nothing lost, damaged or unwritten */
	SL_RESULT_ERROR = 1,  /* it could not run */
	SL_RESULT_DAMAGED =
		2, /* ledger closed, but not everything arrived and was written as it should */
	SL_RESULT_UNCLOSED = 3, /* a source vanished, or the ledger does not close */
};

const char *sl_result_name(enum sl_result result); /* "intact", ... */

/* After sl_receive_finish(). */
enum sl_result sl_result_of(const struct sl_receive *receive);

/* True for the outcomes that a run without trouble has none of. */
bool sl_outcome_is_trouble(enum sl_outcome outcome);

#endif
