/* report.c - the table of the stages, what is compared, and what is hoped for. */
#include <string.h>

#include "bench/stage/stage.h"

static const struct sl_bench_ratio comparisons[] = {
	{"sluice/correct/i16", "memcpy/correct-i16-bytes", 0.85, {0}},
	{"sluice/correct/i16", "scalar/correct/i16", 0, {0}},
	{"sluice/correct/i16", "openmp/correct/i16", 0, {0}},
	{"sluice/correct/i16", "numpy/correct", 0, {0}},
	{"sluice/correct/i16/2cores", "sluice/correct/i16", 0, {0}},
	{"sluice/correct/i16/2cores", "memcpy/correct-i16-bytes/2cores", 0.85, {0}},
	{"sluice/correct/i16/1", "sluice/correct/i16", 0, {0}},
	{"sluice/correct/i16/500k", "memcpy/correct-i16-bytes/500k", 0, {0}},
	{"memcpy/correct-i16-bytes/2cores", "memcpy/correct-i16-bytes", 0, {0}},
	{"sluice/correct+veto", "sluice/correct/i16", 0, {0}},
	{"sluice/correct+veto+sparse", "sluice/correct/i16", 0, {0}},
	{"sluice/integrate/1000bins", "pyfai/csr-cython|pyfai/pocl|pyfai/histogram", 25, {0}},
	{"sluice/integrate-bbox/1000bins", "pyfai/csr-cython-bbox|pyfai/pocl-bbox", 10, {0}},
	{"sluice/integrate/1000bins/tilted", "sluice/integrate/1000bins", 0.95, {0}},
	{"sluice/integrate-bbox/1000bins/tilted", "sluice/integrate-bbox/1000bins", 0.95, {0}},
	{"sluice/integrate/1000bins/2cores", "sluice/integrate/1000bins", 0, {0}},
	{"sluice/peaks", "pyfai/peakfinder", 0, {0}},
	{"sluice/sparse-radial", "pyfai/sparsify", 0, {0}},
};

/* What a frame may take at most. */
static const struct {
	const char *row;
	double ms;
} limits[] = {
	{"sluice/peaks", 30},
};

const struct sl_bench_ratio *sl_bench_stage_comparison(unsigned i)
{
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

double sl_bench_ms_per_frame(const struct sl_bench_row *row, double GB_per_s)
{
	return 1e-6 * (double)row->sample[0].frame_bytes / GB_per_s;
}

static void print_found(const struct sl_bench_row *row, FILE *out)
{
	const struct sl_bench_sample *sample = &row->sample[row->samples - 1];

	if (sample->planted)
		fprintf(out, "  %u of %u peaks", sample->found, sample->planted);
	if (sample->picked)
		fprintf(out, "  %u pixels", sample->picked);
}

double sl_bench_ms_limit(const struct sl_bench_row *row)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (!strcmp(limits[i].row, row->name))
			return limits[i].ms;
	return 0;
}

static void print_limit(const struct sl_bench_row *row, double ms, FILE *out)
{
	double most = sl_bench_ms_limit(row);

	if (most > 0)
		fprintf(out, "  expected at most %g ms: %s", most, ms <= most ? "yes" : "no");
}

void sl_bench_print_stages(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;

	fprintf(out, "%-44s %8s %8s %8s %10s\n", "GB/s of raw pixels", "median", "min", "max",
		"ms/frame");
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!sl_bench_summarise(row, sl_bench_pick_rate, 0, &f))
			continue;
		fprintf(out, "%-44s %8.3f %8.3f %8.3f %10.3f", row->name, f.median, f.min, f.max,
			sl_bench_ms_per_frame(row, f.median));
		print_found(row, out);
		print_limit(row, sl_bench_ms_per_frame(row, f.median), out);
		fputc('\n', out);
	}
}
