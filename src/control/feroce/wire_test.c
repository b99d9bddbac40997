/* wire_test.c - FEROCE messages byte by byte, from the table that the firmware documents, and the
 * flag bytes that its reference receiver tests for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/feroce/wire.h"

/* Byte i is i, but for the flags, the padding and the generator's flags. */
static void counting_bytes(uint8_t bytes[SL_FEROCE_BYTES])
{
	static const unsigned zero[] = {0, 1, 5, 25, 29, 51};

	for (unsigned i = 0; i < SL_FEROCE_BYTES; i++)
		bytes[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(zero) / sizeof(zero[0]); i++)
		bytes[zero[i]] = 0;
}

static void every_field_is_where_the_table_says(void **state)
{
	struct sl_feroce_message m;
	uint8_t bytes[SL_FEROCE_BYTES], again[SL_FEROCE_BYTES];

	counting_bytes(bytes);
	assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), 0);
	assert_int_equal(m.local.qpn, 0x020304);
	assert_int_equal(m.local.psn, 0x060708);
	assert_int_equal(m.local.rkey, 0x090a0b0c);
	assert_true(m.local.va == UINT64_C(0x0d0e0f1011121314));
	assert_int_equal(m.local.ip, 0x15161718);
	assert_int_equal(m.remote.qpn, 0x1a1b1c);
	assert_int_equal(m.remote.psn, 0x1e1f20);
	assert_int_equal(m.remote.rkey, 0x21222324);
	assert_true(m.remote.va == UINT64_C(0x25262728292a2b2c));
	assert_int_equal(m.remote.ip, 0x2d2e2f30);
	assert_int_equal(m.port, 0x3132);
	assert_int_equal(m.generator.bytes, 0x34353637);
	assert_int_equal(m.generator.transfers, 0x38393a3b);
	assert_int_equal(m.generator.clocks, 0x3c3d3e3f);
	memset(again, 0xa5, sizeof(again));
	sl_feroce_encode(&m, again);
	assert_memory_equal(bytes, again, sizeof(bytes));
}

static void flags(void **state)
{
	static const struct {
		uint8_t byte;
		bool info, answer;
		enum sl_feroce_request request;
		enum sl_feroce_answer ack;
	} is[] = {
		{0x00, false, false, SL_FEROCE_NONE, SL_FEROCE_ACK_NONE},
		{0x01, true, false, SL_FEROCE_NONE, SL_FEROCE_ACK_NONE},
		{0x03, true, false, SL_FEROCE_OPEN, SL_FEROCE_ACK_NONE},
		{0x05, true, false, SL_FEROCE_INFO, SL_FEROCE_ACK_NONE},
		{0x07, true, false, SL_FEROCE_RTS, SL_FEROCE_ACK_NONE},
		{0x09, true, false, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE},
		{0x0f, true, false, SL_FEROCE_ERROR, SL_FEROCE_ACK_NONE},
		{0x33, true, true, SL_FEROCE_OPEN, SL_FEROCE_ACK},
		{0x35, true, true, SL_FEROCE_INFO, SL_FEROCE_ACK},
		{0x59, true, true, SL_FEROCE_CLOSE, SL_FEROCE_NO_QP},
		{0x79, true, true, SL_FEROCE_CLOSE, SL_FEROCE_NAK},
		{0xf3, true, true, SL_FEROCE_OPEN, SL_FEROCE_ACK_ERROR},
	};

	for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		uint8_t bytes[SL_FEROCE_BYTES] = {is[i].byte};
		struct sl_feroce_message m;

		assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), 0);
		assert_int_equal(m.info, is[i].info);
		assert_int_equal(m.request, is[i].request);
		assert_int_equal(m.answer, is[i].answer);
		assert_int_equal(m.ack, is[i].ack);
		bytes[0] = 0;
		sl_feroce_encode(&m, bytes);
		assert_int_equal(bytes[0], is[i].byte);
	}
}

static void start_of_the_generator(void **state)
{
	const struct sl_feroce_message write = {
		.generator = {.valid = true, .start = true, .write = true, .bytes = 16384}};
	uint8_t bytes[SL_FEROCE_BYTES];
	struct sl_feroce_message m;

	sl_feroce_encode(&write, bytes);
	assert_int_equal(bytes[51], 0x0b);
	bytes[51] = 0x07; /* SEND with immediate */
	assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), 0);
	assert_true(m.generator.valid && m.generator.start && m.generator.immediate);
	assert_false(m.generator.write);
	assert_int_equal(m.generator.bytes, 16384);
}

static void only_64_bytes_are_a_message(void **state)
{
	uint8_t bytes[SL_FEROCE_BYTES + 1] = {0};
	struct sl_feroce_message m;

	for (size_t n = 0; n <= sizeof(bytes); n++)
		assert_int_equal(sl_feroce_decode(bytes, n, &m),
				 n == SL_FEROCE_BYTES ? 0 : -EPROTO);
}

static void codes_and_padding_that_do_not_exist(void **state)
{
	static const unsigned padding[] = {1, 5, 25, 29};
	static const uint8_t flags[] = {5 << 1, 6 << 1, 4 << 5, 5 << 5, 6 << 5};
	struct sl_feroce_message m = {.port = 77};

	for (size_t i = 0; i < sizeof(padding) / sizeof(padding[0]); i++) {
		uint8_t bytes[SL_FEROCE_BYTES] = {0};

		bytes[padding[i]] = 1;
		assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), -EPROTO);
	}
	for (size_t i = 0; i < sizeof(flags); i++) {
		uint8_t bytes[SL_FEROCE_BYTES] = {flags[i]};

		assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), -EPROTO);
	}
	for (unsigned bit = 4; bit < 8; bit++) {
		uint8_t bytes[SL_FEROCE_BYTES] = {0};

		bytes[51] = (uint8_t)(1u << bit);
		assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), -EPROTO);
	}
	assert_int_equal(m.port, 77); /* set only on success */
}

/* Numbers of 24 bits that are wider must not spill into the byte before them. */
static void wide_numbers_are_cut(void **state)
{
	const struct sl_feroce_message wide = {.local = {.qpn = 0x12345678, .psn = 0xaabbccdd}};
	uint8_t bytes[SL_FEROCE_BYTES];
	struct sl_feroce_message m;

	sl_feroce_encode(&wide, bytes);
	assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), 0);
	assert_int_equal(m.local.qpn, 0x345678);
	assert_int_equal(m.local.psn, 0xbbccdd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_where_the_table_says),
		cmocka_unit_test(flags),
		cmocka_unit_test(start_of_the_generator),
		cmocka_unit_test(only_64_bytes_are_a_message),
		cmocka_unit_test(codes_and_padding_that_do_not_exist),
		cmocka_unit_test(wide_numbers_are_cut),
	};

	return cmocka_run_group_tests_name("feroce", tests, NULL, NULL);
}
