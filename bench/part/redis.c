/* redis.c - rows a second that the sink `redis` gets into a server.
 *
 *   bench_redis ROWS [option=value ...]
 *
 * The sink alone, with frames of two modules and two small results; the options are the sink's.
 * When 4096 rows wait it waits for the server, so that no row is missed. Prints JSON: rows a
 * second by the clock, and by the time that this thread had a cpu. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sluice/sink.h>

#include "base/clock.h"

extern const struct sl_sink sl_sink_redis;

enum { MODULES = 2, MICROSECOND = 1000 };
#define PATIENCE_NS UINT64_C(10000000000)

static const struct sl_geometry geometry = {.modules = MODULES};
static const struct sl_shape shapes[] = {{"peaks_found", SL_U32, 1, {1}},
					 {"statistics", SL_F64, 2, {1, 5}}};
static uint32_t peaks = 23;
static double statistics[] = {270869277, 33069.134049566601, 65524, 8191, 0};

struct wanted {
	const char *name;
	uint64_t value;
};

static void find(void *arg, const char *name, uint64_t value, int failed)
{
	struct wanted *wanted = arg;

	(void)failed;
	if (!strcmp(name, wanted->name))
		wanted->value = value;
}

static uint64_t figure(const void *state, const char *name)
{
	struct wanted wanted = {name, 0};

	sl_sink_redis.figures(state, find, &wanted);
	return wanted.value;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int set_options(void *state, int n, char **text)
{
	char why[256];

	sl_options_defaults(sl_sink_redis.options, state);
	for (int i = 0; i < n; i++) {
		char *value = strchr(text[i], '=');

		if (!value)
			return -EINVAL;
		*value++ = 0;
		if (sl_options_set(sl_sink_redis.options, state, text[i], value, why,
				   sizeof(why))) {
			fprintf(stderr, "%s: %s\n", text[i], why);
			return -EINVAL;
		}
	}
	return 0;
}

/* While the server works: a cpu that waits would be counted. -ETIMEDOUT: nothing was stored in the
 * last PATIENCE_NS. */
static int wait_for_server(void *state)
{
	static uint64_t stored, since_ns;
	uint64_t now_ns = sl_clock_ns(), now = figure(state, "rows_stored");

	if (now != stored || !since_ns)
		since_ns = now_ns;
	stored = now;
	if (now_ns - since_ns > PATIENCE_NS) {
		fprintf(stderr, "the server takes no rows\n");
		return -ETIMEDOUT;
	}
	sl_sink_redis.idle(state);
	sl_clock_sleep_until(now_ns + 50 * MICROSECOND);
	return 0;
}

static int put(void *state, uint64_t rows)
{
	struct sl_view view[MODULES] = {{.module = 0, .outcome = SL_STORED},
					{.module = 1, .outcome = SL_STORED}};
	struct sl_verdict verdict = {.score = 23, .keep = 1, .reason = SL_REASON_PEAKS};
	struct sl_frame frame = {.flags = SL_FRAME_COMPLETE,
				 .views = MODULES,
				 .view = view,
				 .results = 2,
				 .result = {{.shape = shapes[0], .host = &peaks},
					    {.shape = shapes[1], .host = statistics}},
				 .items = 1,
				 .verdict = &verdict};
	int r = 0;

	for (uint64_t k = 0; k < rows && !r; k++) {
		frame.sequence = frame.number = k;
		frame.timestamp = MICROSECOND * k;
		/* Every 64 rows, as the sink sends them: asking is not for nothing. */
		while (!r && k % 64 == 0 && figure(state, "rows_waiting") > 4096)
			r = wait_for_server(state);
		if (!r)
			r = sl_sink_redis.put(state, &frame);
	}
	while (!r && figure(state, "rows_waiting"))
		r = wait_for_server(state);
	return r;
}

int main(int argc, char **argv)
{
	const struct sl_env env = {
		.geometry = &geometry, .result = shapes, .results = 2, .name = "bench"};
	static const struct sl_status status;
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, begin_ns;
	void *state = calloc(1, sl_sink_redis.state_bytes);
	double s, begin_s;
	int r;

	if (!rows || !state || set_options(state, argc - 2, argv + 2)) {
		fprintf(stderr, "usage: bench_redis ROWS [option=value ...]\n");
		return 1;
	}
	r = sl_sink_redis.open(state, &env);
	begin_ns = sl_clock_ns();
	begin_s = cpu_s();
	if (!r)
		r = put(state, rows);
	s = (double)(sl_clock_ns() - begin_ns) * 1e-9;
	begin_s = cpu_s() - begin_s;
	sl_sink_redis.close(state, &status);
	if (r || figure(state, "rows_stored") != rows) {
		fprintf(stderr, "not all rows are stored\n");
		return 2;
	}
	printf("{\"rows_per_s\": %.0f, \"rows_per_cpu_s\": %.0f}\n", (double)rows / s,
	       (double)rows / begin_s);
	free(state);
	return 0;
}
