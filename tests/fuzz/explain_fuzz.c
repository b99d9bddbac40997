/* explain_fuzz.c - any bytes as a run's result and as flight.json, with the byte 0x1e between them:
 * what is explained keeps its bounds, and can be printed. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BETWEEN = 0x1e };

/* A macro: the line of the check that fails is in the report. */
#define check(holds)             \
	do {                     \
		if (!(holds))    \
			abort(); \
	} while (0)

static void look(const struct sl_explanation *e)
{
	check(e->findings <= SL_FINDINGS);
	check(!e->findings || e->lost);
	check(!e->lost || e->findings || e->looked_at[0]);
	for (unsigned i = 0; i < e->findings; i++) {
		const struct sl_finding *f = &e->finding[i];

		check(f->cause && f->group && (f->module_frames || e->is_unclosed));
		check(f->score > 0 && f->score <= 1);
		check(f->sentence[0] && f->advice[0] && f->command[0] &&
		      f->evidence <= SL_EVIDENCE);
		for (unsigned k = 0; k < f->evidence; k++)
			check(isfinite(f->proof[k].value));
	}
}

static void print(const struct sl_explanation *e)
{
	static FILE *nowhere;
	char *json = sl_explain_json(e, 1);

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	check(json && nowhere);
	sl_explain_print(nowhere, e);
	free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_explanation e;
	const char *text = (const char *)data, *between = size ? memchr(data, BETWEEN, size) : NULL;
	size_t first = between ? (size_t)(between - text) : size;
	/* An empty first part: there is no result. */
	struct sl_explain_texts texts = {.result = first ? text : NULL,
					 .result_bytes = first,
					 .flight = between ? between + 1 : NULL,
					 .flight_bytes = between ? size - first - 1 : 0,
					 .result_path = "runs/it's/result.json",
					 .flight_path = "runs/it's/flight.json"};
	char why[300] = "";

	if (sl_explain(&texts, &e, why, sizeof(why))) {
		check(why[0]);
		return 0;
	}
	look(&e);
	print(&e);
	return 0;
}
