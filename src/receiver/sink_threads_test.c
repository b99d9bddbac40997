/* sink_threads_test.c - a sink with a thread of its own: it delays no other, sees every frame once
 * and in order, and what it refuses is unwritten. ThreadSanitizer sees the hand-over of frames. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/flow_rig.h"

static struct {
	_Atomic int open;      /* 0: the slow sink stands still */
	_Atomic uint64_t slow; /* frames that it has, */
	_Atomic uint64_t quick;
	uint64_t next; /* and the sequence that it expects */
	uint64_t out_of_order, refuse;
} seen;

static int open_nothing(void *state, const struct sl_env *env)
{
	return 0;
}

static int close_nothing(void *state, const struct sl_status *status)
{
	return 0;
}

static const char *nowhere(const void *state)
{
	return "nowhere";
}

static int yes(const void *state)
{
	return 1;
}

static int put_slowly(void *state, struct sl_frame *frame)
{
	while (!atomic_load(&seen.open))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	seen.out_of_order += frame->sequence != seen.next;
	seen.next = frame->sequence + 1;
	for (uint32_t v = 0; v < frame->views; v++)
		seen.out_of_order += frame->view[v].outcome != SL_NO_OUTCOME &&
				     frame->view[v].sequence != frame->sequence;
	atomic_fetch_add(&seen.slow, 1);
	return seen.refuse && frame->sequence == seen.refuse ? -EIO : 0;
}

static int put_quickly(void *state, struct sl_frame *frame)
{
	atomic_fetch_add(&seen.quick, 1);
	return 0;
}

static const struct sl_sink slow = {
	.name = "slow",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.own_thread = yes,
	.open = open_nothing,
	.put = put_slowly,
	.close = close_nothing,
	.where = nowhere,
};
static const struct sl_sink quick = {
	.name = "quick",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.open = open_nothing,
	.put = put_quickly,
	.close = close_nothing,
	.where = nowhere,
};

/* ---- with workers ---- */

enum { CREW = 3 };

static struct {
	struct {
		_Atomic int taken; /* from prepare() to the end of put_prepared() */
		uint64_t sequence;
	} slot[2 * CREW + 1];
	_Atomic int at_once, most_at_once;
	uint64_t wrong;
} crew;

static unsigned three(const void *state)
{
	return CREW;
}

/* Later frames are ready sooner: what comes to put_prepared() is in order all the same. */
static void prepare_unevenly(void *state, unsigned slot, struct sl_frame *frame)
{
	int now = atomic_fetch_add(&crew.at_once, 1) + 1, most = atomic_load(&crew.most_at_once);

	while (now > most && !atomic_compare_exchange_weak(&crew.most_at_once, &most, now))
		;
	assert_in_range(slot, 0, 2 * CREW);
	assert_int_equal(atomic_exchange(&crew.slot[slot].taken, 1), 0);
	sl_clock_sleep_until(sl_clock_ns() + 1000000 * (3 - frame->sequence % 3));
	crew.slot[slot].sequence = frame->sequence;
	atomic_fetch_sub(&crew.at_once, 1);
}

static int put_in_order(void *state, unsigned slot, struct sl_frame *frame)
{
	int err = put_slowly(state, frame);

	crew.wrong += crew.slot[slot].sequence != frame->sequence;
	assert_int_equal(atomic_exchange(&crew.slot[slot].taken, 0), 1);
	return err;
}

static const struct sl_sink packer = {
	.name = "packer",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.own_thread = yes,
	.workers = three,
	.prepare = prepare_unevenly,
	.put_prepared = put_in_order,
	.open = open_nothing,
	.close = close_nothing,
	.where = nowhere,
};

/* The slow one comes first: on one thread the other would wait for it. */
static void begin_with(struct flow *f, const struct sl_sink *sink, const char *const *more,
		       size_t n)
{
	memset(&crew, 0, sizeof(crew));
	seen.open = 0;
	seen.slow = seen.quick = 0;
	seen.next = seen.out_of_order = seen.refuse = 0;
	f->here = open_experiment(more, n);
	f->here->sink[0] = sink;
	f->here->sink[1] = &quick;
	open_flow(f, more, n);
}

static void begin(struct flow *f, const char *const *more, size_t n)
{
	begin_with(f, &slow, more, n);
}

static void a_slow_sink_delays_no_other(void **state)
{
	struct flow f = {0};
	uint64_t most = 0;

	begin(&f, NULL, 0);
	/* The pool has room for a few frames, which the quick sink gets while the slow one has
	 * none; then the source is made to wait, and nothing is lost. */
	while (atomic_load(&seen.quick) < 4) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	assert_int_equal(seen.slow, 0);
	assert_int_equal(f.receiver->totals.frames, 0); /* no outcome before all sinks are done */
	most = seen.quick;
	assert_in_range(most, 4, f.receiver->pool.count);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.slow, FRAMES + DARKS);
	assert_int_equal(seen.quick, FRAMES + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

static void what_it_refuses_is_unwritten(void **state)
{
	struct flow f = {0};

	begin(&f, NULL, 0);
	seen.refuse = DARKS + 7;
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.out_of_order, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_UNWRITTEN), MODULES);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * (FRAMES - 1));
	assert_int_equal(f.receiver->sink_error[0], -EIO);
	assert_int_equal(f.receiver->sink_error[1], 0);
	close_flow(&f);
}

/* Rows of dropped frames reach it one by one, each with its own number. */
static void it_sees_every_frame_of_a_row_that_was_dropped(void **state)
{
	static const char *const more[] = {"ring.overrun=drop_oldest", "unit.batch=1",
					   "detector.frames=2000"};
	struct flow f = {0};

	begin(&f, more, 3);
	while (!sl_emulator_finished(f.emulator)) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.slow, 2000 + DARKS);
	assert_int_equal(seen.quick, 2000 + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_true(ledger_total(&f.receiver->ledger, SL_OVERRUN) > MODULES * 1000);
	close_flow(&f);
}

/* A start that fails, or a run that is given up, leaves no thread behind. */
static void a_run_that_is_given_up_ends(void **state)
{
	struct flow f = {0};

	begin(&f, NULL, 0);
	while (atomic_load(&seen.quick) < 4) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	atomic_store(&seen.open, 1);
	sl_emulator_stop(f.emulator, true);
	while (!sl_emulator_finished(f.emulator))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_plan_end(f.emulator);
	close_flow(&f);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(seen.slow, seen.quick);
}

static void workers_prepare_several_frames_and_they_are_put_in_order(void **state)
{
	struct flow f = {0};

	begin_with(&f, &packer, NULL, 0);
	atomic_store(&seen.open, 1);
	seen.refuse = DARKS + 7;
	run_flow(&f);
	assert_int_equal(seen.slow, FRAMES + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(crew.wrong, 0);
	assert_in_range(crew.most_at_once, 2, CREW);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_UNWRITTEN), MODULES);
	close_flow(&f);
}

/* The sink stands still: workers prepare what there are slots for, and no more. */
static void workers_stop_when_the_slots_are_full(void **state)
{
	struct flow f = {0};
	int full = 0;

	begin_with(&f, &packer, NULL, 0);
	while (atomic_load(&seen.quick) < 4) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	sl_clock_sleep_until(sl_clock_ns() + 50000000);
	for (unsigned i = 0; i < sl_sink_slots(CREW); i++)
		full += atomic_load(&crew.slot[i].taken);
	/* At least the one that is being put; how many came before it depends on the host. */
	assert_in_range(full, 1, sl_sink_slots(CREW));
	assert_int_equal(seen.slow, 0);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.out_of_order + crew.wrong, 0);
	assert_int_equal(seen.slow, FRAMES + DARKS);
	close_flow(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_sink_delays_no_other),
		cmocka_unit_test(what_it_refuses_is_unwritten),
		cmocka_unit_test(it_sees_every_frame_of_a_row_that_was_dropped),
		cmocka_unit_test(a_run_that_is_given_up_ends),
		cmocka_unit_test(workers_prepare_several_frames_and_they_are_put_in_order),
		cmocka_unit_test(workers_stop_when_the_slots_are_full),
	};

	return RUN_APART_AND_TOGETHER("sink_threads", tests);
}
