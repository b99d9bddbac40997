/* plan_test.c - address, PSN and position follow the sequence, over ring laps and the 24-bit
 * wrap; plans are made of offers and terms. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/record.h>

#include "core/answer.h"

static const struct sl_plan plan = {
	.pmtu = 4096,
	.first_psn = 0xfffffe,
	.slots = 5,
	.packets = 3,
	.base = 0x10000,
	.stride = 0x9000,
	.block_at = 0x4000,
	.block_bytes = 9000,
	.first_sequence = 0,
};

static void address_wraps_with_the_ring(void **state)
{
	assert_int_equal(sl_plan_address(&plan, 0, 0), 0x14000);
	assert_int_equal(sl_plan_address(&plan, 4, 8192), 0x14000 + 4 * 0x9000 + 8192);
	assert_int_equal(sl_plan_address(&plan, 5, 0), sl_plan_address(&plan, 0, 0));
}

static void psn_wraps_at_24_bits(void **state)
{
	assert_int_equal(sl_plan_psn(&plan, 0, 0), 0xfffffe);
	assert_int_equal(sl_plan_psn(&plan, 0, 4096), 0xffffff);
	assert_int_equal(sl_plan_psn(&plan, 0, 8192), 0);
	assert_int_equal(sl_plan_psn(&plan, 1, 0), 1);
	assert_int_equal(sl_plan_psn(&plan, 1ull << 40, 0),
			 (0xfffffe + 3 * (1ull << 40)) & 0xffffff);
}

static void a_late_start_counts_from_its_first_sequence(void **state)
{
	struct sl_plan late = plan;

	late.first_sequence = 100;
	assert_int_equal(sl_plan_psn(&late, 100, 0), 0xfffffe);
	assert_int_equal(sl_plan_position(&late, 100, 10), 10);
	assert_int_equal(sl_plan_position(&late, 102, 0), 18000);
	assert_int_equal(sl_plan_address(&late, 100, 0), 0x14000); /* slots do not care */
}

/* ---- offers and terms ---- */

enum { LINES = 16, LINE = 1024, PIXELS = LINES * LINE, BLOCK = PIXELS + SL_RECORD_BYTES };

static const struct sl_offer good_offer = {
	.module = 2,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.max_pmtu = 4096,
	.ip_id = SL_IP_ID_COUNTS,
	.source = {.ip = {1, 2}, .port = 77},
	.credit_port = 78,
	.credit_qpn = 0x123456,
	.credit_rkey = 9,
	.credit_va = 0x8000,
	.block_bytes = BLOCK,
	.lines = LINES,
	.line_bytes = LINE,
	.first_sequence = 40,
};

static const struct sl_plan_terms good_terms = {
	.transfer = 5,
	.service = SL_SERVICE_RC,
	.operation = SL_OPERATION_WRITE,
	.message = SL_MESSAGE_PACKET,
	.pmtu = 2048,
	.crc = 1,
	.qpn = 11,
	.rkey = 12,
	.psn = 0xab123456,
	.credit_psn = 0xcd654321,
	.modules = 4,
	.slots = 7,
	.base = 0x100000000,
	.stride = 0x20000,
	.block_at = 0x10000,
	.pixel_bytes = PIXELS,
	.block_bytes = BLOCK,
	.lines = LINES,
	.line_bytes = LINE,
	.record_at = PIXELS,
	.window_bytes = 12345,
	.dest = {.ip = {3, 4}, .port = 4791},
};

static struct sl_plan answered(const struct sl_offer *offer, const struct sl_plan_terms *terms)
{
	struct sl_plan made;

	assert_int_equal(sl_plan_answer(offer, terms, &made), 0);
	return made;
}

static void a_plan_has_what_both_sides_say(void **state)
{
	struct sl_plan made = answered(&good_offer, &good_terms);

	assert_int_equal(made.version, SL_PLAN_VERSION);
	assert_int_equal(made.transfer, 5);
	assert_int_equal(made.module, 2);
	assert_int_equal(made.service, SL_SERVICE_RC);
	assert_int_equal(made.operation, SL_OPERATION_WRITE);
	assert_int_equal(made.message, SL_MESSAGE_PACKET);
	assert_int_equal(made.ip_id, SL_IP_ID_COUNTS);
	assert_int_equal(made.crc, 1);
	assert_int_equal(made.qpn, 11);
	assert_int_equal(made.rkey, 12);
	assert_int_equal(made.first_psn, 0x123456);
	assert_int_equal(made.credit_psn, 0x654321);
	assert_int_equal(made.first_sequence, 40);
	assert_int_equal(made.window_bytes, 12345);
	assert_memory_equal(&made.source, &good_offer.source, sizeof(made.source));
	assert_memory_equal(&made.dest, &good_terms.dest, sizeof(made.dest));
	assert_int_equal(made.credit_qpn, 0x123456);
	assert_int_equal(made.credit_va, 0x8000);
	assert_int_equal(made.credit_port, 78);
	assert_int_equal(sl_plan_address(&made, 8, 0), 0x100000000 + 0x20000 + 0x10000);
	assert_int_equal(made.packets, (BLOCK + 2047) / 2048);
	assert_true(sl_plan_lines_fit(&made));
}

static void the_pmtu_is_what_both_sides_take(void **state)
{
	static const uint16_t cases[][3] = {
		{4096, 4096, 4096}, {4096, 1500, 1024}, {1024, 4096, 1024},
		{9000, 9000, 4096}, {300, 4096, 256},	{256, 256, 256},
	};
	struct sl_offer offer = good_offer;
	struct sl_plan_terms terms = good_terms;
	struct sl_plan made = {.version = 77};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		terms.pmtu = cases[i][0];
		offer.max_pmtu = cases[i][1];
		assert_int_equal(answered(&offer, &terms).pmtu, cases[i][2]);
	}
	offer.max_pmtu = 255;
	assert_int_equal(sl_plan_answer(&offer, &terms, &made), -EINVAL);
	assert_int_equal(made.version, 77);
	terms.fixed_pmtu = true;
	terms.pmtu = 8192;
	assert_int_equal(answered(&offer, &terms).pmtu, 8192);
}

static void a_source_may_name_its_psn(void **state)
{
	struct sl_offer offer = good_offer;

	offer.psn_plus_1 = 1;
	assert_int_equal(answered(&offer, &good_terms).first_psn, 0);
	offer.psn_plus_1 = 0x1000001;
	assert_int_equal(answered(&offer, &good_terms).first_psn, 0);
}

static void blocks_without_records_need_a_receiver_that_takes_them(void **state)
{
	struct sl_offer offer = good_offer;
	struct sl_plan_terms terms = good_terms;
	struct sl_plan made;

	offer.bare = 1;
	offer.block_bytes = PIXELS;
	offer.darks.first = 3;
	terms.crc = 0;
	assert_false(sl_plan_accepts(&offer, &terms));
	terms.bare = true;
	made = answered(&offer, &terms);
	assert_int_equal(made.bare, 1);
	assert_int_equal(made.block_bytes, PIXELS);
	assert_int_equal(made.darks.first, 3);
	terms.crc = 1; /* of which record? */
	assert_false(sl_plan_accepts(&offer, &terms));
}

static void lines_matter_with_a_pitch_or_a_message_each(void **state)
{
	struct sl_offer offer = good_offer;
	struct sl_plan_terms terms = good_terms;
	struct sl_plan made;

	terms.line_pitch = 2 * LINE;
	terms.record_at = 2 * PIXELS;
	made = answered(&offer, &terms);
	assert_int_equal(made.line_pitch, 2 * LINE);
	assert_int_equal(made.record_at, 2 * PIXELS);
	assert_int_equal(made.packets, LINES + 1);
	assert_true(sl_plan_lines_fit(&made));
	terms.message = SL_MESSAGE_MODULE;
	assert_false(sl_plan_accepts(&offer, &terms));
	terms.message = SL_MESSAGE_LINE;
	assert_true(sl_plan_accepts(&offer, &terms));
	terms.operation = SL_OPERATION_SEND;
	assert_false(sl_plan_accepts(&offer, &terms));
	terms.operation = SL_OPERATION_WRITE;
	offer.lines = LINES / 2;
	offer.line_bytes = LINE * 2;
	assert_false(sl_plan_accepts(&offer, &terms));
	terms.line_pitch = 0; /* then other lines will do */
	assert_true(sl_plan_accepts(&offer, &terms));
	offer.lines = 0;
	assert_false(sl_plan_accepts(&offer, &terms));
	terms.message = SL_MESSAGE_PACKET;
	assert_int_equal(answered(&offer, &terms).line_bytes, 0);
}

static void offers_that_lack_something_are_refused(void **state)
{
#define LACKS(field, value)                                         \
	do {                                                        \
		struct sl_offer offer = good_offer;                 \
		offer.field = value;                                \
		assert_false(sl_plan_accepts(&offer, &good_terms)); \
	} while (0)
	assert_true(sl_plan_accepts(&good_offer, &good_terms));
	LACKS(module, 4);
	LACKS(services, SL_SERVICE_UC);
	LACKS(operations, SL_OPERATION_SEND);
	LACKS(messages, SL_MESSAGE_MODULE | SL_MESSAGE_LINE);
	LACKS(block_bytes, BLOCK + 1);
	LACKS(block_bytes, PIXELS);
	LACKS(credit_qpn, 0x1000000);
	LACKS(line_bytes, LINE + 1);
#undef LACKS
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_wraps_with_the_ring),
		cmocka_unit_test(psn_wraps_at_24_bits),
		cmocka_unit_test(a_late_start_counts_from_its_first_sequence),
		cmocka_unit_test(a_plan_has_what_both_sides_say),
		cmocka_unit_test(the_pmtu_is_what_both_sides_take),
		cmocka_unit_test(a_source_may_name_its_psn),
		cmocka_unit_test(blocks_without_records_need_a_receiver_that_takes_them),
		cmocka_unit_test(lines_matter_with_a_pitch_or_a_message_each),
		cmocka_unit_test(offers_that_lack_something_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
