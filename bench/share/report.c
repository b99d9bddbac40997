/* report.c - what `sluice bench share` found, for people and for programs. */
#include <string.h>

#include "bench/share/share.h"

static const struct {
	unsigned which;
	const char *name;
} shown[] = {{SL_BENCH_P50, "p50"}, {SL_BENCH_P99, "p99"}, {SL_BENCH_P999, "p99.9"}};

enum { SHOWN = sizeof(shown) / sizeof(shown[0]) };

static double pick_late(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return (double)sample->late;
}

static double pick_count(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return (double)sample->count;
}

static bool is_of_a_crowd(const struct sl_bench_row *row)
{
	return row->share && row->share->what == SL_BENCH_CROWD;
}

/* Each with its range over the rounds. */
static void print_quantiles(const struct sl_bench_row *row, FILE *out)
{
	const struct sl_bench_share_limit *limit = sl_bench_share_limit(row->name);
	struct sl_bench_figure f;

	for (unsigned k = 0; k < SHOWN; k++) {
		char range[40];

		sl_bench_summarise(row, sl_bench_pick_quantile, shown[k].which, &f);
		snprintf(range, sizeof(range), "(%.4g .. %.4g)", f.min, f.max);
		fprintf(out, " %9.2f %-20s", f.median, range);
	}
	if (!limit)
		return;
	sl_bench_summarise(row, sl_bench_pick_quantile, limit->which, &f);
	fprintf(out, "  expected %s at most %g: %s", limit->which == SL_BENCH_P50 ? "p50" : "p99",
		limit->us, f.median <= limit->us ? "yes" : "no");
}

static void print_rates(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (row->latency || !sl_bench_summarise(row, sl_bench_pick_rate, 0, &f))
			continue;
		if (!any)
			fprintf(out, "%-34s %9s %9s %9s %9s %20s %9s %20s %9s\n",
				"GB/s; us for each", "median", "min", "max", "p50", "", "p99", "",
				"p99.9");
		any = true;
		fprintf(out, "%-34s %9.4g %9.4g %9.4g", row->name, f.median, f.min, f.max);
		print_quantiles(row, out);
		fprintf(out, "\n");
	}
}

static void print_latencies(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f, late;
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!row->latency || !sl_bench_summarise(row, pick_count, 0, &f))
			continue;
		if (!any)
			fprintf(out, "\n%-34s %9s %9s %20s %9s %20s %9s\n", "us", "of", "p50", "",
				"p99", "", "p99.9");
		any = true;
		fprintf(out, "%-34s %9.0f", row->name, f.median);
		print_quantiles(row, out);
		if (is_of_a_crowd(row) && sl_bench_summarise(row, pick_late, 0, &late))
			fprintf(out, "  commits missed: %.0f (%.0f to %.0f)%s", late.median,
				late.min, late.max,
				!row->share->followers ? ""
				: late.median > 0      ? "; expected 0: no"
						       : "; expected 0: yes");
		fprintf(out, "\n");
	}
}

void sl_bench_print_shares(const struct sl_bench *bench, FILE *out)
{
	print_rates(bench, out);
	print_latencies(bench, out);
}

/* Of a rate: how long one takes. */
void sl_bench_put_share_rate(const struct sl_bench_row *row, FILE *out)
{
	struct sl_bench_figure f;

	for (unsigned k = 0; k < SHOWN; k++) {
		sl_bench_summarise(row, sl_bench_pick_quantile, shown[k].which, &f);
		fprintf(out, ", \"us_%s\": %.6g, \"us_%s_min\": %.6g, \"us_%s_max\": %.6g",
			shown[k].name, f.median, shown[k].name, f.min, shown[k].name, f.max);
	}
}

void sl_bench_put_share_latency(const struct sl_bench_row *row, FILE *out)
{
	const struct sl_bench_share_limit *limit = sl_bench_share_limit(row->name);
	struct sl_bench_figure count, late;

	sl_bench_summarise(row, pick_count, 0, &count);
	sl_bench_summarise(row, pick_late, 0, &late);
	fprintf(out, ", \"count\": %.6g", count.median);
	if (is_of_a_crowd(row))
		fprintf(out, ", \"missed\": %.6g, \"missed_max\": %.6g", late.median, late.max);
	if (limit)
		fprintf(out, ", \"expected_us\": %g", limit->us);
}
