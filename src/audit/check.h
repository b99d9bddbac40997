/* check.h - the audit of a run: everything is read back, and compared with what was written.
 *
 * Model:     the file that a run's path names (the master) knows the root of the hash tree and
 *            which data files there are. Each data file is read row by row: checksums of its
 *            images and series are made anew, so are leaves and the root. What does not agree is a
 *            finding; a run without one has every frame, unchanged.
 * Threads:   one.
 * Errors:    0, or -errno, logged: it cannot be audited. Damage is no error, but a finding.
 * Cost:      reads everything once; memory does not grow with the run. */
#ifndef SL_AUDIT_CHECK_H
#define SL_AUDIT_CHECK_H

#include "audit/counts.h"
#include "audit/layout.h"

struct sl_log_target;

enum sl_finding_kind {
	SL_FINDING_IMAGE,	 /* the pixels are others, or cannot be unpacked */
	SL_FINDING_SERIES,	 /* rows of another dataset are others */
	SL_FINDING_ROW,		 /* the row about the frame, or its leaf, is another */
	SL_FINDING_CHECKSUM,	 /* the stored checksum or leaf is damaged, the data are right */
	SL_FINDING_SOURCE,	 /* pixels are not those that the source vouched for */
	SL_FINDING_ROWS_MISSING, /* or too many */
	SL_FINDING_FILE_MISSING,
	SL_FINDING_FILE_UNREADABLE,
	SL_FINDING_FILE_FOREIGN, /* of another run, or of another place in this one */
	SL_FINDING_MASTER,	 /* what the master says of its data files is not so */
	SL_FINDING_ROOT,
	SL_FINDING_LEDGER,
	SL_FINDING_COUNTS, /* the source's account says something else */
	SL_FINDINGS,
};
const char *sl_finding_name(enum sl_finding_kind kind); /* "image", ... */

struct sl_finding {
	enum sl_finding_kind kind;
	const char *file;	   /* without its folder */
	uint64_t sequence, number; /* of the frame, where has_frame */
	bool has_frame;
	const char *text; /* the whole, for people */
};

struct sl_audit_options {
	const char *path;
	struct sl_counts *counts;	/* NULL: nothing to compare with */
	const struct sl_hash *expected; /* a root that was noted elsewhere; NULL: none */
	const char *expected_from;	/* where it was */
	void (*say)(void *arg, const struct sl_finding *finding);
	void *arg;
	char *reading; /* [reading_bytes]: gets the name of the file at hand */
	size_t reading_bytes;
	const struct sl_log_target *log; /* of what HDF5 says of damage; NULL: as all else */
};

struct sl_audit_result {
	char root[SL_HASH_TEXT];    /* of what was read; empty: not everything could be */
	char written[SL_HASH_TEXT]; /* as the master has it */
	char run_id[SL_AUDIT_RUN_ID_TEXT], state[16];
	char cut[SL_AUDIT_CUT]; /* which part of a run it is; empty: all of it */
	uint32_t files;
	uint64_t rows, images, image_bytes, module_frames, series_bytes;
	uint64_t source_crcs;	 /* checksums of the source that are in the file */
	uint64_t source_checked; /* of these, that were compared with stored pixels */
	bool ledger_closed;
	uint64_t ledger_sent;
	uint64_t findings;
};

int sl_audit_check(const struct sl_audit_options *options, struct sl_audit_result *result);

#endif
