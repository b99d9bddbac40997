/* histogram.c - logarithmic buckets.
 *
 * Values below 16 have a bucket each. Above, a value with its highest bit at e has the bucket
 * (e - 3) * 16 + its next four bits, so a bucket is at most 1/16 of its value wide, and its middle
 * at most 1/32 off. One writer: load and store suffice, no read-modify-write. All accesses are
 * relaxed: a reader needs numbers, and no other memory on the strength of them. */
#include "base/histogram.h"

#include <stddef.h>
#include <string.h>

enum { FINE_BITS = 4, FINE = 1 << FINE_BITS };

static uint64_t load(const _Atomic uint64_t *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

static void store(_Atomic uint64_t *cell, uint64_t value)
{
	atomic_store_explicit(cell, value, memory_order_relaxed);
}

static size_t bucket_of(uint64_t value)
{
	unsigned e;

	if (value < FINE)
		return (size_t)value;
	e = 63u - (unsigned)__builtin_clzll(value);
	return (size_t)(e - FINE_BITS + 1) * FINE + ((value >> (e - FINE_BITS)) & (FINE - 1));
}

static uint64_t middle_of(size_t bucket)
{
	unsigned shift;

	if (bucket < 2 * FINE) /* exact: 16..31 have a bucket each, too */
		return bucket;
	shift = (unsigned)(bucket / FINE) - 1;
	return ((uint64_t)(FINE + bucket % FINE) << shift) + ((uint64_t)1 << (shift - 1));
}

void sl_histogram_add(struct sl_histogram *histogram, uint64_t value)
{
	_Atomic uint64_t *bucket = &histogram->bucket[bucket_of(value)];
	uint64_t min_plus_1 = load(&histogram->min_plus_1);

	store(bucket, load(bucket) + 1);
	store(&histogram->sum, load(&histogram->sum) + value);
	if (value > load(&histogram->max))
		store(&histogram->max, value);
	/* The +1 makes zeroed memory mean "none yet"; UINT64_MAX itself is kept as one less. */
	if (!min_plus_1 || value < min_plus_1 - 1)
		store(&histogram->min_plus_1, value == UINT64_MAX ? value : value + 1);
	store(&histogram->count, load(&histogram->count) + 1);
}

uint64_t sl_histogram_percentile(const struct sl_histogram *histogram, double fraction)
{
	uint64_t total = 0, below = 0, value, max = sl_histogram_max(histogram);
	uint64_t min = sl_histogram_min(histogram);
	double wanted;

	/* Counted from the buckets, not from `count`: the writer may be between the two. */
	for (size_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
		total += load(&histogram->bucket[i]);
	wanted = fraction * (double)total;
	if (!total || fraction >= 1)
		return max;
	for (size_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
		uint64_t here = load(&histogram->bucket[i]);

		below += here;
		if (!here || (double)below < wanted)
			continue;
		value = middle_of(i);
		return value > max ? max : value < min ? min : value;
	}
	return max;
}

uint64_t sl_histogram_max(const struct sl_histogram *histogram)
{
	return load(&histogram->max);
}

uint64_t sl_histogram_min(const struct sl_histogram *histogram)
{
	uint64_t min_plus_1 = load(&histogram->min_plus_1);

	return min_plus_1 ? min_plus_1 - 1 : 0;
}

uint64_t sl_histogram_count(const struct sl_histogram *histogram)
{
	return load(&histogram->count);
}

void sl_histogram_copy(const struct sl_histogram *from, struct sl_histogram *to)
{
	uint64_t max = load(&from->max), min_plus_1 = load(&from->min_plus_1), count = 0;

	memset((void *)to, 0, sizeof(*to));
	/* What is added meanwhile below or above is left for the next copy. */
	for (size_t i = bucket_of(min_plus_1 ? min_plus_1 - 1 : 0); i <= bucket_of(max); i++) {
		uint64_t here = load(&from->bucket[i]);

		store(&to->bucket[i], here);
		count += here;
	}
	store(&to->count, count);
	store(&to->sum, load(&from->sum));
	store(&to->max, max);
	store(&to->min_plus_1, min_plus_1);
}

void sl_histogram_merge(struct sl_histogram *into, const struct sl_histogram *from)
{
	uint64_t min_plus_1 = load(&from->min_plus_1);

	for (size_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
		store(&into->bucket[i], load(&into->bucket[i]) + load(&from->bucket[i]));
	store(&into->count, load(&into->count) + load(&from->count));
	store(&into->sum, load(&into->sum) + load(&from->sum));
	if (load(&from->max) > load(&into->max))
		store(&into->max, load(&from->max));
	if (min_plus_1 && (!load(&into->min_plus_1) || min_plus_1 < load(&into->min_plus_1)))
		store(&into->min_plus_1, min_plus_1);
}

void sl_histogram_octaves(const struct sl_histogram *histogram, uint64_t *octave, unsigned octaves)
{
	for (unsigned i = 0; i < octaves; i++)
		octave[i] = 0;
	for (size_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
		/* How many bits its values have. */
		unsigned bits = i < FINE ? (i ? 32u - (unsigned)__builtin_clz((unsigned)i) : 0)
					 : (unsigned)(i / FINE) + FINE_BITS;

		octave[bits < octaves ? bits : octaves - 1] += load(&histogram->bucket[i]);
	}
}
