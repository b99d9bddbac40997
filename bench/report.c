/* report.c - samples become figures: medians and ranges, ratios within rounds, and the table
 * for people. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

/* What is hoped for on two quiet cores; 0.8: no more than a fifth slower. */
static const struct sl_bench_ratio comparisons[] = {
	{"sluice/udp/uc/4096", "zeromq/pushpull/4096", 3.5, {0}},
	{"sluice/udp/uc/4096", "sockets/recv/4096", 2, {0}},
	{"sluice/udp/uc/4096", "sockets/recvmmsg/4096", 0, {0}},
	{"sluice/udp/uc/4096", "zeromq/pushpull/1048576", 1, {0}},
	{"sluice/udp/uc/4096", "ucx/tcp-put/4096", 0, {0}},
	{"sluice/udp/uc/4096", "libfabric/tcp-write/4096", 0, {0}},
	{"sluice/udp/uc/4096/cut", "zeromq/pushpull/4096/cut", 2, {0}},
	{"sluice/udp/uc/4096/cut", "sockets/recv/4096/cut", 0, {0}},
	{"sluice/udp/uc/4096/nocsum", "sockets/recv/4096/nocsum", 1.3, {0}},
	{"sluice/udp/uc/4096/cut/nocsum", "sockets/recv/4096/cut", 0, {0}},
	{"sluice/udp/uc/4096", "sluice/udp/uc/4096/no-icrc-check", 0, {0}},
	{"sluice/udp/rc/4096", "sluice/udp/uc/4096", 0.8, {0}},
	{"sluice/udp/uc/4096/queues-8", "sluice/udp/uc/4096", 0.85, {0}},
	{"sluice/udp/uc/4096/queues-32", "sluice/udp/uc/4096", 0.85, {0}},
	{"sluice/packet/uc/4096/cut", "sluice/udp/uc/4096/cut", 0, {0}},
	{"sluice/xdp/uc/4096/cut", "sluice/udp/uc/4096/cut", 0, {0}},
	{"sluice/shm/8388608", "memcpy/8388608", 0.9, {0}},
	{"sluice/sls/8192", "sockets/recv-copy/8192", 2, {0}},
	{"sluice/nanet/960", "sockets/recv-copy/960", 0, {0}},
	{"sluice/sls/8192/cut", "sockets/recv-copy/8192/cut", 0, {0}},
	{"sluice/sls/8192/nocsum", "sockets/recv-copy/8192/nocsum", 0, {0}},
	{"sluice/sls/8192/cut/nocsum", "sockets/recv-copy/8192/cut/nocsum", 0, {0}},
};

double sl_bench_pick_rate(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return sample->GB_per_s;
}

double sl_bench_pick_quantile(const struct sl_bench_sample *sample, unsigned which)
{
	return sample->quantile_us[which];
}

double sl_bench_pick_cost(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return sample->instructions_per_B;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct sl_bench_figure figure_of(double *value, unsigned n)
{
	qsort(value, n, sizeof(*value), by_value);
	return (struct sl_bench_figure){
		.median = (value[(n - 1) / 2] + value[n / 2]) / 2,
		.min = value[0],
		.max = value[n - 1],
	};
}

bool sl_bench_summarise(const struct sl_bench_row *row, sl_bench_pick *pick, unsigned which,
			struct sl_bench_figure *figure)
{
	double value[SL_BENCH_SAMPLES];

	if (row->broken || !row->samples)
		return false;
	for (unsigned i = 0; i < row->samples; i++)
		value[i] = pick(&row->sample[i], which);
	*figure = figure_of(value, row->samples);
	return true;
}

uint64_t sl_bench_lost(const struct sl_bench_row *row)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < row->samples; i++)
		lost += row->sample[i].lost;
	return lost;
}

static const struct sl_bench_row *find(const struct sl_bench *bench, const char *name)
{
	for (unsigned i = 0; i < bench->rows; i++)
		if (!strcmp(bench->row[i].name, name))
			return bench->row[i].broken ? NULL : &bench->row[i];
	return NULL;
}

/* One of the names in "a|b". */
static bool is_one_of(const char *name, const char *names)
{
	size_t length = strlen(name);

	for (const char *at = names; (at = strstr(at, name)); at += length)
		if ((at == names || at[-1] == '|') && (!at[length] || at[length] == '|'))
			return true;
	return false;
}

/* The best of the rows with these names in that round; 0: there is none. */
static double best_of(const struct sl_bench *bench, const char *names, unsigned round)
{
	double best = 0;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!row->broken && round < row->samples && is_one_of(row->name, names) &&
		    row->sample[round].GB_per_s > best)
			best = row->sample[round].GB_per_s;
	}
	return best;
}

bool sl_bench_compared(const char *name)
{
	const struct sl_bench_ratio *r;

	for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++)
		if (!strcmp(name, comparisons[i].row) || !strcmp(name, comparisons[i].peer))
			return true;
	for (unsigned i = 0; (r = sl_bench_stage_comparison(i)); i++)
		if (!strcmp(name, r->row) || is_one_of(name, r->peer))
			return true;
	for (unsigned i = 0; (r = sl_bench_trigger_comparison(i)); i++)
		if (!strcmp(name, r->row) || is_one_of(name, r->peer))
			return true;
	for (unsigned i = 0; (r = sl_bench_codec_comparison(i)); i++)
		if (!strcmp(name, r->row) || is_one_of(name, r->peer))
			return true;
	for (unsigned i = 0; (r = sl_bench_share_comparison(i)); i++)
		if (!strcmp(name, r->row) || is_one_of(name, r->peer))
			return true;
	return false;
}

static const struct sl_bench_ratio *comparison(const struct sl_bench *bench, unsigned i)
{
	if (bench->kind == SL_BENCH_STAGES)
		return sl_bench_stage_comparison(i);
	if (bench->kind == SL_BENCH_TRIGGERS)
		return sl_bench_trigger_comparison(i);
	if (bench->kind == SL_BENCH_CODECS)
		return sl_bench_codec_comparison(i);
	if (bench->kind == SL_BENCH_SHARES)
		return sl_bench_share_comparison(i);
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

bool sl_bench_compare(const struct sl_bench *bench, unsigned i, struct sl_bench_ratio *ratio)
{
	const struct sl_bench_ratio *entry = comparison(bench, i);
	const struct sl_bench_row *row;
	double value[SL_BENCH_SAMPLES];
	unsigned n = 0;

	if (!entry)
		return false;
	*ratio = *entry;
	row = find(bench, ratio->row);
	/* A row has a sample of every round or is left out: the n-th are of one round. */
	for (; row && n < row->samples && best_of(bench, ratio->peer, n) > 0; n++)
		value[n] = row->sample[n].GB_per_s / best_of(bench, ratio->peer, n);
	if (n)
		ratio->figure = figure_of(value, n);
	return true;
}

/* ---- for people ---- */

static void print_rates(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;

	fprintf(out, "%-44s %8s %8s %8s  %s\n", "GB/s of payload", "median", "min", "max",
		"lost (packets or messages)");
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!row->latency && sl_bench_summarise(row, sl_bench_pick_rate, 0, &f))
			fprintf(out, "%-44s %8.3f %8.3f %8.3f  %llu\n", row->name, f.median, f.min,
				f.max, (unsigned long long)sl_bench_lost(row));
	}
}

static void print_latencies(const struct sl_bench *bench, FILE *out)
{
	static const unsigned which[] = {SL_BENCH_P50, SL_BENCH_P99, SL_BENCH_P999};
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_figure f;

		if (!row->latency || !sl_bench_summarise(row, sl_bench_pick_quantile, 0, &f))
			continue;
		if (!any)
			fprintf(out, "\n%-44s %8s %8s %8s  %s\n", "us from post to event, one way",
				"p50", "p99", "p99.9", "lost");
		any = true;
		fprintf(out, "%-44s", row->name);
		for (unsigned k = 0; k < 3; k++) {
			sl_bench_summarise(row, sl_bench_pick_quantile, which[k], &f);
			fprintf(out, " %8.2f", f.median);
		}
		fprintf(out, "  %llu\n", (unsigned long long)sl_bench_lost(row));
	}
}

static void print_costs(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;

	fprintf(out, "%-44s %8s\n", "instructions per byte, both ends, user space", "");
	for (unsigned i = 0; i < bench->rows; i++)
		if (sl_bench_summarise(&bench->row[i], sl_bench_pick_cost, 0, &f))
			fprintf(out, "%-44s %8.3f\n", bench->row[i].name, f.median);
}

/* Of several, what their names have in common says enough. */
static const char *peer_name(const struct sl_bench_ratio *r, char name[SL_BENCH_NAME])
{
	if (!strchr(r->peer, '|'))
		return r->peer;
	snprintf(name, SL_BENCH_NAME, "best of %.*s", (int)strcspn(r->peer, "/"), r->peer);
	return name;
}

static void print_ratios(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_ratio r;
	bool any = false;

	for (unsigned i = 0; sl_bench_compare(bench, i, &r); i++) {
		char hoped[32] = "", name[SL_BENCH_NAME];

		if (r.figure.median <= 0)
			continue;
		if (!any)
			fprintf(out, "\n%-73s %7s %7s %7s\n", "ratios within rounds", "median",
				"min", "max");
		any = true;
		if (r.expected > 0)
			snprintf(hoped, sizeof(hoped), "  expected %.2f: %s", r.expected,
				 r.figure.median >= r.expected ? "yes" : "no");
		fprintf(out, "%-34s / %-36s %7.2f %7.2f %7.2f%s\n", r.row, peer_name(&r, name),
			r.figure.median, r.figure.min, r.figure.max, hoped);
	}
}

static void print_absent(const struct sl_bench *bench, FILE *out)
{
	bool any = false;

	for (unsigned i = 0; i < bench->rows; i++) {
		if (!bench->row[i].broken)
			continue;
		if (!any)
			fprintf(out, "\nleft out\n");
		any = true;
		fprintf(out, "%-44s %s\n", bench->row[i].name, bench->row[i].failed);
	}
}

void sl_bench_print(const struct sl_bench *bench, FILE *out)
{
	if (bench->kind == SL_BENCH_DETECTORS) {
		sl_bench_print_detectors(bench, out);
	} else if (bench->kind == SL_BENCH_STAGES) {
		sl_bench_print_stages(bench, out);
		print_ratios(bench, out);
	} else if (bench->kind == SL_BENCH_TRIGGERS) {
		sl_bench_print_triggers(bench, out);
		print_ratios(bench, out);
	} else if (bench->kind == SL_BENCH_CODECS) {
		sl_bench_print_codecs(bench, out);
		print_ratios(bench, out);
	} else if (bench->kind == SL_BENCH_SHARES) {
		sl_bench_print_shares(bench, out);
		print_ratios(bench, out);
	} else if (bench->kind == SL_BENCH_GPUS) {
		sl_bench_print_gpu(bench, out);
	} else if (bench->o.callgrind) {
		print_costs(bench, out);
	} else {
		print_rates(bench, out);
		print_latencies(bench, out);
		print_ratios(bench, out);
	}
	print_absent(bench, out);
}
