/* spots.cl - spots of pixels that stand out from the box around them; the GPU side of the stage.
 *
 * A group has a span of pixels: it lists those that reach the threshold in its own memory, and its threads then share these,
 * each adding up boxes, whose pixels are in the cache. What must move is the image, once. Sums of counts are whole numbers;
 * those of floats are added in the CPU's order, down each column and then over columns. Strong pixels become blobs
 * (stage/blobs.clh), all of which are spots. */
#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "gpu/dialect/batch.h"
#include "stage/blobs.clh"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "stage/pixels.clh"
#include "stage/spots/maths.h"

enum { SL_KERNEL_SPOTS = 5 }; /* SL_REASON_SPOTS */
enum { TILE = 32 };	      /* threads that measure a spot: no box has more columns */

struct box {
	double n, sum, square;
};

struct around { /* pixels of a box, in a module */
	sl_u32 top, bottom, left, right; /* the last two are not in it */
};

SL_DEVICE struct around around(sl_u32 row, sl_u32 column, sl_u32 reach, sl_u32 rows, sl_u32 columns)
{
	struct around a;

	a.top = row > reach ? row - reach : 0;
	a.bottom = rows - row > reach ? row + reach + 1 : rows;
	a.left = column > reach ? column - reach : 0;
	a.right = columns - column > reach ? column + reach + 1 : columns;
	return a;
}

SL_DEVICE sl_u32 is_strong(float value, struct box b, float sigmas)
{
	double d = (double)value * b.n - b.sum, spread = b.n * b.square - b.sum * b.sum;

	return (sl_u32)sl_spots_is_strong((float)d, spread > 0 ? (float)spread : 0, (sl_i32)b.n, sigmas);
}

/* Boxes of counts of at most 16 bits, row by row. */
#define BOX_WHOLE(NAME, TYPE)                                                                                               \
	SL_DEVICE struct box box_##NAME(SL_GLOBAL const TYPE *module, SL_GLOBAL const sl_u8 *mask, sl_u32 masked,           \
					struct around a, sl_u32 columns, sl_u32 middle)                                     \
	{                                                                                                                   \
		sl_i32 n = 0, sum = 0;                                                                                      \
		sl_i64 square = 0;                                                                                          \
		sl_u32 r, c;                                                                                                \
		struct box box;                                                                                             \
                                                                                                                            \
		for (r = a.top; r < a.bottom; r++)                                                                          \
			for (c = a.left; c < a.right; c++) {                                                                \
				sl_u32 at = r * columns + c;                                                                \
				sl_i32 v = module[at];                                                                      \
                                                                                                                            \
				if (!sl_is_valid_##NAME(module[at]) || at == middle || (masked && mask[at]))                \
					continue;                                                                           \
				n++;                                                                                        \
				sum += v;                                                                                   \
				square += (sl_i64)v * v;                                                                    \
			}                                                                                                   \
		box.n = (double)n;                                                                                          \
		box.sum = (double)sum;                                                                                      \
		box.square = (double)square;                                                                                \
		return box;                                                                                                 \
	}

#define BOX_REAL(NAME, TYPE)                                                                                                \
	SL_DEVICE struct box box_##NAME(SL_GLOBAL const TYPE *module, SL_GLOBAL const sl_u8 *mask, sl_u32 masked,           \
					struct around a, sl_u32 columns, sl_u32 middle)                                     \
	{                                                                                                                   \
		struct box box;                                                                                             \
		sl_u32 r, c;                                                                                                \
                                                                                                                            \
		box.n = box.sum = box.square = 0;                                                                           \
		for (c = a.left; c < a.right; c++) {                                                                        \
			double n = 0, sum = 0, square = 0;                                                                  \
                                                                                                                            \
			for (r = a.top; r < a.bottom; r++) {                                                                \
				sl_u32 at = r * columns + c;                                                                \
				double v = (double)(float)module[at];                                                       \
                                                                                                                            \
				if (!sl_is_valid_##NAME(module[at]) || at == middle || (masked && mask[at]))                \
					continue;                                                                           \
				n += 1;                                                                                     \
				sum += v;                                                                                   \
				square += v * v;                                                                            \
			}                                                                                                   \
			box.n += n;                                                                                         \
			box.sum += sum;                                                                                     \
			box.square += square;                                                                               \
		}                                                                                                           \
		return box;                                                                                                 \
	}

/* Groups: of runs, of frames. Bits of the run are the group's own: they need no zeroing before. */
#define FIND(NAME, TYPE, BYTES, GET, BOX)                                                                                   \
	BOX(NAME, TYPE)                                                                                                     \
	SL_KERNEL void spots_find_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,        \
					 SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 all,       \
					 sl_u64 pixels, sl_u32 wide, SL_GLOBAL const sl_u8 *mask, sl_u32 masked,            \
					 sl_u32 rows, sl_u32 columns, sl_u32 reach, float threshold, float sigmas,          \
					 SL_GLOBAL sl_u32 *marked)                                                          \
	{                                                                                                                   \
		SL_SHARED sl_u32 shared[SL_GROUP_MOST];                                                                     \
		SL_SHARED sl_u32 words[SL_RUN_WORDS];                                                                       \
		SL_SHARED sl_u16 listed[SL_RUN];                                                                            \
		sl_u32 f = sl_group(1), run = sl_group(0), t = sl_thread(), n = 0, bits[4], i, j, k;                        \
		sl_u64 first = (sl_u64)run * SL_RUN;                                                                        \
                                                                                                                            \
		if (!sl_blobs_looks_at(&frame[f], &verdict[f * items], all))                                                \
			return;                                                                                             \
		image += f * pixels;                                                                                        \
		for (j = 0; j < 4; j++) {                                                                                   \
			sl_u64 at = first + j * (SL_RUN / 4) + 8 * t;                                                       \
                                                                                                                            \
			bits[j] = 0;                                                                                        \
			if (wide && at + 8 <= pixels) {                                                                     \
				struct sl_eight eight = sl_eight_##BYTES(image + at);                                       \
                                                                                                                            \
				for (i = 0; i < 8; i++)                                                                     \
					bits[j] |= (sl_u32)((float)GET(eight, i) >= threshold) << i;                        \
			} else {                                                                                            \
				for (i = 0; i < 8 && at + i < pixels; i++)                                                  \
					bits[j] |= (sl_u32)((float)image[at + i] >= threshold) << i;                        \
			}                                                                                                   \
			n += (sl_u32)sl_popcount(bits[j]);                                                                  \
		}                                                                                                           \
		words[t] = 0;                                                                                               \
		k = sl_group_prefix(shared, n, &n);                                                                         \
		for (j = 0; j < 4; j++)                                                                                     \
			for (; bits[j]; bits[j] &= bits[j] - 1)                                                             \
				listed[k++] = (sl_u16)(j * (SL_RUN / 4) + 8 * t + 31 -                                      \
						       (sl_u32)sl_clz((sl_i32)(bits[j] & -bits[j])));                       \
		sl_barrier();                                                                                               \
		for (i = t; i < n; i += SL_RUN_THREADS) {                                                                   \
			sl_u32 at = (sl_u32)first + listed[i], in_module = at % (rows * columns);                           \
			sl_u32 row = in_module / columns, column = in_module % columns;                                     \
			SL_GLOBAL const TYPE *module = image + (at - in_module);                                            \
			SL_GLOBAL const sl_u8 *hidden = masked ? mask + (at - in_module) : mask;                            \
                                                                                                                            \
			if (!sl_is_valid_##NAME(image[at]) || (masked && mask[at]))                                         \
				continue;                                                                                   \
			if (is_strong((float)image[at],                                                                     \
				      box_##NAME(module, hidden, masked, around(row, column, reach, rows, columns),         \
						 columns, in_module),                                                       \
				      sigmas))                                                                              \
				sl_or(&words[listed[i] >> 5], 1u << (listed[i] & 31));                                      \
		}                                                                                                           \
		sl_barrier();                                                                                               \
		marked[((sl_u64)f * sl_groups(0) + run) * SL_RUN_WORDS + t] = words[t];                                     \
	}

FIND(u8, sl_u8, 1, SL_EIGHT_U8, BOX_WHOLE)
FIND(u16, sl_u16, 2, SL_EIGHT_U16, BOX_WHOLE)
FIND(i16, sl_i16, 2, SL_EIGHT_I16, BOX_WHOLE)
FIND(u32, sl_u32, 4, SL_EIGHT_U32, BOX_REAL)
FIND(f32, float, 4, SL_EIGHT_F32, BOX_REAL)

/* ---- spots ---- */

/* A spot goes to its place in the result, as far as there is room. Groups: any number, of frames. */
SL_KERNEL void spots_measure(SL_GLOBAL const void *pixel, sl_u64 frame_bytes, sl_u32 dtype, SL_GLOBAL const sl_u8 *mask,
			     sl_u32 masked, sl_u32 rows, sl_u32 columns, SL_GLOBAL const sl_u32 *marked,
			     SL_GLOBAL const sl_u32 *before, sl_u32 words, sl_u32 most, SL_GLOBAL const sl_u32 *at,
			     SL_GLOBAL sl_u32 *member, SL_GLOBAL sl_u32 *seen, SL_GLOBAL const struct sl_kernel_blob *blob,
			     SL_GLOBAL const sl_u32 *blobs, sl_u32 room, sl_u32 reach, sl_u32 max_spots,
			     SL_GLOBAL float *spots)
{
	SL_SHARED float value[TILE];
	SL_SHARED sl_u32 pixels[TILE];
	SL_SHARED double column_n[TILE];
	SL_SHARED double column_sum[TILE];
	SL_SHARED double column_square[TILE];
	SL_SHARED sl_u32 brightest[1];
	sl_u32 f = sl_group(1), t = sl_thread(), module_pixels = rows * columns, c, i, tile;
	SL_GLOBAL const void *image = (SL_GLOBAL const void *)((SL_GLOBAL const sl_u8 *)pixel + f * frame_bytes);
	struct sl_kernel_modules m;

	m.rows = rows;
	m.columns = columns;
	m.most = most;
	m.marked = marked + (sl_u64)f * words;
	m.before = before + (sl_u64)f * words;
	at += (sl_u64)f * most;
	member += (sl_u64)f * most;
	seen += (sl_u64)f * most;
	for (c = sl_group(0); c < blobs[f] && c < max_spots; c += sl_groups(0)) {
		struct sl_kernel_blob b = blob[(sl_u64)f * room + c];
		double sum = 0, y = 0, x = 0;
		float maximum = sl_bits_float((sl_i32)0xff800000u);
		sl_u32 module, middle;
		struct around a;

		sl_blobs_flood(m, at, member, seen, b, pixels);
		if (t == 0)
			brightest[0] = at[b.begin];
		for (tile = 0; tile < b.pixels; tile += TILE) {
			if (tile + t < b.pixels) {
				pixels[t] = at[member[b.member + tile + t]];
				value[t] = sl_pixel_or_nan(dtype, image, pixels[t]);
			}
			sl_barrier();
			for (i = 0; t == 0 && i < TILE && tile + i < b.pixels; i++) {
				sum += (double)value[i];
				y += (double)value[i] * (double)(pixels[i] / columns % rows);
				x += (double)value[i] * (double)(pixels[i] % columns);
				brightest[0] = value[i] > maximum ? pixels[i] : brightest[0];
				maximum = value[i] > maximum ? value[i] : maximum;
			}
			sl_barrier();
		}
		middle = brightest[0];
		module = middle / module_pixels;
		a = around(middle / columns % rows, middle % columns, reach, rows, columns);
		column_n[t] = column_sum[t] = column_square[t] = 0;
		for (i = a.top; a.left + t < a.right && i < a.bottom; i++) {
			sl_u32 there = module * module_pixels + i * columns + a.left + t;
			float v = sl_pixel_or_nan(dtype, image, there);

			if (there == middle || !(v == v) || (masked && mask[there]))
				continue;
			column_n[t] += 1;
			column_sum[t] += (double)v;
			column_square[t] += (double)v * (double)v;
		}
		sl_barrier();
		if (t == 0) {
			SL_GLOBAL float *row = spots + 8 * ((sl_u64)f * max_spots + c);
			double d, spread;
			struct box box;

			box.n = box.sum = box.square = 0;
			for (i = 0; i < a.right - a.left; i++) {
				box.n += column_n[i];
				box.sum += column_sum[i];
				box.square += column_square[i];
			}
			d = (double)maximum * box.n - box.sum;
			spread = box.n * box.square - box.sum * box.sum;
			row[0] = (float)module;
			row[1] = (float)(y / sum + 0.5);
			row[2] = (float)(x / sum + 0.5);
			row[3] = (float)sum;
			row[4] = sl_spots_strength((float)d, (float)spread, (sl_i32)box.n);
			row[5] = (float)b.pixels;
			row[6] = maximum;
			row[7] = (float)(box.sum / box.n);
		}
		sl_barrier();
	}
}

SL_KERNEL void spots_decide(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL struct sl_kernel_verdict *verdict,
			    sl_u32 items, sl_u32 all, SL_GLOBAL const sl_u32 *blobs, sl_u32 most, sl_u32 least,
			    SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows, sl_u32 rows_at, sl_u32 frames)
{
	sl_u32 f = sl_group(0) * sl_threads() + sl_thread(), n, i;

	if (f >= frames)
		return;
	n = blobs[f];
	found[f] = n;
	rows[rows_at + f] = n < most ? n : most;
	if (!least || !sl_blobs_looks_at(&frame[f], &verdict[f * items], all))
		return;
	for (i = 0; i < frame[f].items; i++)
		sl_kernel_decide(&verdict[f * items + i], n >= least, (float)n, SL_KERNEL_SPOTS);
}
