/* correct.cl - raw pixels become photons or keV, and dark frames pedestals; the GPU side of the stage.
 *
 * A thread has `vector` pixels of one module and goes over all frames of the batch with them, in order: tables are read once,
 * and a bright frame sees the dark ones before it. Tables lie as in src/stage/correct/correct.h. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/dialect.clh"
#include "stage/correct/maths.h"

struct sl_pixel_tables {
	SL_GLOBAL const float *factor;
	SL_GLOBAL const float *other; /* [pixels]: pedestal of G1, G2, factor of G1, G2 */
	SL_GLOBAL float *pedestal, *sum, *spread;
	SL_GLOBAL sl_u16 *samples, *wrong;
};

SL_DEVICE float bad(void)
{
	return sl_bits_float(0x7fc00000);
}

/* A pixel that is not in G0. */
SL_DEVICE float other_gain(SL_GLOBAL const float *other, sl_u16 raw)
{
	int kind = sl_raw_kind(raw);

	if (kind == SL_RAW_IS_OVERLOAD)
		return sl_raw_overload(other[0], other[1], other[2], other[3]);
	if (kind == SL_RAW_IS_BAD)
		return bad();
	return sl_raw_energy(raw, other[kind - 1], other[kind + 1]);
}

SL_DEVICE void learn(const struct sl_pixel_tables *t, sl_u64 at, sl_u16 raw, sl_u32 darks, float noise_squared,
		     sl_u32 noise_samples)
{
	struct sl_pedestal p;

	p.sum = t->sum[at];
	p.spread = t->spread[at];
	p.samples = t->samples[at];
	p.wrong = t->wrong[at];
	p = sl_pedestal_learn(p, raw, (sl_i32)darks, noise_squared, (sl_i32)noise_samples);
	t->sum[at] = p.sum;
	t->spread[at] = p.spread;
	t->samples[at] = (sl_u16)p.samples;
	t->wrong[at] = (sl_u16)p.wrong;
	t->pedestal[at] = p.pedestal;
}

SL_DEVICE sl_i16 as_photons(float value, sl_u16 raw)
{
	return raw == SL_RAW_OVERLOAD && value == value ? (sl_i16)SL_PHOTONS_OVERLOAD : sl_to_photons(value);
}

SL_DEVICE float value_of(sl_u16 raw, float pedestal, float factor, SL_GLOBAL const float *other)
{
	return raw & SL_RAW_GAIN ? other_gain(other, raw) : ((float)raw - pedestal) * factor;
}

#define PARAMETERS(TYPE)                                                                                              \
	SL_GLOBAL const sl_u16 *raw, SL_GLOBAL const struct sl_kernel_frame *frame,                                   \
		SL_GLOBAL const struct sl_kernel_view *view, sl_u32 frames, sl_u32 modules, sl_u64 module_pixels,    \
		SL_GLOBAL TYPE *out, SL_GLOBAL const float *factor, SL_GLOBAL const float *other,                    \
		sl_u64 other_pixels, SL_GLOBAL float *pedestal, SL_GLOBAL float *sum, SL_GLOBAL float *spread,       \
		SL_GLOBAL sl_u16 *samples, SL_GLOBAL sl_u16 *wrong, sl_u32 cells, sl_u32 darks, float noise_squared, \
		sl_u32 noise_samples

#define TABLES                                                                                     \
	struct sl_pixel_tables t;                                                                  \
	t.factor = factor;                                                                         \
	t.other = other;                                                                           \
	t.pedestal = pedestal;                                                                     \
	t.sum = sum;                                                                               \
	t.spread = spread;                                                                         \
	t.samples = samples;                                                                       \
	t.wrong = wrong;

/* One pixel per thread: modules of any size. */
#define ONE(NAME, TYPE, MAKE, BAD)                                                                                     \
	SL_KERNEL void NAME(PARAMETERS(TYPE))                                                                          \
	{                                                                                                              \
		sl_u64 pixels = modules * module_pixels;                                                               \
		sl_u64 at = (sl_u64)sl_group(0) * sl_threads() + sl_thread();                                          \
		sl_u32 module, f;                                                                                      \
		TABLES                                                                                                 \
                                                                                                                       \
		if (at >= pixels)                                                                                      \
			return;                                                                                        \
		module = (sl_u32)(at / module_pixels);                                                                 \
		for (f = 0; f < frames; f++) {                                                                         \
			struct sl_kernel_view v = view[f * modules + module];                                          \
			sl_u64 in_cell = at + v.cell * pixels;                                                         \
			sl_u16 pixel = raw[v.at / 2 + (at - module * module_pixels)];                                  \
                                                                                                                       \
			if (frame[f].flags & SL_KERNEL_DARK) {                                                         \
				if (v.cell < cells && !v.missing)                                                      \
					learn(&t, in_cell, pixel, darks, noise_squared, noise_samples);                \
			} else if (v.cell < cells) {                                                                   \
				out[f * pixels + at] = MAKE(value_of(pixel, t.pedestal[in_cell], t.factor[at],         \
								     other + 4 * (v.cell * other_pixels + at)), pixel); \
			} else {                                                                                       \
				out[f * pixels + at] = BAD;                                                            \
			}                                                                                              \
		}                                                                                                      \
	}

#define KEEP(value, raw) (value)

ONE(correct_photons_1, sl_i16, as_photons, SL_PHOTONS_BAD)
ONE(correct_float_1, float, KEEP, bad())

/* Frames of a batch in which bright pixels can be counted on the way; src/stage/correct/gpu.c knows it, too. */
enum { SL_COUNT_FRAMES = 64 };

/* Eight pixels per thread, 16 bytes of raw pixels at a time. Pixels with at least `threshold` photons are counted, for a
 * veto that need then not read the image again: they are few, so that threads seldom meet. */
SL_KERNEL void correct_photons_8(PARAMETERS(sl_i16), sl_i32 threshold, SL_GLOBAL sl_u32 *count)
{
	SL_SHARED sl_u32 bright[SL_COUNT_FRAMES];
	sl_u32 c;

	sl_u64 pixels = modules * module_pixels;
	sl_u64 at = 8 * ((sl_u64)sl_group(0) * sl_threads() + sl_thread());
	float p[8], g[8];
	sl_u32 module, f, i, loaded = ~0u;
	TABLES

	for (c = sl_thread(); c < SL_COUNT_FRAMES; c += sl_threads())
		bright[c] = 0;
	sl_barrier();
	module = (sl_u32)(at / module_pixels);
	for (i = 0; i < 8 && at < pixels; i++)
		g[i] = factor[at + i];
	for (f = 0; f < frames && at < pixels; f++) {
		struct sl_kernel_view v = view[f * modules + module];
		sl_u64 in_cell = at + v.cell * pixels;
		SL_GLOBAL const sl_u16 *from = raw + v.at / 2 + (at - module * module_pixels);
		sl_u32x4 in = *(SL_GLOBAL const sl_u32x4 *)from;
		sl_u32 word[4], made[4], n = 0;

		word[0] = in.x;
		word[1] = in.y;
		word[2] = in.z;
		word[3] = in.w;
		if (frame[f].flags & SL_KERNEL_DARK) {
			for (i = 0; i < 8 && v.cell < cells && !v.missing; i++)
				learn(&t, in_cell + i, (sl_u16)(word[i / 2] >> 16 * (i & 1)), darks, noise_squared,
				      noise_samples);
			loaded = ~0u;
			continue;
		}
		if (v.cell < cells && loaded != v.cell) {
			for (i = 0; i < 8; i++)
				p[i] = pedestal[in_cell + i];
			loaded = v.cell;
		}
		for (i = 0; i < 8; i++) {
			sl_u16 pixel = (sl_u16)(word[i / 2] >> 16 * (i & 1));
			sl_u32 photons = (sl_u16)SL_PHOTONS_BAD;

			if (v.cell < cells)
				photons = (sl_u16)as_photons(
					value_of(pixel, p[i], g[i], other + 4 * (v.cell * other_pixels + at + i)), pixel);
			n += (sl_i32)(sl_i16)photons >= threshold;
			made[i / 2] = i & 1 ? made[i / 2] | photons << 16 : photons;
		}
		*(SL_GLOBAL sl_u32x4 *)(out + f * pixels + at) = sl_u32x4_make(made[0], made[1], made[2], made[3]);
		if (n)
			sl_add_local(&bright[f % SL_COUNT_FRAMES], n);
	}
	sl_barrier();
	for (c = sl_thread(); c < SL_COUNT_FRAMES; c += sl_threads())
		if (bright[c])
			sl_add(&count[c], bright[c]);
}

/* ---- bright frames, all in one cell: most batches ---- */

/* Frames whose pixels are asked for before the first is worked on: memory is far away. Small groups, of which neighbours share
 * the frames of the same pixels in `parts`, end in small steps: large ones leave half of the device idle at the end. (H200: 8 %
 * less time than groups of 256 threads with all frames.) */
enum { SL_AHEAD = 5 };

/* Eight floats of a table, on 32 bytes. */
SL_DEVICE void eight(SL_GLOBAL const float *from, float *to)
{
	sl_u32x4 a = *(SL_GLOBAL const sl_u32x4 *)from, b = *(SL_GLOBAL const sl_u32x4 *)(from + 4);

	to[0] = sl_bits_float((sl_i32)a.x);
	to[1] = sl_bits_float((sl_i32)a.y);
	to[2] = sl_bits_float((sl_i32)a.z);
	to[3] = sl_bits_float((sl_i32)a.w);
	to[4] = sl_bits_float((sl_i32)b.x);
	to[5] = sl_bits_float((sl_i32)b.y);
	to[6] = sl_bits_float((sl_i32)b.z);
	to[7] = sl_bits_float((sl_i32)b.w);
}

/* Two pixels in G0, which most are. */
#define TWO(NAME, MAKE)                                                                                                \
	SL_DEVICE sl_u32 NAME(sl_u32 word, const float *p, const float *g)                                             \
	{                                                                                                              \
		sl_u32 low = (sl_u16)MAKE((sl_small_float(word & 0xffff) - p[0]) * g[0]);                              \
		sl_u32 high = (sl_u16)MAKE((sl_small_float(word >> 16) - p[1]) * g[1]);                                \
                                                                                                                       \
		return low | high << 16;                                                                               \
	}

TWO(two_photons, sl_to_photons)
TWO(two_photons_bounded, sl_to_photons_bounded)

/* Two pixels, of which some are not in G0: those are put right. They are few, but so many that most groups of threads have
 * one: a call, so that the code around it stays small. */
SL_APART sl_u32 mend_two(sl_u32 word, sl_u32 made, SL_GLOBAL const float *other)
{
	if (word & SL_RAW_GAIN)
		made = (made & 0xffff0000) | (sl_u16)as_photons(other_gain(other, (sl_u16)word), (sl_u16)word);
	if (word >> 16 & SL_RAW_GAIN) {
		sl_u16 high = (sl_u16)(word >> 16);

		made = (made & 0xffff) | (sl_u32)(sl_u16)as_photons(other_gain(other + 4, high), high) << 16;
	}
	return made;
}

SL_DEVICE sl_u32 bright_of(sl_u32 word, sl_i32 threshold)
{
	return (sl_u32)((sl_i32)(sl_i16)(word & 0xffff) >= threshold) + (sl_u32)((sl_i32)(sl_i16)(word >> 16) >= threshold);
}

/* Of eight pixels. Most often none is, which the largest says at once. */
SL_DEVICE sl_u32 bright_of_eight(sl_u32x4 v, sl_i32 threshold)
{
	sl_u32 most = sl_max_i16x2(sl_max_i16x2(v.x, v.y), sl_max_i16x2(v.z, v.w));

	if (!bright_of(most, threshold))
		return 0;
	return bright_of(v.x, threshold) + bright_of(v.y, threshold) + bright_of(v.z, threshold) + bright_of(v.w, threshold);
}

#define BRIGHT_8(NAME, TWO_OF, COUNTS)                                                                                      \
	SL_KERNEL SL_GROUP(64, 16) void NAME(SL_GLOBAL const sl_u16 *raw, SL_GLOBAL const struct sl_kernel_view *view, sl_u32 frames,        \
			    sl_u32 modules, sl_u64 module_pixels, SL_GLOBAL sl_i16 *out, SL_GLOBAL const float *factor,    \
			    SL_GLOBAL const float *other, SL_GLOBAL const float *pedestal, sl_i32 threshold,               \
			    SL_GLOBAL sl_u32 *count, sl_u32 parts)                                                          \
	{                                                                                                                   \
		SL_SHARED sl_u32 bright[SL_COUNT_FRAMES];                                                                   \
		sl_u64 pixels = modules * module_pixels;                                                                    \
		sl_u64 at = 8 * ((sl_u64)(sl_group(0) / parts) * sl_threads() + sl_thread());                               \
		sl_u32 part = sl_group(0) % parts, first = part * frames / parts, end = (part + 1) * frames / parts;        \
		sl_u32 module = (sl_u32)(at / module_pixels), f, k, c;                                                      \
		sl_u64 inside = at - module * module_pixels;                                                                \
		float p[8], g[8];                                                                                           \
                                                                                                                            \
		for (c = sl_thread(); COUNTS && c < SL_COUNT_FRAMES; c += sl_threads())                                     \
			bright[c] = 0;                                                                                      \
		if (COUNTS)                                                                                                 \
			sl_barrier();                                                                                       \
		if (at < pixels) {                                                                                          \
			eight(pedestal + at, p);                                                                            \
			eight(factor + at, g);                                                                              \
		}                                                                                                           \
		for (f = first; f < end && at < pixels; f += SL_AHEAD) {                                                     \
			sl_u32x4 in[SL_AHEAD];                                                                              \
                                                                                                                            \
			SL_UNROLL for (k = 0; k < SL_AHEAD; k++) if (f + k < end) in[k] =                                   \
				*(SL_GLOBAL const sl_u32x4 *)(raw + view[(f + k) * modules + module].at / 2 + inside);      \
			SL_UNROLL for (k = 0; k < SL_AHEAD; k++)                                                            \
			{                                                                                                   \
				sl_u32x4 v;                                                                                 \
                                                                                                                            \
				if (f + k >= end)                                                                           \
					break;                                                                              \
				v = sl_u32x4_make(TWO_OF(in[k].x, p, g), TWO_OF(in[k].y, p + 2, g + 2),                     \
						  TWO_OF(in[k].z, p + 4, g + 4), TWO_OF(in[k].w, p + 6, g + 6));            \
				if ((in[k].x | in[k].y | in[k].z | in[k].w) & 0xc000c000) {                                 \
					SL_GLOBAL const float *o = other + 4 * at;                                          \
                                                                                                                            \
					if (in[k].x & 0xc000c000)                                                           \
						v.x = mend_two(in[k].x, v.x, o);                                            \
					if (in[k].y & 0xc000c000)                                                           \
						v.y = mend_two(in[k].y, v.y, o + 8);                                        \
					if (in[k].z & 0xc000c000)                                                           \
						v.z = mend_two(in[k].z, v.z, o + 16);                                       \
					if (in[k].w & 0xc000c000)                                                           \
						v.w = mend_two(in[k].w, v.w, o + 24);                                       \
				}                                                                                           \
				*(SL_GLOBAL sl_u32x4 *)(out + (f + k) * pixels + at) = v;                                   \
				if (COUNTS) {                                                                               \
					c = bright_of_eight(v, threshold);                                             \
					if (c)                                                                              \
						sl_add_local(&bright[f + k], c);                                            \
				}                                                                                           \
			}                                                                                                   \
		}                                                                                                           \
		if (COUNTS)                                                                                                 \
			sl_barrier();                                                                                       \
		for (c = sl_thread(); COUNTS && c < frames; c += sl_threads())                                              \
			if (bright[c])                                                                                      \
				sl_add(&count[c], bright[c]);                                                               \
	}

BRIGHT_8(correct_bright_8, two_photons, 0)
BRIGHT_8(correct_bright_8_counted, two_photons, 1)
BRIGHT_8(correct_bright_8_bounded, two_photons_bounded, 0)
BRIGHT_8(correct_bright_8_bounded_counted, two_photons_bounded, 1)
