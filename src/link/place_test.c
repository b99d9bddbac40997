/* place_test.c - each byte is written once, where the plan says, while its slot is open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bell.h"
#include "link/credit.h"
#include "link/place.h"

enum {
	SLOTS = 4,
	PIXELS = 1000,
	PMTU = 256,
	PACKETS = 5,
	LAST = PIXELS + SL_RECORD_BYTES - 4 * PMTU
};

struct fixture {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_link_counters counters;
	struct sl_placer placer;
	uint8_t data[PMTU];
};

static struct fixture fixture;

static int setup(void **state)
{
	struct fixture *f = &fixture;
	struct sl_plan plan = {
		.pmtu = PMTU,
		.packets = PACKETS,
		.slots = SLOTS,
		.first_psn = 0xfffff0, /* wraps within four frames */
		.base = 0x700000000,
		.block_bytes = PIXELS + SL_RECORD_BYTES,
	};

	memset(f, 0, sizeof(*f));
	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, 1, PIXELS), &f->region) ||
	    sl_ring_init(&f->ring, &f->region, &f->bell, SLOTS, 1, PIXELS))
		return -1;
	sl_region_poison(&f->region);
	plan.stride = f->ring.slot_stride;
	sl_ring_open(&f->ring, UINT64_MAX);
	*state = f;
	return sl_placer_init(&f->placer, &f->ring, &f->counters, &plan, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sl_placer_fini(&f->placer);
	sl_ring_fini(&f->ring);
	sl_region_close(&f->region);
	return 0;
}

static uint32_t bytes_of(uint32_t index)
{
	return index == PACKETS - 1 ? LAST : PMTU;
}

static void put(struct fixture *f, uint64_t sequence, uint32_t index)
{
	uint64_t offset = (uint64_t)index * PMTU;

	memset(f->data, (int)(sequence * 16 + index + 1), sizeof(f->data));
	sl_placer_put(&f->placer, sl_plan_psn(&f->placer.plan, sequence, offset),
		      sl_plan_address(&f->placer.plan, sequence, offset), f->data, bytes_of(index),
		      bytes_of(index), 1);
}

static int placed(struct fixture *f, uint64_t sequence, uint32_t index)
{
	const uint8_t *p = sl_ring_block(&f->ring, sequence, 0) + index * PMTU;

	for (uint32_t i = 0; i < bytes_of(index); i++)
		if (p[i] != (uint8_t)(sequence * 16 + index + 1))
			return 0;
	return 1;
}

static int complete(struct fixture *f, uint64_t sequence)
{
	uint64_t ns;

	return sl_ring_event(&f->ring, sequence, 0, &ns);
}

static uint64_t dropped(struct fixture *f, enum sl_drop why)
{
	return f->counters.dropped[why];
}

static void give_back(struct fixture *f, uint64_t sequence)
{
	for (uint32_t m = 0; m < f->ring.modules; m++) {
		sl_ring_close(&f->ring, sequence, m);
		sl_ring_release(&f->ring, sequence, m);
	}
	sl_ring_open(&f->ring, UINT64_MAX);
}

static void any_order_completes_with_the_last_missing_packet(void **state)
{
	struct fixture *f = *state;
	const uint32_t order[] = {3, 0, 4, 1, 2};

	for (unsigned i = 0; i < PACKETS; i++) {
		assert_false(complete(f, 0));
		put(f, 0, order[i]);
		assert_true(placed(f, 0, order[i]));
		assert_int_equal(sl_ring_packets(&f->ring, 0, 0), i + 1);
	}
	assert_true(complete(f, 0));
	assert_int_equal(sl_link_packets(&f->counters), PACKETS);
	assert_int_equal(sl_link_bytes(&f->counters), PIXELS + SL_RECORD_BYTES);
}

static void frames_may_interleave(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < PACKETS; i++)
		for (uint64_t k = 0; k < SLOTS; k++)
			put(f, k, i);
	for (uint64_t k = 0; k < SLOTS; k++)
		assert_true(complete(f, k));
}

static void a_duplicate_does_not_complete_a_frame(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < PACKETS; i++)
		put(f, 0, 1);
	assert_int_equal(dropped(f, SL_DROP_DUPLICATE), PACKETS - 1);
	assert_int_equal(sl_ring_packets(&f->ring, 0, 0), 1);
	assert_false(complete(f, 0));
}

static void a_packet_of_the_lap_before_is_late_though_its_address_is_the_same(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < PACKETS - 1; i++)
		put(f, 0, i);
	give_back(f, 0); /* given up; the slot is now open for sequence 4 */
	put(f, SLOTS, 0);
	put(f, 0, PACKETS - 1); /* reordered, long after */
	assert_int_equal(dropped(f, SL_DROP_LATE), 1);
	assert_int_equal(sl_ring_packets(&f->ring, SLOTS, 0), 1);
	for (uint32_t i = 1; i < PACKETS; i++)
		put(f, SLOTS, i);
	assert_true(complete(f, SLOTS));
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_true(placed(f, SLOTS, i));
}

static void a_source_without_manners_is_turned_away(void **state)
{
	struct fixture *f = *state;

	put(f, SLOTS, 0);
	assert_int_equal(dropped(f, SL_DROP_AHEAD), 1);
	assert_true(sl_ring_was_turned_away(&f->ring, SLOTS, 0));
	assert_int_equal(sl_ring_reached(&f->ring, 0), SLOTS + 1);
	assert_int_equal(sl_ring_packets(&f->ring, 0, 0),
			 0); /* the slot's present tenant is not touched */
}

/* Neither the newest packet, which unwraps PSNs, nor what was reached moves for it: a lie costs its
 * own packet and no other. */
static void what_is_beyond_the_grant_moves_nothing(void **state)
{
	struct fixture *f = *state;

	f->placer.plan.credit_va = 0x1000;
	put(f, 0, 0);
	for (uint64_t k = SLOTS; k < 100 * SLOTS; k += 7) {
		put(f, k, 0);
		assert_int_equal(sl_ring_reached(&f->ring, 0), 1);
		assert_int_equal(sl_placer_expected(&f->placer), 1);
		assert_false(sl_ring_was_turned_away(&f->ring, k, 0));
	}
	assert_true(dropped(f, SL_DROP_AHEAD) > 0);
	for (uint32_t i = 1; i < PACKETS; i++)
		put(f, 0, i);
	assert_true(complete(f, 0));
}

static void nor_does_what_is_beyond_the_offer(void **state)
{
	struct fixture *f = *state;

	f->placer.end = 3; /* open loop */
	put(f, 0, 0);
	for (uint64_t k = 3; k < 4 * SLOTS; k++) {
		put(f, k, 0);
		assert_int_equal(sl_ring_reached(&f->ring, 0), 1);
		assert_int_equal(sl_placer_expected(&f->placer), 1);
	}
	assert_int_equal(dropped(f, SL_DROP_RANGE), 4 * SLOTS - 3);
	put(f, 2, 0);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 3);
}

static void address_and_length_must_be_the_packets_own(void **state)
{
	struct fixture *f = *state;
	const struct sl_plan *plan = &f->placer.plan;
	uint32_t psn = sl_plan_psn(plan, 0, PMTU);
	uint64_t va = sl_plan_address(plan, 0, PMTU);

	sl_placer_put(&f->placer, psn, va + 1, f->data, PMTU, PMTU, 1);
	sl_placer_put(&f->placer, psn, va - PMTU, f->data, PMTU, PMTU, 1);
	sl_placer_put(&f->placer, psn, va, f->data, PMTU - 1, PMTU - 1, 1);
	sl_placer_put(&f->placer, psn, va + plan->stride, f->data, PMTU, PMTU, 1);
	sl_placer_put(&f->placer, sl_plan_psn(plan, 0, 4 * PMTU),
		      sl_plan_address(plan, 0, 4 * PMTU), f->data, PMTU, PMTU,
		      1); /* the last one is shorter */
	sl_placer_put(&f->placer, (plan->first_psn - 1) & 0xffffff, va, f->data, PMTU, PMTU, 1);
	assert_int_equal(dropped(f, SL_DROP_RANGE), 6);
	assert_int_equal(sl_link_packets(&f->counters), 0);
	for (uint64_t i = 0; i < f->region.bytes; i++)
		assert_int_equal(((uint8_t *)f->region.base)[i], 0xa5);
}

static void a_message_must_end_in_its_block(void **state)
{
	struct fixture *f = *state;
	const struct sl_plan *plan = &f->placer.plan;
	uint64_t va = sl_plan_address(plan, 0, 0);

	assert_false(sl_placer_put(&f->placer, plan->first_psn, va, f->data, PMTU,
				   (uint32_t)plan->block_bytes + 1, 1));
	assert_int_equal(dropped(f, SL_DROP_RANGE), 1);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 0);
	assert_true(sl_placer_put(&f->placer, plan->first_psn, va, f->data, PMTU,
				  (uint32_t)plan->block_bytes, 1));
	assert_int_equal(sl_ring_reached(&f->ring, 0), 1);
}

static void psn_may_wrap_many_times(void **state)
{
	struct fixture *f = *state;
	uint64_t frames = 3 * (UINT64_C(1) << 24) / PACKETS;

	/* Near the wrap packet by packet, in between by the source's own count. */
	for (uint64_t k = 0; k < frames; k += frames / 50 + 1) {
		uint64_t opened = sl_ring_opened(&f->ring, 0);

		while (opened <= k) {
			give_back(f, opened - SLOTS);
			opened = sl_ring_opened(&f->ring, 0);
		}
		sl_placer_catch_up(&f->placer, sl_plan_position(&f->placer.plan, k, 0));
		for (uint32_t i = 0; i < PACKETS; i++)
			put(f, k, i);
		assert_true(complete(f, k));
	}
	assert_int_equal(f->counters.dropped[SL_DROP_RANGE], 0);
}

static void catching_up_makes_unseen_frames_due(void **state)
{
	struct fixture *f = *state;
	uint64_t block = PIXELS + SL_RECORD_BYTES;

	sl_placer_catch_up(&f->placer, 2 * block);
	assert_int_equal(f->placer.seen, 2 * block);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 2);
	sl_placer_catch_up(&f->placer, 2 * block + 10);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 3);
	sl_placer_catch_up(&f->placer, block); /* an older word changes nothing */
	assert_int_equal(f->placer.seen, 2 * block + 10);
}

static void credit_is_bounded_by_slots_and_by_window(void **state)
{
	struct fixture *f = *state;
	const struct sl_plan *plan = &f->placer.plan;
	struct sl_credit credit = {.window = 100};
	uint64_t grant = 0, slots = SLOTS * plan->block_bytes;

	assert_true(sl_credit_due(&credit, plan, &f->ring, 0, false, 1, &grant));
	assert_int_equal(grant, 100);
	assert_false(sl_credit_due(&credit, plan, &f->ring, 10, false, 2,
				   &grant)); /* not a quarter yet */
	assert_true(sl_credit_due(&credit, plan, &f->ring, 10, true, 3,
				  &grant)); /* but there is time, and what is left is no packet */
	assert_int_equal(grant, 110);
	assert_true(sl_credit_due(&credit, plan, &f->ring, slots - 20, false, 4, &grant));
	assert_int_equal(grant, slots);
	assert_false(sl_credit_due(&credit, plan, &f->ring, slots, true, 5, &grant));
	assert_true(sl_credit_due(&credit, plan, &f->ring, slots, true, 1000000000,
				  &grant)); /* said again */
	assert_int_equal(grant, slots);
}

/* Grants that nobody waits for would cost both ends more than the data. */
static void a_source_with_enough_credit_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct sl_plan plan = f->placer.plan;
	struct sl_credit credit = {.window = 16 * PMTU};
	uint64_t grant = 0;

	plan.message = SL_MESSAGE_PACKET;
	plan.block_bytes = 100 * PMTU;
	assert_true(sl_credit_due(&credit, &plan, &f->ring, 0, false, 1, &grant));
	assert_false(sl_credit_due(&credit, &plan, &f->ring, PMTU, true, 2, &grant));
	assert_true(sl_credit_due(&credit, &plan, &f->ring, 4 * PMTU, false, 3, &grant));
	/* Half is left; but a module goes in one piece, and does not fit. */
	plan.message = SL_MESSAGE_MODULE;
	plan.block_bytes = 17 * PMTU;
	assert_true(sl_credit_due(&credit, &plan, &f->ring, 5 * PMTU, true, 4, &grant));
	assert_int_equal(grant, 21 * PMTU);
}

/* The source has nothing of what was granted, and so nothing comes that could move `seen`. */
static void a_lost_grant_is_repeated_also_when_it_has_grown_a_little(void **state)
{
	struct fixture *f = *state;
	struct sl_plan plan = f->placer.plan;
	struct sl_credit credit = {.window = 16 * PMTU};
	uint64_t grant = 0;

	plan.message = SL_MESSAGE_PACKET;
	plan.block_bytes = PMTU;
	atomic_store(&f->ring.lane[0].opened, 9);
	assert_true(sl_credit_due(&credit, &plan, &f->ring, 0, true, 1, &grant));
	atomic_store(&f->ring.lane[0].opened, 10);
	assert_false(sl_credit_due(&credit, &plan, &f->ring, 0, true, 2, &grant));
	assert_true(sl_credit_due(&credit, &plan, &f->ring, 0, true, 1000000000, &grant));
	assert_int_equal(grant, 10 * PMTU);
}

/* ---- blocks of pixels alone ---- */

static int setup_bare(void **state)
{
	struct fixture *f;
	struct sl_plan plan;

	if (setup(state))
		return -1;
	f = *state;
	plan = f->placer.plan;
	plan.bare = 1;
	plan.darks.first = 2;
	plan.module = 0;
	plan.block_bytes = PIXELS;
	plan.packets = 4;
	sl_placer_fini(&f->placer);
	return sl_placer_init(&f->placer, &f->ring, &f->counters, &plan, 0);
}

static void put_bare(struct fixture *f, uint64_t sequence, uint32_t index, uint64_t now_ns)
{
	uint64_t offset = (uint64_t)index * PMTU;

	memset(f->data, (int)(sequence * 16 + index + 1), sizeof(f->data));
	sl_placer_put(&f->placer, sl_plan_psn(&f->placer.plan, sequence, offset),
		      sl_plan_address(&f->placer.plan, sequence, offset), f->data,
		      index == 3 ? PIXELS - 3 * PMTU : PMTU, index == 3 ? PIXELS - 3 * PMTU : PMTU,
		      now_ns);
}

static void the_record_of_a_bare_block_is_written_before_its_event(void **state)
{
	struct fixture *f = *state;

	for (uint64_t k = 0; k < SLOTS; k++) {
		struct sl_record record;

		for (uint32_t i = 0; i < 4; i++) {
			memcpy(&record, sl_ring_block(&f->ring, k, 0) + PIXELS, sizeof(record));
			assert_false(sl_record_valid(&record)); /* poison */
			assert_false(complete(f, k));
			put_bare(f, k, i, 1000 + k);
		}
		assert_true(complete(f, k));
		memcpy(&record, sl_ring_block(&f->ring, k, 0) + PIXELS, sizeof(record));
		assert_true(sl_record_valid(&record));
		assert_int_equal(record.sequence, k);
		assert_int_equal(record.frame, k);
		assert_int_equal(record.timestamp, 1000 + k);
		assert_int_equal(record.bytes, PIXELS);
		assert_int_equal(record.packets, 4);
		assert_int_equal(record.module, 0);
		assert_int_equal(record.items, 1);
		assert_int_equal(record.flags, SL_RECORD_BARE | (k < 2 ? SL_RECORD_DARK : 0));
		assert_int_equal(record.first_psn, (0xfffff0 + 4 * k) & 0xffffff);
		/* The pixels before it are those that came. */
		assert_int_equal(sl_ring_block(&f->ring, k, 0)[PIXELS - 1], (uint8_t)(k * 16 + 4));
	}
}

/* Packets of a bare block that are as long as if a record followed are not its packets. */
static void a_bare_block_ends_with_its_pixels(void **state)
{
	struct fixture *f = *state;
	uint64_t offset = UINT64_C(3) * PMTU;

	sl_placer_put(&f->placer, sl_plan_psn(&f->placer.plan, 0, offset),
		      sl_plan_address(&f->placer.plan, 0, offset), f->data, PMTU, PMTU, 1);
	assert_int_equal(dropped(f, SL_DROP_RANGE), 1);
}

enum { LINES = 10, LINE = 100, PITCH = 320, LINE_PMTU = 64 };

/* Lines of two packets each, 64 and 36 bytes, and a packet for the record. */
static int setup_lines(void **state)
{
	const struct sl_lines lines = {LINES, LINE, PITCH};
	struct fixture *f = &fixture;
	struct sl_plan plan = {
		.message = SL_MESSAGE_LINE,
		.pmtu = LINE_PMTU,
		.slots = SLOTS,
		.first_psn = 0xfffff0,
		.base = 0x700000000,
		.block_bytes = PIXELS + SL_RECORD_BYTES,
		.lines = LINES,
		.line_bytes = LINE,
		.line_pitch = PITCH,
		.record_at = LINES * PITCH,
	};

	memset(f, 0, sizeof(*f));
	plan.packets = sl_plan_packets(&plan);
	if (sl_region_open(SL_REGION_HOST, sl_ring_lines_bytes(SLOTS, 1, &lines), &f->region) ||
	    sl_ring_init_lines(&f->ring, &f->region, &f->bell, SLOTS, 1, &lines))
		return -1;
	sl_region_poison(&f->region);
	plan.stride = f->ring.slot_stride;
	sl_ring_open(&f->ring, UINT64_MAX);
	*state = f;
	return sl_placer_init(&f->placer, &f->ring, &f->counters, &plan, 0);
}

/* Where packet `index` goes and how long it is, by hand. */
static uint64_t line_place(uint32_t index, uint32_t *bytes)
{
	*bytes = index == 2 * LINES ? SL_RECORD_BYTES : index % 2 ? LINE - LINE_PMTU : LINE_PMTU;
	return index == 2 * LINES ? LINES * PITCH : index / 2 * PITCH + index % 2 * LINE_PMTU;
}

static void put_line(struct fixture *f, uint64_t sequence, uint32_t index, int64_t beside)
{
	const struct sl_plan *plan = &f->placer.plan;
	uint32_t bytes;
	uint64_t at = line_place(index, &bytes);

	memset(f->data, (int)(sequence * 32 + index + 1), sizeof(f->data));
	sl_placer_put(&f->placer,
		      (plan->first_psn + (uint32_t)sequence * plan->packets + index) & 0xffffff,
		      plan->base + sequence % SLOTS * plan->stride + at + (uint64_t)beside, f->data,
		      bytes, bytes, 1);
}

static void lines_go_to_their_pitch_and_nothing_between(void **state)
{
	struct fixture *f = *state;
	uint32_t bytes;

	assert_int_equal(f->placer.plan.packets, 2 * LINES + 1);
	for (uint64_t k = 0; k < 3 * SLOTS; k++) {
		uint8_t *block = sl_ring_block(&f->ring, k, 0);
		uint8_t expected[LINES * PITCH + SL_RECORD_BYTES];

		memset(block, 0xa5, sizeof(expected));
		memset(expected, 0xa5, sizeof(expected));
		for (uint32_t i = 0; i < 2 * LINES + 1; i++) {
			uint32_t index = (i * 4 + 3) % (2 * LINES + 1); /* in any order */
			uint64_t at = line_place(index, &bytes);

			assert_false(complete(f, k));
			put_line(f, k, index, 0);
			memset(expected + at, (int)(k * 32 + index + 1), bytes);
		}
		assert_true(complete(f, k));
		assert_memory_equal(block, expected, sizeof(expected));
		give_back(f, k);
	}
	assert_int_equal(dropped(f, SL_DROP_RANGE), 0);
}

static void a_packet_beside_its_line_is_out_of_range(void **state)
{
	struct fixture *f = *state;

	put_line(f, 0, 2, LINE - PITCH); /* where it would be without a pitch */
	put_line(f, 0, 3, 4);
	put_line(f, 0, 2 * LINES, PIXELS - LINES * PITCH);
	assert_int_equal(dropped(f, SL_DROP_RANGE), 3);
	put_line(f, 0, 2, 0);
	put_line(f, 0, 2, 0);
	assert_int_equal(dropped(f, SL_DROP_DUPLICATE), 1);
}

static void predictions_follow_the_lines(void **state)
{
	struct fixture *f = *state;
	struct sl_place place;
	uint32_t bytes;

	for (uint64_t packet = 0; packet < 2 * (2 * LINES + 1); packet++) {
		uint32_t index = (uint32_t)(packet % (2 * LINES + 1));
		uint64_t k = packet / (2 * LINES + 1), at = line_place(index, &bytes);

		sl_placer_predict(&f->placer, packet, &place);
		assert_ptr_equal(place.to, sl_ring_block(&f->ring, k, 0) + at);
		assert_int_equal(place.bytes, bytes);
		assert_int_equal(place.psn, (0xfffff0 + packet) & 0xffffff);
		assert_int_equal(place.first, index % 2 == 0);
		assert_int_equal(place.last, index == 2 * LINES);
	}
}

/* The source says it sent up to the middle of a frame: what comes next is found by its PSN. */
static void catching_up_counts_packets_of_lines(void **state)
{
	struct fixture *f = *state;

	sl_placer_catch_up(&f->placer, PIXELS + SL_RECORD_BYTES + 3 * LINE + LINE_PMTU);
	assert_int_equal(f->placer.last_packet, 2 * LINES + 1 + 3 * 2 + 1 - 1);
	sl_placer_catch_up(&f->placer, 2 * (PIXELS + SL_RECORD_BYTES));
	assert_int_equal(f->placer.last_packet, 2 * (2 * LINES + 1) - 1);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 2);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(any_order_completes_with_the_last_missing_packet),
		CASE(frames_may_interleave),
		CASE(a_duplicate_does_not_complete_a_frame),
		CASE(a_packet_of_the_lap_before_is_late_though_its_address_is_the_same),
		CASE(a_source_without_manners_is_turned_away),
		CASE(what_is_beyond_the_grant_moves_nothing),
		CASE(nor_does_what_is_beyond_the_offer),
		CASE(address_and_length_must_be_the_packets_own),
		CASE(a_message_must_end_in_its_block),
		CASE(psn_may_wrap_many_times),
		CASE(catching_up_makes_unseen_frames_due),
		CASE(credit_is_bounded_by_slots_and_by_window),
		CASE(a_source_with_enough_credit_is_left_alone),
		CASE(a_lost_grant_is_repeated_also_when_it_has_grown_a_little),
#define BARE(f) cmocka_unit_test_setup_teardown(f, setup_bare, teardown)
		BARE(the_record_of_a_bare_block_is_written_before_its_event),
		BARE(a_bare_block_ends_with_its_pixels),
#define LAID(f) cmocka_unit_test_setup_teardown(f, setup_lines, teardown)
		LAID(lines_go_to_their_pitch_and_nothing_between),
		LAID(a_packet_beside_its_line_is_out_of_range),
		LAID(predictions_follow_the_lines),
		LAID(catching_up_counts_packets_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
