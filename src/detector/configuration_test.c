/* configuration_test.c - what was set can be read back from the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detector/configuration.h"

extern const struct sl_detector sl_detector_jungfrau, sl_detector_pattern;

static void every_option_is_a_line(void **arg)
{
	const struct sl_detector *const detectors[] = {&sl_detector_jungfrau, &sl_detector_pattern,
						       NULL};
	static char text[SL_CONFIGURATION_BYTES];

	(void)arg;
	for (const struct sl_detector *const *d = detectors; *d; d++) {
		struct sl_detector_options run = {0};
		struct sl_geometry geometry = {.rows = 3, .columns = 5, .module_bytes = 30};
		void *state = calloc(1, (*d)->state_bytes);
		char *line, *rest = text, kind[64];
		unsigned n = 0, expected = 1; /* kind */

		assert_non_null(state);
		sl_options_defaults(sl_detector_options, &run);
		if ((*d)->options)
			sl_options_defaults((*d)->options, state);
		sl_detector_configuration(*d, state, &run, &geometry, text);
		snprintf(kind, sizeof(kind), "kind: %s\n", (*d)->name);
		assert_memory_equal(text, kind, strlen(kind));
		for (const struct sl_option *o = sl_detector_options; o->name; o++)
			expected++;
		for (const struct sl_option *o = (*d)->options; o && o->name; o++)
			expected++;
		while ((line = strsep(&rest, "\n")))
			n += line[0] && line[0] != '#';
		assert_int_equal(n, expected);
		free(state);
	}
}

struct wide {
	char a[900], b[900], c[900], d[900], e[900];
};

static void what_does_not_fit_is_said(void **arg)
{
	static const struct sl_option options[] = {
		SL_STRING(struct wide, a, "", ""), SL_STRING(struct wide, b, "", ""),
		SL_STRING(struct wide, c, "", ""), SL_STRING(struct wide, d, "", ""),
		SL_STRING(struct wide, e, "", ""), SL_OPTION_END};
	static const struct sl_detector detector = {.name = "wide", .options = options};
	static char text[SL_CONFIGURATION_BYTES];
	struct sl_geometry geometry = {.rows = 1, .columns = 1, .module_bytes = 1};
	struct sl_detector_options run = {0};
	static struct wide wide;

	(void)arg;
	memset(&wide, 'x', sizeof(wide));
	wide.a[899] = wide.b[899] = wide.c[899] = wide.d[899] = wide.e[899] = 0;
	memset(text, 'y', sizeof(text));
	sl_detector_configuration(&detector, &wide, &run, &geometry, text);
	assert_int_equal(text[sizeof(text) - 1], 0);
	assert_non_null(strstr(text, "\nd: \"xx"));
	assert_null(strstr(text, "\ne: "));
	assert_string_equal(text + strlen(text) - strlen("\n# more did not fit\n"),
			    "\n# more did not fit\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_is_a_line),
		cmocka_unit_test(what_does_not_fit_is_said),
	};

	return cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
