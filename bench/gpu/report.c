/* report.c - what `sluice bench gpu` measured, for people and for programs. */
#include <string.h>

#include "bench/gpu/gpu.h"

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

static const unsigned level[] = {SL_BENCH_P50, SL_BENCH_P99, SL_BENCH_P999, SL_BENCH_MOST};

static bool is_ingest(const struct sl_bench_row *row)
{
	return row->gpu->way == SL_BENCH_GPU_RESIDENT || row->gpu->way == SL_BENCH_GPU_WRITTEN;
}

static double pick_per_s(const struct sl_bench_sample *sample, unsigned which)
{
	return sample->per_s;
}

static double pick_out(const struct sl_bench_sample *sample, unsigned which)
{
	return sample->out_GB_per_s;
}

static const struct sl_bench_sample *last_of(const struct sl_bench_row *row)
{
	return &row->sample[row->samples - 1];
}

static void print_quantiles(const struct sl_bench_row *row, FILE *out)
{
	struct sl_bench_figure f;

	for (unsigned k = 0; k < 4; k++) {
		sl_bench_summarise(row, sl_bench_pick_quantile, level[k], &f);
		fprintf(out, " %8.2f", f.median);
	}
}

/* An event at a time through a ring; or blocks of them at a rate. */
static void print_rings(const struct sl_bench *bench, FILE *out)
{
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
		print_quantiles(row, out);
		if (row->gpu->way == SL_BENCH_GPU_PACED &&
		    sl_bench_summarise(row, pick_per_s, 0, &f))
			fprintf(out, "  at %.4g M events/s, %llu answered, %llu never begun",
				1e-6 * f.median, (unsigned long long)last_of(row)->count,
				(unsigned long long)last_of(row)->late);
		fputc('\n', out);
	}
}

/* Five rings through the unit. */
static void print_ingest(const struct sl_bench *bench, FILE *out)
{
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_figure in, back;

		if (!is_ingest(row) || !sl_bench_summarise(row, sl_bench_pick_rate, 0, &in) ||
		    !sl_bench_summarise(row, pick_out, 0, &back))
			continue;
		if (!any)
			fprintf(out, "\n%-32s %7s %7s %6s %8s %8s %8s %8s\n",
				"GB/s, and us from meta to result", "in", "out", "s", "p50", "p99",
				"p99.9", "max");
		any = true;
		fprintf(out, "%-32s %7.2f %7.3f %6.2f", row->name, in.median, back.median,
			last_of(row)->took_s);
		print_quantiles(row, out);
		fprintf(out,
			"  %llu frames, %llu kept; of %llu: %llu good, %llu wrong, %llu "
			"unanswered\n",
			(unsigned long long)last_of(row)->count,
			(unsigned long long)last_of(row)->kept,
			(unsigned long long)last_of(row)->published,
			(unsigned long long)last_of(row)->good,
			(unsigned long long)last_of(row)->wrongs,
			(unsigned long long)last_of(row)->unanswered);
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

		if (row->latency || is_ingest(row) ||
		    !sl_bench_summarise(row, sl_bench_pick_rate, 0, &f) ||
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
	print_ingest(bench, out);
}

void sl_bench_put_paced(const struct sl_bench_row *row, FILE *out)
{
	struct sl_bench_figure f;

	if (row->gpu->way != SL_BENCH_GPU_PACED || !sl_bench_summarise(row, pick_per_s, 0, &f))
		return;
	fprintf(out,
		", \"asked_per_s\": %g, \"events_per_s\": %.6g, \"events\": %llu, "
		"\"never_begun\": %llu, \"block\": %u, \"fill_us\": %.4g",
		1e6 * row->gpu->M_per_s, f.median, (unsigned long long)last_of(row)->count,
		(unsigned long long)last_of(row)->late, last_of(row)->frame_items,
		last_of(row)->fill_us);
}

static void put_ingest(const struct sl_bench_row *row, FILE *out)
{
	static const char *const name[] = {"p50", "p99", "p999", "max"};
	const struct sl_bench_sample *s = last_of(row);
	struct sl_bench_figure f;

	sl_bench_summarise(row, pick_out, 0, &f);
	fprintf(out, ", \"seconds\": %.4g, \"out_GB_per_s\": %.6g", s->took_s, f.median);
	for (unsigned k = 0; k < 4; k++) {
		sl_bench_summarise(row, sl_bench_pick_quantile, level[k], &f);
		fprintf(out, ", \"frame_us_%s\": %.6g", name[k], f.median);
	}
	fprintf(out,
		", \"frames\": %llu, \"kept\": %llu, \"published\": %llu, \"good\": %llu, "
		"\"wrong\": %llu, \"unanswered\": %llu",
		(unsigned long long)s->count, (unsigned long long)s->kept,
		(unsigned long long)s->published, (unsigned long long)s->good,
		(unsigned long long)s->wrongs, (unsigned long long)s->unanswered);
}

void sl_bench_put_gpu(const struct sl_bench *bench, const struct sl_bench_row *row,
		      const struct sl_bench_figure *f, FILE *out)
{
	struct sl_bench_figure p50, p99;
	double share = share_of_copy(bench, row, f);

	fprintf(out, ", \"us_per_item\": %.6g, \"us_min\": %.6g, \"us_max\": %.6g",
		us_of(row, f->median), us_of(row, f->max), us_of(row, f->min));
	if (is_ingest(row))
		put_ingest(row, out);
	else if (sl_bench_summarise(row, sl_bench_pick_quantile, SL_BENCH_P50, &p50) &&
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
