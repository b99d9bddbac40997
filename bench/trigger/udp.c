/* udp.c - the whole way: this program runs an experiment, with its front end as a
 * child, over `udp` on this host, at half a million events of the RICH a second. Threads are where
 * they are in any run; nothing is done for the measurement but to read the summary.
 *
 * Events are those of the emulator's pool, made before the run: the front end only sends them. The
 * ring holds an eighth of a second, so that a receiver that is held up does not hold up the front
 * end: what waits is late, not sent later. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config/config.h"
#include "base/log.h"
#include "bench/trigger/trigger.h"

enum {
	EVENTS = 64,   /* of a block, 3 KiB: one packet */
	RATE = 500000, /* events a second */
	DEADLINE_US = 1000,
	LONGER = 5, /* than other rows */
};

static int write_experiment(const struct sl_bench *bench, const struct sl_bench_row *row,
			    const char *path)
{
	uint64_t frames = (uint64_t)(LONGER * bench->o.seconds * RATE / EVENTS) + 1;
	char to[64], from[64];
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	fprintf(file,
		"detector: {kind: rich, events: %d, frames: %llu, frame_rate_Hz: %.3f}\n"
		"link: {kind: udp, listen: %s, source: %s}\n"
		"ring: {slots: 1024}\n"
		"unit: {kind: cpu, deadline_us: %d}\n"
		"stages: [{rings: {}}]\n"
		"sinks: [\"null\"]\n"
		"threads: {%s}\n"
		"emulate: local\n",
		EVENTS, (unsigned long long)frames, (double)RATE / EVENTS,
		sl_bench_address(bench, row, 0, to), sl_bench_address(bench, row, 1, from),
		DEADLINE_US, row->trigger->threads ? row->trigger->threads : "");
	return fclose(file) ? -EIO : 0;
}

/* Its exit status; what it says goes where our own errors go. */
static int run_program(const char *experiment, const char *summary)
{
	char program[SL_BENCH_PATH];
	int status = -1;
	pid_t child;

	if (!sl_bench_find_sluice(program))
		return -ENOENT;
	child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		int null = open("/dev/null", O_WRONLY);

		if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
			_exit(126);
		close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* what libraries have opened */
		execl(program, "sluice", "run", experiment, "--quiet", "--summary", summary,
		      (char *)NULL);
		_exit(126);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Of a section, which may be NULL; negative: there is none, or it is no number that can be. */
static double number(struct sl_node *section, const char *name)
{
	struct sl_node *node = section ? sl_node_get(section, name) : NULL;
	char *end;
	double value;

	if (!node || node->kind != SL_NODE_SCALAR || !node->text[0])
		return -1;
	value = strtod(node->text, &end);
	return *end == 0 && value >= 0 && value < 1e18 ? value : -1;
}

static struct sl_node *section_of(struct sl_node *map, const char *name)
{
	struct sl_node *node = map ? sl_node_get(map, name) : NULL;

	return node && node->kind == SL_NODE_MAP ? node : NULL;
}

static int take_figures(struct sl_node *root, struct sl_bench_sample *sample)
{
	static const struct {
		unsigned at;
		const char *name;
	} figures[] = {{SL_BENCH_P50, "p50"},
		       {SL_BENCH_P99, "p99"},
		       {SL_BENCH_P999, "p999"},
		       {SL_BENCH_MOST, "max"}};
	struct sl_node *decision = section_of(section_of(root, "latency_us"), "decision");
	double count = number(decision, "count");
	double late = number(section_of(root, "frames"), "late");
	double rate = number(section_of(root, "rates"), "events_per_s");

	if (count <= 0 || late < 0 || rate < 0)
		return -ENODATA;
	for (unsigned i = 0; i < 4; i++) {
		double us = number(decision, figures[i].name);

		if (us < 0)
			return -ENODATA;
		sample->quantile_us[figures[i].at] = us;
	}
	sample->count = (uint64_t)count;
	sample->late = (uint64_t)late;
	sample->per_s = rate;
	return 0;
}

static int read_summary(const char *path, struct sl_bench_sample *sample)
{
	struct sl_config *summary; /* JSON is YAML */
	int err = sl_config_open(path, &summary);

	if (!err) {
		err = take_figures(summary->root, sample);
		sl_config_close(summary);
	}
	if (err)
		sl_error("the run left no summary with times of decisions");
	return err;
}

/* Quantiles that the summary does not have are those below. */
static void fill_up(struct sl_bench_sample *sample)
{
	for (unsigned i = 1; i < SL_BENCH_QUANTILES; i++)
		if (sample->quantile_us[i] < sample->quantile_us[i - 1])
			sample->quantile_us[i] = sample->quantile_us[i - 1];
}

int sl_bench_udp(const struct sl_bench *bench, const struct sl_bench_row *row,
		 struct sl_bench_sample *sample)
{
	const char *base = getenv("TMPDIR");
	char folder[64], experiment[80], summary[80];
	int err;

	if (!base || strlen(base) > 40)
		base = "/tmp";
	snprintf(folder, sizeof(folder), "%s/sluice-bench-XXXXXX", base);
	if (!mkdtemp(folder))
		return -errno;
	snprintf(experiment, sizeof(experiment), "%s/run.yaml", folder);
	snprintf(summary, sizeof(summary), "%s/summary.json", folder);
	err = write_experiment(bench, row, experiment);
	if (!err) {
		int status = run_program(experiment, summary);

		err = status ? -EIO : read_summary(summary, sample);
		if (status)
			sl_error("sluice run ended with status %d", status);
	}
	fill_up(sample);
	unlink(experiment);
	unlink(summary);
	rmdir(folder);
	return err;
}
