/* crc_test.c - both checksums against published vectors and against a bit-by-bit one. */
#include "base/crc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POLYNOMIAL_IEEE = (int)0xedb88320, POLYNOMIAL_CASTAGNOLI = (int)0x82f63b78 };

static uint32_t slow(uint32_t polynomial, uint32_t crc, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	crc = ~crc;
	while (bytes--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
	}
	return ~crc;
}

static void crc32_check_value(void **state)
{
	assert_int_equal(sl_crc32(0, "123456789", 9), 0xcbf43926);
}

static void crc32c_check_value(void **state)
{
	assert_int_equal(sl_crc32c(0, "123456789", 9), 0xe3069283);
}

/* RFC 3720, appendix B.4, as numbers rather than as bytes on the wire. */
static void crc32c_iscsi_vectors(void **state)
{
	unsigned char data[32];

	memset(data, 0, sizeof(data));
	assert_int_equal(sl_crc32c(0, data, sizeof(data)), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(sl_crc32c(0, data, sizeof(data)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		data[i] = (unsigned char)i;
	assert_int_equal(sl_crc32c(0, data, sizeof(data)), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		data[i] = (unsigned char)(31 - i);
	assert_int_equal(sl_crc32c(0, data, sizeof(data)), 0x113fdb5c);
}

static void nothing_changes_nothing(void **state)
{
	assert_int_equal(sl_crc32(0, "", 0), 0);
	assert_int_equal(sl_crc32c(0, "", 0), 0);
	assert_int_equal(sl_crc32(0x12345678, "", 0), 0x12345678);
	assert_int_equal(sl_crc32c(0x12345678, "", 0), 0x12345678);
}

static void fill(unsigned char *data, size_t bytes)
{
	uint32_t x = 1;

	for (size_t i = 0; i < bytes; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (unsigned char)(x >> 24);
	}
}

/* Every length around the vector widths, at every alignment. */
static void equal_to_bit_by_bit(void **state)
{
	unsigned char data[700];

	fill(data, sizeof(data));
	for (size_t offset = 0; offset < 17; offset++)
		for (size_t n = 0; n < 600; n += n < 140 ? 1 : 23) {
			assert_int_equal(sl_crc32(0, data + offset, n),
					 slow((uint32_t)POLYNOMIAL_IEEE, 0, data + offset, n));
			assert_int_equal(
				sl_crc32c(0, data + offset, n),
				slow((uint32_t)POLYNOMIAL_CASTAGNOLI, 0, data + offset, n));
		}
}

static void chaining_equals_one_go(void **state)
{
	unsigned char data[4096];
	uint32_t whole, whole_c;

	fill(data, sizeof(data));
	whole = sl_crc32(0, data, sizeof(data));
	whole_c = sl_crc32c(0, data, sizeof(data));
	for (size_t cut = 0; cut <= sizeof(data); cut += 127) {
		size_t rest = sizeof(data) - cut;

		assert_int_equal(sl_crc32(sl_crc32(0, data, cut), data + cut, rest), whole);
		assert_int_equal(sl_crc32c(sl_crc32c(0, data, cut), data + cut, rest), whole_c);
	}
}

static void one_flipped_bit_shows(void **state)
{
	unsigned char data[256];
	uint32_t good, good_c;

	fill(data, sizeof(data));
	good = sl_crc32(0, data, sizeof(data));
	good_c = sl_crc32c(0, data, sizeof(data));
	for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_not_equal(sl_crc32(0, data, sizeof(data)), good);
		assert_int_not_equal(sl_crc32c(0, data, sizeof(data)), good_c);
		data[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32_check_value),	 cmocka_unit_test(crc32c_check_value),
		cmocka_unit_test(crc32c_iscsi_vectors),	 cmocka_unit_test(nothing_changes_nothing),
		cmocka_unit_test(equal_to_bit_by_bit),	 cmocka_unit_test(chaining_equals_one_go),
		cmocka_unit_test(one_flipped_bit_shows),
	};

	return cmocka_run_group_tests_name("crc", tests, NULL, NULL);
}
