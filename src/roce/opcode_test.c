/* opcode_test.c - the opcode table against the numbers of the InfiniBand tables, written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/opcode.h"

static const struct {
	uint8_t opcode;
	const char *name;
	unsigned header_bytes; /* with the 12 of the BTH */
	unsigned headers;
} expected[] = {
	{0x00, "RC_SEND_FIRST", 12, 0},
	{0x01, "RC_SEND_MIDDLE", 12, 0},
	{0x02, "RC_SEND_LAST", 12, 0},
	{0x03, "RC_SEND_LAST_IMM", 16, SL_ROCE_HAS_IMM},
	{0x04, "RC_SEND_ONLY", 12, 0},
	{0x05, "RC_SEND_ONLY_IMM", 16, SL_ROCE_HAS_IMM},
	{0x06, "RC_WRITE_FIRST", 28, SL_ROCE_HAS_RETH},
	{0x07, "RC_WRITE_MIDDLE", 12, 0},
	{0x08, "RC_WRITE_LAST", 12, 0},
	{0x09, "RC_WRITE_LAST_IMM", 16, SL_ROCE_HAS_IMM},
	{0x0a, "RC_WRITE_ONLY", 28, SL_ROCE_HAS_RETH},
	{0x0b, "RC_WRITE_ONLY_IMM", 32, SL_ROCE_HAS_RETH | SL_ROCE_HAS_IMM},
	{0x0c, "RC_READ_REQUEST", 28, SL_ROCE_HAS_RETH},
	{0x0d, "RC_READ_RESPONSE_FIRST", 16, SL_ROCE_HAS_AETH},
	{0x0e, "RC_READ_RESPONSE_MIDDLE", 12, 0},
	{0x0f, "RC_READ_RESPONSE_LAST", 16, SL_ROCE_HAS_AETH},
	{0x10, "RC_READ_RESPONSE_ONLY", 16, SL_ROCE_HAS_AETH},
	{0x11, "RC_ACKNOWLEDGE", 16, SL_ROCE_HAS_AETH},
	{0x12, "RC_ATOMIC_ACKNOWLEDGE", 24, SL_ROCE_HAS_AETH | SL_ROCE_HAS_ATOMIC_ACK},
	{0x13, "RC_COMPARE_SWAP", 40, SL_ROCE_HAS_ATOMIC},
	{0x14, "RC_FETCH_ADD", 40, SL_ROCE_HAS_ATOMIC},
	{0x15, "RC_RESERVED_15", 12, 0},
	{0x16, "RC_SEND_LAST_INVALIDATE", 16, SL_ROCE_HAS_IETH},
	{0x17, "RC_SEND_ONLY_INVALIDATE", 16, SL_ROCE_HAS_IETH},
	{0x18, "RC_RESERVED_18", 12, 0},
	{0x19, "RC_RESERVED_19", 12, 0},
	{0x1a, "RC_RESERVED_1A", 12, 0},
	{0x1b, "RC_RESERVED_1B", 12, 0},
	{0x1c, "RC_FLUSH", 32, SL_ROCE_HAS_FETH | SL_ROCE_HAS_RETH},
	{0x1d, "RC_ATOMIC_WRITE", 28, SL_ROCE_HAS_RETH},
	{0x1e, "RC_RESERVED_1E", 12, 0},
	{0x1f, "RC_RESERVED_1F", 12, 0},
	{0x20, "UC_SEND_FIRST", 12, 0},
	{0x21, "UC_SEND_MIDDLE", 12, 0},
	{0x22, "UC_SEND_LAST", 12, 0},
	{0x23, "UC_SEND_LAST_IMM", 16, SL_ROCE_HAS_IMM},
	{0x24, "UC_SEND_ONLY", 12, 0},
	{0x25, "UC_SEND_ONLY_IMM", 16, SL_ROCE_HAS_IMM},
	{0x26, "UC_WRITE_FIRST", 28, SL_ROCE_HAS_RETH},
	{0x27, "UC_WRITE_MIDDLE", 12, 0},
	{0x28, "UC_WRITE_LAST", 12, 0},
	{0x29, "UC_WRITE_LAST_IMM", 16, SL_ROCE_HAS_IMM},
	{0x2a, "UC_WRITE_ONLY", 28, SL_ROCE_HAS_RETH},
	{0x2b, "UC_WRITE_ONLY_IMM", 32, SL_ROCE_HAS_RETH | SL_ROCE_HAS_IMM},
	{0x64, "UD_SEND_ONLY", 20, SL_ROCE_HAS_DETH},
	{0x65, "UD_SEND_ONLY_IMM", 24, SL_ROCE_HAS_DETH | SL_ROCE_HAS_IMM},
	{0x80, "CNP_CLASS", 28, SL_ROCE_HAS_CNP},
	{0x81, "CNP", 28, SL_ROCE_HAS_CNP},
};

static void every_row_is_as_specified(void **state)
{
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct sl_roce_opcode *opcode = sl_roce_opcode(expected[i].opcode);

		assert_non_null(opcode);
		assert_string_equal(opcode->name, expected[i].name);
		assert_string_equal(sl_roce_opcode_name(expected[i].opcode), expected[i].name);
		assert_int_equal(opcode->header_bytes, expected[i].header_bytes);
		assert_int_equal(opcode->headers, expected[i].headers);
		assert_true(opcode->header_bytes <= SL_ROCE_HEADERS_MAX);
	}
}

static void nothing_else_is_known(void **state)
{
	unsigned known = 0;

	for (unsigned i = 0; i < 256; i++)
		known += sl_roce_opcode((uint8_t)i) != NULL;
	assert_int_equal(known, sizeof(expected) / sizeof(*expected));
	assert_null(sl_roce_opcode(0x2c)); /* UC has no READ */
	assert_null(sl_roce_opcode(0x82)); /* the class of CNPs has no more */
	assert_string_equal(sl_roce_opcode_name(0xff), "unknown");
}

static void positions_follow_names(void **state)
{
	assert_int_equal(sl_roce_opcode(0x26)->position, SL_ROCE_FIRST);
	assert_int_equal(sl_roce_opcode(0x27)->position, SL_ROCE_MIDDLE);
	assert_int_equal(sl_roce_opcode(0x28)->position, SL_ROCE_LAST);
	assert_int_equal(sl_roce_opcode(0x29)->position, SL_ROCE_LAST);
	assert_int_equal(sl_roce_opcode(0x2a)->position, SL_ROCE_ONLY);
	assert_int_equal(sl_roce_opcode(0x2b)->position, SL_ROCE_ONLY);
	for (unsigned i = 0; i < 12; i++) /* UC repeats RC */
		assert_int_equal(sl_roce_opcode((uint8_t)i)->position,
				 sl_roce_opcode((uint8_t)(0x20 + i))->position);
}

static void receives_are_taken_by_send_and_immediates(void **state)
{
	for (unsigned i = 0x20; i < 0x26; i++)
		assert_true(sl_roce_opcode((uint8_t)i)->receive);
	for (unsigned i = 0x26; i < 0x2c; i++)
		assert_int_equal(sl_roce_opcode((uint8_t)i)->receive, i == 0x29 || i == 0x2b);
	assert_false(sl_roce_opcode(0x20)->complete);
	assert_true(sl_roce_opcode(0x22)->complete);
	assert_false(sl_roce_opcode(0x2a)->complete);
	assert_true(sl_roce_opcode(0x2b)->complete);
}

static void payload_rules(void **state)
{
	const struct sl_roce_opcode *first = sl_roce_opcode(0x26), *last = sl_roce_opcode(0x28);
	const struct sl_roce_opcode *only = sl_roce_opcode(0x2a), *ack = sl_roce_opcode(0x11);

	assert_true(sl_roce_payload_fits(first, 1024, 1024));
	assert_false(sl_roce_payload_fits(first, 1023, 1024));
	assert_false(sl_roce_payload_fits(first, 1025, 1024));
	assert_true(sl_roce_payload_fits(first, 256, 0));
	assert_false(sl_roce_payload_fits(first, 4097, 0));
	assert_false(sl_roce_payload_fits(last, 0, 1024));
	assert_true(sl_roce_payload_fits(last, 1, 1024));
	assert_false(sl_roce_payload_fits(last, 1025, 1024));
	assert_true(sl_roce_payload_fits(only, 0, 1024));
	assert_true(sl_roce_payload_fits(only, 1024, 1024));
	assert_false(sl_roce_payload_fits(only, 1025, 1024));
	assert_true(sl_roce_payload_fits(ack, 0, 1024));
	assert_false(sl_roce_payload_fits(ack, 1, 1024));
	assert_true(sl_roce_payload_fits(sl_roce_opcode(0x1d), 8, 1024));
	assert_false(sl_roce_payload_fits(sl_roce_opcode(0x1d), 4, 1024));
}

static void transport_is_the_top_three_bits(void **state)
{
	assert_int_equal(sl_roce_opcode_transport(0x0a), SL_ROCE_RC);
	assert_int_equal(sl_roce_opcode_transport(0x2a), SL_ROCE_UC);
	assert_int_equal(sl_roce_opcode_transport(0x64), SL_ROCE_UD);
	assert_int_equal(sl_roce_opcode_transport(0x81), SL_ROCE_CNP);
	assert_int_equal(SL_ROCE_OPCODE(SL_ROCE_UC, SL_ROCE_WRITE_ONLY_IMM), 0x2b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_as_specified),
		cmocka_unit_test(nothing_else_is_known),
		cmocka_unit_test(positions_follow_names),
		cmocka_unit_test(receives_are_taken_by_send_and_immediates),
		cmocka_unit_test(payload_rules),
		cmocka_unit_test(transport_is_the_top_three_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
