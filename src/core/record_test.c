/* record_test.c - a sealed record is valid; one flipped bit makes it invalid; the layout is the
 * documented one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/record.h>

static struct sl_record sample(void)
{
	struct sl_record r = {
		.sequence = 7, .frame = 1007, .timestamp = 99, .bytes = 128, .module = 3};

	sl_record_seal(&r);
	return r;
}

static void a_sealed_record_is_valid(void **state)
{
	struct sl_record r = sample();

	assert_true(sl_record_valid(&r));
	assert_int_equal(r.version, SL_RECORD_VERSION);
}

static void any_flipped_bit_is_noticed(void **state)
{
	for (unsigned bit = 0; bit < SL_RECORD_BYTES * 8; bit++) {
		struct sl_record r = sample();

		((uint8_t *)&r)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(sl_record_valid(&r));
	}
}

static void all_zeros_and_all_ones_are_not_records(void **state)
{
	struct sl_record r;

	memset(&r, 0, sizeof(r));
	assert_false(sl_record_valid(&r));
	memset(&r, 0xff, sizeof(r));
	assert_false(sl_record_valid(&r));
}

/* The one in docs/reference/wire.md. */
static void the_documented_record_is_right(void **state)
{
	static const uint8_t bytes[SL_RECORD_BYTES] = {
		7,    0,    0, 0,    0,	   0,	 0, 0,	  7,	0,    0,    0,	  0,
		0,    0,    0, 0x40, 0x42, 0x0f, 0, 0,	  0,	0,    0,    0x80, 0x84,
		0x1e, 0,    0, 0,    0,	   0,	 0, 0x10, 0,	0,    0x83, 0x92, 0x06,
		0xe3, 1,    0, 0,    0,	   2,	 0, 0,	  0,	1,    0,    2,	  0,
		0xcd, 0xab, 0, 0,    1,	   0,	 0, 0,	  0xba, 0xc5, 0x17, 0x56};
	struct sl_record record;

	memcpy(&record, bytes, sizeof(record));
	assert_true(sl_record_valid(&record));
	assert_int_equal(record.crc32c, 0xe3069283);
	assert_int_equal(record.first_psn, 0xabcd);
	assert_int_equal(record.timestamp, 1000000);
}

static void the_layout_is_the_documented_one(void **state)
{
	assert_int_equal(offsetof(struct sl_record, sequence), 0);
	assert_int_equal(offsetof(struct sl_record, frame), 8);
	assert_int_equal(offsetof(struct sl_record, timestamp), 16);
	assert_int_equal(offsetof(struct sl_record, emit_ns), 24);
	assert_int_equal(offsetof(struct sl_record, bytes), 32);
	assert_int_equal(offsetof(struct sl_record, crc32c), 36);
	assert_int_equal(offsetof(struct sl_record, items), 40);
	assert_int_equal(offsetof(struct sl_record, packets), 44);
	assert_int_equal(offsetof(struct sl_record, module), 48);
	assert_int_equal(offsetof(struct sl_record, flags), 50);
	assert_int_equal(offsetof(struct sl_record, first_psn), 52);
	assert_int_equal(offsetof(struct sl_record, version), 56);
	assert_int_equal(offsetof(struct sl_record, self_crc), 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_record_is_valid),
		cmocka_unit_test(any_flipped_bit_is_noticed),
		cmocka_unit_test(all_zeros_and_all_ones_are_not_records),
		cmocka_unit_test(the_layout_is_the_documented_one),
		cmocka_unit_test(the_documented_record_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
