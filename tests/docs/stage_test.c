/* stage_test.c - the stage that docs/tutorials/write-a-stage.md builds does what the page says,
 * and keeps the rules that the page gives. Its code is taken from the page. */
#include <errno.h>

#include <sluice/plugin.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"

#define blank (sl_plugin.stages[0])

enum { FRAMES = 24 };

static void open_rig(struct rig *rig, const char *min_photons)
{
	rig_init(rig, blank, SL_I16);
	rig_set(rig, "min_photons", min_photons);
	rig_open(rig);
}

/* A frame of zeros with these pixels, spread over both modules. */
static void make(struct rig_frame *frame, const int16_t *pixel, int n)
{
	rig_frame_init(frame, false);
	memset(frame->in, 0, RIG_PIXELS * sizeof(int16_t));
	for (int i = 0; i < n; i++)
		((int16_t *)frame->in)[i * (RIG_PIXELS - 1) / (n > 1 ? n - 1 : 1)] = pixel[i];
}

static struct sl_verdict judge(struct rig *rig, struct rig_frame *frame)
{
	struct sl_verdict verdict;

	rig_batch(rig, frame, 1, 64, 3);
	verdict = frame->verdict;
	rig_frame_fini(frame);
	return verdict;
}

static float score_of(const int16_t *pixel, int n)
{
	struct rig_frame frame;
	struct sl_verdict verdict;
	struct rig rig;

	open_rig(&rig, "0");
	make(&frame, pixel, n);
	verdict = judge(&rig, &frame);
	rig_close(&rig);
	return verdict.score;
}

static void test_as_many_photons_as_asked_for_are_enough(void **arg)
{
	struct rig rig;

	open_rig(&rig, "100");
	for (int16_t photons = 98; photons <= 102; photons++) {
		struct rig_frame frame;
		struct sl_verdict verdict;

		make(&frame, (const int16_t[]){40, (int16_t)(photons - 40)}, 2);
		verdict = judge(&rig, &frame);
		assert_int_equal(verdict.keep, photons >= 100);
		assert_true(verdict.score == (float)photons);
		assert_int_equal(verdict.reason, SL_REASON_SCORE);
	}
	rig_close(&rig);
}

static void test_negative_pixels_and_overloads_count_and_bad_ones_do_not(void **arg)
{
	assert_true(score_of((const int16_t[]){10, -4, 3}, 3) == 9);
	assert_true(score_of((const int16_t[]){INT16_MAX, 1}, 2) == 32768);
	assert_true(score_of((const int16_t[]){INT16_MIN, 7, INT16_MIN}, 3) == 7);
}

static void test_less_than_nothing_is_not_enough(void **arg)
{
	struct rig_frame frame;
	struct rig rig;

	open_rig(&rig, "0");
	make(&frame, (const int16_t[]){-1}, 1);
	assert_int_equal(judge(&rig, &frame).keep, 0);
	rig_close(&rig);
}

static void test_dark_frames_stay_as_they_are(void **arg)
{
	struct rig_frame frame;
	struct sl_verdict verdict;
	struct rig rig;

	open_rig(&rig, "100");
	rig_frame_init(&frame, true); /* its image was never written */
	frame.verdict = (struct sl_verdict){.keep = 1, .reason = SL_REASON_DARK, .score = 3};
	verdict = judge(&rig, &frame);
	assert_int_equal(verdict.keep, 1);
	assert_int_equal(verdict.reason, SL_REASON_DARK);
	assert_true(verdict.score == 3);
	rig_close(&rig);
}

static void test_an_earlier_no_stands(void **arg)
{
	struct rig_frame frame;
	struct sl_verdict verdict;
	struct rig rig;

	open_rig(&rig, "100");
	make(&frame, (const int16_t[]){1000}, 1);
	frame.verdict =
		(struct sl_verdict){.keep = 0, .reason = SL_REASON_BRIGHT_PIXELS, .score = 5};
	verdict = judge(&rig, &frame);
	assert_int_equal(verdict.keep, 0);
	assert_int_equal(verdict.reason, SL_REASON_BRIGHT_PIXELS);
	assert_true(verdict.score == 5);
	rig_close(&rig);
}

static void test_frames_of_a_batch_are_judged_apart(void **arg)
{
	struct rig_frame frames[RIG_BATCH];
	struct rig rig;

	open_rig(&rig, "16");
	for (int16_t f = 0; f < RIG_BATCH; f++)
		make(&frames[f], &f, 1);
	rig_batch(&rig, frames, RIG_BATCH, 13, 5);
	for (int f = 0; f < RIG_BATCH; f++) {
		assert_true(frames[f].verdict.score == (float)f);
		assert_int_equal(frames[f].verdict.keep, f >= 16);
		rig_frame_fini(&frames[f]);
	}
	rig_close(&rig);
}

/* More photons in one tile than 32 bits hold. */
static void test_a_large_bright_tile_is_counted_in_full(void **arg)
{
	enum { PIXELS = 200000 };
	int16_t *pixel = malloc(PIXELS * sizeof(*pixel));
	struct rig_frame frame;
	struct sl_frame *pointer = &frame.frame;
	struct sl_batch batch = {.frame = &pointer, .frames = 1, .capacity = 1};
	const void *in = pixel;
	struct sl_tile tile = {0, 0, PIXELS, &in, NULL};
	struct rig rig;

	for (int i = 0; i < PIXELS; i++)
		pixel[i] = 32767;
	open_rig(&rig, "6553400000");
	rig_frame_init(&frame, false);
	rig_init_views(&rig, &frame);
	rig.ops->tile(rig.state, rig.scratch[0], &batch, &tile);
	rig.ops->finish(rig.state, rig.scratch, 1, &batch);
	assert_true(frame.verdict.score == 6553400000.f);
	assert_int_equal(frame.verdict.keep, 1);
	rig_frame_fini(&frame);
	rig_close(&rig);
	free(pixel);
}

static void test_every_item_gets_the_verdict(void **arg)
{
	struct sl_verdict verdicts[3] = {{.keep = 1}, {.keep = 1}, {.keep = 1}};
	struct rig_frame frame;
	struct rig rig;

	make(&frame, (const int16_t[]){99}, 1);
	frame.frame.items = 3;
	frame.frame.verdict = verdicts;
	open_rig(&rig, "100");
	rig_batch(&rig, &frame, 1, 64, 1);
	for (int i = 0; i < 3; i++)
		assert_true(verdicts[i].keep == 0 && verdicts[i].score == 99);
	rig_frame_fini(&frame);
	rig_close(&rig);
}

/* ---- the rules ---- */

static void make_frames(struct rig_frame *frames)
{
	for (int f = 0; f < FRAMES; f++) {
		uint64_t seed = (uint64_t)f + 1;
		int16_t *pixel;

		rig_frame_init(&frames[f], f * 7 % 11 < 4);
		pixel = frames[f].in;
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint32_t bits = rig_random(&seed);

			pixel[i] = (int16_t)(bits % 64 ? bits % 5 : bits);
		}
	}
}

static void run(struct rig_frame *frames, uint32_t batch, uint32_t tile, unsigned workers)
{
	struct rig rig;

	open_rig(&rig, "2000");
	make_frames(frames);
	rig_run(&rig, frames, FRAMES, batch, tile, workers);
	for (int f = 0; f < FRAMES; f++)
		rig_check_canaries(&rig, &frames[f]);
	rig_close(&rig);
}

static void test_results_do_not_depend_on_tiles_batches_or_workers(void **arg)
{
	static const struct {
		uint32_t batch, tile;
		unsigned workers;
	} cuts[] = {{1, 64, 1}, {2, 100, 1},  {5, 1, 3},
		    {24, 7, 2}, {24, 304, 8}, {7, RIG_MODULE_PIXELS, 4}};
	struct rig_frame want[FRAMES], have[FRAMES];
	int kept = 0;

	run(want, 1, RIG_MODULE_PIXELS, 1);
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		run(have, cuts[c].batch, cuts[c].tile, cuts[c].workers);
		for (int f = 0; f < FRAMES; f++) {
			assert_memory_equal(&want[f].verdict, &have[f].verdict,
					    sizeof(want[f].verdict));
			assert_memory_equal(want[f].frame.result[0].host,
					    have[f].frame.result[0].host,
					    RIG_MODULES * sizeof(int64_t));
			assert_memory_equal(want[f].in_memory, have[f].in_memory,
					    (RIG_PIXELS + 2 * RIG_CANARY) * 4);
			rig_frame_fini(&have[f]);
		}
	}
	for (int f = 0; f < FRAMES; f++) {
		kept += want[f].verdict.keep;
		rig_frame_fini(&want[f]);
	}
	assert_true(kept > 0 && kept < FRAMES); /* the threshold lies between them */
}

static void test_input_is_left_alone(void **arg)
{
	struct rig_frame frames[FRAMES], fresh[FRAMES];

	run(frames, 4, 50, 2);
	make_frames(fresh);
	for (int f = 0; f < FRAMES; f++) {
		assert_memory_equal(frames[f].in_memory, fresh[f].in_memory,
				    (RIG_PIXELS + 2 * RIG_CANARY) * 4);
		rig_frame_fini(&frames[f]);
		rig_frame_fini(&fresh[f]);
	}
}

static void test_an_empty_batch_is_harmless(void **arg)
{
	struct rig rig;

	open_rig(&rig, "1");
	rig_batch(&rig, NULL, 0, RIG_MODULE_PIXELS, 2);
	rig_close(&rig);
}

static void test_other_types_are_refused_by_name(void **arg)
{
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		const char *said;
		struct rig rig;
		int err;

		if (dtype == SL_I16)
			continue;
		rig_init(&rig, blank, (enum sl_dtype)dtype);
		capture_begin();
		err = rig_try_open(&rig);
		said = capture_end();
		assert_int_equal(err, -EINVAL);
		assert_non_null(strstr(said, "blank"));
		assert_non_null(strstr(said, sl_dtype_name((enum sl_dtype)dtype)));
		rig_close(&rig); /* also when open() failed */
	}
}

static void test_the_sum_of_each_module_is_a_result(void **arg)
{
	struct rig_frame frame;
	const int64_t *sum;
	struct rig rig;

	open_rig(&rig, "1000");
	assert_int_equal(rig.terms.outputs, 1);
	assert_string_equal(rig.out.name, "module_photons");
	assert_int_equal(rig.out.dtype, SL_I64);
	assert_true(rig.out.rank == 1 && rig.out.dim[0] == RIG_MODULES);
	make(&frame, (const int16_t[]){5, 70}, 2); /* the first pixel and the last */
	rig_batch(&rig, &frame, 1, 64, 3);
	sum = frame.frame.result[rig.terms.result].host;
	assert_int_equal(sum[0], 5); /* also of a frame that is rejected */
	assert_int_equal(sum[1], 70);
	rig_check_canaries(&rig, &frame);
	rig_frame_fini(&frame);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_many_photons_as_asked_for_are_enough),
		cmocka_unit_test(test_negative_pixels_and_overloads_count_and_bad_ones_do_not),
		cmocka_unit_test(test_less_than_nothing_is_not_enough),
		cmocka_unit_test(test_dark_frames_stay_as_they_are),
		cmocka_unit_test(test_an_earlier_no_stands),
		cmocka_unit_test(test_frames_of_a_batch_are_judged_apart),
		cmocka_unit_test(test_a_large_bright_tile_is_counted_in_full),
		cmocka_unit_test(test_every_item_gets_the_verdict),
		cmocka_unit_test(test_results_do_not_depend_on_tiles_batches_or_workers),
		cmocka_unit_test(test_input_is_left_alone),
		cmocka_unit_test(test_an_empty_batch_is_harmless),
		cmocka_unit_test(test_other_types_are_refused_by_name),
		cmocka_unit_test(test_the_sum_of_each_module_is_a_result),
	};

	return cmocka_run_group_tests_name("the stage of docs/tutorials/write-a-stage.md", tests,
					   NULL, NULL);
}
