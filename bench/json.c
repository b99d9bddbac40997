/* json.c - the table for programs: the machine, a row for every figure, ratios, and the
 * distributions of latencies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/bench.h"

static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

/* What follows `key` in the first line that begins with it; the first line without one. */
static void first_line(const char *path, const char *key, char *text, size_t bytes)
{
	FILE *file = fopen(path, "r");
	char line[4096];
	const char *at;

	snprintf(text, bytes, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		at = line + strlen(key);
		snprintf(text, bytes, "%.*s", (int)bytes - 1, at + strspn(at, " \t:"));
		break;
	}
	if (file)
		fclose(file);
}

static void put_machine(const struct sl_bench *bench, FILE *out)
{
	char text[200], date[40];
	struct utsname host = {0};

	uname(&host);
	sl_clock_iso8601(sl_clock_unix_ns(), date, sizeof(date));
	first_line("/proc/cpuinfo", "model name", text, sizeof(text));
	fprintf(out, "{\n  \"machine\": {\"cpu\": ");
	put_string(out, text);
	fprintf(out, ", \"cores\": %ld, \"memory_GiB\": %.1f, \"kernel\": ",
		sysconf(_SC_NPROCESSORS_ONLN),
		(double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30));
	put_string(out, host.release);
	first_line("/proc/sys/net/core/rmem_default", "", text, sizeof(text));
	fprintf(out, ",\n    \"rmem_default\": %ld", strtol(text, NULL, 10));
	first_line("/proc/sys/net/core/rmem_max", "", text, sizeof(text));
	fprintf(out, ", \"rmem_max\": %ld, \"receive_buffer\": %llu", strtol(text, NULL, 10),
		(unsigned long long)bench->o.receive_buffer);
	first_line("/proc/loadavg", "", text, sizeof(text));
	fprintf(out, ", \"load_average\": %.2f, \"privileged\": %s, \"pinned\": %s",
		strtod(text, NULL), geteuid() == 0 ? "true" : "false",
		bench->core[0] >= 0 ? "true" : "false");
	fprintf(out,
		",\n    \"date\": \"%s\", \"version\": \"%s\", \"rounds\": %u, "
		"\"seconds\": %g},\n",
		date, SL_VERSION, bench->o.rounds, bench->o.seconds);
}

static void put_row(FILE *out, bool *first, const char *name, const char *suffix,
		    const struct sl_bench_figure *f, const char *unit)
{
	fprintf(out,
		"%s    {\"name\": \"%s%s\", \"value\": %.6g, \"unit\": \"%s\", "
		"\"min\": %.6g, \"max\": %.6g",
		*first ? "" : ",\n", name, suffix, f->median, unit, f->min, f->max);
	*first = false;
}

static void put_samples(FILE *out, const struct sl_bench_row *row)
{
	fprintf(out, ", \"samples\": [");
	for (unsigned i = 0; i < row->samples; i++)
		fprintf(out, "%s%.6g", i ? ", " : "", row->sample[i].GB_per_s);
	fprintf(out, "]");
}

static void put_stage(FILE *out, const struct sl_bench_row *row, const struct sl_bench_figure *f)
{
	const struct sl_bench_sample *sample = &row->sample[row->samples - 1];

	fprintf(out, ", \"ms_per_frame\": %.6g, \"frame_bytes\": %llu",
		sl_bench_ms_per_frame(row, f->median), (unsigned long long)sample->frame_bytes);
	if (sl_bench_ms_limit(row) > 0)
		fprintf(out, ", \"expected_ms\": %g", sl_bench_ms_limit(row));
	if (sample->planted)
		fprintf(out, ", \"planted\": %u, \"found\": %u", sample->planted, sample->found);
	if (sample->picked)
		fprintf(out, ", \"picked\": %u", sample->picked);
}

static void put_figures(FILE *out, const struct sl_bench *bench, const struct sl_bench_row *row,
			bool *first)
{
	static const struct {
		unsigned which;
		const char *suffix;
	} quantiles[] = {{SL_BENCH_P50, "/p50"},
			 {SL_BENCH_P99, "/p99"},
			 {SL_BENCH_P999, "/p99.9"},
			 {SL_BENCH_MOST, "/max"}};
	unsigned long long lost = sl_bench_lost(row);
	struct sl_bench_figure f;

	for (unsigned i = 0; row->latency && i < (row->trigger || row->gpu ? 4 : 3); i++)
		if (sl_bench_summarise(row, sl_bench_pick_quantile, quantiles[i].which, &f)) {
			put_row(out, first, row->name, quantiles[i].suffix, &f, "us");
			fprintf(out, ", \"loss\": %llu", lost);
			if (row->trigger)
				sl_bench_put_trigger(row, out);
			if (row->gpu)
				sl_bench_put_paced(row, out);
			if (row->share)
				sl_bench_put_share_latency(row, out);
			fprintf(out, "}");
		}
	if (row->latency)
		return;
	if (bench->o.callgrind && sl_bench_summarise(row, sl_bench_pick_cost, 0, &f)) {
		put_row(out, first, row->name, "/instructions", &f, "instructions/B");
		fprintf(out, "}");
	} else if (sl_bench_summarise(row, sl_bench_pick_rate, 0, &f)) {
		put_row(out, first, row->name, "", &f, "GB/s");
		fprintf(out, ", \"loss\": %llu, \"bytes\": %llu", lost,
			(unsigned long long)row->sample[row->samples - 1].bytes);
		if (row->detector)
			fprintf(out, ", \"events_per_s\": %.6g", sl_bench_events_per_s(row, &f));
		if (row->codec)
			fprintf(out, ", \"packed\": %.6g", row->sample[row->samples - 1].packed);
		if (bench->kind == SL_BENCH_SHARES)
			sl_bench_put_share_rate(row, out);
		if (row->trigger)
			sl_bench_put_trigger(row, out);
		else if (row->gpu)
			sl_bench_put_gpu(bench, row, &f, out);
		else if (row->work)
			put_stage(out, row, &f);
		put_samples(out, row);
		fprintf(out, "}");
	}
}

static void put_ratios(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_ratio r;
	bool first = true;

	fprintf(out, "  \"ratios\": [\n");
	for (unsigned i = 0; sl_bench_compare(bench, i, &r); i++) {
		char name[2 * SL_BENCH_NAME];

		if (r.figure.median <= 0)
			continue;
		snprintf(name, sizeof(name), "%s / %s", r.row, r.peer);
		put_row(out, &first, name, "", &r.figure, "");
		if (r.expected > 0)
			fprintf(out, ", \"expected\": %g", r.expected);
		fprintf(out, "}");
	}
	fprintf(out, "\n  ],\n");
}

static void put_distributions(const struct sl_bench *bench, FILE *out)
{
	bool first = true;

	fprintf(out, "  \"levels\": [");
	for (unsigned k = 0; k < SL_BENCH_QUANTILES; k++)
		fprintf(out, "%s%g", k ? ", " : "", sl_bench_levels[k]);
	fprintf(out, "],\n  \"latencies_us\": {\n");
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_figure f;

		if (!row->latency || !sl_bench_summarise(row, sl_bench_pick_quantile, 0, &f))
			continue;
		fprintf(out, "%s    \"%s\": [", first ? "" : ",\n", row->name);
		first = false;
		for (unsigned k = 0; k < SL_BENCH_QUANTILES; k++) {
			sl_bench_summarise(row, sl_bench_pick_quantile, k, &f);
			fprintf(out, "%s%.6g", k ? ", " : "", f.median);
		}
		fprintf(out, "]");
	}
	fprintf(out, "\n  },\n");
}

static void put_absent(const struct sl_bench *bench, FILE *out)
{
	bool first = true;

	fprintf(out, "  \"left_out\": {\n");
	for (unsigned i = 0; i < bench->rows; i++) {
		if (!bench->row[i].broken)
			continue;
		fprintf(out, "%s    \"%s\": ", first ? "" : ",\n", bench->row[i].name);
		put_string(out, bench->row[i].failed);
		first = false;
	}
	fprintf(out, "\n  }\n}\n");
}

int sl_bench_write_json(const struct sl_bench *bench, const char *path)
{
	FILE *out = fopen(path, "w");
	bool first = true;
	int err;

	if (!out) {
		err = -errno;
		sl_error("--json: %s: %s", path, strerror(-err));
		return err;
	}
	put_machine(bench, out);
	fprintf(out, "  \"rows\": [\n");
	for (unsigned i = 0; i < bench->rows; i++)
		put_figures(out, bench, &bench->row[i], &first);
	fprintf(out, "\n  ],\n");
	put_ratios(bench, out);
	put_distributions(bench, out);
	put_absent(bench, out);
	err = ferror(out) | fclose(out) ? -EIO : 0;
	if (err)
		sl_error("--json: %s could not be written whole", path);
	return err;
}
