/* counts_fuzz.c - any bytes as a source's account of what it sent; what is accepted is compared
 * with rows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice/outcome.h>

#include "audit/counts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MODULES = 3, ROWS = 12 };

static void count(void *arg, uint32_t module, uint64_t sequence, const char *text)
{
	if (module >= SL_LEAF_MODULES || !text[0])
		abort();
	++*(uint64_t *)arg;
}

static void compare(struct sl_counts *counts)
{
	uint64_t said = 0;

	for (uint64_t row = 0; row < ROWS; row++) {
		const uint64_t sequence[MODULES] = {row, 2 * row, UINT64_MAX - ROWS + row};
		const uint8_t outcome[MODULES] = {SL_STORED, SL_LOST, SL_VETOED},
			      cause[MODULES] = {0};
		const uint32_t crc[MODULES] = {1, 2, 3};
		const struct sl_leaf leaf = {.modules = MODULES,
					     .source_known = 5,
					     .module_sequence = sequence,
					     .outcome = outcome,
					     .cause = cause,
					     .source_crc = crc};

		sl_counts_row(counts, &leaf, count, &said);
	}
	sl_counts_end(counts, MODULES, count, &said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	FILE *file = bytes ? fmemopen((void *)data, bytes, "r") : NULL;
	struct sl_counts counts;
	char why[256];

	if (!file)
		return 0;
	if (!sl_counts_read(file, &counts, why, sizeof(why)))
		compare(&counts);
	sl_counts_free(&counts);
	fclose(file);
	return 0;
}
