/* reduce.cl - statistics, binned images and windows of them; the GPU side of the stage.
 *
 * What must move: each image once, for statistics and again for bins. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/double.clh"
#include "gpu/dialect/eight.clh"
#include "stage/reduce/kernel.h"
#include "stage/radial_maths.h"

SL_DEVICE sl_u64 module_at(struct sl_kernel_reduce c, SL_GLOBAL const struct sl_kernel_view *view, sl_u32 f,
			   sl_u32 module, const sl_u32 bytes)
{
	return c.raw ? view[f * c.modules + module].at : ((sl_u64)f * c.modules + module) * c.module_pixels * bytes;
}

/* ---- statistics ---- */

SL_DEVICE struct sl_eight eight_of(struct sl_kernel_reduce c, SL_GLOBAL const sl_u8 *image,
				   SL_GLOBAL const struct sl_kernel_view *view, sl_u32 f, sl_u32 number,
				   const sl_u32 bytes)
{
	struct sl_eight e = {{0, 0, 0, 0, 0, 0, 0, 0}};
	sl_u32 k;

	if (c.aligned) {
		sl_u32 eights = (sl_u32)(c.module_pixels / 8), module = number / eights;

		return sl_eight_load(image + module_at(c, view, f, module, bytes) +
					     (sl_u64)(number - module * eights) * 8 * bytes,
				     bytes, bytes == 1 ? 8 : 16, 8);
	}
	for (k = 0; k < 8; k++) {
		sl_u64 at = (sl_u64)number * 8 + k;
		sl_u32 module = (sl_u32)(at / c.module_pixels);
		struct sl_eight one;

		if (module >= c.modules)
			break;
		at = module_at(c, view, f, module, bytes) + (at - module * c.module_pixels) * bytes;
		one = sl_eight_load(image + at, bytes, bytes == 4 ? 4 : 0, 1);
		e.word[k * bytes / 4] |= one.word[0] << 8 * (k * bytes & 3);
	}
	return e;
}

SL_DEVICE struct sl_kernel_sum sum_of_none(void)
{
	struct sl_kernel_sum sum;

	sum.whole = sum.rest = sum.most = 0;
	sum.valid = sum.overloads = 0;
	return sum;
}

SL_DEVICE int is_more(sl_i64 a, sl_i64 b, const int is_float)
{
	return is_float ? sl_bits_float((sl_i32)a) > sl_bits_float((sl_i32)b) : a > b;
}

SL_DEVICE struct sl_kernel_sum sum_of_both(struct sl_kernel_sum a, struct sl_kernel_sum b, const int is_float)
{
	if (b.valid && (!a.valid || is_more(b.most, a.most, is_float)))
		a.most = b.most;
	a.whole += b.whole;
	a.rest += b.rest;
	a.valid += b.valid;
	a.overloads += b.overloads;
	return a;
}

/* Of the whole group, for thread 0. */
SL_DEVICE struct sl_kernel_sum sum_of_all(SL_LOCAL struct sl_kernel_sum *shared, struct sl_kernel_sum sum, const int is_float)
{
	sl_u32 t = sl_thread(), step;

	shared[t] = sum;
	sl_barrier();
	for (step = sl_threads() / 2; step; step /= 2) {
		if (t < step) {
			struct sl_kernel_sum other = shared[t + step];

			sum = sum_of_both(sum, other, is_float);
			shared[t] = sum;
		}
		sl_barrier();
	}
	return sum;
}

/* As sums.c does it: no order matters. */
SL_DEVICE void add_float(struct sl_kernel_sum *sum, float value)
{
	double v = (double)value, limit = 274877906944.0, whole; /* 2^38 */

	if (!sl_is_valid_f32(value)) {
		sum->overloads += sl_float_bits(value) == 0x7f800000;
		return;
	}
	v = v > limit ? limit : v < -limit ? -limit : v;
	whole = floor(v);
	sum->whole += (sl_i64)whole;
	sum->rest += (sl_i64)((v - whole) * 4294967296.0 + 0.5);
	if (!sum->valid || value > sl_bits_float((sl_i32)sum->most))
		sum->most = (sl_i64)sl_float_bits(value);
	sum->valid++;
}

#define ADD_WHOLE(VALID, OVERLOAD)                                                                 \
	sum.overloads += (OVERLOAD);                                                               \
	if (VALID) {                                                                               \
		sum.most = sum.valid && sum.most > v ? sum.most : v;                               \
		sum.whole += v;                                                                    \
		sum.valid++;                                                                       \
	}

/* Group 0: of parts, 1: of frames. VALUE of the BITS of a pixel is v; ADD adds it to sum. */
#define STATISTICS(NAME, BYTES, IS_FLOAT, WIDE, VALUE, ADD)                                                                   \
	SL_KERNEL void NAME(struct sl_kernel_reduce c, SL_GLOBAL const sl_u8 *image,                                          \
			    SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_view *view,       \
			    SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items,                                  \
			    SL_GLOBAL const struct sl_kernel_part *parts, SL_GLOBAL const struct sl_kernel_eight *list,       \
			    SL_GLOBAL struct sl_kernel_sum *sums)                                                             \
	{                                                                                                                     \
		SL_SHARED struct sl_kernel_sum shared[SL_REDUCE_THREADS];                                                     \
		struct sl_kernel_part part = parts[sl_group(0)];                                                              \
		struct sl_kernel_sum sum = sum_of_none();                                                                     \
		sl_u32 f = sl_group(1), is = (sl_u32)sl_kernel_is_seen(&frame[f], &verdict[f * items]), i, k;                 \
		sl_u64 pixels = c.modules * c.module_pixels;                                                                  \
                                                                                                                              \
		if (!is)                                                                                                      \
			part.eights = 0;                                                                                      \
		for (i = sl_thread(); i < part.eights; i += sl_threads()) {                                                   \
			sl_u32 number = part.region ? list[part.first + i].number : (sl_u32)part.first + i;                   \
			sl_u32 mask = part.region ? list[part.first + i].mask : 0xff;                                         \
			struct sl_eight e = eight_of(c, image, view, f, number, BYTES);                                       \
                                                                                                                              \
			if (!part.region && pixels - (sl_u64)number * 8 < 8)                                                  \
				mask = (1u << (sl_u32)(pixels - (sl_u64)number * 8)) - 1;                                     \
			_Pragma("unroll") for (k = 0; k < 8; k++)                                                             \
			{                                                                                                     \
				sl_u32 bits = sl_eight_pixel(&e, k, BYTES);                                                   \
				WIDE v = VALUE;                                                                               \
                                                                                                                              \
				if (!(mask >> k & 1))                                                                         \
					continue;                                                                             \
				ADD                                                                                           \
			}                                                                                                     \
		}                                                                                                             \
		sum = sum_of_all(shared, sum, IS_FLOAT);                                                                      \
		if (sl_thread() == 0 && is)                                                                                   \
			sums[(sl_u64)f * c.parts + sl_group(0)] = sum;                                                        \
	}

STATISTICS(reduce_u8, 1, 0, sl_i64, (sl_i64)bits, ADD_WHOLE(bits != 0xff, 0))
STATISTICS(reduce_u16, 2, 0, sl_i64, (sl_i64)bits, ADD_WHOLE(bits != 0xffff, 0))
STATISTICS(reduce_u32, 4, 0, sl_i64, (sl_i64)bits, ADD_WHOLE(bits != 0xffffffff, 0))
STATISTICS(reduce_i16, 2, 0, sl_i64, (sl_i64)(sl_i16)bits, ADD_WHOLE(sl_is_valid_i16((sl_i16)bits), bits == 0x7fff))
STATISTICS(reduce_f32, 4, 1, float, sl_bits_float((sl_i32)bits), add_float(&sum, v);)

/* Group 0: of regions, 1: of frames. `first` of the region's parts. */
SL_KERNEL void reduce_conclude(struct sl_kernel_reduce c, SL_GLOBAL const struct sl_kernel_frame *frame,
			       SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items,
			       SL_GLOBAL const sl_u32 *first, SL_GLOBAL const struct sl_kernel_sum *sums, sl_u32 is_float,
			       SL_GLOBAL double *table)
{
	SL_SHARED struct sl_kernel_sum shared[SL_REDUCE_THREADS];
	struct sl_kernel_sum sum = sum_of_none();
	sl_u32 f = sl_group(1), is = (sl_u32)sl_kernel_is_seen(&frame[f], &verdict[f * items]), i;
	sl_u32 region = sl_group(0), t = sl_thread(), last = is ? first[region + 1] : 0;
	SL_GLOBAL double *row = table + ((sl_u64)f * c.regions + region) * SL_REDUCE_COLUMNS;
	double all;

	if (t < SL_REDUCE_COLUMNS && frame[f].flags & SL_KERNEL_DARK)
		row[t] = 0;
	for (i = first[region] + t; i < last; i += sl_threads())
		sum = sum_of_both(sum, sums[(sl_u64)f * c.parts + i], (int)is_float);
	sum = sum_of_all(shared, sum, (int)is_float);
	if (t || !is)
		return;
	all = (double)sum.whole + (double)sum.rest * (1 / 4294967296.0);
	row[0] = all;
	row[1] = sum.valid ? all / (double)sum.valid : SL_NAN;
	row[2] = !sum.valid ? SL_NAN : is_float ? (double)sl_bits_float((sl_i32)sum.most) : (double)sum.most;
	row[3] = (double)sum.valid;
	row[4] = (double)sum.overloads;
}

/* ---- bins ---- */

struct bin {
	sl_i64 whole;
	double real;
	sl_u32 valid, overload;
};

SL_DEVICE struct bin bin_of_none(void)
{
	struct bin bin;

	bin.whole = 0;
	bin.real = 0;
	bin.valid = bin.overload = 0;
	return bin;
}

SL_DEVICE struct bin bin_of_zero(void)
{
	struct bin bin = bin_of_none();

	bin.valid = 1;
	return bin;
}

SL_DEVICE void store_bin(struct sl_kernel_bins b, struct bin bin, const int is_float, SL_GLOBAL sl_u8 *to, sl_u64 at)
{
	double sum = is_float ? bin.real : (double)bin.whole;

	if (b.kind == SL_BINNED_I32) {
		((SL_GLOBAL sl_i32 *)to)[at] = !bin.valid     ? (sl_i32)0x80000000
					       : bin.overload ? 0x7fffffff
							      : (sl_i32)bin.whole;
	} else if (b.kind == SL_BINNED_I64) {
		((SL_GLOBAL sl_i64 *)to)[at] = !bin.valid     ? (sl_i64)0x8000000000000000ul
					       : bin.overload ? (sl_i64)0x7ffffffffffffffful
							      : bin.whole;
	} else {
		if (b.kind == SL_BINNED_MEAN_F32)
			sum /= (double)(bin.valid ? bin.valid : 1);
		((SL_GLOBAL float *)to)[at] = !bin.valid     ? sl_bits_float(0x7fc00000)
					      : bin.overload ? sl_bits_float(0x7f800000)
							     : (float)sum;
	}
}

SL_DEVICE struct bin bin_of_both(struct bin a, struct bin b)
{
	a.whole += b.whole;
	a.real += b.real;
	a.valid += b.valid;
	a.overload |= b.overload;
	return a;
}

/* Of the whole group, for thread 0. */
SL_DEVICE struct bin bin_of_all(SL_LOCAL struct bin *shared, struct bin bin)
{
	sl_u32 t = sl_thread(), step;

	shared[t] = bin;
	sl_barrier();
	for (step = sl_threads() / 2; step; step /= 2) {
		if (t < step) {
			struct bin other = shared[t + step];

			bin = bin_of_both(bin, other);
			shared[t] = bin;
		}
		sl_barrier();
	}
	return bin;
}

/* Pixels t, t + step, ... of a bin. */
#define BIN(NAME, TYPE, IS_FLOAT, VALID, OVER)                                                                               \
	SL_DEVICE struct bin NAME(struct sl_kernel_reduce c, struct sl_kernel_bins b, SL_GLOBAL const sl_u8 *image,          \
				  SL_GLOBAL const struct sl_kernel_view *view, sl_u32 f, sl_u64 at, sl_u32 t, sl_u32 step)   \
	{                                                                                                                    \
		sl_u32 module = (sl_u32)(at / ((sl_u64)b.rows * b.columns)), i;                                              \
		sl_u32 y = ((sl_u32)(at / b.columns) - module * b.rows) * b.bin, x = (sl_u32)(at % b.columns) * b.bin;       \
		sl_u32 height = c.rows - y < b.bin ? c.rows - y : b.bin;                                                     \
		sl_u32 width = c.columns - x < b.bin ? c.columns - x : b.bin;                                                \
		SL_GLOBAL const TYPE *from =                                                                                 \
			(SL_GLOBAL const TYPE *)(image + module_at(c, view, f, module, sizeof(TYPE))) +                      \
			(sl_u64)y * c.columns + x;                                                                           \
		struct bin bin = bin_of_none();                                                                              \
                                                                                                                             \
		for (i = t; i < height * width; i += step) {                                                                 \
			TYPE v = from[(sl_u64)(i / width) * c.columns + i % width];                                          \
			sl_u32 valid = (VALID);                                                                              \
                                                                                                                             \
			bin.overload |= (OVER);                                                                              \
			bin.valid += valid;                                                                                  \
			if (IS_FLOAT)                                                                                        \
				bin.real += valid ? (double)v : 0;                                                           \
			else                                                                                                 \
				bin.whole += valid ? (sl_i64)v : 0;                                                          \
		}                                                                                                            \
		return bin;                                                                                                  \
	}

#define BIN_PARAMETERS                                                                                        \
	struct sl_kernel_reduce c, struct sl_kernel_bins b, SL_GLOBAL const sl_u8 *image,                     \
		SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_view *view,   \
		SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, SL_GLOBAL sl_u8 *binned

/* A thread for a bin, with pixels in the CPU's order; or a group. Group 0: of bins, 1: of frames. A dark frame has zeros. */
#define BINS(NAME, TYPE, IS_FLOAT, VALID, OVER)                                                                            \
	BIN(NAME##_of, TYPE, IS_FLOAT, VALID, OVER)                                                                        \
                                                                                                                           \
	SL_KERNEL void NAME##_alone(BIN_PARAMETERS)                                                                        \
	{                                                                                                                  \
		sl_u64 at = (sl_u64)sl_group(0) * sl_threads() + sl_thread();                                              \
		sl_u32 f = sl_group(1);                                                                                    \
                                                                                                                           \
		if (at < b.bins && sl_kernel_is_seen(&frame[f], &verdict[f * items]))                                      \
			store_bin(b, NAME##_of(c, b, image, view, f, at, 0, 1), IS_FLOAT, binned, f * b.bins + at);        \
		else if (at < b.bins && frame[f].flags & SL_KERNEL_DARK)                                                   \
			store_bin(b, bin_of_zero(), IS_FLOAT, binned, f * b.bins + at);                                    \
	}                                                                                                                  \
                                                                                                                           \
	SL_KERNEL void NAME##_many(BIN_PARAMETERS)                                                                         \
	{                                                                                                                  \
		SL_SHARED struct bin shared[SL_REDUCE_MANY];                                                               \
		sl_u32 f = sl_group(1), t = sl_thread(), is = (sl_u32)sl_kernel_is_seen(&frame[f], &verdict[f * items]);   \
		struct bin bin = bin_of_none();                                                                            \
                                                                                                                           \
		if (is)                                                                                                    \
			bin = NAME##_of(c, b, image, view, f, sl_group(0), t, sl_threads());                               \
		bin = bin_of_all(shared, bin);                                                                             \
		if (t == 0 && is)                                                                                          \
			store_bin(b, bin, IS_FLOAT, binned, f * b.bins + sl_group(0));                                     \
		else if (t == 0 && frame[f].flags & SL_KERNEL_DARK)                                                        \
			store_bin(b, bin_of_zero(), IS_FLOAT, binned, f * b.bins + sl_group(0));                           \
	}

BINS(reduce_bins_u8, sl_u8, 0, v != 0xff, 0)
BINS(reduce_bins_u16, sl_u16, 0, v != 0xffff, 0)
BINS(reduce_bins_u32, sl_u32, 0, v != 0xffffffff, 0)
BINS(reduce_bins_i16, sl_i16, 0, v != -32768, v == 32767)
BINS(reduce_bins_f32, float, 1, v > sl_bits_float((sl_i32)0xff800000), v == sl_bits_float(0x7f800000))

/* ---- windows ---- */

#define LEAST_64 ((sl_i64)0x8000000000000000ul)
#define MOST_64	 ((sl_i64)0x7ffffffffffffffful)

/* widen_whole() and widen_real() of bins.c. */
SL_DEVICE void widen_whole(sl_i64 *sum, sl_i64 *most, sl_u32 number, sl_i64 v, sl_i64 bad, sl_i64 over)
{
	if (!number || v > *most)
		*most = v;
	if (*sum == LEAST_64 || v == bad)
		*sum = *most = LEAST_64;
	else if (*sum == MOST_64 || v == over)
		*sum = *most = MOST_64;
	else
		*sum += v;
}

SL_DEVICE void widen_real(double *sum, double *most, sl_u32 number, double v)
{
	*sum += v;
	if (!number || !(v <= *most))
		*most = *sum != *sum ? SL_NAN : v;
}

/* A thread has a bin, and goes through the frames in order. `count` of those that are in the window already. */
#define WINDOW(NAME, SUM, ZERO, WIDEN)                                                                                      \
	SL_KERNEL void NAME(struct sl_kernel_bins b, SL_GLOBAL const struct sl_kernel_frame *frame,                         \
			    SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 frames, sl_u32 window,  \
			    SL_GLOBAL const sl_u32 *count, SL_GLOBAL const sl_u8 *binned, SL_GLOBAL SUM *sums,              \
			    SL_GLOBAL SUM *mosts, SL_GLOBAL SUM *window_sum, SL_GLOBAL SUM *window_most)                    \
	{                                                                                                                   \
		sl_u64 i = (sl_u64)sl_group(0) * sl_threads() + sl_thread();                                                \
		sl_u32 number = count[0], f;                                                                                \
		SUM sum, most;                                                                                              \
                                                                                                                            \
		if (i >= b.bins)                                                                                            \
			return;                                                                                             \
		sum = sums[i];                                                                                              \
		most = mosts[i];                                                                                            \
		for (f = 0; f < frames; f++) {                                                                              \
			sl_u64 at = f * b.bins + i;                                                                         \
                                                                                                                            \
			if (!sl_kernel_has_image(&frame[f], &verdict[f * items]))                                           \
				continue;                                                                                   \
			WIDEN                                                                                               \
			if (++number < window)                                                                              \
				continue;                                                                                   \
			window_sum[at] = sum;                                                                               \
			window_most[at] = most;                                                                             \
			sum = ZERO;                                                                                         \
			number = 0;                                                                                         \
		}                                                                                                           \
		sums[i] = sum;                                                                                              \
		mosts[i] = most;                                                                                            \
	}

#define WIDEN_WHOLE                                                                                                \
	if (b.kind == SL_BINNED_I32)                                                                               \
		widen_whole(&sum, &most, number, (sl_i64)((SL_GLOBAL const sl_i32 *)binned)[at], -2147483647l - 1, \
			    2147483647l);                                                                          \
	else                                                                                                       \
		widen_whole(&sum, &most, number, ((SL_GLOBAL const sl_i64 *)binned)[at], LEAST_64, MOST_64);

WINDOW(reduce_window_whole, sl_i64, 0, WIDEN_WHOLE)
WINDOW(reduce_window_real, double, 0,
       widen_real(&sum, &most, number, (double)((SL_GLOBAL const float *)binned)[at]);)

/* Which frames have one, and how many the next has already: one thread, when windows are made. */
SL_KERNEL void reduce_window_rows(SL_GLOBAL const struct sl_kernel_frame *frame,
				  SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u32 frames,
				  sl_u32 window, SL_GLOBAL sl_u32 *count, SL_GLOBAL sl_u32 *rows, sl_u32 sum_at,
				  sl_u32 most_at)
{
	sl_u32 number = count[0], f;

	if (sl_group(0) || sl_thread())
		return;
	for (f = 0; f < frames; f++) {
		sl_u32 is_full = 0;

		if (sl_kernel_has_image(&frame[f], &verdict[f * items]))
			is_full = ++number == window;
		rows[sum_at + f] = rows[most_at + f] = is_full;
		number = is_full ? 0 : number;
	}
	count[0] = number;
}
