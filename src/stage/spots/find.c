/* find.c - pixels that stand out from the box around them.
 *
 * Only pixels that reach the threshold are candidates, which is one comparison per pixel. For
 * counts, sums over the rows of a box go along from row to row, for all columns at once
 * (columns.h); a candidate adds those of its columns. They hold counts up to 1023 and say
 * where there are others. What has such in its box, and floats, are done the long way: where a row
 * has few, each has its box added up; where it has many, boxes of the whole row are, first over
 * rows, then over columns. Both add in the same order, so the way makes no difference, for floats
 * neither. Sums are doubles: exact for counts of 16 bits.
 *
 * Cost: the image once, and about 1 ns per pixel and 10 per candidate; the long way, 50 to 100 ns
 * per candidate. */
#include <math.h>
#include <string.h>

#include "stage/pixels.h"
#include "stage/spots/columns.h"
#include "stage/spots/maths.h"
#include "stage/spots/spots.h"
#include "stage/vectors.h"

enum { CHUNK = 64, MANY = 8 }; /* one pixel in eight is many */

static size_t wide_of(const struct sl_spots_settings *s)
{
	return s->columns + 2 * (size_t)s->box;
}

size_t sl_spots_work_bytes(const struct sl_spots_settings *s)
{
	size_t bytes = (6 * wide_of(s) + 3 * (size_t)s->columns) * sizeof(double) +
		       (3 * wide_of(s) + (size_t)s->columns + 8) * sizeof(uint32_t) +
		       sl_blobs_bytes(s->modules, s->rows, s->columns, s->max_pixels);

	return (bytes + 63) / 64 * 64;
}

void sl_spots_work_init(struct sl_spots_work *w, const struct sl_spots_settings *s, void *memory)
{
	size_t wide = wide_of(s);
	uintptr_t blobs;

	w->settings = s;
	w->n = memory;
	w->sum = w->n + wide;
	w->square = w->sum + wide;
	w->n_else = w->square + wide;
	w->sum_else = w->n_else + wide;
	w->square_else = w->sum_else + wide;
	w->box_n = w->square_else + wide;
	w->box_sum = w->box_n + s->columns;
	w->box_square = w->box_sum + s->columns;
	w->candidate = (uint32_t *)(w->box_square + s->columns);
	w->running.counts = w->candidate + s->columns;
	w->running.sums = w->running.counts + wide;
	w->running.squares = w->running.sums + wide;
	blobs = ((uintptr_t)(w->running.squares + wide) + 7) / 8 * 8;
	sl_blobs_init(&w->blobs, s->modules, s->rows, s->columns, s->max_pixels, (void *)blobs);
}

static bool is_strong(const struct sl_spots_settings *s, float value, const struct sl_spots_box *b)
{
	double d = value * b->n - b->sum, spread = b->n * b->square - b->sum * b->sum;

	return sl_spots_is_strong((float)d, spread > 0 ? (float)spread : 0, (sl_i32)b->n,
				  s->sigmas);
}

struct range {
	uint32_t first, end;
};

static struct range around(uint32_t middle, uint32_t box, uint32_t size)
{
	return (struct range){middle > box ? middle - box : 0,
			      size - middle > box ? middle + box + 1 : size};
}

/* A row of boxes from what was added up over rows. */
SL_FORCE_INLINE void add_columns(const double *all, const double *without, uint32_t box,
				 uint32_t columns, double *out)
{
	memset(out, 0, columns * sizeof(*out));
	for (uint32_t j = 0; j <= 2 * box; j++) {
		const double *in = (j == box ? without : all) + j;

		for (uint32_t c = 0; c < columns; c++)
			out[c] += in[c];
	}
}

static void clear(struct sl_spots_work *w)
{
	memset(w->n, 0, 6 * wide_of(w->settings) * sizeof(double));
}

/* For each type. */
#define FIND(TYPE, NAME, BELOW)                                                                    \
	/* One row of boxes more, of pixels that are there: into one set of sums or both. */       \
	SL_FORCE_INLINE void add_row_##NAME(struct sl_spots_work *w, const TYPE *pixel,            \
					    const uint8_t *mask, bool middle)                      \
	{                                                                                          \
		uint32_t columns = w->settings->columns, box = w->settings->box;                   \
		double *n = w->n + box, *sum = w->sum + box, *square = w->square + box;            \
		double *n_else = w->n_else + box, *sum_else = w->sum_else + box;                   \
		double *square_else = w->square_else + box, other = middle ? 0 : 1;                \
                                                                                                   \
		for (uint32_t c = 0; c < columns; c++) {                                           \
			bool there = sl_pixel_valid_##NAME(pixel[c]) & !(mask && mask[c]);         \
			double one = there ? 1 : 0, v = there ? (double)(float)pixel[c] : 0;       \
                                                                                                   \
			n[c] += one;                                                               \
			sum[c] += v;                                                               \
			square[c] += v * v;                                                        \
			n_else[c] += one * other;                                                  \
			sum_else[c] += v * other;                                                  \
			square_else[c] += v * v * other;                                           \
		}                                                                                  \
	}                                                                                          \
	SL_FORCE_INLINE void look_at_row_##NAME(struct sl_spots_work *w, const TYPE *module,       \
						const uint8_t *mask, uint32_t row)                 \
	{                                                                                          \
		const struct sl_spots_settings *s = w->settings;                                   \
		struct range rows = around(row, s->box, s->rows);                                  \
                                                                                                   \
		clear(w);                                                                          \
		for (uint32_t r = rows.first; r < rows.end; r++)                                   \
			add_row_##NAME(w, module + (size_t)r * s->columns,                         \
				       mask ? mask + (size_t)r * s->columns : NULL, r == row);     \
		add_columns(w->n, w->n_else, s->box, s->columns, w->box_n);                        \
		add_columns(w->sum, w->sum_else, s->box, s->columns, w->box_sum);                  \
		add_columns(w->square, w->square_else, s->box, s->columns, w->box_square);         \
	}                                                                                          \
	SL_FORCE_INLINE void look_##NAME(const struct sl_spots_settings *s, const TYPE *module,    \
					 const uint8_t *mask, uint32_t row, uint32_t column,       \
					 struct sl_spots_box *box)                                 \
	{                                                                                          \
		struct range rows = around(row, s->box, s->rows);                                  \
		struct range columns = around(column, s->box, s->columns);                         \
                                                                                                   \
		*box = (struct sl_spots_box){0};                                                   \
		for (uint32_t c = columns.first; c < columns.end; c++) {                           \
			struct sl_spots_box b = {0};                                               \
                                                                                                   \
			for (uint32_t r = rows.first; r < rows.end; r++) {                         \
				size_t at = (size_t)r * s->columns + c;                            \
				double v = (float)module[at];                                      \
                                                                                                   \
				if (!sl_pixel_valid_##NAME(module[at]) || (mask && mask[at]) ||    \
				    (r == row && c == column))                                     \
					continue;                                                  \
				b.n++;                                                             \
				b.sum += v;                                                        \
				b.square += v * v;                                                 \
			}                                                                          \
			box->n += b.n;                                                             \
			box->sum += b.sum;                                                         \
			box->square += b.square;                                                   \
		}                                                                                  \
	}                                                                                          \
	SL_FORCE_INLINE void compare_##NAME(const TYPE *restrict pixel, TYPE below,                \
					    uint8_t *restrict hit)                                 \
	{                                                                                          \
		for (uint32_t i = 0; i < CHUNK; i++)                                               \
			hit[i] = pixel[i] > below;                                                 \
	}                                                                                          \
	/* Columns of the row that reach the threshold. */                                         \
	SL_FORCE_INLINE uint32_t choose_##NAME(struct sl_spots_work *w, const TYPE *pixel,         \
					       const uint8_t *mask)                                \
	{                                                                                          \
		const struct sl_spots_settings *s = w->settings;                                   \
		const TYPE below = BELOW(s->threshold);                                            \
		uint32_t n = 0;                                                                    \
                                                                                                   \
		for (uint32_t first = 0; first < s->columns; first += CHUNK) {                     \
			uint32_t left = s->columns - first < CHUNK ? s->columns - first : CHUNK;   \
			uint64_t hits[CHUNK / 8];                                                  \
			TYPE last[CHUNK];                                                          \
                                                                                                   \
			if (left < CHUNK) {                                                        \
				memset(last, 0, sizeof(last));                                     \
				memcpy(last, pixel + first, left * sizeof(*pixel));                \
			}                                                                          \
			compare_##NAME(left < CHUNK ? last : pixel + first, below,                 \
				       (uint8_t *)hits);                                           \
			for (uint32_t h = 0; h < CHUNK / 8; h++)                                   \
				for (; hits[h]; hits[h] &= hits[h] - 1) {                          \
					uint32_t c = first + h * 8 +                               \
						     (uint32_t)__builtin_ctzll(hits[h]) / 8;       \
                                                                                                   \
					w->candidate[n] = c;                                       \
					n += sl_pixel_valid_##NAME(pixel[c]) & !(mask && mask[c]); \
				}                                                                  \
		}                                                                                  \
		return n;                                                                          \
	}                                                                                          \
	/* What the sums along the columns cannot tell stays a candidate. */                       \
	SL_FORCE_INLINE uint32_t quick_##NAME(struct sl_spots_work *w, const TYPE *pixel,          \
					      uint32_t first, uint32_t n)                          \
	{                                                                                          \
		uint32_t left = 0;                                                                 \
                                                                                                   \
		for (uint32_t i = 0; i < n; i++) {                                                 \
			uint32_t c = w->candidate[i];                                              \
			struct sl_spots_box box;                                                   \
                                                                                                   \
			if (!quick_box_##NAME(w, pixel[c], c, &box))                               \
				w->candidate[left++] = c;                                          \
			else if (is_strong(w->settings, (float)pixel[c], &box))                    \
				sl_blobs_mark(&w->blobs, first + c);                               \
		}                                                                                  \
		return left;                                                                       \
	}                                                                                          \
	SL_FORCE_INLINE void find_row_##NAME(struct sl_spots_work *w, const TYPE *module,          \
					     const uint8_t *mask, uint32_t first, uint32_t row)    \
	{                                                                                          \
		const struct sl_spots_settings *s = w->settings;                                   \
		size_t at = (size_t)row * s->columns;                                              \
		uint32_t n = choose_##NAME(w, module + at, mask ? mask + at : NULL);               \
		bool many;                                                                         \
                                                                                                   \
		advance_##NAME(w, module, mask, row);                                              \
		n = quick_##NAME(w, module + at, first + (uint32_t)at, n);                         \
		many = n > s->columns / MANY;                                                      \
		if (many)                                                                          \
			look_at_row_##NAME(w, module, mask, row);                                  \
		for (uint32_t i = 0; i < n; i++) {                                                 \
			uint32_t c = w->candidate[i];                                              \
			struct sl_spots_box box;                                                   \
                                                                                                   \
			if (many)                                                                  \
				box = (struct sl_spots_box){w->box_n[c], w->box_sum[c],            \
							    w->box_square[c]};                     \
			else                                                                       \
				look_##NAME(s, module, mask, row, c, &box);                        \
			if (is_strong(s, (float)module[at + c], &box))                             \
				sl_blobs_mark(&w->blobs, first + (uint32_t)at + c);                \
		}                                                                                  \
	}                                                                                          \
	SL_FORCE_INLINE void find_##NAME(struct sl_spots_work *w, const void *image)               \
	{                                                                                          \
		const struct sl_spots_settings *s = w->settings;                                   \
		uint32_t pixels = s->rows * s->columns;                                            \
                                                                                                   \
		sl_blobs_clear(&w->blobs);                                                         \
		for (uint32_t m = 0; m < s->modules; m++)                                          \
			for (uint32_t r = 0; r < s->rows; r++)                                     \
				find_row_##NAME(w, (const TYPE *)image + (size_t)m * pixels,       \
						s->mask ? s->mask + (size_t)m * pixels : NULL,     \
						m * pixels, r);                                    \
	}                                                                                          \
	SL_VECTORS(find_##NAME, (struct sl_spots_work * w, const void *image), (w, image))

/* The greatest value of the type that does not reach the threshold, which is above 0. */
#define BELOW_WHOLE(t, most) ((t) > (most) ? (most) : ceilf(t) - 1)
#define BELOW_U8(t)	     ((uint8_t)BELOW_WHOLE(t, 255.f))
#define BELOW_U16(t)	     ((uint16_t)BELOW_WHOLE(t, 65535.f))
#define BELOW_U32(t)	     ((uint32_t)BELOW_WHOLE(t, 4294967040.f))
#define BELOW_I16(t)	     ((int16_t)BELOW_WHOLE(t, 32767.f))
#define BELOW_F32(t)	     nextafterf(t, -INFINITY)

FIND(uint8_t, u8, BELOW_U8)
FIND(uint16_t, u16, BELOW_U16)
FIND(uint32_t, u32, BELOW_U32)
FIND(int16_t, i16, BELOW_I16)
FIND(float, f32, BELOW_F32)

sl_spots_pass *sl_spots_find(enum sl_dtype dtype, uint32_t vectors)
{
	enum sl_vectors v = sl_vectors_choose(vectors);

	switch (dtype) {
	case SL_U8:
		return SL_VECTORS_PICK(find_u8, v);
	case SL_U16:
		return SL_VECTORS_PICK(find_u16, v);
	case SL_U32:
		return SL_VECTORS_PICK(find_u32, v);
	case SL_I16:
		return SL_VECTORS_PICK(find_i16, v);
	default:
		return SL_VECTORS_PICK(find_f32, v);
	}
}

void sl_spots_look(const struct sl_spots_settings *s, enum sl_dtype dtype, const void *image,
		   uint32_t module, uint32_t row, uint32_t column, struct sl_spots_box *box)
{
	size_t first = (size_t)module * s->rows * s->columns;
	const uint8_t *mask = s->mask ? s->mask + first : NULL;

	switch (dtype) {
	case SL_U8:
		look_u8(s, (const uint8_t *)image + first, mask, row, column, box);
		break;
	case SL_U16:
		look_u16(s, (const uint16_t *)image + first, mask, row, column, box);
		break;
	case SL_U32:
		look_u32(s, (const uint32_t *)image + first, mask, row, column, box);
		break;
	case SL_I16:
		look_i16(s, (const int16_t *)image + first, mask, row, column, box);
		break;
	default:
		look_f32(s, (const float *)image + first, mask, row, column, box);
	}
}
