/* histogram.h - latencies: where most fall and how bad the worst are.
 *
 * Model:     logarithmic buckets, 16 to a factor of two: a percentile is right within 4.5 %; min,
 *            max, count and sum are exact.
 * Threads:   one writer; readers may look at any time and see a consistent enough picture.
 * Cost:      a count-leading-zeros and a few relaxed stores; 8 KiB each; no allocation. */
#ifndef SL_BASE_HISTOGRAM_H
#define SL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { SL_HISTOGRAM_BUCKETS = 16 * 61 };

struct sl_histogram { /* zeroed memory is an empty one */
	_Atomic uint64_t bucket[SL_HISTOGRAM_BUCKETS];
	_Atomic uint64_t count, sum, max;
	_Atomic uint64_t min_plus_1;
};

void sl_histogram_add(struct sl_histogram *histogram, uint64_t value);

/* The value below or at which `fraction` (0..1) of the samples lie; 0 when empty. Never above max.
 */
uint64_t sl_histogram_percentile(const struct sl_histogram *histogram, double fraction);
uint64_t sl_histogram_max(const struct sl_histogram *histogram);
uint64_t sl_histogram_min(const struct sl_histogram *histogram);
uint64_t sl_histogram_count(const struct sl_histogram *histogram);

/* A copy that agrees with itself, whatever the writer does meanwhile: its count is the sum of its
 * buckets. */
void sl_histogram_copy(const struct sl_histogram *from, struct sl_histogram *to);

/* Add all values of `from`, whose writer has ended; the caller is the writer of `into`. */
void sl_histogram_merge(struct sl_histogram *into, const struct sl_histogram *from);

/* By powers of two: octave[i] counts values below 2^i that octave[i - 1] does not; the last one,
 * all others. */
void sl_histogram_octaves(const struct sl_histogram *histogram, uint64_t *octave, unsigned octaves);

#endif
