/* descriptor_test.c - the writes of a block bring every byte of its source to its place, once, and
 * are numbered as the plan says: every message plan, pitch and rectangle, against an oracle that
 * knows nothing of lines and packets but goes byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/descriptor.h"
#include "frontend/transfer.h"

enum { STACK_MAX = 3, SLOTS = 5, FRAME_MAX = 1 << 18, SLOT_MAX = 1 << 20 };

#define BASE UINT64_C(0x7f0000000000)

struct block {
	struct sl_transfer transfer;
	struct sl_plan plan;
	struct sl_from source;
	struct sl_record record;
	uint8_t *memory[STACK_MAX];
	const void *frame[STACK_MAX];
	struct sl_write *write;
	uint32_t writes;
	uint64_t sequence;
};

static uint8_t pixel(uint32_t frame, uint64_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 3 + frame * 101);
}

/* message, pmtu, pitch: as in the plan. */
static void make(struct block *b, const struct sl_transfer *transfer, uint16_t message,
		 uint16_t pmtu, uint64_t pitch, uint64_t sequence)
{
	uint64_t bytes = transfer->part & SL_PART_PIXELS ? sl_rectangle_end(&transfer->rectangle)
							 : 1;
	struct sl_offer offer;

	memset(b, 0, sizeof(*b));
	b->transfer = *transfer;
	b->sequence = sequence;
	assert_true(sl_transfer_valid(transfer));
	sl_transfer_describe(transfer, &offer);
	b->plan = (struct sl_plan){
		.message = message,
		.operation = SL_OPERATION_WRITE,
		.pmtu = pmtu,
		.rkey = 0x1234,
		.first_psn = 0xfffffe, /* wraps within a few packets */
		.slots = SLOTS,
		.base = BASE,
		.stride = 3 << 20,
		.block_at = 1 << 20,
		.block_bytes = offer.block_bytes,
		.bare = offer.bare,
		.lines = offer.lines,
		.line_bytes = offer.line_bytes,
		.line_pitch = pitch,
		.record_at = pitch ? offer.lines * pitch + 128 : 0,
	};
	b->plan.packets = sl_plan_packets(&b->plan);
	assert_true(sl_transfer_fits(transfer, &b->plan));
	for (uint32_t i = 0; i < transfer->stack; i++) {
		b->memory[i] = malloc(bytes); /* exactly: the sanitizer sees a byte too far */
		for (uint64_t k = 0; k < bytes; k++)
			b->memory[i][k] = pixel(i, k);
		b->frame[i] = b->memory[i];
	}
	memset(&b->record, 0xa5, sizeof(b->record));
	b->record.sequence = sequence;
	sl_transfer_source(transfer, b->frame, b->frame, &b->record, &b->source);
	b->writes = sl_descriptor_count(&b->plan);
	b->write = calloc(b->writes, sizeof(*b->write));
	sl_descriptor_fill(&b->plan, sequence, &b->source, b->write);
}

static void drop(struct block *b)
{
	for (uint32_t i = 0; i < STACK_MAX; i++)
		free(b->memory[i]);
	free(b->write);
}

/* Memory of one slot as the receiver has it, and how often each byte of it was written. */
struct landing {
	uint8_t value[SLOT_MAX], times[SLOT_MAX];
};

static void land(struct landing *l, const struct block *b)
{
	uint64_t start = BASE + b->sequence % SLOTS * b->plan.stride;

	memset(l, 0, sizeof(*l));
	for (uint32_t i = 0; i < b->writes; i++) {
		const struct sl_write *w = &b->write[i];
		uint64_t at = w->va - start;

		assert_true(w->bytes && at + w->bytes <= b->plan.stride);
		at -= b->plan.block_at;
		assert_true(at + w->bytes <= SLOT_MAX);
		sl_write_copy(w, 0, w->bytes, l->value + at);
		for (uint32_t k = 0; k < w->bytes; k++)
			l->times[at + k]++;
	}
}

/* The oracle: byte by byte. */
static void expect(const struct block *b, struct landing *l)
{
	const struct sl_rectangle *r = &b->transfer.rectangle;
	uint64_t pitch = b->plan.line_pitch ? b->plan.line_pitch : r->line_bytes;
	uint64_t from = r->pitch ? r->pitch : r->line_bytes, end = 0;

	memset(l, 0, sizeof(*l));
	if (b->transfer.part & SL_PART_PIXELS)
		for (uint32_t f = 0; f < b->transfer.stack; f++)
			for (uint32_t y = 0; y < r->lines; y++)
				for (uint32_t x = 0; x < r->line_bytes; x++) {
					end = (f * r->lines + y) * pitch + x;
					l->value[end] = pixel(f, r->first + y * from + x);
					l->times[end]++;
				}
	if (!(b->transfer.part & SL_PART_RECORD))
		return;
	end = b->plan.line_pitch ? b->plan.record_at : end + !!(b->transfer.part & SL_PART_PIXELS);
	for (uint32_t x = 0; x < SL_RECORD_BYTES; x++) {
		l->value[end + x] = ((const uint8_t *)&b->record)[x];
		l->times[end + x]++;
	}
}

/* Every message is whole packets, numbered one after another; positions are bytes sent. */
static void check_numbers(const struct block *b)
{
	uint64_t packets = b->sequence * b->plan.packets;
	uint64_t position = b->sequence * b->plan.block_bytes;

	for (uint32_t i = 0; i < b->writes; i++) {
		const struct sl_write *w = &b->write[i];

		assert_int_equal(w->psn, (0xfffffe + packets) & 0xffffff);
		assert_int_equal(w->psn, sl_plan_psn(&b->plan, b->sequence,
						     position - b->sequence * b->plan.block_bytes));
		position += w->bytes;
		assert_int_equal(w->position, position);
		packets += (w->bytes + b->plan.pmtu - 1) / b->plan.pmtu;
		assert_int_equal(w->flags, i == b->writes - 1 ? SL_WRITE_IMM : 0);
		assert_int_equal(w->imm, (uint32_t)b->sequence);
		assert_int_equal(w->sequence, b->sequence);
		assert_int_equal(w->rkey, 0x1234);
		if (b->plan.message == SL_MESSAGE_PACKET)
			assert_true(w->bytes <= b->plan.pmtu);
	}
	assert_int_equal(packets, (b->sequence + 1) * b->plan.packets);
	assert_int_equal(position, (b->sequence + 1) * b->plan.block_bytes);
}

/* Packet by packet, the plan's own description is that of the writes. */
static void check_packets(const struct block *b)
{
	uint32_t index = 0;

	for (uint32_t i = 0; i < b->writes; i++) {
		const struct sl_write *w = &b->write[i];

		for (uint32_t at = 0; at < w->bytes; at += b->plan.pmtu, index++) {
			uint32_t left = w->bytes - at;
			struct sl_plan_packet p;

			sl_plan_packet(&b->plan, index, &p);
			assert_int_equal(p.bytes, left < b->plan.pmtu ? left : b->plan.pmtu);
			assert_int_equal(p.first, at == 0);
			assert_int_equal(sl_plan_address(&b->plan, b->sequence, 0) + p.place,
					 w->va + at);
			assert_int_equal(sl_plan_address(&b->plan, b->sequence, p.offset),
					 w->va + at);
			assert_int_equal(sl_plan_packet_of(&b->plan, p.offset), index);
			assert_int_equal(sl_plan_packet_of(&b->plan, p.offset + p.bytes - 1),
					 index);
			assert_int_equal(sl_plan_position(&b->plan, b->sequence, p.offset),
					 w->position - w->bytes + at);
		}
	}
	assert_int_equal(index, b->plan.packets);
}

static struct landing landed, wanted;

static void check(const struct sl_transfer *transfer, uint16_t message, uint16_t pmtu,
		  uint64_t pitch, uint64_t sequence)
{
	struct block b;

	make(&b, transfer, message, pmtu, pitch, sequence);
	land(&landed, &b);
	expect(&b, &wanted);
	assert_memory_equal(landed.times, wanted.times, sizeof(wanted.times));
	assert_memory_equal(landed.value, wanted.value, sizeof(wanted.value));
	check_numbers(&b);
	check_packets(&b);
	assert_int_equal(sl_plan_event_bytes(&b.plan), b.write[b.writes - 1].bytes);
	for (uint32_t i = 0; i < b.writes; i++)
		assert_true(b.write[i].bytes <= sl_plan_message_bytes(&b.plan));
	drop(&b);
}

static const uint32_t parts[] = {SL_PART_PIXELS | SL_PART_RECORD, SL_PART_PIXELS, SL_PART_RECORD};

/* Rectangles: lines, bytes of each, pitch at the source, first byte there. */
static const struct sl_rectangle rectangles[] = {
	{0, 0, 1, 1},	    {0, 0, 1, 5000},  {0, 0, 7, 64},	  {10, 100, 7, 64},
	{0, 256, 5, 256},   {3, 300, 9, 257}, {64, 4096, 3, 512}, {6, 2100, 4, 2048},
	{2, 1001, 6, 1000}, {1, 33, 40, 3},   {0, 0, 3, 4097},
};

static void every_message_plan_pitch_and_rectangle(void **state)
{
	static const uint16_t pmtus[] = {256, 1024, 4096};
	static const uint16_t messages[] = {SL_MESSAGE_PACKET, SL_MESSAGE_MODULE, SL_MESSAGE_LINE};
	const uint32_t n = sizeof(rectangles) / sizeof(*rectangles);

	for (uint32_t i = 0; i < n * 3 * 3 * 3 * 3 * 2; i++) {
		uint32_t k = i;
		struct sl_transfer t = {.every = 1};
		uint64_t pitch;
		uint16_t pmtu, message;

		t.rectangle = rectangles[k % n];
		k /= n;
		pmtu = pmtus[k % 3];
		k /= 3;
		message = messages[k % 3];
		k /= 3;
		t.part = parts[k % 3];
		k /= 3;
		t.stack = 1 + k % 3;
		k /= 3;
		pitch = k ? (t.rectangle.line_bytes + 63u) / 64 * 64 + 64 : 0;
		/* A pitch is not for messages of whole modules, lines not for records alone. */
		if ((pitch && message == SL_MESSAGE_MODULE) ||
		    (t.part == SL_PART_RECORD && (pitch || message == SL_MESSAGE_LINE)))
			continue;
		check(&t, message, pmtu, pitch, i % 2 ? 70001 : i % 7);
	}
}

/* Pixels and record next to each other in memory, as most sources have them. */
static const struct sl_transfer plain = {
	.every = 1,
	.stack = 1,
	.part = SL_PART_PIXELS | SL_PART_RECORD,
	.rectangle = {.lines = 10, .line_bytes = 50},
};

static void a_record_may_be_split_over_two_packets(void **state)
{
	struct block b;

	make(&b, &plain, SL_MESSAGE_PACKET, 256, 0, 0); /* 12 bytes still fit the second packet */
	assert_int_equal(b.writes, 3);
	assert_int_equal(b.write[1].part[0].bytes, 244);
	assert_ptr_equal(b.write[1].part[1].data, &b.record);
	assert_int_equal(b.write[1].part[1].bytes, 12);
	assert_ptr_equal(b.write[2].part[0].data, (uint8_t *)&b.record + 12);
	assert_int_equal(b.write[2].part[0].bytes, SL_RECORD_BYTES - 12);
	assert_int_equal(b.write[2].part[1].bytes, 0);
	drop(&b);
}

static void a_module_message_is_one_write_with_two_parts(void **state)
{
	struct block b;

	make(&b, &plain, SL_MESSAGE_MODULE, 1024, 0, 3);
	assert_int_equal(b.writes, 1);
	assert_null(b.write->from);
	assert_ptr_equal(b.write->part[0].data, b.memory[0]);
	assert_int_equal(b.write->part[0].bytes, 500);
	assert_ptr_equal(b.write->part[1].data, &b.record);
	assert_int_equal(b.write->part[1].bytes, SL_RECORD_BYTES);
	drop(&b);
}

/* What is in one or two pieces is in the write itself, whatever the source looks like. */
static void only_what_is_in_many_pieces_needs_its_source(void **state)
{
	struct sl_transfer roi = plain;
	struct block b;

	roi.rectangle.pitch = 80;
	make(&b, &roi, SL_MESSAGE_LINE, 256, 0, 0);
	for (uint32_t i = 0; i < b.writes; i++)
		assert_null(b.write[i].from);
	drop(&b);
	make(&b, &roi, SL_MESSAGE_PACKET, 256, 128, 0);
	for (uint32_t i = 0; i < b.writes; i++)
		assert_null(b.write[i].from);
	drop(&b);
	make(&b, &roi, SL_MESSAGE_PACKET, 256, 0, 0);
	assert_ptr_equal(b.write[0].from, &b.source); /* 5 lines and a bit */
	assert_ptr_equal(b.write[1].from, &b.source);
	assert_null(b.write[2].from); /* the end of the record */
	drop(&b);
}

/* Any part of any write, in pieces or copied. */
static void gathering_agrees_with_copying(void **state)
{
	struct sl_transfer roi = plain;
	struct sl_part part[32];
	uint8_t whole[700], some[700];
	struct block b;

	roi.rectangle.pitch = 61;
	roi.stack = 1;
	make(&b, &roi, SL_MESSAGE_MODULE, 256, 0, 0);
	sl_write_copy(b.write, 0, 564, whole);
	for (uint32_t from = 0; from < 564; from += 13)
		for (uint32_t bytes = 1; from + bytes <= 564; bytes += 17) {
			unsigned n = sl_write_gather(b.write, from, bytes, part, 32);
			uint32_t at = 0;

			assert_in_range(n, 1, 12);
			for (unsigned i = 0; i < n; at += part[i++].bytes)
				memcpy(some + at, part[i].data, part[i].bytes);
			assert_int_equal(at, bytes);
			assert_memory_equal(some, whole + from, bytes);
			assert_int_equal(sl_write_gather(b.write, from, bytes, part, n - 1), n);
		}
	drop(&b);
}

static void a_send_says_so(void **state)
{
	struct block b;

	make(&b, &plain, SL_MESSAGE_MODULE, 1024, 0, 0);
	b.plan.operation = SL_OPERATION_SEND;
	sl_descriptor_fill(&b.plan, 0, &b.source, b.write);
	assert_int_equal(b.write->flags, SL_WRITE_SEND | SL_WRITE_IMM);
	drop(&b);
}

static void plans_that_do_not_add_up_fit_nothing(void **state)
{
	struct block b;
	struct sl_plan p;

	make(&b, &plain, SL_MESSAGE_LINE, 256, 64, 0);
	assert_true(sl_transfer_fits(&plain, &b.plan));
#define SPOILT(change) (p = b.plan, change, !sl_transfer_fits(&plain, &p))
	assert_true(SPOILT(p.lines++));
	assert_true(SPOILT(p.lines = 0));
	assert_true(SPOILT(p.line_bytes = 0));
	assert_true(SPOILT(p.line_bytes++));
	assert_true(SPOILT(p.line_pitch = 49));
	assert_true(SPOILT(p.line_pitch = UINT64_MAX));
	assert_true(SPOILT(p.record_at = 9 * 64 + 49));
	assert_true(SPOILT(p.packets++));
	assert_true(SPOILT(p.block_bytes--));
	assert_true(SPOILT(p.message = SL_MESSAGE_MODULE));
	assert_true(SPOILT(p.operation = SL_OPERATION_SEND));
	assert_true(SPOILT(p.pmtu = 0));
	assert_true(SPOILT(p.bare = 1));
	drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_plan_pitch_and_rectangle),
		cmocka_unit_test(a_record_may_be_split_over_two_packets),
		cmocka_unit_test(a_module_message_is_one_write_with_two_parts),
		cmocka_unit_test(only_what_is_in_many_pieces_needs_its_source),
		cmocka_unit_test(gathering_agrees_with_copying),
		cmocka_unit_test(a_send_says_so),
		cmocka_unit_test(plans_that_do_not_add_up_fit_nothing),
	};

	return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
