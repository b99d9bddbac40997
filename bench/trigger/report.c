/* report.c - the tables of triggers, what is compared, and what is hoped for. */
#include <string.h>

#include "bench/trigger/trigger.h"

/* 0.77: hexagons may be 30 % dearer. */
static const struct sl_bench_ratio comparisons[] = {
	{"sluice/rings", "scalar/rings", 0, {0}},
	{"sluice/rings/avx2", "scalar/rings", 0, {0}},
	{"sluice/rings/baseline", "scalar/rings", 0, {0}},
	{"sluice/rings", "oracle/rings", 0, {0}},
	{"sluice/tracks/rectangles", "scalar/tracks/rectangles", 0, {0}},
	{"sluice/tracks/hexagons", "scalar/tracks/hexagons", 0, {0}},
	{"sluice/tracks/hexagons/avx2", "scalar/tracks/hexagons", 0, {0}},
	{"sluice/tracks/hexagons/baseline", "scalar/tracks/hexagons", 0, {0}},
	{"sluice/tracks/hexagons/bend0", "scalar/tracks/hexagons/bend0", 0, {0}},
	{"sluice/tracks/rectangles", "oracle/tracks/rectangles", 0, {0}},
	{"sluice/tracks/hexagons", "oracle/tracks/hexagons", 0, {0}},
	{"sluice/tracks/hexagons", "sluice/tracks/rectangles", 0.77, {0}},
	{"sluice/tracks/hexagons/avx2", "sluice/tracks/rectangles/avx2", 0.77, {0}},
	{"sluice/tracks/hexagons/baseline", "sluice/tracks/rectangles/baseline", 0.77, {0}},
	{"sluice/tracks/hexagons/fit", "sluice/tracks/rectangles/fit", 0.77, {0}},
	{"sluice/tracks/hexagons/bend0", "sluice/tracks/rectangles/bend0", 0.77, {0}},
};

const struct sl_bench_ratio *sl_bench_trigger_comparison(unsigned i)
{
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

/* ---- figures ---- */

static double pick_us(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return 1e-3 * (double)sample->frame_bytes / sample->GB_per_s / sample->frame_items;
}

static double pick_rate(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return sample->per_s;
}

static double pick_share(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return sample->share;
}

static const char *item_name(const struct sl_bench_row *row)
{
	return row->size == SL_BENCH_SECTORS ? "sector" : "event";
}

static const char *part_name(const struct sl_bench_row *row)
{
	return row->size >= SL_BENCH_SECTORS ? "stub" : "hit";
}

static uint64_t all_of(const struct sl_bench_row *row, bool late)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < row->samples; i++)
		n += late ? row->sample[i].late : row->sample[i].count;
	return n;
}

/* ---- for people ---- */

static void print_hoped(const struct sl_bench_row *row, double us, FILE *out)
{
	if (row->trigger->most_us > 0)
		fprintf(out, "  expected at most %g us: %s", row->trigger->most_us,
			us <= row->trigger->most_us ? "yes" : "no");
	fputc('\n', out);
}

static void print_costs(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (row->latency || !sl_bench_summarise(row, pick_us, 0, &f))
			continue;
		if (!any)
			fprintf(out, "%-44s %9s %9s %9s %14s %16s\n", "us on one core", "median",
				"min", "max", "a second", "ns each");
		any = true;
		fprintf(out, "%-44s %9.3f %9.3f %9.3f %7.0f %ss %9.2f a %s", row->name, f.median,
			f.min, f.max, 1e6 / f.median, item_name(row),
			1e3 * f.median / row->sample[0].item_parts, part_name(row));
		print_hoped(row, f.median, out);
	}
}

static void print_latency(const struct sl_bench_row *row, FILE *out)
{
	static const unsigned which[] = {SL_BENCH_P50, SL_BENCH_P99, SL_BENCH_P999, SL_BENCH_MOST};
	struct sl_bench_figure f;

	fprintf(out, "%-44s", row->name);
	for (unsigned k = 0; k < 4; k++) {
		sl_bench_summarise(row, sl_bench_pick_quantile, which[k], &f);
		fprintf(out, " %9.1f", f.median);
	}
	sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P99, &f);
	fprintf(out, "  %9.1f .. %9.1f", f.min, f.max);
	if (row->trigger->way == SL_BENCH_JITTER) {
		sl_bench_summarise(row, pick_share, 0, &f);
		fprintf(out, "  %.3f %% of the time lost (%.3f .. %.3f)\n", 100 * f.median,
			100 * f.min, 100 * f.max);
		return;
	}
	sl_bench_summarise(row, pick_rate, 0, &f);
	fprintf(out, " %9.0f/s", f.median);
	if (row->trigger->way == SL_BENCH_UDP)
		fprintf(out, "  late %llu of %llu blocks", (unsigned long long)all_of(row, true),
			(unsigned long long)all_of(row, false));
	sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P99, &f);
	print_hoped(row, f.median, out);
}

void sl_bench_print_triggers(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;
	bool any = false;

	print_costs(bench, out);
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!row->latency || !sl_bench_summarise(row, sl_bench_pick_quantile, 0, &f))
			continue;
		if (!any)
			fprintf(out, "\n%-44s %9s %9s %9s %9s  %22s %11s\n",
				"us from when it is due to the decision", "p50", "p99", "p99.9",
				"max", "p99 of the rounds", "events");
		any = true;
		print_latency(row, out);
	}
}

/* ---- for programs ---- */

void sl_bench_put_trigger(const struct sl_bench_row *row, FILE *out)
{
	struct sl_bench_figure f;

	if (row->trigger->most_us > 0)
		fprintf(out, ", \"expected_us\": %g", row->trigger->most_us);
	if (!row->latency) {
		sl_bench_summarise(row, pick_us, 0, &f);
		fprintf(out,
			", \"item\": \"%s\", \"us_per_item\": %.6g, \"us_min\": %.6g, \"us_max\": "
			"%.6g, \"items_per_s\": %.6g, \"part\": \"%s\", \"parts\": %.6g, "
			"\"ns_per_part\": %.6g",
			item_name(row), f.median, f.min, f.max, 1e6 / f.median, part_name(row),
			row->sample[0].item_parts, 1e3 * f.median / row->sample[0].item_parts);
		return;
	}
	fprintf(out, ", \"count\": %llu", (unsigned long long)all_of(row, false));
	if (row->trigger->way == SL_BENCH_JITTER) {
		sl_bench_summarise(row, pick_share, 0, &f);
		fprintf(out, ", \"share_lost\": %.6g", f.median);
		return;
	}
	sl_bench_summarise(row, pick_rate, 0, &f);
	fprintf(out, ", \"events_per_s\": %.6g", f.median);
	if (row->trigger->way == SL_BENCH_UDP)
		fprintf(out, ", \"late\": %llu", (unsigned long long)all_of(row, true));
}
