/* radial.cl - pixels that stand out of the background at their distance from the beam; GPU side of
 * src/stage/sparse/radial.c, sums.c and scan.c.
 *
 * A group has a bin: it gathers its pixels into the memory of the group and goes through all rounds of clipping there. A
 * second kernel then reads the image once more, with the bins, and leaves bits and counts as the one by threshold does, of
 * which sparse_write_*() makes lists. Sums of counts are whole numbers, and so the CPU's; those of norms and floats are
 * doubles that are added in another order. */
#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/picked.clh"
#include "stage/radial_maths.h"
#include "stage/sparse/maths.h"

enum { THREADS = 256, CACHE_BYTES = 22400, ROUNDS = 16 }; /* ROUNDS: SL_SPARSE_CYCLES */

SL_DEVICE sl_u32 looks_at(SL_GLOBAL const struct sl_kernel_frame *frame,
			  SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 rejected)
{
	return rejected ? !(frame->flags & SL_KERNEL_DARK) : (sl_u32)sl_kernel_has_image(frame, verdict);
}

/* Groups: of bins, of frames. norm: in the order of index; unit: all are 1, and need not be read; cutoff: for each number of pixels that a bin may have left. */
#define BINS(NAME, TYPE, SUM, SIGNAL, VARIANCE)                                                                             \
	SL_DEVICE void reduce_##NAME(SL_LOCAL sl_u32 *valid, SL_LOCAL sl_u32 *clipped, SL_LOCAL SUM *signal,                \
				     SL_LOCAL SUM *variance, SL_LOCAL double *norm)                                         \
	{                                                                                                                   \
		sl_u32 t = sl_thread(), step;                                                                               \
                                                                                                                            \
		sl_barrier();                                                                                               \
		for (step = THREADS / 2; step; step /= 2) {                                                                 \
			if (t < step) {                                                                                     \
				valid[t] += valid[t + step];                                                                \
				clipped[t] += clipped[t + step];                                                            \
				signal[t] += signal[t + step];                                                              \
				variance[t] += variance[t + step];                                                          \
				norm[t] += norm[t + step];                                                                  \
			}                                                                                                   \
			sl_barrier();                                                                                       \
		}                                                                                                           \
	}                                                                                                                   \
	SL_KERNEL void sparse_bins_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,       \
					  SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 rejected, \
					  sl_u64 pixels, SL_GLOBAL const sl_u32 *start, SL_GLOBAL const sl_u32 *index,      \
					  SL_GLOBAL const float *norm, sl_u32 unit, SL_GLOBAL const float *cutoff, sl_u32 cycle, \
					  float photon, SL_GLOBAL float *average, SL_GLOBAL float *sigma)                   \
	{                                                                                                                   \
		SL_SHARED TYPE cache[CACHE_BYTES / sizeof(TYPE)];                                                           \
		SL_SHARED SUM signals[THREADS];                                                                             \
		SL_SHARED SUM variances[THREADS];                                                                           \
		SL_SHARED double norms[THREADS];                                                                            \
		SL_SHARED sl_u32 valids[THREADS];                                                                           \
		SL_SHARED sl_u32 clippeds[THREADS];                                                                         \
		SL_SHARED float middle[ROUNDS + 1];                                                                         \
		SL_SHARED float cut[ROUNDS + 1];                                                                            \
		const sl_u32 cached = CACHE_BYTES / sizeof(TYPE);                                                           \
		sl_u32 f = sl_group(1), b = sl_group(0), t = sl_thread(), n = start[b + 1] - start[b], left = n;            \
		sl_u32 i, round, k, active = 1;                                                                             \
		float mean = 0, deviation = 0;                                                                              \
                                                                                                                            \
		average += (sl_u64)f * sl_groups(0) + b;                                                                    \
		sigma += (sl_u64)f * sl_groups(0) + b;                                                                      \
		if (!looks_at(&frame[f], &verdict[f * items], rejected)) {                                                  \
			if (t == 0)                                                                                         \
				*average = *sigma = 0;                                                                      \
			return;                                                                                             \
		}                                                                                                           \
		image += f * pixels;                                                                                        \
		index += start[b];                                                                                          \
		norm += start[b];                                                                                           \
		for (i = t; i < n && i < cached; i += THREADS)                                                              \
			cache[i] = image[index[i]];                                                                         \
		/* Round 0 clips nothing; each one after it what is outside of the bounds that the one before made. */      \
		for (round = 0; round <= cycle && active; round++) {                                                        \
			SUM signal = 0, variance = 0;                                                                       \
			double weight = 0;                                                                                  \
			sl_u32 valid = 0, clipped = 0;                                                                      \
                                                                                                                            \
			for (i = t; i < n; i += THREADS) {                                                                  \
				TYPE v = i < cached ? cache[i] : image[index[i]];                                           \
				float share = unit ? 1.0f : norm[i], x = unit ? (float)v : (float)v / share;                \
				sl_u32 out = ~0u;                                                                           \
                                                                                                                            \
				if (!sl_is_valid_##NAME(v))                                                                 \
					continue;                                                                           \
				for (k = 0; k < round && out == ~0u; k++)                                                   \
					if (sl_sparse_clips(x, middle[k], cut[k]))                                          \
						out = k;                                                                    \
				clipped += out + 1 == round && round;                                                       \
				if (out != ~0u)                                                                             \
					continue;                                                                           \
				valid++;                                                                                    \
				signal += SIGNAL(v);                                                                        \
				variance += VARIANCE(v);                                                                    \
				weight += (double)share;                                                                    \
			}                                                                                                   \
			valids[t] = valid;                                                                                  \
			clippeds[t] = clipped;                                                                              \
			signals[t] = signal;                                                                                \
			variances[t] = variance;                                                                            \
			norms[t] = weight;                                                                                  \
			reduce_##NAME(valids, clippeds, signals, variances, norms);                                         \
			clipped = clippeds[0];                                                                              \
			if (round && !clipped)                                                                              \
				break;                                                                                      \
			if (round)                                                                                          \
				left = left > clipped + 3 ? left - clipped : 3;                                             \
			active = valids[0] > 0 && norms[0] > 0;                                                             \
			mean = active ? (float)(double)signals[0] / (float)norms[0] : 0;                                    \
			deviation = active ? sl_sqrt((float)(double)variances[0] / (float)norms[0]) : 0;                    \
			sl_barrier();                                                                                       \
			if (t == 0) {                                                                                       \
				middle[round] = mean;                                                                       \
				cut[round] = deviation * cutoff[left];                                                      \
			}                                                                                                   \
			sl_barrier();                                                                                       \
		}                                                                                                           \
		if (t == 0) {                                                                                               \
			*average = mean;                                                                                    \
			*sigma = deviation;                                                                                 \
		}                                                                                                           \
	}

#define WHOLE(v)     ((sl_i64)(v))
#define WHOLE_ONE(v) ((void)photon, (sl_i64)((v) > 1 ? (v) : 1))
#define REAL(v)	     ((double)(v))
#define REAL_ONE(v)  ((double)((v) > photon ? (v) : photon) * (double)photon)

BINS(u8, sl_u8, sl_i64, WHOLE, WHOLE_ONE)
BINS(u16, sl_u16, sl_i64, WHOLE, WHOLE_ONE)
BINS(u32, sl_u32, sl_i64, WHOLE, WHOLE_ONE)
BINS(i16, sl_i16, sl_i64, WHOLE, WHOLE_ONE)
BINS(f32, float, double, REAL, REAL_ONE)

SL_DEVICE float least(SL_GLOBAL const float *array, sl_u32 b, sl_u32 last)
{
	float low = array[b];

	if (b && array[b - 1] < low)
		low = array[b - 1];
	return b < last && array[b + 1] < low ? array[b + 1] : low;
}

/* What a pixel of each bin is above when it is picked, or a little less. Groups: of bins, of frames. */
SL_KERNEL void sparse_above(SL_GLOBAL const float *average, SL_GLOBAL const float *sigma, sl_u32 bins, float noise,
			    float cutoff, SL_GLOBAL float *above)
{
	sl_u32 b = sl_group(0) * sl_threads() + sl_thread();
	sl_u64 f = (sl_u64)sl_group(1) * bins;
	float background, margin;

	if (b >= bins)
		return;
	background = least(average + f, b, bins - 1);
	margin = sl_sparse_margin(least(sigma + f, b, bins - 1), noise, cutoff);
	above[f + b] = background - sl_fabs(background) * 1e-6f + margin * (1 - 1e-6f);
}

struct background {
	SL_GLOBAL const float *average, *sigma; /* of the frame */
	sl_u32 bins;
	float first, step; /* middles of bins */
	float noise, cutoff;
};

SL_DEVICE sl_u32 stands_out(struct background g, float x, float radius)
{
	float position = (radius - g.first) / g.step, part;
	sl_u32 last = g.bins - 1, left, right;

	position = position > 0 ? position : 0;
	left = position < (float)last ? (sl_u32)position : last;
	right = left < last ? left + 1 : last;
	part = position - (float)left;
	return (sl_u32)sl_sparse_picks(x, sl_sparse_between(g.average[left], g.average[right], part),
				       sl_sparse_between(g.sigma[left], g.sigma[right], part), g.noise, g.cutoff);
}

/* As sparse_count_*(). norm, radius: of pixels; unit: all norms are 1, and need not be read. */
#define PICK(NAME, TYPE, BYTES, GET, BAD, OVERLOAD)                                                                         \
	SL_DEVICE sl_u32 is_picked_##NAME(struct background g, TYPE v, sl_u32 b, sl_u64 at, SL_GLOBAL const float *norm,    \
					  SL_GLOBAL const float *radius, SL_GLOBAL const float *above, sl_u32 unit)         \
	{                                                                                                                   \
		float x;                                                                                                    \
                                                                                                                            \
		if (b >= g.bins || (BAD))                                                                                   \
			return 0;                                                                                           \
		if (OVERLOAD)                                                                                               \
			return 1;                                                                                           \
		x = unit ? (float)v : (float)v / norm[at];                                                                  \
		return x > above[b] && stands_out(g, x, radius[at]);                                                        \
	}                                                                                                                   \
	SL_KERNEL void sparse_pick_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,       \
					  SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 rejected, \
					  sl_u64 pixels, sl_u32 wide, SL_GLOBAL const sl_u16 *bin,                          \
					  SL_GLOBAL const float *norm, sl_u32 unit, SL_GLOBAL const float *radius,          \
					  SL_GLOBAL const float *average, SL_GLOBAL const float *sigma,                     \
					  SL_GLOBAL const float *above, sl_u32 bins, float first, float step, float noise,  \
					  float cutoff, SL_GLOBAL sl_u8 *mask, SL_GLOBAL sl_u32 *count)                     \
	{                                                                                                                   \
		SL_SHARED sl_u32 shared[SL_GROUP_MOST];                                                                     \
		sl_u32 f = sl_group(1), run = sl_group(0), t = sl_thread(), n = 0, j, i;                                    \
		sl_u64 at = (sl_u64)run * SL_RUN + 8 * t;                                                                   \
		struct background g;                                                                                        \
                                                                                                                            \
		if (!looks_at(&frame[f], &verdict[f * items], rejected))                                                    \
			return;                                                                                             \
		g.average = average + (sl_u64)f * bins;                                                                     \
		g.sigma = sigma + (sl_u64)f * bins;                                                                         \
		above += (sl_u64)f * bins;                                                                                  \
		g.bins = bins;                                                                                              \
		g.first = first;                                                                                            \
		g.step = step;                                                                                              \
		g.noise = noise;                                                                                            \
		g.cutoff = cutoff;                                                                                          \
		image += f * pixels;                                                                                        \
		mask += ((sl_u64)f * sl_groups(0) + run) * (SL_RUN / 8);                                                    \
		for (j = 0; j < 4; j++, at += SL_RUN / 4) {                                                                 \
			sl_u32 bits = 0;                                                                                    \
                                                                                                                            \
			if (wide && at + 8 <= pixels) {                                                                     \
				struct sl_eight all = sl_eight_##BYTES(image + at), in = sl_eight_2(bin + at);              \
                                                                                                                            \
				for (i = 0; i < 8; i++)                                                                     \
					bits |= is_picked_##NAME(g, GET(all, i), SL_EIGHT_U16(in, i), at + i, norm, radius, \
								 above, unit)                                               \
						<< i;                                                                       \
			} else {                                                                                            \
				for (i = 0; i < 8 && at + i < pixels; i++)                                                  \
					bits |= is_picked_##NAME(g, image[at + i], bin[at + i], at + i, norm, radius,       \
								 above, unit)                                               \
						<< i;                                                                       \
			}                                                                                                   \
			mask[t + j * SL_RUN_THREADS] = (sl_u8)bits;                                                         \
			n += (sl_u32)sl_popcount(bits);                                                                     \
		}                                                                                                           \
		n = sl_group_sum(shared, n);                                                                                \
		if (t == 0)                                                                                                 \
			count[f * sl_groups(0) + run] = n;                                                                  \
	}

#define MOST_FLOAT sl_bits_float(0x7f7fffff)

PICK(u8, sl_u8, 1, SL_EIGHT_U8, v == 0xff, 0)
PICK(u16, sl_u16, 2, SL_EIGHT_U16, v == 0xffff, 0)
PICK(u32, sl_u32, 4, SL_EIGHT_U32, v == 0xffffffffu, 0)
PICK(i16, sl_i16, 2, SL_EIGHT_I16, v == -32768, v == 32767)
PICK(f32, float, 4, SL_EIGHT_F32, !(v >= -MOST_FLOAT), v > MOST_FLOAT)
