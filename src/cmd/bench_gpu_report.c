/* bench_gpu_report.c - what `sluice bench gpu` measured, for people and for programs. */
#include <string.h>

#include "cmd/bench_gpu.h"

static const struct sl_bench_row *copy_of(const struct sl_bench *bench,
					  const struct sl_bench_row *row)
{
	for (unsigned i = 0; i < bench->rows; i++)
		if (bench->row[i].gpu->way == SL_BENCH_GPU_COPY &&
		    bench->row[i].platform == row->platform && bench->row[i].samples)
			return &bench->row[i];
	return NULL;
}

/* Of a frame, or of an event. */
static double us_of(const struct sl_bench_row *row, double GB_per_s)
{
	uint32_t items = row->sample[0].frame_items ? row->sample[0].frame_items : 1;

	return 1e-3 * (double)row->sample[0].frame_bytes / GB_per_s / items;
}

/* How much of the copy's rate `correct` has, which moves the same bytes; 0: it cannot be said. */
static double share_of_copy(const struct sl_bench *bench, const struct sl_bench_row *row,
			    const struct sl_bench_figure *f)
{
	const struct sl_bench_row *copy = copy_of(bench, row);
	struct sl_bench_figure copied;

	if (!copy || strcmp(row->gpu->work.name, "correct") != 0 ||
	    !sl_bench_summarise(copy, sl_bench_pick_rate, 0, &copied))
		return 0;
	return us_of(copy, copied.median) / us_of(row, f->median);
}

/* An event at a time through a ring. */
static void print_rings(const struct sl_bench *bench, FILE *out)
{
	static const unsigned level[] = {SL_BENCH_P50, SL_BENCH_P99, SL_BENCH_P999, SL_BENCH_MOST};
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_figure f;

		if (!row->latency || !sl_bench_summarise(row, sl_bench_pick_quantile, 0, &f))
			continue;
		if (!any)
			fprintf(out, "\n%-40s %8s %8s %8s %8s\n",
				"us from event to result, at a time", "p50", "p99", "p99.9", "max");
		any = true;
		fprintf(out, "%-40s", row->name);
		for (unsigned k = 0; k < 4; k++) {
			sl_bench_summarise(row, sl_bench_pick_quantile, level[k], &f);
			fprintf(out, " %8.2f", f.median);
		}
		fputc('\n', out);
	}
}

void sl_bench_print_gpu(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f, single;
	double share;

	fprintf(out, "%-32s %10s %10s %10s %8s %10s\n", "us per frame, or event", "median", "min",
		"max", "GB/s", "a stack us");
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (row->latency || !sl_bench_summarise(row, sl_bench_pick_rate, 0, &f) ||
		    !sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P50, &single))
			continue;
		fprintf(out, "%-32s %10.3f %10.3f %10.3f %8.1f", row->name, us_of(row, f.median),
			us_of(row, f.max), us_of(row, f.min), f.median);
		if (single.median > 0)
			fprintf(out, " %10.1f", single.median);
		share = share_of_copy(bench, row, &f);
		if (share > 0)
			fprintf(out, "  %.0f %% of the copy's rate", 100 * share);
		if (row->gpu->most_us > 0)
			fprintf(out, "  expected at most %g us: %s", row->gpu->most_us,
				us_of(row, f.median) <= row->gpu->most_us ? "yes" : "no");
		fputc('\n', out);
	}
	print_rings(bench, out);
}

void sl_bench_put_gpu(const struct sl_bench *bench, const struct sl_bench_row *row,
		      const struct sl_bench_figure *f, FILE *out)
{
	struct sl_bench_figure p50, p99;
	double share = share_of_copy(bench, row, f);

	fprintf(out, ", \"us_per_item\": %.6g, \"us_min\": %.6g, \"us_max\": %.6g",
		us_of(row, f->median), us_of(row, f->max), us_of(row, f->min));
	if (sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P50, &p50) &&
	    sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P99, &p99))
		fprintf(out, ", \"stack_us_p50\": %.6g, \"stack_us_p99\": %.6g", p50.median,
			p99.median);
	fprintf(out, ", \"stack\": %u, \"items\": %u, \"item_parts\": %g", row->stack,
		row->sample[0].frame_items, row->sample[0].item_parts);
	if (row->gpu->most_us > 0)
		fprintf(out, ", \"expected_us\": %g", row->gpu->most_us);
	if (share > 0)
		fprintf(out, ", \"share_of_copy\": %.4g", share);
	fprintf(out, ", \"device\": \"%s\"", row->sample[0].device);
}
