/* sums.h - what a pedestal, its noise and the bad pixels are computed from: sums over dark frames.
 *
 * Model:     per storage cell and pixel: how many samples in the gain that is measured, and how
 *            many in another; their sum and the sum of their squares. Pixels of up to 16 bits are
 *            summed as whole numbers, so that the result is exact and no order matters; others by
 *            Welford's recurrence in double. The mean of up to 128 samples is, bit for bit, that
 *            which the stage `correct` has after the same dark frames.
 * Threads:   one.
 * Cost:      24 bytes for each pixel and cell, 32 when wider than 16 bits; 1-2 ns a sample. */
#ifndef SL_CALIBRATION_SUMS_H
#define SL_CALIBRATION_SUMS_H

#include "calibration/tables.h"

struct sl_sums {
	enum sl_dtype dtype;
	int gain; /* that is measured, 0 to 2; -1: pixels have no gain bits */
	uint32_t cells, modules;
	uint64_t module_pixels;
	uint64_t frames;	   /* that had all modules, or some */
	uint32_t *samples, *wrong; /* [cell][module][pixel] */
	int64_t *sum;
	uint64_t *squares;
	double *mean, *spread; /* the sum of squared distances from the mean */
};

/* Which pixels are bad. 0 switches a bound off; spreads are 1.4826 times the median distance from
 * the median (the standard deviation, of a normal distribution), per module. */
struct sl_bounds {
	double pedestal_min, pedestal_max, rms_min, rms_max;
	double spreads;
	double wrong_share;
	bool stuck;
};

/* -EINVAL, logged: gain bits need 16-bit pixels. */
int sl_sums_open(struct sl_sums *sums, const struct sl_geometry *geometry, int gain);
void sl_sums_close(struct sl_sums *sums);

void sl_sums_add(struct sl_sums *sums, uint32_t cell, uint32_t module, const void *pixels);

/* Pedestal and noise of this gain, into the tables. */
int sl_sums_tables(const struct sl_sums *sums, struct sl_tables *tables);

/* Add to the tables' mask the pixels that are bad by these sums, in any cell. How many a reason
 * has (bit by bit), and how many any: `bad` may be NULL. */
struct sl_bad {
	uint64_t empty, gain, stuck, pedestal, rms, any;
};
int sl_sums_mask(const struct sl_sums *sums, const struct sl_bounds *bounds,
		 struct sl_tables *tables, struct sl_bad *bad);

#endif
