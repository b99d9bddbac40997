/* sender_test.c - what firmware sends arrives: packets are taken apart by the protocol's other end
 * and placed by their addresses, and the memory is compared with the frames byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "frontend/crc32c.h"
#include "frontend/sender.h"

enum { ROWS = 24, COLUMNS = 40, FRAME = ROWS * COLUMNS * 2, SLOTS = 4, SLOT = 1 << 14 };

#define BASE UINT64_C(0x500000000)

/* A receiver of one transfer: a responder, a key, memory. */
struct receiver {
	struct sl_plan plan;
	struct sl_roce_responder responder;
	struct sl_roce_key key;
	uint8_t memory[SLOTS * SLOT];
	uint8_t times[SLOTS * SLOT]; /* that a byte was written */
	uint32_t packets, events, imm;
};

static const struct sl_roce_key *find_key(void *arg, uint32_t rkey)
{
	struct receiver *r = arg;

	return r->key.rkey == rkey ? &r->key : NULL;
}

static void address(uint8_t *ip, uint8_t last)
{
	memset(ip, 0, 16);
	memcpy(ip + 10, "\xff\xff\x0a\x00\x00", 5);
	ip[15] = last;
}

/* The answer to a transfer's offer. */
static void plan_for(struct receiver *r, const struct sl_transfer *t, uint16_t message,
		     uint16_t pmtu, uint64_t pitch, uint16_t number)
{
	struct sl_offer offer;

	memset(r, 0, sizeof(*r));
	sl_transfer_describe(t, &offer);
	r->plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = number,
		.module = 3,
		.service = SL_SERVICE_UC,
		.operation = SL_OPERATION_WRITE,
		.message = message,
		.pmtu = pmtu,
		.qpn = 0x100u + number,
		.rkey = 0xabc0u + number,
		.first_psn = 0xfffffa,
		.slots = SLOTS,
		.base = BASE,
		.stride = SLOT,
		.block_at = 128,
		.block_bytes = offer.block_bytes,
		.bare = offer.bare,
		.lines = offer.lines,
		.line_bytes = offer.line_bytes,
		.line_pitch = pitch,
		.record_at = pitch ? offer.lines * pitch : 0,
		.credit_qpn = 0x200u + number,
		.credit_rkey = 0xdef0u + number,
		.credit_va = 0x1000,
		.credit_psn = 77,
		.crc = 1,
		.source = {.port = 50000},
		.dest = {.port = 4791},
	};
	address(r->plan.source.ip, 1);
	address(r->plan.dest.ip, 2);
	r->plan.packets = sl_plan_packets(&r->plan);
	r->key = (struct sl_roce_key){.rkey = r->plan.rkey,
				      .access = SL_ROCE_REMOTE_WRITE,
				      .base = BASE,
				      .bytes = sizeof(r->memory)};
	r->responder = (struct sl_roce_responder){.transport = SL_ROCE_UC,
						  .pkey = SL_ROCE_PKEY_DEFAULT,
						  .qpn = r->plan.qpn,
						  .pmtu = pmtu,
						  .access = SL_ROCE_REMOTE_WRITE,
						  .expected_psn = r->plan.first_psn,
						  .receives = SL_ROCE_RECEIVES_UNLIMITED};
	memcpy(r->responder.peer, r->plan.source.ip, 16);
	memcpy(r->responder.local, r->plan.dest.ip, 16);
	assert_int_equal(sl_roce_responder_init(&r->responder), 0);
}

static struct sl_roce_path path_of(const struct sl_plan *plan)
{
	struct sl_roce_path path = {.source_port = plan->source.port,
				    .dest_port = plan->dest.port,
				    .dont_fragment = true};

	memcpy(path.source, plan->source.ip, 16);
	memcpy(path.dest, plan->dest.ip, 16);
	return path;
}

static void receive(struct receiver *r, const struct sl_sender_packet *p)
{
	struct sl_roce_path path = path_of(&r->plan);
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	uint8_t wire[5000];
	size_t at = p->header_bytes;

	memcpy(wire, p->header, p->header_bytes);
	for (uint32_t i = 0; i < p->pieces; at += p->piece[i++].bytes)
		memcpy(wire + at, p->piece[i].data, p->piece[i].bytes);
	memcpy(wire + at, p->trailer, p->trailer_bytes);
	at += p->trailer_bytes;
	assert_int_equal(at, p->bytes);
	assert_int_equal(p->transfer, r->plan.transfer);
	assert_true(sl_roce_icrc_check(&path, wire, at, NULL));
	assert_int_equal(sl_roce_parse(wire, at, &packet), 0);
	assert_int_equal(
		sl_roce_responder_receive(&r->responder, &path, &packet, find_key, r, &action),
		SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_MEMORY);
	memcpy(r->memory + (action.va - BASE), packet.payload, action.bytes);
	for (uint32_t i = 0; i < action.bytes; i++)
		r->times[action.va - BASE + i]++;
	r->packets++;
	if (action.complete) {
		r->events++;
		r->imm = action.imm;
	}
}

/* A credit as the receiver would send it. */
static bool grant(struct sl_sender *sender, const struct receiver *r, uint64_t position,
		  uint32_t rkey)
{
	struct sl_roce_path path = path_of(&r->plan);
	struct sl_roce_message message = {.transport = SL_ROCE_UC,
					  .kind = SL_ROCE_KIND_WRITE,
					  .pkey = SL_ROCE_PKEY_DEFAULT,
					  .pmtu = 256,
					  .qpn = r->plan.credit_qpn,
					  .psn = 5,
					  .rkey = rkey,
					  .va = r->plan.credit_va,
					  .bytes = 8};
	struct sl_roce_requester cursor;
	struct sl_roce_fragment fragment;
	struct sl_roce_piece piece = {&position, 8};
	uint8_t wire[100];

	memcpy(path.source, r->plan.dest.ip, 16);
	memcpy(path.dest, r->plan.source.ip, 16);
	path.ip_id = 4711; /* whatever its host counts */
	assert_int_equal(sl_roce_requester_begin(&cursor, &message), 0);
	assert_true(sl_roce_requester_next(&cursor, wire, &fragment));
	memcpy(wire + fragment.header_bytes, &position, 8);
	sl_roce_seal(&path, wire, fragment.header_bytes, &piece, 1, NULL,
		     wire + fragment.header_bytes + 8);
	path.ip_id = 0;
	return sl_sender_answer(sender, &path, wire, fragment.header_bytes + 8u + 4);
}

static uint8_t image[8][FRAME];

static int setup(void **state)
{
	for (uint32_t f = 0; f < 8; f++)
		for (uint32_t i = 0; i < FRAME; i++)
			image[f][i] = (uint8_t)(f * 31 + i * 7 + i / 256);
	return 0;
}

static const struct sl_frame_stamp stamp = {
	.number = 1000, .timestamp = 5, .emit_ns = 6, .items = 1};

/* The block of `sequence`, byte by byte. */
static void check_block(const struct receiver *r, const struct sl_transfer *t, uint64_t sequence,
			const uint32_t *frames)
{
	const struct sl_rectangle *re = &t->rectangle;
	uint64_t start = sequence % SLOTS * SLOT + 128, at = start;
	uint64_t pitch = r->plan.line_pitch ? r->plan.line_pitch : re->line_bytes;
	struct sl_record record;
	uint32_t crc = 0;

	for (uint32_t f = 0; f < t->stack && t->part & SL_PART_PIXELS; f++)
		for (uint32_t y = 0; y < re->lines; y++)
			for (uint32_t x = 0; x < re->line_bytes; x++) {
				at = start + (f * re->lines + y) * pitch + x;
				assert_int_equal(r->memory[at],
						 image[frames[f]][re->first + y * re->pitch + x]);
				assert_int_equal(r->times[at], 1);
			}
	if (!(t->part & SL_PART_RECORD))
		return;
	at = r->plan.line_pitch		? start + r->plan.record_at
	     : t->part & SL_PART_PIXELS ? at + 1
					: start;
	memcpy(&record, r->memory + at, sizeof(record));
	assert_true(sl_record_valid(&record));
	assert_int_equal(record.sequence, sequence);
	assert_int_equal(record.items, t->stack);
	assert_int_equal(record.bytes, sl_transfer_pixel_bytes(t));
	assert_int_equal(record.packets, r->plan.packets);
	assert_int_equal(record.module, 3);
	assert_true(record.flags & SL_RECORD_CRC);
	for (uint32_t y = 0; y < re->lines * t->stack && t->part & SL_PART_PIXELS; y++)
		crc = sl_crc32c(crc, r->memory + start + y * pitch, re->line_bytes);
	assert_int_equal(record.crc32c, crc);
}

static uint64_t bytes_written(const struct receiver *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(r->times); i++)
		n += r->times[i];
	return n;
}

static struct receiver receiver, other;
static struct sl_sender sender;
static struct sl_sender_packet packet;

static void whole_run(const struct sl_transfer *t, uint16_t message, uint16_t pmtu, uint64_t pitch)
{
	uint32_t frames[SL_SENDER_STACK], n = 0;
	uint64_t sequence = 0;

	plan_for(&receiver, t, message, pmtu, pitch, 1);
	assert_int_equal(sl_sender_init(&sender, t, &receiver.plan, NULL, NULL), 0);
	assert_true(grant(&sender, &receiver, UINT64_MAX, receiver.plan.credit_rkey));
	for (uint32_t f = 0; f < 8; f++) {
		struct sl_frame_stamp s = stamp;

		s.number = f;
		if (sl_sender_frame(&sender, f, image[f], &s) != 1)
			continue;
		frames[n++] = f;
		while (sl_sender_next(&sender, &packet))
			receive(&receiver, &packet);
		if (n < t->stack)
			continue;
		check_block(&receiver, t, sequence, frames);
		assert_int_equal(receiver.imm, sequence);
		assert_int_equal(receiver.events, ++sequence);
		assert_false(sl_sender_busy(&sender));
		n = 0;
	}
	assert_int_equal(sequence, sl_transfer_sequences(t, 8));
	assert_int_equal(receiver.packets, sequence * receiver.plan.packets);
	assert_int_equal(bytes_written(&receiver), sequence * receiver.plan.block_bytes);
}

/* Four blocks at most, so that no slot is used twice. */
static void every_kind_of_transfer_arrives(void **state)
{
	static const uint16_t messages[] = {SL_MESSAGE_PACKET, SL_MESSAGE_MODULE, SL_MESSAGE_LINE};
	static const uint32_t parts[] = {SL_PART_PIXELS | SL_PART_RECORD, SL_PART_PIXELS,
					 SL_PART_RECORD};

	for (uint32_t i = 0; i < 3 * 3 * 2 * 2 * 2; i++) {
		struct sl_transfer t = {.every = 2, .phase = i % 2, .part = parts[i / 3 % 3]};
		uint16_t message = messages[i % 3];
		uint64_t pitch = i / 9 % 2 ? 128 : 0;
		bool roi = i / 18 % 2;

		t.stack = i / 36 % 2 ? 2 : 1;
		t.rectangle = roi ? sl_rectangle_of(5, 7, 9, 30, COLUMNS, 2)
				  : sl_rectangle_of(0, 0, ROWS, COLUMNS, COLUMNS, 2);
		if ((pitch && message == SL_MESSAGE_MODULE) ||
		    (t.part == SL_PART_RECORD && (pitch || message == SL_MESSAGE_LINE)))
			continue;
		whole_run(&t, message, roi ? 256 : 1024, pitch);
	}
}

static const struct sl_transfer plain = {
	.every = 1,
	.stack = 1,
	.part = SL_PART_PIXELS | SL_PART_RECORD,
	.rectangle = {.lines = ROWS, .line_bytes = COLUMNS * 2, .pitch = COLUMNS * 2},
};

static void nothing_leaves_without_credit(void **state)
{
	const uint64_t block = FRAME + SL_RECORD_BYTES;
	uint32_t sent = 0;

	plan_for(&receiver, &plain, SL_MESSAGE_MODULE, 256, 0, 1);
	assert_int_equal(sl_sender_init(&sender, &plain, &receiver.plan, NULL, NULL), 0);
	assert_int_equal(sl_sender_frame(&sender, 0, image[0], &stamp), 1);
	assert_false(sl_sender_next(&sender, &packet));
	for (uint64_t granted = 1; granted <= block; granted++) {
		assert_true(grant(&sender, &receiver, granted, receiver.plan.credit_rkey));
		while (sl_sender_next(&sender, &packet)) {
			receive(&receiver, &packet);
			sent++;
		}
		assert_int_equal(sent, granted == block ? receiver.plan.packets : granted / 256);
		assert_true(sender.sent <= granted);
	}
	assert_int_equal(receiver.events, 1);
	check_block(&receiver, &plain, 0, (uint32_t[]){0});
}

static void a_credit_of_somebody_else_is_none(void **state)
{
	plan_for(&receiver, &plain, SL_MESSAGE_PACKET, 256, 0, 1);
	plan_for(&other, &plain, SL_MESSAGE_PACKET, 256, 0, 2);
	assert_int_equal(sl_sender_init(&sender, &plain, &receiver.plan, NULL, NULL), 0);
	assert_false(grant(&sender, &receiver, 5000, receiver.plan.credit_rkey ^ 1));
	assert_false(grant(&sender, &other, 5000, other.plan.credit_rkey));
	assert_int_equal(sender.granted, 0);
	assert_true(grant(&sender, &receiver, 5000, receiver.plan.credit_rkey));
	assert_true(grant(&sender, &receiver, 4000, receiver.plan.credit_rkey)); /* late */
	assert_int_equal(sender.granted, 5000);
}

static void without_a_credit_word_it_is_open_loop(void **state)
{
	plan_for(&receiver, &plain, SL_MESSAGE_PACKET, 256, 0, 1);
	receiver.plan.credit_va = 0;
	assert_int_equal(sl_sender_init(&sender, &plain, &receiver.plan, NULL, NULL), 0);
	assert_int_equal(sl_sender_frame(&sender, 0, image[0], &stamp), 1);
	while (sl_sender_next(&sender, &packet))
		receive(&receiver, &packet);
	assert_int_equal(receiver.packets, receiver.plan.packets);
}

/* A frame that comes too soon is left out, with its sequence: the next one has its own PSNs. */
static void a_frame_that_finds_it_busy_leaves_a_hole(void **state)
{
	plan_for(&receiver, &plain, SL_MESSAGE_PACKET, 1024, 0, 1);
	assert_int_equal(sl_sender_init(&sender, &plain, &receiver.plan, NULL, NULL), 0);
	assert_int_equal(sl_sender_frame(&sender, 0, image[0], &stamp), 1);
	assert_int_equal(sl_sender_frame(&sender, 1, image[1], &stamp), SL_ROCE_EFULL);
	assert_true(grant(&sender, &receiver, UINT64_MAX, receiver.plan.credit_rkey));
	while (sl_sender_next(&sender, &packet))
		receive(&receiver, &packet);
	assert_int_equal(sl_sender_frame(&sender, 2, image[2], &stamp), 1);
	assert_true(sl_sender_next(&sender, &packet));
	assert_int_equal(sender.write.psn, (0xfffffa + 2 * receiver.plan.packets) & 0xffffff);
	do
		receive(&receiver, &packet);
	while (sl_sender_next(&sender, &packet));
	check_block(&receiver, &plain, 0, (uint32_t[]){0});
	check_block(&receiver, &plain, 2, (uint32_t[]){2});
	assert_int_equal(bytes_written(&receiver), 2 * receiver.plan.block_bytes);
}

static void a_stack_that_misses_a_frame_is_not_sent(void **state)
{
	struct sl_transfer t = plain;

	t.stack = 3;
	plan_for(&receiver, &t, SL_MESSAGE_PACKET, 1024, 0, 1);
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), 0);
	assert_true(grant(&sender, &receiver, UINT64_MAX, receiver.plan.credit_rkey));
	assert_int_equal(sl_sender_frame(&sender, 0, image[0], &stamp), 1);
	assert_int_equal(sl_sender_frame(&sender, 2, image[2], &stamp), 0); /* 1 never came */
	assert_false(sl_sender_next(&sender, &packet));
	for (uint32_t f = 3; f < 6; f++)
		assert_int_equal(sl_sender_frame(&sender, f, image[f], &stamp), 1);
	while (sl_sender_next(&sender, &packet))
		receive(&receiver, &packet);
	check_block(&receiver, &t, 1, (uint32_t[]){3, 4, 5});
	assert_int_equal(receiver.events, 1);
}

/* The full image to one receiver, every second ROI to another, of which one gives no credit. */
static void one_slow_receiver_holds_up_nobody_else(void **state)
{
	static struct sl_frontend frontend;
	struct sl_transfer roi = plain;

	roi.every = 2;
	roi.phase = 1;
	roi.rectangle = sl_rectangle_of(2, 3, 8, 16, COLUMNS, 2);
	plan_for(&receiver, &plain, SL_MESSAGE_PACKET, 256, 0, 1);
	plan_for(&other, &roi, SL_MESSAGE_LINE, 256, 64, 2);
	memset(&frontend, 0, sizeof(frontend));
	frontend.senders = 2;
	assert_int_equal(sl_sender_init(&frontend.sender[0], &plain, &receiver.plan, NULL, NULL),
			 0);
	assert_int_equal(sl_sender_init(&frontend.sender[1], &roi, &other.plan, NULL, NULL), 0);
	assert_true(grant(&frontend.sender[0], &receiver, UINT64_MAX, receiver.plan.credit_rkey));
	for (uint32_t f = 0; f < 4; f++) {
		/* Frame 3 is one too many for the one that waits. */
		assert_int_equal(sl_frontend_frame(&frontend, f, image[f], &stamp), f == 3);
		while (sl_frontend_next(&frontend, &packet))
			receive(packet.transfer == 1 ? &receiver : &other, &packet);
		check_block(&receiver, &plain, f, &f);
	}
	assert_int_equal(other.packets, 0);
	assert_true(grant(&frontend.sender[1], &other, UINT64_MAX, other.plan.credit_rkey));
	while (sl_frontend_next(&frontend, &packet))
		receive(packet.transfer == 1 ? &receiver : &other, &packet);
	check_block(&other, &roi, 0, (uint32_t[]){1});
	assert_int_equal(bytes_written(&other), other.plan.block_bytes);
}

static void what_it_was_not_compiled_for_is_refused(void **state)
{
	struct sl_transfer t = plain;

	plan_for(&receiver, &t, SL_MESSAGE_PACKET, 4096, 0, 1);
	receiver.plan.service = SL_SERVICE_RC;
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), SL_ROCE_EINVAL);
	t.stack = SL_SENDER_STACK + 1;
	plan_for(&receiver, &t, SL_MESSAGE_PACKET, 4096, 0, 1);
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), SL_ROCE_EINVAL);
	t.stack = 1;
	t.rectangle = sl_rectangle_of(0, 0, ROWS, 10, COLUMNS, 2); /* 20 bytes a line */
	plan_for(&receiver, &t, SL_MESSAGE_PACKET, 4096, 0, 1);
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), SL_ROCE_EINVAL);
	plan_for(&receiver, &t, SL_MESSAGE_LINE, 4096, 0, 1); /* one piece in each */
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), 0);
	receiver.plan.packets++;
	assert_int_equal(sl_sender_init(&sender, &t, &receiver.plan, NULL, NULL), SL_ROCE_EINVAL);
}

static void the_small_crc_is_the_large_one(void **state)
{
	for (size_t n = 0; n < 300; n++)
		assert_int_equal(sl_crc32c_small(0x1234567 * (uint32_t)n, image[1], n),
				 sl_crc32c(0x1234567 * (uint32_t)n, image[1], n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_transfer_arrives),
		cmocka_unit_test(nothing_leaves_without_credit),
		cmocka_unit_test(a_credit_of_somebody_else_is_none),
		cmocka_unit_test(without_a_credit_word_it_is_open_loop),
		cmocka_unit_test(a_frame_that_finds_it_busy_leaves_a_hole),
		cmocka_unit_test(a_stack_that_misses_a_frame_is_not_sent),
		cmocka_unit_test(one_slow_receiver_holds_up_nobody_else),
		cmocka_unit_test(what_it_was_not_compiled_for_is_refused),
		cmocka_unit_test(the_small_crc_is_the_large_one),
	};

	return cmocka_run_group_tests_name("sender", tests, setup, NULL);
}
