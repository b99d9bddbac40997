/* integrate.cl - profiles and cakes; the GPU side of the stage. Tables: kernel.h.
 *
 * What must move: each image once, and tables once per eight frames of 16 bits: 2 bytes per entry, 6 where pixels are
 * split. Sums of pieces, 16 bytes per frame or more, are about a thirtieth of the entries of a profile. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/double.clh"
#include "gpu/dialect/eight.clh"
#include "stage/integrate/kernel.h"
#include "stage/radial_maths.h"

/* ---- which frames ---- */

/* Axes of all frames, zeros for dark ones, and in `live` how many frames are to be looked at, and which. Group 0: of
 * cells, 1: of frames. */
SL_KERNEL void integrate_begin(struct sl_kernel_conclude c, SL_GLOBAL const struct sl_kernel_frame *frame,
			       SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 frames,
			       SL_GLOBAL const float *axis, SL_GLOBAL float *radius, SL_GLOBAL float *azimuth,
			       SL_GLOBAL float *intensity, SL_GLOBAL float *sigma, SL_GLOBAL sl_u32 *live)
{
	SL_SHARED sl_u32 is_live[SL_CONCLUDE_THREADS];
	sl_u32 t = sl_thread(), i = sl_group(0) * sl_threads() + t, f = sl_group(1), n = 0, at, k;

	if (i < c.bins)
		radius[(sl_u64)f * c.radius_stride + i] = axis[i];
	if (i < c.sectors)
		azimuth[(sl_u64)f * c.sectors + i] = axis[c.bins + i];
	if (i < c.cells && frame[f].flags & SL_KERNEL_DARK) {
		intensity[(sl_u64)f * c.stride + c.intensity_at + i] = 0;
		sigma[(sl_u64)f * c.stride + c.sigma_at + i] = 0;
	}
	if (sl_group(0) || sl_group(1))
		return;
	for (at = 0; at < frames; at += sl_threads()) {
		sl_u32 left = frames - at < sl_threads() ? frames - at : sl_threads(), before = 0, all = 0;

		is_live[t] = t < left && sl_kernel_is_seen(&frame[at + t], &verdict[(at + t) * items]);
		sl_barrier();
		for (k = 0; k < left; k++) {
			before += k < t ? is_live[k] : 0;
			all += is_live[k];
		}
		if (is_live[t])
			live[1 + n + before] = at + t;
		n += all;
		sl_barrier();
	}
	if (t == 0)
		live[0] = n;
}

/* How many frames from c.first on. */
SL_DEVICE sl_u32 frames_of(sl_u32 live, sl_u32 first, sl_u32 most)
{
	sl_u32 left = live > first ? live - first : 0;

	return left < most ? left : most;
}

/* ---- a tile ---- */

SL_DEVICE sl_u64 module_at(struct sl_kernel_integrate c, SL_GLOBAL const struct sl_kernel_view *view, sl_u32 f,
			   sl_u32 module, const sl_u32 bytes)
{
	return c.raw ? view[f * c.modules + module].at : ((sl_u64)f * c.modules + module) * c.module_pixels * bytes;
}

/* Pixels of `words` words of frames, the first of them number `first`; all loads are on their way before one is used. A
 * pixel of a missing module is `fill`, which is no measurement. */
SL_DEVICE void fill_tile(SL_LOCAL sl_u32 *pixels, struct sl_kernel_integrate c, struct sl_kernel_tile tile,
			 SL_GLOBAL const sl_u8 *image, SL_GLOBAL const struct sl_kernel_frame *frame,
			 SL_GLOBAL const struct sl_kernel_view *view, SL_GLOBAL const sl_u32 *live, sl_u32 first,
			 sl_u32 frames, sl_u32 words, const sl_u32 bytes, const sl_u32 grain, sl_u32 fill)
{
	struct sl_eight in[4 * SL_TILE_WORDS];
	sl_u32 t = sl_thread(), row = tile.row + t / 8, column = tile.column + t % 8 * 8, w, l, k;
	sl_u32 n = row >= c.rows || column >= c.columns ? 0 : c.columns - column < 8 ? c.columns - column : 8;
	sl_u64 at = ((sl_u64)row * c.columns + column) * bytes;

#pragma unroll
	for (w = 0; w < SL_TILE_WORDS * 4 / bytes; w++) {
		sl_u32 is = n && w < words * (4 / bytes) && first + w < frames;
		sl_u32 f = is ? live[1 + c.first + first + w] : 0;
		sl_u32 is_missing = is && frame[f].missing >> tile.module & 1;

#pragma unroll
		for (k = 0; k < 2 * bytes; k++)
			in[w].word[k] = is_missing ? fill : 0;
		if (is && !is_missing)
			in[w] = sl_eight_load(image + module_at(c, view, f, tile.module, bytes) + at, bytes, grain, n);
	}
#pragma unroll
	for (w = 0; w < SL_TILE_WORDS; w++)
#pragma unroll
		for (k = 0; k < 8 && w < words; k++) {
			sl_u32 word = 0;

#pragma unroll
			for (l = 0; l < 4 / bytes; l++)
				word |= sl_eight_pixel(&in[w * (4 / bytes) + l], k, bytes) << 8 * bytes * l;
			pixels[sl_tile_word(sl_tile_place(t / 8, t % 8 * 8 + k), w)] = word;
		}
}

#define FILL_TILE(BYTES, GRAIN, FILL)                                                                                      \
	fill_tile(pixels, c, tile, image, frame, view, live, first, frames, words, BYTES, GRAIN, FILL)

/* For pixels of BYTES with VALUE of frame l in WORD, which may be no measurement (then the bits are FILL), added up in a
 * piece as PART and in memory as SUM; SPLIT: entries are shares. Group 0: of tiles, 1: of passes over so many frames. */
#define TILES(NAME, BYTES, FILL, WIDE, VALUE, VALID, LEAST, PART, SUM, SPLIT)                                                \
	SL_KERNEL void NAME(struct sl_kernel_integrate c, SL_GLOBAL const sl_u8 *image,                                      \
			    SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_view *view,      \
			    SL_GLOBAL const sl_u32 *live, SL_GLOBAL const struct sl_kernel_tile *tiles,                      \
			    SL_GLOBAL const struct sl_kernel_piece *pieces, SL_GLOBAL const sl_u16 *places,                  \
			    SL_GLOBAL const sl_u32 *shares, SL_GLOBAL const sl_i64 *norm, SL_GLOBAL const double *dark,      \
			    SL_GLOBAL SUM *signals, SL_GLOBAL SUM *variances, SL_GLOBAL sl_i64 *missing,                     \
			    SL_GLOBAL double *darks)                                                                         \
	{                                                                                                                    \
		SL_SHARED sl_u32 pixels[SL_TILE_WORDS * SL_TILE_PIXELS];                                                     \
		const sl_u32 members = 4 / BYTES;                                                                              \
		sl_u32 frames = frames_of(live[0], c.first, c.most), all = (frames + members - 1) / members;                     \
		sl_u32 passes = (all + SL_TILE_WORDS - 1) / SL_TILE_WORDS;                                                   \
		sl_u32 words = passes ? (all + passes - 1) / passes : 0, first = sl_group(1) * words * members, item;          \
		struct sl_kernel_tile tile = tiles[sl_group(0)];                                                             \
                                                                                                                             \
		if (first >= frames)                                                                                         \
			return;                                                                                              \
		if (c.grain == 16 && BYTES > 1)                                                                              \
			FILL_TILE(BYTES, 16, FILL);                                                                          \
		else if (c.grain == 8)                                                                                       \
			FILL_TILE(BYTES, 8, FILL);                                                                           \
		else if (c.grain == 4 || BYTES == 4)                                                                         \
			FILL_TILE(BYTES, 4, FILL);                                                                           \
		else                                                                                                         \
			FILL_TILE(BYTES, 0, FILL);                                                                           \
		sl_barrier();                                                                                                \
		for (item = sl_thread(); item < tile.pieces * words; item += sl_threads()) {                                 \
			struct sl_kernel_piece piece = pieces[tile.first + item / words];                                    \
			sl_u32 w = item % words, i, k, l, is_bad = 0;                                                        \
			sl_u64 from = (sl_u64)piece.first * 8;                                                               \
			PART signal[4 / BYTES], variance[4 / BYTES];                                                         \
                                                                                                                             \
			_Pragma("unroll") for (l = 0; l < members; l++)                                                        \
				signal[l] = variance[l] = 0;                                                                 \
			for (i = 0; i < piece.count; i += 8) {                                                               \
				sl_u32x4 eight = *(SL_GLOBAL const sl_u32x4 *)(places + from + i);                           \
				sl_u32 two[4];                                                                               \
                                                                                                                             \
				two[0] = eight.x;                                                                            \
				two[1] = eight.y;                                                                            \
				two[2] = eight.z;                                                                            \
				two[3] = eight.w;                                                                            \
				_Pragma("unroll") for (k = 0; k < 8; k++)                                                    \
				{                                                                                            \
					sl_u32 place = two[k / 2] >> 16 * (k & 1) & 0xffff, is = i + k < piece.count;         \
					sl_u32 share = SPLIT ? shares[from + i + k] : 1;                                     \
					sl_u32 square = SPLIT ? sl_share_square(share, c.bits) : 1;                          \
					sl_u32 word = pixels[sl_tile_word(place, w)];                                        \
                                                                                                                             \
					_Pragma("unroll") for (l = 0; l < members; l++)                                        \
					{                                                                                    \
						WIDE v = VALUE(word, l);                                                     \
						sl_u32 valid = VALID(v), adds = valid && is;                                 \
                                                                                                                             \
						signal[l] += adds ? (PART)v * (PART)share : (PART)0;                         \
						variance[l] +=                                                               \
							adds ? (PART)(v > (LEAST) ? v : (LEAST)) * (PART)square : (PART)0;   \
						is_bad |= is && !valid;                                                      \
					}                                                                                    \
				}                                                                                            \
			}                                                                                                    \
			_Pragma("unroll") for (l = 0; l < members; l++)                                                        \
			{                                                                                                    \
				sl_u32 f = first + w * members + l;                                                            \
				sl_u64 to = (sl_u64)piece.rank * c.most + f;                                                 \
				sl_i64 less = 0;                                                                             \
				double less_dark = 0;                                                                        \
                                                                                                                             \
				if (f >= frames)                                                                             \
					continue;                                                                            \
				for (i = 0; is_bad && i < piece.count; i++) {                                                \
					sl_u32 word = pixels[sl_tile_word(places[from + i], w)];                             \
					WIDE v = VALUE(word, l);                                                             \
                                                                                                                             \
					if (VALID(v))                                                                        \
						continue;                                                                    \
					less += norm[from + i];                                                              \
					if (c.has_dark)                                                                      \
						less_dark += dark[from + i];                                                 \
				}                                                                                            \
				signals[to] = (SUM)signal[l];                                                                \
				missing[to] = less;                                                                          \
				if (c.two)                                                                                   \
					variances[to] = (SUM)variance[l];                                                    \
				if (c.has_dark)                                                                              \
					darks[to] = less_dark;                                                               \
			}                                                                                                    \
		}                                                                                                            \
	}

#define U8(word, l)   ((sl_i32)((word) >> 8 * (l) & 0xff))
#define U16(word, l)  ((sl_i32)((word) >> 16 * (l) & 0xffff))
#define I16(word, l)  ((sl_i32)(sl_i16)((word) >> 16 * (l)))
#define U32(word, l)  (word)
#define F32(word, l)  sl_bits_float((sl_i32)(word))
#define IS_U8(v)      sl_is_valid_u8((sl_u8)(v))
#define IS_U16(v)     sl_is_valid_u16((sl_u16)(v))
#define IS_I16(v)     sl_is_valid_i16((sl_i16)(v))
#define IS_U32(v)     sl_is_valid_u32(v)
#define IS_F32(v)     sl_is_valid_f32(v)
#define LEAST	      c.least
#define LEAST_U32     (sl_u32)c.least
#define LEAST_F32     c.least_f32

/* A piece of whole pixels of 16 bits fits into 32. */
TILES(integrate_u8_once, 1, 0xffffffff, sl_i32, U8, IS_U8, LEAST, sl_i32, sl_i64, 0)
TILES(integrate_u16_once, 2, 0xffffffff, sl_i32, U16, IS_U16, LEAST, sl_i32, sl_i64, 0)
TILES(integrate_i16_once, 2, 0x80008000, sl_i32, I16, IS_I16, LEAST, sl_i32, sl_i64, 0)
TILES(integrate_u32_once, 4, 0xffffffff, sl_u32, U32, IS_U32, LEAST_U32, sl_i64, sl_i64, 0)
TILES(integrate_f32_once, 4, 0xffffffff, float, F32, IS_F32, LEAST_F32, double, double, 0)
TILES(integrate_u8_split, 1, 0xffffffff, sl_i32, U8, IS_U8, LEAST, sl_i64, sl_i64, 1)
TILES(integrate_u16_split, 2, 0xffffffff, sl_i32, U16, IS_U16, LEAST, sl_i64, sl_i64, 1)
TILES(integrate_i16_split, 2, 0x80008000, sl_i32, I16, IS_I16, LEAST, sl_i64, sl_i64, 1)
TILES(integrate_u32_split, 4, 0xffffffff, sl_u32, U32, IS_U32, LEAST_U32, double, double, 1)
TILES(integrate_f32_split, 4, 0xffffffff, float, F32, IS_F32, LEAST_F32, double, double, 1)

/* ---- what comes of it ---- */

/* c.slices threads add up a cell's sums of a frame, each every so many; the first of them brings these together. */
#define CONCLUDE(NAME, SUM)                                                                                                 \
	SL_KERNEL void NAME(struct sl_kernel_conclude c, SL_GLOBAL const sl_u32 *live, SL_GLOBAL const sl_u32 *rank,        \
			    SL_GLOBAL const SUM *signals, SL_GLOBAL const SUM *variances, SL_GLOBAL const sl_i64 *missing,  \
			    SL_GLOBAL const double *darks, SL_GLOBAL const sl_i64 *total,                                  \
			    SL_GLOBAL const double *dark_total, double norm_unit, double photon,                           \
			    SL_GLOBAL float *intensity, SL_GLOBAL float *sigma)                                            \
	{                                                                                                                   \
		SL_SHARED SUM signal[SL_CONCLUDE_THREADS], variance[SL_CONCLUDE_THREADS];                                   \
		SL_SHARED sl_i64 less[SL_CONCLUDE_THREADS];                                                                 \
		SL_SHARED double less_dark[SL_CONCLUDE_THREADS];                                                            \
		sl_u32 frames = frames_of(live[0], c.first, c.most), per = sl_threads() / c.slices, t = sl_thread();        \
		sl_u64 item = (sl_u64)sl_group(0) * per + t % per;                                                          \
		sl_u32 is = item < (sl_u64)c.cells * frames, cell = is ? (sl_u32)(item / frames) : 0;                       \
		sl_u32 f = is ? (sl_u32)(item % frames) : 0, r, last = is ? rank[cell + 1] : 0;                             \
		double whole = (double)(1u << c.bits), value, spread, norm, gone = 0;                                       \
		SUM s = 0, v = 0;                                                                                           \
		sl_i64 m = 0;                                                                                               \
                                                                                                                            \
		for (r = is ? rank[cell] + t / per : 0; r < last; r += c.slices) {                                          \
			sl_u64 at = (sl_u64)r * c.most + f;                                                                 \
                                                                                                                            \
			s += signals[at];                                                                                   \
			m += missing[at];                                                                                   \
			if (c.two)                                                                                          \
				v += variances[at];                                                                         \
			if (c.has_dark)                                                                                     \
				gone += darks[at];                                                                          \
		}                                                                                                           \
		signal[t] = s;                                                                                              \
		variance[t] = v;                                                                                            \
		less[t] = m;                                                                                                \
		less_dark[t] = gone;                                                                                        \
		sl_barrier();                                                                                               \
		if (!is || t >= per)                                                                                        \
			return;                                                                                             \
		for (r = t + per; r < sl_threads(); r += per) {                                                             \
			s += signal[r];                                                                                     \
			v += variance[r];                                                                                   \
			m += less[r];                                                                                       \
			gone += less_dark[r];                                                                               \
		}                                                                                                           \
		value = (double)s;                                                                                          \
		spread = (double)(c.two ? v : s);                                                                           \
		if (c.has_dark)                                                                                             \
			value -= (dark_total[cell] - gone) * whole;                                                         \
		m = total[cell] - m;                                                                                        \
		norm = m > 0 ? (double)m * norm_unit : SL_NAN;                                   \
		item = (sl_u64)live[1 + c.first + f] * c.stride + cell;                                                     \
		intensity[item + c.intensity_at] = (float)(value / whole / norm);                                           \
		sigma[item + c.sigma_at] = (float)(sqrt(fabs(spread / whole) * photon) / norm);                             \
	}

CONCLUDE(integrate_conclude_whole, sl_i64)
CONCLUDE(integrate_conclude_real, double)
