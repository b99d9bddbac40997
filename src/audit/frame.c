/* frame.c - one frame of an audit: its row, image and results, beside its leaf. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sluice/outcome.h>

#include "audit/private.h"
#include "base/crc.h"

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

void sl_audit_tell(struct sl_audit_state *a, enum sl_finding_kind kind, const struct sl_leaf *leaf,
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

/* The image's checksum as it is now; false: it cannot be read, which is told. */
static bool read_image(struct sl_audit_state *a, const struct sl_part_row *row,
		       const uint8_t **pixels, uint32_t *crc)
{
	uint64_t index = (uint64_t)row->image_index - a->first_image;

	if (row->image_index < 0 || index >= a->part.image_count) {
		sl_audit_tell(a, SL_FINDING_IMAGE, &row->leaf,
			      "its image is to be number %" PRId64 ", which is not in %s",
			      row->image_index, a->name);
		return false;
	}
	if (sl_part_image(&a->part, index, pixels)) {
		sl_audit_tell(a, SL_FINDING_IMAGE, &row->leaf, "its image in %s cannot be unpacked",
			      a->name);
		return false;
	}
	*crc = sl_crc32c(0, *pixels, a->part.image_bytes);
	a->result->images++;
	a->result->image_bytes += a->part.image_bytes;
	return true;
}

/* Raw pixels, modules one below the other, are what the source sent. */
static void compare_source(struct sl_audit_state *a, const struct sl_leaf *leaf,
			   const uint8_t *pixels)
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
			sl_audit_tell(a, SL_FINDING_SOURCE, leaf,
				      "pixels of module %u in %s do not match the checksum of "
				      "their source",
				      m, a->name);
	}
}

/* What the frame has in every other series, as it is now; false: not all can be read. */
static bool read_series(struct sl_audit_state *a, const struct sl_leaf *leaf, uint32_t *crc)
{
	bool all = true;

	for (uint32_t s = 0; s < leaf->series; s++) {
		struct sl_part_series *series = &a->part.one[s];
		bool was_readable = !series->error;
		int r = sl_part_take(&a->part, s, leaf->series_rows[s], &crc[s]);

		a->result->series_bytes += r ? 0 : leaf->series_rows[s] * series->row_bytes;
		all &= !r;
		if (r && was_readable) {
			sl_audit_tell(a, SL_FINDING_SERIES, leaf, "%s of %s %s", series->path,
				      a->name,
				      r == -ERANGE ? "has too few rows" : "cannot be read");
			series->error = r;
		}
	}
	return all;
}

/* Which of the checksums is not that of the row; false: none. */
static bool tell_differences(struct sl_audit_state *a, const struct sl_leaf *leaf,
			     const struct sl_leaf *now, bool data_right)
{
	enum sl_finding_kind checksum = SL_FINDING_CHECKSUM;
	const char *damaged =
		"the stored checksum of its %s%s in %s is damaged; the data are right";
	bool any = false;

	if (leaf->image_crc != now->image_crc) {
		any = true;
		if (data_right)
			sl_audit_tell(a, checksum, leaf, damaged, "image", "", a->name);
		else
			sl_audit_tell(a, SL_FINDING_IMAGE, leaf,
				      "its image in %s does not match its checksum", a->name);
	}
	for (uint32_t s = 0; s < leaf->series; s++) {
		if (leaf->series_crc[s] == now->series_crc[s])
			continue;
		any = true;
		if (data_right)
			sl_audit_tell(a, checksum, leaf, damaged, "rows of ", a->part.one[s].path,
				      a->name);
		else
			sl_audit_tell(a, SL_FINDING_SERIES, leaf,
				      "its rows of %s in %s do not match their checksum",
				      a->part.one[s].path, a->name);
	}
	return any;
}

static void judge(struct sl_audit_state *a, const struct sl_part_row *row,
		  const struct sl_leaf *now, const struct sl_hash *hash)
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
		sl_audit_tell(
			a, SL_FINDING_ROW, &row->leaf,
			"the row about it in %s (/entry/sluice/frames or audit) does not match its "
			"leaf",
			a->name);
	else if (a->doubts < SL_AUDIT_DOUBTS)
		a->doubt[a->doubts++] =
			(struct sl_audit_doubt){row->leaf.sequence, row->leaf.number};
}

/* A part of a run may have been written with gaps, which it speaks of: then rows are those that
 * were written. */
static bool may_have_gaps(const struct sl_audit_state *a)
{
	return a->master.cut[0] && a->stored_right;
}

static void check_sequence(struct sl_audit_state *a, const struct sl_leaf *leaf)
{
	if (a->has_sequence && leaf->sequence > a->sequence + 1 && !may_have_gaps(a))
		sl_audit_tell(a, SL_FINDING_ROWS_MISSING, NULL,
			      "there is no row about %" PRIu64 " frame%s before frame %" PRIu64
			      ": sequence%s %" PRIu64 " to %" PRIu64,
			      leaf->sequence - a->sequence - 1,
			      leaf->sequence == a->sequence + 2 ? "" : "s", leaf->number,
			      leaf->sequence == a->sequence + 2 ? "" : "s", a->sequence + 1,
			      leaf->sequence - 1);
	else if (a->has_sequence && leaf->sequence <= a->sequence)
		sl_audit_tell(a, SL_FINDING_ROW, leaf, "its sequence does not follow %" PRIu64,
			      a->sequence);
	a->sequence = leaf->sequence;
	a->has_sequence = true;
}

void sl_audit_say_counts(void *arg, uint32_t module, uint64_t sequence, const char *text)
{
	struct sl_audit_state *a = arg;

	sl_audit_tell(a, SL_FINDING_COUNTS, NULL, "module %u, sequence %" PRIu64 ": %s", module,
		      sequence, text);
}

void sl_audit_row(struct sl_audit_state *a, const struct sl_part_row *row)
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
		sl_counts_row(a->options->counts, &row->leaf, sl_audit_say_counts, a);
}
