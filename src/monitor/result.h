/* result.h - how a run ended, in one word and one exit code. */
#ifndef SL_MONITOR_RESULT_H
#define SL_MONITOR_RESULT_H

#include <stdbool.h>

#include "receiver/receiver.h"

enum sl_result {
	SL_RESULT_INTACT = 0, /* ledger closed, nothing lost, damaged or unwritten */
	SL_RESULT_ERROR = 1,  /* it could not run */
	SL_RESULT_DAMAGED =
		2, /* ledger closed, but not everything arrived and was written as it should */
	SL_RESULT_UNCLOSED = 3, /* a source vanished, or the ledger does not close */
	SL_RESULT_EMPTY = 4,	/* nothing was sent, so nothing can be said of it; exits with 0 */
};

const char *sl_result_name(enum sl_result result); /* "intact", ... */

int sl_result_exit(enum sl_result result); /* the exit status */

/* Why a run ended before everything was sent and stored that the front ends offered, in words;
 * NULL: it did not. signal: the name of the one that stopped it, or NULL. */
const char *sl_result_early(const struct sl_receiver *receiver, const char *signal);

/* After sl_receiver_finish(). */
enum sl_result sl_result_of(const struct sl_receiver *receiver);

/* True for the outcomes that a run without trouble has none of. */
bool sl_outcome_is_trouble(enum sl_outcome outcome);

#endif
