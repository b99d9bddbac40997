/* peaks.cl - Bragg peaks as peakfinder8 finds them; the GPU side of the stage.
 *
 * A group has a ring: it gathers its pixels into the memory of the group, once, and finds mean, deviation and limits there,
 * without any atomics, so that sums of floats are the same every time. Sums of counts are whole numbers, and so the CPU's,
 * which adds in another order. What must move is the image, two bytes a pixel that come as sectors of 32 from the L2 cache,
 * and the table with four. Strong pixels become blobs (stage/blobs.clh), blobs that stand out peaks. */
#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "gpu/dialect/batch.h"
#include "stage/blobs.clh"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "stage/pixels.clh"
#include "stage/peaks/maths.h"

enum { SL_KERNEL_PEAKS = 6 }; /* SL_REASON_PEAKS */
enum { THREADS = 256, CACHED = 6400 }; /* pixels of a ring that are kept at hand: a whole ring of 4 Mpixels */

struct ring {
	double count, sum, square;
	float mean, lower, upper;
	sl_u32 settled;
};

/* high * 2^64 + low, rounded once, as the CPU's conversion from 128 bits is. */
SL_DEVICE double from_128(sl_u64 high, sl_u64 low)
{
	sl_u32 shift;
	sl_u64 top;

	if (!high)
		return (double)low;
	shift = (sl_u32)sl_clz64(high);
	top = shift ? high << shift | low >> (64 - shift) : high;
	top |= (low << shift) != 0;
	return (double)top * ((double)((sl_u64)1 << (63 - shift)) * 2);
}

/* n times the variance, times n. */
SL_DEVICE double spread_of(struct ring ring, sl_u32 whole)
{
	double spread;

	if (whole && ring.square < 9007199254740992.0) {
		sl_u64 n = (sl_u64)ring.count, square = (sl_u64)ring.square;
		sl_u64 sum = (sl_u64)(ring.sum < 0 ? -ring.sum : ring.sum);
		sl_u64 low = n * square, less = sum * sum;

		return from_128(sl_high64(n, square) - sl_high64(sum, sum) - (low < less), low - less);
	}
	spread = ring.count * ring.square - ring.sum * ring.sum;
	return spread > 0 ? spread : 0;
}

SL_DEVICE struct ring conclude(struct ring ring, sl_u32 whole, float snr, float threshold)
{
	struct sl_peaks_limits limits;
	double spread;
	float sigma;

	if (!(ring.count > 0)) {
		ring.settled = 1;
		return ring;
	}
	spread = spread_of(ring, whole);
	ring.mean = (float)(ring.sum / ring.count);
	sigma = (float)(sqrt(spread) / ring.count);
	limits = sl_peaks_limits(ring.mean, sigma, snr, threshold);
	ring.lower = limits.lower;
	ring.upper = limits.upper;
	ring.settled = !(spread > 0);
	return ring;
}

/* Groups: of rings, of frames; those of one frame run at about the same time, which keeps it in the L2 cache. */
#define RINGS(NAME, TYPE, SUM, WHOLE, NUMBER)                                                                               \
	SL_DEVICE void reduce_##NAME(SL_LOCAL sl_u32 *count, SL_LOCAL SUM *sum, SL_LOCAL SUM *square)                       \
	{                                                                                                                   \
		sl_u32 t = sl_thread(), step;                                                                               \
                                                                                                                            \
		sl_barrier();                                                                                               \
		for (step = THREADS / 2; step; step /= 2) {                                                                 \
			if (t < step) {                                                                                     \
				count[t] += count[t + step];                                                                \
				sum[t] += sum[t + step];                                                                    \
				square[t] += square[t + step];                                                              \
			}                                                                                                   \
			sl_barrier();                                                                                       \
		}                                                                                                           \
	}                                                                                                                   \
	SL_KERNEL void peaks_rings_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,       \
					  SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 all,      \
					  sl_u64 pixels, SL_GLOBAL const sl_u32 *start, SL_GLOBAL const sl_u32 *index,      \
					  float snr, float threshold, SL_GLOBAL float *mean, SL_GLOBAL float *upper,        \
					  SL_GLOBAL sl_u32 *marked, sl_u32 words)                                           \
	{                                                                                                                   \
		SL_SHARED TYPE cache[CACHED];                                                                               \
		SL_SHARED SUM sums[THREADS];                                                                                \
		SL_SHARED SUM squares[THREADS];                                                                             \
		SL_SHARED sl_u32 counts[THREADS];                                                                           \
		SL_SHARED float limits[4];                                                                                  \
		sl_u32 f = sl_group(1), r = sl_group(0), t = sl_thread(), n = start[r + 1] - start[r], i, k, done = 0;      \
		struct ring ring;                                                                                           \
                                                                                                                            \
		if (!sl_blobs_looks_at(&frame[f], &verdict[f * items], all))                                                \
			return;                                                                                             \
		image += f * pixels;                                                                                        \
		index += start[r];                                                                                          \
		ring.lower = -SL_PEAKS_FIRST_LIMIT;                                                                         \
		ring.upper = SL_PEAKS_FIRST_LIMIT;                                                                          \
		ring.mean = 0;                                                                                              \
		for (i = t; i < n && i < CACHED; i += THREADS)                                                              \
			cache[i] = image[index[i]];                                                                         \
		for (k = 0; k < SL_PEAKS_ITERATIONS && !done; k++) {                                                        \
			SUM sum = 0, square = 0;                                                                            \
			sl_u32 count = 0;                                                                                   \
                                                                                                                            \
			for (i = t; i < n; i += THREADS) {                                                                  \
				TYPE v = i < CACHED ? cache[i] : image[index[i]];                                           \
                                                                                                                            \
				if (sl_is_valid_##NAME(v) && sl_peaks_is_usual((float)v, ring.lower, ring.upper)) {         \
					SUM number = NUMBER(v);                                                             \
                                                                                                                            \
					count++;                                                                            \
					sum += number;                                                                      \
					square += number * number;                                                          \
				}                                                                                           \
			}                                                                                                   \
			counts[t] = count;                                                                                  \
			sums[t] = sum;                                                                                      \
			squares[t] = square;                                                                                \
			reduce_##NAME(counts, sums, squares);                                                               \
			if (t == 0) {                                                                                       \
				ring.count = (double)counts[0];                                                             \
				ring.sum = (double)sums[0];                                                                 \
				ring.square = (double)squares[0];                                                           \
				ring.settled = 0;                                                                           \
				ring = conclude(ring, WHOLE, snr, threshold);                                               \
				if (k == 0 && !counts[0])                                                                   \
					ring.upper = sl_bits_float(0x7f800000);                                             \
				limits[0] = ring.lower;                                                                     \
				limits[1] = ring.upper;                                                                     \
				limits[2] = ring.mean;                                                                      \
				limits[3] = (float)ring.settled;                                                            \
			}                                                                                                   \
			sl_barrier();                                                                                       \
			ring.lower = limits[0];                                                                             \
			ring.upper = limits[1];                                                                             \
			ring.mean = limits[2];                                                                              \
			done = limits[3] > 0;                                                                               \
		}                                                                                                           \
		if (t == 0) {                                                                                               \
			mean[f * sl_groups(0) + r] = ring.mean;                                                             \
			upper[f * sl_groups(0) + r] = ring.upper;                                                           \
		}                                                                                                           \
		marked += (sl_u64)f * words;                                                                                \
		for (i = t; i < n; i += THREADS) {                                                                          \
			TYPE v = i < CACHED ? cache[i] : image[index[i]];                                                   \
                                                                                                                            \
			if (sl_is_valid_##NAME(v) && sl_peaks_is_strong((float)v, ring.upper))                              \
				sl_or(&marked[index[i] >> 5], 1u << (index[i] & 31));                                       \
		}                                                                                                           \
	}

#define AS_WHOLE(v) ((sl_i64)(v))
#define AS_REAL(v)  ((double)(float)(v))

RINGS(u8, sl_u8, sl_i64, 1, AS_WHOLE)
RINGS(u16, sl_u16, sl_i64, 1, AS_WHOLE)
RINGS(i16, sl_i16, sl_i64, 1, AS_WHOLE)
RINGS(u32, sl_u32, double, 1, AS_REAL) /* squares need not fit into 64 bits */
RINGS(f32, float, double, 0, AS_REAL)

/* ---- peaks ---- */

struct middle {
	double row, column, sum;
};

struct around {
	double n, sum, square;
	float brightest;
};

struct image {
	SL_GLOBAL const void *pixel;
	SL_GLOBAL const sl_u16 *ring;
	SL_GLOBAL const float *mean, *upper; /* of the frame */
	sl_u32 dtype, rings;
	sl_i32 rows, columns;
};

enum { TILE = 32 }; /* threads of a group, here */

/* Pixels are fetched by all threads, and added by the first, in order. Weighted by what is above the rings' means, and by
 * all; the brightest pixel. */
SL_DEVICE float weigh(struct image image, SL_GLOBAL const sl_u32 *at, SL_GLOBAL const sl_u32 *member, sl_u32 n,
		      SL_LOCAL float *value, SL_LOCAL float *mean, SL_LOCAL sl_u32 *pixel, struct middle *above,
		      struct middle *raw)
{
	float maximum = sl_bits_float((sl_i32)0xff800000u);
	sl_u32 t = sl_thread(), tile, i;

	above->row = above->column = above->sum = 0;
	raw->row = raw->column = raw->sum = 0;
	for (tile = 0; tile < n; tile += TILE) {
		if (tile + t < n) {
			pixel[t] = at[member[tile + t]];
			value[t] = sl_pixel_or_nan(image.dtype, image.pixel, pixel[t]);
			mean[t] = image.mean[image.ring[pixel[t]]];
		}
		sl_barrier();
		for (i = 0; t == 0 && i < TILE && tile + i < n; i++) {
			double row = (double)(pixel[i] / (sl_u32)image.columns % (sl_u32)image.rows);
			double column = (double)(pixel[i] % (sl_u32)image.columns);
			double weight = (double)value[i], more = weight - (double)mean[i];

			above->row += more * row;
			above->column += more * column;
			above->sum += more;
			raw->row += weight * row;
			raw->column += weight * column;
			raw->sum += weight;
			maximum = value[i] > maximum ? value[i] : maximum;
		}
		sl_barrier();
	}
	above->row /= above->sum;
	above->column /= above->sum;
	raw->row /= raw->sum;
	raw->column /= raw->sum;
	return maximum;
}

/* Of a disc about the pixel `row`, `column` of the module that begins at `first`. */
SL_DEVICE struct around look_around(struct image image, sl_u32 first, sl_i32 row, sl_i32 column, sl_i32 reach,
				    SL_LOCAL float *value)
{
	sl_i32 top = row > reach ? row - reach : 0, left = column > reach ? column - reach : 0;
	sl_i32 bottom = row + reach < image.rows - 1 ? row + reach : image.rows - 1;
	sl_i32 right = column + reach < image.columns - 1 ? column + reach : image.columns - 1;
	sl_i32 wide = right - left + 1, n = wide * (bottom - top + 1), tile, i;
	struct around s;

	s.n = s.sum = s.square = 0;
	s.brightest = sl_bits_float((sl_i32)0xff800000u);
	for (tile = 0; tile < n; tile += TILE) {
		sl_i32 k = tile + (sl_i32)sl_thread(), y = k < n ? top + k / wide : row, x = k < n ? left + k % wide : column;
		sl_u32 at = first + (sl_u32)(y * image.columns + x), ring = image.ring[at];
		float v = sl_bits_float(0x7fc00000);

		if (k < n && (y - row) * (y - row) + (x - column) * (x - column) <= reach * reach && ring < image.rings) {
			v = sl_pixel_or_nan(image.dtype, image.pixel, at);
			if (!sl_peaks_is_background(v, image.upper[ring]))
				v = sl_bits_float(0x7fc00000);
		}
		value[sl_thread()] = v;
		sl_barrier();
		for (i = 0; sl_thread() == 0 && i < TILE; i++) {
			double add = (double)value[i];

			if (!(value[i] == value[i]))
				continue;
			s.n += 1;
			s.sum += add;
			s.square += add * add;
			s.brightest = value[i] > s.brightest ? value[i] : s.brightest;
		}
		sl_barrier();
	}
	return s;
}

/* Candidates that stand out; columns of the result as in src/stage/peaks/peaks.c. Groups: any number, of frames. */
SL_KERNEL void peaks_measure(SL_GLOBAL const void *pixel, sl_u64 frame_bytes, sl_u32 dtype, SL_GLOBAL const sl_u16 *ring,
			     SL_GLOBAL const float *mean, SL_GLOBAL const float *upper, sl_u32 rings, sl_u32 rows,
			     sl_u32 columns, SL_GLOBAL const sl_u32 *marked, SL_GLOBAL const sl_u32 *before, sl_u32 words,
			     sl_u32 most, SL_GLOBAL const sl_u32 *at, SL_GLOBAL sl_u32 *member, SL_GLOBAL sl_u32 *seen,
			     SL_GLOBAL const struct sl_kernel_blob *blob, SL_GLOBAL const sl_u32 *blobs, sl_u32 room,
			     sl_u32 radius, float snr, SL_GLOBAL float *row, SL_GLOBAL sl_u32 *good)
{
	SL_SHARED float value[TILE];
	SL_SHARED float means[TILE];
	SL_SHARED sl_u32 pixels[TILE];
	SL_SHARED sl_i32 place[3];
	sl_u32 f = sl_group(1), c;
	struct sl_kernel_modules m;
	struct image image;

	m.rows = rows;
	m.columns = columns;
	m.most = most;
	m.marked = marked + (sl_u64)f * words;
	m.before = before + (sl_u64)f * words;
	image.pixel = (SL_GLOBAL const void *)((SL_GLOBAL const sl_u8 *)pixel + f * frame_bytes);
	image.ring = ring;
	image.mean = mean + f * rings;
	image.upper = upper + f * rings;
	image.dtype = dtype;
	image.rings = rings;
	image.rows = (sl_i32)rows;
	image.columns = (sl_i32)columns;
	at += (sl_u64)f * most;
	member += (sl_u64)f * most;
	seen += (sl_u64)f * most;
	for (c = sl_group(0); c < blobs[f]; c += sl_groups(0)) {
		struct sl_kernel_blob b = blob[(sl_u64)f * room + c];
		struct middle above, raw;
		struct around s;
		sl_u32 begin = at[b.begin], first;
		float maximum;

		sl_blobs_flood(m, at, member, seen, b, pixels);
		maximum = weigh(image, at, member + b.member, b.pixels, value, means, pixels, &above, &raw);
		if (sl_thread() == 0) {
			place[0] = above.sum > 0 && raw.sum > 0;
			place[1] = place[0] ? (sl_i32)sl_to_nearest64(above.row) : 0;
			place[2] = place[0] ? (sl_i32)sl_to_nearest64(above.column) : 0;
		}
		sl_barrier();
		first = begin - begin % (rows * columns);
		s = look_around(image, first, place[1], place[2], 2 * (sl_i32)radius, value);
		if (sl_thread() == 0) {
			float sigma = SL_PEAKS_LEAST_SIGMA, background, net, ratio;

			if (s.n > 0) {
				background = (float)(s.sum / s.n);
				sigma = sl_peaks_sigma((float)((s.n * s.square - s.sum * s.sum) / (s.n * s.n)));
			} else {
				sl_u32 there = ring[first + (sl_u32)place[1] * columns + (sl_u32)place[2]];

				background = image.mean[there < rings ? there : ring[begin]];
			}
			net = (float)(raw.sum - (double)b.pixels * (double)background);
			ratio = sl_peaks_snr(net, sigma);
			good[(sl_u64)f * room + c] = place[0] && sl_peaks_stands_out(ratio, snr, maximum, s.brightest) &&
						     raw.row >= 0 && raw.row <= (double)(rows - 1) && raw.column >= 0 &&
						     raw.column <= (double)(columns - 1);
			row[8 * ((sl_u64)f * room + c)] = (float)(begin / (rows * columns));
			row[8 * ((sl_u64)f * room + c) + 1] = (float)(raw.row + 0.5);
			row[8 * ((sl_u64)f * room + c) + 2] = (float)(raw.column + 0.5);
			row[8 * ((sl_u64)f * room + c) + 3] = net;
			row[8 * ((sl_u64)f * room + c) + 4] = ratio;
			row[8 * ((sl_u64)f * room + c) + 5] = (float)b.pixels;
			row[8 * ((sl_u64)f * room + c) + 6] = maximum;
			row[8 * ((sl_u64)f * room + c) + 7] = background;
		}
		sl_barrier();
	}
}

SL_KERNEL void peaks_place(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL struct sl_kernel_verdict *verdict,
			   sl_u32 items, sl_u32 all, SL_GLOBAL const sl_u32 *blobs, sl_u32 room,
			   SL_GLOBAL const float *row, SL_GLOBAL const sl_u32 *good, sl_u32 most, sl_u32 least,
			   SL_GLOBAL float *peaks, SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows, sl_u32 rows_at)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];

	sl_blobs_place(frame, verdict, items, all, blobs, room, row, good, most, least, SL_KERNEL_PEAKS, peaks, found, rows,
		       rows_at, shared);
}
