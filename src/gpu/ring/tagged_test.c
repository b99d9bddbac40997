/* tagged_test.c - chunks of events of all lengths, by both kinds of stores, against a loop over
 * bytes. */
#include "gpu/ring/tagged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUFFER = 512, AROUND = 64, MOST = 460, TURN = 0x87654321 };

/* What must be in a byte of the buffer. */
static uint8_t byte_of(const uint8_t *event, uint32_t bytes, uint32_t at)
{
	uint32_t chunk = at / 16, in = at % 16, n = (chunk - 1) * 12 + in;

	if (in >= 12)
		return (uint8_t)((uint32_t)TURN >> (in - 12) * 8);
	if (!chunk)
		return in < 4 ? (uint8_t)(bytes >> in * 8) : 0;
	return n < bytes ? event[n] : 0;
}

static void check(uint8_t *buffer, uint32_t bytes, bool lines)
{
	/* On the heap and of that length, so that a sanitizer sees what is read beyond. */
	uint8_t *event = malloc(bytes ? bytes : 1);

	assert_non_null(event);
	for (uint32_t i = 0; i < bytes; i++)
		event[i] = (uint8_t)(i * 7 + 1);
	memset(buffer, 0xa5, BUFFER + 2 * AROUND);
	sl_tagged_put(buffer + AROUND, BUFFER, event, bytes, TURN, lines);
	for (uint32_t i = 0; i < BUFFER; i++)
		assert_int_equal(buffer[AROUND + i], byte_of(event, bytes, i));
	for (uint32_t i = 0; i < AROUND; i++) {
		assert_int_equal(buffer[i], 0xa5);
		assert_int_equal(buffer[AROUND + BUFFER + i], 0xa5);
	}
	free(event);
}

/* Up to more than fits: 31 chunks have 372 bytes. */
static void all_lengths_by_both_stores(void **state)
{
	uint8_t *buffer = aligned_alloc(64, BUFFER + 2 * AROUND);

	(void)state;
	assert_non_null(buffer);
	for (uint32_t bytes = 0; bytes <= MOST; bytes++) {
		check(buffer, bytes, false);
		if (sl_tagged_has_lines())
			check(buffer, bytes, true);
	}
	if (!sl_tagged_has_lines())
		print_message("this CPU has no store for a whole line: chunks alone were tested\n");
	free(buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lengths_by_both_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
