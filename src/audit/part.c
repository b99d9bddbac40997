/* part.c - rows of a run's file, as an audit reads them. */
#include "audit/part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"

#define FRAMES "/entry/sluice/frames"
#define IMAGES "/entry/data/data"

enum { NAMES_BYTES = 64 << 10, WINDOW_BYTES = 1 << 20 };

struct sl_part_block {
	uint64_t sequence[SL_PART_ROWS], number[SL_PART_ROWS], timestamp[SL_PART_ROWS];
	uint64_t missing[SL_PART_ROWS], known[SL_PART_ROWS];
	int64_t image_index[SL_PART_ROWS];
	float score[SL_PART_ROWS];
	uint32_t flags[SL_PART_ROWS], image[SL_PART_ROWS];
	uint16_t reason[SL_PART_ROWS];
	uint8_t keep[SL_PART_ROWS];
	struct sl_hash leaf[SL_PART_ROWS];
	uint8_t outcome[SL_PART_ROWS * SL_LEAF_MODULES], cause[SL_PART_ROWS * SL_LEAF_MODULES];
	uint32_t source[SL_PART_ROWS * SL_LEAF_MODULES];
	uint64_t module_sequence[SL_PART_ROWS * SL_LEAF_MODULES];
	uint32_t series_rows[SL_PART_ROWS * SL_LEAF_SERIES];
	uint32_t series_crc[SL_PART_ROWS * SL_LEAF_SERIES];
};

/* How many numbers a row of a column has. */
enum width { ONE, PER_MODULE, PER_SERIES, HASH };

static const struct column {
	const char *path;
	enum sl_h5_type type;
	enum width width;
	size_t offset; /* in a block */
} columns[] = {
	{FRAMES "/sequence", SL_H5_U64, ONE, offsetof(struct sl_part_block, sequence)},
	{FRAMES "/frame_number", SL_H5_U64, ONE, offsetof(struct sl_part_block, number)},
	{FRAMES "/timestamp", SL_H5_U64, ONE, offsetof(struct sl_part_block, timestamp)},
	{FRAMES "/missing", SL_H5_U64, ONE, offsetof(struct sl_part_block, missing)},
	{FRAMES "/image_index", SL_H5_I64, ONE, offsetof(struct sl_part_block, image_index)},
	{FRAMES "/score", SL_H5_F32, ONE, offsetof(struct sl_part_block, score)},
	{FRAMES "/flags", SL_H5_U32, ONE, offsetof(struct sl_part_block, flags)},
	{FRAMES "/reason", SL_H5_U16, ONE, offsetof(struct sl_part_block, reason)},
	{FRAMES "/keep", SL_H5_U8, ONE, offsetof(struct sl_part_block, keep)},
	{FRAMES "/outcome", SL_H5_U8, PER_MODULE, offsetof(struct sl_part_block, outcome)},
	{FRAMES "/cause", SL_H5_U8, PER_MODULE, offsetof(struct sl_part_block, cause)},
	{SL_AUDIT_LEAF, SL_H5_U8, HASH, offsetof(struct sl_part_block, leaf)},
	{SL_AUDIT_IMAGE, SL_H5_U32, ONE, offsetof(struct sl_part_block, image)},
	{SL_AUDIT_KNOWN, SL_H5_U64, ONE, offsetof(struct sl_part_block, known)},
	{SL_AUDIT_SOURCE, SL_H5_U32, PER_MODULE, offsetof(struct sl_part_block, source)},
	{SL_AUDIT_MODULE_SEQUENCE, SL_H5_U64, PER_MODULE,
	 offsetof(struct sl_part_block, module_sequence)},
	{SL_AUDIT_SERIES_ROWS, SL_H5_U32, PER_SERIES, offsetof(struct sl_part_block, series_rows)},
	{SL_AUDIT_SERIES_CRC, SL_H5_U32, PER_SERIES, offsetof(struct sl_part_block, series_crc)},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static uint64_t width_of(const struct sl_part *part, enum width width)
{
	return width == HASH	     ? SL_HASH_BYTES
	       : width == PER_MODULE ? part->modules
	       : width == PER_SERIES ? part->series
				     : 1;
}

/* ---- a file is opened ---- */

static int wrong(char *why, size_t bytes, const char *text)
{
	snprintf(why, bytes, "%s", text);
	return -EBADMSG;
}

static int read_notes(struct sl_part *p, char *why, size_t bytes)
{
	uint32_t version = 0;

	if (sl_h5_read_attribute(p->file, SL_AUDIT_LEAF, SL_AUDIT_VERSION, SL_H5_U32, &version,
				 sizeof(version)))
		return wrong(why, bytes, "it has no leaves of a hash tree");
	if (version != SL_LEAF_VERSION) {
		snprintf(why, bytes, "its leaves have version %u, this program knows %d", version,
			 SL_LEAF_VERSION);
		return -EBADMSG;
	}
	if (sl_h5_read_attribute_text(p->file, SL_AUDIT_LEAF, SL_AUDIT_RUN_ID, p->run_id,
				      sizeof(p->run_id)) ||
	    sl_h5_read_attribute_text(p->file, SL_AUDIT_LEAF, SL_AUDIT_STORED, p->stored,
				      sizeof(p->stored)) ||
	    sl_h5_read_attribute_text(p->file, SL_AUDIT_LEAF, SL_AUDIT_IMAGES, p->arranged,
				      sizeof(p->arranged)) ||
	    sl_h5_read_attribute_text(p->file, SL_AUDIT_LEAF, SL_AUDIT_SERIES, p->names,
				      NAMES_BYTES))
		return wrong(why, bytes, "attributes of its leaves are missing");
	return 0;
}

static int open_series(struct sl_part *p, char *why, size_t bytes)
{
	char *rest = NULL;

	p->series_names = sl_crc32c(0, p->names, strlen(p->names));
	for (char *line = strtok_r(p->names, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct sl_part_series *s = &p->one[p->series];
		struct sl_h5_shape shape;
		int r;

		if (p->series == SL_LEAF_SERIES)
			return wrong(why, bytes, "it lists too many series");
		r = sl_h5_describe(p->file, line, &shape);
		if (!r && (!shape.rank || shape.type == SL_H5_TEXT ||
			   sl_h5_elements(&shape, 1) > SL_H5_PIXELS_MOST))
			r = -EBADMSG;
		if (r) {
			snprintf(why, bytes, "%s is missing or cannot be read", line);
			return -EBADMSG;
		}
		*s = (struct sl_part_series){.path = line,
					     .type = shape.type,
					     .rows = shape.dim[0],
					     .row_bytes = sl_h5_elements(&shape, 1) *
							  sl_h5_type_bytes(shape.type)};
		p->series++;
	}
	return 0;
}

/* Every column has the same rows, and is as wide as the leaf is. */
static int check_columns(struct sl_part *p, char *why, size_t bytes)
{
	struct sl_h5_shape shape;

	if (sl_h5_describe(p->file, FRAMES "/outcome", &shape) || shape.rank != 2 ||
	    !shape.dim[1] || shape.dim[1] > SL_LEAF_MODULES)
		return wrong(why, bytes, FRAMES "/outcome is missing or has another shape");
	p->modules = (uint32_t)shape.dim[1];
	p->rows = shape.dim[0];
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *c = &columns[i];

		if (sl_h5_describe(p->file, c->path, &shape) || shape.type == SL_H5_TEXT ||
		    shape.rank != (c->width == ONE ? 1u : 2u) ||
		    sl_h5_elements(&shape, 1) != width_of(p, c->width)) {
			snprintf(why, bytes, "%s is missing or has another shape", c->path);
			return -EBADMSG;
		}
		if (shape.dim[0] == p->rows)
			continue;
		snprintf(why, bytes, "%s has %llu rows, %s/outcome has %llu", c->path,
			 (unsigned long long)shape.dim[0], FRAMES, (unsigned long long)p->rows);
		return -EBADMSG;
	}
	return 0;
}

static int open_images(struct sl_part *p, const char *path, char *why, size_t bytes)
{
	struct sl_h5_shape shape;
	uint64_t pixels;
	int r;

	p->has_images = strcmp(p->arranged, "none") != 0;
	if (!p->has_images)
		return 0;
	r = sl_h5_describe(p->file, IMAGES, &shape);
	if (!r && shape.rank && !shape.dim[0])
		return 0; /* no frame was kept */
	if (!r)
		r = sl_h5_images_open(path, IMAGES, &p->images, &shape);
	if (r)
		return wrong(why, bytes, IMAGES " is missing or cannot be read");
	pixels = sl_h5_elements(&shape, 1);
	if (shape.rank != 3 || pixels > SL_H5_PIXELS_MOST)
		return wrong(why, bytes, IMAGES " has another shape");
	p->image_count = shape.dim[0];
	p->image_bytes = pixels * sl_h5_type_bytes(shape.type);
	p->image = malloc(p->image_bytes ? p->image_bytes : 1);
	return p->image ? 0 : -ENOMEM;
}

int sl_part_open(struct sl_part *part, const char *path, char *why, size_t why_bytes)
{
	int r;

	*part = (struct sl_part){.names = malloc(NAMES_BYTES),
				 .block = malloc(sizeof(*part->block))};
	snprintf(why, why_bytes, "HDF5 cannot open it");
	r = part->names && part->block ? sl_h5_open(path, &part->file) : -ENOMEM;
	if (!r)
		r = read_notes(part, why, why_bytes);
	if (!r)
		r = open_series(part, why, why_bytes);
	if (!r)
		r = check_columns(part, why, why_bytes);
	if (!r)
		r = open_images(part, path, why, why_bytes);
	if (r)
		sl_part_close(part);
	return r;
}

void sl_part_close(struct sl_part *part)
{
	for (uint32_t i = 0; i < part->series; i++)
		free(part->one[i].window);
	if (part->images)
		sl_h5_images_close(part->images);
	if (part->file)
		sl_h5_close(part->file);
	free(part->image);
	free(part->names);
	free(part->block);
	*part = (struct sl_part){.rows = 0};
}

/* ---- rows ---- */

static int read_block(struct sl_part *p, uint64_t first)
{
	uint64_t count = p->rows - first < SL_PART_ROWS ? p->rows - first : SL_PART_ROWS;

	p->count = 0;
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *c = &columns[i];
		uint64_t wide = width_of(p, c->width);
		int r = wide ? sl_h5_read_rows(p->file, c->path, first, count, c->type,
					       (uint8_t *)p->block + c->offset,
					       count * wide * sl_h5_type_bytes(c->type))
			     : 0;

		if (r)
			return r;
	}
	p->first = first;
	p->count = count;
	return 0;
}

int sl_part_row(struct sl_part *p, uint64_t row, struct sl_part_row *out)
{
	const struct sl_part_block *b = p->block;
	uint64_t i, m, s;
	int r;

	if (row < p->first || row >= p->first + p->count) {
		r = row < p->rows ? read_block(p, row) : -ERANGE;
		if (r)
			return r;
	}
	i = row - p->first;
	m = i * p->modules;
	s = i * p->series;
	*out = (struct sl_part_row){
		.leaf = {.sequence = b->sequence[i],
			 .number = b->number[i],
			 .timestamp = b->timestamp[i],
			 .missing = b->missing[i],
			 .score = b->score[i],
			 .flags = b->flags[i],
			 .reason = b->reason[i],
			 .keep = b->keep[i],
			 .has_image = b->image_index[i] >= 0 && p->has_images,
			 .image_crc = b->image[i],
			 .modules = p->modules,
			 .series = p->series,
			 .series_names = p->series_names,
			 .source_known = b->known[i],
			 .module_sequence = b->module_sequence + m,
			 .outcome = b->outcome + m,
			 .cause = b->cause + m,
			 .source_crc = b->source + m,
			 .series_rows = b->series_rows + s,
			 .series_crc = b->series_crc + s},
		.stored = b->leaf[i],
		.image_index = b->image_index[i],
	};
	return 0;
}

int sl_part_stored_root(struct sl_part *part, struct sl_tree *whole, struct sl_hash *root)
{
	struct sl_hash *leaf = part->block->leaf;
	struct sl_tree tree = {0};

	part->count = 0; /* the block is used for leaves alone */
	for (uint64_t row = 0, n; row < part->rows; row += n) {
		int r;

		n = part->rows - row < SL_PART_ROWS ? part->rows - row : SL_PART_ROWS;
		r = sl_h5_read_rows(part->file, SL_AUDIT_LEAF, row, n, SL_H5_U8, leaf,
				    n * SL_HASH_BYTES);
		if (r)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			sl_tree_add(&tree, &leaf[i]);
			sl_tree_add(whole, &leaf[i]);
		}
	}
	*root = sl_tree_root(&tree);
	return 0;
}

/* ---- series and images ---- */

static int move_window(struct sl_part *p, struct sl_part_series *s)
{
	uint64_t most = s->row_bytes >= WINDOW_BYTES ? 1 : WINDOW_BYTES / (s->row_bytes + 1) + 1;
	uint64_t left = s->rows - s->next, n = left < most ? left : most;

	if (!s->window) {
		s->window = malloc(most * s->row_bytes ? most * s->row_bytes : 1);
		if (!s->window)
			return -ENOMEM;
	}
	s->window_rows = 0;
	s->error =
		sl_h5_read_rows(p->file, s->path, s->next, n, s->type, s->window, n * s->row_bytes);
	if (s->error)
		return s->error;
	s->window_first = s->next;
	s->window_rows = n;
	return 0;
}

int sl_part_take(struct sl_part *part, uint32_t series, uint64_t rows, uint32_t *crc)
{
	struct sl_part_series *s = &part->one[series];

	*crc = 0;
	if (s->error)
		return s->error;
	if (rows > s->rows - s->next)
		return -ERANGE;
	while (rows) {
		uint64_t at = s->next - s->window_first, n;
		int r;

		if (s->next < s->window_first || at >= s->window_rows) {
			r = move_window(part, s);
			if (r)
				return r;
			at = 0;
		}
		n = s->window_rows - at < rows ? s->window_rows - at : rows;
		*crc = sl_crc32c(*crc, s->window + at * s->row_bytes, n * s->row_bytes);
		s->next += n;
		rows -= n;
	}
	return 0;
}

int sl_part_image(struct sl_part *part, uint64_t index, const uint8_t **pixels)
{
	int r = !part->images || index >= part->image_count
			? -ERANGE
			: sl_h5_images_read(part->images, index, part->image, part->image_bytes);

	*pixels = part->image;
	return r;
}
