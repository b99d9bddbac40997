/* parameters_test.c - what users of a run form may set: it follows from the options that it names,
 * and mistakes are found before any user meets them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "experiment/experiment.h"

#define BASE                                                                               \
	"detector: {kind: pattern, frames: 1000}\nstages: [veto: {threshold: 5}]\nsinks: " \
	"['null']\n"

static char said[4096];

static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	if (level == SL_LOG_ERROR && strlen(said) + strlen(line) + 2 < sizeof(said))
		strcat(strcat(said, line), "\n");
}

/* An experiment with that section; NULL: refused, `said` has why. */
static struct sl_experiment *open_with(const char *section, const char *const *set, size_t n)
{
	static const struct sl_log_target target = {take_line, NULL};
	char path[] = "/tmp/parameters-XXXXXX";
	int fd = mkstemp(path);
	struct sl_experiment *e = NULL;

	assert_true(fd >= 0);
	dprintf(fd, BASE "%s", section);
	close(fd);
	said[0] = 0;
	sl_log_set_target(&target);
	if (sl_experiment_open(path, NULL, set, n, &e))
		e = NULL;
	sl_log_set_target(NULL);
	unlink(path);
	return e;
}

static void refused(const char *section, const char *why)
{
	struct sl_experiment *e = open_with(section, NULL, 0);

	assert_null(e);
	if (!strstr(said, why))
		fail_msg("'%s' is not in: %s", why, said);
}

static void options_say_what_is_left_out(void **state)
{
	struct sl_experiment *e =
		open_with("parameters:\n"
			  "  frames: {path: detector.frames, max: 5000}\n"
			  "  threshold: {path: stages.veto.threshold, label: Photons}\n"
			  "  kind: {path: 'stages[0].veto.min_pixels', unit: px, doc: how many}\n"
			  "  rate: {path: detector.frame_rate_Hz}\n"
			  "  pin: {path: threads.pin}\n"
			  "  polling: {path: threads.polling}\n"
			  "  title: {path: metadata.title}\n",
			  NULL, 0);
	const struct sl_parameter *p;

	assert_non_null(e);
	assert_non_null(e->parameters);
	assert_int_equal(e->parameters->n, 7);
	p = e->parameters->parameter;
	assert_string_equal(p[0].name, "frames");
	assert_string_equal(p[0].label, "frames");
	assert_int_equal(p[0].type, SL_PARAMETER_INTEGER);
	assert_true(p[0].max == 5000);
	assert_string_equal(p[0].now, "1000");
	assert_string_equal(p[0].unit, "frames");
	assert_true(p[0].doc[0]);
	assert_string_equal(p[1].label, "Photons");
	assert_string_equal(p[1].now, "5");
	assert_string_equal(p[2].unit, "px");
	assert_string_equal(p[2].doc, "how many");
	assert_int_equal(p[3].type, SL_PARAMETER_NUMBER);
	assert_int_equal(p[4].type, SL_PARAMETER_BOOLEAN);
	assert_int_equal(p[5].type, SL_PARAMETER_CHOICE);
	assert_string_equal(p[5].value[p[5].values - 1], "cores");
	assert_int_equal(p[6].type, SL_PARAMETER_TEXT_TYPE);
	sl_experiment_close(e);
}

static void values_are_those_of_the_list(void **state)
{
	static const char *const set[] = {"detector.frames=20"};
	struct sl_experiment *e = open_with(
		"parameters: {n: {path: detector.frames, values: [10, 20, 30]}}\n", set, 1);

	assert_non_null(e);
	assert_int_equal(e->parameters->parameter[0].type, SL_PARAMETER_CHOICE);
	assert_int_equal(e->parameters->parameter[0].values, 3);
	assert_string_equal(e->parameters->parameter[0].value[2], "30");
	assert_string_equal(e->parameters->parameter[0].now, "20");
	sl_experiment_close(e);
}

static void the_text_that_is_stored_has_them(void **state)
{
	struct sl_experiment *e = open_with(
		"parameters: {n: {path: detector.frames, max: 7000, values: [1, 2]}}\n", NULL, 0);
	char *text;

	assert_non_null(e);
	text = sl_experiment_resolved(e, true);
	assert_non_null(text);
	assert_non_null(strstr(text, "parameters:"));
	assert_non_null(strstr(text, "detector.frames"));
	free(text);
	sl_experiment_close(e);
}

static void mistakes_are_found(void **state)
{
	refused("parameters: [a]\n", "takes a map");
	refused("parameters: {n: {path: detector.frame}}\n", "has no option 'detector.frame'");
	refused("parameters: {n: {path: detector}}\n", "has no option 'detector'");
	refused("parameters: {n: {path: 'stages[1].veto.threshold'}}\n", "has no option");
	refused("parameters: {n: {path: 'stages[0'}}\n", "has no option");
	refused("parameters: {n: {path: detector..frames}}\n", "has no option");
	refused("parameters: {n: {path: detector.frames.}}\n", "has no option");
	refused("parameters: {n: {label: N}}\n", "has no path");
	refused("parameters: {'n n': {path: detector.frames}}\n", "a name of a parameter");
	refused("parameters: {12: {path: detector.frames}}\n", "a name of a parameter");
	refused("parameters: {n: {path: detector.frames, min: 5, max: 4}}\n",
		"min is larger than max");
	refused("parameters: {n: {path: detector.frames, max: 10}}\n", "which is not from min");
	refused("parameters: {n: {path: threads.pin, type: number}}\n", "takes no number");
	refused("parameters: {n: {path: detector.frames, type: boolean}}\n",
		"takes no true or false");
	refused("parameters: {n: {path: metadata.title, type: choice}}\n", "needs values");
	refused("parameters: {n: {path: detector.frames, type: integer, values: [1]}}\n",
		"type: choice alone");
	refused("parameters: {n: {path: detector.frames, values: [1, many]}}\n",
		"does not take the value 'many'");
	refused("parameters: {n: {path: detector.frames, values: {a: 1}}}\n", "takes a list");
	refused("parameters: {n: {path: control.token}}\n", "a secret cannot be a parameter");
	refused("parameters: {n: {path: detector.frames, colour: red}}\n", "colour");
	refused("parameters: {n: {path: unit.batch, min: 1000}}\n", "allow none of it");
}

static void without_the_section_there_are_none(void **state)
{
	struct sl_experiment *e = open_with("", NULL, 0);

	assert_non_null(e);
	assert_null(e->parameters);
	sl_experiment_close(e);
	e = open_with("parameters:\n", NULL, 0);
	assert_non_null(e);
	assert_null(e->parameters);
	sl_experiment_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_say_what_is_left_out),
		cmocka_unit_test(values_are_those_of_the_list),
		cmocka_unit_test(the_text_that_is_stored_has_them),
		cmocka_unit_test(mistakes_are_found),
		cmocka_unit_test(without_the_section_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
