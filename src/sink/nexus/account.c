/* account.c - the table of all frames and the ledger, in an HDF5 file. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sink/nexus/account.h"

#define GROUP  "/entry/sluice"
#define FRAMES SL_ACCOUNT_FRAMES
#define LEDGER GROUP "/ledger"

enum { NAMES_MOST = 64, COUNTS_MOST = 64 };
_Static_assert((int)SL_OUTCOMES <= COUNTS_MOST && (int)SL_CAUSES <= COUNTS_MOST, "counts fit");
_Static_assert((int)COUNTS_MOST <= NAMES_MOST && (int)SL_REASONS <= NAMES_MOST, "names fit");

static const struct {
	const char *path;
	enum sl_h5_type type;
	bool per_module;
	const char *doc;
} columns[SL_ACCOUNT_COLUMNS] = {
	[SL_ACCOUNT_SEQUENCE] = {FRAMES "/sequence", SL_H5_U64, false,
				 "counts this receiver's frames"},
	[SL_ACCOUNT_FRAME_NUMBER] = {FRAMES "/frame_number", SL_H5_U64, false,
				     "the detector's own"},
	[SL_ACCOUNT_TIMESTAMP] = {FRAMES "/timestamp", SL_H5_U64, false,
				  "the detector's clock in ns; 0 when nothing arrived"},
	[SL_ACCOUNT_KEEP] = {FRAMES "/keep", SL_H5_U8, false, "1: goes on, and not rejected"},
	[SL_ACCOUNT_SCORE] = {FRAMES "/score", SL_H5_F32, false, "by the stage that decided"},
	[SL_ACCOUNT_REASON] = {FRAMES "/reason", SL_H5_U16, false, "index into reason_names"},
	[SL_ACCOUNT_FLAGS] = {FRAMES "/flags", SL_H5_U32, false,
			      "1: dark, 2: complete, 4: kept with missing modules"},
	[SL_ACCOUNT_MISSING] = {FRAMES "/missing", SL_H5_U64, false,
				"a bit per module: it is not whole in this frame"},
	[SL_ACCOUNT_IMAGE_INDEX] = {FRAMES "/image_index", SL_H5_I64, false,
				    "index into /entry/data/data, or -1"},
	[SL_ACCOUNT_RESULT_INDEX] = {FRAMES "/result_index", SL_H5_I64, false,
				     "row of /entry/results, or -1"},
	[SL_ACCOUNT_OUTCOME] = {FRAMES "/outcome", SL_H5_U8, true, "index into outcome_names"},
	[SL_ACCOUNT_CAUSE] = {FRAMES "/cause", SL_H5_U8, true, "index into cause_names"},
};

static const char *outcome_name(unsigned i)
{
	return sl_outcome_name(i);
}

static const char *cause_name(unsigned i)
{
	return sl_cause_name(i);
}

static const char *reason_name(unsigned i)
{
	return sl_reason_name(i);
}

static void write_names(struct sl_h5 *file, const char *path, const char *(*name)(unsigned),
			unsigned count)
{
	const char *names[NAMES_MOST];

	for (unsigned i = 0; i < count; i++)
		names[i] = name(i);
	sl_h5_write_texts(file, path, names, count);
}

static void open_columns(struct sl_account *account)
{
	struct sl_h5 *file = account->file;

	sl_h5_group(file, FRAMES, "NXcollection");
	for (int i = 0; i < SL_ACCOUNT_COLUMNS; i++) {
		struct sl_h5_shape row = {
			columns[i].type, columns[i].per_module ? 1 : 0, {account->modules}};

		sl_h5_series_open(file, columns[i].path, &row, SL_ACCOUNT_ROWS,
				  &account->column[i]);
		sl_h5_attribute_text(file, columns[i].path, "long_name", columns[i].doc);
	}
	write_names(file, FRAMES "/outcome_names", outcome_name, SL_OUTCOMES);
	write_names(file, FRAMES "/cause_names", cause_name, SL_CAUSES);
	write_names(file, FRAMES "/reason_names", reason_name, SL_REASONS);
}

/* All memory that the end needs, too: it must not fail then. */
static int allocate(struct sl_account *account)
{
	account->outcome = calloc(account->modules, 2);
	account->counts = calloc(account->modules, COUNTS_MOST * sizeof(*account->counts));
	account->end = calloc(1, sizeof(*account->end));
	return account->outcome && account->counts && account->end ? 0 : -ENOMEM;
}

int sl_account_open(struct sl_account *account, struct sl_h5 *file, const struct sl_env *env)
{
	int r;

	account->file = file;
	account->modules = sl_env_modules(env);
	r = allocate(account);
	if (r)
		return r;
	account->cause = account->outcome + account->modules;
	sl_h5_group(file, GROUP, "NXcollection");
	sl_h5_write_text(file, GROUP "/link", env->link ? env->link : "");
	sl_h5_write_text(file, GROUP "/guard", env->guard ? env->guard : "");
	sl_h5_write_text(file, GROUP "/proof", env->proof ? env->proof : "");
	sl_h5_write_text(file, GROUP "/experiment", env->experiment ? env->experiment : "");
	open_columns(account);
	/* The ledger at the end, disk full or not. */
	sl_h5_keep(file, (uint64_t)account->modules * (1 + SL_OUTCOMES + SL_CAUSES) * 8);
	return sl_h5_status(file);
}

int sl_account_add(struct sl_account *account, const struct sl_frame *frame, int64_t image,
		   int64_t result)
{
	struct sl_verdict verdict = sl_row_verdict(frame);
	uint8_t keep = sl_account_kept(frame) || sl_row_left_out(frame);
	const void *value[SL_ACCOUNT_COLUMNS] = {
		[SL_ACCOUNT_SEQUENCE] = &frame->sequence,
		[SL_ACCOUNT_FRAME_NUMBER] = &frame->number,
		[SL_ACCOUNT_TIMESTAMP] = &frame->timestamp,
		[SL_ACCOUNT_KEEP] = &keep,
		[SL_ACCOUNT_SCORE] = &verdict.score,
		[SL_ACCOUNT_REASON] = &verdict.reason,
		[SL_ACCOUNT_FLAGS] = &frame->flags,
		[SL_ACCOUNT_MISSING] = &frame->missing,
		[SL_ACCOUNT_IMAGE_INDEX] = &image,
		[SL_ACCOUNT_RESULT_INDEX] = &result,
		[SL_ACCOUNT_OUTCOME] = account->outcome,
		[SL_ACCOUNT_CAUSE] = account->cause,
	};

	sl_row_outcomes(frame, account->modules, account->outcome, account->cause);
	for (int i = 0; i < SL_ACCOUNT_COLUMNS; i++)
		sl_h5_series_append(account->column[i], value[i]);
	return sl_h5_status(account->file);
}

/* The ledger as it will be when this file is safe. */
static void project_ledger(struct sl_status *status)
{
	for (uint32_t m = 0; m < status->modules; m++) {
		struct sl_status_column *c = &status->column[m];

		c->outcome[SL_STORED] += c->pending - c->samples;
		c->outcome[SL_PRESCALED] += c->samples;
		c->cause[SL_CAUSE_NONE] += c->pending;
		c->pending = c->samples = 0;
	}
}

/* One table of the ledger: [modules, count], or [modules] for count 0. */
static void write_counts(struct sl_account *account, const char *path, uint32_t count,
			 size_t offset)
{
	struct sl_h5_shape shape = {SL_H5_U64, count ? 2 : 1, {account->modules, count}};
	uint64_t *table = account->counts;

	for (uint32_t m = 0; m < account->modules; m++) {
		const uint8_t *column = (const uint8_t *)&account->end->column[m];
		const uint64_t *counter = (const void *)(column + offset);

		for (uint32_t i = 0; i < (count ? count : 1); i++)
			*table++ = counter[i];
	}
	sl_h5_write(account->file, path, &shape, account->counts);
}

static void write_ledger(struct sl_account *account, uint8_t closed)
{
	struct sl_h5 *file = account->file;

	sl_h5_group(file, LEDGER, "NXcollection");
	sl_h5_write(file, LEDGER "/closed", &(struct sl_h5_shape){.type = SL_H5_U8}, &closed);
	sl_h5_write_u64(file, LEDGER "/source_died", account->end->sources_gone);
	write_counts(account, LEDGER "/sent", 0, offsetof(struct sl_status_column, sent));
	write_counts(account, LEDGER "/outcomes", SL_OUTCOMES,
		     offsetof(struct sl_status_column, outcome));
	write_counts(account, LEDGER "/causes", SL_CAUSES,
		     offsetof(struct sl_status_column, cause));
	write_names(file, LEDGER "/outcome_names", outcome_name, SL_OUTCOMES);
	write_names(file, LEDGER "/cause_names", cause_name, SL_CAUSES);
}

int sl_account_end(struct sl_account *account, const struct sl_status *status, uint64_t refused)
{
	sl_h5_write_u64(account->file, GROUP "/frames_refused", refused);
	*account->end = *status;
	project_ledger(account->end);
	write_ledger(account, sl_status_closed(account->end));
	return sl_h5_status(account->file);
}

void sl_account_close(struct sl_account *account)
{
	free(account->end);
	free(account->counts);
	account->end = NULL;
	free(account->outcome);
	account->counts = NULL;
	account->outcome = account->cause = NULL;
}

/* Adds one column of the rows to the ledger's tables. */
static int sum_rows(struct sl_h5 *file, struct sl_status *status, uint64_t rows, uint8_t *outcome,
		    uint8_t *cause)
{
	for (uint64_t row = 0; row < rows; row++) {
		int r = sl_h5_read_row(file, FRAMES "/outcome", row, SL_H5_U8, outcome,
				       status->modules);

		if (!r)
			r = sl_h5_read_row(file, FRAMES "/cause", row, SL_H5_U8, cause,
					   status->modules);
		if (r)
			return r;
		for (uint32_t m = 0; m < status->modules; m++) {
			if (outcome[m] >= SL_OUTCOMES || cause[m] >= SL_CAUSES)
				return -EBADMSG;
			if (outcome[m] == SL_NO_OUTCOME)
				continue;
			status->column[m].outcome[outcome[m]]++;
			status->column[m].cause[cause[m]]++;
			status->column[m].settled++;
		}
	}
	return 0;
}

int sl_account_recover(struct sl_h5 *file)
{
	struct sl_account account = {.file = file};
	uint8_t outcome[SL_STATUS_MODULES], cause[SL_STATUS_MODULES];
	struct sl_h5_shape shape;
	int r = sl_h5_describe(file, FRAMES "/outcome", &shape);

	if (r || shape.rank != 2 || !shape.dim[1] || shape.dim[1] > SL_STATUS_MODULES)
		return r ? r : -EBADMSG;
	account.modules = (uint32_t)shape.dim[1];
	r = allocate(&account);
	if (!r) {
		account.end->modules = account.modules;
		r = sum_rows(file, account.end, shape.dim[0], outcome, cause);
	}
	if (!r) {
		for (uint32_t m = 0; m < account.modules; m++)
			account.end->column[m].sent = account.end->column[m].settled;
		account.end->sources_gone = account.modules;
		sl_h5_write_u64(file, GROUP "/frames_refused", 0);
		write_ledger(&account, false);
		r = sl_h5_status(file);
	}
	sl_account_close(&account);
	return r;
}
