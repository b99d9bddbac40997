/* ring_test.c - slots open in order, events belong to one lap, and nobody writes what is being
 * read. The last cases run a link thread against an assembler thread on one mapping, for
 * ThreadSanitizer too. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bell.h"
#include "core/ring.h"

enum { SLOTS = 4, MODULES = 2, PIXELS = 500 };

struct fixture {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
};

static struct fixture fixture;

static int setup(void **state)
{
	struct fixture *f = &fixture;

	memset(f, 0, sizeof(*f));
	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, MODULES, PIXELS),
			   &f->region))
		return -1;
	sl_region_poison(&f->region);
	*state = f;
	return sl_ring_init(&f->ring, &f->region, &f->bell, SLOTS, MODULES, PIXELS);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sl_ring_fini(&f->ring);
	sl_region_close(&f->region);
	return 0;
}

static void shape_is_aligned_and_no_power_of_two(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->ring.block_bytes, PIXELS + SL_RECORD_BYTES);
	/* Small blocks are some lines apart, large ones pages. */
	assert_int_equal(f->ring.block_stride % 64, 0);
	assert_true(f->ring.block_stride >= f->ring.block_bytes && f->ring.block_stride < 1024);
	assert_int_equal(f->ring.block_stride / 64 % 2, 1);
	assert_int_equal(sl_ring_region_bytes(1, 3, 5000), 3 * 8192);
	assert_true(f->ring.slot_stride & (f->ring.slot_stride - 1));
	assert_true(f->ring.slot_stride >= MODULES * f->ring.block_stride);
	assert_true(sl_ring_block(&f->ring, SLOTS - 1, MODULES - 1) + f->ring.block_bytes <=
		    (uint8_t *)f->region.base + f->region.bytes);
}

/* Every size up to two pages and around larger ones: no block reaches into the next one, small
 * blocks lie an odd number of cache lines apart, and no slot begins where another one ends. */
static void blocks_of_any_size_lie_apart(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t pixels = 1; pixels < 9 * page; pixels++) {
		struct sl_region region = {.bytes = UINT64_MAX};
		struct sl_ring ring;
		uint64_t bytes = pixels + SL_RECORD_BYTES, most;

		if (pixels > 2 * page && (pixels + SL_RECORD_BYTES + 2) % page > 4)
			continue;
		assert_int_equal(sl_ring_init(&ring, &region, NULL, 2, 3, pixels), 0);
		most = bytes <= page / 2 ? 2 * 64 : page;
		assert_in_range(ring.block_stride, bytes, bytes + most - 1);
		if (bytes <= page / 2)
			assert_int_equal(ring.block_stride % 128, 64);
		else
			assert_int_equal(ring.block_stride % page, 0);
		assert_in_range(ring.slot_stride, 3 * ring.block_stride,
				3 * ring.block_stride + page);
		assert_int_equal(sl_ring_region_bytes(2, 3, pixels), 2 * ring.slot_stride);
		sl_ring_fini(&ring);
	}
}

static void a_region_too_small_is_refused(void **state)
{
	struct fixture *f = *state;
	struct sl_ring ring;

	assert_int_equal(sl_ring_init(&ring, &f->region, NULL, 1000000, MODULES, PIXELS), -ENOSPC);
	assert_int_equal(sl_ring_init(&ring, &f->region, NULL, 1, MODULES, PIXELS), -EINVAL);
	assert_int_equal(sl_ring_init(&ring, &f->region, NULL, 2, 0, PIXELS), -EINVAL);
}

static void nothing_may_be_placed_before_opening(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sl_ring_may_place(&f->ring, 0, 0), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_may_place(&f->ring, 99, 0), SL_PLACE_AHEAD);
}

static void slots_open_in_order_up_to_the_ring_and_the_limit(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sl_ring_open(&f->ring, 3), 3);
	assert_int_equal(sl_ring_may_place(&f->ring, 2, 0), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 3, 0), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), SLOTS - 3);
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS, 0), SL_PLACE_AHEAD);
}

static void a_released_slot_opens_for_the_next_lap_only_in_turn(void **state)
{
	struct fixture *f = *state;

	sl_ring_open(&f->ring, UINT64_MAX);
	sl_ring_close(&f->ring, 1, 0);
	sl_ring_release(&f->ring, 1, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 0); /* slot 0 is still in use */
	sl_ring_close(&f->ring, 0, 0);
	sl_ring_release(&f->ring, 0, 0);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 2);
	assert_int_equal(sl_ring_may_place(&f->ring, SLOTS, 0), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 0), SL_PLACE_LATE);
}

static void a_closed_slot_takes_nothing(void **state)
{
	struct fixture *f = *state;

	sl_ring_open(&f->ring, UINT64_MAX);
	sl_ring_close(&f->ring, 2, 0);
	assert_int_equal(sl_ring_may_place(&f->ring, 2, 0), SL_PLACE_LATE);
	assert_int_equal(sl_ring_may_place(&f->ring, 3, 0), SL_PLACE_OK);
}

static void an_event_belongs_to_one_module_and_one_lap(void **state)
{
	struct fixture *f = *state;
	uint64_t ns = 0;

	sl_ring_open(&f->ring, UINT64_MAX);
	assert_false(sl_ring_event(&f->ring, 0, 0, &ns));
	sl_ring_raise(&f->ring, 0, 1, 123);
	assert_false(sl_ring_event(&f->ring, 0, 0, &ns));
	assert_true(sl_ring_event(&f->ring, 0, 1, &ns));
	assert_int_equal(ns, 123);
	assert_false(sl_ring_event(&f->ring, SLOTS, 1, &ns));
}

static void an_event_rings_the_bell(void **state)
{
	struct fixture *f = *state;
	uint32_t before = sl_bell_read(&f->bell);

	sl_ring_raise(&f->ring, 0, 0, 1);
	assert_int_not_equal(sl_bell_read(&f->bell), before);
}

static void progress_and_turned_away_belong_to_one_lap(void **state)
{
	struct fixture *f = *state;

	sl_ring_progress(&f->ring, 3, 1, 17);
	assert_int_equal(sl_ring_packets(&f->ring, 3, 1), 17);
	assert_int_equal(sl_ring_packets(&f->ring, 3, 0), 0);
	assert_int_equal(sl_ring_packets(&f->ring, 3 + SLOTS, 1), 0);
	sl_ring_turn_away(&f->ring, 6, 0);
	assert_true(sl_ring_was_turned_away(&f->ring, 6, 0));
	assert_false(sl_ring_was_turned_away(&f->ring, 2, 0));
	assert_false(sl_ring_was_turned_away(&f->ring, 6, 1));
}

/* A source that laps the ring as often as it likes is remembered sequence by sequence. */
static void
every_sequence_that_was_turned_away_is_remembered_until_its_cell_is_released(void **state)
{
	struct fixture *f = *state;
	const uint64_t many = 100000;

	for (uint64_t k = SLOTS; k < many; k++)
		if (k % 3)
			sl_ring_turn_away(&f->ring, k, 1);
	for (uint64_t k = 0; k < many; k++) {
		sl_ring_open(&f->ring, UINT64_MAX);
		assert_int_equal(sl_ring_was_turned_away(&f->ring, k, 1), k >= SLOTS && k % 3);
		assert_false(sl_ring_was_turned_away(&f->ring, k, 0));
		for (uint32_t m = 0; m < MODULES; m++) {
			sl_ring_close(&f->ring, k, m);
			sl_ring_release(&f->ring, k, m);
		}
		assert_false(sl_ring_was_turned_away(&f->ring, k, 1));
	}
	assert_int_equal(f->ring.lane[1].turned_away, many - SLOTS - (many - SLOTS) / 3);
	/* Too far ahead to be told apart from an earlier one: not remembered, and not confused. */
	sl_ring_turn_away(&f->ring, many + SL_RING_AWAY, 1);
	assert_false(sl_ring_was_turned_away(&f->ring, many, 1));
}

static void a_module_that_lags_holds_up_only_itself(void **state)
{
	struct fixture *f = *state;

	sl_ring_open(&f->ring, UINT64_MAX);
	for (uint64_t k = 0; k < 10 * SLOTS; k++) {
		sl_ring_reach(&f->ring, k, 1);
		assert_int_equal(sl_ring_used(&f->ring, 1), 1);
		sl_ring_finish(&f->ring, k, 1);
		sl_ring_release(&f->ring, k, 1);
		assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
	}
	assert_int_equal(sl_ring_opened(&f->ring, 0), SLOTS);
	assert_int_equal(sl_ring_opened(&f->ring, 1), 11 * SLOTS);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 0), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 0, 1), SL_PLACE_LATE);
	assert_int_equal(sl_ring_used(&f->ring, 0), 0);
}

static void a_lane_that_is_taken_over_forgets_what_was_begun(void **state)
{
	struct fixture *f = *state;

	sl_ring_open(&f->ring, UINT64_MAX);
	sl_ring_progress(&f->ring, 1, 0, 9);
	sl_ring_progress(&f->ring, 2, 0, 7);
	sl_ring_turn_away(&f->ring, SLOTS + 1, 0);
	sl_ring_reach(&f->ring, SLOTS + 1, 0);
	sl_ring_rewind(&f->ring, 0, 2);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 2);
	assert_int_equal(sl_ring_packets(&f->ring, 1, 0), 9);
	assert_int_equal(sl_ring_packets(&f->ring, 2, 0), 0);
	assert_false(sl_ring_was_turned_away(&f->ring, SLOTS + 1, 0));
}

static void a_lane_may_begin_anywhere_and_what_came_before_is_late(void **state)
{
	struct fixture *f = *state;

	sl_ring_begin(&f->ring, 0, 1001);
	sl_ring_begin(&f->ring, 1, 1001);
	assert_int_equal(sl_ring_may_place(&f->ring, 1000, 0), SL_PLACE_LATE);
	assert_int_equal(sl_ring_may_place(&f->ring, 1001, 0), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), SLOTS);
	assert_int_equal(sl_ring_may_place(&f->ring, 1000, 0), SL_PLACE_LATE);
	for (uint64_t k = 1001; k < 1001 + SLOTS; k++)
		assert_int_equal(sl_ring_may_place(&f->ring, k, 1), SL_PLACE_OK);
	assert_int_equal(sl_ring_may_place(&f->ring, 1001 + SLOTS, 1), SL_PLACE_AHEAD);
	assert_int_equal(sl_ring_used(&f->ring, 0), 0);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 1001);
	sl_ring_reach(&f->ring, 1002, 0);
	assert_int_equal(sl_ring_used(&f->ring, 0), 2);
}

static void reached_never_goes_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sl_ring_reached(&f->ring, 0), 0);
	sl_ring_reach(&f->ring, 9, 0);
	sl_ring_reach(&f->ring, 4, 0);
	assert_int_equal(sl_ring_reached(&f->ring, 0), 10);
	assert_int_equal(sl_ring_reached(&f->ring, 1), 0);
}

static void closing_waits_for_the_poller_that_is_inside(void **state)
{
	struct fixture *f = *state;
	struct sl_grace grace;

	sl_ring_open(&f->ring, UINT64_MAX);
	sl_ring_close(&f->ring, 0, 0);
	sl_ring_grace(&f->ring, &grace);
	assert_true(sl_ring_quiet(&f->ring, &grace)); /* nobody inside */

	sl_ring_enter(&f->ring, 3);
	sl_ring_close(&f->ring, 1, 0);
	sl_ring_grace(&f->ring, &grace);
	assert_false(sl_ring_quiet(&f->ring, &grace));
	sl_ring_leave(&f->ring, 3);
	assert_true(sl_ring_quiet(&f->ring, &grace));

	sl_ring_enter(&f->ring, 3); /* a later section of the same poller does not matter */
	assert_true(sl_ring_quiet(&f->ring, &grace));
	sl_ring_leave(&f->ring, 3);
}

/* ---- two threads ---- */

enum { ENOUGH = 300, MOST_LAPS = 1000000 };

struct race {
	struct fixture *f;
	_Atomic int stop, started;
};

static uint8_t value_of(uint64_t sequence, uint32_t module)
{
	return (uint8_t)(sequence * 7 + module * 3 + 1);
}

/* A front end without manners: tries every sequence around the open window, late and ahead ones
 * too, and raises the event of two in three. */
static void *careless_link(void *arg)
{
	struct race *race = arg;
	struct sl_ring *ring = &race->f->ring;
	uint64_t k = 0;

	atomic_store(&race->started, 1);
	while (!atomic_load(&race->stop)) {
		uint64_t opened = sl_ring_opened(ring, 0);

		sl_ring_enter(ring, 0);
		for (uint64_t s = opened > 6 ? opened - 6 : 0; s < opened + 2; s++)
			for (uint32_t m = 0; m < MODULES; m++) {
				if (sl_ring_may_place(ring, s, m) != SL_PLACE_OK ||
				    sl_ring_cell(ring, s, m)->event == s + 1)
					continue;
				memset(sl_ring_block(ring, s, m), value_of(s, m), PIXELS);
				sl_ring_progress(ring, s, m, 1);
				sl_ring_reach(ring, s, m);
				if (k++ % 3)
					sl_ring_raise(ring, s, m, s);
			}
		sl_ring_leave(ring, 0);
	}
	return NULL;
}

static int all_equal(const uint8_t *p, size_t n, uint8_t v)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != v)
			return 0;
	return 1;
}

static void a_reader_never_sees_a_write(void **state)
{
	struct fixture *f = *state;
	struct race race = {.f = f};
	pthread_t thread;
	unsigned complete = 0, given_up = 0;

	sl_ring_open(&f->ring, UINT64_MAX);
	assert_int_equal(pthread_create(&thread, NULL, careless_link, &race), 0);
	while (!atomic_load(&race.started))
		sched_yield();
	for (uint64_t k = 0; k < MOST_LAPS && (complete < ENOUGH || given_up < ENOUGH); k++) {
		struct sl_grace grace;
		uint64_t ns;
		int whole = 0;

		/* Give up at random moments, so that slots are often closed while the link is
		 * inside. */
		for (unsigned spin = 0; spin < k % 200 && !whole; spin++) {
			whole = sl_ring_event(&f->ring, k, 0, &ns) &&
				sl_ring_event(&f->ring, k, 1, &ns);
			if (spin % 16 == 15)
				sched_yield(); /* one core is enough for this test */
		}
		for (uint32_t m = 0; m < MODULES; m++)
			sl_ring_close(&f->ring, k, m);
		sl_ring_grace(&f->ring, &grace);
		while (!whole && !sl_ring_quiet(&f->ring, &grace))
			;
		for (uint32_t m = 0; m < MODULES; m++) {
			uint8_t *block = sl_ring_block(&f->ring, k, m);

			if (whole || sl_ring_packets(&f->ring, k, m))
				assert_true(all_equal(block, PIXELS, value_of(k, m)));
			memset(block, 0xee, PIXELS); /* readers own it: TSan sees a late writer */
		}
		complete += whole;
		given_up += !whole;
		for (uint32_t m = 0; m < MODULES; m++)
			sl_ring_release(&f->ring, k, m);
		sl_ring_open(&f->ring, UINT64_MAX);
	}
	atomic_store(&race.stop, 1);
	pthread_join(thread, NULL);
	assert_true(complete >= ENOUGH);
	assert_true(given_up >= ENOUGH);
}

static void lines_with_a_pitch_have_their_record_behind_the_last(void **state)
{
	const struct sl_lines lines = {10, 100, 128}, none = {10, 100, 0}, bad = {10, 100, 99};
	uint64_t bytes = sl_ring_lines_bytes(4, 2, &lines);
	struct sl_region region;
	struct sl_bell bell = {0};
	static struct sl_ring ring;

	assert_int_equal(sl_region_open(SL_REGION_HOST, bytes, &region), 0);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &bad), -EINVAL);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &lines), 0);
	assert_int_equal(ring.pixel_bytes, 1000); /* what travels */
	assert_int_equal(ring.block_bytes, 1000 + SL_RECORD_BYTES);
	assert_int_equal(ring.record_at, 1280); /* where it lies */
	assert_true(ring.block_stride >= 1280 + SL_RECORD_BYTES);
	assert_ptr_equal(sl_ring_record(&ring, 3, 1), sl_ring_block(&ring, 3, 1) + 1280);
	assert_true(sl_ring_block_at(&ring, 3, 1) + ring.block_stride <= bytes);
	sl_ring_fini(&ring);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &none), 0);
	assert_int_equal(ring.record_at, 1000);
	sl_ring_fini(&ring);
	region.bytes = bytes - 1;
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &lines), -ENOSPC);
	region.bytes = bytes;
	sl_region_close(&region);
}

/* Neighbouring blocks do not overlap, wherever in its block a rectangle lies. */
static void a_rectangle_lies_inside_its_block(void **state)
{
	const struct sl_lines lines = {10, 100, 256, 3 * 256 + 156};
	const struct sl_lines beyond = {10, 100, 256, 3 * 256 + 157}, no_pitch = {10, 100, 0, 8};
	uint64_t bytes = sl_ring_lines_bytes(4, 2, &lines);
	struct sl_region region;
	struct sl_bell bell = {0};
	static struct sl_ring ring;

	assert_int_equal(sl_region_open(SL_REGION_HOST, bytes, &region), 0);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &beyond), -EINVAL);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &no_pitch), -EINVAL);
	assert_int_equal(sl_ring_init_lines(&ring, &region, &bell, 4, 2, &lines), 0);
	assert_int_equal(sl_ring_block_at(&ring, 0, 0), lines.first);
	assert_int_equal(sl_ring_block_at(&ring, 0, 1), ring.block_stride + lines.first);
	assert_ptr_equal(sl_ring_record(&ring, 3, 1), sl_ring_block(&ring, 3, 1) + 2560);
	assert_true(ring.block_stride >= lines.first + 2560 + SL_RECORD_BYTES);
	assert_true(sl_ring_block_at(&ring, 3, 1) + 2560 + SL_RECORD_BYTES <= bytes);
	sl_ring_fini(&ring);
	sl_region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(shape_is_aligned_and_no_power_of_two),
		CASE(a_region_too_small_is_refused),
		CASE(lines_with_a_pitch_have_their_record_behind_the_last),
		cmocka_unit_test(blocks_of_any_size_lie_apart),
		cmocka_unit_test(a_rectangle_lies_inside_its_block),
		CASE(nothing_may_be_placed_before_opening),
		CASE(slots_open_in_order_up_to_the_ring_and_the_limit),
		CASE(a_released_slot_opens_for_the_next_lap_only_in_turn),
		CASE(a_closed_slot_takes_nothing),
		CASE(an_event_belongs_to_one_module_and_one_lap),
		CASE(an_event_rings_the_bell),
		CASE(progress_and_turned_away_belong_to_one_lap),
		CASE(every_sequence_that_was_turned_away_is_remembered_until_its_cell_is_released),
		CASE(a_module_that_lags_holds_up_only_itself),
		CASE(a_lane_that_is_taken_over_forgets_what_was_begun),
		CASE(a_lane_may_begin_anywhere_and_what_came_before_is_late),
		CASE(reached_never_goes_back),
		CASE(closing_waits_for_the_poller_that_is_inside),
		CASE(a_reader_never_sees_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
