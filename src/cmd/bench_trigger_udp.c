/* bench_trigger_udp.c - the whole way: this program runs an experiment, with its front end as a
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

#include "base/log.h"
#include "cmd/bench_trigger.h"

enum {
	EVENTS = 64,   /* of a block, 3 KiB: one packet */
	RATE = 500000, /* events a second */
	DEADLINE_US = 1000,
	LONGER = 5,	 /* than other rows */
	SUMMARY = 65536, /* bytes of it that are read */
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
		"emulate: local\n",
		EVENTS, (unsigned long long)frames, (double)RATE / EVENTS,
		sl_bench_address(bench, row, 0, to), sl_bench_address(bench, row, 1, from),
		DEADLINE_US);
	return fclose(file) ? -EIO : 0;
}

/* Its exit status; what it says goes where our own errors go. */
static int run_program(const char *experiment, const char *summary)
{
	int status = -1;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDOUT_FILENO);
		execl("/proc/self/exe", "sluice", "run", experiment, "--quiet", "--summary",
		      summary, (char *)NULL);
		_exit(126);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The number called `name` after the first "section": of a JSON text; -1: there is none. */
static double number(const char *text, const char *section, const char *name)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", section);
	at = strstr(text, key);
	snprintf(key, sizeof(key), "\"%s\":", name);
	at = at ? strstr(at, key) : NULL;
	return at ? strtod(at + strlen(key), NULL) : -1;
}

static int read_summary(const char *path, struct sl_bench_sample *sample)
{
	static const struct {
		unsigned at;
		const char *name;
	} figures[] = {{SL_BENCH_P50, "p50"},
		       {SL_BENCH_P99, "p99"},
		       {SL_BENCH_P999, "p999"},
		       {SL_BENCH_MOST, "max"}};
	char *text = calloc(1, SUMMARY);
	FILE *file = fopen(path, "r");
	size_t n = text && file ? fread(text, 1, SUMMARY - 1, file) : 0;

	if (file)
		fclose(file);
	if (!n || number(text, "decision", "count") <= 0) {
		sl_error("the run left no summary with times of decisions");
		free(text);
		return -ENODATA;
	}
	for (unsigned i = 0; i < 4; i++)
		sample->quantile_us[figures[i].at] = number(text, "decision", figures[i].name);
	sample->count = (uint64_t)number(text, "decision", "count");
	sample->late = (uint64_t)number(text, "frames", "late");
	sample->per_s = number(text, "rates", "events_per_s");
	free(text);
	return 0;
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
