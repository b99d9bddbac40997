/* check.c - the audit of a run, from the master down to each frame. */
#include "audit/check.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/outcome.h>

#include "audit/master.h"
#include "audit/part.h"
#include "base/crc.h"
#include "base/log.h"

enum { DOUBTS = 64 };

struct doubt { /* a row whose leaf is another than the stored one, and nothing tells which is right */
	uint64_t sequence, number;
};

struct audit {
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
	struct doubt doubt[DOUBTS];
	uint32_t doubts;
};

const char *sl_finding_name(enum sl_finding_kind kind)
{
	static const char *const names[SL_FINDINGS] = {
		[SL_FINDING_IMAGE] = "image",
		[SL_FINDING_SERIES] = "series",
		[SL_FINDING_ROW] = "row",
		[SL_FINDING_CHECKSUM] = "checksum",
		[SL_FINDING_SOURCE] = "source",
		[SL_FINDING_ROWS_MISSING] = "rows_missing",
		[SL_FINDING_FILE_MISSING] = "file_missing",
		[SL_FINDING_FILE_UNREADABLE] = "file_unreadable",
		[SL_FINDING_FILE_FOREIGN] = "file_foreign",
		[SL_FINDING_MASTER] = "master",
		[SL_FINDING_ROOT] = "root",
		[SL_FINDING_LEDGER] = "ledger",
		[SL_FINDING_COUNTS] = "counts",
	};

	return names[kind];
}

static void tell(struct audit *a, enum sl_finding_kind kind, const struct sl_leaf *leaf,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* leaf: NULL: it is not about a frame. */
static void tell(struct audit *a, enum sl_finding_kind kind, const struct sl_leaf *leaf,
		 const char *format, ...)
{
	char text[512];
	int at = leaf ? snprintf(text, sizeof(text),
				 "frame %" PRIu64 " (sequence %" PRIu64 "): ", leaf->number,
				 leaf->sequence)
		      : 0;
	struct sl_finding finding = {
		.kind = kind, .file = a->name, .has_frame = leaf != NULL, .text = text};
	va_list list;

	if (leaf) {
		finding.sequence = leaf->sequence;
		finding.number = leaf->number;
	}
	va_start(list, format);
	vsnprintf(text + at, sizeof(text) - (size_t)at, format, list);
	va_end(list);
	a->result->findings++;
	a->options->say(a->options->arg, &finding);
}

/* ---- a frame ---- */

/* The image's checksum as it is now; false: it cannot be read, which is told. */
static bool read_image(struct audit *a, const struct sl_part_row *row, const uint8_t **pixels,
		       uint32_t *crc)
{
	uint64_t index = (uint64_t)row->image_index - a->first_image;

	if (row->image_index < 0 || index >= a->part.image_count) {
		tell(a, SL_FINDING_IMAGE, &row->leaf,
		     "its image is to be number %" PRId64 ", which is not in %s", row->image_index,
		     a->name);
		return false;
	}
	if (sl_part_image(&a->part, index, pixels)) {
		tell(a, SL_FINDING_IMAGE, &row->leaf, "its image in %s cannot be unpacked",
		     a->name);
		return false;
	}
	*crc = sl_crc32c(0, *pixels, a->part.image_bytes);
	a->result->images++;
	a->result->image_bytes += a->part.image_bytes;
	return true;
}

/* Raw pixels, modules one below the other, are what the source sent. */
static void compare_source(struct audit *a, const struct sl_leaf *leaf, const uint8_t *pixels)
{
	uint64_t bytes = a->part.image_bytes / leaf->modules;

	if (strcmp(a->part.stored, "raw") != 0 || strcmp(a->part.arranged, "modules") != 0 ||
	    a->part.image_bytes % leaf->modules)
		return;
	for (uint32_t m = 0; m < leaf->modules; m++) {
		if (!(leaf->source_known >> m & 1) || leaf->missing >> m & 1)
			continue;
		a->result->source_checked++;
		if (sl_crc32c(0, pixels + m * bytes, bytes) != leaf->source_crc[m])
			tell(a, SL_FINDING_SOURCE, leaf,
			     "pixels of module %u in %s do not match the checksum of their source",
			     m, a->name);
	}
}

/* What the frame has in every other series, as it is now; false: not all can be read. */
static bool read_series(struct audit *a, const struct sl_leaf *leaf, uint32_t *crc)
{
	bool all = true;

	for (uint32_t s = 0; s < leaf->series; s++) {
		struct sl_part_series *series = &a->part.one[s];
		bool was_readable = !series->error;
		int r = sl_part_take(&a->part, s, leaf->series_rows[s], &crc[s]);

		a->result->series_bytes += r ? 0 : leaf->series_rows[s] * series->row_bytes;
		all &= !r;
		if (r && was_readable) {
			tell(a, SL_FINDING_SERIES, leaf, "%s of %s %s", series->path, a->name,
			     r == -ERANGE ? "has too few rows" : "cannot be read");
			series->error = r;
		}
	}
	return all;
}

/* Which of the checksums is not that of the row; false: none. */
static bool tell_differences(struct audit *a, const struct sl_leaf *leaf, const struct sl_leaf *now,
			     bool data_right)
{
	enum sl_finding_kind checksum = SL_FINDING_CHECKSUM;
	const char *damaged =
		"the stored checksum of its %s%s in %s is damaged; the data are right";
	bool any = false;

	if (leaf->has_image && leaf->image_crc != now->image_crc) {
		any = true;
		if (data_right)
			tell(a, checksum, leaf, damaged, "image", "", a->name);
		else
			tell(a, SL_FINDING_IMAGE, leaf,
			     "its image in %s does not match its checksum", a->name);
	}
	for (uint32_t s = 0; s < leaf->series; s++) {
		if (leaf->series_crc[s] == now->series_crc[s])
			continue;
		any = true;
		if (data_right)
			tell(a, checksum, leaf, damaged, "rows of ", a->part.one[s].path, a->name);
		else
			tell(a, SL_FINDING_SERIES, leaf,
			     "its rows of %s in %s do not match their checksum",
			     a->part.one[s].path, a->name);
	}
	return any;
}

static void judge(struct audit *a, const struct sl_part_row *row, const struct sl_leaf *now,
		  const struct sl_hash *hash)
{
	bool right = sl_hash_same(hash, &row->stored), told;
	struct sl_hash columns;

	told = tell_differences(a, &row->leaf, now, right);
	if (right)
		return;
	columns = sl_leaf_hash(&row->leaf);
	if (told && sl_hash_same(&columns, &row->stored))
		return; /* it explains all */
	if (a->stored_right)
		tell(a, SL_FINDING_ROW, &row->leaf,
		     "the row about it in %s (/entry/sluice/frames or audit) does not match its "
		     "leaf",
		     a->name);
	else if (a->doubts < DOUBTS)
		a->doubt[a->doubts++] = (struct doubt){row->leaf.sequence, row->leaf.number};
}

static void check_sequence(struct audit *a, const struct sl_leaf *leaf)
{
	if (a->has_sequence && leaf->sequence > a->sequence + 1)
		tell(a, SL_FINDING_ROWS_MISSING, NULL,
		     "there is no row about %" PRIu64 " frame%s before frame %" PRIu64
		     ": sequence%s %" PRIu64 " to %" PRIu64,
		     leaf->sequence - a->sequence - 1, leaf->sequence == a->sequence + 2 ? "" : "s",
		     leaf->number, leaf->sequence == a->sequence + 2 ? "" : "s", a->sequence + 1,
		     leaf->sequence - 1);
	else if (a->has_sequence && leaf->sequence <= a->sequence)
		tell(a, SL_FINDING_ROW, leaf, "its sequence does not follow %" PRIu64, a->sequence);
	a->sequence = leaf->sequence;
	a->has_sequence = true;
}

static void say_counts(void *arg, uint32_t module, uint64_t sequence, const char *text)
{
	struct audit *a = arg;

	tell(a, SL_FINDING_COUNTS, NULL, "module %u, sequence %" PRIu64 ": %s", module, sequence,
	     text);
}

static void check_row(struct audit *a, const struct sl_part_row *row)
{
	uint32_t crc[SL_LEAF_SERIES];
	struct sl_leaf now = row->leaf;
	const uint8_t *pixels = NULL;
	struct sl_hash hash;
	bool all = true;

	check_sequence(a, &row->leaf);
	now.series_crc = crc;
	now.image_crc = 0;
	if (now.has_image) {
		all = read_image(a, row, &pixels, &now.image_crc);
		if (all)
			compare_source(a, &row->leaf, pixels);
		else
			now.image_crc = row->leaf.image_crc; /* it is told already */
	}
	all &= read_series(a, &row->leaf, crc);
	for (uint32_t s = 0; s < now.series; s++)
		if (a->part.one[s].error)
			crc[s] = row->leaf.series_crc[s];
	hash = sl_leaf_hash(&now);
	judge(a, row, &now, &hash);
	a->all_read &= all;
	sl_tree_add(&a->read, &hash);
	sl_tree_add(&a->part_read, &hash);
	for (uint32_t m = 0; m < now.modules; m++)
		a->module_rows[m] += now.outcome[m] != SL_NO_OUTCOME;
	a->result->source_crcs += (uint64_t)__builtin_popcountll(now.source_known);
	a->result->rows++;
	if (a->options->counts)
		sl_counts_row(a->options->counts, &row->leaf, say_counts, a);
}

/* ---- a data file ---- */

/* Rows whose leaves are not those that are stored, where the stored ones are not what the master
 * knows. */
static void settle_doubts(struct audit *a, const struct sl_master_file *file)
{
	struct sl_hash now = sl_tree_root(&a->part_read);
	bool data_right = a->part.rows == file->rows && sl_hash_same(&now, &file->root);

	for (uint32_t i = 0; i < a->doubts; i++) {
		const struct sl_leaf leaf = {.sequence = a->doubt[i].sequence,
					     .number = a->doubt[i].number};

		if (data_right)
			tell(a, SL_FINDING_CHECKSUM, &leaf,
			     "its stored leaf in %s is damaged; the data are right", a->name);
		else
			tell(a, SL_FINDING_ROW, &leaf,
			     "the row about it in %s and its leaf do not "
			     "match each other",
			     a->name);
	}
	a->doubts = 0;
}

static void tell_rows(struct audit *a, const struct sl_master_file *file)
{
	uint64_t rows = a->part.rows;

	if (rows < file->rows)
		tell(a, SL_FINDING_ROWS_MISSING, NULL,
		     "%s: %" PRIu64 " of its %" PRIu64 " rows are missing: those from row %" PRIu64
		     " on, or such before them",
		     a->name, file->rows - rows, file->rows, rows);
	else if (rows > file->rows)
		tell(a, SL_FINDING_ROWS_MISSING, NULL,
		     "%s: has %" PRIu64 " rows, %" PRIu64 " were written", a->name, rows,
		     file->rows);
}

/* Data that belong to no row. */
static void check_left_over(struct audit *a, uint64_t images)
{
	if (a->part.images && a->part.image_count != images)
		tell(a, SL_FINDING_IMAGE, NULL,
		     "%s: has %" PRIu64 " images, its rows speak of %" PRIu64, a->name,
		     a->part.image_count, images);
	for (uint32_t s = 0; s < a->part.series; s++)
		if (!a->part.one[s].error && a->part.one[s].next < a->part.one[s].rows)
			tell(a, SL_FINDING_SERIES, NULL,
			     "%s: %s has %" PRIu64 " rows that belong to no frame", a->name,
			     a->part.one[s].path, a->part.one[s].rows - a->part.one[s].next);
}

static void read_rows(struct audit *a, const struct sl_master_file *file)
{
	struct sl_part_row row;
	uint64_t images = 0;

	a->part_read = (struct sl_tree){0};
	a->first_image = file->first_image;
	for (uint64_t i = 0; i < a->part.rows; i++) {
		if (sl_part_row(&a->part, i, &row)) {
			tell(a, SL_FINDING_FILE_UNREADABLE, NULL,
			     "%s: its rows from %" PRIu64 " on cannot be read", a->name, i);
			a->all_read = false;
			return;
		}
		images += row.leaf.has_image;
		check_row(a, &row);
	}
	check_left_over(a, images);
	settle_doubts(a, file);
}

/* Its leaves are those of another data file of this run: its number; 0: of none. */
static uint32_t place_of(const struct sl_master *master, const struct sl_hash *root)
{
	for (uint32_t i = 0; i < master->files; i++)
		if (sl_hash_same(&master->file[i].root, root))
			return i + 1;
	return 0;
}

/* Whether it is worth reading, which ends in a finding where not. */
static bool belongs(struct audit *a, uint32_t number, const struct sl_hash *root)
{
	const struct sl_master_file *file = &a->master.file[number];
	uint32_t place;

	if (strcmp(a->part.run_id, a->master.run_id) != 0) {
		a->foreign++;
		tell(a, SL_FINDING_FILE_FOREIGN, NULL,
		     "%s is not of this run: its run is %s, the run of %s is %s", a->name,
		     a->part.run_id, a->master.name, a->master.run_id);
		return false;
	}
	a->stored_right = a->part.rows == file->rows && sl_hash_same(root, &file->root);
	place = a->stored_right ? 0 : place_of(&a->master, root);
	if (place && a->part.rows == a->master.file[place - 1].rows) {
		tell(a, SL_FINDING_FILE_FOREIGN, NULL,
		     "%s is in the wrong place: its rows are those of data file %u of this run",
		     a->name, place);
		return false;
	}
	tell_rows(a, file);
	return true;
}

static void tell_unread(struct audit *a, uint32_t number, int r, const char *why)
{
	const struct sl_master_file *file = &a->master.file[number];
	char rows[128] = "it had no rows";

	a->all_read = false;
	a->has_sequence = false; /* the gap has been told */
	if (file->rows)
		snprintf(rows, sizeof(rows),
			 "%" PRIu64 " rows from sequence %" PRIu64 " to %" PRIu64, file->rows,
			 file->first_sequence, file->first_sequence + file->rows - 1);
	if (r == -ENOENT)
		tell(a, SL_FINDING_FILE_MISSING, NULL, "%s is missing: %s", a->name, rows);
	else
		tell(a, SL_FINDING_FILE_UNREADABLE, NULL, "%s cannot be read (%s): %s", a->name,
		     why, rows);
}

static void check_file(struct audit *a, uint32_t number)
{
	const struct sl_master_file *file = &a->master.file[number];
	char path[PATH_MAX], why[256] = "";
	struct sl_hash root;
	int r;

	a->name = file->name;
	snprintf(path, sizeof(path), "%s%s", a->master.folder, file->name);
	if (a->options->reading)
		snprintf(a->options->reading, a->options->reading_bytes, "%s", path);
	r = access(path, F_OK) ? -ENOENT : sl_part_open(&a->part, path, why, sizeof(why));
	if (r) {
		tell_unread(a, number, r, why);
		return;
	}
	a->modules = a->part.modules;
	r = sl_part_stored_root(&a->part, &a->stored, &root);
	if (r)
		tell_unread(a, number, r, "its leaves");
	else if (belongs(a, number, &root))
		read_rows(a, file);
	else
		a->all_read = a->has_sequence = false;
	sl_part_close(&a->part);
}

/* ---- the whole ---- */

static void check_roots(struct audit *a)
{
	struct sl_hash read = sl_tree_root(&a->read), written;
	const char *of = a->options->expected_from;
	bool known = !sl_hash_read(a->master.root, &written);
	char text[SL_HASH_TEXT];

	a->name = a->master.name;
	if (!known)
		tell(a, SL_FINDING_ROOT, NULL, "%s: its root is no root: '%.64s'", a->name,
		     a->master.root);
	if (a->all_read)
		sl_hash_text(&read, a->result->root);
	/* Where a frame was named it is clear why the root is another. */
	if (a->all_read && known && !a->result->findings && !sl_hash_same(&read, &written))
		tell(a, SL_FINDING_ROOT, NULL,
		     "%s: the root of what was read is %s, it was written as %s", a->name,
		     a->result->root, a->master.root);
	if (a->all_read && !a->result->findings && a->read.leaves != a->master.rows)
		tell(a, SL_FINDING_ROOT, NULL,
		     "%s: there are %" PRIu64 " rows, %" PRIu64 " were written", a->name,
		     a->read.leaves, a->master.rows);
	if (a->options->expected && known && !sl_hash_same(a->options->expected, &written))
		tell(a, SL_FINDING_ROOT, NULL,
		     "%s: %s says that the root of this run is %s, the "
		     "file has %s",
		     a->name, of, sl_hash_text(a->options->expected, text), a->master.root);
}

/* A recovered run, and one whose disk was full, have fewer rows than the ledger may know. */
static void check_ledger(struct audit *a)
{
	const struct sl_master *m = &a->master;
	bool unnamed = !a->result->findings; /* else a frame that was named is why */

	a->result->ledger_closed = m->ledger_closed;
	for (uint32_t i = 0; i < m->modules; i++) {
		a->result->ledger_sent += m->sent[i];
		a->result->module_frames += a->module_rows[i];
		if (a->all_read && unnamed && !m->refused && m->settled[i] != a->module_rows[i])
			tell(a, SL_FINDING_LEDGER, NULL,
			     "%s: module %u has %" PRIu64
			     " rows with an outcome, the ledger counts "
			     "%" PRIu64,
			     m->name, i, a->module_rows[i], m->settled[i]);
	}
}

/* Programs read the run through the master: it must show them the same rows. */
static void check_view(struct audit *a)
{
	struct sl_hash shown, stored = sl_tree_root(&a->stored);

	if (!a->all_read || !a->master.rolled)
		return;
	if (sl_master_shown(&a->master, &shown) || !sl_hash_same(&shown, &stored))
		tell(a, SL_FINDING_MASTER, NULL,
		     "%s does not show the rows of its data files, or others, or in another order",
		     a->master.name);
}

int sl_audit_check(const struct sl_audit_options *options, struct sl_audit_result *result)
{
	struct audit *a = calloc(1, sizeof(*a));
	const struct sl_log_target *before;
	int r;

	*result = (struct sl_audit_result){.files = 0};
	if (!a)
		return -ENOMEM;
	*a = (struct audit){.options = options, .result = result, .all_read = true};
	if (options->reading)
		snprintf(options->reading, options->reading_bytes, "%s", options->path);
	r = sl_master_open(&a->master, options->path);
	if (r) {
		free(a);
		return r;
	}
	snprintf(result->written, sizeof(result->written), "%s", a->master.root);
	snprintf(result->run_id, sizeof(result->run_id), "%s", a->master.run_id);
	snprintf(result->state, sizeof(result->state), "%s", a->master.state);
	result->files = a->master.files;
	before = sl_log_target();
	if (options->log)
		sl_log_set_target(options->log);
	for (uint32_t i = 0; i < a->master.files; i++)
		check_file(a, i);
	a->name = a->master.name;
	if (a->foreign && a->foreign == a->master.files && a->foreign > 1)
		tell(a, SL_FINDING_MASTER, NULL,
		     "%s is not of this run: all its data files are of another one", a->name);
	check_roots(a);
	check_ledger(a);
	check_view(a);
	sl_log_set_target(before);
	if (options->counts)
		sl_counts_end(options->counts, a->modules, say_counts, a);
	sl_master_close(&a->master);
	free(a);
	return 0;
}
