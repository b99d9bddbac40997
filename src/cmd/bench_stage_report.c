/* bench_stage_report.c - the table of the stages, what is compared, and what is hoped for. */
#include <string.h>

#include "cmd/bench_stage.h"

static const struct sl_bench_ratio comparisons[] = {
	{"sluice/correct/i16", "memcpy/correct-i16-bytes", 0.7, {0}},
	{"sluice/correct/i16", "scalar/correct/i16", 0, {0}},
	{"sluice/correct/i16", "openmp/correct/i16", 0, {0}},
	{"sluice/correct/i16", "numpy/correct", 0, {0}},
	{"sluice/correct/i16/2cores", "sluice/correct/i16", 1.7, {0}},
	{"sluice/correct/i16/1", "sluice/correct/i16", 0, {0}},
	{"sluice/correct/i16/500k", "memcpy/correct-i16-bytes/500k", 0, {0}},
	{"memcpy/correct-i16-bytes/2cores", "memcpy/correct-i16-bytes", 0, {0}},
	{"sluice/correct+veto", "sluice/correct/i16", 0, {0}},
};

const struct sl_bench_ratio *sl_bench_stage_comparison(unsigned i)
{
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

double sl_bench_ms_per_frame(const struct sl_bench_row *row, double GB_per_s)
{
	return 1e-6 * (double)row->sample[0].frame_bytes / GB_per_s;
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
		fprintf(out, "%-44s %8.3f %8.3f %8.3f %10.3f\n", row->name, f.median, f.min, f.max,
			sl_bench_ms_per_frame(row, f.median));
	}
}
