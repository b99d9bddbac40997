/* causes.h - causes of outcomes in words, with what to do. */
#ifndef SL_BOARD_CAUSES_H
#define SL_BOARD_CAUSES_H

#include <jansson.h>

#include <sluice/outcome.h>

struct sl_cause_words {
	const char *words, *hint; /* hint "": nothing is wrong */
};

/* By enum sl_cause. */
extern const struct sl_cause_words sl_cause_words[SL_CAUSES];

/* [{cause, words, hint}] for each cause of the ledger's total that is not 0. */
json_t *sl_causes_words(const json_t *ledger);
/* The same for every cause there is. */
json_t *sl_causes_all(void);

#endif
