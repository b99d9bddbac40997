/* copy_test.c - every byte, and not one more, whatever the alignment. */
#include "base/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = SL_COPY_AWAY_MIN + 1024, MARGIN = 128 };

static void copies_exactly_what_it_was_asked_to(void **state)
{
	static const size_t sizes[] = {0,
				       1,
				       63,
				       64,
				       4096,
				       SL_COPY_AWAY_MIN - 1,
				       SL_COPY_AWAY_MIN,
				       SL_COPY_AWAY_MIN + 63,
				       SL_COPY_AWAY_MIN + 65,
				       MAX};
	uint8_t *from = malloc(MAX + MARGIN), *to = malloc(MAX + 3 * MARGIN);

	(void)state;
	for (size_t i = 0; i < MAX + MARGIN; i++)
		from[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
		for (size_t shift = 0; shift < 2 * MARGIN; shift += 13) {
			size_t bytes = sizes[s];
			uint8_t *at = to + shift;

			memset(to, 0xee, MAX + 3 * MARGIN);
			sl_copy_away(at, from + shift % 7, bytes);
			assert_memory_equal(at, from + shift % 7, bytes);
			for (size_t i = 0; i < shift; i++)
				assert_int_equal(to[i], 0xee);
			for (size_t i = 0; i < 64; i++)
				assert_int_equal(at[bytes + i], 0xee);
		}
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_exactly_what_it_was_asked_to),
	};

	return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
