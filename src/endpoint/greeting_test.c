/* greeting_test.c - the text of ibv_*_pingpong, to and fro. */
#include "endpoint/greeting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static const char example[] = "0000:00011a:9c3f07:00000000000000000000ffffc0a80114";

static void test_text(void **state)
{
	struct sl_greeting greeting;
	char text[SL_GREETING_BYTES];

	assert_int_equal(sizeof(example), SL_GREETING_BYTES);
	assert_int_equal(sl_greeting_parse(example, &greeting), 0);
	assert_int_equal(greeting.lid, 0);
	assert_int_equal(greeting.qpn, 0x11a);
	assert_int_equal(greeting.psn, 0x9c3f07);
	assert_memory_equal(greeting.gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\xa8\x01\x14", 16);
	memset(text, 'x', sizeof(text));
	sl_greeting_format(&greeting, text);
	assert_memory_equal(text, example, sizeof(text));
}

/* Any one character that does not belong where it is. */
static void test_refused(void **state)
{
	struct sl_greeting greeting = {.qpn = 7};

	for (size_t i = 0; i < SL_GREETING_BYTES; i++) {
		char text[SL_GREETING_BYTES];

		memcpy(text, example, sizeof(text));
		text[i] = 'g';
		assert_int_equal(sl_greeting_parse(text, &greeting), -EINVAL);
		text[i] = text[i] == ':' ? '0' : ':';
		if (example[i] != ':')
			assert_int_equal(sl_greeting_parse(text, &greeting), -EINVAL);
		text[i] = i == SL_GREETING_BYTES - 1 ? 'a' : 0;
		assert_int_equal(sl_greeting_parse(text, &greeting), -EINVAL);
	}
	assert_int_equal(greeting.qpn, 7);
	assert_int_equal(
		sl_greeting_parse("00AF:00011A:9C3F07:00000000000000000000FFFFC0A80114", &greeting),
		0);
	assert_int_equal(greeting.lid, 0xaf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("endpoint_greeting", tests, NULL, NULL);
}
