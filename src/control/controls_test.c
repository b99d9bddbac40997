/* controls_test.c - the drivers of a run together: which have a part in it, and calls to all of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/controls.h"
#include "lib/control_recorder.h"

#include "experiment/experiment.h"

#define DETECTOR \
	"detector: {kind: pattern, modules: 2, frames: 20, dark_frames: 0}\nsinks: ['null']\n"

static struct sl_experiment *experiment(const char *sections, const char *override)
{
	char path[] = "/tmp/sluice-controls-XXXXXX";
	struct sl_experiment *e = NULL;
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs(sections, file);
	fclose(file);
	assert_int_equal(sl_experiment_open(path, NULL, &override, override ? 1 : 0, &e), 0);
	unlink(path);
	return e;
}

static void each_experiment_has_its_drivers(void **state)
{
	static const struct {
		const char *sections;
		bool resumed;
		int tcp, feroce, one_way, resumes; /* modules */
	} rows[] = {
		{DETECTOR "link: {kind: udp}\n", false, 2, -1, -1, -1},
		{DETECTOR "link: {kind: udp}\n", true, 0, -1, -1, 2},
		{DETECTOR "link: {kind: udp, service: rc}\nferoce: {enable: true}\n", false, 0, 2,
		 -1, -1},
		{DETECTOR "link: {kind: udp, service: rc}\nferoce: {enable: true}\n", true, 0, -1,
		 -1, 2},
		{"detector: {kind: jungfrau, modules: 2, frames: 20}\nsinks: ['null']\n"
		 "link: {kind: sls}\nring: {overrun: drop_newest}\n",
		 false, -1, -1, 2, -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_experiment *e = experiment(rows[i].sections, NULL);
		bool resumed = rows[i].resumed;

		assert_int_equal(sl_control_tcp.modules(e, resumed), rows[i].tcp);
		assert_int_equal(sl_control_feroce.modules(e, resumed), rows[i].feroce);
		assert_int_equal(sl_control_one_way.modules(e, resumed), rows[i].one_way);
		assert_int_equal(sl_control_resumed.modules(e, resumed), rows[i].resumes);
		sl_experiment_close(e);
	}
}

/* `resumed` has the modules, `tcp` answers front ends that come here by mistake. */
static void two_drivers_share_a_run(void **state)
{
	struct sl_experiment *e = experiment(DETECTOR "link: {kind: udp}\n", "control.port=0");
	struct sl_geometry geometry = {.modules = RECORDER_MODULES, .rows = 4, .module_bytes = 512};
	struct recorder recorder;
	struct sl_control_env env = {.experiment = e,
				     .file = "x.yaml",
				     .block_bytes = 576,
				     .pixel_bytes = 512,
				     .geometry = &geometry,
				     .ops = &recorder_ops,
				     .arg = &recorder};
	struct sl_controls controls;
	const char *option;
	char text[200];

	recorder_init(&recorder);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		recorder.module[m].planned = true;
	assert_int_equal(sl_controls_open(&controls, &env, 1, true), 0);
	assert_int_equal(controls.drivers, 2);
	assert_int_equal(sl_controls_planned(&controls), RECORDER_MODULES);
	assert_true(sl_controls_ready(&controls));
	assert_false(sl_controls_start_alone(&controls));
	assert_true(sl_controls_port(&controls, 0, &option) != 0);
	assert_string_equal(option, "control.port");
	assert_false(sl_controls_wait_for(&controls, text, sizeof(text)));
	recorder.running = true;
	sl_controls_start(&controls);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		recorder_arrive(&recorder, m, RECORDER_FRAMES);
	sl_controls_poll(&controls, 0);
	assert_int_equal(recorder.module[0].ends + recorder.module[1].ends, 2);
	assert_false(sl_controls_hurry(&controls));
	sl_controls_stop(&controls);
	sl_controls_abandon(&controls);
	sl_controls_bye(&controls, false);
	assert_int_equal(recorder_over(&recorder, 0) + recorder_over(&recorder, 1), 2);
	sl_controls_close(&controls);
	sl_experiment_close(e);
}

static void a_driver_that_fails_to_open_closes_with_the_others(void **state)
{
	struct sl_experiment *e = experiment(
		DETECTOR
		"link: {kind: udp, service: rc}\nferoce: {enable: true, address: 0.0.0.0}\n",
		"control.port=0");
	struct sl_geometry geometry = {.modules = RECORDER_MODULES};
	struct recorder recorder;
	struct sl_control_env env = {.experiment = e,
				     .file = "x.yaml",
				     .geometry = &geometry,
				     .ops = &recorder_ops,
				     .arg = &recorder};
	struct sl_controls controls;

	recorder_init(&recorder);
	assert_true(sl_controls_open(&controls, &env, 1, false) < 0);
	sl_controls_close(&controls);
	assert_int_equal(controls.drivers, 0);
	sl_experiment_close(e);
}

/* ---- drivers that wait, or do not ---- */

static void wait_for_it(const void *state, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s", (const char *)state);
}

/* What the first driver that waits says, however short; drivers behind the last one, and those that
 * cannot wait, are not asked. */
static void the_first_driver_that_waits_is_quoted(void **state)
{
	static const struct {
		const char *says[3]; /* NULL: it cannot wait */
		unsigned drivers;
		const char *quoted;
	} cases[] = {
		{{"x", "second", "third"}, 3, "x"},
		{{"first", "second"}, 2, "first"},
		{{"", "second", "third"}, 3, "second"},
		{{NULL, "second", ""}, 3, "second"},
		{{"", NULL, "y"}, 3, "y"},
		{{"", NULL, "behind"}, 2, ""},
		{{"behind"}, 0, ""},
	};
	static const struct sl_control waits = {.waits_for = wait_for_it},
				       never = {.name = "never"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_controls controls = {.drivers = cases[i].drivers};
		char text[64] = "what was there before";

		for (unsigned k = 0; k < 3; k++) {
			controls.driver[k] = cases[i].says[k] ? &waits : &never;
			controls.state[k] = (void *)(uintptr_t)cases[i].says[k];
		}
		assert_int_equal(sl_controls_wait_for(&controls, text, sizeof(text)),
				 cases[i].quoted[0] != 0);
		assert_string_equal(text, cases[i].quoted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_experiment_has_its_drivers),
		cmocka_unit_test(two_drivers_share_a_run),
		cmocka_unit_test(a_driver_that_fails_to_open_closes_with_the_others),
		cmocka_unit_test(the_first_driver_that_waits_is_quoted),
	};

	return cmocka_run_group_tests_name("controls", tests, NULL, NULL);
}
