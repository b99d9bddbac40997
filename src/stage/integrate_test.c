/* integrate_test.c - profiles equal those of the plainest loop in double precision, whatever the
 * type of pixels, tiles and workers; what cannot be integrated is refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_integrate;

enum { FRAMES = 5, BINS = 37 };

static void fill_pixel(enum sl_dtype dtype, void *pixels, int i, uint32_t draw)
{
	static const uint32_t special[] = {INT16_MAX, (uint16_t)INT16_MIN};
	bool bad = draw % 50 == 0;

	switch (dtype) {
	case SL_U8:
		((uint8_t *)pixels)[i] = bad ? UINT8_MAX : (uint8_t)(draw >> 8) % 255;
		break;
	case SL_U16:
		((uint16_t *)pixels)[i] = bad ? UINT16_MAX : (uint16_t)((draw >> 8) % 65535);
		break;
	case SL_U32:
		((uint32_t *)pixels)[i] = bad ? UINT32_MAX : draw * 2654435761u % UINT32_MAX;
		break;
	case SL_I16:
		((int16_t *)pixels)[i] = bad ? (int16_t)special[draw >> 8 & 1]
					     : (int16_t)((int)((draw >> 8) % 65000) - 32500);
		break;
	default:
		((float *)pixels)[i] = bad ? (draw >> 8 & 1 ? NAN : INFINITY)
					   : (float)(draw >> 8) * 1e-3f;
	}
}

/* Its value; NaN: not valid. */
static double value_of(enum sl_dtype dtype, const void *pixels, int i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i] == UINT8_MAX ? NAN
								 : ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i] == UINT16_MAX ? NAN
								   : ((const uint16_t *)pixels)[i];
	case SL_U32:
		return ((const uint32_t *)pixels)[i] == UINT32_MAX ? NAN
								   : ((const uint32_t *)pixels)[i];
	case SL_I16: {
		int16_t v = ((const int16_t *)pixels)[i];

		return v == INT16_MIN || v == INT16_MAX ? NAN : v;
	}
	default:
		return isfinite(((const float *)pixels)[i]) ? ((const float *)pixels)[i] : NAN;
	}
}

/* Two modules one below the other, the beam through the middle of the whole: written here anew. */
static void oracle(const struct rig *rig, double high, const void *pixels, const uint8_t *mask,
		   double *middle, double *intensity, double *sigma)
{
	double signal[BINS] = {0}, norm[BINS] = {0}, photon = rig->in.dtype == SL_F32 ? 12.4 : 1;
	double lambda = 1.2398419843320026 / 12.4;

	for (int i = 0; i < RIG_PIXELS; i++) {
		double y = i / RIG_COLUMNS + 0.5 - RIG_MODULES * RIG_ROWS / 2.;
		double x = i % RIG_COLUMNS + 0.5 - RIG_COLUMNS / 2.;
		double tth =
			atan(hypot(x, y) * rig->geometry.pixel_size_m / rig->geometry.distance_m);
		double q = 4 * M_PI / lambda * sin(tth / 2), c = cos(tth), chi = atan2(y, x);
		int bin = (int)floor(q / high * BINS);
		double v = value_of(rig->in.dtype, pixels, i);

		if (bin >= BINS || isnan(v) || (mask && mask[i]))
			continue;
		signal[bin] += v;
		norm[bin] += c * c * c * 0.5 * (1 + c * c - 0.9 * cos(2 * chi) * (1 - c * c));
	}
	for (int b = 0; b < BINS; b++) {
		middle[b] = (b + 0.5) * high / BINS;
		intensity[b] = signal[b] / norm[b];
		sigma[b] = sqrt(fabs(signal[b]) * photon) / norm[b];
	}
}

static void rig_for(struct rig *rig, enum sl_dtype dtype)
{
	rig_init(rig, &sl_stage_integrate, dtype);
	rig->geometry.pixel_size_m = 75e-6;
	rig->geometry.distance_m = 0.002; /* large angles */
	rig_set(rig, "bins", "37");
	rig_set(rig, "high", "20");
	rig_set(rig, "polarisation", "0.9");
}

static bool near(double have, double want)
{
	return isnan(want) ? isnan(have) : fabs(have - want) <= 1e-6 * fabs(want) + 1e-30;
}

static void check_frame(struct rig *rig, struct rig_frame *frame, const float *profile,
			const uint8_t *mask)
{
	double middle[BINS], intensity[BINS], sigma[BINS];
	int empty = 0;

	oracle(rig, 20, frame->in, mask, middle, intensity, sigma);
	for (int b = 0; b < BINS; b++) {
		assert_true(near(profile[b], middle[b]));
		assert_true(near(profile[BINS + b], intensity[b]));
		assert_true(near(profile[2 * BINS + b], sigma[b]));
		empty += isnan(intensity[b]);
	}
	assert_true(empty < BINS / 2);
}

static void profiles_are_those_of_the_plain_loop(void **arg)
{
	static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
	static const uint32_t tiles[] = {1, 7, 64, 100, RIG_MODULE_PIXELS};
	static uint8_t mask[RIG_PIXELS];
	static float profile[FRAMES][3 * BINS];

	(void)arg;
	for (int i = 0; i < RIG_PIXELS; i++)
		mask[i] = i % 13 == 5;
	for (unsigned n = 0; n < 5 * 5 * 2; n++) {
		struct rig rig;
		struct rig_frame frames[FRAMES];

		rig_for(&rig, types[n % 5]);
		rig.calibration.mask = n / 25 ? mask : NULL;
		rig_open(&rig);
		assert_string_equal(rig.out.name, "profile");
		for (int f = 0; f < FRAMES; f++) {
			rig_frame_init(&frames[f], false);
			frames[f].frame.result[0].host = profile[f];
			for (int i = 0; i < RIG_PIXELS; i++)
				fill_pixel(types[n % 5], frames[f].in, i,
					   (uint32_t)(i + f * 77777) * 2654435761u >> 3);
		}
		rig_run(&rig, frames, FRAMES, 3, tiles[n / 5 % 5], 1 + n % 2);
		for (int f = 0; f < FRAMES; f++) {
			check_frame(&rig, &frames[f], profile[f], rig.calibration.mask);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
	}
}

static void a_bin_without_a_valid_pixel_is_nan_and_others_are_not(void **arg)
{
	static float profile[3 * BINS];
	struct rig_frame frame;
	struct rig rig;

	(void)arg;
	rig_for(&rig, SL_I16);
	rig_open(&rig);
	rig_frame_init(&frame, false);
	frame.frame.result[0].host = profile;
	for (int i = 0; i < RIG_PIXELS; i++)
		((int16_t *)frame.in)[i] = INT16_MIN;
	rig_run(&rig, &frame, 1, 1, 64, 1);
	for (int b = 0; b < BINS; b++)
		assert_true(isnan(profile[BINS + b]) && isnan(profile[2 * BINS + b]));
	rig_frame_fini(&frame);
	rig_close(&rig);
}

static void what_cannot_be_is_refused(void **arg)
{
	static const struct {
		const char *option, *value;
		double distance, energy, pixel;
		const char *words;
	} bad[] = {
		{"bins", "10", 0, 12.4, 75e-6, "distance_m"},
		{"bins", "10", 0.1, 0, 75e-6, "photon_energy_keV"},
		{"bins", "10", 0.1, 12.4, 0, "no pixel size"},
		{"low", "30", 0.1, 12.4, 75e-6, "high must be above low"},
		{"low", "19.99", 10, 12.4, 75e-6, "no pixel that is not masked"},
	};

	(void)arg;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct rig rig;

		rig_for(&rig, SL_I16);
		rig_set(&rig, bad[i].option, bad[i].value);
		rig.geometry.distance_m = bad[i].distance;
		rig.geometry.photon_energy_keV = bad[i].energy;
		rig.geometry.pixel_size_m = bad[i].pixel;
		capture_begin();
		assert_int_equal(rig_try_open(&rig), -EINVAL);
		assert_non_null(strstr(capture_end(), bad[i].words));
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_those_of_the_plain_loop),
		cmocka_unit_test(a_bin_without_a_valid_pixel_is_nan_and_others_are_not),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("integrate", tests, NULL, NULL);
}
