/* assembler_test.c - frames come out in order, each once, whole or with the reason why not. Time is
 * a parameter, so every case is exact. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc.h"
#include "receiver/assemble/testing.h"

/* ---- what a link does ---- */

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
	sl_ring_raise(&f->ring, k, module, 710 + 10 * k - module);
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
	assert_int_equal(f->frame.hop_ns[SL_HOP_EVENT], 710);
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

/* One that is gone must not cost every frame of the others a time-out. */
static void a_module_that_is_silent_is_not_waited_for_until_it_speaks(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	assert_int_equal(next(f, 50000), 0);
	assert_int_equal(next(f, 50000 + TIMEOUT_NS + 1), 1);
	arrive(f, 1, 0);
	assert_int_equal(next(f, 51002), 1); /* at once */
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	arrive(f, 2, 0);
	some(f, 2, 1, 1); /* it is back, and has its time again */
	assert_int_equal(next(f, 51003), 0);
	assert_int_equal(next(f, 51003 + TIMEOUT_NS), 0);
	arrive(f, 2, 1);
	expect_complete(f, 2);
}

/* Packets that wait in a buffer of the link are not late: time passes as far as it has looked. */
static void time_passes_as_far_as_the_link_has_looked(void **state)
{
	struct fixture *f = *state;

	f->a.options.late_timeout_ns = 1000000;
	sl_ring_looked(&f->ring, 0, 20000000);
	sl_ring_looked(&f->ring, 1, 20000000);
	arrive(f, 0, 0);
	assert_int_equal(next(f, 50000000), 0);
	assert_int_equal(next(f, 90000000), 0);
	sl_ring_looked(&f->ring, 1, 50999999); /* before the time was over */
	assert_int_equal(next(f, 91000000), 0);
	arrive(f, 0, 1); /* it was there */
	expect_complete(f, 0);
	arrive(f, 1, 0);
	assert_int_equal(next(f, 92000000), 0);
	sl_ring_looked(&f->ring, 1, 93000000); /* and there is nothing */
	assert_int_equal(next(f, 93000001), 1);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	arrive(f, 2, 0);
	assert_int_equal(next(f, 94000000), 1); /* silent, as a look of late has shown */
	arrive(f, 3, 0);
	assert_int_equal(next(f, 99000000), 0);	 /* that is long ago: it may have come back */
	sl_ring_looked(&f->ring, 1, UINT64_MAX); /* the link will not look again */
	assert_int_equal(next(f, 99000001), 1);
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
	release(f, 0);
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
	release(f, 0);
	sl_ring_open(&f->ring, UINT64_MAX);
	for (uint32_t m = 0; m < MODULES; m++)
		f->a.head[m].sequence = SLOTS; /* same slot, next lap */
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
	assert_int_equal(f->frame.hop_ns[SL_HOP_EVENT], 709);
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

/* Valid in itself, but of another trigger than the first module's. */
static void expect_other_trigger(struct fixture *f, struct sl_record record)
{
	uint64_t k = f->a.next;

	sl_record_seal(&record);
	arrive(f, k, 0);
	arrive_with(f, k, 1, &record);
	expect_broken(f, k);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_RECORD);
	assert_int_equal(f->frame.number, 100 + k);
	assert_false(f->frame.flags & SL_FRAME_DARK);
}

static void modules_of_different_triggers_are_no_frame(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 1);

	record.frame += 1000;
	expect_other_trigger(f, record);
	record = record_of(1, 1);
	record.flags |= SL_RECORD_DARK;
	expect_other_trigger(f, record);
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
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS, 1), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS, 1), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 1), SL_PLACE_LATE);
}

static void the_slot_of_a_complete_frame_stays_closed(void **state)
{
	struct fixture *f = *state;

	arrive(f, 0, 0);
	arrive(f, 0, 1);
	expect_complete(f, 0);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 1), SL_PLACE_LATE);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 0);
	release(f, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
}

static void giving_up_waits_for_a_link_that_is_inside(void **state)
{
	struct fixture *f = *state;

	sl_ring_enter(&f->ring, 0);
	miss_the_first(f, 1, LATE);
	assert_int_equal(next(f, 1), 0);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 1), SL_PLACE_LATE);
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

/* A run that begins in the middle of what its sources send. */
static void frames_begin_with_the_sequence_that_modules_begin_with(void **state)
{
	enum { FIRST = 1001 };
	struct fixture *f = *state;

	sl_ring_fini(&f->ring);
	assert_int_equal(sl_ring_init(&f->ring, &f->region, &f->bell, SLOTS, MODULES, PIXEL_BYTES),
			 0);
	for (uint32_t m = 0; m < MODULES; m++) {
		sl_ring_begin(&f->ring, m, FIRST);
		sl_assembler_skip(&f->a, m, FIRST);
	}
	sl_ring_open(&f->ring, UINT64_MAX);
	assert_int_equal(next(f, 1), 0);
	for (uint64_t k = FIRST; k < FIRST + 3; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			if (k != FIRST + 1)
				arrive(f, k, m);
	expect_complete(f, FIRST);
	for (uint32_t m = 0; m < MODULES; m++)
		sl_assembler_end(&f->a, m, FIRST + 3);
	expect_broken(f, FIRST + 1);
	assert_int_equal(f->frame.number, FIRST_FRAME + FIRST + 1);
	expect_complete(f, FIRST + 2);
	assert_int_equal(next(f, 1), -ENODATA);
}

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

/* A source that cannot count ends where it was seen last; one that goes on all the same does not
 * make the account wrong. */
static void what_comes_after_the_end_gets_no_outcome(void **state)
{
	struct fixture *f = *state;

	sl_assembler_end(&f->a, 1, 1);
	for (uint64_t k = 0; k < 2; k++) {
		arrive(f, k, 0);
		arrive(f, k, 1);
	}
	expect_complete(f, 0);
	expect_broken(f, 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_NO_OUTCOME, SL_CAUSE_NONE);
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
		CASE(a_module_that_is_silent_is_not_waited_for_until_it_speaks),
		CASE(time_passes_as_far_as_the_link_has_looked),
		CASE(a_packet_of_a_later_frame_starts_the_clock),
		CASE(the_clock_stands_while_nothing_is_due),
		CASE(every_frame_has_its_own_time),
		CASE(a_slot_that_is_not_open_cannot_be_given_up),
		CASE(an_event_of_the_lap_before_is_none),
		CASE(some_packets_make_it_damaged_none_make_it_lost),
		CASE(a_module_that_was_turned_away_is_an_overrun),
		CASE(being_turned_away_in_another_lap_does_not_count),
		CASE(a_whole_module_with_a_missing_partner_says_so),
		CASE(modules_of_different_triggers_are_no_frame),
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
		CASE(frames_begin_with_the_sequence_that_modules_begin_with),
		CASE(a_source_that_sends_nothing_ends_at_once),
		CASE(after_the_end_what_did_not_come_is_lost),
		CASE(what_was_never_sent_gets_no_outcome),
		CASE(a_module_that_ended_is_not_waited_for),
		CASE(what_comes_after_the_end_gets_no_outcome),
	};

	return cmocka_run_group_tests_name("assembler", tests, NULL, NULL);
}
