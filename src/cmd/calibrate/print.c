/* print.c - what a calibration file has, in a few lines. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "calibration/tables.h"
#include "cmd/calibrate/calibrate.h"

static void print_median(const float *table, uint64_t n, int width, int digits)
{
	float median = table ? sl_median(table, n) : NAN;

	if (isnan(median))
		printf("%*s", width, "-");
	else
		printf("%*.*f", width, digits, (double)median);
}

static void print_gains(const struct sl_tables *t)
{
	printf("  %-4s %12s %16s %12s %16s\n", "", "dark frames", "pedestal (ADU)", "RMS (ADU)",
	       "gain (ADU/keV)");
	for (int g = 0; g < SL_GAINS; g++) {
		uint64_t n = t->cells * t->pixels;

		if (!t->pedestal[g] && !t->gain[g])
			continue;
		printf("  G%d   ", g);
		if (t->frames[g])
			printf("%12llu", (unsigned long long)t->frames[g]);
		else
			printf("%12s", "-");
		print_median(t->pedestal[g], n, 17, 1);
		print_median(t->rms[g], n, 13, 2);
		print_median(t->gain[g], t->pixels, 17, 4);
		putchar('\n');
	}
	printf("  (medians over all pixels%s)\n", t->cells > 1 ? " and storage cells" : "");
}

/* How many pixels are bad. */
static uint64_t print_mask(const struct sl_tables *t)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} reasons[] = {{SL_MASK_EMPTY, "without samples"},
		       {SL_MASK_GAIN, "in another gain"},
		       {SL_MASK_STUCK, "stuck"},
		       {SL_MASK_PEDESTAL, "pedestal out of bounds"},
		       {SL_MASK_RMS, "RMS out of bounds"}};
	uint64_t any = 0, n[5] = {0};

	for (uint64_t i = 0; t->mask && i < t->pixels; i++) {
		any += t->mask[i] != 0;
		for (int r = 0; r < 5; r++)
			n[r] += !!(t->mask[i] & reasons[r].bit);
	}
	printf("  bad pixels: %llu of %llu", (unsigned long long)any,
	       (unsigned long long)t->pixels);
	for (int r = 0, first = 1; r < 5; r++)
		if (n[r]) {
			printf("%s%llu %s", first ? " (" : ", ", (unsigned long long)n[r],
			       reasons[r].name);
			first = 0;
		}
	printf("%s\n", any ? ")" : "");
	return any;
}

int sl_calibration_print(const char *path)
{
	struct sl_geometry geometry;
	struct sl_tables tables;
	int err = sl_calibration_look(path, &geometry);

	if (err)
		return err;
	sl_tables_init(&tables, &geometry);
	err = sl_calibration_read(path, &tables);
	if (!err) {
		printf("\nCalibration %s: %s, %u module%s of %u x %u pixels, %u storage cell%s\n",
		       path, tables.detector, tables.modules, tables.modules > 1 ? "s" : "",
		       tables.rows, tables.columns, tables.cells, tables.cells > 1 ? "s" : "");
		print_gains(&tables);
		/* Nobody could use it, and nobody must by mistake. */
		if (print_mask(&tables) > tables.pixels / 2) {
			sl_error("most pixels are bad: this is no calibration. Are these dark "
				 "frames, in the gain that was asked for (--gain), of a detector "
				 "that "
				 "has pedestals? Counters read 0 in the dark");
			err = -ERANGE;
		}
	}
	sl_tables_free(&tables);
	return err;
}
