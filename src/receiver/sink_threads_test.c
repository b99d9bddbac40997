/* sink_threads_test.c - a sink with a thread of its own: it delays no other, sees every frame once
 * and in order, and what it refuses is unwritten. ThreadSanitizer sees the hand-over of frames. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
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

/* ---- puts that take long ---- */

enum { SHORT_NS = 20 * 1000 * 1000, TELL_NS = 100 * 1000 * 1000 };

static _Atomic unsigned warnings; /* of puts that last */

static void note_warning(void *arg, enum sl_log_level level, const char *line)
{
	if (level == SL_LOG_WARN &&
	    strstr(line, "sink slow has been writing one frame for more than 0.1 s (nowhere)"))
		atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

static const struct sl_log_target notes_warnings = {note_warning, &warnings};

static void shorten(struct sl_receiver *r)
{
	struct sl_sink_thread *t = &r->sink_thread[0];

	assert_true(t->wanted);
	assert_int_equal(t->stall_ns, 1000000000);
	assert_int_equal(t->tell_ns, UINT64_C(5000000000));
	t->stall_ns = SHORT_NS;
	t->tell_ns = TELL_NS;
}

static void lengthen(struct sl_receiver *r)
{
	r->sink_thread[0].stall_ns = r->sink_thread[0].tell_ns = UINT64_C(3600) * 1000000000;
}

static uint64_t figure_of(struct flow *f, const char *name)
{
	static struct sl_status status;
	const struct sl_status_addon *addon = &status.addon[1]; /* the first is the unit */

	sl_receiver_status(f->receiver, &status);
	for (uint32_t i = addon->first_figure; i < addon->first_figure + addon->figures; i++)
		if (!strcmp(status.figure[i].name, name))
			return status.figure[i].value;
	fail_msg("the sink has no figure %s", name);
	return 0;
}

static void begin_stalls(struct flow *f, void (*change)(struct sl_receiver *))
{
	atomic_store(&warnings, 0);
	sl_log_set_target(&notes_warnings); /* threads that start now have it, too */
	before_start = change;
	begin(f, NULL, 0);
	before_start = NULL;
}

/* The sink stands still in its first put, with counts passed on so that frames come. */
static void wait_in_put(struct flow *f, uint64_t ns)
{
	uint64_t end_ns = sl_clock_ns() + ns;

	while (sl_clock_ns() < end_ns) {
		pass_counts(f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}

static void a_put_that_lasts_is_logged_once_and_counted(void **state)
{
	struct flow f = {0};
	uint64_t began_ns, took_ns;

	begin_stalls(&f, shorten);
	while (!atomic_load(&f.receiver->sink_thread[0].putting_since_ns))
		wait_in_put(&f, 1000000);
	began_ns = sl_clock_ns();
	while (!atomic_load(&warnings))
		wait_in_put(&f, 1000000);
	assert_int_equal(seen.slow, 0); /* while it lasts, not afterwards */
	wait_in_put(&f, 3 * (uint64_t)TELL_NS);
	assert_int_equal(warnings, 1);
	assert_int_equal(f.receiver->sink_thread[0].stalls, 0); /* it has not ended */
	took_ns = sl_clock_ns() - began_ns;
	atomic_store(&seen.open, 1);
	run_flow(&f);
	/* A busy host may have made other puts slow as well. */
	assert_in_range(figure_of(&f, "stalls"), 1, FRAMES + DARKS);
	assert_true(figure_of(&f, "longest_put_us") >= took_ns / 1000);
	assert_int_equal(seen.slow, FRAMES + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
	sl_log_set_target(NULL);
}

static void a_put_within_the_limits_is_no_stall(void **state)
{
	struct flow f = {0};

	begin_stalls(&f, lengthen);
	while (!atomic_load(&f.receiver->sink_thread[0].putting_since_ns))
		wait_in_put(&f, 1000000);
	wait_in_put(&f, SHORT_NS);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(figure_of(&f, "stalls"), 0);
	assert_true(figure_of(&f, "longest_put_us") >= SHORT_NS / 1000);
	assert_int_equal(warnings, 0);
	close_flow(&f);
	sl_log_set_target(NULL);
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
		cmocka_unit_test(a_put_that_lasts_is_logged_once_and_counted),
		cmocka_unit_test(a_put_within_the_limits_is_no_stall),
		cmocka_unit_test(a_run_that_is_given_up_ends),
		cmocka_unit_test(workers_prepare_several_frames_and_they_are_put_in_order),
		cmocka_unit_test(workers_stop_when_the_slots_are_full),
	};

	return RUN_APART_AND_TOGETHER("sink_threads", tests);
}
