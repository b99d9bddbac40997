/* result.h - how a run ended, in one word and one exit code. Functions of a status. */
#ifndef SL_MONITOR_RESULT_H
#define SL_MONITOR_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/status.h>

const char *sl_result_name(enum sl_result result); /* "intact", ... */

int sl_result_exit(enum sl_result result); /* the exit status */

/* The worse of two exit statuses. "Could not run" says less about the data than any other, and more
 * about whether to look further: it is the worst. */
int sl_result_worse(int a, int b);

/* Why a run ended before everything was sent and stored that the front ends offered, in words;
 * empty: it did not. */
void sl_result_early(const struct sl_status *status, char *text, size_t bytes);

/* The result in a sentence, for people: what was left out by a policy of the experiment is named,
 * with numbers. */
void sl_result_words(const struct sl_status *status, char *text, size_t bytes);

/* After sl_receiver_finish(). */
enum sl_result sl_result_of(const struct sl_status *status);

/* True for the outcomes that a run without trouble has none of. */
bool sl_outcome_is_trouble(enum sl_outcome outcome);

#endif
