/* eiger_test.c - a counter counts photons, up to its highest number, and nothing but them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sluice/detector.h>

extern const struct sl_detector sl_detector_eiger;
static const struct sl_detector *const ops = &sl_detector_eiger;

enum { PIXELS = 512 * 1024 };

struct subject {
	void *state;
	struct sl_geometry geometry;
};

/* settings: name, value, ..., NULL */
static struct subject subject_open(uint32_t modules, const char *const *settings)
{
	struct sl_detector_options run = {.modules = modules, .frames = 100, .seed = 2};
	struct subject s = {.state = calloc(1, ops->state_bytes)};
	char why[128];

	sl_options_defaults(ops->options, s.state);
	for (; settings && *settings; settings += 2)
		assert_int_equal(sl_option_set(sl_option_find(ops->options, settings[0]), s.state,
					       settings[1], why, sizeof(why)),
				 0);
	assert_int_equal(ops->open(s.state, &run, &s.geometry), 0);
	return s;
}

static void subject_close(struct subject *s)
{
	ops->close(s->state);
	free(s->state);
}

static const void *subject_render(struct subject *s, uint64_t frame, uint32_t module,
				  uint32_t flags)
{
	const void *pixels;

	assert_int_equal(ops->render(s->state, frame, module, flags, NULL, &pixels), 0);
	return pixels;
}

/* The same photons in counters of all widths. */
static void test_counters_end_at_their_highest_number(void **arg)
{
	const char *const b8[] = {"bits", "8", "hit_fraction", "1", "spot_photons", "3e5", NULL};
	const char *const b16[] = {"bits", "16", "hit_fraction", "1", "spot_photons", "3e5", NULL};
	const char *const b32[] = {"bits", "32", "hit_fraction", "1", "spot_photons", "3e5", NULL};
	struct subject a = subject_open(1, b8), b = subject_open(1, b16), c = subject_open(1, b32);
	const uint8_t *x = subject_render(&a, 3, 0, 0);
	const uint16_t *y = subject_render(&b, 3, 0, 0);
	const uint32_t *z = subject_render(&c, 3, 0, 0);
	int full8 = 0, full16 = 0;

	assert_int_equal(a.geometry.dtype, SL_U8);
	assert_int_equal(b.geometry.module_bytes, 2 * PIXELS);
	assert_int_equal(c.geometry.bit_depth, 32);
	for (int i = 0; i < PIXELS; i++) {
		assert_int_equal(x[i], z[i] < 255 ? z[i] : 255);
		assert_int_equal(y[i], z[i] < 65535 ? z[i] : 65535);
		full8 += x[i] == 255;
		full16 += y[i] == 65535;
	}
	assert_true(full16 > 10 && full8 > full16);
	subject_close(&a);
	subject_close(&b);
	subject_close(&c);
}

/* 4 bits have a byte of their own, 12 two. */
static void test_packed_counters_are_whole_bytes(void **arg)
{
	const char *const b4[] = {"hit_fraction", "1", "spot_photons", "3e5", "bits", "4", NULL};
	const char *const b12[] = {"hit_fraction", "1", "spot_photons", "3e5", "bits", "12", NULL};
	const char *const b32[] = {"hit_fraction", "1", "spot_photons", "3e5", "bits", "32", NULL};
	struct subject a = subject_open(1, b4), b = subject_open(1, b12), c = subject_open(1, b32);
	const uint8_t *x = subject_render(&a, 3, 0, 0);
	const uint16_t *y = subject_render(&b, 3, 0, 0);
	const uint32_t *z = subject_render(&c, 3, 0, 0);
	int full4 = 0, full12 = 0;

	assert_int_equal(a.geometry.dtype, SL_U8);
	assert_int_equal(a.geometry.bit_depth, 4);
	assert_int_equal(a.geometry.module_bytes, PIXELS);
	assert_int_equal(b.geometry.dtype, SL_U16);
	assert_int_equal(b.geometry.bit_depth, 12);
	assert_int_equal(b.geometry.module_bytes, 2 * PIXELS);
	for (int i = 0; i < PIXELS; i++) {
		assert_int_equal(x[i], z[i] < 15 ? z[i] : 15);
		assert_int_equal(y[i], z[i] < 4095 ? z[i] : 4095);
		full4 += x[i] == 15;
		full12 += y[i] == 4095;
	}
	assert_true(full12 > 10 && full4 > full12);
	subject_close(&a);
	subject_close(&b);
	subject_close(&c);
}

static void test_dark_frames_have_next_to_nothing(void **arg)
{
	struct subject s = subject_open(1, NULL);
	const uint16_t *raw = subject_render(&s, 0, 0, SL_RECORD_DARK);
	int ones = 0, more = 0;

	for (int i = 0; i < PIXELS; i++) {
		ones += raw[i] == 1;
		more += raw[i] > 1;
	}
	assert_true(ones > 20 && ones < 100);
	assert_true(more <= 12); /* noisy pixels */
	subject_close(&s);
}

static void test_there_is_a_background_and_noisy_pixels(void **arg)
{
	const char *const settings[] = {"background_photons", "4", "hit_fraction", "0", NULL};
	struct subject s = subject_open(1, settings);
	const uint16_t *first = subject_render(&s, 0, 0, 0), *second = subject_render(&s, 1, 0, 0);
	int noisy = 0, n = 0;
	double sum = 0;

	for (int i = 0; i < PIXELS; i++) {
		noisy += first[i] > 100 && second[i] > 100;
		if (first[i] > 100)
			continue;
		sum += first[i];
		n++;
	}
	assert_true(sum / n > 1.5 && sum / n < 4);
	assert_true(noisy >= 10 && noisy <= 12);
	subject_close(&s);
}

/* The default veto on counts: hits stand out. */
static void test_hits_are_far_from_blanks(void **arg)
{
	struct subject s = subject_open(2, NULL);
	int hits = 0;

	for (uint64_t frame = 0; frame < 31; frame++) {
		uint32_t bright = 0, noisy = 0;
		struct sl_truth truth;

		for (uint32_t module = 0; module < 2; module++) {
			const uint16_t *raw = subject_render(&s, frame, module, 0);
			const uint16_t *dark = subject_render(&s, 0, module, SL_RECORD_DARK);

			for (int i = 0; i < PIXELS; i++) {
				bright += raw[i] >= 10 && dark[i] < 2;
				noisy += raw[i] >= 10 && dark[i] >= 2;
			}
		}
		ops->truth(s.state, frame, 0, &truth);
		hits += truth.hit;
		assert_true(truth.hit ? bright >= 100 : bright <= 6);
		assert_true(noisy <= 24);
	}
	assert_int_equal(hits, 2);
	subject_close(&s);
}

static void test_truth_points_at_bright_pixels(void **arg)
{
	const char *const settings[] = {"hit_fraction", "1", "bits", "32", NULL};
	struct subject s = subject_open(8, settings);
	double table[200][9];
	uint32_t rows = ops->truth_rows(s.state, 2, 0, table[0], 200);

	assert_true(rows >= 30);
	for (uint32_t i = 0; i < rows; i++) {
		const uint32_t *raw = subject_render(&s, 2, (uint32_t)table[i][2], 0);
		uint32_t pixel = (uint32_t)(table[i][3] * 1024 + table[i][4]);

		assert_true(raw[pixel] > table[i][5] / 30 - 3);
	}
	subject_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_end_at_their_highest_number),
		cmocka_unit_test(test_packed_counters_are_whole_bytes),
		cmocka_unit_test(test_dark_frames_have_next_to_nothing),
		cmocka_unit_test(test_there_is_a_background_and_noisy_pixels),
		cmocka_unit_test(test_hits_are_far_from_blanks),
		cmocka_unit_test(test_truth_points_at_bright_pixels),
	};

	return cmocka_run_group_tests_name("eiger", tests, NULL, NULL);
}
