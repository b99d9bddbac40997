/* alloc_test.c - detectors that are opened while an allocation fails: the error is returned, and
 * nothing is left behind once they are closed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/detector.h>

#include "lib/failing_alloc.h"

extern const struct sl_detector sl_detector_camera, sl_detector_eiger, sl_detector_jungfrau,
	sl_detector_rich, sl_detector_tracker;

/* The state is the caller's; it is closed after an error, too. */
static int open_and_close(void *arg)
{
	static _Alignas(64) uint8_t state[1 << 16];
	const struct sl_detector *detector = arg;
	const struct sl_detector_options run = {.modules = 1, .frames = 10, .seed = 3};
	struct sl_geometry geometry;
	int err;

	assert_true(detector->state_bytes <= sizeof(state));
	memset(state, 0, sizeof(state));
	sl_options_defaults(detector->options, state);
	err = detector->open(state, &run, &geometry);
	detector->close(state);
	return err;
}

static void detectors_without_memory_are_not_opened(void **state)
{
	static const struct {
		const struct sl_detector *detector;
		unsigned allocations; /* at least */
	} cases[] = {{&sl_detector_camera, 5},
		     {&sl_detector_eiger, 8},
		     {&sl_detector_jungfrau, 8},
		     {&sl_detector_rich, 4},
		     {&sl_detector_tracker, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned n = alloc_fail_each(open_and_close, (void *)(uintptr_t)cases[i].detector);

		if (n < cases[i].allocations)
			fail_msg("%s: only %u allocations", cases[i].detector->name, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detectors_without_memory_are_not_opened),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
