/* correlate.cl - multi-tau correlation; the GPU side of the stage.
 *
 * What must move: each image once; of each pixel, frame and channel two samples, mostly from cache. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/double.clh"
#include "stage/correlate/kernel.h"
#include "stage/correlate/maths.h"
#include "stage/radial_maths.h"

#define NO_SLOT 0xffffffffu

/* ---- which samples there are ---- */

struct maker {
	sl_u32 part, frame;
};

/* A frame, and all samples of higher levels that are whole with it. */
SL_DEVICE void make_rows(struct sl_kernel_correlate c, SL_GLOBAL struct sl_kernel_clock *clock,
			 SL_GLOBAL struct sl_kernel_plan *plan, SL_GLOBAL struct sl_kernel_row *rows,
			 SL_GLOBAL sl_u64 *stamps, sl_u64 time, struct maker from)
{
	sl_u32 level, before = NO_SLOT, slot = 0;
	struct sl_kernel_row row;

	for (level = 0; level < c.levels; level++, time >>= 1) {
		sl_u64 made = clock->made[level];

		row.sample = time;
		row.before = made;
		row.part = from.part;
		row.from = level ? before : from.frame;
		row.later = slot;
		/* That of the sample before, as it was. */
		before = made ? (sl_u32)((made - 1) % c.slots[level]) : NO_SLOT;
		if (before != NO_SLOT && stamps[c.first[level] + before] + 1 != time)
			before = NO_SLOT;
		slot = (sl_u32)(made % c.slots[level]);
		row.slot = slot;
		stamps[c.first[level] + slot] = time;
		clock->made[level] = made + 1;
		rows[c.first_row[level] + plan->rows[level]] = row;
		plan->rows[level]++;
		if (!(time & 1) || before == NO_SLOT)
			return;
	}
}

SL_DEVICE void make_all_rows(struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_frame *frame,
			     SL_GLOBAL const struct sl_kernel_view *view, SL_GLOBAL struct sl_kernel_clock *clock,
			     SL_GLOBAL struct sl_kernel_plan *plan, SL_GLOBAL struct sl_kernel_row *rows,
			     SL_GLOBAL sl_u64 *stamps, sl_u32 frames)
{
	struct maker from;
	sl_u32 f, level;

	for (level = 0; level < c.levels; level++)
		plan->rows[level] = 0;
	for (from.part = 0; from.part < SL_CORRELATE_PARTS_MOST; from.part++)
		plan->due[from.part] = frames;
	from.part = 0;
	for (f = 0; f < frames; f++) {
		sl_u64 number = view[f * c.modules].number, step = (sl_u64)1 << (c.levels - 1);

		if (!frame[f].items)
			continue; /* the batch is not full */
		if (clock->expected && number < clock->expected) {
			sl_u64 time = clock->expected + clock->ahead + c.channels * step;

			clock->ahead = (time / step + 1) * step;
		}
		clock->expected = number + 1;
		if (frame[f].flags & SL_KERNEL_DARK)
			continue;
		from.frame = f;
		make_rows(c, clock, plan, rows, stamps, number + clock->ahead, from);
		if (c.every && (number + 1) % c.every == 0 && from.part < SL_CORRELATE_PARTS_MOST - 1)
			plan->due[from.part++] = f;
	}
	plan->parts = from.part + 1;
}

/* The slot of the sample that is so many channels before; NO_SLOT: there is none. */
SL_DEVICE sl_u32 find_partner(struct sl_kernel_correlate c, SL_GLOBAL const sl_u64 *stamps, sl_u32 level,
			      struct sl_kernel_row row, sl_u32 channel)
{
	sl_u32 k;

	for (k = 0; k <= channel && k <= row.before && k < c.slots[level]; k++) {
		sl_u32 at = (row.slot + c.slots[level] - k) % c.slots[level];
		sl_u64 stamp = stamps[c.first[level] + at];

		if (stamp + channel == row.sample)
			return at;
		if (stamp + channel < row.sample)
			break;
	}
	return NO_SLOT;
}

/* One group. partners: [rows][channels]. */
SL_KERNEL void correlate_plan(struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_frame *frame,
			      SL_GLOBAL const struct sl_kernel_view *view, SL_GLOBAL struct sl_kernel_clock *clock,
			      SL_GLOBAL struct sl_kernel_plan *plan, SL_GLOBAL struct sl_kernel_row *rows,
			      SL_GLOBAL sl_u64 *stamps, SL_GLOBAL sl_u32 *partners, sl_u32 frames)
{
	sl_u32 level, i;

	if (sl_thread() == 0)
		make_all_rows(c, frame, view, clock, plan, rows, stamps, frames);
	sl_barrier_all();
	for (level = 0; level < c.levels; level++)
		for (i = sl_thread(); i < plan->rows[level] * c.channels; i += sl_threads()) {
			sl_u32 number = c.first_row[level] + i / c.channels;

			partners[(sl_u64)number * c.channels + i % c.channels] =
				find_partner(c, stamps, level, rows[number], i % c.channels);
		}
}

/* ---- samples ---- */

#define STORE_PARAMETERS                                                                                      \
	struct sl_kernel_correlate c, SL_GLOBAL const sl_u8 *image, SL_GLOBAL const struct sl_kernel_view *view, \
		SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_plan *plan,     \
		SL_GLOBAL const struct sl_kernel_row *rows, SL_GLOBAL const struct sl_kernel_pixel *pixels,     \
		SL_GLOBAL sl_i32 *history

SL_DEVICE void merge(struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_plan *plan,
		     SL_GLOBAL const struct sl_kernel_row *rows, SL_GLOBAL sl_i32 *history, sl_u32 p)
{
	sl_u32 level, i;

	for (level = 1; level < c.levels; level++)
		for (i = 0; i < plan->rows[level]; i++) {
			struct sl_kernel_row row = rows[c.first_row[level] + i];
			SL_GLOBAL const sl_i32 *below = history + (sl_u64)c.first[level - 1] * c.pixels + p;
			sl_i32 a = below[(sl_u64)row.from * c.pixels], b = below[(sl_u64)row.later * c.pixels];

			history[((sl_u64)c.first[level] + row.slot) * c.pixels + p] =
				a == SL_CORRELATE_MISSING || b == SL_CORRELATE_MISSING ? SL_CORRELATE_MISSING : a + b;
		}
}

/* A thread for a pixel: samples of all levels. */
#define STORE(NAME, TYPE, VALUE)                                                                                             \
	SL_KERNEL void NAME(STORE_PARAMETERS)                                                                                \
	{                                                                                                                    \
		sl_u32 p = sl_group(0) * sl_threads() + sl_thread(), i;                                                      \
		struct sl_kernel_pixel at;                                                                                   \
                                                                                                                             \
		if (p >= c.pixels)                                                                                           \
			return;                                                                                              \
		at = pixels[p];                                                                                              \
		for (i = 0; i < plan->rows[0]; i++) {                                                                        \
			struct sl_kernel_row row = rows[i];                                                                  \
			sl_u64 module = (sl_u64)row.from * c.modules + at.module;                                            \
			SL_GLOBAL const TYPE *from =                                                                         \
				(SL_GLOBAL const TYPE *)(image + (c.raw ? view[module].at                                    \
									: module * c.module_pixels * sizeof(TYPE)));         \
			TYPE v = from[at.pixel];                                                                             \
			sl_i32 sample = VALUE;                                                                               \
                                                                                                                             \
			if (frame[row.from].missing >> at.module & 1)                                                        \
				sample = SL_CORRELATE_MISSING;                                                               \
			history[(sl_u64)row.slot * c.pixels + p] = sample;                                                   \
		}                                                                                                            \
		merge(c, plan, rows, history, p);                                                                            \
	}

#define WHOLE(KIND) (sl_is_valid_##KIND(v) ? sl_correlate_whole((sl_i64)v, c.limit) : SL_CORRELATE_MISSING)

STORE(correlate_store_u8, sl_u8, WHOLE(u8))
STORE(correlate_store_u16, sl_u16, WHOLE(u16))
STORE(correlate_store_u32, sl_u32, WHOLE(u32))
STORE(correlate_store_i16, sl_i16, WHOLE(i16))
STORE(correlate_store_f32, float, sl_correlate_float(v, c.limit))

/* ---- pairs ---- */

/* Products are high * 2^32 + low meanwhile. */
SL_DEVICE struct sl_kernel_correlation sum_of_none(void)
{
	struct sl_kernel_correlation sum;

	sum.low = sum.pairs = 0;
	sum.high = sum.left = sum.right = 0;
	return sum;
}

SL_DEVICE struct sl_kernel_correlation sum_of_both(struct sl_kernel_correlation a, struct sl_kernel_correlation b)
{
	a.low += b.low;
	a.high += b.high;
	a.left += b.left;
	a.right += b.right;
	a.pairs += b.pairs;
	return a;
}

/* The pairs of a pixel at one lag. */
SL_DEVICE struct sl_kernel_correlation pairs_of(struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_plan *plan,
						SL_GLOBAL const struct sl_kernel_row *rows,
						SL_GLOBAL const sl_u32 *partners, SL_GLOBAL const sl_i32 *history,
						sl_u32 level, sl_u32 channel, sl_u32 part, sl_u32 p)
{
	SL_GLOBAL const sl_i32 *sample = history + (sl_u64)c.first[level] * c.pixels + p;
	struct sl_kernel_correlation sum = sum_of_none();
	sl_u32 i;

	for (i = 0; i < plan->rows[level]; i++) {
		sl_u32 number = c.first_row[level] + i, partner = partners[(sl_u64)number * c.channels + channel];
		sl_i32 a, b;
		sl_i64 product;

		if (partner == NO_SLOT || rows[number].part != part)
			continue;
		a = sample[(sl_u64)partner * c.pixels];
		b = sample[(sl_u64)rows[number].slot * c.pixels];
		if (a == SL_CORRELATE_MISSING || b == SL_CORRELATE_MISSING)
			continue;
		product = (sl_i64)a * b;
		sum.low += (sl_u64)product & 0xffffffff;
		sum.high += product >> 32;
		sum.left += a;
		sum.right += b;
		sum.pairs++;
	}
	return sum;
}

SL_DEVICE void add_to(SL_GLOBAL struct sl_kernel_correlation *total, struct sl_kernel_correlation sum)
{
	struct sl_kernel_correlation all = *total;
	sl_u64 shifted = (sl_u64)sum.high << 32, low = shifted + sum.low;

	all.high += (sum.high >> 32) + (low < shifted);
	all.low += low;
	all.high += all.low < low;
	all.left += sum.left;
	all.right += sum.right;
	all.pairs += sum.pairs;
	*total = all;
}

#define PAIRS_PARAMETERS                                                                                                \
	struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_plan *plan,                                      \
		SL_GLOBAL const struct sl_kernel_row *rows, SL_GLOBAL const sl_u32 *partners,                           \
		SL_GLOBAL const sl_i32 *history, SL_GLOBAL const struct sl_kernel_chunk *chunks, sl_u32 part,           \
		SL_GLOBAL struct sl_kernel_correlation *sums

/* A group for a chunk. */
SL_KERNEL void correlate_pairs(PAIRS_PARAMETERS)
{
	SL_SHARED struct sl_kernel_correlation shared[SL_CORRELATE_THREADS];
	struct sl_kernel_chunk chunk = chunks[sl_group(0)];
	sl_u32 level, channel, lag = 0, t = sl_thread(), p, step;

	for (level = 0; level < c.levels; level++)
		for (channel = level ? c.channels / 2 : 0; channel < c.channels; channel++, lag++) {
			struct sl_kernel_correlation sum = sum_of_none();

			for (p = t; p < chunk.pixels; p += sl_threads())
				sum = sum_of_both(sum, pairs_of(c, plan, rows, partners, history, level, channel,
								part, chunk.first + p));
			shared[t] = sum;
			sl_barrier();
			for (step = sl_threads() / 2; step; step /= 2) {
				if (t < step) {
					struct sl_kernel_correlation other = shared[t + step];

					sum = sum_of_both(sum, other);
					shared[t] = sum;
				}
				sl_barrier();
			}
			if (t == 0)
				add_to(&sums[(sl_u64)sl_group(0) * c.lags + lag], sum);
			sl_barrier();
		}
}

/* Each pixel is a region: a thread for one; group 1: of lags. */
SL_KERNEL void correlate_pairs_alone(PAIRS_PARAMETERS)
{
	sl_u32 p = sl_group(0) * sl_threads() + sl_thread(), lag = sl_group(1), upper = c.channels / 2;
	sl_u32 level = lag < c.channels ? 0 : 1 + (lag - c.channels) / upper;
	sl_u32 channel = level ? upper + (lag - c.channels) % upper : lag;

	if (p < c.pixels && chunks[0].pixels)
		add_to(&sums[(sl_u64)p * c.lags + lag],
		       pairs_of(c, plan, rows, partners, history, level, channel, part, p));
}

/* ---- what comes of it ---- */

SL_DEVICE double products_of(sl_u64 low, sl_i64 high)
{
	int is_negative = high < 0;

	if (is_negative) {
		low = ~low + 1;
		high = (sl_i64)(~(sl_u64)high + (low == 0));
	}
	return ((double)high * 18446744073709551616.0 + (double)low) * (is_negative ? -1 : 1);
}

/* A thread for a region and a lag. first: of the chunks of each region. */
SL_KERNEL void correlate_publish(struct sl_kernel_correlate c, SL_GLOBAL const struct sl_kernel_plan *plan,
				 SL_GLOBAL const sl_u32 *first, SL_GLOBAL const struct sl_kernel_correlation *sums,
				 sl_u32 part, sl_u32 frames, SL_GLOBAL double *g2, SL_GLOBAL sl_u32 *has_rows,
				 sl_u32 rows_at)
{
	sl_u32 i = sl_group(0) * sl_threads() + sl_thread(), region = i / c.lags, lag = i % c.lags, k;
	struct sl_kernel_correlation all = sum_of_none();
	double product;

	if (part >= plan->parts || plan->due[part] >= frames || region >= c.regions)
		return;
	for (k = first[region]; k < first[region + 1]; k++) {
		struct sl_kernel_correlation one = sums[(sl_u64)k * c.lags + lag];

		all.low += one.low;
		all.high += one.high + (all.low < one.low);
		all.left += one.left;
		all.right += one.right;
		all.pairs += one.pairs;
	}
	product = (double)all.left * (double)all.right;
	g2[(sl_u64)plan->due[part] * c.regions * c.lags + i] =
		product != 0 ? products_of(all.low, all.high) * (double)all.pairs / product : SL_NAN;
	if (i == 0)
		has_rows[rows_at + plan->due[part]] = 1;
}
