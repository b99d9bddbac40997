/* golden_test.c - every packet exchanged with a live Soft-RoCE is a test case: the packets.
 *
 * Per frame: parsing reads what another decoder read, the ICRC is right or wrong as captured, and
 * encoding what was read gives the captured bytes. Per message: our requester in the sender's place
 * sends the same bytes. The responder has golden_responder_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_golden.h"
#include "roce/icrc.h"
#include "roce/psn.h"
#include "roce/requester.h"

static struct golden golden;
static struct golden_tests tests;

static void parse_frame(void **state)
{
	const struct golden_frame *frame = *state;
	struct sl_roce_packet p;
	uint8_t icrc[4];

	assert_int_equal(sl_roce_parse(frame->udp, frame->udp_bytes, &p), SL_ROCE_OK);
	assert_int_equal(p.opcode, golden_number(frame, "op"));
	assert_int_equal(p.se, golden_number(frame, "se"));
	assert_int_equal(p.mig, golden_number(frame, "mig"));
	assert_int_equal(p.pad, golden_number(frame, "pad"));
	assert_int_equal(p.pkey, golden_number(frame, "pkey"));
	assert_int_equal(p.byte4, golden_number(frame, "b4"));
	assert_int_equal(p.qpn, golden_number(frame, "qpn"));
	assert_int_equal(p.ackreq, golden_number(frame, "ackreq"));
	assert_int_equal(p.psn, golden_number(frame, "psn"));
	assert_int_equal(!!(p.has & SL_ROCE_HAS_RETH), golden_has(frame, "va"));
	if (golden_has(frame, "va")) {
		assert_int_equal(p.reth.va, golden_number(frame, "va"));
		assert_int_equal(p.reth.rkey, golden_number(frame, "rkey"));
		assert_int_equal(p.reth.length, golden_number(frame, "dmalen"));
	}
	assert_int_equal(!!(p.has & SL_ROCE_HAS_IMM), golden_has(frame, "imm"));
	if (golden_has(frame, "imm"))
		assert_int_equal(p.imm, golden_number(frame, "imm"));
	assert_int_equal(!!(p.has & SL_ROCE_HAS_AETH), golden_has(frame, "syndrome"));
	if (golden_has(frame, "syndrome")) {
		assert_int_equal(p.aeth.syndrome, golden_number(frame, "syndrome"));
		assert_int_equal(p.aeth.msn, golden_number(frame, "msn"));
	}
	assert_int_equal(p.payload_bytes, frame->payload_bytes);
	assert_memory_equal(p.payload, frame->payload, frame->payload_bytes);
	hex_bytes(golden_text(frame->fields, "icrc"), icrc, 4);
	assert_int_equal(p.icrc, sl_roce_icrc_get(icrc));
}

static void check_icrc(void **state)
{
	const struct golden_frame *frame = *state;
	uint16_t id = 0xdead;

	assert_int_equal(sl_roce_icrc_check(&frame->path, frame->udp, frame->udp_bytes, NULL),
			 frame->icrc_ok);
	if (frame->icrc_ok) {
		assert_true(sl_roce_icrc_check_any_id(&frame->path, frame->udp, frame->udp_bytes,
						      NULL, &id));
		assert_int_equal(id, frame->path.ip_id);
	}
}

/* From the other decoder's numbers to bytes, so that a mistake in our parser cannot hide. */
static void encode_frame(void **state)
{
	const struct golden_frame *frame = *state;
	struct sl_roce_packet p = {
		.opcode = (uint8_t)golden_number(frame, "op"),
		.pad = (uint8_t)golden_number(frame, "pad"),
		.byte4 = (uint8_t)golden_number(frame, "b4"),
		.se = golden_number(frame, "se"),
		.mig = golden_number(frame, "mig"),
		.ackreq = golden_number(frame, "ackreq"),
		.pkey = (uint16_t)golden_number(frame, "pkey"),
		.qpn = (uint32_t)golden_number(frame, "qpn"),
		.psn = (uint32_t)golden_number(frame, "psn"),
	};
	struct sl_roce_piece piece = {frame->payload, frame->payload_bytes};
	uint8_t headers[SL_ROCE_HEADERS_MAX], trailer[SL_ROCE_TRAILER_MAX];
	size_t n, tail;

	if (golden_has(frame, "va")) {
		p.reth.va = golden_number(frame, "va");
		p.reth.rkey = (uint32_t)golden_number(frame, "rkey");
		p.reth.length = (uint32_t)golden_number(frame, "dmalen");
	}
	if (golden_has(frame, "imm"))
		p.imm = (uint32_t)golden_number(frame, "imm");
	if (golden_has(frame, "syndrome")) {
		p.aeth.syndrome = (uint8_t)golden_number(frame, "syndrome");
		p.aeth.msn = (uint32_t)golden_number(frame, "msn");
	}
	n = (size_t)sl_roce_encode_headers(&p, headers);
	tail = sl_roce_seal(&frame->path, headers, n, &piece, 1, NULL, trailer);
	assert_int_equal(n + frame->payload_bytes + tail, frame->udp_bytes);
	assert_memory_equal(headers, frame->udp, n);
	assert_memory_equal(trailer, frame->udp + n + frame->payload_bytes, tail - 4);
	if (frame->icrc_ok)
		assert_memory_equal(trailer + tail - 4, frame->udp + frame->udp_bytes - 4, 4);
	else
		assert_memory_not_equal(trailer + tail - 4, frame->udp + frame->udp_bytes - 4, 4);
}

static struct sl_roce_message message_of(const struct golden_case *one, unsigned first)
{
	const struct golden_frame *frame = &one->frame[first];
	bool write = strstr(golden_text(frame->fields, "name"), "WRITE") != NULL;
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = write ? SL_ROCE_KIND_WRITE : SL_ROCE_KIND_SEND,
		.solicited = golden_number(frame, "se"),
		.mig = golden_number(frame, "mig"),
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = one->qp.mtu,
		.qpn = frame->from_guest ? one->qp.peer_qpn : one->qp.qpn,
		.psn = (uint32_t)golden_number(frame, "psn"),
		.bytes = (uint32_t)frame->payload_bytes,
	};

	if (write) {
		message.va = golden_number(frame, "va");
		message.rkey = (uint32_t)golden_number(frame, "rkey");
		message.bytes = (uint32_t)golden_number(frame, "dmalen");
	}
	for (unsigned i = first; i < one->frames; i++) {
		if (golden_has(&one->frame[i], "imm")) {
			message.immediate = true;
			message.imm = (uint32_t)golden_number(&one->frame[i], "imm");
		}
	}
	return message;
}

/* The same packet from our headers and its payload, byte for byte. A switch's marks in byte 4 are
 * put back; the ICRC does not see them. */
static void compare_packet(const struct golden_frame *frame, uint8_t *headers,
			   const struct sl_roce_fragment *fragment)
{
	struct sl_roce_piece piece = {frame->payload, fragment->bytes};
	uint8_t packet[GOLDEN_FRAME_BYTES];
	size_t n = fragment->header_bytes;

	assert_int_equal(fragment->bytes, frame->payload_bytes);
	headers[4] = (uint8_t)golden_number(frame, "b4");
	memcpy(packet, headers, n);
	memcpy(packet + n, frame->payload, fragment->bytes);
	n += fragment->bytes;
	n += sl_roce_seal(&frame->path, headers, fragment->header_bytes, &piece, 1, NULL,
			  packet + n);
	assert_int_equal(n, frame->udp_bytes);
	assert_memory_equal(packet, frame->udp, n);
}

static void request_case(void **state)
{
	const struct golden_case *one = *state;
	struct sl_roce_requester requester = {.done = true};
	struct sl_roce_fragment fragment;
	uint8_t headers[SL_ROCE_HEADERS_MAX];

	assert_true(one->frames > 0);
	for (unsigned i = 0; i < one->frames; i++) {
		uint32_t psn = (uint32_t)golden_number(&one->frame[i], "psn");

		if (requester.done) {
			struct sl_roce_message message = message_of(one, i);

			assert_int_equal(sl_roce_requester_begin(&requester, &message), SL_ROCE_OK);
		}
		do /* packets that were lost on purpose have no frame */
			assert_true(sl_roce_requester_next(&requester, headers, &fragment));
		while (fragment.psn != psn);
		compare_packet(&one->frame[i], headers, &fragment);
	}
	assert_true(requester.done);
	assert_int_equal(
		requester.psn,
		sl_roce_psn_add((uint32_t)golden_number(&one->frame[one->frames - 1], "psn"), 1));
}

/* An ICRC made for id 0 on a packet that left with another: without the id it looks good, and
 * yields the id it was made for, which is not the one the packet had. */
static void any_id_finds_the_intended_id(void **state)
{
	const struct golden_case *one = *state;
	const struct golden_frame *frame = &one->frame[0];
	uint16_t id = 0xdead;

	assert_int_not_equal(frame->path.ip_id, 0);
	assert_true(
		sl_roce_icrc_check_any_id(&frame->path, frame->udp, frame->udp_bytes, NULL, &id));
	assert_int_equal(id, 0);
}

static void any_id_refuses_a_bad_icrc(void **state)
{
	const struct golden_case *one = *state;
	const struct golden_frame *frame = &one->frame[0];
	uint16_t id;

	assert_false(
		sl_roce_icrc_check_any_id(&frame->path, frame->udp, frame->udp_bytes, NULL, &id));
}

static void file_is_complete(void **state)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < golden.cases; i++)
		frames += golden.one[i].frames;
	assert_int_equal(golden.cases, 43);
	assert_int_equal(frames, 70);
}

static void add_case(const struct golden_case *one)
{
	for (unsigned i = 0; i < one->frames; i++) {
		golden_add_frame(&tests, parse_frame, "parse", &one->frame[i]);
		golden_add_frame(&tests, check_icrc, "icrc", &one->frame[i]);
		golden_add_frame(&tests, encode_frame, "encode", &one->frame[i]);
	}
	if (golden_starts(one, "RXE_UC_") || golden_starts(one, "UC_") ||
	    golden_starts(one, "OBS_UC_WRITE_ONLY_after_loss"))
		golden_add(&tests, request_case, "request", one);
	if (golden_starts(one, "NEG_connected_socket"))
		golden_add(&tests, any_id_finds_the_intended_id, "any id", one);
	if (golden_starts(one, "NEG_bad_ICRC"))
		golden_add(&tests, any_id_refuses_a_bad_icrc, "any id", one);
}

int main(void)
{
	const struct golden_case all = {.name = "of the file"};
	int failed;

	golden_load(SL_TEST_DATA "/soft-roce.json", &golden);
	golden_add(&tests, file_is_complete, "everything", &all);
	for (unsigned i = 0; i < golden.cases; i++)
		add_case(&golden.one[i]);
	failed = _cmocka_run_group_tests("golden", tests.test, tests.count, NULL, NULL);
	json_decref(golden.root);
	return failed;
}
