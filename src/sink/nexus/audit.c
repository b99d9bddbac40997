/* audit.c - leaves, checksums and roots of a run that is being written. */
#include "sink/nexus/audit.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/log.h"
#include "base/secret.h"
#include "hdf5/rolled/data_files.h"
#include "hdf5/rolled/rolled.h"
#include "sink/nexus/hits.h"
#include "sink/row.h"

#define FRAMES SL_ACCOUNT_FRAMES

enum { END_BYTES = 4096 }; /* that the end may add, beside what each data file does */

/* ---- which series a leaf sums up ---- */

/* Images have a checksum of their own; these columns are in the leaf as they are; hit rates are of
 * blocks of frames, and follow from the columns. */
static bool is_apart(const char *path)
{
	static const char *const apart[] = {
		"/entry/data/data", FRAMES "/sequence", FRAMES "/frame_number", FRAMES "/timestamp",
		FRAMES "/keep",	    FRAMES "/score",	FRAMES "/reason",	FRAMES "/flags",
		FRAMES "/missing",  FRAMES "/outcome",	FRAMES "/cause"};

	if (!strncmp(path, SL_HITS "/", strlen(SL_HITS "/")))
		return true;
	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		if (!strcmp(path, apart[i]))
			return true;
	return false;
}

struct series_list {
	struct {
		struct sl_h5_series *series;
		const char *path;
	} one[SL_LEAF_SERIES];
	uint32_t n;
	bool full;
	size_t bytes; /* of all paths, with newlines */
};

static void add_series(void *arg, struct sl_h5_series *series, const char *path)
{
	struct series_list *list = arg;
	uint32_t at = list->n;

	if (is_apart(path))
		return;
	if (list->n == SL_LEAF_SERIES) {
		list->full = true;
		return;
	}
	for (; at && strcmp(list->one[at - 1].path, path) > 0; at--)
		list->one[at] = list->one[at - 1];
	list->one[at].series = series;
	list->one[at].path = path;
	list->n++;
	list->bytes += strlen(path) + 1;
}

/* names: their paths, one in a line. -ENOMEM, or -E2BIG, which is logged. */
static int watch_series(struct sl_nexus_audit *audit, char **paths)
{
	struct series_list list = {.n = 0};
	char *names, *at;

	sl_h5_series_each(audit->file, add_series, &list);
	if (list.full) {
		sl_error("nexus: more than %d series: there is no audit of so many; set audit: "
			 "false, or store fewer results",
			 SL_LEAF_SERIES);
		return -E2BIG;
	}
	names = at = malloc(list.bytes + 1);
	if (!names)
		return -ENOMEM;
	names[0] = 0;
	for (uint32_t i = 0; i < list.n; i++) {
		audit->watched[i] = list.one[i].series;
		sl_h5_series_watch(list.one[i].series);
		at += sprintf(at, "%s\n", list.one[i].path);
	}
	audit->series = list.n;
	audit->series_names = sl_crc32c(0, names, (size_t)(at - names));
	*paths = names;
	return 0;
}

/* ---- the beginning ---- */

/* The text that the run's files share, where there are several. */
static void make_run_id(const struct sl_h5 *file, char text[SL_AUDIT_RUN_ID_TEXT])
{
	uint8_t id[SL_AUDIT_RUN_ID_BYTES];

	_Static_assert((int)SL_AUDIT_RUN_ID_TEXT == (int)SL_H5_FILE_SET_BYTES,
		       "both are 32 digits");
	if (sl_h5_file_set(file)[0]) {
		memcpy(text, sl_h5_file_set(file), SL_AUDIT_RUN_ID_TEXT);
		return;
	}
	sl_secret_fill(id, sizeof(id));
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static void open_one(const struct sl_nexus_audit *audit, const char *path, enum sl_h5_type type,
		     uint32_t columns, const char *doc, struct sl_h5_series **series)
{
	const struct sl_h5_shape row = {type, columns ? 1 : 0, {columns}};

	sl_h5_series_open(audit->file, path, &row, SL_ACCOUNT_ROWS, series);
	sl_h5_attribute_text(audit->file, path, "long_name", doc);
}

static void open_series(struct sl_nexus_audit *a)
{
	open_one(a, SL_AUDIT_LEAF, SL_H5_U8, SL_HASH_BYTES,
		 "SHA-256 of all about the frame, a leaf of the tree whose root is beside it",
		 &a->leaf);
	open_one(a, SL_AUDIT_IMAGE, SL_H5_U32, 0, "of the image's pixels; 0 where there is none",
		 &a->image);
	open_one(a, SL_AUDIT_SOURCE, SL_H5_U32, a->modules,
		 "of the module's pixels, as its source sent it", &a->source);
	open_one(a, SL_AUDIT_KNOWN, SL_H5_U64, 0, "a bit per module: source_crc32c is known",
		 &a->known);
	open_one(a, SL_AUDIT_MODULE_SEQUENCE, SL_H5_U64, a->modules,
		 "in the module's own stream; 2^64-1 where it has nothing in this frame",
		 &a->module_sequence);
	open_one(a, SL_AUDIT_SERIES_ROWS, SL_H5_U32, a->series,
		 "rows about the frame in each dataset that the attribute series of leaf lists",
		 &a->rows);
	open_one(a, SL_AUDIT_SERIES_CRC, SL_H5_U32, a->series, "of these rows", &a->crc);
}

/* As open_series() has them. */
uint64_t sl_nexus_audit_frame_bytes(const struct sl_nexus_audit *a)
{
	const uint64_t frame = SL_HASH_BYTES + sizeof(uint32_t) + sizeof(uint64_t);

	return a->file ? frame + a->modules * (sizeof(uint32_t) + sizeof(uint64_t)) +
				 a->series * 2 * sizeof(uint32_t)
		       : 0;
}

static int allocate_part(struct sl_nexus_audit *a)
{
	struct sl_nexus_audit_part *ended = realloc(a->ended, (a->parts + 1) * sizeof(*ended));

	if (!ended)
		return -ENOMEM;
	a->ended = ended;
	return 0;
}

int sl_nexus_audit_open(struct sl_nexus_audit *audit, struct sl_h5 *file, const struct sl_env *env,
			const char *stored, const char *images)
{
	const uint32_t version = SL_LEAF_VERSION;
	char *names;
	int r;

	*audit = (struct sl_nexus_audit){.modules = sl_env_modules(env)};
	if (allocate_part(audit))
		return -ENOMEM;
	audit->file = file;
	r = watch_series(audit, &names);
	if (r)
		return r;
	make_run_id(file, audit->run_id);
	sl_h5_group(file, SL_AUDIT, "NXcollection");
	sl_h5_write_text(file, SL_AUDIT_ID, audit->run_id);
	open_series(audit);
	sl_h5_attribute_text(file, SL_AUDIT_LEAF, SL_AUDIT_RUN_ID, audit->run_id);
	sl_h5_attribute(file, SL_AUDIT_LEAF, SL_AUDIT_VERSION, SL_H5_U32, 0, &version);
	sl_h5_attribute_text(file, SL_AUDIT_LEAF, SL_AUDIT_SERIES, names);
	sl_h5_attribute_text(file, SL_AUDIT_LEAF, SL_AUDIT_STORED, stored);
	sl_h5_attribute_text(file, SL_AUDIT_LEAF, SL_AUDIT_IMAGES, images);
	sl_h5_keep(file, END_BYTES);
	free(names);
	return 0;
}

void sl_nexus_audit_close(struct sl_nexus_audit *audit)
{
	free(audit->ended);
	audit->ended = NULL;
	audit->file = NULL;
}

/* ---- rows ---- */

/* A module's record is its source's word only where the module is whole, and the record is that of
 * this frame: of frames that were dropped in a row there is one for all. */
static void look_at_sources(const struct sl_frame *frame, uint32_t modules, uint64_t *known,
			    uint64_t *sequence, uint32_t *crc)
{
	*known = 0;
	memset(crc, 0, modules * sizeof(*crc));
	memset(sequence, 0xff, modules * sizeof(*sequence));
	for (uint32_t i = 0; i < sl_frame_all_views(frame); i++) {
		const struct sl_view *view = &frame->view[i];
		const struct sl_record *record = &view->record;

		if (view->module >= modules)
			continue;
		if (view->outcome != SL_NO_OUTCOME || !sl_frame_misses(frame, view->module))
			sequence[view->module] = view->sequence;
		if (sl_frame_misses(frame, view->module) || !(record->flags & SL_RECORD_CRC) ||
		    record->sequence != view->sequence)
			continue;
		*known |= UINT64_C(1) << view->module;
		crc[view->module] = record->crc32c;
	}
}

static void append(const struct sl_nexus_audit *a, const struct sl_leaf *leaf,
		   const struct sl_hash *hash)
{
	sl_h5_series_append(a->leaf, hash->byte);
	sl_h5_series_append(a->image, &leaf->image_crc);
	sl_h5_series_append(a->source, leaf->source_crc);
	sl_h5_series_append(a->known, &leaf->source_known);
	sl_h5_series_append(a->module_sequence, leaf->module_sequence);
	sl_h5_series_append(a->rows, leaf->series_rows);
	sl_h5_series_append(a->crc, leaf->series_crc);
}

int sl_nexus_audit_add(struct sl_nexus_audit *audit, const struct sl_frame *frame,
		       const struct sl_account *account, const uint32_t *image_crc)
{
	struct sl_verdict verdict = sl_row_verdict(frame);
	uint32_t source_crc[SL_LEAF_MODULES], rows[SL_LEAF_SERIES], crc[SL_LEAF_SERIES];
	uint64_t module_sequence[SL_LEAF_MODULES];
	struct sl_leaf leaf = {.sequence = frame->sequence,
			       .number = frame->number,
			       .timestamp = frame->timestamp,
			       .missing = frame->missing,
			       .score = verdict.score,
			       .flags = frame->flags,
			       .reason = verdict.reason,
			       .keep = sl_row_kept(frame) || sl_row_left_out(frame),
			       .has_image = image_crc,
			       .image_crc = image_crc ? *image_crc : 0,
			       .modules = audit->modules,
			       .series = audit->series,
			       .series_names = audit->series_names,
			       .module_sequence = module_sequence,
			       .outcome = account->outcome,
			       .cause = account->cause,
			       .source_crc = source_crc,
			       .series_rows = rows,
			       .series_crc = crc};
	struct sl_hash hash;

	look_at_sources(frame, audit->modules, &leaf.source_known, module_sequence, source_crc);
	for (uint32_t i = 0; i < audit->series; i++)
		rows[i] = sl_h5_series_take(audit->watched[i], &crc[i]);
	hash = sl_leaf_hash(&leaf);
	if (!audit->part.leaves)
		audit->first_sequence = frame->sequence;
	audit->images += leaf.has_image;
	sl_tree_add(&audit->tree, &hash);
	sl_tree_add(&audit->part, &hash);
	append(audit, &leaf, &hash);
	return sl_h5_status(audit->file);
}

/* The data file at hand is over. */
static void end_part(struct sl_nexus_audit *audit)
{
	audit->ended[audit->parts++] =
		(struct sl_nexus_audit_part){.rows = audit->part.leaves,
					     .first_sequence = audit->first_sequence,
					     .first_image = audit->first_image,
					     .root = sl_tree_root(&audit->part)};
	audit->part.leaves = audit->first_sequence = 0;
	audit->first_image = audit->images;
}

int sl_nexus_audit_roll(struct sl_nexus_audit *audit)
{
	int r;

	if (!audit->file)
		return 0;
	/* Room for the next one first: without it the end still has this one. */
	audit->parts++;
	r = allocate_part(audit);
	audit->parts--;
	if (!r)
		end_part(audit);
	return r;
}

const char *sl_nexus_audit_root(const struct sl_nexus_audit *audit, char text[SL_HASH_TEXT])
{
	struct sl_hash root = sl_tree_root(&audit->tree);

	return sl_hash_text(&root, text);
}

/* ---- the end ---- */

static int write_names(struct sl_h5 *file, const char *path, uint32_t files)
{
	char(*name)[NAME_MAX + 1] = calloc(files, sizeof(*name));
	const char **text = calloc(files, sizeof(*text));
	int r = name && text ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < files && !r; i++) {
		text[i] = name[i];
		r = sl_h5_data_name(path, i + 1, name[i], sizeof(name[i]));
	}
	if (!r)
		r = sl_h5_write_texts(file, SL_AUDIT_FILE_NAME, text, files);
	free(text);
	free(name);
	return r;
}

/* One number of each data file. */
static void write_numbers(const struct sl_nexus_audit *a, const char *path, size_t offset,
			  uint64_t *numbers)
{
	const struct sl_h5_shape shape = {SL_H5_U64, 1, {a->parts}};

	for (uint32_t i = 0; i < a->parts; i++)
		memcpy(&numbers[i], (const uint8_t *)&a->ended[i] + offset, sizeof(*numbers));
	sl_h5_write(a->file, path, &shape, numbers);
}

static int write_files(const struct sl_nexus_audit *a, const char *path)
{
	const struct sl_h5_shape shape = {SL_H5_U8, 2, {a->parts, SL_HASH_BYTES}};
	uint64_t *numbers = calloc(a->parts, sizeof(*numbers));
	struct sl_hash *roots = calloc(a->parts, sizeof(*roots));
	int r = numbers && roots ? write_names(a->file, path, a->parts) : -ENOMEM;

	if (!r) {
		for (uint32_t i = 0; i < a->parts; i++)
			roots[i] = a->ended[i].root;
		write_numbers(a, SL_AUDIT_FILE_ROWS, offsetof(struct sl_nexus_audit_part, rows),
			      numbers);
		write_numbers(a, SL_AUDIT_FILE_FIRST_SEQUENCE,
			      offsetof(struct sl_nexus_audit_part, first_sequence), numbers);
		write_numbers(a, SL_AUDIT_FILE_FIRST_IMAGE,
			      offsetof(struct sl_nexus_audit_part, first_image), numbers);
		sl_h5_write(a->file, SL_AUDIT_FILE_ROOT, &shape, roots);
	}
	free(roots);
	free(numbers);
	return r;
}

static int write_end(const struct sl_nexus_audit *a, const char *path)
{
	char root[SL_HASH_TEXT];
	int r = a->parts ? write_files(a, path) : 0;

	sl_h5_write_text(a->file, SL_AUDIT_ROOT, sl_nexus_audit_root(a, root));
	sl_h5_write_u64(a->file, SL_AUDIT_ROWS, a->tree.leaves);
	return r ? r : sl_h5_status(a->file);
}

int sl_nexus_audit_end(struct sl_nexus_audit *audit, const char *path)
{
	if (!audit->file)
		return 0;
	if (sl_h5_data_files(audit->file))
		end_part(audit);
	return write_end(audit, path);
}

/* ---- a run that was killed ---- */

static int add_leaves(struct sl_nexus_audit *a, struct sl_h5 *data, uint64_t rows)
{
	struct sl_hash leaf[SL_ACCOUNT_ROWS];
	int r = 0;

	for (uint64_t row = 0, n; row < rows && !r; row += n) {
		n = rows - row < SL_ACCOUNT_ROWS ? rows - row : SL_ACCOUNT_ROWS;
		r = sl_h5_read_rows(data, SL_AUDIT_LEAF, row, n, SL_H5_U8, leaf, n * SL_HASH_BYTES);
		for (uint64_t i = 0; i < n && !r; i++) {
			sl_tree_add(&a->tree, &leaf[i]);
			sl_tree_add(&a->part, &leaf[i]);
		}
	}
	return r;
}

static int recover_part(struct sl_nexus_audit *a, const char *path)
{
	struct sl_h5_shape shape;
	struct sl_h5 *data;
	int r = sl_h5_open(path, &data);

	if (r)
		return r;
	r = sl_h5_describe(data, SL_AUDIT_LEAF, &shape);
	if (!r && (shape.rank != 2 || shape.dim[1] != SL_HASH_BYTES))
		r = -EBADMSG;
	if (!r && shape.dim[0])
		r = sl_h5_read_row(data, FRAMES "/sequence", 0, SL_H5_U64, &a->first_sequence,
				   sizeof(a->first_sequence));
	if (!r)
		r = add_leaves(a, data, shape.dim[0]);
	if (!r && !sl_h5_describe(data, "/entry/data/data", &shape) && shape.rank)
		a->images += shape.dim[0];
	if (r)
		sl_error("%s: its leaves for an audit cannot be read: %s", path, strerror(-r));
	sl_h5_close(data);
	return r;
}

int sl_nexus_audit_recover(struct sl_h5 *file, const char *path, uint32_t files)
{
	struct sl_nexus_audit a = {.file = file};
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash + 1 - path) : 0;
	struct sl_h5_shape shape;
	int r = sl_h5_describe(file, SL_AUDIT_LEAF, &shape);

	if (r)
		return r == -ENOENT ? 0 : r; /* written without */
	for (uint32_t i = 1; i <= files && !r; i++) {
		char name[NAME_MAX + 1], data[PATH_MAX];

		r = allocate_part(&a);
		if (!r)
			r = sl_h5_data_name(path, i, name, sizeof(name));
		if (!r && (size_t)snprintf(data, sizeof(data), "%.*s%s", folder, path, name) >=
				  sizeof(data))
			r = -ENAMETOOLONG;
		if (!r)
			r = recover_part(&a, data);
		if (!r)
			end_part(&a);
	}
	if (!r)
		r = write_end(&a, path);
	sl_nexus_audit_close(&a);
	return r;
}
