/* deflate_test.c - streams in pieces unpack to what went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service/image/deflate.h"

#ifdef SL_NO_ZLIB

static void streams_unpack(void **state)
{
	print_message("# skip: zlib1g-dev was not found when this was built\n");
	skip();
}

#else
#include <zlib.h>

static void check(size_t first, size_t second)
{
	uint8_t *plain = malloc(first + second + 1), *packed, *stream, *back;
	uint32_t stored, adler;
	uLongf back_bytes = first + second + 1;
	size_t packed_bytes, at = SL_DEFLATE_BEGIN + sl_deflate_stored(first);

	assert_non_null(plain);
	srand((unsigned)(first + second));
	for (size_t i = 0; i < first + second; i++)
		plain[i] = (uint8_t)(rand() % 16);
	assert_int_equal(sl_deflate_pack(plain + first, second, &packed, &packed_bytes, &adler), 0);
	stream = malloc(at + packed_bytes + SL_DEFLATE_END);
	back = malloc(back_bytes);
	assert_true(stream && back);
	memcpy(stream, sl_deflate_begin, SL_DEFLATE_BEGIN);
	stored = sl_deflate_store(plain, first, stream + SL_DEFLATE_BEGIN);
	memcpy(stream + at, packed, packed_bytes);
	sl_deflate_end(stored, adler, second, stream + at + packed_bytes);
	assert_int_equal(uncompress(back, &back_bytes, stream, at + packed_bytes + SL_DEFLATE_END),
			 Z_OK);
	assert_int_equal(back_bytes, first + second);
	assert_memory_equal(back, plain, first + second);
	if (second > 100000)
		assert_true(packed_bytes < second * 3 / 4);
	free(plain);
	free(packed);
	free(stream);
	free(back);
}

static void streams_unpack(void **state)
{
	assert_true(sl_deflate_is_there());
	check(1, 1);
	check(0, 10);
	check(500, 0);
	check(65535, 1000);
	check(65536, 1000);
	check(200000, 1000000);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(streams_unpack)};

	return cmocka_run_group_tests_name("deflate", tests, NULL, NULL);
}
