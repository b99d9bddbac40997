/* wire_test.c - packets of answers, byte by byte, and what is not believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "feedback/wire.h"

enum { COUNT = 2, BYTES = SL_FEEDBACK_HEADER + COUNT * SL_FEEDBACK_ANSWER };

/* As docs/reference/feedback.md has it, written down by hand. */
static const uint8_t wire[BYTES] = {
	'S',  'L',  'F',  'B',	1,    0,    0x11, 0,	/* magic, version, flags: last, dark */
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* packet */
	0x03, 0x01, 0,	  0,	0,    0,    0,	  0,	/* first: 259 */
	0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* timestamp */
	2,    0,    24,	  0,	8,    0,    0,	  0,	/* count, bytes of an answer, items */
	0x03, 0x01, 0,	  0,	0,    0,    0,	  0,	/* number 259 */
	0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, /* timestamp */
	0,    0,    0x80, 0x3f, 2,    0,    1,	  0,	/* 1.0f, reason 2, keep */
	0x04, 0x01, 0,	  0,	0,    0,    0,	  0,	/* number 260 */
	0,    0,    0,	  0,	0,    0,    0,	  0,	/* timestamp */
	0,    0,    0x20, 0xc1, 0x02, 0x01, 2,	  0,	/* -10.0f, reason 258, no data */
};

static const struct sl_feedback_header header = {.packet = 0x0102030405060708,
						 .first = 259,
						 .timestamp = 0x1112131415161718,
						 .items = 8,
						 .flags = SL_FEEDBACK_LAST | SL_FEEDBACK_DARK,
						 .count = COUNT};
static const struct sl_feedback_answer answer[COUNT] = {
	{259, 0x2122232425262728, 1.0f, 2, SL_FEEDBACK_KEEP},
	{260, 0, -10.0f, 258, SL_FEEDBACK_NO_DATA},
};

static void is_written_as_the_page_says(void **state)
{
	uint8_t bytes[BYTES];

	(void)state;
	sl_feedback_write_header(&header, bytes);
	for (unsigned i = 0; i < COUNT; i++)
		sl_feedback_write_answer(&answer[i],
					 bytes + SL_FEEDBACK_HEADER + i * SL_FEEDBACK_ANSWER);
	assert_memory_equal(bytes, wire, BYTES);
}

static void is_read_as_it_was_written(void **state)
{
	struct sl_feedback_header got;

	(void)state;
	assert_int_equal(sl_feedback_read(wire, BYTES, &got), 0);
	assert_true(got.packet == header.packet && got.first == header.first &&
		    got.timestamp == header.timestamp && got.items == header.items &&
		    got.flags == header.flags && got.count == header.count);
	for (unsigned i = 0; i < COUNT; i++) {
		struct sl_feedback_answer a;

		sl_feedback_read_answer(wire, i, &a);
		assert_true(a.number == answer[i].number && a.timestamp == answer[i].timestamp &&
			    a.score == answer[i].score && a.reason == answer[i].reason &&
			    a.decision == answer[i].decision);
	}
}

static void the_default_payload_is_full(void **state)
{
	(void)state;
	assert_int_equal(SL_FEEDBACK_HEADER + 57 * SL_FEEDBACK_ANSWER, 1408);
}

/* With byte `at` set to this, or of this length, it is not believed. */
static void refused(size_t bytes, size_t at, uint8_t value)
{
	struct sl_feedback_header got;
	uint8_t packet[BYTES + 1] = {0};

	memcpy(packet, wire, BYTES);
	packet[at] = value;
	assert_int_equal(sl_feedback_read(packet, bytes, &got), -EBADMSG);
}

static void what_contradicts_itself_is_not_believed(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < BYTES; bytes++)
		refused(bytes, 0, 'S');
	refused(BYTES + 1, 0, 'S');
	refused(BYTES, 3, 'C'); /* magic */
	refused(BYTES, 4, 2);	/* version */
	refused(BYTES, 5, 1);	/* likewise */
	refused(BYTES, 34, 25); /* bytes of an answer */
	refused(BYTES, 32, 1);	/* fewer answers than there are bytes */
	refused(BYTES, 32, 3);	/* more */
	refused(BYTES, 16, 4);	/* the first event is another */
	refused(BYTES, 64, 6);	/* the second does not follow the first */
	refused(BYTES, 62, 3);	/* no such decision */
	refused(BYTES, 36, 4);	/* events of two frames: 259 is the last of its four */
	refused(BYTES, 36, 0);	/* frames without events */
	refused(SL_FEEDBACK_HEADER, 32, 0);
}

static void its_length_is_found_at_the_beginning_of_a_block(void **state)
{
	uint8_t block[BYTES + 8] = {0};

	(void)state;
	memcpy(block, wire, BYTES);
	assert_int_equal(sl_feedback_bytes(block, sizeof(block)), BYTES);
	assert_int_equal(sl_feedback_bytes(block, BYTES), BYTES);
	assert_int_equal(sl_feedback_bytes(block, BYTES - 1), 0);
	assert_int_equal(sl_feedback_bytes(block, SL_FEEDBACK_HEADER - 1), 0);
	memset(block + 32, 0xff, 2);
	assert_int_equal(sl_feedback_bytes(block, sizeof(block)), 0);
}

static void numbers_do_not_wrap(void **state)
{
	struct sl_feedback_header got;
	uint8_t packet[BYTES];

	(void)state;
	memcpy(packet, wire, BYTES);
	memset(packet + 16, 0xff, 8);
	memset(packet + 40, 0xff, 8);
	memset(packet + 64, 0, 8);
	packet[36] = 7; /* 2^64 - 1 is the second of its seven */
	assert_int_equal(sl_feedback_read(packet, BYTES, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_written_as_the_page_says),
		cmocka_unit_test(is_read_as_it_was_written),
		cmocka_unit_test(the_default_payload_is_full),
		cmocka_unit_test(what_contradicts_itself_is_not_believed),
		cmocka_unit_test(numbers_do_not_wrap),
		cmocka_unit_test(its_length_is_found_at_the_beginning_of_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
