/* camera_test.c - droplets are where the truth says, in images of any size and depth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sluice/detector.h>

extern const struct sl_detector sl_detector_camera;
static const struct sl_detector *const ops = &sl_detector_camera;

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

static void test_the_default_is_512_by_512_by_8_bit(void **arg)
{
	struct subject s = subject_open(1, NULL);

	assert_int_equal(s.geometry.module_bytes, 512 * 512);
	assert_int_equal(s.geometry.dtype, SL_U8);
	assert_true(ops->rate_Hz == 5000);
	subject_close(&s);
}

static void test_pixels_have_the_bits_asked_for(void **arg)
{
	static const char *const bits[] = {"8", "10", "12", "14", "16"};

	for (int b = 0; b < 5; b++) {
		const char *settings[] = {"bits", bits[b], "width", "200", "height", "90", NULL};
		struct subject s = subject_open(1, settings);
		uint32_t most = 0, full = (1u << atoi(bits[b])) - 1, pixels = 200 * 90;
		const void *raw = subject_render(&s, 4, 0, 0);

		assert_int_equal(s.geometry.module_bytes, b ? 2 * pixels : pixels);
		for (uint32_t i = 0; i < pixels; i++) {
			uint32_t x = b ? ((const uint16_t *)raw)[i] : ((const uint8_t *)raw)[i];

			most = x > most ? x : most;
		}
		assert_true(most <= full && most > full / 2);
		subject_close(&s);
	}
}

/* Inside a droplet it is brighter or darker than there without it. */
static void test_truth_says_where_droplets_are(void **arg)
{
	const char *const with[] = {"bits", "12", "droplets", "5", "noise", "0.002", NULL};
	const char *const without[] = {"bits", "12", "droplets", "0", "noise", "0.002", NULL};
	struct subject s = subject_open(2, with), empty = subject_open(2, without);
	int seen = 0;

	for (uint64_t frame = 0; frame < 31; frame++) {
		double table[10][5];
		uint32_t rows = ops->truth_rows(s.state, frame, 0, table[0], 10);

		for (uint32_t i = 0; i < rows; i++) {
			uint32_t module = (uint32_t)table[i][2];
			const uint16_t *raw = subject_render(&s, frame, module, 0);
			const uint16_t *was = subject_render(&empty, frame, module, 0);
			int r = (int)table[i][0] - 512 * (int)module, c = (int)table[i][1];
			double change = 0;

			assert_true(r >= 0 && r < 512 && c >= 0 && c < 512);
			if (r < 4 || r > 507 || c < 4 || c > 507)
				continue;
			for (int n = 0; n < 49; n++) {
				int at = (r - 3 + n / 7) * 512 + c - 3 + n % 7;

				change += (raw[at] - was[at]) / 49. / 4095;
			}
			assert_true(table[i][4] > 0 ? change > 0.1 : change < 0.1);
			assert_true(table[i][3] > 5 && table[i][3] < 40);
			seen++;
		}
	}
	assert_true(seen > 50);
	subject_close(&s);
	subject_close(&empty);
}

/* Droplets move from frame to frame, and the last one leads to the first. */
static void test_droplets_fly(void **arg)
{
	const char *const settings[] = {"droplets", "1", NULL};
	struct subject s = subject_open(1, settings);
	double before[5], now[5];
	int moved = 0, hits = 0;

	for (uint64_t frame = 0; frame < 62; frame++) {
		struct sl_truth truth;

		ops->truth(s.state, frame, 0, &truth);
		hits += truth.hit;
		if (!ops->truth_rows(s.state, frame, 0, before, 1) ||
		    !ops->truth_rows(s.state, frame + 1, 0, now, 1))
			continue;
		/* 1.6 image widths in 31 frames. */
		assert_true(fabs(fabs(now[1] - before[1]) - 512 * 1.6 / 31) < 1e-6);
		moved++;
	}
	assert_true(moved > 20 && hits < 62);
	subject_close(&s);
}

static void test_dark_frames_are_dark(void **arg)
{
	struct subject s = subject_open(1, NULL);
	const uint8_t *raw = subject_render(&s, 0, 0, SL_RECORD_DARK);
	double sum = 0;

	for (int i = 0; i < 512 * 512; i++)
		sum += raw[i];
	assert_true(fabs(sum / (512 * 512) - 0.03 * 255) < 0.5);
	subject_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_default_is_512_by_512_by_8_bit),
		cmocka_unit_test(test_pixels_have_the_bits_asked_for),
		cmocka_unit_test(test_truth_says_where_droplets_are),
		cmocka_unit_test(test_droplets_fly),
		cmocka_unit_test(test_dark_frames_are_dark),
	};

	return cmocka_run_group_tests_name("camera", tests, NULL, NULL);
}
