/* counts.h - what a source says it sent, and whether a run has an outcome for all of it.
 *
 * Model:     a text, one statement in a line (docs/reference/audit.md): how many module-frames each
 *            module sent, which it left out, and the CRC32C of the pixels of each, if the source
 *            has them. Several front ends' texts may follow each other. Rows of the run are then
 *            compared one after another.
 * Threads:   one at a time.
 * Cost:      16 bytes for each checksum and 8 for each sequence that was left out. */
#ifndef SL_AUDIT_COUNTS_H
#define SL_AUDIT_COUNTS_H

#include <stdio.h>

#include "audit/leaf.h"

#define SL_COUNTS_HEAD "sluice counts 1"

struct sl_counts_range {
	uint64_t first, count;
};
struct sl_counts_crc {
	uint64_t sequence;
	uint32_t crc;
};

struct sl_counts_module {
	struct sl_counts_range *range;
	uint64_t *left_out;
	struct sl_counts_crc *crc;
	size_t ranges, left_outs, crcs;
	/* While rows are compared: the next sequence that has none, and where that is above. */
	uint64_t next;
	size_t at_range, at_left_out, at_crc;
};

struct sl_counts {
	struct sl_counts_module module[SL_LEAF_MODULES];
	uint64_t sent, compared; /* module-frames; checksums that were equal */
};

/* 0; -EBADMSG: `why` has the line and what is wrong with it; -ENOMEM. Free it in any case. */
int sl_counts_read(FILE *from, struct sl_counts *counts, char *why, size_t why_bytes);
void sl_counts_free(struct sl_counts *counts);

/* Something that the run and the source do not agree on; sequence is the module's own. */
typedef void sl_counts_say(void *arg, uint32_t module, uint64_t sequence, const char *text);

/* Rows in order, then the end. */
void sl_counts_row(struct sl_counts *counts, const struct sl_leaf *leaf, sl_counts_say *say,
		   void *arg);
void sl_counts_end(struct sl_counts *counts, uint32_t modules, sl_counts_say *say, void *arg);

#endif
