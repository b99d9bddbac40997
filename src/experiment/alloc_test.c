/* alloc_test.c - experiment files that are read, and states of add-ons that are kept, while an
 * allocation fails: the error is returned, and nothing is left behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "experiment/experiment.h"
#include "lib/failing_alloc.h"

static char path[] = "/tmp/sluice-alloc-XXXXXX";

static const char text[] =
	"detector: {kind: pattern, modules: 2, frames: 10, rows: 32, columns: 64}\n"
	"link: {kind: udp, pmtu: 512}\n"
	"ring: {slots: 12}\n"
	"stages: [copy, spots: {threshold: 7}, veto]\n"
	"sinks: ['null', verify]\n"
	"metadata: {users: [Ada, Bea], exposure_s: 1e-3 s, keys: {current: 200 mA}}\n";

static int setup(void **state)
{
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	return !file || fputs(text, file) < 0 || fclose(file) ? -1 : 0;
}

static int teardown(void **state)
{
	return unlink(path);
}

static int make_experiment(void *arg)
{
	static const char *const sets[] = {"detector.frames=20", "ring.slots=16"};
	struct sl_experiment *experiment = NULL;
	int r = sl_experiment_open_live(path, NULL, sets, 2, &experiment);

	if (r)
		return r;
	for (int i = 0; i < 2 && !r; i++) /* the second time instead of the first */
		r = sl_experiment_keep_states(experiment);
	sl_experiment_close(experiment);
	return r;
}

static void an_experiment_without_memory_is_none(void **state)
{
	assert_true(alloc_fail_each(make_experiment, NULL) >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_experiment_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
