/* gpu_faults_test.c - units for accelerators when the device fails, is wrong or is shared: every
 * frame has its outcome, and it is said. */
#include <errno.h>
#include <pthread.h>

#include "lib/capture.h"
#include "lib/gpu_cases.h"

#define HUGE_BYTES (1ull << 60)

enum { BATCHES = 5 };

static const char *trigger = "unit.trigger=launch"; /* of tests that are run with two of them */

/* ---- a device that fails ---- */

static struct sl_platform faulty;
static const struct sl_platform *beneath;
static int calls, fail_at; /* of what is made to fail; 0: never */
static bool silent;	   /* it does not answer any more */
static int marks;	   /* that were seen to be reached */
static int error_at;	   /* of these one is an error instead; 0: none */
static bool for_good;	   /* and all after it */
static int silent_at;	   /* from that one on it does not answer; 0: always does */
static int busy;	   /* after an error: so often it is asked until it is at rest */
static int closed;	   /* devices */

static int fails(void)
{
	return fail_at && ++calls >= fail_at;
}

static int faulty_memory(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	/* More than any device has: what the driver itself says and leaves is seen. */
	return beneath->memory_open(device, fails() ? HUGE_BYTES : bytes, m);
}

static int faulty_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
			 const struct sl_device_range *range,
			 const struct sl_device_argument *argument, unsigned arguments)
{
	return fails() ? -EIO
		       : sl_platform_opencl.launch(queue, kernel, range, argument, arguments);
}

/* Marks are counted when they are reached, so that how long that takes makes no difference. With
 * one batch at a time the first says that verdicts are there, the second that results are. */
static int faulty_reached(struct sl_device_mark *mark)
{
	int reached = sl_platform_opencl.reached(mark);

	if (reached != 1 || silent)
		return silent ? 0 : reached;
	if (error_at && marks >= error_at && busy)
		return busy-- ? 0 : 1;
	marks++;
	silent = silent_at && marks >= silent_at;
	if (error_at && (for_good ? marks >= error_at : marks == error_at))
		return -EIO;
	return !silent;
}

static const char *faulty_problem(const struct sl_device *device)
{
	return "on the device: words of its driver";
}

/* All that was opened is closed before its device. */
static void faulty_close(struct sl_device *device)
{
	assert_int_equal(device->held_bytes, 0);
	closed++;
	beneath->close(device);
}

/* Devices have the platform in them: this one's calls must be those that fail. */
static int faulty_open(unsigned index, struct sl_device **device)
{
	int err = beneath->open(index, device);

	if (!err)
		(*device)->platform = &faulty;
	return err;
}

static int open_faulty(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		       struct sl_bell *done, unsigned *workers)
{
	return sl_accelerator_open(state, &faulty, chain, todo, done, workers);
}

/* One that is never heard of again keeps what it has: that must be its own. */
static struct sl_unit faulty_unit(const struct sl_platform *platform)
{
	struct sl_unit unit = sl_unit_opencl;

	beneath = platform;
	faulty = *platform;
	faulty.open = faulty_open;
	faulty.close = faulty_close;
	unit.open = open_faulty;
	calls = fail_at = closed = 0;
	marks = error_at = silent_at = busy = 0;
	silent = for_good = false;
	return unit;
}

/* Each piece of memory that there is, one after the other. */
static void without_memory(const struct gpu_case *c)
{
	const char *set[] = {"unit.kind=opencl", "unit.batch_slots=1"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct gpu_side side;
	int succeeded = 0;
	bool of_stages = false, of_lanes = false;

	faulty.memory_open = faulty_memory;
	for (int at = 1; !succeeded; at++) {
		const char *said;
		int err;

		calls = 0;
		fail_at = at;
		capture_begin();
		err = gpu_try_open(&side, c, &unit, set, 2);
		said = capture_end();
		succeeded = calls < at;
		assert_int_equal(err, succeeded ? 0 : -ENOMEM);
		if (err) {
			assert_non_null(strstr(said, "opencl: no memory for "));
			assert_non_null(strstr(said, "1152921504606846976 more bytes"));
			of_stages |= !!strstr(said, "for stage '");
			of_lanes |= !!strstr(said, "for 1 batches of");
		}
		gpu_close(&side, &unit);
	}
	assert_true(of_stages && of_lanes);
}

static void test_no_memory_is_said_and_nothing_is_left(void **arg)
{
	NEEDS_OPENCL();
	without_memory(case_of("photons"));
	without_memory(case_of("of rows of 8 bytes"));
	without_memory(case_of("reduced counts of 32 bits"));
	without_memory(case_of("lists by radius"));
	without_memory(case_of("peaks of photons"));
	without_memory(case_of("spots of photons"));
}

/* The batch in which it happens, and the next. */
static void expect_refusals(struct sl_unit *unit, struct gpu_side *side, const char *words)
{
	const char *said;

	for (int b = 0; b < 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(side, &gpu_cases[0], &memory, 0);
		int status;

		capture_begin();
		status = gpu_batch(side, unit, batch);
		said = capture_end();
		assert_int_equal(status, -EIO);
		if (b == 0)
			assert_non_null(strstr(said, words));
		free_batch(side, batch, memory);
	}
}

static void test_a_kernel_that_fails_is_named_and_frames_refused(void **arg)
{
	const char *set[] = {"unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct gpu_side side;

	NEEDS_OPENCL();
	faulty.launch = faulty_launch;
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 1), 0);
	fail_at = 2;
	expect_refusals(&unit, &side, "the device was given up");
	gpu_close(&side, &unit);
}

/* What is wrong with a kernel is known only when it has run: while verdicts are awaited, or
 * results; in the first batch, or later. Frames are given away when the device does nothing more
 * to them. */
static void refuse_at(int at)
{
	const char *set[] = {trigger, "unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct gpu_side side;

	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 2), 0);
	faulty.reached = faulty_reached;
	faulty.problem = faulty_problem;
	for (int b = 0; b < (at - 1) / 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(&side, &gpu_cases[0], &memory, 0);

		assert_int_equal(gpu_batch(&side, &unit, batch), 0);
		free_batch(&side, batch, memory);
	}
	error_at = at;
	busy = 5;
	expect_refusals(&unit, &side, "given up: on the device: words of its driver");
	assert_int_equal(busy, 0);
	gpu_close(&side, &unit);
}

static void test_an_error_after_the_launch_is_told_and_frames_refused(void **arg)
{
	NEEDS_OPENCL();
	for (int at = 1; at <= 4; at++)
		refuse_at(at);
}

static void test_a_device_that_does_not_answer_is_given_up(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct gpu_side side;

	NEEDS_OPENCL();
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = false;
	gpu_close(&side, &unit);
}

/* A device that was given up, and then closed: when it comes to rest after all, and when not. */
static void give_up_and_close(bool rests)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct gpu_side side;

	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = !rests;
	gpu_close(&side, &unit);
	assert_int_equal(closed, rests);
	silent = false;
}

static void test_a_device_that_comes_to_rest_is_closed_and_another_is_left(void **arg)
{
	NEEDS_OPENCL();
	give_up_and_close(true);
	give_up_and_close(false);
}

/* What was learned is asked for before a batch is checked: that must have an end, too. */
static void test_no_wait_is_without_an_end(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20",
			     "unit.cross_check=1"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct gpu_side side;

	NEEDS_OPENCL();
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 4), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = false;
	gpu_close(&side, &unit);
}

static void test_a_unit_is_closed_while_batches_are_there(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&gpu_platform);

	NEEDS_OPENCL();
	for (int steps = 1; steps < 6; steps++) {
		closed = 0;
		gpu_close_after(&unit, set, 2, steps);
		assert_int_equal(closed, 1);
	}
}

/* A kernel that polls, and never begins: its frames are refused, or the CPU's. */
static int no_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		     const struct sl_device_range *range, const struct sl_device_argument *argument,
		     unsigned arguments)
{
	return 0;
}

static void test_a_kernel_that_polls_and_does_not_answer_is_given_up(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.trigger=persistent", "unit.timeout_ms=20",
			     "unit.fallback=cpu"};
	const struct gpu_case *c = case_of("rings");
	struct sl_unit unit = faulty_unit(&gpu_platform);

	NEEDS_OPENCL();
	faulty.launch = no_launch;
	for (size_t sets = 3; sets <= 4; sets++) {
		struct counted counted = {0};
		struct gpu_side side;

		closed = 0;
		assert_int_equal(gpu_try_open(&side, c, &unit, set, sets), 0);
		for (int b = 0; b < 2; b++) {
			char *memory;
			struct sl_batch *batch = one_batch(&side, c, &memory, 0);
			int status;

			capture_begin();
			status = gpu_batch(&side, &unit, batch);
			assert_int_equal(!!strstr(capture_end(), "it did not answer in time"),
					 b == 0);
			assert_int_equal(status, sets == 3 ? -EIO : 0);
			free_batch(&side, batch, memory);
		}
		unit.figures(side.experiment->unit_state, count_figures, &counted);
		assert_int_equal(counted.published, c->batch);
		assert_int_equal(counted.unanswered, c->batch);
		assert_int_equal(counted.good, 0);
		gpu_close(&side, &unit);
		assert_int_equal(closed, 1);
	}
}

static void test_only_stages_that_poll_can_be_persistent(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.trigger=persistent"};
	struct gpu_side side;

	NEEDS_OPENCL();
	capture_begin();
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit_opencl, set, 2), -EINVAL);
	assert_non_null(strstr(capture_end(), "has a kernel that polls: rings"));
	gpu_close(&side, &unit_opencl);
}

/* ---- a device that is wrong ---- */

static uint64_t spoil_bytes, spoil_at; /* of memory of that size, a byte */

static int spoiling_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
			   const struct sl_device_range *range,
			   const struct sl_device_argument *argument, unsigned arguments)
{
	static const unsigned char wrong = 0x7b;
	int err = sl_platform_opencl.launch(queue, kernel, range, argument, arguments);

	for (unsigned i = 0; i < arguments && !err; i++)
		if (argument[i].memory && argument[i].memory->bytes == spoil_bytes)
			err = sl_platform_opencl.write(queue, argument[i].memory, spoil_at, &wrong,
						       1, 1, 1);
	return err;
}

static void test_what_is_unlike_the_cpu_is_counted_and_named(void **arg)
{
	static const struct gpu_case wrong = {"wrong",	       "stages: [correct]", NULL,
					      SMALL(2, 7, 33), .batch = 8,	    .dtype = SL_U16,
					      .no_darks = true};
	const char *set[] = {"unit.kind=opencl", "unit.cross_check=1"}, *said;
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct counted counted = {0};
	struct gpu_side side;

	NEEDS_OPENCL();
	faulty.launch = spoiling_launch;
	spoil_bytes = 8 * 2 * 7 * 33 * sizeof(int16_t);	  /* the images of a batch */
	spoil_at = 3 * 2 * 7 * 33 * sizeof(int16_t) + 11; /* pixel 5 of the fourth */
	assert_int_equal(gpu_try_open(&side, &wrong, &unit, set, 2), 0);
	capture_begin();
	for (uint64_t b = 0; b < 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(&side, &wrong, &memory, b * wrong.batch);

		assert_int_equal(gpu_batch(&side, &unit, batch), 0);
		free_batch(&side, batch, memory);
	}
	said = capture_end();
	assert_non_null(strstr(said, "frame 3: image differs from the CPU's, first at element 5;"));
	assert_null(strstr(said, "frame 11")); /* counted only */
	unit.figures(side.experiment->unit_state, count_figures, &counted);
	assert_int_equal(counted.checked, 16);
	assert_int_equal(counted.unlike, 2);
	assert_int_equal(counted.unlike_image, 2);
	gpu_close(&side, &unit);
}

static void test_rows_that_cannot_be_are_not_copied(void **arg)
{
	static const struct gpu_case lists = {"lists",
					      "stages: [sparse: {threshold: 9}]",
					      NULL,
					      SMALL(2, 7, 33),
					      .batch = 8,
					      .dtype = SL_U8,
					      .no_darks = true};
	const char *set[] = {"unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct sl_batch *batch;
	struct gpu_side side;
	char *memory;

	NEEDS_OPENCL();
	faulty.launch = spoiling_launch;
	spoil_bytes = SL_RESULTS * 8 * sizeof(uint32_t); /* numbers of rows */
	spoil_at = 4 * 2 + 3;				 /* the highest byte, of the third frame */
	assert_int_equal(gpu_try_open(&side, &lists, &unit, set, 1), 0);
	batch = one_batch(&side, &lists, &memory, 0);
	capture_begin();
	assert_int_equal(gpu_batch(&side, &unit, batch), -EIO);
	assert_non_null(strstr(capture_end(), "a kernel wrote more rows than there can be"));
	free_batch(&side, batch, memory);
	gpu_close(&side, &unit);
}

/* ---- frames that the device rejects ---- */

static bool was_written(const struct sl_array *array)
{
	const uint8_t *byte = array->host;

	for (uint64_t i = 0; i < sl_shape_bytes(&array->shape); i++)
		if (byte[i] != GPU_POISON)
			return true;
	return false;
}

/* What comes back to the host of frames that are all rejected. */
static void compare_rejected(const char *sinks, bool results, bool images)
{
	const struct gpu_case c = {.name = "rejected frames",
				   .stages = "stages: [correct, integrate: {bins: 3}, veto: "
					     "{threshold: 30000, min_pixels: 80}]",
				   SMALL(2, 5, 8),
				   .batch = 6,
				   .dtype = SL_U16,
				   .no_darks = true,
				   .sinks = sinks};
	const struct sl_unit *const unit[] = {&sl_unit_cpu, &unit_opencl};
	const char *set[] = {"unit.kind=opencl"};
	struct sl_batch *batch[2];
	struct gpu_side side[2];
	unsigned seen[2] = {0}; /* images; other results */
	char *memory[2];

	for (int s = 0; s < 2; s++) {
		assert_int_equal(gpu_try_open(&side[s], &c, unit[s], set, (size_t)s), 0);
		batch[s] = one_batch(&side[s], &c, &memory[s], 0);
		assert_int_equal(gpu_batch(&side[s], unit[s], batch[s]), 0);
	}
	for (uint32_t f = 0; f < c.batch; f++) {
		const struct sl_frame *a = batch[0]->frame[f], *b = batch[1]->frame[f];

		assert_int_equal(gpu_compare(&c, a, b), 0); /* none is kept */
		for (uint32_t r = 0; r < a->results; r++) {
			const struct sl_array *x = &a->result[r], *y = &b->result[r];
			bool is_image = x->shape.image;

			seen[!is_image]++;
			assert_int_equal(was_written(y), is_image ? images : results);
			if (is_image && images)
				assert_memory_equal(y->host, x->host, sl_shape_bytes(&x->shape));
		}
	}
	assert_true(seen[0] >= c.batch && seen[1] >= c.batch);
	for (int s = 0; s < 2; s++) {
		free_batch(&side[s], batch[s], memory[s]);
		gpu_close(&side[s], unit[s]);
	}
}

static void test_of_rejected_frames_comes_back_what_a_sink_reads(void **arg)
{
	NEEDS_OPENCL();
	compare_rejected(NULL, false, false);
	compare_rejected("[raw: {frames: kept}]", true, false);
	compare_rejected("[raw: {frames: all}]", true, true);
}

/* As a run without a device, whenever it fails: what it has learned goes with it. */
static void fall_back_at(int at)
{
	const char *set[] = {"unit.kind=opencl", "unit.fallback=cpu"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	const struct sl_unit *const units[] = {&sl_unit_cpu, &unit};
	struct gpu_side side[2];

	assert_int_equal(gpu_try_open(&side[0], &gpu_cases[0], &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(gpu_try_open(&side[1], &gpu_cases[0], &unit, set, 2), 0);
	faulty.launch = faulty_launch;
	fail_at = at;
	capture_begin();
	for (int b = 0; b < 4; b++)
		gpu_both(&gpu_cases[0], side, units, (uint64_t)b * gpu_cases[0].batch,
			 gpu_cases[0].batch);
	assert_non_null(strstr(capture_end(), "the device was given up"));
	gpu_close(&side[0], &sl_unit_cpu);
	gpu_close(&side[1], &unit);
}

static void test_the_cpu_goes_on_where_the_device_failed(void **arg)
{
	NEEDS_OPENCL();
	fall_back_at(1); /* the first kernel of all */
	fall_back_at(7); /* the first one of the third batch */
}

/* An error that comes after the launch, or no answer at all. How often the device has said that it
 * is not done yet must not matter: it was asked until it was. */
static void stand_in(const struct gpu_case *c, int error, bool ever, int silence)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu",
			     "unit.timeout_ms=50"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	const struct sl_unit *const units[] = {&sl_unit_cpu, &unit};
	struct gpu_side side[2];
	unsigned kept = 0;

	assert_int_equal(gpu_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(gpu_try_open(&side[1], c, &unit, set, silence ? 4 : 3), 0);
	faulty.reached = faulty_reached;
	faulty.problem = faulty_problem;
	error_at = error;
	for_good = ever;
	silent_at = silence;
	busy = ever ? 0 : 5;
	capture_begin();
	for (int b = 0; b < 4; b++)
		kept += gpu_both(c, side, units, (uint64_t)b * c->batch, c->batch);
	assert_non_null(strstr(capture_end(), silence ? "given up: it did not answer in time"
						      : "given up: on the device: words of"));
	assert_true(kept > 0);
	assert_int_equal(error ? busy : 0, 0);
	silent = false;
	silent_at = 0;
	gpu_close(&side[0], &sl_unit_cpu);
	gpu_close(&side[1], &unit);
}

static void test_the_cpu_goes_on_after_an_error_that_comes_late(void **arg)
{
	NEEDS_OPENCL();
	for (int at = 1; at <= 6; at++) {
		stand_in(case_of("counts of 32 bits"), at, at % 2, 0);
		stand_in(case_of("photons, no dark frames"), at, false, 0);
	}
}

/* Kernels that have run have learned, and the CPU learns it again: the frames have their results,
 * but these may differ, which is said. */
static void test_what_may_be_learned_twice_is_told(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu"}, *said;
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct sl_batch *batch;
	struct gpu_side side;
	char *memory;

	NEEDS_OPENCL();
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	error_at = 1;
	batch = one_batch(&side, &gpu_cases[0], &memory, 0);
	capture_begin();
	assert_int_equal(gpu_batch(&side, &unit, batch), 0);
	said = capture_end();
	assert_non_null(strstr(said, "dark frames may have been learned from twice"));
	assert_null(strstr(said, "stage 'veto'"));
	free_batch(&side, batch, memory);
	gpu_close(&side, &unit);
}

/* Verdicts go into memory of the unit's own first. */
static void test_the_cpu_goes_on_where_only_verdicts_were_awaited(void **arg)
{
	NEEDS_OPENCL();
	stand_in(&gpu_cases[0], 0, false, 1);
	stand_in(case_of("lists of 32 bits"), 0, false, 3);
}

/* Results go straight into frames: nobody else may write there. */
static void refuse_what_may_be_written(int error, int silence)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu",
			     "unit.timeout_ms=250"};
	struct sl_unit unit = faulty_unit(&gpu_platform);
	struct gpu_side side;

	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 4), 0);
	faulty.reached = faulty_reached;
	error_at = error;
	silent_at = silence;
	expect_refusals(&unit, &side, "it may still write into results: the CPU cannot go on");
	silent = false;
	silent_at = 0;
	gpu_close(&side, &unit);
}

static void test_the_cpu_does_not_go_on_while_results_may_be_written(void **arg)
{
	NEEDS_OPENCL();
	refuse_what_may_be_written(0, 2);
	refuse_what_may_be_written(2, 2); /* an error, and no rest after it */
}

static void test_without_a_device_the_cpu_stands_in_from_the_start(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.fallback=cpu", "unit.device=200"};
	const struct sl_unit *const units[] = {&sl_unit_cpu, &sl_unit_opencl};
	struct gpu_side side[2];
	unsigned kept = 0;

	assert_int_equal(gpu_try_open(&side[0], &gpu_cases[0], &sl_unit_cpu, NULL, 0), 0);
	capture_begin();
	assert_int_equal(gpu_try_open(&side[1], &gpu_cases[0], &sl_unit_opencl, set, 3), 0);
	assert_non_null(strstr(capture_end(), "goes on with the CPU"));
	for (uint64_t b = 0; b < BATCHES; b++)
		kept += gpu_both(&gpu_cases[0], side, units, b * 8, 8);
	assert_true(kept > 0);
	gpu_close(&side[0], &sl_unit_cpu);
	gpu_close(&side[1], &sl_unit_opencl);
}

static void test_a_stage_of_the_cpu_cannot_come_between(void **arg)
{
	static const struct gpu_case between = {"between",  "stages: [correct, prescale, veto]",
						NULL,	    SMALL(2, 7, 33),
						.batch = 8, .dtype = SL_U16};
	const char *set[] = {"unit.kind=opencl"};
	struct gpu_side side;

	capture_begin();
	assert_int_equal(gpu_try_open(&side, &between, &sl_unit_opencl, set, 1), -EINVAL);
	assert_non_null(strstr(capture_end(), "stage 'prescale' runs on the CPU only"));
	gpu_close(&side, &sl_unit_opencl);
}

static void test_order_can_only_be_given_up_by_stages_that_learn_nothing(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.order=any"};
	struct gpu_side side;

	capture_begin();
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &sl_unit_opencl, set, 2), -EINVAL);
	assert_non_null(strstr(capture_end(), "learns from frame to frame"));
	gpu_close(&side, &sl_unit_opencl);
}

/* ---- many batches at once ---- */

static void test_batches_overlap_and_come_back_in_order(void **arg)
{
	const char *const slots[] = {trigger, "unit.kind=opencl", "unit.batch_slots=3"};
	const char *const any[] = {trigger, "unit.kind=opencl", "unit.batch_slots=4",
				   "unit.order=any"};

	NEEDS_OPENCL();
	gpu_overlap(case_of("photons, eight at a time"), &sl_unit_opencl, slots, 3);
	gpu_overlap(case_of("counts of 32 bits"), &sl_unit_opencl, any, 4);
	gpu_overlap(case_of("lists of 32 bits"), &sl_unit_opencl, any, 4);
	gpu_overlap(case_of("rings"), &sl_unit_opencl, any, 4);
	gpu_overlap(case_of("tracks, fits"), &sl_unit_opencl, any, 4);
}

/* ---- two units at once, each with a thread of its own as in a run ---- */

struct crew {
	struct gpu_side *side;
	_Atomic bool stop;
};

static void *work_until_stopped(void *arg)
{
	struct crew *crew = arg;

	while (!crew->stop)
		sl_unit_opencl.work(crew->side->experiment->unit_state, 0);
	return NULL;
}

/* Both have as many batches as they take, one after the other from here. */
static void run_two(struct gpu_side *side, struct sl_batch *(*batch)[6], unsigned n)
{
	unsigned given[2] = {0}, back[2] = {0};

	while (back[0] < n || back[1] < n)
		for (int u = 0; u < 2; u++) {
			struct sl_batch *done;

			if (given[u] < n && !sl_unit_opencl.submit(side[u].experiment->unit_state,
								   batch[u][given[u]]))
				given[u]++;
			while (sl_unit_opencl.reap(side[u].experiment->unit_state, &done)) {
				assert_ptr_equal(done, batch[u][back[u]++]);
				assert_int_equal(done->status, 0);
			}
		}
}

static void test_two_units_at_once(void **arg)
{
	enum { MANY = 6 };
	const char *const set[] = {trigger, "unit.kind=opencl", "unit.batch_slots=2"};
	const struct gpu_case *c[] = {case_of("photons"), case_of("lists by radius")};
	struct sl_batch *batch[2][MANY], *cpu;
	struct gpu_side side[2], alone;
	char *memory[2][MANY], *own;
	struct crew crew[2];
	pthread_t thread[2];

	NEEDS_OPENCL();
	for (int u = 0; u < 2; u++) {
		assert_int_equal(gpu_try_open(&side[u], c[u], &sl_unit_opencl, set, 3), 0);
		for (int b = 0; b < MANY; b++)
			batch[u][b] =
				one_batch(&side[u], c[u], &memory[u][b], (uint64_t)b * c[u]->batch);
		crew[u].side = &side[u];
		crew[u].stop = false;
		assert_int_equal(pthread_create(&thread[u], NULL, work_until_stopped, &crew[u]), 0);
	}
	run_two(side, batch, MANY);
	for (int u = 0; u < 2; u++) {
		unsigned kept = 0;

		crew[u].stop = true;
		pthread_join(thread[u], NULL);
		assert_int_equal(gpu_try_open(&alone, c[u], &sl_unit_cpu, NULL, 0), 0);
		for (int b = 0; b < MANY; b++) {
			cpu = one_batch(&alone, c[u], &own, (uint64_t)b * c[u]->batch);
			assert_int_equal(gpu_batch(&alone, &sl_unit_cpu, cpu), 0);
			for (uint32_t f = 0; f < c[u]->batch; f++)
				kept += gpu_compare(c[u], cpu->frame[f], batch[u][b]->frame[f]);
			free_batch(&alone, cpu, own);
			free_batch(&side[u], batch[u][b], memory[u][b]);
		}
		assert_true(kept > 0);
		gpu_close(&alone, &sl_unit_cpu);
		gpu_close(&side[u], &sl_unit_opencl);
	}
}

static int begin_waiting(void **arg)
{
	if (!opencl_is_this_cpu())
		return 0; /* the same again */
	trigger = gpu_triggers[2];
	return 0;
}

static int end_waiting(void **arg)
{
	trigger = gpu_triggers[0];
	return 0;
}

#define WAITING(test) cmocka_unit_test_setup_teardown(test, begin_waiting, end_waiting)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory_is_said_and_nothing_is_left),
		cmocka_unit_test(test_a_kernel_that_fails_is_named_and_frames_refused),
		cmocka_unit_test(test_an_error_after_the_launch_is_told_and_frames_refused),
		cmocka_unit_test(test_a_device_that_does_not_answer_is_given_up),
		cmocka_unit_test(test_a_device_that_comes_to_rest_is_closed_and_another_is_left),
		cmocka_unit_test(test_no_wait_is_without_an_end),
		cmocka_unit_test(test_a_unit_is_closed_while_batches_are_there),
		cmocka_unit_test(test_a_kernel_that_polls_and_does_not_answer_is_given_up),
		cmocka_unit_test(test_only_stages_that_poll_can_be_persistent),
		cmocka_unit_test(test_what_is_unlike_the_cpu_is_counted_and_named),
		cmocka_unit_test(test_rows_that_cannot_be_are_not_copied),
		cmocka_unit_test(test_of_rejected_frames_comes_back_what_a_sink_reads),
		cmocka_unit_test(test_the_cpu_goes_on_where_the_device_failed),
		cmocka_unit_test(test_the_cpu_goes_on_after_an_error_that_comes_late),
		cmocka_unit_test(test_what_may_be_learned_twice_is_told),
		cmocka_unit_test(test_the_cpu_goes_on_where_only_verdicts_were_awaited),
		cmocka_unit_test(test_the_cpu_does_not_go_on_while_results_may_be_written),
		cmocka_unit_test(test_without_a_device_the_cpu_stands_in_from_the_start),
		cmocka_unit_test(test_a_stage_of_the_cpu_cannot_come_between),
		cmocka_unit_test(test_order_can_only_be_given_up_by_stages_that_learn_nothing),
		cmocka_unit_test(test_batches_overlap_and_come_back_in_order),
		cmocka_unit_test(test_two_units_at_once),
		/* Once more, with kernels that are queued ahead. */
		WAITING(test_an_error_after_the_launch_is_told_and_frames_refused),
		WAITING(test_a_device_that_does_not_answer_is_given_up),
		WAITING(test_a_device_that_comes_to_rest_is_closed_and_another_is_left),
		WAITING(test_no_wait_is_without_an_end),
		WAITING(test_a_unit_is_closed_while_batches_are_there),
		WAITING(test_the_cpu_goes_on_after_an_error_that_comes_late),
		WAITING(test_what_may_be_learned_twice_is_told),
		WAITING(test_the_cpu_goes_on_where_only_verdicts_were_awaited),
		WAITING(test_the_cpu_does_not_go_on_while_results_may_be_written),
		WAITING(test_batches_overlap_and_come_back_in_order),
		WAITING(test_two_units_at_once),
	};

	return gpu_main()
		       ? 0
		       : cmocka_run_group_tests_name("GPU side faults", tests, gpu_begin, gpu_end);
}
