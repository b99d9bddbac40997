/* together_test.c - one data thread for link, dispatcher and worker: sinks that are prompt get
 * every frame on it, once and in order, whatever other sinks do; and it is woken when it sleeps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/datathread.h"
#include "lib/flow_rig.h"

static struct {
	_Atomic int open;	 /* 0: the other sink stands still */
	_Atomic uint64_t frames; /* that the prompt sink has had */
	_Atomic uint64_t others; /* and the other one */
	uint64_t next, out_of_order, elsewhere, refuse, kept, broken;
	bool expects_data_thread;
} seen;

static int open_nothing(void *state, const struct sl_env *env)
{
	return 0;
}

static int close_nothing(void *state, const struct sl_status *status)
{
	return 0;
}

static int yes(const void *state)
{
	return 1;
}

static int put_promptly(void *state, struct sl_frame *frame)
{
	const char *thread = sl_data_thread_name();
	bool on_data_thread = thread && !strcmp(thread, "data");

	seen.elsewhere += on_data_thread != seen.expects_data_thread;
	seen.out_of_order += frame->sequence != seen.next;
	seen.next = frame->sequence + 1;
	seen.kept += sl_frame_goes_on(frame) && frame->view[0].outcome == SL_STORED;
	seen.broken += !sl_frame_goes_on(frame);
	for (uint32_t v = 0; v < frame->views; v++)
		seen.out_of_order += frame->view[v].outcome != SL_NO_OUTCOME &&
				     frame->view[v].sequence != frame->sequence;
	atomic_fetch_add(&seen.frames, 1);
	return seen.refuse && frame->sequence == seen.refuse ? -EIO : 0;
}

static int put_when_open(void *state, struct sl_frame *frame)
{
	while (!atomic_load(&seen.open))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	atomic_fetch_add(&seen.others, 1);
	return 0;
}

static void count_frames(const void *state, sl_sink_figure *figure, void *arg)
{
	figure(arg, "frames", atomic_load(&seen.frames), 0);
}

static const struct sl_sink prompt = {
	.name = "prompt",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.prompt = yes,
	.open = open_nothing,
	.put = put_promptly,
	.close = close_nothing,
	.figures = count_frames,
};
static const struct sl_sink held = {
	.name = "held",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.open = open_nothing,
	.put = put_when_open,
	.close = close_nothing,
};

/* The one that stands still comes first. refuse: a sequence; 0: none. */
static void begin(struct flow *f, const char *const *more, size_t n, uint64_t refuse)
{
	memset(&seen, 0, sizeof(seen));
	seen.refuse = refuse;
	seen.expects_data_thread = together;
	f->here = open_experiment(more, n);
	f->here->sink[0] = &held;
	f->here->sink[1] = &prompt;
	open_flow(f, more, n);
}

static void wait_until_sent(struct flow *f)
{
	while (!sl_emulator_finished(f->emulator)) {
		pass_counts(f, false);
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
}

static void wait_for(const _Atomic uint64_t *counter, uint64_t least)
{
	uint64_t end = sl_clock_ns() + UINT64_C(60000000000);

	while (atomic_load(counter) < least && sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_true(atomic_load(counter) >= least);
}

static void a_prompt_sink_does_not_wait_for_others(void **state)
{
	struct flow f = {0};

	begin(&f, NULL, 0, 0);
	wait_for(&seen.frames, f.receiver->pool.count);
	assert_int_equal(seen.others, 0);
	assert_int_equal(f.receiver->totals.frames, 0);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.frames, FRAMES + DARKS);
	assert_int_equal(seen.others, FRAMES + DARKS);
	assert_int_equal(seen.kept, FRAMES);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(seen.elsewhere, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

/* Its figures come from the data thread while the run goes on. */
static void the_figures_of_a_prompt_sink_are_renewed(void **state)
{
	static const char *const more[] = {"detector.frames=1000000",
					   "detector.frame_rate_Hz=1000"};
	static struct sl_status status;
	uint64_t end = sl_clock_ns() + UINT64_C(60000000000), frames = 0;
	struct flow f = {0};

	begin(&f, more, 2, 0);
	atomic_store(&seen.open, 1);
	while (frames < 100 && sl_clock_ns() < end) {
		sl_clock_sleep_until(sl_clock_ns() + 10000000);
		sl_receiver_status(f.receiver, &status);
		for (uint32_t i = 0; i < status.figures; i++)
			if (!strcmp(status.figure[i].name, "frames"))
				frames = status.figure[i].value;
	}
	assert_true(frames >= 100);
	sl_emulator_stop(f.emulator, false);
	run_flow(&f);
	assert_int_equal(seen.elsewhere, 0);
	close_flow(&f);
}

static void what_a_prompt_sink_refuses_is_unwritten(void **state)
{
	struct flow f = {0};

	begin(&f, NULL, 0, DARKS + FRAMES / 2);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_UNWRITTEN), MODULES);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * (FRAMES - 1));
	assert_int_equal(f.receiver->sink_error[0], 0);
	assert_int_equal(f.receiver->sink_error[1], -EIO);
	close_flow(&f);
}

/* Rows of dropped frames reach it one by one, each with its own number; nearly all of them although
 * the settler stands still. */
static void a_prompt_sink_sees_every_frame_that_was_dropped(void **state)
{
	static const char *const more[] = {"ring.overrun=drop_oldest", "unit.batch=1",
					   "detector.frames=2000"};
	struct flow f = {0};

	begin(&f, more, 3, 0);
	wait_until_sent(&f);
	wait_for(&seen.frames, 1900);
	assert_int_equal(seen.others, 0);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	assert_int_equal(seen.frames, 2000 + DARKS);
	assert_int_equal(seen.others, 2000 + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(seen.elsewhere, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_OVERRUN), MODULES * seen.broken);
	assert_true(seen.broken > 1000);
	close_flow(&f);
}

/* Without this mode it is a sink like others. */
static void elsewhere_the_settler_gives_it_frames(void **state)
{
	struct flow f = {0};

	together = false;
	begin(&f, NULL, 0, 0);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	together = true;
	assert_int_equal(seen.frames, FRAMES + DARKS);
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(seen.elsewhere, 0);
	close_flow(&f);
}

/* ---- asleep ---- */

static struct sl_link patient; /* the experiment's link, which sleeps until it is woken */
static struct sl_link_receiving patient_receiving;
static int (*sound_wait)(void *, unsigned, uint32_t);

static _Atomic int ends;
static struct sl_unit idle_unit; /* the experiment's unit, with a work() of ours */
static int (*sound_work)(void *, unsigned);
static struct sl_receiver *_Atomic rung; /* whose bell work() rings, once */

static int wait_long(void *state, unsigned poller, uint32_t timeout_us)
{
	return sound_wait(state, poller, atomic_load(&ends) ? timeout_us : 600 * 1000 * 1000);
}

/* The bell rings when the dispatcher has had its turn, and the thread is not asleep yet. */
static int ring_and_work(void *state, unsigned worker)
{
	struct sl_receiver *r = atomic_exchange(&rung, NULL);

	if (r)
		sl_receiver_pause(r, !atomic_load(&r->pause));
	return sound_work(state, worker);
}

static void wait_for_pause(struct sl_receiver *r, bool pause)
{
	uint64_t end = sl_clock_ns() + UINT64_C(60000000000);

	while ((atomic_load(&r->feed[0].pause_limit) == UINT64_MAX) == pause && sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + 10000);
	assert_int_equal(atomic_load(&r->feed[0].pause_limit) == UINT64_MAX, !pause);
}

/* Nothing comes by the link: what other threads ask for is done at once all the same. */
static void a_sleeping_data_thread_is_woken(void **state)
{
	static const char *const more[] = {"threads.polling=cores"};
	struct flow f = {.here = open_experiment(more, 1), .there = open_experiment(more, 1)};

	patient = *f.here->link;
	patient_receiving = *patient.receiving;
	sound_wait = patient_receiving.wait;
	patient_receiving.wait = wait_long;
	patient.receiving = &patient_receiving;
	f.here->link = &patient;
	idle_unit = *f.here->unit;
	sound_work = idle_unit.work;
	idle_unit.work = ring_and_work;
	f.here->unit = &idle_unit;
	assert_int_equal(sl_receiver_open(f.here, NULL, &f.receiver), 0);
	assert_int_equal(sl_receiver_start(f.receiver), 0);
	for (unsigned i = 0; i < 200; i++) {
		/* Asleep, on its way to it, or awake still. */
		sl_clock_sleep_until(sl_clock_ns() + i % 20 * 10000);
		sl_receiver_pause(f.receiver, i % 2 == 0);
		wait_for_pause(f.receiver, i % 2 == 0);
	}
	/* The next look finds an end of the pause; behind it, before it sleeps, another begins. */
	for (unsigned i = 0; i < 20; i++) {
		atomic_store(&rung, f.receiver);
		sl_receiver_pause(f.receiver, i % 2 == 0);
		while (atomic_load(&rung))
			sl_clock_sleep_until(sl_clock_ns() + 10000);
		wait_for_pause(f.receiver, i % 2 != 0);
		sl_receiver_pause(f.receiver, i % 2 == 0);
		wait_for_pause(f.receiver, i % 2 == 0);
	}
	atomic_store(&ends, 1);
	sl_receiver_close(f.receiver);
	sl_experiment_close(f.here);
	sl_experiment_close(f.there);
}

/* ---- a batch that takes long ---- */

enum { ITEMS = 40, ITEM_NS = 500 * 1000 };

static int (*sound_poll)(void *, unsigned, unsigned);
static unsigned polls, items, polls_before; /* the data thread's */
static _Atomic unsigned polls_meanwhile;

static int count_polls(void *state, unsigned poller, unsigned budget)
{
	polls++;
	return sound_poll(state, poller, budget);
}

/* Items that take half a millisecond each; then those of the unit. */
static int work_long(void *state, unsigned worker)
{
	if (items == ITEMS)
		return sound_work(state, worker);
	if (!items++)
		polls_before = polls;
	sl_clock_sleep_until(sl_clock_ns() + ITEM_NS);
	if (items == ITEMS)
		atomic_store(&polls_meanwhile, polls - polls_before);
	return 1;
}

/* A socket buffer must not overflow behind it. */
static void the_link_is_polled_between_items(void **state)
{
	struct flow f = {.here = open_experiment(NULL, 0)};

	patient = *f.here->link;
	patient_receiving = *patient.receiving;
	sound_poll = patient_receiving.poll;
	patient_receiving.poll = count_polls;
	patient.receiving = &patient_receiving;
	f.here->link = &patient;
	idle_unit = *f.here->unit;
	sound_work = idle_unit.work;
	idle_unit.work = work_long;
	f.here->unit = &idle_unit;
	open_flow(&f, NULL, 0);
	run_flow(&f);
	assert_in_range(atomic_load(&polls_meanwhile), ITEMS - 2, ITEMS);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_sink_does_not_wait_for_others),
		cmocka_unit_test(the_figures_of_a_prompt_sink_are_renewed),
		cmocka_unit_test(what_a_prompt_sink_refuses_is_unwritten),
		cmocka_unit_test(a_prompt_sink_sees_every_frame_that_was_dropped),
		cmocka_unit_test(elsewhere_the_settler_gives_it_frames),
		cmocka_unit_test(a_sleeping_data_thread_is_woken),
		cmocka_unit_test(the_link_is_polled_between_items),
	};

	return cmocka_run_group_tests_name("together", tests, all_together, NULL);
}
