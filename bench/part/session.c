/* session.c - runs one after another in one session: from start to the first frame.
 *
 *   bench_session EXPERIMENT RUNS ROOT PROGRAM [section.key=value ...]
 *
 * The first run opens memory, stages and front end; its time is apart from the others. Prints
 * JSON. */
#include <stdio.h>
#include <stdlib.h>

#include <sluice/sluice.h>

#include "base/clock.h"

static struct sl_status status;

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Milliseconds from start to the first frame, and to the end of the run; -1: it was not intact. */
static double one_run(struct sl_session *session, double *whole_ms)
{
	const uint32_t over = 1u << SL_STATE_ENDED | 1u << SL_STATE_FAULT;
	uint64_t start_ns = sl_clock_ns();

	if (sl_session_start(session) || sl_session_wait(session, over, -1) != SL_STATE_ENDED)
		return -1;
	*whole_ms = (double)(sl_clock_ns() - start_ns) * 1e-6;
	if (sl_session_status(session, &status, sizeof(status)) ||
	    status.result != SL_RESULT_INTACT || !status.first_ns)
		return -1;
	return (double)(status.first_ns - start_ns) * 1e-6;
}

static void ignore(void *arg, enum sl_log_level level, const char *line)
{
	if (level <= SL_LOG_WARN)
		fprintf(stderr, "%s\n", line);
}

int main(int argc, char **argv)
{
	struct sl_session_options options = {.bytes = sizeof(options), .log = ignore};
	int runs = argc > 4 ? atoi(argv[2]) : 0;
	double *first_ms, *whole_ms, cold_ms;
	struct sl_session *session;

	if (runs < 2) {
		fprintf(stderr,
			"usage: bench_session EXPERIMENT RUNS ROOT PROGRAM [key=value ...]\n");
		return 1;
	}
	options.path = argv[1];
	options.root = argv[3];
	options.program = argv[4];
	options.set = (const char *const *)argv + 5;
	options.sets = (size_t)argc - 5;
	first_ms = calloc((size_t)runs, sizeof(*first_ms));
	whole_ms = calloc((size_t)runs, sizeof(*whole_ms));
	if (!first_ms || !whole_ms || sl_session_open(&options, &session, NULL))
		return 1;
	for (int i = 0; i < runs; i++) {
		first_ms[i] = one_run(session, &whole_ms[i]);
		if (first_ms[i] < 0) {
			fprintf(stderr, "run %d was not intact\n", i + 1);
			return 2;
		}
	}
	sl_session_close(session);
	cold_ms = first_ms[0];
	qsort(first_ms + 1, (size_t)runs - 1, sizeof(*first_ms), by_size);
	qsort(whole_ms + 1, (size_t)runs - 1, sizeof(*whole_ms), by_size);
	printf("{\"cold_ms\": %.2f, \"first_p50_ms\": %.2f, \"first_p99_ms\": %.2f, "
	       "\"whole_p50_ms\": %.2f}\n",
	       cold_ms, first_ms[1 + (runs - 2) / 2], first_ms[1 + (runs - 2) * 99 / 100],
	       whole_ms[1 + (runs - 2) / 2]);
	free(first_ms);
	free(whole_ms);
	return 0;
}
