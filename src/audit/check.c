/* check.c - the audit of a run, from the master down to each frame. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/private.h"
#include "base/log.h"

/* ---- a data file ---- */

/* Rows whose leaves are not those that are stored, where the stored ones are not what the master
 * knows. */
static void settle_doubts(struct sl_audit_state *a, const struct sl_master_file *file)
{
	struct sl_hash now = sl_tree_root(&a->part_read);
	bool data_right = a->part.rows == file->rows && sl_hash_same(&now, &file->root);

	for (uint32_t i = 0; i < a->doubts; i++) {
		const struct sl_leaf leaf = {.sequence = a->doubt[i].sequence,
					     .number = a->doubt[i].number};

		if (data_right)
			sl_audit_tell(a, SL_FINDING_CHECKSUM, &leaf,
				      "its stored leaf in %s is damaged; the data are right",
				      a->name);
		else
			sl_audit_tell(a, SL_FINDING_ROW, &leaf,
				      "the row about it in %s and its leaf do not "
				      "match each other",
				      a->name);
	}
	a->doubts = 0;
}

static void tell_rows(struct sl_audit_state *a, const struct sl_master_file *file)
{
	uint64_t rows = a->part.rows;

	if (rows < file->rows)
		sl_audit_tell(a, SL_FINDING_ROWS_MISSING, NULL,
			      "%s: %" PRIu64 " of its %" PRIu64
			      " rows are missing: those from row %" PRIu64
			      " on, or such before them",
			      a->name, file->rows - rows, file->rows, rows);
	else if (rows > file->rows)
		sl_audit_tell(a, SL_FINDING_ROWS_MISSING, NULL,
			      "%s: has %" PRIu64 " rows, %" PRIu64 " were written", a->name, rows,
			      file->rows);
}

/* Data that belong to no row. */
static void check_left_over(struct sl_audit_state *a, uint64_t images)
{
	if (a->part.has_images && a->part.image_count != images)
		sl_audit_tell(a, SL_FINDING_IMAGE, NULL,
			      "%s: has %" PRIu64 " images, its rows speak of %" PRIu64, a->name,
			      a->part.image_count, images);
	for (uint32_t s = 0; s < a->part.series; s++)
		if (!a->part.one[s].error && a->part.one[s].next < a->part.one[s].rows)
			sl_audit_tell(a, SL_FINDING_SERIES, NULL,
				      "%s: %s has %" PRIu64 " rows that belong to no frame",
				      a->name, a->part.one[s].path,
				      a->part.one[s].rows - a->part.one[s].next);
}

static void read_rows(struct sl_audit_state *a, const struct sl_master_file *file)
{
	uint64_t images = 0, before = a->result->findings;
	struct sl_part_row row;

	a->part_read = (struct sl_tree){0};
	a->first_image = file->first_image;
	for (uint64_t i = 0; i < a->part.rows; i++) {
		if (sl_part_row(&a->part, i, &row)) {
			sl_audit_tell(a, SL_FINDING_FILE_UNREADABLE, NULL,
				      "%s: its rows from %" PRIu64 " on cannot be read", a->name,
				      i);
			a->all_read = false;
			settle_doubts(a, file);
			return;
		}
		images += row.leaf.has_image;
		sl_audit_row(a, &row);
	}
	check_left_over(a, images);
	settle_doubts(a, file);
	if (!a->stored_right && a->result->findings == before)
		sl_audit_tell(a, SL_FINDING_ROOT, NULL,
			      "%s: its rows are others than those that were written: their root "
			      "is not the one that %s has of them",
			      a->name, a->master.name);
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
static bool belongs(struct sl_audit_state *a, uint32_t number, const struct sl_hash *root)
{
	const struct sl_master_file *file = &a->master.file[number];
	uint32_t place;

	if (strcmp(a->part.run_id, a->master.run_id) != 0) {
		a->foreign++;
		sl_audit_tell(a, SL_FINDING_FILE_FOREIGN, NULL,
			      "%s is not of this run: its run is %s, the run of %s is %s", a->name,
			      a->part.run_id, a->master.name, a->master.run_id);
		return false;
	}
	a->stored_right = a->part.rows == file->rows && sl_hash_same(root, &file->root);
	place = a->stored_right ? 0 : place_of(&a->master, root);
	if (place && a->part.rows == a->master.file[place - 1].rows) {
		sl_audit_tell(
			a, SL_FINDING_FILE_FOREIGN, NULL,
			"%s is in the wrong place: its rows are those of data file %u of this run",
			a->name, place);
		return false;
	}
	tell_rows(a, file);
	return true;
}

static void tell_unread(struct sl_audit_state *a, uint32_t number, int r, const char *why)
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
		sl_audit_tell(a, SL_FINDING_FILE_MISSING, NULL, "%s is missing: %s", a->name, rows);
	else
		sl_audit_tell(a, SL_FINDING_FILE_UNREADABLE, NULL, "%s cannot be read (%s): %s",
			      a->name, why, rows);
}

static void check_file(struct sl_audit_state *a, uint32_t number)
{
	const struct sl_master_file *file = &a->master.file[number];
	char path[PATH_MAX + NAME_MAX + 1], why[256] = "";
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

static void check_roots(struct sl_audit_state *a)
{
	struct sl_hash read = sl_tree_root(&a->read), written;
	const char *of = a->options->expected_from;
	bool known = !sl_hash_read(a->master.root, &written);
	char text[SL_HASH_TEXT];

	a->name = a->master.name;
	if (!known)
		sl_audit_tell(a, SL_FINDING_ROOT, NULL, "%s: its root is no root: '%.64s'", a->name,
			      a->master.root);
	if (a->all_read)
		sl_hash_text(&read, a->result->root);
	/* Where a frame was named it is clear why the root is another. */
	if (a->all_read && known && !a->result->findings && !sl_hash_same(&read, &written))
		sl_audit_tell(a, SL_FINDING_ROOT, NULL,
			      "%s: the root of what was read is %s, it was written as %s", a->name,
			      a->result->root, a->master.root);
	if (a->all_read && !a->result->findings && a->read.leaves != a->master.rows)
		sl_audit_tell(a, SL_FINDING_ROOT, NULL,
			      "%s: there are %" PRIu64 " rows, %" PRIu64 " were written", a->name,
			      a->read.leaves, a->master.rows);
	if (a->options->expected && known && !sl_hash_same(a->options->expected, &written))
		sl_audit_tell(a, SL_FINDING_ROOT, NULL,
			      "%s: %s says that the root of this run is %s, the "
			      "file has %s",
			      a->name, of, sl_hash_text(a->options->expected, text),
			      a->master.root);
}

/* A recovered run, and one whose disk was full, have fewer rows than the ledger may know. */
static void check_ledger(struct sl_audit_state *a)
{
	const struct sl_master *m = &a->master;
	bool unnamed = !a->result->findings; /* else a frame that was named is why */

	a->result->ledger_closed = m->ledger_closed;
	for (uint32_t i = 0; i < m->modules; i++) {
		a->result->ledger_sent += m->sent[i];
		a->result->module_frames += a->module_rows[i];
		if (a->all_read && unnamed && !m->refused && m->settled[i] != a->module_rows[i])
			sl_audit_tell(a, SL_FINDING_LEDGER, NULL,
				      "%s: module %u has %" PRIu64
				      " rows with an outcome, the ledger counts "
				      "%" PRIu64,
				      m->name, i, a->module_rows[i], m->settled[i]);
	}
}

/* Programs read the run through the master: it must show them the same rows. */
static void check_view(struct sl_audit_state *a)
{
	struct sl_hash shown, stored = sl_tree_root(&a->stored);

	if (!a->all_read || !a->master.rolled)
		return;
	if (sl_master_shown(&a->master, &shown) || !sl_hash_same(&shown, &stored))
		sl_audit_tell(a, SL_FINDING_MASTER, NULL,
			      "%s does not show the rows of its data files, or others, or in "
			      "another order",
			      a->master.name);
}

int sl_audit_check(const struct sl_audit_options *options, struct sl_audit_result *result)
{
	struct sl_audit_state *a = calloc(1, sizeof(*a));
	const struct sl_log_target *before;
	int r;

	*result = (struct sl_audit_result){.files = 0};
	if (!a)
		return -ENOMEM;
	*a = (struct sl_audit_state){.options = options, .result = result, .all_read = true};
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
	snprintf(result->cut, sizeof(result->cut), "%s", a->master.cut);
	result->files = a->master.files;
	before = sl_log_target();
	if (options->log)
		sl_log_set_target(options->log);
	for (uint32_t i = 0; i < a->master.files; i++)
		check_file(a, i);
	a->name = a->master.name;
	if (a->foreign && a->foreign == a->master.files && a->foreign > 1)
		sl_audit_tell(a, SL_FINDING_MASTER, NULL,
			      "%s is not of this run: all its data files are of another one",
			      a->name);
	check_roots(a);
	check_ledger(a);
	check_view(a);
	sl_log_set_target(before);
	if (options->counts)
		sl_counts_end(options->counts, a->modules, sl_audit_say_counts, a);
	sl_master_close(&a->master);
	free(a);
	return 0;
}
