/* descriptor_test.c - the writes of a module-frame cover its block once, in order, and say where
 * the plan says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/descriptor.h"

static const uint64_t sizes[] = {1,    63,   192,  193,	 255,  256,  257,
				 1000, 4032, 4033, 4096, 8191, 65536};
static const uint16_t pmtus[] = {256, 512, 1024, 2048, 4096};

struct block {
	struct sl_plan plan;
	uint8_t *pixels;
	struct sl_record record;
	struct sl_write *write;
	uint32_t writes;
};

static void make(struct block *b, uint64_t pixel_bytes, uint16_t pmtu, uint16_t message,
		 uint64_t sequence)
{
	uint64_t bytes = pixel_bytes + SL_RECORD_BYTES;

	*b = (struct block){
		.plan = {.message = message,
			 .pmtu = pmtu,
			 .rkey = 0x1234,
			 .first_psn = 0xfffffe, /* wraps within a few packets */
			 .slots = 5,
			 .packets = (uint32_t)((bytes + pmtu - 1) / pmtu),
			 .base = UINT64_C(0x7f0000000000),
			 .stride = 3 << 20,
			 .block_at = 1 << 20,
			 .block_bytes = bytes},
	};
	b->pixels = malloc(pixel_bytes); /* exactly: a byte too far is seen by the sanitizer */
	for (uint64_t i = 0; i < pixel_bytes; i++)
		b->pixels[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(&b->record, 0xa5, sizeof(b->record));
	b->record.sequence = sequence;
	b->writes = sl_descriptor_count(&b->plan);
	b->write = calloc(b->writes, sizeof(*b->write));
	sl_descriptor_fill(&b->plan, sequence, b->pixels, &b->record, b->write);
}

static void drop(struct block *b)
{
	free(b->pixels);
	free(b->write);
}

/* Gather what the writes carry to where they go, and compare with pixels followed by record. */
static void check_cover(struct block *b, uint64_t pixel_bytes, uint64_t sequence)
{
	uint64_t bytes = pixel_bytes + SL_RECORD_BYTES, at = 0;
	uint64_t start = b->plan.base + sequence % 5 * b->plan.stride + b->plan.block_at;
	uint8_t *landed = calloc(1, bytes);

	for (uint32_t i = 0; i < b->writes; i++) {
		const struct sl_write *w = &b->write[i];

		assert_int_equal(w->va, start + at); /* gap-free and in order: each byte once */
		assert_int_equal(w->part[0].bytes + w->part[1].bytes, w->bytes);
		assert_true(at + w->bytes <= bytes);
		memcpy(landed + at, w->part[0].data, w->part[0].bytes);
		memcpy(landed + at + w->part[0].bytes, w->part[1].data, w->part[1].bytes);
		at += w->bytes;
	}
	assert_int_equal(at, bytes);
	assert_memory_equal(landed, b->pixels, pixel_bytes);
	assert_memory_equal(landed + pixel_bytes, &b->record, SL_RECORD_BYTES);
	free(landed);
}

static void packets_cover_the_block_exactly_once(void **state)
{
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
		for (size_t p = 0; p < sizeof(pmtus) / sizeof(*pmtus); p++) {
			struct block b;

			make(&b, sizes[s], pmtus[p], SL_MESSAGE_PACKET, 12);
			assert_int_equal(b.writes, b.plan.packets);
			check_cover(&b, sizes[s], 12);
			drop(&b);
		}
}

static void all_packets_but_the_last_are_full(void **state)
{
	struct block b;

	make(&b, 1000, 256, SL_MESSAGE_PACKET, 0);
	assert_int_equal(b.writes, 5);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(b.write[i].bytes, 256);
	assert_int_equal(b.write[4].bytes, 1064 - 4 * 256);
	drop(&b);
}

static void a_record_may_be_split_over_two_packets(void **state)
{
	struct block b;

	make(&b, 500, 256, SL_MESSAGE_PACKET, 0); /* 12 bytes of it still fit the second packet */
	assert_int_equal(b.writes, 3);
	assert_int_equal(b.write[1].part[0].bytes, 244);
	assert_ptr_equal(b.write[1].part[1].data, &b.record);
	assert_int_equal(b.write[1].part[1].bytes, 12);
	assert_int_equal(b.write[2].part[0].bytes, 0);
	assert_ptr_equal(b.write[2].part[1].data, (uint8_t *)&b.record + 12);
	assert_int_equal(b.write[2].part[1].bytes, SL_RECORD_BYTES - 12);
	drop(&b);
}

static void psn_and_position_follow_the_plan(void **state)
{
	const uint64_t sequence = 70000; /* so many packets that the PSN has wrapped */
	struct block b;

	make(&b, 5000, 512, SL_MESSAGE_PACKET, sequence);
	for (uint32_t i = 0; i < b.writes; i++) {
		uint64_t packet = sequence * b.plan.packets + i;
		uint64_t end = i + 1 < b.writes ? (i + 1) * 512u : b.plan.block_bytes;

		assert_int_equal(b.write[i].psn, (0xfffffe + packet) & 0xffffff);
		assert_int_equal(b.write[i].position, sequence * b.plan.block_bytes + end);
	}
	drop(&b);
}

static void one_frame_ends_where_the_next_begins(void **state)
{
	struct block a, b;

	make(&a, 5000, 512, SL_MESSAGE_PACKET, 8);
	make(&b, 5000, 512, SL_MESSAGE_PACKET, 9);
	assert_int_equal(b.write[0].psn, (a.write[a.writes - 1].psn + 1) & 0xffffff);
	assert_int_equal(b.write[0].position, a.write[a.writes - 1].position + 512);
	drop(&a);
	drop(&b);
}

static void only_the_last_write_carries_the_immediate(void **state)
{
	const uint64_t sequence = UINT64_C(0x300000007);
	struct block b;

	make(&b, 5000, 512, SL_MESSAGE_PACKET, sequence);
	for (uint32_t i = 0; i < b.writes; i++) {
		assert_int_equal(b.write[i].flags, i == b.writes - 1 ? SL_WRITE_IMM : 0);
		assert_int_equal(b.write[i].sequence, sequence);
		assert_int_equal(b.write[i].rkey, 0x1234);
	}
	assert_int_equal(b.write[b.writes - 1].imm, 7); /* the low 32 bits */
	drop(&b);
}

static void a_module_message_is_one_write_with_two_parts(void **state)
{
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		struct block b;

		make(&b, sizes[s], 1024, SL_MESSAGE_MODULE, 3);
		assert_int_equal(b.writes, 1);
		assert_int_equal(b.write->flags, SL_WRITE_IMM);
		assert_int_equal(b.write->bytes, sizes[s] + SL_RECORD_BYTES);
		assert_ptr_equal(b.write->part[0].data, b.pixels);
		assert_int_equal(b.write->part[0].bytes, sizes[s]);
		assert_ptr_equal(b.write->part[1].data, &b.record);
		assert_int_equal(b.write->part[1].bytes, SL_RECORD_BYTES);
		assert_int_equal(b.write->psn, (0xfffffe + 3 * b.plan.packets) & 0xffffff);
		assert_int_equal(b.write->position, 4 * b.plan.block_bytes);
		check_cover(&b, sizes[s], 3);
		drop(&b);
	}
}

static void a_block_of_one_packet_is_one_write(void **state)
{
	struct block b;

	make(&b, 192, 256, SL_MESSAGE_PACKET, 0);
	assert_int_equal(b.writes, 1);
	assert_int_equal(b.write->flags, SL_WRITE_IMM);
	drop(&b);
	make(&b, 193, 256, SL_MESSAGE_PACKET, 0);
	assert_int_equal(b.writes, 2);
	assert_int_equal(b.write[1].bytes, 1);
	drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_cover_the_block_exactly_once),
		cmocka_unit_test(all_packets_but_the_last_are_full),
		cmocka_unit_test(a_record_may_be_split_over_two_packets),
		cmocka_unit_test(psn_and_position_follow_the_plan),
		cmocka_unit_test(one_frame_ends_where_the_next_begins),
		cmocka_unit_test(only_the_last_write_carries_the_immediate),
		cmocka_unit_test(a_module_message_is_one_write_with_two_parts),
		cmocka_unit_test(a_block_of_one_packet_is_one_write),
	};

	return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
