/* assembler_test.c - frames come out in order, each once, whole or with the reason why not. Time is
 * a parameter, so everything but the last case is exact; that one runs a link thread against the
 * assembler, for ThreadSanitizer too. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "assemble/assembler.h"
#include "base/bell.h"
#include "base/crc.h"

enum {
	SLOTS = 8,
	MODULES = 2,
	ROWS = 25,
	COLUMNS = 10,
	PIXEL_BYTES = ROWS * COLUMNS * 2,
	PACKETS = 4,
	LATE = 3,
	TIMEOUT_NS = 1000,
	FIRST_FRAME = 5000,
};

struct fixture {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_assembler a;
	struct sl_view view[MODULES];
	struct sl_frame frame;
};

static struct fixture fixture;

static int setup(void **state)
{
	const struct sl_assembler_options options = {
		.late_frames = LATE,
		.late_timeout_ns = TIMEOUT_NS,
		.first_frame = FIRST_FRAME,
		.dtype = SL_U16,
		.rows = ROWS,
		.columns = COLUMNS,
	};
	struct fixture *f = &fixture;

	memset(f, 0, sizeof(*f));
	f->frame.view = f->view;
	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, MODULES, PIXEL_BYTES),
			   &f->region))
		return -1;
	sl_region_poison(&f->region);
	if (sl_ring_init(&f->ring, &f->region, &f->bell, SLOTS, MODULES, PIXEL_BYTES))
		return -1;
	sl_assembler_init(&f->a, &f->ring, &options);
	sl_ring_open(&f->ring, UINT64_MAX);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sl_ring_fini(&f->ring);
	sl_region_close(&f->region);
	return 0;
}

/* ---- what a link does ---- */

static uint8_t pixel_of(uint64_t k, uint32_t module, size_t i)
{
	return (uint8_t)(k * 31 + module * 7 + i * 3);
}

static struct sl_record record_of(uint64_t k, uint32_t module)
{
	return (struct sl_record){
		.sequence = k,
		.frame = 100 + k,
		.timestamp = 1000 * k,
		.emit_ns = 500 + 10 * k + module,
		.bytes = PIXEL_BYTES,
		.packets = PACKETS,
		.items = 1,
		.module = (uint16_t)module,
	};
}

static void put_pixels(struct fixture *f, uint64_t k, uint32_t module)
{
	uint8_t *block = sl_ring_block(&f->ring, k, module);

	for (size_t i = 0; i < PIXEL_BYTES; i++)
		block[i] = pixel_of(k, module, i);
}

static void put_record(struct fixture *f, uint64_t k, uint32_t module,
		       const struct sl_record *record)
{
	memcpy(sl_ring_block(&f->ring, k, module) + PIXEL_BYTES, record, sizeof(*record));
}

/* Packets of the module-frame came; what they held does not matter. */
static void some(struct fixture *f, uint64_t k, uint32_t module, uint32_t packets)
{
	sl_ring_reach(&f->ring, k, module);
	sl_ring_progress(&f->ring, k, module, packets);
}

static void raise_event(struct fixture *f, uint64_t k, uint32_t module)
{
	some(f, k, module, PACKETS);
	sl_ring_raise(&f->ring, k, module, 700 + 10 * k + module);
}

/* The module-frame arrives with this record. */
static void arrive_with(struct fixture *f, uint64_t k, uint32_t module,
			const struct sl_record *record)
{
	put_pixels(f, k, module);
	put_record(f, k, module, record);
	raise_event(f, k, module);
}

static void arrive(struct fixture *f, uint64_t k, uint32_t module)
{
	struct sl_record record = record_of(k, module);

	sl_record_seal(&record);
	arrive_with(f, k, module, &record);
}

static int next(struct fixture *f, uint64_t now_ns)
{
	return sl_assembler_next(&f->a, now_ns, &f->frame);
}

#define assert_decided(f, module, what, why)                       \
	do {                                                       \
		assert_int_equal((f)->view[module].outcome, what); \
		assert_int_equal((f)->view[module].cause, why);    \
	} while (0)

/* The next frame is there and is broken. */
static void expect_broken(struct fixture *f, uint64_t k)
{
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.sequence, k);
	assert_false(f->frame.flags & SL_FRAME_COMPLETE);
}

static void expect_complete(struct fixture *f, uint64_t k)
{
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.sequence, k);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
	for (uint32_t m = 0; m < MODULES; m++)
		assert_decided(f, m, SL_NO_OUTCOME, SL_CAUSE_NONE);
}

/* Both modules arrive for first..last, except that `module` misses sequence 0 altogether. */
static void miss_the_first(struct fixture *f, uint32_t module, uint64_t last)
{
	for (uint64_t k = 0; k <= last; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			if (k || m != module)
				arrive(f, k, m);
}

/* ---- whole frames ---- */

static void nothing_comes_of_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(next(f, 1), 0);
	assert_int_equal(f->a.next, 0);
}

static void complete_frames_come_in_order(void **state)
{
	struct fixture *f = *state;

	for (uint64_t k = 0; k < 3; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			arrive(f, k, m);
	for (uint64_t k = 0; k < 3; k++)
		expect_complete(f, k);
	assert_int_equal(next(f, 1), 0);
}

static void a_frame_waits_for_those_before_it(void **state)
{
	struct fixture *f = *state;

	arrive(f, 1, 0);
	arrive(f, 1, 1);
	assert_int_equal(next(f, 1), 0);
	arrive(f, 0, 1);
	assert_int_equal(next(f, 1), 0);
	arrive(f, 0, 0);
	expect_complete(f, 0);
	expect_complete(f, 1);
}

static void a_frame_waits_for_its_last_module(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 1);
	assert_int_equal(next(f, 1), 0);
	some(f, 0, 0, PACKETS); /* every packet is there, but nothing proves it yet */
	assert_int_equal(next(f, 1), 0);
	arrive(f, 0, 0);
	expect_complete(f, 0);
}

static void a_complete_frame_shows_its_modules(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	arrive(f, 0, 1);
	expect_complete(f, 0);
	assert_int_equal(f->frame.views, MODULES);
	for (uint32_t m = 0; m < MODULES; m++) {
		const struct sl_view *view = &f->view[m];

		assert_int_equal(view->module, m);
		assert_int_equal(view->packets_arrived, PACKETS);
		assert_int_equal(view->record.emit_ns, 500 + m);
		assert_ptr_equal(view->pixels.host, sl_ring_block(&f->ring, 0, m));
		assert_ptr_equal(view->pixels.region, &f->region);
		assert_int_equal(view->pixels.offset, sl_ring_block_at(&f->ring, 0, m));
		assert_string_equal(view->pixels.shape.name, "raw");
		assert_int_equal(view->pixels.shape.dtype, SL_U16);
		assert_int_equal(sl_shape_bytes(&view->pixels.shape), PIXEL_BYTES);
		for (size_t i = 0; i < PIXEL_BYTES; i++)
			assert_int_equal(((uint8_t *)view->pixels.host)[i], pixel_of(0, m, i));
	}
}

static void number_and_timestamp_are_the_records(void **state)
{
	struct fixture *f = *state;

	for (uint64_t k = 0; k < 2; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			arrive(f, k, m);
	expect_complete(f, 0);
	expect_complete(f, 1);
	assert_int_equal(f->frame.number, 101);
	assert_int_equal(f->frame.timestamp, 1000);
}

static void hops_are_earliest_emit_latest_event_and_now(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 1);
	arrive(f, 0, 0);
	assert_int_equal(next(f, 123456), 1);
	assert_int_equal(f->frame.hop_ns[SL_HOP_EMIT], 500);
	assert_int_equal(f->frame.hop_ns[SL_HOP_EVENT], 701);
	assert_int_equal(f->frame.hop_ns[SL_HOP_ASSEMBLED], 123456);
	assert_int_equal(f->frame.hop_ns[SL_HOP_PROCESSED], 0);
}

static void a_dark_record_makes_a_dark_frame(void **state)
{
	struct fixture *f = *state;

	for (uint32_t m = 0; m < MODULES; m++) {
		struct sl_record record = record_of(0, m);

		record.flags = SL_RECORD_DARK;
		sl_record_seal(&record);
		arrive_with(f, 0, m, &record);
		arrive(f, 1, m);
	}
	expect_complete(f, 0);
	assert_true(f->frame.flags & SL_FRAME_DARK);
	expect_complete(f, 1);
	assert_false(f->frame.flags & SL_FRAME_DARK);
}

/* ---- giving up ---- */

static void gives_up_exactly_when_the_module_is_late_frames_further_on(void **state)
{
	struct fixture *f = *state;

	miss_the_first(f, 1, LATE - 1);
	assert_int_equal(next(f, 1), 0);
	arrive(f, LATE, 0);
	assert_int_equal(next(f, 1), 0); /* the other module's queue does not count */
	some(f, LATE, 1, 1);		 /* the first packet is enough */
	expect_broken(f, 0);
	expect_complete(f, 1);
	expect_complete(f, 2);
	assert_int_equal(next(f, 1), 0);
}

static void every_missing_module_must_have_moved_on(void **state)
{
	struct fixture *f = *state;

	for (uint64_t k = 1; k <= LATE; k++)
		arrive(f, k, 0);
	assert_int_equal(next(f, 1), 0);
	for (uint64_t k = 1; k <= LATE; k++)
		arrive(f, k, 1);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect_complete(f, 1);
}

static void the_clock_gives_up_after_the_timeout_and_not_before(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	assert_int_equal(next(f, 50000), 0); /* due from here on */
	assert_int_equal(next(f, 50000 + TIMEOUT_NS), 0);
	assert_int_equal(next(f, 50000 + TIMEOUT_NS + 1), 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
}

static void a_packet_of_a_later_frame_starts_the_clock(void **state)
{
	struct fixture *f = *state;

	some(f, 2, 1, 1);
	assert_int_equal(next(f, 50000), 0);
	assert_int_equal(next(f, 50000 + TIMEOUT_NS + 1), 1);
	assert_int_equal(f->frame.sequence, 0);
}

static void the_clock_stands_while_nothing_is_due(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(next(f, 1), 0);
	assert_int_equal(next(f, UINT64_C(1000000000000)), 0);
	arrive(f, 0, 0);
	assert_int_equal(next(f, UINT64_C(2000000000000)), 0);
	assert_int_equal(next(f, UINT64_C(2000000000000) + TIMEOUT_NS), 0);
	assert_int_equal(next(f, UINT64_C(2000000000000) + TIMEOUT_NS + 1), 1);
	assert_int_equal(next(f, UINT64_C(9000000000000)), 0); /* nothing of 1 has come */
}

static void every_frame_has_its_own_time(void **state)
{
	struct fixture *f = *state;

	some(f, 1, 0, 1);
	assert_int_equal(next(f, 50000), 0);
	assert_int_equal(next(f, 51001), 1);
	assert_int_equal(next(f, 51001), 0); /* 1 is due too, but only now the head */
	assert_int_equal(next(f, 52001), 0);
	assert_int_equal(next(f, 52002), 1);
	assert_int_equal(f->frame.sequence, 1);
}

static void a_slot_that_is_not_open_cannot_be_given_up(void **state)
{
	struct fixture *f = *state;

	for (uint64_t k = 0; k < SLOTS; k++) {
		arrive(f, k, 0);
		arrive(f, k, 1);
		expect_complete(f, k);
	}
	sl_assembler_end(&f->a, 0, SLOTS + 1);
	sl_assembler_end(&f->a, 1, SLOTS + 1);
	assert_int_equal(next(f, UINT64_C(1) << 60), 0);
	sl_ring_release(&f->ring, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
	expect_broken(f, SLOTS);
	assert_int_equal(next(f, 1), -ENODATA);
}

static void an_event_of_the_lap_before_is_none(void **state)
{
	struct fixture *f = *state;

	for (uint32_t m = 0; m < MODULES; m++)
		arrive(f, 0, m);
	expect_complete(f, 0);
	sl_ring_release(&f->ring, 0);
	sl_ring_open(&f->ring, UINT64_MAX);
	f->a.next = SLOTS; /* same slot, next lap */
	assert_int_equal(next(f, 1), 0);
}

/* ---- outcomes and causes ---- */

static void some_packets_make_it_damaged_none_make_it_lost(void **state)
{
	struct fixture *f = *state;

	some(f, 0, 0, PACKETS - 1);
	for (uint64_t k = 1; k <= LATE; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			arrive(f, k, m);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
	assert_int_equal(f->view[0].packets_arrived, PACKETS - 1);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_int_equal(f->view[1].packets_arrived, 0);
}

static void a_module_that_was_turned_away_is_an_overrun(void **state)
{
	struct fixture *f = *state;

	sl_ring_turn_away(&f->ring, 0, 0); /* its first packets came before the slot opened, */
	some(f, 0, 0, 1);		   /* the last one after */
	sl_ring_turn_away(&f->ring, 0, 1); /* nothing was placed */
	sl_ring_reach(&f->ring, LATE, 0);
	sl_ring_reach(&f->ring, LATE, 1);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_OVERRUN, SL_CAUSE_NO_SLOT);
	assert_decided(f, 1, SL_OVERRUN, SL_CAUSE_NO_SLOT);
}

static void being_turned_away_in_another_lap_does_not_count(void **state)
{
	struct fixture *f = *state;

	sl_ring_turn_away(&f->ring, SLOTS, 0);
	sl_ring_reach(&f->ring, LATE, 0);
	sl_ring_reach(&f->ring, LATE, 1);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
}

static void a_whole_module_with_a_missing_partner_says_so(void **state)
{
	struct fixture *f = *state;

	miss_the_first(f, 0, LATE);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_int_equal(f->frame.number, 100); /* by the record that did come */
	assert_int_equal(f->frame.hop_ns[SL_HOP_EMIT], 501);
	assert_int_equal(f->frame.hop_ns[SL_HOP_EVENT], 701);
}

/* Module 0 comes with `record` as it is, module 1 as it should. */
static void expect_record_wrong(struct fixture *f, const struct sl_record *record,
				enum sl_cause cause)
{
	uint64_t k = f->a.next;

	arrive_with(f, k, 0, record);
	arrive(f, k, 1);
	expect_broken(f, k);
	assert_decided(f, 0, SL_INCOMPLETE, cause);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_int_equal(f->frame.number, 100 + k); /* the good record's word */
	assert_int_equal(f->frame.hop_ns[SL_HOP_EMIT], 501 + 10 * k);
}

static void a_record_that_contradicts_itself_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 0);

	sl_record_seal(&record);
	record.frame ^= 1;
	expect_record_wrong(f, &record, SL_CAUSE_RECORD);
}

static void a_record_of_another_sequence_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(SLOTS, 0);

	sl_record_seal(&record);
	expect_record_wrong(f, &record, SL_CAUSE_RECORD);
}

static void a_record_of_another_module_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 1);

	sl_record_seal(&record);
	expect_record_wrong(f, &record, SL_CAUSE_RECORD);
}

static void a_record_of_another_size_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 0);

	record.bytes = UINT32_MAX; /* a checksum over that would leave the ring */
	record.flags = SL_RECORD_CRC;
	sl_record_seal(&record);
	expect_record_wrong(f, &record, SL_CAUSE_RECORD);
}

static void pixels_that_do_not_match_their_checksum_are_damaged(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 0);

	put_pixels(f, 0, 0);
	record.flags = SL_RECORD_CRC;
	record.crc32c = sl_crc32c(0, sl_ring_block(&f->ring, 0, 0), PIXEL_BYTES) ^ 1;
	sl_record_seal(&record);
	expect_record_wrong(f, &record, SL_CAUSE_CHECKSUM);
}

/* Every module of sequence 0 with a checksum, and then one byte of module 1 changed, or none. */
static void arrive_with_checksums(struct fixture *f, int changed)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		struct sl_record record = record_of(0, m);

		put_pixels(f, 0, m);
		record.flags = SL_RECORD_CRC;
		record.crc32c = sl_crc32c(0, sl_ring_block(&f->ring, 0, m), PIXEL_BYTES);
		sl_record_seal(&record);
		arrive_with(f, 0, m, &record);
	}
	if (changed)
		sl_ring_block(&f->ring, 0, 1)[PIXEL_BYTES - 1] ^= 0x80;
}

static void pixels_that_match_their_checksum_are_whole(void **state)
{
	struct fixture *f = *state;

	f->a.options.require_crc = true;
	arrive_with_checksums(f, 0);
	expect_complete(f, 0);
}

static void one_wrong_byte_is_seen_by_the_checksum(void **state)
{
	struct fixture *f = *state;

	arrive_with_checksums(f, 1);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_CHECKSUM);
}

static void a_checksum_that_is_required_must_be_there(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0); /* without one, before it is required: good enough */
	arrive(f, 0, 1);
	expect_complete(f, 0);
	f->a.options.require_crc = true;
	arrive(f, 1, 0);
	arrive(f, 1, 1);
	expect_broken(f, 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_RECORD);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_RECORD);
}

static void a_frame_of_which_nothing_came_has_a_number(void **state)
{
	struct fixture *f = *state;

	miss_the_first(f, 0, 0);
	sl_ring_reach(&f->ring, LATE + 1, 0);
	sl_ring_reach(&f->ring, LATE + 1, 1);
	expect_broken(f, 0);
	assert_int_equal(f->frame.number, 100);
	expect_broken(f, 1);
	assert_int_equal(f->frame.number, FIRST_FRAME + 1);
	assert_int_equal(f->frame.timestamp, 0);
	assert_int_equal(f->frame.hop_ns[SL_HOP_EMIT], 0);
	assert_int_equal(f->frame.hop_ns[SL_HOP_EVENT], 0);
}

/* ---- slots ---- */

static void the_slot_of_a_broken_frame_opens_for_the_next_lap(void **state)
{
	struct fixture *f = *state;

	miss_the_first(f, 1, LATE);
	expect_broken(f, 0);
	assert_null(f->view[0].pixels.host);
	assert_null(f->view[1].pixels.host);
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 0), SL_PLACE_LATE);
}

static void the_slot_of_a_complete_frame_stays_closed(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	arrive(f, 0, 1);
	expect_complete(f, 0);
	assert_int_equal(sl_ring_may_place(&f->ring, 0), SL_PLACE_LATE);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 0);
	sl_ring_release(&f->ring, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
}

static void giving_up_waits_for_a_link_that_is_inside(void **state)
{
	struct fixture *f = *state;

	sl_ring_enter(&f->ring, 0);
	miss_the_first(f, 1, LATE);
	assert_int_equal(next(f, 1), 0);
	assert_int_equal(sl_ring_may_place(&f->ring, 0), SL_PLACE_LATE);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 0); /* not released yet */
	sl_ring_progress(&f->ring, 0, 1, 2); /* it had found the slot open, and goes on */
	assert_int_equal(next(f, 1), 0);
	sl_ring_leave(&f->ring, 0);
	sl_ring_enter(&f->ring, 0); /* a later section does not hold it up */
	expect_broken(f, 0);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
	assert_int_equal(f->view[1].packets_arrived, 2);
	sl_ring_leave(&f->ring, 0);
}

static void an_event_that_comes_while_giving_up_makes_it_whole_after_all(void **state)
{
	struct fixture *f = *state;

	sl_ring_enter(&f->ring, 0);
	miss_the_first(f, 1, LATE);
	assert_int_equal(next(f, 1), 0);
	arrive(f, 0, 1); /* the link had found the slot open */
	expect_complete(f, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 0);
	sl_ring_leave(&f->ring, 0);
	expect_complete(f, 1);
}

/* ---- the end ---- */

static void a_source_that_sends_nothing_ends_at_once(void **state)
{
	struct fixture *f = *state;

	sl_assembler_end(&f->a, 0, 0);
	assert_int_equal(next(f, 1), 0); /* module 1 may still come */
	sl_assembler_end(&f->a, 1, 0);
	assert_int_equal(next(f, 1), -ENODATA);
	assert_int_equal(next(f, 1), -ENODATA);
}

static void after_the_end_what_did_not_come_is_lost(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	arrive(f, 0, 1);
	some(f, 1, 1, 1);
	sl_assembler_end(&f->a, 0, 3);
	sl_assembler_end(&f->a, 1, 3);
	expect_complete(f, 0);
	expect_broken(f, 1);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
	expect_broken(f, 2);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_int_equal(next(f, 1), -ENODATA);
}

static void what_was_never_sent_gets_no_outcome(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	some(f, 0, 1, 2); /* under way when its source vanished */
	sl_assembler_end(&f->a, 0, 2);
	sl_assembler_end(&f->a, 1, 0);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_NO_OUTCOME, SL_CAUSE_NONE);
	assert_null(f->view[1].pixels.host);
	expect_broken(f, 1);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_NO_OUTCOME, SL_CAUSE_NONE);
	assert_int_equal(next(f, 1), -ENODATA);
}

static void a_module_that_ended_is_not_waited_for(void **state)
{
	struct fixture *f = *state;

	sl_assembler_end(&f->a, 1, 1);
	assert_int_equal(next(f, 1), 0); /* module 0 may still come */
	arrive(f, 0, 0);
	expect_broken(f, 0);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
}

/* ---- a link thread against the assembler ---- */

enum { FRAMES = 20000, PIECE = (PIXEL_BYTES + SL_RECORD_BYTES + PACKETS - 1) / PACKETS };

enum fate {
	WHOLE,	/* all packets in time */
	HURT,	/* some packets never come */
	GONE,	/* no packet comes */
	TARDY,	/* the last packet comes just when the frame is given up: either way is right */
	TURNED, /* came before its slot was open, and was turned away */
};

struct race {
	struct fixture *f;
	uint64_t held[MODULES]; /* 1 + the sequence whose last packet is held back; 0: none */
	uint8_t fate[FRAMES][MODULES];
	_Atomic int over;
};

static uint32_t random_of(uint64_t k, uint32_t module)
{
	uint64_t x = (k * MODULES + module + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

static enum fate fate_of(uint64_t k, uint32_t module)
{
	uint32_t x = random_of(k, module) % 20;

	return x < 1 ? GONE : x < 3 ? HURT : x < 6 ? TARDY : WHOLE;
}

/* Packet `i` of the block, if its slot is open. The link is inside. */
static enum sl_ring_place place(struct fixture *f, uint64_t k, uint32_t module, uint32_t i)
{
	uint8_t block[PIXEL_BYTES + SL_RECORD_BYTES];
	struct sl_record record = record_of(k, module);
	size_t at = (size_t)i * PIECE;
	size_t bytes = sizeof(block) - at < PIECE ? sizeof(block) - at : PIECE;
	enum sl_ring_place where = sl_ring_may_place(&f->ring, k);

	if (where == SL_PLACE_AHEAD)
		return where;
	sl_ring_reach(&f->ring, k, module);
	if (where == SL_PLACE_LATE)
		return where;
	for (size_t b = 0; b < PIXEL_BYTES; b++)
		block[b] = pixel_of(k, module, b);
	sl_record_seal(&record);
	memcpy(block + PIXEL_BYTES, &record, sizeof(record));
	memcpy(sl_ring_block(&f->ring, k, module) + at, block + at, bytes);
	sl_ring_progress(&f->ring, k, module, i + 1);
	return where;
}

/* The packet that was held back, within the section that moves the lane far enough to give it up,
 * or in one of its own: the race between giving up and finishing. */
static void release_held(struct race *race, uint64_t k, uint32_t module)
{
	uint64_t held = race->held[module] - 1;

	if (!race->held[module] || k < held + LATE)
		return;
	race->held[module] = 0;
	if (random_of(held, module) & 0x100) {
		sl_ring_leave(&race->f->ring, 0);
		sl_ring_enter(&race->f->ring, 0);
	}
	if (place(race->f, held, module, PACKETS - 1) == SL_PLACE_OK)
		sl_ring_raise(&race->f->ring, held, module, 1);
}

/* Send one module-frame; true once it is done with. */
static bool send_one(struct race *race, uint64_t k, uint32_t module)
{
	struct sl_ring *ring = &race->f->ring;
	enum fate fate = fate_of(k, module);
	uint32_t packets = fate == WHOLE ? PACKETS : fate == GONE ? 0 : PACKETS - 1;
	enum sl_ring_place where = SL_PLACE_OK;

	if (fate == TARDY && (race->held[module] || k + LATE >= FRAMES))
		fate = HURT;
	sl_ring_enter(ring, 0);
	for (uint32_t i = 0; i < packets && where != SL_PLACE_AHEAD; i++)
		where = place(race->f, k, module, i);
	/* Not in two laps running: the ring remembers the last one only. */
	if (where == SL_PLACE_AHEAD && random_of(k, module) % 64 == 0 && k / SLOTS % 2) {
		fate = TURNED;
		sl_ring_turn_away(ring, k, module);
		sl_ring_reach(ring, k, module);
		where = SL_PLACE_OK;
	}
	if (where != SL_PLACE_AHEAD) {
		if (fate == WHOLE)
			sl_ring_raise(ring, k, module, 1);
		if (fate == TARDY)
			race->held[module] = k + 1;
		race->fate[k][module] = (uint8_t)fate;
		release_held(race, k, module);
	}
	sl_ring_leave(ring, 0);
	return where != SL_PLACE_AHEAD;
}

static void *link_thread(void *arg)
{
	struct race *race = arg;

	for (uint64_t k = 0; k < FRAMES; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			while (!send_one(race, k, m))
				sched_yield(); /* one core is enough for this test */
	atomic_store(&race->over, 1);
	return NULL;
}

/* Nothing but the frame's own bytes; then they are overwritten, so that a late writer shows. */
static void read_pixels(struct fixture *f)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		uint8_t *pixels = f->view[m].pixels.host;

		for (size_t i = 0; i < PIXEL_BYTES; i++)
			if (pixels[i] != pixel_of(f->frame.sequence, m, i))
				fail_msg("frame %llu module %u byte %zu is wrong",
					 (unsigned long long)f->frame.sequence, m, i);
		memset(pixels, 0xee, f->ring.block_bytes);
	}
}

struct verdict {
	uint8_t seen, complete, outcome[MODULES], cause[MODULES];
};

static void take(struct fixture *f, struct verdict *verdict)
{
	struct verdict *v = &verdict[f->frame.sequence];

	v->seen++;
	v->complete = !!(f->frame.flags & SL_FRAME_COMPLETE);
	for (uint32_t m = 0; m < MODULES; m++) {
		v->outcome[m] = f->view[m].outcome;
		v->cause[m] = f->view[m].cause;
	}
	if (!v->complete)
		return;
	read_pixels(f);
	sl_ring_release(&f->ring, f->frame.sequence);
}

static bool fits(enum fate fate, enum sl_outcome outcome, enum sl_cause cause)
{
	bool whole = outcome == SL_NO_OUTCOME ||
		     (outcome == SL_INCOMPLETE && cause == SL_CAUSE_PARTNER);
	bool damaged = outcome == SL_INCOMPLETE && cause == SL_CAUSE_DAMAGED;

	switch (fate) {
	case WHOLE:
		return whole;
	case HURT:
		return damaged;
	case TARDY:
		return whole || damaged;
	case GONE:
		return outcome == SL_LOST;
	case TURNED:
		return outcome == SL_OVERRUN;
	}
	return false;
}

static void every_sequence_comes_out_once_and_no_complete_one_is_wrong(void **state)
{
	static struct race race;
	static struct verdict verdict[FRAMES];
	struct fixture *f = *state;
	unsigned complete = 0;
	pthread_t thread;
	int got;

	memset(&race, 0, sizeof(race));
	memset(verdict, 0, sizeof(verdict));
	race.f = f;
	f->a.options.late_timeout_ns = UINT64_MAX; /* only the order of packets decides */
	assert_int_equal(pthread_create(&thread, NULL, link_thread, &race), 0);
	while ((got = next(f, 1)) != -ENODATA) {
		if (got)
			take(f, verdict);
		sl_ring_open(&f->ring, UINT64_MAX);
		if (!got && atomic_load(&race.over))
			for (uint32_t m = 0; m < MODULES; m++)
				sl_assembler_end(&f->a, m, FRAMES);
		if (!got)
			sched_yield();
	}
	pthread_join(thread, NULL);
	for (uint64_t k = 0; k < FRAMES; k++) {
		assert_int_equal(verdict[k].seen, 1);
		for (uint32_t m = 0; m < MODULES; m++)
			if (!fits(race.fate[k][m], verdict[k].outcome[m], verdict[k].cause[m]))
				fail_msg("frame %llu module %u: fate %d but %s, %s",
					 (unsigned long long)k, m, race.fate[k][m],
					 sl_outcome_name(verdict[k].outcome[m]),
					 sl_cause_name(verdict[k].cause[m]));
		complete += verdict[k].complete;
	}
	assert_in_range(complete, FRAMES / 4, FRAMES - FRAMES / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(nothing_comes_of_nothing),
		CASE(complete_frames_come_in_order),
		CASE(a_frame_waits_for_those_before_it),
		CASE(a_frame_waits_for_its_last_module),
		CASE(a_complete_frame_shows_its_modules),
		CASE(number_and_timestamp_are_the_records),
		CASE(hops_are_earliest_emit_latest_event_and_now),
		CASE(a_dark_record_makes_a_dark_frame),
		CASE(gives_up_exactly_when_the_module_is_late_frames_further_on),
		CASE(every_missing_module_must_have_moved_on),
		CASE(the_clock_gives_up_after_the_timeout_and_not_before),
		CASE(a_packet_of_a_later_frame_starts_the_clock),
		CASE(the_clock_stands_while_nothing_is_due),
		CASE(every_frame_has_its_own_time),
		CASE(a_slot_that_is_not_open_cannot_be_given_up),
		CASE(an_event_of_the_lap_before_is_none),
		CASE(some_packets_make_it_damaged_none_make_it_lost),
		CASE(a_module_that_was_turned_away_is_an_overrun),
		CASE(being_turned_away_in_another_lap_does_not_count),
		CASE(a_whole_module_with_a_missing_partner_says_so),
		CASE(a_record_that_contradicts_itself_is_not_believed),
		CASE(a_record_of_another_sequence_is_not_believed),
		CASE(a_record_of_another_module_is_not_believed),
		CASE(a_record_of_another_size_is_not_believed),
		CASE(pixels_that_do_not_match_their_checksum_are_damaged),
		CASE(pixels_that_match_their_checksum_are_whole),
		CASE(one_wrong_byte_is_seen_by_the_checksum),
		CASE(a_checksum_that_is_required_must_be_there),
		CASE(a_frame_of_which_nothing_came_has_a_number),
		CASE(the_slot_of_a_broken_frame_opens_for_the_next_lap),
		CASE(the_slot_of_a_complete_frame_stays_closed),
		CASE(giving_up_waits_for_a_link_that_is_inside),
		CASE(an_event_that_comes_while_giving_up_makes_it_whole_after_all),
		CASE(a_source_that_sends_nothing_ends_at_once),
		CASE(after_the_end_what_did_not_come_is_lost),
		CASE(what_was_never_sent_gets_no_outcome),
		CASE(a_module_that_ended_is_not_waited_for),
		CASE(every_sequence_comes_out_once_and_no_complete_one_is_wrong),
	};

	return cmocka_run_group_tests_name("assembler", tests, NULL, NULL);
}
