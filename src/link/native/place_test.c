/* place_test.c - numbers of packets, the mask of a block, and the record that is written
 * for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bell.h"
#include "link/native/place.h"

enum { SLOTS = 4, PACKETS = 3, PAYLOAD = 16, PORTS = 2, PIXELS = PORTS * PACKETS * PAYLOAD };

struct rig {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_link_counters counters;
	_Atomic uint64_t first_plus;
	struct sl_native_placer placer;
	uint64_t time;
};

static const struct sl_native_numbers by_frame = {
	.bits = 64, .step = 1, .frame_step = 1, .frame_is_number = true};
/* Events: two of them to a packet. */
static const struct sl_native_numbers by_event = {
	.bits = 24, .step = PACKETS * 2, .frame_step = 1, .first_frame = 100};

static struct rig *rig_new(const struct sl_native_numbers *numbers, uint64_t first_plus)
{
	struct rig *rig = aligned_alloc(64, (sizeof(*rig) + 63) / 64 * 64);
	struct sl_native_shape shape = {
		.across = 1, .down = PORTS, .payload = PAYLOAD, .items = 1, .block_numbers = 1};
	struct sl_plan plan = {.packets = PORTS * PACKETS, .module = 0, .darks = {.first = 2}};
	struct sl_native_numbers n = *numbers;

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	if (n.bits < 64) {
		shape.block_numbers = PACKETS * 2;
		shape.packet_numbers = 2;
		shape.items = PACKETS * 2;
	}
	assert_null(sl_native_shape_fill(&shape, PORTS * PACKETS, PAYLOAD, 0));
	assert_int_equal(sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, 1, PIXELS),
					&rig->region),
			 0);
	assert_int_equal(sl_ring_init(&rig->ring, &rig->region, &rig->bell, SLOTS, 1, PIXELS), 0);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig->first_plus = first_plus;
	n.first_plus = &rig->first_plus;
	assert_int_equal(
		sl_native_placer_init(&rig->placer, &rig->ring, &rig->counters, &plan, &shape, &n),
		0);
	return rig;
}

static void rig_free(struct rig *rig)
{
	sl_native_placer_fini(&rig->placer);
	sl_ring_fini(&rig->ring);
	sl_region_close(&rig->region);
	free(rig);
}

/* One packet, its payload a mark of what it is. */
static bool put(struct rig *rig, uint64_t number, uint32_t port, uint32_t packet)
{
	struct sl_native_where where = {
		.port = port, .timestamp = number * 1000 + 1, .cell = (uint16_t)(number % 16)};
	uint8_t payload[PAYLOAD];
	bool found;

	memset(payload, (int)(number * 16 + port * 8 + packet + 1), sizeof(payload));
	sl_ring_enter(&rig->ring, 0);
	found = sl_native_find(&rig->placer, number, packet, &where);
	if (found)
		sl_native_put(&rig->placer, &where, payload, ++rig->time);
	sl_native_reach(&rig->placer, true);
	sl_native_reach(&rig->placer, true);
	sl_ring_leave(&rig->ring, 0);
	return found;
}

static void put_frame(struct rig *rig, uint64_t number)
{
	for (uint32_t i = 0; i < PORTS * PACKETS; i++)
		put(rig, number, i / PACKETS, i % PACKETS);
}

static bool whole(const struct rig *rig, uint64_t sequence)
{
	uint64_t ns;

	return sl_ring_event(&rig->ring, sequence, 0, &ns);
}

static uint64_t dropped(const struct rig *rig, enum sl_drop why)
{
	return atomic_load(&rig->counters.dropped[why]);
}

static void record_of(const struct rig *rig, uint64_t sequence, struct sl_record *record)
{
	memcpy(record, sl_ring_record(&rig->ring, sequence, 0), sizeof(*record));
	assert_true(sl_record_valid(record));
}

static void release(struct rig *rig, uint64_t sequence)
{
	sl_ring_close(&rig->ring, sequence, 0);
	sl_ring_release(&rig->ring, sequence, 0);
	sl_ring_open(&rig->ring, UINT64_MAX);
}

static void a_block_is_whole_with_its_last_packet_in_any_order(void **state)
{
	static const uint32_t order[] = {4, 0, 5, 2, 1, 3};
	struct rig *rig = rig_new(&by_frame, 1 + 1);
	const uint8_t *block = sl_ring_block(&rig->ring, 0, 0);

	for (unsigned i = 0; i < 6; i++) {
		assert_false(whole(rig, 0));
		put(rig, 1, order[i] / PACKETS, order[i] % PACKETS);
		assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), i + 1);
	}
	assert_true(whole(rig, 0));
	for (unsigned i = 0; i < PIXELS; i++)
		assert_int_equal(block[i],
				 16 + i / (PACKETS * PAYLOAD) * 8 + i / PAYLOAD % PACKETS + 1);
	rig_free(rig);
}

static void the_record_says_what_the_headers_said(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 7);
	struct sl_record record;

	put_frame(rig, 7);
	put_frame(rig, 9);
	record_of(rig, 0, &record);
	assert_int_equal(record.sequence, 0);
	assert_int_equal(record.frame, 7);
	assert_int_equal(record.timestamp, 7001);
	assert_int_equal(record.cell, 7);
	assert_int_equal(record.bytes, PIXELS);
	assert_int_equal(record.items, 1);
	assert_int_equal(record.packets, PORTS * PACKETS);
	assert_int_equal(record.emit_ns, 1); /* when the first packet of it came */
	assert_int_equal(record.flags, SL_RECORD_BARE | SL_RECORD_DARK);
	record_of(rig, 2, &record);
	assert_int_equal(record.frame, 9);
	assert_int_equal(record.flags, SL_RECORD_BARE); /* two dark ones come first */
	rig_free(rig);
}

static void a_packet_is_taken_once(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);
	uint8_t *block = sl_ring_block(&rig->ring, 0, 0);

	put(rig, 1, 0, 0);
	block[0] = 99;
	put(rig, 1, 0, 0);
	assert_int_equal(dropped(rig, SL_DROP_DUPLICATE), 1);
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), 1);
	assert_int_equal(block[0], 99);
	rig_free(rig);
}

static void what_the_run_has_not_is_out_of_range(void **state)
{
	struct sl_native_numbers numbers = by_frame;
	struct rig *rig;

	numbers.frames = 3;
	rig = rig_new(&numbers, 1 + 5);
	assert_false(put(rig, 4, 0, 0));       /* before the first */
	assert_false(put(rig, 8, 0, 0));       /* after the last */
	assert_false(put(rig, 5, 0, PACKETS)); /* no such packet */
	assert_false(put(rig, 5, 0, UINT32_MAX));
	assert_int_equal(dropped(rig, SL_DROP_RANGE), 4);
	assert_int_equal(sl_ring_reached(&rig->ring, 0), 0);
	assert_true(put(rig, 7, 0, 0));
	rig_free(rig);
}

static void numbers_in_steps(void **state)
{
	struct sl_native_numbers numbers = by_frame;
	struct sl_record record;
	struct rig *rig;

	numbers.step = numbers.frame_step = 4; /* one receiver of four */
	rig = rig_new(&numbers, 1 + 3);
	put_frame(rig, 3);
	put_frame(rig, 7);
	assert_false(put(rig, 8, 0, 0)); /* another one's */
	assert_true(whole(rig, 0) && whole(rig, 1));
	record_of(rig, 1, &record);
	assert_int_equal(record.frame, 7);
	rig_free(rig);
}

static void a_jump_ahead_is_believed_when_it_is_said_twice(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);

	put_frame(rig, 1);
	assert_false(put(rig, 1000, 0, 0)); /* one stray packet changes nothing */
	assert_int_equal(sl_ring_reached(&rig->ring, 0), 1);
	put_frame(rig, 2);
	assert_true(whole(rig, 1));
	assert_false(put(rig, 500, 0, 0)); /* nor does another one, elsewhere */
	assert_false(put(rig, 2000, 0, 0));
	assert_true(put(rig, 2000, 0, 1));
	assert_int_equal(sl_ring_reached(&rig->ring, 0), 2000);
	assert_true(sl_ring_was_turned_away(&rig->ring, 1999, 0));
	assert_int_equal(dropped(rig, SL_DROP_AHEAD), 4);
	rig_free(rig);
}

static void nobody_is_believed_beyond_all_bounds(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);

	for (int i = 0; i < 3; i++) {
		assert_false(put(rig, 1 + SLOTS + SL_RING_AWAY, 0, 0));
		assert_false(put(rig, UINT64_C(1) << 62, 0, 0));
		assert_false(put(rig, UINT64_C(1) << 63, 0, 0)); /* that is far behind */
		assert_false(put(rig, UINT64_MAX, 0, 0));
	}
	assert_int_equal(dropped(rig, SL_DROP_RANGE), 12);
	put_frame(rig, 1);
	put_frame(rig, 2);
	assert_true(whole(rig, 0) && whole(rig, 1));
	for (uint64_t n = 0; n < 4; n++) /* as far apart as numbers can be */
		assert_false(put(rig, (UINT64_C(1) << 63) + n, 0, 0));
	assert_int_equal(dropped(rig, SL_DROP_RANGE), 16);
	rig_free(rig);
}

static void what_falls_back_is_late(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);

	for (uint64_t n = 1; n <= 6; n++) {
		put_frame(rig, n);
		assert_true(whole(rig, n - 1));
		release(rig, n - 1);
	}
	put_frame(rig, 1); /* the detector begins again */
	assert_int_equal(dropped(rig, SL_DROP_LATE), PORTS * PACKETS);
	put_frame(rig, 7);
	assert_true(whole(rig, 6));
	rig_free(rig);
}

static void a_ring_that_is_full_turns_away(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);

	for (uint64_t n = 1; n <= SLOTS + 1; n++)
		put_frame(rig, n);
	assert_int_equal(dropped(rig, SL_DROP_AHEAD), PORTS * PACKETS);
	assert_true(sl_ring_was_turned_away(&rig->ring, SLOTS, 0));
	assert_int_equal(sl_ring_reached(&rig->ring, 0), SLOTS + 1);
	rig_free(rig);
}

static void numbers_wrap(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + (UINT64_MAX - 1));
	struct sl_record record;

	put_frame(rig, UINT64_MAX - 1);
	put_frame(rig, UINT64_MAX);
	put_frame(rig, 0);
	assert_true(whole(rig, 0) && whole(rig, 1) && whole(rig, 2));
	record_of(rig, 2, &record);
	assert_int_equal(record.frame, 0);
	rig_free(rig);
}

/* 24 bits of events wrap every 1.7 s at 10 MHz: many times in a run. Here 8 bits do. */
static void event_numbers_wrap_again_and_again(void **state)
{
	struct sl_native_numbers numbers = by_event;
	struct sl_record record;
	struct rig *rig;
	uint64_t k = 0;

	numbers.bits = 8;
	rig = rig_new(&numbers, 1 + 10);
	for (; k < 1000; k++) {
		for (uint32_t i = 0; i < PORTS * PACKETS; i++)
			put(rig, (10 + k * 2 * PACKETS + i % PACKETS * 2) & 255, i / PACKETS, 77);
		assert_true(whole(rig, k));
		if (k < 999)
			release(rig, k);
	}
	record_of(rig, k - 1, &record);
	assert_int_equal(record.frame, 100 + k - 1);
	assert_int_equal(record.items, 2 * PACKETS);
	assert_false(put(rig, (10 + k * 2 * PACKETS + 1) & 255, 0, 0)); /* amid a packet */
	assert_int_equal(dropped(rig, SL_DROP_RANGE), 1);
	rig_free(rig);
}

static void the_first_that_comes_is_the_first(void **state)
{
	struct rig *rig = rig_new(&by_frame, 0);
	struct sl_record record;

	put_frame(rig, 4711);
	assert_true(whole(rig, 0));
	record_of(rig, 0, &record);
	assert_int_equal(record.frame, 4711);
	assert_false(put(rig, 4710, 0, 0));
	rig_free(rig);

	rig = rig_new(&by_frame, 0); /* a frame that is half over is not */
	assert_false(put(rig, 4711, 0, 1));
	put_frame(rig, 4712);
	assert_true(whole(rig, 0));
	rig_free(rig);
}

/* What is in one port's socket is not given up because another one's was read first. */
static void a_stream_is_as_far_as_all_its_ports(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);
	struct sl_native_where where = {.port = 1};

	put(rig, 1, 0, 0);
	for (uint64_t n = 1; n <= SLOTS; n++) {
		assert_true(sl_native_find(&rig->placer, n, 0, &where));
		sl_native_put(&rig->placer, &where, sl_ring_block(&rig->ring, 0, 0), 1);
	}
	sl_native_reach(&rig->placer, false);
	assert_int_equal(sl_ring_reached(&rig->ring, 0), 1);
	sl_native_reach(&rig->placer, false);
	assert_int_equal(sl_ring_reached(&rig->ring, 0), 1);
	sl_native_reach(&rig->placer, true); /* both were empty, after all that had come */
	assert_int_equal(sl_ring_reached(&rig->ring, 0), SLOTS);
	rig_free(rig);
}

static void predictions_stay_out_of_what_is_in_or_closed(void **state)
{
	struct rig *rig = rig_new(&by_frame, 1 + 1);
	struct sl_native_piece piece[SL_NATIVE_PIECES];
	struct sl_native_where where;
	uint8_t *block;

	assert_int_equal(sl_native_predict(&rig->placer, 1, 2, piece, &block), 1);
	assert_ptr_equal(block, sl_ring_block(&rig->ring, 0, 0));
	assert_int_equal(piece[0].at, 5 * PAYLOAD);
	put(rig, 1, 1, 2);
	assert_int_equal(sl_native_predict(&rig->placer, 1, 2, piece, &block), 0);
	assert_int_equal(sl_native_predict(&rig->placer, 0, SLOTS * PACKETS, piece, &block), 0);
	sl_ring_close(&rig->ring, 1, 0);
	assert_int_equal(sl_native_predict(&rig->placer, 0, PACKETS, piece, &block), 0);

	assert_true(sl_native_expected(&rig->placer, 3, 1, 2 * PACKETS + 1, &where));
	assert_int_equal(where.sequence, 2);
	assert_int_equal(where.packet, 1);
	assert_false(sl_native_expected(&rig->placer, 3, 2, 2 * PACKETS + 1, &where));
	assert_false(sl_native_expected(&rig->placer, 4, 1, 2 * PACKETS + 1, &where));
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_is_whole_with_its_last_packet_in_any_order),
		cmocka_unit_test(the_record_says_what_the_headers_said),
		cmocka_unit_test(a_packet_is_taken_once),
		cmocka_unit_test(what_the_run_has_not_is_out_of_range),
		cmocka_unit_test(numbers_in_steps),
		cmocka_unit_test(a_jump_ahead_is_believed_when_it_is_said_twice),
		cmocka_unit_test(nobody_is_believed_beyond_all_bounds),
		cmocka_unit_test(what_falls_back_is_late),
		cmocka_unit_test(a_ring_that_is_full_turns_away),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(event_numbers_wrap_again_and_again),
		cmocka_unit_test(the_first_that_comes_is_the_first),
		cmocka_unit_test(a_stream_is_as_far_as_all_its_ports),
		cmocka_unit_test(predictions_stay_out_of_what_is_in_or_closed),
	};

	return cmocka_run_group_tests_name("native place", tests, NULL, NULL);
}
