/* veto_test.c - which pixels count, and what is made of the count. */
#include <errno.h>
#include <math.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_veto;

static void open_rig(struct rig *rig, enum sl_dtype dtype, const char *threshold,
		     const char *min_pixels)
{
	rig_init(rig, &sl_stage_veto, dtype);
	rig_set(rig, "threshold", threshold);
	rig_set(rig, "min_pixels", min_pixels);
	rig_open(rig);
}

static struct sl_verdict judge(struct rig *rig, struct rig_frame *frame)
{
	struct sl_verdict verdict;

	rig_batch(rig, frame, 1, 64, 3);
	verdict = frame->verdict;
	rig_frame_fini(frame);
	return verdict;
}

/* A frame of zeros with these pixels, spread over both modules. */
static void make_i16(struct rig_frame *frame, const int16_t *pixel, int n)
{
	rig_frame_init(frame, false);
	memset(frame->in, 0, RIG_PIXELS * sizeof(int16_t));
	for (int i = 0; i < n; i++)
		((int16_t *)frame->in)[i * (RIG_PIXELS - 1) / (n > 1 ? n - 1 : 1)] = pixel[i];
}

static void make_f32(struct rig_frame *frame, const float *pixel, int n)
{
	rig_frame_init(frame, false);
	memset(frame->in, 0, RIG_PIXELS * sizeof(float));
	for (int i = 0; i < n; i++)
		((float *)frame->in)[i * (RIG_PIXELS - 1) / (n > 1 ? n - 1 : 1)] = pixel[i];
}

static float score_i16(const char *threshold, const int16_t *pixel, int n)
{
	struct rig_frame frame;
	struct sl_verdict verdict;
	struct rig rig;

	make_i16(&frame, pixel, n);
	open_rig(&rig, SL_I16, threshold, "1");
	verdict = judge(&rig, &frame);
	rig_close(&rig);
	return verdict.score;
}

static void test_the_threshold_itself_counts(void **arg)
{
	const int16_t pixel[] = {9, 10, 11, -10, 8};

	assert_true(score_i16("10", pixel, 5) == 2);
	assert_true(score_i16("9", pixel, 5) == 3);
	assert_true(score_i16("32766", pixel, 5) == 0);
}

static void test_overloads_count_and_bad_pixels_do_not(void **arg)
{
	const int16_t pixel[] = {INT16_MAX, INT16_MIN, INT16_MAX - 1, INT16_MIN + 1};

	assert_true(score_i16("10", pixel, 4) == 2);
	assert_true(score_i16("32766", pixel, 4) == 2);
}

static void test_kev_are_compared_with_photons_of_the_energy(void **arg)
{
	const float pixel[] = {124, 123.9f, 1e30f, -124};
	struct rig_frame frame;
	struct rig rig;

	make_f32(&frame, pixel, 4);
	open_rig(&rig, SL_F32, "10", "2");
	assert_true(judge(&rig, &frame).score == 2);
	rig_close(&rig);
}

static void test_infinity_counts_and_nan_does_not(void **arg)
{
	const float pixel[] = {INFINITY, NAN, -INFINITY, -NAN};
	struct rig_frame frame;
	struct rig rig;

	make_f32(&frame, pixel, 4);
	open_rig(&rig, SL_F32, "10", "2");
	assert_true(judge(&rig, &frame).score == 1);
	rig_close(&rig);
}

static void test_min_pixels_itself_is_enough(void **arg)
{
	int16_t pixel[20];
	struct rig rig;

	for (int i = 0; i < 20; i++)
		pixel[i] = 50;
	open_rig(&rig, SL_I16, "10", "20");
	for (int n = 18; n <= 20; n++) {
		struct rig_frame frame;
		struct sl_verdict verdict;

		make_i16(&frame, pixel, n);
		verdict = judge(&rig, &frame);
		assert_int_equal(verdict.keep, n >= 20);
		assert_true(verdict.score == (float)n);
		assert_int_equal(verdict.reason, SL_REASON_BRIGHT_PIXELS);
	}
	rig_close(&rig);
}

static void test_zero_min_pixels_keeps_everything(void **arg)
{
	struct rig_frame frame;
	struct rig rig;

	make_i16(&frame, NULL, 0);
	open_rig(&rig, SL_I16, "10", "0");
	assert_int_equal(judge(&rig, &frame).keep, 1);
	rig_close(&rig);
}

/* What `correct` said about a dark frame stands; its image was never written. */
static void test_dark_frames_stay_as_they_are(void **arg)
{
	struct rig_frame frame;
	struct sl_verdict verdict;
	struct rig rig;

	open_rig(&rig, SL_I16, "10", "1");
	rig_frame_init(&frame, true);
	frame.verdict = (struct sl_verdict){.keep = 0, .reason = SL_REASON_DARK, .score = 3};
	verdict = judge(&rig, &frame);
	assert_int_equal(verdict.keep, 0);
	assert_int_equal(verdict.reason, SL_REASON_DARK);
	assert_true(verdict.score == 3);
	rig_close(&rig);
}

static void test_frames_of_a_batch_are_judged_apart(void **arg)
{
	struct rig_frame frames[RIG_BATCH];
	struct rig rig;

	open_rig(&rig, SL_I16, "10", "16");
	for (int f = 0; f < RIG_BATCH; f++) {
		int16_t pixel[RIG_BATCH];

		for (int i = 0; i < f; i++)
			pixel[i] = 10;
		make_i16(&frames[f], pixel, f);
	}
	rig_batch(&rig, frames, RIG_BATCH, 13, 5);
	for (int f = 0; f < RIG_BATCH; f++) {
		assert_true(frames[f].verdict.score == (float)f);
		assert_int_equal(frames[f].verdict.keep, f >= 16);
		rig_frame_fini(&frames[f]);
	}
	rig_close(&rig);
}

static void test_random_images_against_a_plain_count(void **arg)
{
	uint64_t seed = 42;
	struct rig rig;

	open_rig(&rig, SL_I16, "10", "20");
	for (int round = 0; round < 50; round++) {
		struct rig_frame frame;
		int16_t *pixel;
		int count = 0;

		rig_frame_init(&frame, false);
		pixel = frame.in;
		for (int i = 0; i < RIG_PIXELS; i++) {
			pixel[i] = (int16_t)rig_random(&seed);
			count += pixel[i] != INT16_MIN && pixel[i] >= 10;
		}
		assert_true(judge(&rig, &frame).score == (float)count);
	}
	rig_close(&rig);
}

/* Far more bright pixels in one tile than 16 bits can count. */
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
		pixel[i] = 100;
	open_rig(&rig, SL_I16, "10", "1");
	rig_frame_init(&frame, false);
	rig.ops->tile(rig.state, rig.scratch[0], &batch, &tile);
	rig.ops->finish(rig.state, rig.scratch, 1, &batch);
	assert_true(frame.verdict.score == PIXELS);
	rig_frame_fini(&frame);
	rig_close(&rig);
	free(pixel);
}

static void test_every_item_gets_the_verdict(void **arg)
{
	struct sl_verdict verdicts[3] = {{.keep = 1}, {.keep = 1}, {.keep = 1}};
	struct rig_frame frame;
	struct rig rig;

	make_i16(&frame, (const int16_t[]){99}, 1);
	frame.frame.items = 3;
	frame.frame.verdict = verdicts;
	open_rig(&rig, SL_I16, "10", "1");
	rig_batch(&rig, &frame, 1, 64, 1);
	for (int i = 0; i < 3; i++)
		assert_true(verdicts[i].keep == 1 && verdicts[i].score == 1);
	rig_frame_fini(&frame);
	rig_close(&rig);
}

/* Where the detector counts: at least the threshold, and not the largest number, which is none. */
static void test_counts_of_counting_detectors(void **arg)
{
	static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32};

	for (int t = 0; t < 3; t++) {
		static const uint32_t none[] = {UINT8_MAX, UINT16_MAX, UINT32_MAX};
		struct rig_frame frame;
		struct rig rig;

		rig_frame_init(&frame, false);
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint32_t v = i % 5 == 0	  ? none[t]
				     : i % 5 == 1 ? 99
				     : i % 5 == 2 ? 100
						  : 101;

			if (types[t] == SL_U8)
				((uint8_t *)frame.in)[i] = (uint8_t)v;
			else if (types[t] == SL_U16)
				((uint16_t *)frame.in)[i] = (uint16_t)v;
			else
				((uint32_t *)frame.in)[i] = v;
		}
		open_rig(&rig, types[t], "100", "1");
		rig_batch(&rig, &frame, 1, 64, 2);
		assert_true(frame.verdict.score == RIG_PIXELS / 5 * 3);
		rig_frame_fini(&frame);
		rig_close(&rig);
	}
}

static void test_kev_without_a_photon_energy_are_refused(void **arg)
{
	const char *said;
	struct rig rig;
	int err;

	rig_init(&rig, &sl_stage_veto, SL_F32);
	rig.geometry.photon_energy_keV = 0;
	capture_begin();
	err = rig_try_open(&rig);
	said = capture_end();
	assert_int_equal(err, -EINVAL);
	assert_non_null(strstr(said, "photon energy"));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_threshold_itself_counts),
		cmocka_unit_test(test_overloads_count_and_bad_pixels_do_not),
		cmocka_unit_test(test_kev_are_compared_with_photons_of_the_energy),
		cmocka_unit_test(test_infinity_counts_and_nan_does_not),
		cmocka_unit_test(test_min_pixels_itself_is_enough),
		cmocka_unit_test(test_zero_min_pixels_keeps_everything),
		cmocka_unit_test(test_dark_frames_stay_as_they_are),
		cmocka_unit_test(test_frames_of_a_batch_are_judged_apart),
		cmocka_unit_test(test_random_images_against_a_plain_count),
		cmocka_unit_test(test_a_large_bright_tile_is_counted_in_full),
		cmocka_unit_test(test_every_item_gets_the_verdict),
		cmocka_unit_test(test_counts_of_counting_detectors),
		cmocka_unit_test(test_kev_without_a_photon_energy_are_refused),
	};

	return cmocka_run_group_tests_name("veto", tests, NULL, NULL);
}
