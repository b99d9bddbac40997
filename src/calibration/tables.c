/* tables.c - tables in memory, and whether gains can be true. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "calibration/tables.h"

void sl_tables_init(struct sl_tables *t, const struct sl_geometry *geometry)
{
	*t = (struct sl_tables){
		.cells = geometry->cells ? geometry->cells : 1,
		.modules = geometry->modules,
		.rows = geometry->rows,
		.columns = geometry->columns,
		.unread_rows = geometry->unread_rows,
		.pixels = geometry->modules * sl_geometry_pixels(geometry),
	};
	memcpy(t->detector, geometry->detector, sizeof(t->detector));
}

void sl_tables_free(struct sl_tables *t)
{
	for (int g = 0; g < SL_GAINS; g++) {
		free(t->pedestal[g]);
		free(t->rms[g]);
		free(t->gain[g]);
		t->pedestal[g] = t->rms[g] = t->gain[g] = NULL;
	}
	free(t->mask);
	t->mask = NULL;
}

static int no_memory(const struct sl_tables *t, uint32_t count)
{
	sl_error("no memory for a calibration of %llu pixels and %u storage cells",
		 (unsigned long long)t->pixels, count);
	return -ENOMEM;
}

int sl_tables_make(struct sl_tables *t, float **table, uint32_t count)
{
	if (*table)
		return 0;
	*table = malloc(t->pixels * count * sizeof(float));
	if (!*table)
		return no_memory(t, count);
	for (uint64_t i = 0; i < t->pixels * count; i++)
		(*table)[i] = NAN;
	return 0;
}

int sl_tables_make_mask(struct sl_tables *t)
{
	if (!t->mask)
		t->mask = calloc(t->pixels, 1);
	return t->mask ? 0 : no_memory(t, 1);
}

/* The k-th smallest; what is below it ends up before it. Hoare's selection: a detector has millions
 * of pixels, and sorting them all takes seconds. */
static float select_nth(float *value, uint64_t n, uint64_t k)
{
	uint64_t low = 0, high = n - 1;

	while (low < high) {
		float pivot = value[low + (high - low) / 2];
		uint64_t i = low, j = high;

		for (;;) {
			while (value[i] < pivot)
				i++;
			while (value[j] > pivot)
				j--;
			if (i >= j)
				break;
			float swap = value[i];

			value[i++] = value[j];
			value[j--] = swap;
		}
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
	return value[k];
}

float sl_median(const float *value, uint64_t n)
{
	float *copy = malloc((n ? n : 1) * sizeof(*copy)), median;
	uint64_t finite = 0;

	if (!copy)
		return NAN;
	for (uint64_t i = 0; i < n; i++)
		if (isfinite(value[i]))
			copy[finite++] = value[i];
	median = finite ? select_nth(copy, finite, finite / 2) : NAN;
	free(copy);
	return median;
}

/* Gains fall by an order of magnitude from each to the next, whatever their sign: where they rise,
 * they are keV per ADU, or in another order. */
static const char *problem_of(const struct sl_tables *t, uint32_t module)
{
	uint64_t n = t->pixels / t->modules, at = n * module;
	float median[SL_GAINS];

	for (int g = 0; g < SL_GAINS; g++) {
		if (!t->gain[g])
			return "not all three gains are there";
		median[g] = sl_median(t->gain[g] + at, n);
		if (!(fabsf(median[g]) > 0))
			return "half of a gain's pixels have no gain";
	}
	if (median[0] < 0)
		return "G0 falls with charge";
	if (median[0] < fabsf(median[1]) || fabsf(median[1]) < fabsf(median[2]))
		return "G0 is not above G1, and G1 above G2: gains are ADU per keV, not keV per "
		       "ADU";
	return NULL;
}

/* Each module by itself: among many good ones the median would hide a bad one. */
bool sl_gains_problem(const struct sl_tables *t, char *why, size_t bytes)
{
	for (uint32_t m = 0; m < t->modules; m++) {
		const char *problem = problem_of(t, m);

		if (problem) {
			snprintf(why, bytes, "module %u: %s", m, problem);
			return true;
		}
	}
	return false;
}
