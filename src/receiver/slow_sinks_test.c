/* slow_sinks_test.c - sinks that cannot keep pace, with each on_slow: who waits, what is left out,
 * when the run ends; the ledger is held against a list of what the sink was given. ThreadSanitizer
 * sees the hand-over of frames and copies. */
#include <errno.h>
#include <string.h>

#include "lib/flow_rig.h"

enum { ALL = FRAMES + DARKS };

struct given { /* what a sink was told of a sequence */
	uint8_t times, image, slow, dark;
};

static struct {
	_Atomic int open; /* 0: the slow sink stands still */
	struct given slow[ALL], quick[ALL];
	uint64_t out_of_order, next;
	_Atomic uint64_t puts, quick_puts, durable;
	_Atomic enum sl_on_slow on_slow;
	int optional, refuses;
} seen;

static int open_nothing(void *state, const struct sl_env *env)
{
	return 0;
}

static int close_nothing(void *state, const struct sl_status *status)
{
	return 0;
}

static int close_badly(void *state, const struct sl_status *status)
{
	return status && seen.refuses ? -EIO : 0;
}

static const char *nowhere(const void *state)
{
	return "nowhere";
}

static int yes(const void *state)
{
	return 1;
}

static enum sl_on_slow on_slow(const void *state)
{
	return seen.on_slow;
}

static int required(const void *state)
{
	return !seen.optional;
}

static uint64_t durable(const void *state)
{
	return atomic_load(&seen.durable);
}

static void note(struct given *given, const struct sl_frame *frame)
{
	struct given *g = &given[frame->sequence];
	const struct sl_array *result = frame->results ? &frame->result[0] : NULL;

	g->times++;
	g->image = result && result->host;
	g->dark = !!(frame->flags & SL_FRAME_DARK);
	for (uint32_t v = 0; v < frame->views; v++)
		g->slow += frame->view[v].outcome == SL_UNWRITTEN &&
			   frame->view[v].cause == SL_CAUSE_SLOW;
}

static int put_slowly(void *state, struct sl_frame *frame)
{
	while (!atomic_load(&seen.open))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	if (atomic_load(&seen.open) > 1)
		sl_clock_sleep_until(sl_clock_ns() + 2000000);
	seen.out_of_order += frame->sequence != seen.next;
	seen.next = frame->sequence + 1;
	note(seen.slow, frame);
	atomic_fetch_add(&seen.puts, 1);
	return seen.refuses ? -EIO : 0;
}

static int put_quickly(void *state, struct sl_frame *frame)
{
	note(seen.quick, frame);
	atomic_fetch_add(&seen.quick_puts, 1);
	return 0;
}

static struct sl_sink slow = {
	.name = "slow",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN | SL_WANT_RAW,
	.own_thread = yes,
	.open = open_nothing,
	.put = put_slowly,
	.close = close_badly,
	.where = nowhere,
	.on_slow = on_slow,
	.required = required,
};
static struct sl_sink quick = {
	.name = "quick",
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN | SL_WANT_RAW,
	.own_thread = yes,
	.open = open_nothing,
	.put = put_quickly,
	.close = close_nothing,
	.where = nowhere,
};

/* slow_says, quick_says: what these sinks say is durable; NULL: nothing. */
static void begin_durable(struct flow *f, enum sl_on_slow policy, bool optional,
			  uint64_t (*slow_says)(const void *), uint64_t (*quick_says)(const void *))
{
	memset(&seen, 0, sizeof(seen));
	seen.on_slow = policy;
	seen.optional = optional;
	slow.durable = slow_says;
	quick.durable = quick_says;
	f->here = open_experiment(NULL, 0);
	f->here->sink[0] = &slow;
	f->here->sink[1] = &quick;
	open_flow(f, NULL, 0);
}

static void begin(struct flow *f, enum sl_on_slow policy, bool optional)
{
	begin_durable(f, policy, optional, NULL, NULL);
}

static void send_all(struct flow *f)
{
	while (!sl_emulator_finished(f->emulator)) {
		pass_counts(f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}

static uint64_t cause(const struct flow *f, enum sl_cause which)
{
	uint64_t sum = 0;

	for (uint32_t m = 0; m < MODULES; m++)
		sum += f->receiver->ledger.tally[m].cause[which];
	return sum;
}

/* Every frame came once and in order; returns how many kept ones had an image. */
static uint64_t check_slow(uint64_t *left_out)
{
	uint64_t images = 0;

	*left_out = 0;
	assert_int_equal(seen.out_of_order, 0);
	assert_int_equal(seen.puts, ALL);
	for (unsigned k = 0; k < ALL; k++) {
		const struct given *g = &seen.slow[k];

		assert_int_equal(g->times, 1);
		assert_int_equal(g->dark, k < DARKS);
		assert_true(g->slow == 0 || g->slow == MODULES);
		assert_int_equal(g->image, !g->slow);
		images += g->image && !g->dark;
		*left_out += g->slow != 0;
	}
	return images;
}

/* ---- wait ---- */

static void the_time_that_data_wait_is_counted_for_the_sink(void **state)
{
	static struct sl_status status;
	struct flow f = {0};

	begin(&f, SL_ON_SLOW_WAIT, false);
	do {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
		sl_receiver_status(f.receiver, &status);
	} while (status.pace[1].waited_ns < 50000000);
	assert_false(sl_emulator_finished(f.emulator));
	assert_int_equal(status.frames, 0);
	assert_in_range(status.pace[1].waiting.now, status.pace[1].mark, f.receiver->pool.count);
	assert_int_equal(status.pace[2].waited_ns, 0);
	assert_int_equal(status.pace[0].threaded, 0);
	assert_int_equal(status.pace[1].threaded, 1);
	assert_false(sl_receiver_too_slow(f.receiver));
	atomic_store(&seen.open, 1);
	run_flow(&f);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.pace[1].waiting.now, 0);
	assert_int_equal(status.pace[1].left_out + status.changes + status.too_slow, 0);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

/* ---- prescale ---- */

/* The sink stands still until the source has sent everything: no source waits for it. */
static void frames_that_a_slow_sink_is_not_given_are_unwritten(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t images, left_out;

	begin(&f, SL_ON_SLOW_PRESCALE, false);
	send_all(&f);
	assert_int_equal(seen.puts, 0);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	images = check_slow(&left_out);
	sl_receiver_status(f.receiver, &status);
	/* What was in the ring when the source had ended could wait. */
	assert_in_range(images, 1, f.receiver->pool.count + f.receiver->feed[0].ring.slots);
	assert_true(left_out > FRAMES / 2);
	assert_int_equal(images + left_out, FRAMES);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * images);
	assert_int_equal(sl_status_total(&status, SL_UNWRITTEN), MODULES * left_out);
	assert_int_equal(cause(&f, SL_CAUSE_SLOW), MODULES * left_out);
	assert_int_equal(cause(&f, SL_CAUSE_SINK), 0);
	assert_int_equal(status.pace[1].left_out, left_out);
	assert_int_equal(status.kept, FRAMES); /* a verdict is no matter of disks */
	assert_int_equal(status.addon[1].error, 0);
	assert_int_equal(status.watermark, ALL);
	/* The other sink had every image all the same, and knows what became of it. */
	for (unsigned k = 0; k < ALL; k++) {
		assert_int_equal(seen.quick[k].times, 1);
		assert_int_equal(seen.quick[k].image, 1);
		assert_int_equal(seen.quick[k].slow, seen.slow[k].slow);
	}
	close_flow(&f);
}

/* The first frame that each factor holds for, as the list of changes has it: from there to the next
 * change, one of `factor` kept frames has an image, or fewer while the sink is slow. */
static void check_changes(const struct sl_status *status)
{
	uint32_t factor = 1;

	assert_int_equal(status->changes, status->pace[1].changes);
	assert_true(status->changes > 0);
	for (uint32_t i = 0, k = DARKS; i <= status->changes; i++) {
		uint64_t end = i < status->changes ? status->change[i].sequence : ALL;
		uint64_t images = 0, first = k;

		for (; k < end; k++)
			images += seen.slow[k].image;
		assert_in_range(images, 0, (end - first) / factor + 1);
		if (i == status->changes)
			break;
		assert_int_equal(status->change[i].addon, 1);
		assert_true(status->change[i].factor == 2 * factor ||
			    2 * status->change[i].factor == factor);
		factor = status->change[i].factor;
	}
	assert_int_equal(factor, status->pace[1].factor);
}

static void a_sink_that_is_slow_all_the_time_gets_one_of_several(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t images, left_out;

	begin(&f, SL_ON_SLOW_PRESCALE, false);
	atomic_store(&seen.open, 2);
	run_flow(&f);
	images = check_slow(&left_out);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(images + left_out, FRAMES);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * images);
	assert_int_equal(sl_status_total(&status, SL_UNWRITTEN), MODULES * left_out);
	if (left_out)
		check_changes(&status);
	close_flow(&f);
}

/* Not required: the frame is stored where it is required, and only counted here. */
static void frames_that_an_optional_sink_is_not_given_are_stored(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t images, left_out;

	begin(&f, SL_ON_SLOW_PRESCALE, true);
	while (f.receiver->sink_thread[0].pace.left_out < 10) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	atomic_store(&seen.open, 1);
	run_flow(&f);
	images = check_slow(&left_out);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(images + left_out, FRAMES);
	assert_true(left_out >= 10);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * FRAMES);
	assert_int_equal(status.pace[1].left_out, left_out);
	for (unsigned k = 0; k < ALL; k++)
		assert_int_equal(seen.quick[k].slow, 0);
	close_flow(&f);
}

/* ---- drop ---- */

/* The sink stands still until every frame is settled: no frame waits for it, nor does an
 * outcome. */
static void no_run_waits_for_a_sink_that_drops_frames(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t given = 0;

	begin(&f, SL_ON_SLOW_DROP, true);
	do {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
		sl_receiver_status(f.receiver, &status);
	} while (status.frames < ALL);
	assert_int_equal(seen.puts, 0);
	assert_int_equal(status.watermark, 0); /* `quick` is safe when it is closed */
	assert_in_range(status.pace[1].waiting.now, 1, f.receiver->drop_frames);
	assert_int_equal(status.pace[1].left_out, ALL - status.pace[1].waiting.now);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	for (unsigned k = 0; k < ALL; k++) {
		assert_in_range(seen.slow[k].times, 0, 1);
		assert_int_equal(seen.slow[k].image, seen.slow[k].times);
		assert_int_equal(seen.slow[k].slow, 0);
		given += seen.slow[k].times;
		assert_int_equal(seen.quick[k].times, 1);
		assert_int_equal(seen.quick[k].image, 1);
		assert_int_equal(seen.quick[k].slow, 0);
	}
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.pace[1].left_out, ALL - given);
	assert_int_equal(status.pace[1].waiting.now, 0);
	assert_int_equal(status.pace[1].waited_ns, 0);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

/* Frames come and go while the sink is slow, with a quick one beside it. */
static void a_sink_that_drops_frames_gets_what_it_has_time_for(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t given = 0;

	begin(&f, SL_ON_SLOW_DROP, true);
	atomic_store(&seen.open, 2);
	run_flow(&f);
	for (unsigned k = 0; k < ALL; k++) {
		given += seen.slow[k].times;
		assert_int_equal(seen.quick[k].times, 1);
	}
	sl_receiver_status(f.receiver, &status);
	assert_in_range(given, f.receiver->drop_frames, ALL);
	assert_int_equal(status.pace[1].left_out, ALL - given);
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * FRAMES);
	close_flow(&f);
}

/* A sink that stands still keeps a part of them at most: the settler waits for the others. */
static void copies_without_results_stay_for_other_sinks(void **state)
{
	struct flow f = {0};
	struct sl_flow_frame whole = {.more = 0}, copy = {.more = 0};
	struct sl_sink_pace *pace;

	begin(&f, SL_ON_SLOW_DROP, true);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	pace = &f.receiver->sink_thread[0].pace; /* from here on nothing comes */
	whole.home = &f.receiver->pool;
	copy.home = &f.receiver->stand_ins;
	for (uint32_t n = 0; n < SL_STAND_INS / 4; n++) {
		assert_int_equal(sl_sink_pace_drop(f.receiver, 3, &copy), 0);
		sl_sink_pace_take(pace);
	}
	assert_int_equal(sl_sink_pace_drop(f.receiver, 3, &copy), 1);
	assert_int_equal(sl_sink_pace_drop(f.receiver, 3, &whole), 0);
	assert_int_equal(sl_sink_pace_drop(f.receiver, 2, &copy), 0);
	for (uint32_t n = 0; n < SL_STAND_INS / 4; n++)
		sl_sink_pace_give_back(pace);
	close_flow(&f);
}

static void a_required_sink_drops_nothing(void **state)
{
	struct flow f = {0};

	memset(&seen, 0, sizeof(seen));
	seen.on_slow = SL_ON_SLOW_DROP;
	f.here = open_experiment(NULL, 0);
	f.here->sink[0] = &slow;
	assert_int_equal(sl_receiver_open(f.here, NULL, &f.receiver), -EINVAL);
	sl_experiment_close(f.here);
}

/* ---- stop ---- */

static void a_sink_that_is_slow_for_a_second_ends_the_run(void **state)
{
	static struct sl_status status;
	struct flow f = {0};
	uint64_t images = 0;

	begin(&f, SL_ON_SLOW_STOP, false);
	while (!sl_receiver_too_slow(f.receiver)) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	assert_int_equal(seen.puts, 0);
	/* As the session does. */
	sl_emulator_stop(f.emulator, false);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.too_slow, 2);
	assert_string_equal(status.addon[status.too_slow - 1].name, "slow");
	assert_true(sl_status_closed(&status));
	assert_in_range(status.frames, DARKS, ALL - 1);
	for (unsigned k = 0; k < ALL; k++)
		images += seen.slow[k].image && !seen.slow[k].dark;
	assert_int_equal(status.frames, seen.puts);
	assert_int_equal(images + DARKS, seen.puts);
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * images);
	assert_int_equal(sl_status_total(&status, SL_STORED) + MODULES * DARKS,
			 sl_status_sent(&status));
	close_flow(&f);
}

/* ---- required, watermark ---- */

static void what_an_optional_sink_refuses_is_stored(void **state)
{
	static struct sl_status status;
	struct flow f = {0};

	begin(&f, SL_ON_SLOW_WAIT, true);
	seen.refuses = 1;
	atomic_store(&seen.open, 1);
	run_flow(&f);
	sl_receiver_status(f.receiver, &status);
	assert_true(sl_status_closed(&status));
	assert_int_equal(sl_status_total(&status, SL_STORED), MODULES * FRAMES);
	assert_int_equal(status.addon[1].error, -EIO);
	assert_int_equal(status.addon[1].optional, 1);
	assert_int_equal(status.watermark, ALL);
	close_flow(&f);
}

/* Both sinks say what is durable in them: the least counts, of required ones, as far as frames have
 * outcomes. */
static void the_watermark_is_that_of_the_last_required_sink(void **state)
{
	static struct sl_status status;
	struct flow f = {0};

	begin_durable(&f, SL_ON_SLOW_WAIT, false, durable, NULL);
	atomic_store(&seen.durable, ALL);
	/* The sinks' own threads take their figures. */
	sl_clock_sleep_until(sl_clock_ns() + 3 * (uint64_t)SL_FIGURES_NS);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.watermark, 0); /* `quick` has a place, and does not say */
	atomic_store(&seen.open, 1);
	run_flow(&f);
	close_flow(&f);

	begin_durable(&f, SL_ON_SLOW_WAIT, false, durable, durable);
	atomic_store(&seen.open, 1);
	run_flow(&f);
	for (uint64_t mark = 5; mark < 2 * ALL; mark *= 2) {
		atomic_store(&seen.durable, mark);
		sl_figures_take_sinks(f.receiver);
		sl_receiver_status(f.receiver, &status);
		assert_int_equal(status.watermark, mark < ALL ? mark : ALL);
	}
	/* One that is not required does not count. */
	atomic_store(&seen.durable, 7);
	sl_figures_take_sinks(f.receiver);
	f.receiver->sink_optional[0] = true;
	quick.durable = NULL;
	sl_figures_take_sinks(f.receiver);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.watermark, ALL); /* closed, and well */
	close_flow(&f);
}

static void on_slow_needs_a_thread(void **state)
{
	struct flow f = {0};

	memset(&seen, 0, sizeof(seen));
	seen.on_slow = SL_ON_SLOW_PRESCALE;
	slow.own_thread = NULL;
	f.here = open_experiment(NULL, 0);
	f.here->sink[0] = &slow;
	assert_int_equal(sl_receiver_open(f.here, NULL, &f.receiver), -ENOTSUP);
	slow.own_thread = yes;
	sl_experiment_close(f.here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_that_data_wait_is_counted_for_the_sink),
		cmocka_unit_test(frames_that_a_slow_sink_is_not_given_are_unwritten),
		cmocka_unit_test(a_sink_that_is_slow_all_the_time_gets_one_of_several),
		cmocka_unit_test(frames_that_an_optional_sink_is_not_given_are_stored),
		cmocka_unit_test(no_run_waits_for_a_sink_that_drops_frames),
		cmocka_unit_test(a_sink_that_drops_frames_gets_what_it_has_time_for),
		cmocka_unit_test(copies_without_results_stay_for_other_sinks),
		cmocka_unit_test(a_required_sink_drops_nothing),
		cmocka_unit_test(a_sink_that_is_slow_for_a_second_ends_the_run),
		cmocka_unit_test(what_an_optional_sink_refuses_is_stored),
		cmocka_unit_test(the_watermark_is_that_of_the_last_required_sink),
		cmocka_unit_test(on_slow_needs_a_thread),
	};

	return RUN_APART_AND_TOGETHER("slow_sinks", tests);
}
