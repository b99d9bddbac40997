/* account.h - /entry/sluice: what became of every frame, and the ledger.
 *
 * Model:     one row per sequence that the sink was given, kept or not, whole or not; column by
 * column, as datasets of the same length. At the end, the ledger as it will be once this file is
 * safe: what is pending is counted as stored.
 *
 * Threads:   those of the file.
 *
 * Errors:    stick to the file (hdf5/file.h).
 *
 * Cost:      some copies per frame, a write every few hundred; memory does not grow with the
 *            run. */
#ifndef SL_SINK_NEXUS_ACCOUNT_H
#define SL_SINK_NEXUS_ACCOUNT_H

#include <stdbool.h>

#include <sluice/env.h>
#include <sluice/frame.h>
#include <sluice/outcome.h>
#include <sluice/status.h>

#include "hdf5/file.h"
#include "sink/row.h"

enum sl_account_column {
	SL_ACCOUNT_SEQUENCE,
	SL_ACCOUNT_FRAME_NUMBER,
	SL_ACCOUNT_TIMESTAMP,
	SL_ACCOUNT_KEEP,
	SL_ACCOUNT_SCORE,
	SL_ACCOUNT_REASON,
	SL_ACCOUNT_FLAGS,
	SL_ACCOUNT_MISSING,
	SL_ACCOUNT_IMAGE_INDEX,
	SL_ACCOUNT_RESULT_INDEX,
	SL_ACCOUNT_OUTCOME,
	SL_ACCOUNT_CAUSE,
	SL_ACCOUNT_COLUMNS,
};

struct sl_account {
	struct sl_h5 *file;
	struct sl_h5_series *column[SL_ACCOUNT_COLUMNS];
	uint32_t modules;
	uint8_t *outcome, *cause; /* [modules]: of the frame at hand */
	struct sl_status *end;	  /* its ledger as it will be */
	uint64_t *counts;	  /* one table of it, on its way to the file */
};

/* Rows that are collected before they are written. */
enum { SL_ACCOUNT_ROWS = 512 };

static inline bool sl_account_kept(const struct sl_frame *frame)
{
	return sl_row_kept(frame);
}

/* account is zeroed memory; close it even when this failed. */
int sl_account_open(struct sl_account *account, struct sl_h5 *file, const struct sl_env *env);

/* image: its index in /entry/data/data, or -1; result: its row in /entry/results, or -1. */
int sl_account_add(struct sl_account *account, const struct sl_frame *frame, int64_t image,
		   int64_t result);

/* refused: frames that came after the sink could take no more. */
int sl_account_end(struct sl_account *account, const struct sl_status *status, uint64_t refused);
void sl_account_close(struct sl_account *account);

#define SL_ACCOUNT_FRAMES "/entry/sluice/frames"

/* The ledger of a run that was killed, out of the rows that are there: what was sent after them is
 * not known, so that it does not close. */
int sl_account_recover(struct sl_h5 *file);

#endif
