/* requester_test.c - messages of all sizes become the packets they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/psn.h"
#include "roce/requester.h"

#include <string.h>

static uint8_t headers[SL_ROCE_HEADERS_MAX];
static struct sl_roce_fragment fragment;
static struct sl_roce_requester requester;

static struct sl_roce_message message(uint8_t kind, uint32_t bytes, bool immediate)
{
	return (struct sl_roce_message){
		.transport = SL_ROCE_UC,
		.kind = kind,
		.immediate = immediate,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = 1024,
		.qpn = 0x1234,
		.psn = 0x100,
		.imm = 0xcafebabe,
		.rkey = 0xdeadbeef,
		.va = 0x7f0000001000,
		.bytes = bytes,
	};
}

/* The opcodes of a message in order. */
static void expect_opcodes(uint8_t kind, uint32_t bytes, bool immediate, const uint8_t *opcodes,
			   size_t count)
{
	struct sl_roce_message m = message(kind, bytes, immediate);

	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_OK);
	assert_int_equal(sl_roce_packets(bytes, m.pmtu), count);
	for (size_t i = 0; i < count; i++) {
		assert_true(sl_roce_requester_next(&requester, headers, &fragment));
		assert_int_equal(fragment.opcode, opcodes[i]);
		assert_int_equal(headers[0], opcodes[i]);
		assert_int_equal(fragment.psn, 0x100 + i);
		assert_int_equal(fragment.offset, i * 1024);
		assert_int_equal(fragment.last, i == count - 1);
	}
	assert_false(sl_roce_requester_next(&requester, headers, &fragment));
	assert_int_equal(requester.psn, 0x100 + count);
	assert_int_equal(requester.offset, bytes);
}

#define EXPECT(kind, bytes, immediate, ...)                                                   \
	expect_opcodes(SL_ROCE_KIND_##kind, bytes, immediate, (const uint8_t[]){__VA_ARGS__}, \
		       sizeof((const uint8_t[]){__VA_ARGS__}))

static void write_opcodes_by_length(void **state)
{
	EXPECT(WRITE, 0, false, 0x2a);
	EXPECT(WRITE, 1, false, 0x2a);
	EXPECT(WRITE, 1024, false, 0x2a);
	EXPECT(WRITE, 1025, false, 0x26, 0x28);
	EXPECT(WRITE, 2048, false, 0x26, 0x28);
	EXPECT(WRITE, 2049, false, 0x26, 0x27, 0x28);
	EXPECT(WRITE, 4096, false, 0x26, 0x27, 0x27, 0x28);
}

static void write_with_immediate_opcodes_by_length(void **state)
{
	EXPECT(WRITE, 0, true, 0x2b);
	EXPECT(WRITE, 1024, true, 0x2b);
	EXPECT(WRITE, 1025, true, 0x26, 0x29);
	EXPECT(WRITE, 3000, true, 0x26, 0x27, 0x29);
}

static void send_opcodes_by_length(void **state)
{
	EXPECT(SEND, 0, false, 0x24);
	EXPECT(SEND, 1024, false, 0x24);
	EXPECT(SEND, 1025, false, 0x20, 0x22);
	EXPECT(SEND, 3000, false, 0x20, 0x21, 0x22);
	EXPECT(SEND, 0, true, 0x25);
	EXPECT(SEND, 3000, true, 0x20, 0x21, 0x23);
}

/* Read each packet back with the parser. */
static void headers_of_a_long_write(void **state)
{
	struct sl_roce_message m = message(SL_ROCE_KIND_WRITE, 2050, true);
	struct sl_roce_packet packet;
	uint32_t sum = 0;

	m.solicited = true;
	m.mig = true;
	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_OK);
	while (sl_roce_requester_next(&requester, headers, &fragment)) {
		assert_int_equal(sl_roce_parse_headers(headers, fragment.header_bytes,
						       fragment.header_bytes + fragment.bytes +
							       fragment.pad + 4u,
						       &packet),
				 SL_ROCE_OK);
		assert_int_equal(packet.header_bytes, fragment.header_bytes);
		assert_int_equal(packet.payload_bytes, fragment.bytes);
		assert_int_equal(packet.psn, fragment.psn);
		assert_int_equal(packet.qpn, 0x1234);
		assert_int_equal(packet.pkey, 0xffff);
		assert_int_equal(packet.byte4, 0);
		assert_true(packet.mig);
		assert_false(packet.ackreq);
		assert_int_equal(packet.se, fragment.last);
		if (fragment.offset == 0) {
			assert_int_equal(packet.reth.va, 0x7f0000001000);
			assert_int_equal(packet.reth.rkey, 0xdeadbeef);
			assert_int_equal(packet.reth.length, 2050);
		}
		sum += fragment.bytes;
	}
	assert_int_equal(packet.imm, 0xcafebabe);
	assert_int_equal(fragment.pad, 2);
	assert_int_equal(sum, 2050);
}

static void psn_wraps_within_a_message(void **state)
{
	struct sl_roce_message m = message(SL_ROCE_KIND_WRITE, 4096, false);

	m.psn = 0xfffffe;
	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_OK);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(sl_roce_requester_next(&requester, headers, &fragment));
		assert_int_equal(fragment.psn, sl_roce_psn_add(0xfffffe, i));
	}
	assert_int_equal(requester.psn, 2);
}

static void packets_are_counted(void **state)
{
	assert_int_equal(sl_roce_packets(0, 4096), 1);
	assert_int_equal(sl_roce_packets(1, 4096), 1);
	assert_int_equal(sl_roce_packets(4096, 4096), 1);
	assert_int_equal(sl_roce_packets(4097, 4096), 2);
	assert_int_equal(sl_roce_packets(SL_ROCE_MESSAGE_MAX, 256), 1u << 23);
}

static void the_longest_message_is_accepted(void **state)
{
	struct sl_roce_message m = message(SL_ROCE_KIND_WRITE, SL_ROCE_MESSAGE_MAX, false);

	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_OK);
	requester.offset = SL_ROCE_MESSAGE_MAX - 1024;
	assert_true(sl_roce_requester_next(&requester, headers, &fragment));
	assert_int_equal(fragment.opcode, 0x28);
	assert_int_equal(fragment.bytes, 1024);
	assert_false(sl_roce_requester_next(&requester, headers, &fragment));
}

static void expect_refused(struct sl_roce_message m)
{
	struct sl_roce_requester before;

	memset(&requester, 0x5a, sizeof(requester));
	before = requester;
	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_EINVAL);
	assert_memory_equal(&requester, &before, sizeof(before));
}

static void impossible_messages_are_refused(void **state)
{
	struct sl_roce_message m = message(SL_ROCE_KIND_WRITE, 100, false);

	m.transport = SL_ROCE_RC;
	expect_refused(m);
	expect_refused(message(SL_ROCE_KIND_READ, 100, false));
	expect_refused(message(SL_ROCE_KIND_WRITE, SL_ROCE_MESSAGE_MAX + 1, false));
	m = message(SL_ROCE_KIND_WRITE, 100, false);
	m.pmtu = 1500;
	expect_refused(m);
	m.pmtu = 1024;
	m.qpn = 0x1000000;
	expect_refused(m);
	m.qpn = 1;
	m.psn = 0x1000000;
	expect_refused(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_opcodes_by_length),
		cmocka_unit_test(write_with_immediate_opcodes_by_length),
		cmocka_unit_test(send_opcodes_by_length),
		cmocka_unit_test(headers_of_a_long_write),
		cmocka_unit_test(psn_wraps_within_a_message),
		cmocka_unit_test(packets_are_counted),
		cmocka_unit_test(the_longest_message_is_accepted),
		cmocka_unit_test(impossible_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
