/* alloc_test.c - both sides of an experiment of which an allocation fails while they open: the
 * error is returned, and nothing is left behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/failing_alloc.h"
#include "lib/flow_rig.h"

static int make_receiver(void *arg)
{
	struct sl_receiver *receiver = NULL;
	int r = sl_receiver_open(arg, NULL, &receiver);

	if (!r)
		sl_receiver_close(receiver);
	return r;
}

static int make_emulator(void *arg)
{
	struct sl_emulator *emulator = NULL;
	int r = sl_emulator_open(arg, 0, UINT32_MAX, &emulator);

	if (!r)
		sl_emulator_close(emulator);
	return r;
}

static void a_receiver_without_memory_is_none(void **state)
{
	struct sl_experiment *experiment = open_experiment(NULL, 0);

	assert_true(alloc_fail_each(make_receiver, experiment) >= 10);
	sl_experiment_close(experiment);
}

static void an_emulator_without_memory_is_none(void **state)
{
	struct sl_experiment *experiment = open_experiment(NULL, 0);

	assert_true(alloc_fail_each(make_emulator, experiment) >= 3);
	sl_experiment_close(experiment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receiver_without_memory_is_none),
		cmocka_unit_test(an_emulator_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
