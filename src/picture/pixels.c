/* pixels.c - regions, bins and floats, for each type of pixel.
 *
 * A row of bins begins as one row in memory into which all rows of the region are folded; that loop
 * does nearly all of the work and has no branches. Then groups of columns become bins. */
#include "picture/pixels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sl_pixels_kind {
	char type[4];
	uint32_t bytes, sum_bytes;
	int64_t mark;
	bool has_mark, own_maxima;
	void (*to_floats)(const void *data, uint64_t n, float *to);
	/* Rows folded into `row`, and that into bins. */
	void (*max_first)(void *row, uint32_t width);
	void (*max_fold)(void *row, const void *pixels, uint32_t width);
	void (*max_bins)(const void *row, uint32_t width, uint32_t bin, void *out);
	void (*mean_fold)(void *sum, uint32_t *count, const void *pixels, uint32_t width);
	void (*mean_bins)(const void *sum, const uint32_t *count, uint32_t width, uint32_t bin,
			  float *out);
};

/* ---- floats ---- */

#define TO_FLOATS(name, type, marked)                                         \
	static void name##_to_floats(const void *data, uint64_t n, float *to) \
	{                                                                     \
		const type *from = data;                                      \
                                                                              \
		for (uint64_t i = 0; i < n; i++) {                            \
			type x = from[i];                                     \
                                                                              \
			to[i] = (marked) ? NAN : (float)x;                    \
		}                                                             \
	}

TO_FLOATS(u1, uint8_t, false)
TO_FLOATS(i1, int8_t, false)
TO_FLOATS(u2, uint16_t, x == UINT16_MAX)
TO_FLOATS(i2, int16_t, x == INT16_MIN)
TO_FLOATS(u4, uint32_t, x == UINT32_MAX)
TO_FLOATS(i4, int32_t, x == INT32_MIN)
TO_FLOATS(u8, uint64_t, false)
TO_FLOATS(i8, int64_t, x == INT64_MIN)
TO_FLOATS(f4, float, false)
TO_FLOATS(f8, double, false)

/* ---- maxima ---- */

/* In the row a pixel that is marked is lower than any other: `lift` sees to that, and `drop` undoes
 * it. Signed types need neither, and unsigned ones go up by one, past their end. */
#define MAXIMA(name, type, lowest, lift, drop)                                                \
	static void name##_max_first(void *row, uint32_t width)                               \
	{                                                                                     \
		type *to = row;                                                               \
                                                                                              \
		for (uint32_t c = 0; c < width; c++)                                          \
			to[c] = lowest;                                                       \
	}                                                                                     \
	static void name##_max_fold(void *row, const void *pixels, uint32_t width)            \
	{                                                                                     \
		const type *restrict from = pixels;                                           \
		type *restrict to = row;                                                      \
                                                                                              \
		for (uint32_t c = 0; c < width; c++) {                                        \
			type x = from[c];                                                     \
                                                                                              \
			x = (type)(lift);                                                     \
			to[c] = x > to[c] ? x : to[c];                                        \
		}                                                                             \
	}                                                                                     \
	static void name##_max_bins(const void *row, uint32_t width, uint32_t bin, void *out) \
	{                                                                                     \
		const type *from = row;                                                       \
		type *to = out;                                                               \
                                                                                              \
		for (uint32_t c = 0; c < width; c += bin) {                                   \
			uint32_t end = width - c < bin ? width : c + bin;                     \
			type x = from[c];                                                     \
                                                                                              \
			for (uint32_t i = c + 1; i < end; i++)                                \
				x = from[i] > x ? from[i] : x;                                \
			*to++ = (type)(drop);                                                 \
		}                                                                             \
	}

MAXIMA(u1, uint8_t, 0, x, x)
MAXIMA(u2, uint16_t, 0, x + 1, x - 1)
MAXIMA(u4, uint32_t, 0, x + 1, x - 1)
MAXIMA(i2, int16_t, INT16_MIN, x, x)
MAXIMA(i4, int32_t, INT32_MIN, x, x)
MAXIMA(f4, float, -INFINITY, x, isinf(x) && x < 0 ? NAN : x) /* NaN is not larger than anything */

/* ---- means ---- */

#define MEANS(name, type, sum_type, marked)                                                   \
	static void name##_mean_fold(void *sums, uint32_t *counts, const void *pixels,        \
				     uint32_t width)                                          \
	{                                                                                     \
		const type *restrict from = pixels;                                           \
		uint32_t *restrict count = counts;                                            \
		sum_type *restrict sum = sums;                                                \
                                                                                              \
		for (uint32_t c = 0; c < width; c++) {                                        \
			type x = from[c];                                                     \
			bool is_marked = marked;                                              \
                                                                                              \
			sum[c] += is_marked ? 0 : (sum_type)x;                                \
			count[c] += !is_marked;                                               \
		}                                                                             \
	}                                                                                     \
	static void name##_mean_bins(const void *sums, const uint32_t *count, uint32_t width, \
				     uint32_t bin, float *out)                                \
	{                                                                                     \
		const sum_type *sum = sums;                                                   \
                                                                                              \
		for (uint32_t c = 0; c < width; c += bin) {                                   \
			uint32_t end = width - c < bin ? width : c + bin;                     \
			double all = 0;                                                       \
			uint32_t n = 0;                                                       \
                                                                                              \
			for (uint32_t i = c; i < end; i++) {                                  \
				all += (double)sum[i];                                        \
				n += count[i];                                                \
			}                                                                     \
			*out++ = n ? (float)(all / n) : NAN;                                  \
		}                                                                             \
	}

/* 256 pixels of 16 bits fit into a sum of 32. */
MEANS(u1, uint8_t, uint32_t, false)
MEANS(u2, uint16_t, uint32_t, x == UINT16_MAX)
MEANS(i2, int16_t, int32_t, x == INT16_MIN)
MEANS(u4, uint32_t, double, x == UINT32_MAX)
MEANS(i4, int32_t, double, x == INT32_MIN)
MEANS(f4, float, double, isnan(x))

/* ---- kinds ---- */

#define OWN(numpy, name, type, sum_type, has, mark)                                           \
	{                                                                                     \
		numpy, sizeof(type), sizeof(sum_type), mark, has, true, name##_to_floats,     \
			name##_max_first, name##_max_fold, name##_max_bins, name##_mean_fold, \
			name##_mean_bins                                                      \
	}
#define OTHER(numpy, name, number)                                                     \
	{                                                                              \
		.type = numpy, .bytes = sizeof(number), .to_floats = name##_to_floats, \
	}

static const struct sl_pixels_kind kinds[] = {
	OWN("<f4", f4, float, double, false, 0),
	OWN("|u1", u1, uint8_t, uint32_t, false, 0),
	OWN("<u2", u2, uint16_t, uint32_t, true, UINT16_MAX),
	OWN("<i2", i2, int16_t, int32_t, true, INT16_MIN),
	OWN("<u4", u4, uint32_t, double, true, UINT32_MAX),
	OWN("<i4", i4, int32_t, double, true, INT32_MIN),
	OTHER("|b1", u1, uint8_t),
	OTHER("|i1", i1, int8_t),
	OTHER("<u8", u8, uint64_t),
	OTHER("<i8", i8, int64_t),
	OTHER("<f8", f8, double),
};
static const struct sl_pixels_kind *const floats = &kinds[0];

const struct sl_pixels_kind *sl_pixels_kind(const char *type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].type, type))
			return &kinds[i];
	return NULL;
}

uint32_t sl_pixels_bytes(const struct sl_pixels_kind *kind)
{
	return kind->bytes;
}

const char *sl_pixels_type(const struct sl_pixels_kind *kind)
{
	return kind->type;
}

bool sl_pixels_mark(const struct sl_pixels_kind *kind, int64_t *mark)
{
	*mark = kind->mark;
	return kind->has_mark;
}

const struct sl_pixels_kind *sl_pixels_made(const struct sl_pixels_kind *kind,
					    const struct sl_pixels_view *view)
{
	return kind->own_maxima && (!view->mean || view->bin == 1) ? kind : floats;
}

void sl_pixels_to_floats(const struct sl_pixels_kind *kind, const void *data, uint64_t n, float *to)
{
	kind->to_floats(data, n, to);
}

/* ---- views ---- */

/* Memory for the fold of rows, with what a type without folds of its own needs. */
struct fold {
	const struct sl_pixels_kind *kind; /* with folds: of the rows */
	void *row;
	uint32_t *count; /* of means */
	float *converted;
};

static void fold_row(const struct fold *f, const struct sl_pixels_kind *from, const void *pixels,
		     const struct sl_pixels_view *view)
{
	if (f->converted) {
		from->to_floats(pixels, view->width, f->converted);
		pixels = f->converted;
	}
	if (view->mean)
		f->kind->mean_fold(f->row, f->count, pixels, view->width);
	else
		f->kind->max_fold(f->row, pixels, view->width);
}

static void begin_bins(const struct fold *f, const struct sl_pixels_view *view)
{
	if (view->mean) {
		memset(f->row, 0, (size_t)view->width * f->kind->sum_bytes);
		memset(f->count, 0, view->width * sizeof(*f->count));
	} else {
		f->kind->max_first(f->row, view->width);
	}
}

static void end_bins(const struct fold *f, const struct sl_pixels_view *view, void *out)
{
	if (view->mean)
		f->kind->mean_bins(f->row, f->count, view->width, view->bin, out);
	else
		f->kind->max_bins(f->row, view->width, view->bin, out);
}

static void copy_region(const struct sl_pixels_kind *kind, const uint8_t *image, size_t pitch,
			const struct sl_pixels_view *view, uint8_t *out)
{
	for (uint32_t r = 0; r < view->height; r++, image += pitch) {
		if (kind->own_maxima) {
			memcpy(out, image, (size_t)view->width * kind->bytes);
			out += (size_t)view->width * kind->bytes;
		} else {
			kind->to_floats(image, view->width, (float *)out);
			out += view->width * sizeof(float);
		}
	}
}

static int bin_region(const struct sl_pixels_kind *kind, const uint8_t *image, size_t pitch,
		      const struct sl_pixels_view *view, uint8_t *out)
{
	const struct sl_pixels_kind *made = sl_pixels_made(kind, view);
	struct fold f = {.kind = kind->own_maxima ? kind : floats};
	size_t line = (size_t)sl_pixels_columns(view) * made->bytes;
	int err = 0;

	f.row = malloc((size_t)view->width * sizeof(double));
	f.count = view->mean ? malloc(view->width * sizeof(*f.count)) : NULL;
	f.converted = f.kind == kind ? NULL : malloc(view->width * sizeof(float));
	if (!f.row || (view->mean && !f.count) || (f.kind != kind && !f.converted))
		err = -ENOMEM;
	for (uint32_t r = 0; r < view->height && !err; r++, image += pitch) {
		if (r % view->bin == 0)
			begin_bins(&f, view);
		fold_row(&f, kind, image, view);
		if (r % view->bin == view->bin - 1 || r == view->height - 1) {
			end_bins(&f, view, out);
			out += line;
		}
	}
	free(f.row);
	free(f.count);
	free(f.converted);
	return err;
}

int sl_pixels_view(const struct sl_pixels_kind *kind, const void *image, uint32_t columns,
		   const struct sl_pixels_view *view, void *out)
{
	size_t pitch = (size_t)columns * kind->bytes;
	const uint8_t *first = (const uint8_t *)image + view->y * pitch +
			       (size_t)view->x * kind->bytes;

	if (view->bin > 1)
		return bin_region(kind, first, pitch, view, out);
	copy_region(kind, first, pitch, view, out);
	return 0;
}

int sl_pixels_picture(const struct sl_pixels_kind *kind, const void *image, uint32_t columns,
		      const struct sl_pixels_view *view, struct sl_picture *picture)
{
	const struct sl_pixels_kind *made = sl_pixels_made(kind, view);
	void *pixels;
	size_t n;
	int err;

	picture->rows = sl_pixels_rows(view);
	picture->columns = sl_pixels_columns(view);
	n = (size_t)picture->rows * picture->columns;
	pixels = malloc(n * made->bytes);
	picture->pixels = malloc(n * sizeof(float));
	err = pixels && picture->pixels ? sl_pixels_view(kind, image, columns, view, pixels)
					: -ENOMEM;
	if (!err) {
		made->to_floats(pixels, n, picture->pixels);
	} else {
		free(picture->pixels);
		picture->pixels = NULL;
	}
	free(pixels);
	return err;
}
