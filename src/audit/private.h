/* private.h - what the files of an audit share while it is made.
 *
 * Threads:   one. */
#ifndef SL_AUDIT_PRIVATE_H
#define SL_AUDIT_PRIVATE_H

#include "audit/check.h"
#include "audit/master.h"
#include "audit/part.h"

enum { SL_AUDIT_DOUBTS = 64 };

/* A row whose leaf is another than the stored one, and nothing tells which is right. */
struct sl_audit_doubt {
	uint64_t sequence, number;
};

struct sl_audit_state {
	const struct sl_audit_options *options;
	struct sl_audit_result *result;
	struct sl_master master;
	struct sl_tree read, stored; /* over all rows: as made anew, as stored */
	uint64_t module_rows[SL_LEAF_MODULES];
	bool all_read;	   /* every row so far */
	uint32_t foreign;  /* data files of another run */
	bool has_sequence; /* of the row before: */
	uint64_t sequence;
	uint32_t modules;

	/* Of the data file at hand. */
	struct sl_part part;
	const char *name;
	uint64_t first_image;
	struct sl_tree part_read;
	bool stored_right; /* its leaves are those of the master */
	struct sl_audit_doubt doubt[SL_AUDIT_DOUBTS];
	uint32_t doubts;
};

/* frame.c: something was found. leaf: NULL: it is not about a frame. */
void sl_audit_tell(struct sl_audit_state *audit, enum sl_finding_kind kind,
		   const struct sl_leaf *leaf, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Compare a row, and everything about its frame, with its leaf. */
void sl_audit_row(struct sl_audit_state *audit, const struct sl_part_row *row);

/* What the source's account and the run do not agree on. */
sl_counts_say sl_audit_say_counts;

#endif
