/* ring_options_test.c - options of `ring` that contradict each other: which rule each breaks, and
 * up to where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "experiment/ring_options.h"

enum { NONE = -1, MODULES = 4 };

/* The only rule that is broken. */
static int broken_of(const struct sl_ring_options *o)
{
	int broken = NONE;

	for (unsigned rule = 0; rule < SL_RING_RULES; rule++)
		if (sl_ring_rule_broken(o, MODULES, rule)) {
			assert_int_equal(broken, NONE);
			broken = (int)rule;
		}
	return broken;
}

static void each_rule_has_its_limits(void **state)
{
	static const struct {
		struct sl_ring_options options;
		int broken;
	} cases[] = {
		{{.align = SL_ALIGN_SEQUENCE, .wrap_bits = 64}, NONE},
		{{.align = SL_ALIGN_SEQUENCE, .wrap_bits = 64, .window_ns = UINT64_MAX}, NONE},
		{{.align = SL_ALIGN_SEQUENCE, .wrap_bits = 63}, 0},
		{{.align = SL_ALIGN_SEQUENCE, .wrap_bits = 64, .offsets = "1: 2"}, 0},
		{{.align = SL_ALIGN_FRAME, .wrap_bits = 48, .offsets = "1: 2"}, NONE},
		{{.align = SL_ALIGN_FRAME, .wrap_bits = 48, .window_ns = UINT64_MAX}, NONE},
		{{.align = SL_ALIGN_FRAME, .wrap_bits = 64, .x = 1}, 1},
		{{.align = SL_ALIGN_FRAME, .wrap_bits = 64, .y = 1}, 1},
		{{.align = SL_ALIGN_FRAME, .wrap_bits = 64, .x = 1, .y = 1, .line_pitch = 64},
		 NONE},
		{{.align = SL_ALIGN_TIMESTAMP, .wrap_bits = 16, .window_ns = 32767}, NONE},
		{{.align = SL_ALIGN_TIMESTAMP, .wrap_bits = 16, .window_ns = 32768}, 2},
		{{.align = SL_ALIGN_TIMESTAMP, .wrap_bits = 63, .window_ns = UINT64_C(1) << 62}, 2},
		{{.align = SL_ALIGN_TIMESTAMP, .wrap_bits = 64, .window_ns = UINT64_MAX}, NONE},
		{{.align = SL_ALIGN_TIMESTAMP, .wrap_bits = 64, .offsets = "9: 2"}, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (broken_of(&cases[i].options) != cases[i].broken)
			fail_msg("case %zu breaks rule %d instead of %d", i,
				 broken_of(&cases[i].options), cases[i].broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_has_its_limits),
	};

	return cmocka_run_group_tests_name("ring_options", tests, NULL, NULL);
}
