/* correct_test.c - against a scalar reference in the same arithmetic, bit for bit, and against
 * plain double precision, which may differ only where a value lies at the edge of rounding. */
#include <errno.h>
#include <math.h>

#include "base/log.h"
#include "lib/capture.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_correct;

enum { BAD = INT16_MIN, OVERLOAD = INT16_MAX };

static void open_rig(struct rig *rig, const char *output, const char *darks)
{
	rig_init(rig, &sl_stage_correct, SL_U16);
	rig_set(rig, "output", output);
	rig_set(rig, "darks", darks);
}

/* The reference. */
static float reference_kev(float pedestal, float factor, uint16_t raw)
{
	if (raw == 0xc000)
		return INFINITY;
	if (raw == 0xffff || raw == 0x4000 || raw >> 14 == 2)
		return NAN;
	return ((float)(raw & 0x3fff) - pedestal) * factor;
}

static int reference_photons(float pedestal, float factor, uint16_t raw)
{
	float v = reference_kev(pedestal, factor, raw);

	if (raw == 0xc000)
		return OVERLOAD;
	if (isnan(v))
		return BAD;
	v = roundf(v); /* half away from zero */
	return v > 32766 ? 32766 : v < -32767 ? -32767 : (int)v;
}

static int gain_index(uint16_t raw)
{
	return raw >> 14 == 3 ? 2 : raw >> 14 == 1;
}

static float factor_of(const struct rig *rig, uint16_t raw, int pixel, double energy)
{
	float gain = rig->table[3 + gain_index(raw)][pixel];

	return gain == 0 ? NAN : (float)(1 / (gain * energy));
}

/* Every raw value there is, spread over frames of the rig's size. */
static uint16_t raw_of(int frame, int pixel)
{
	return (uint16_t)(frame * RIG_PIXELS + pixel);
}

enum { ALL_FRAMES = (65536 + RIG_PIXELS - 1) / RIG_PIXELS };

static struct rig_frame *make_all_raw(void)
{
	struct rig_frame *frames = calloc(ALL_FRAMES, sizeof(*frames));

	for (int f = 0; f < ALL_FRAMES; f++) {
		rig_frame_init(&frames[f], false);
		for (int i = 0; i < RIG_PIXELS; i++)
			((uint16_t *)frames[f].in)[i] = raw_of(f, i);
	}
	return frames;
}

static void free_frames(struct rig_frame *frames, int n)
{
	for (int f = 0; f < n; f++)
		rig_frame_fini(&frames[f]);
	free(frames);
}

static void check_all_photons(const char *vectors, bool stream)
{
	struct rig_frame *frames = make_all_raw();
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig_set(&rig, "vectors", vectors);
	rig_open(&rig);
	assert_int_equal(rig.out.dtype, SL_I16);
	assert_string_equal(rig.out.name, "image");
	rig.stream = stream;
	rig_run(&rig, frames, ALL_FRAMES, RIG_BATCH, stream ? 128 : 101, 1);
	for (int f = 0; f < ALL_FRAMES; f++)
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint16_t raw = raw_of(f, i);
			float pedestal = rig.table[gain_index(raw)][i];
			float factor = factor_of(&rig, raw, i, 12.4);

			assert_int_equal(((int16_t *)frames[f].out)[i],
					 reference_photons(pedestal, factor, raw));
		}
	rig_close(&rig);
	free_frames(frames, ALL_FRAMES);
}

static void test_photons_of_every_raw_value(void **arg)
{
	for (int stream = 0; stream < 2; stream++) {
		check_all_photons("avx512", stream);
		check_all_photons("avx2", stream);
		check_all_photons("baseline", stream);
	}
}

static void check_all_kev(const char *vectors, bool stream)
{
	struct rig_frame *frames = make_all_raw();
	struct rig rig;

	open_rig(&rig, "kev_f32", "128");
	rig_set(&rig, "vectors", vectors);
	rig_open(&rig);
	assert_int_equal(rig.out.dtype, SL_F32);
	rig.stream = stream;
	rig_run(&rig, frames, ALL_FRAMES, RIG_BATCH, stream ? 128 : 101, 1);
	for (int f = 0; f < ALL_FRAMES; f++)
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint16_t raw = raw_of(f, i);
			float want = reference_kev(rig.table[gain_index(raw)][i],
						   factor_of(&rig, raw, i, 1), raw);
			float have = ((float *)frames[f].out)[i];

			if (isnan(want))
				assert_true(isnan(have));
			else
				assert_true(have == want);
		}
	rig_close(&rig);
	free_frames(frames, ALL_FRAMES);
}

static void test_kev_of_every_raw_value(void **arg)
{
	for (int stream = 0; stream < 2; stream++) {
		check_all_kev("avx512", stream);
		check_all_kev("avx2", stream);
		check_all_kev("baseline", stream);
	}
}

/* energy = (adu - pedestal) / gain, photons = energy / photon energy: the definition itself. */
static void test_photons_against_double_precision(void **arg)
{
	struct rig_frame *frames = make_all_raw();
	struct rig rig;
	int compared = 0, at_the_edge = 0;

	open_rig(&rig, "photons_i16", "128");
	rig_open(&rig);
	rig_run(&rig, frames, ALL_FRAMES, RIG_BATCH, 1000, 1);
	for (int f = 0; f < ALL_FRAMES; f++)
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint16_t raw = raw_of(f, i);
			int g = gain_index(raw), have = ((int16_t *)frames[f].out)[i];
			double want;

			if (raw >> 14 == 2 || raw == 0xc000 || raw == 0x4000 || raw == 0xffff)
				continue;
			want = ((raw & 0x3fff) - (double)rig.table[g][i]) /
			       (double)rig.table[3 + g][i] / 12.4;
			if (fabs(fabs(want - trunc(want)) - 0.5) < 1e-3) {
				assert_true(fabs(have - want) <= 0.5 + 1e-3);
				at_the_edge++;
			} else {
				assert_int_equal(have, (int)round(want));
			}
			compared++;
		}
	assert_true(compared > 45000 && at_the_edge < compared / 50);
	rig_close(&rig);
	free_frames(frames, ALL_FRAMES);
}

/* One bright frame whose pixels are all `raw`. */
static void run_one(struct rig *rig, struct rig_frame *frame, uint16_t raw)
{
	rig_frame_init(frame, false);
	for (int i = 0; i < RIG_PIXELS; i++)
		((uint16_t *)frame->in)[i] = raw;
	rig_batch(rig, frame, 1, RIG_MODULE_PIXELS, 1);
}

static int photons_of(struct rig *rig, int pixel, uint16_t raw)
{
	struct rig_frame frame;
	int photons;

	run_one(rig, &frame, raw);
	photons = ((int16_t *)frame.out)[pixel];
	rig_frame_fini(&frame);
	return photons;
}

static float kev_of(struct rig *rig, int pixel, uint16_t raw)
{
	struct rig_frame frame;
	float kev;

	run_one(rig, &frame, raw);
	kev = ((float *)frame.out)[pixel];
	rig_frame_fini(&frame);
	return kev;
}

static void test_special_raw_values(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 3, 0xc000), OVERLOAD);
	assert_int_equal(photons_of(&rig, 3, 0xffff), BAD);
	assert_int_equal(photons_of(&rig, 3, 0x4000), BAD);
	assert_int_equal(photons_of(&rig, 3, 0x8000), BAD);
	assert_int_equal(photons_of(&rig, 3, 0xbfff), BAD);
	assert_int_not_equal(photons_of(&rig, 3, 0xc001), OVERLOAD);
	assert_int_not_equal(photons_of(&rig, 3, 0x4001), BAD);
	assert_int_not_equal(photons_of(&rig, 3, 0xfffe), BAD);
	rig_close(&rig);
}

static void test_special_values_in_kev(void **arg)
{
	struct rig rig;

	open_rig(&rig, "kev_f32", "128");
	rig_open(&rig);
	assert_true(kev_of(&rig, 3, 0xc000) == INFINITY);
	assert_true(isnan(kev_of(&rig, 3, 0xffff)));
	assert_true(isnan(kev_of(&rig, 3, 0x4000)));
	assert_true(isnan(kev_of(&rig, 3, 0x9000)));
	rig_close(&rig);
}

static void test_gain_of_zero_is_bad_in_that_gain(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	for (int g = 0; g < 3; g++)
		rig.table[3 + g][10 + g] = 0;
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 10, 3000), BAD);
	assert_int_equal(photons_of(&rig, 11, 0x4000 | 9000), BAD);
	assert_int_equal(photons_of(&rig, 12, 0xc000 | 9000), BAD);
	assert_int_not_equal(photons_of(&rig, 11, 3000), BAD);
	assert_int_not_equal(photons_of(&rig, 10, 0x4000 | 9000), BAD);
	/* An overload says enough without a gain. */
	assert_int_equal(photons_of(&rig, 12, 0xc000), OVERLOAD);
	rig_close(&rig);
}

static void test_pedestal_above_the_range_is_bad(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.table[0][20] = 16384;
	rig.table[1][21] = 20000;
	rig.table[2][22] = NAN;
	rig.table[1][23] = 16383;
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 20, 3000), BAD);
	assert_int_equal(photons_of(&rig, 21, 0x4000 | 9000), BAD);
	assert_int_equal(photons_of(&rig, 22, 0xc000 | 9000), BAD);
	assert_int_not_equal(photons_of(&rig, 23, 0x4000 | 9000), BAD);
	rig_close(&rig);
}

/* One ADU is half a photon, the pedestal is 1000: odd differences are ties. */
static void test_ties_round_away_from_zero(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.geometry.photon_energy_keV = 2;
	for (int i = 0; i < RIG_PIXELS; i++) {
		rig.table[0][i] = 1000;
		rig.table[3][i] = 1;
	}
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 70, 1000), 0);
	assert_int_equal(photons_of(&rig, 70, 1001), 1);
	assert_int_equal(photons_of(&rig, 70, 1003), 2);
	assert_int_equal(photons_of(&rig, 70, 1005), 3);
	assert_int_equal(photons_of(&rig, 70, 999), -1);
	assert_int_equal(photons_of(&rig, 70, 997), -2);
	assert_int_equal(photons_of(&rig, 70, 995), -3);
	rig_close(&rig);
}

/* The largest float below a half must not become 1, as it does for who adds 0.5 and truncates. */
static void test_just_below_a_tie_rounds_towards_zero(void **arg)
{
	const double energy = 2 + 0x1p-23;
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.geometry.photon_energy_keV = energy;
	for (int i = 0; i < RIG_PIXELS; i++) {
		rig.table[0][i] = 100;
		rig.table[3][i] = 1;
	}
	rig_open(&rig);
	assert_true((float)(1 / energy) == nextafterf(0.5f, 0));
	assert_int_equal(photons_of(&rig, 5, 101), 0);
	assert_int_equal(photons_of(&rig, 5, 99), 0);
	assert_int_equal(photons_of(&rig, 5, 103), 1);
	rig_close(&rig);
}

static void test_large_values_clamp_beside_the_special_ones(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.geometry.photon_energy_keV = 1;
	for (int i = 0; i < RIG_PIXELS; i++) {
		rig.table[0][i] = 8000;
		rig.table[3][i] = i % 2 ? 0.001f : 1e-29f;
	}
	rig_open(&rig);
	for (int pixel = 64; pixel < 66; pixel++) {
		assert_int_equal(photons_of(&rig, pixel, 16000), 32766);
		assert_int_equal(photons_of(&rig, pixel, 0), -32767);
		assert_int_equal(photons_of(&rig, pixel, 8000), 0);
	}
	rig_close(&rig);
}

/* --- pedestals --- */

static void give_dark(struct rig *rig, uint16_t raw)
{
	struct rig_frame frame;

	rig_frame_init(&frame, true);
	for (int i = 0; i < RIG_PIXELS; i++)
		((uint16_t *)frame.in)[i] = raw;
	rig_batch(rig, &frame, 1, 50, 2);
	for (size_t i = 0; i < (RIG_PIXELS + 2 * RIG_CANARY) * 4; i++)
		assert_int_equal(frame.out_memory[i], RIG_POISON); /* gets no image */
	rig_frame_fini(&frame);
}

/* The pedestal that a bright frame sees now: with a gain of 1 keV is ADU minus it. */
static float pedestal_of(struct rig *rig, int pixel)
{
	return -kev_of(rig, pixel, 0);
}

static void open_unity(struct rig *rig, const char *darks)
{
	open_rig(rig, "kev_f32", darks);
	for (int i = 0; i < RIG_PIXELS; i++)
		rig->table[3][i] = 1;
	rig_open(rig);
}

static void test_calibration_is_the_start_until_a_dark_frame(void **arg)
{
	struct rig rig;

	open_unity(&rig, "128");
	assert_true(pedestal_of(&rig, 7) == rig.table[0][7]);
	give_dark(&rig, 1000);
	assert_true(pedestal_of(&rig, 7) == 1000);
	rig_close(&rig);
}

static void test_first_darks_are_averaged_exactly(void **arg)
{
	struct rig rig;
	uint32_t sum = 0;

	open_unity(&rig, "1024");
	for (uint32_t n = 1; n <= 1024; n++) {
		uint16_t adu = (uint16_t)(16383 - n * 7919 % 100);

		give_dark(&rig, adu);
		sum += adu;
		if (n < 4 || n > 1020)
			assert_true(pedestal_of(&rig, 100) == (float)sum / (float)n);
	}
	rig_close(&rig);
}

static void test_later_darks_move_a_running_mean(void **arg)
{
	struct rig rig;
	float sum = 0;

	open_unity(&rig, "10");
	for (uint32_t n = 0; n < 100; n++) {
		uint16_t adu = (uint16_t)(n < 50 ? 2000 + n * 13 % 29 : 3000 + n * 17 % 31);

		give_dark(&rig, adu);
		sum += n < 10 ? adu : adu - sum / 10.f;
		if (n >= 9)
			assert_true(pedestal_of(&rig, 1) == sum / 10.f);
	}
	/* 50 samples are five times the window: within 1 % of the step. */
	assert_true(fabsf(pedestal_of(&rig, 1) - 3015) < 10);
	rig_close(&rig);
}

/* Photons with fractions are keV over the photon's energy. */
static void test_float_photons(void **arg)
{
	struct rig_frame *frames = make_all_raw();
	struct rig rig;

	open_rig(&rig, "photons_f32", "128");
	rig_open(&rig);
	assert_int_equal(rig.out.dtype, SL_F32);
	assert_int_equal(rig.out.photons, 1);
	rig_run(&rig, frames, ALL_FRAMES, RIG_BATCH, 101, 1);
	for (int f = 0; f < ALL_FRAMES; f++)
		for (int i = 0; i < RIG_PIXELS; i++) {
			uint16_t raw = raw_of(f, i);
			float want = reference_kev(rig.table[gain_index(raw)][i],
						   factor_of(&rig, raw, i, 12.4), raw);
			float have = ((float *)frames[f].out)[i];

			assert_true(isnan(want) ? isnan(have) : have == want);
		}
	rig_close(&rig);
	free_frames(frames, ALL_FRAMES);
}

/* RMS in double precision, of the samples as the pedestal weighs them. */
struct rms {
	double mean, square;
	uint32_t n;
};

static double rms_add(struct rms *rms, double adu, uint32_t darks)
{
	rms->n += rms->n < darks;
	rms->mean += (adu - rms->mean) / rms->n;
	rms->square += (adu * adu - rms->square) / rms->n;
	return sqrt(fmax(0, rms->square - rms->mean * rms->mean));
}

/* Two levels about a mean that drifts: bad exactly while the RMS is above the limit. */
static void check_noise(const char *vectors)
{
	struct rms rms = {0};
	struct rig rig;
	int bad = 0, good = 0;

	open_rig(&rig, "kev_f32", "40");
	rig_set(&rig, "noise_max", "24.5");
	rig_set(&rig, "vectors", vectors);
	for (int i = 0; i < RIG_PIXELS; i++)
		rig.table[3][i] = 1;
	rig_open(&rig);
	for (uint32_t n = 0; n < 400; n++) {
		int swing = n < 100 ? 20 : n < 200 ? 40 : 15;
		uint16_t adu = (uint16_t)(2446 + n / 8 + (n * 2654435761u >> 31 ? swing : -swing));
		double noise = rms_add(&rms, adu, 40);
		float pedestal;

		give_dark(&rig, adu);
		pedestal = pedestal_of(&rig, 33);
		if (fabs(noise - 24.5) < 0.01)
			continue; /* floats may differ about it */
		assert_int_equal(isnan(pedestal) != 0, n >= 31 && noise > 24.5);
		if (!isnan(pedestal))
			assert_true(fabs(pedestal - rms.mean) < 0.01);
		bad += isnan(pedestal) != 0;
		good += !isnan(pedestal);
	}
	assert_true(bad > 50 && good > 200);
	rig_close(&rig);
}

static void test_noisy_pixels_are_bad_while_they_are(void **arg)
{
	check_noise("avx512");
	check_noise("avx2");
	check_noise("baseline");
}

static void test_samples_of_another_gain_are_left_out(void **arg)
{
	struct rig rig;

	open_unity(&rig, "4");
	give_dark(&rig, 1000);
	give_dark(&rig, 0x4000 | 9000);
	give_dark(&rig, 0xc000 | 9000);
	give_dark(&rig, 0xffff);
	give_dark(&rig, 2000);
	assert_true(pedestal_of(&rig, 9) == 1500);
	rig_close(&rig);
}

static void test_a_pixel_without_any_good_sample_is_bad(void **arg)
{
	struct rig rig;

	open_unity(&rig, "4");
	give_dark(&rig, 0x4000 | 9000);
	assert_true(isnan(pedestal_of(&rig, 9)));
	give_dark(&rig, 1234);
	assert_true(pedestal_of(&rig, 9) == 1234);
	rig_close(&rig);
}

static void test_a_measured_pedestal_replaces_a_bad_start(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "4");
	rig.table[0][30] = 17000;
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 30, 2446), BAD);
	give_dark(&rig, 2446);
	assert_int_equal(photons_of(&rig, 30, 2446), 0);
	rig_close(&rig);
}

static void test_other_gains_keep_their_pedestals(void **arg)
{
	struct rig rig;

	open_rig(&rig, "kev_f32", "4");
	rig_open(&rig);
	give_dark(&rig, 1000);
	give_dark(&rig, 0x4000 | 1000);
	assert_true(kev_of(&rig, 2, 0x4000 | 5000) ==
		    (5000 - rig.table[1][2]) * (float)(1 / (double)rig.table[4][2]));
	rig_close(&rig);
}

/* D B D B in one batch: each bright frame sees the darks before it and no later one. */
static void test_a_bright_frame_sees_exactly_the_darks_before_it(void **arg)
{
	static const uint16_t adu[] = {1000, 0, 2000, 0, 6000, 0};
	static const float want[] = {0, 1000, 0, 1500, 0, 3000};

	for (uint32_t batch = 1; batch <= 6; batch++) {
		struct rig_frame frames[6];
		struct rig rig;

		open_unity(&rig, "16");
		for (int f = 0; f < 6; f++) {
			rig_frame_init(&frames[f], f % 2 == 0);
			for (int i = 0; i < RIG_PIXELS; i++)
				((uint16_t *)frames[f].in)[i] = adu[f];
		}
		rig_run(&rig, frames, 6, batch, 77, 3);
		for (int f = 0; f < 6; f++) {
			if (f % 2)
				assert_true(((float *)frames[f].out)[200] == -want[f]);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
	}
}

/* What close() says is the only place where these counts show; they stop where they would wrap. */
static void check_left_out(uint32_t batches, const char *says)
{
	struct rig_frame frames[RIG_BATCH];
	const char *said;
	struct rig rig;

	open_unity(&rig, "4");
	for (int f = 0; f < RIG_BATCH; f++) {
		rig_frame_init(&frames[f], true);
		memset(frames[f].in, 0xff, RIG_PIXELS * sizeof(uint16_t));
	}
	for (uint32_t b = 0; b < batches; b++)
		rig_batch(&rig, frames, RIG_BATCH, RIG_MODULE_PIXELS, 1);
	for (int f = 0; f < RIG_BATCH; f++)
		rig_frame_fini(&frames[f]);
	capture_begin();
	rig_close(&rig);
	said = capture_end();
	assert_non_null(strstr(said, says));
}

static void test_left_out_samples_are_reported(void **arg)
{
	sl_log_level(SL_LOG_DEBUG);
	check_left_out(1, "left out 19520 dark samples of 610 pixels");
	check_left_out(2049, "left out 39976350 dark samples of 610 pixels");
	sl_log_level(SL_LOG_INFO);
}

/* --- storage cells and masks --- */

enum { CELLS = 3 };

/* A calibration with other pedestals in every cell, and a gain of 1. */
static float *open_cells(struct rig *rig, const char *output)
{
	float *pedestals = calloc(3 * CELLS * RIG_PIXELS, sizeof(*pedestals));

	open_rig(rig, output, "4");
	rig->geometry.cells = CELLS;
	rig->calibration.cells = CELLS;
	for (int g = 0; g < 3; g++) {
		rig->calibration.pedestal[g] = pedestals + g * CELLS * RIG_PIXELS;
		for (int i = 0; i < CELLS * RIG_PIXELS; i++)
			pedestals[g * CELLS * RIG_PIXELS + i] =
				(float)(1000 * (g + 1) + 100 * (i / RIG_PIXELS) + i % 10);
		for (int i = 0; i < RIG_PIXELS; i++)
			rig->table[3 + g][i] = 1;
	}
	return pedestals;
}

/* A frame of that cell in all modules, or another one in module 1. */
static void cell_frame(struct rig_frame *frame, bool dark, uint16_t cell, uint16_t other,
		       uint16_t raw)
{
	rig_frame_init(frame, dark);
	for (int i = 0; i < RIG_PIXELS; i++)
		((uint16_t *)frame->in)[i] = raw;
	frame->view[0].record.cell = cell;
	frame->view[1].record.cell = other;
}

static void test_each_cell_has_its_pedestals(void **arg)
{
	static const uint16_t codes[3] = {0, 0x4000, 0xc000};
	struct rig rig;
	float *pedestals = open_cells(&rig, "kev_f32");

	rig_open(&rig);
	for (int n = 0; n < 3 * CELLS; n++) {
		int g = n / CELLS, cell = n % CELLS, other = (cell + 1) % CELLS;
		struct rig_frame f;

		cell_frame(&f, false, (uint16_t)cell, (uint16_t)other, codes[g] | 5000);
		rig_batch(&rig, &f, 1, 77, 2);
		for (int i = 0; i < RIG_PIXELS; i++) {
			int in = i < RIG_MODULE_PIXELS ? cell : other;

			assert_true(((float *)f.out)[i] ==
				    5000 - pedestals[(g * CELLS + in) * RIG_PIXELS + i]);
		}
		rig_frame_fini(&f);
	}
	rig_close(&rig);
	free(pedestals);
}

/* Dark frames of all cells and bright ones, in any batches: each cell has its own mean. */
static void test_each_cell_learns_alone(void **arg)
{
	enum { FRAMES = 12 };

	for (uint32_t batch = 1; batch <= FRAMES; batch += 5) {
		struct rig_frame frames[FRAMES];
		struct rig rig;
		float *pedestals = open_cells(&rig, "kev_f32");

		rig_open(&rig);
		for (int f = 0; f < FRAMES; f++)
			cell_frame(&frames[f], f < 6, (uint16_t)(f % CELLS), (uint16_t)(f % CELLS),
				   (uint16_t)(f < 6 ? 2000 + 100 * f : 0));
		rig_run(&rig, frames, FRAMES, batch, 100, 2);
		for (int f = 6; f < FRAMES; f++)
			/* Darks f % 3 and f % 3 + 3. */
			assert_true(((float *)frames[f].out)[300] ==
				    -(2000 + 100 * (f % CELLS) + 150));
		for (int f = 0; f < FRAMES; f++)
			rig_frame_fini(&frames[f]);
		rig_close(&rig);
		free(pedestals);
	}
}

static void test_a_cell_without_darks_says_so(void **arg)
{
	struct rig_frame frames[3];
	struct rig rig;
	float *pedestals = open_cells(&rig, "photons_i16");

	rig_open(&rig);
	cell_frame(&frames[0], true, 1, 1, 2000);
	cell_frame(&frames[1], false, 1, 1, 2000);
	cell_frame(&frames[2], false, 2, 2, 2000);
	rig_run(&rig, frames, 3, 3, 100, 1);
	assert_int_equal(frames[1].verdict.reason, SL_REASON_UNJUDGED);
	assert_int_equal(frames[2].verdict.reason, SL_REASON_NO_PEDESTAL);
	for (int f = 0; f < 3; f++)
		rig_frame_fini(&frames[f]);
	rig_close(&rig);
	free(pedestals);
}

/* What a source says of itself is believed only as far as there are tables. */
static void test_a_cell_that_is_not_there_makes_bad_pixels(void **arg)
{
	for (int kev = 0; kev < 2; kev++) {
		struct rig_frame frames[3];
		struct rig rig;
		float *pedestals = open_cells(&rig, kev ? "kev_f32" : "photons_i16");

		rig_open(&rig);
		cell_frame(&frames[0], true, CELLS, UINT16_MAX, 9999);
		cell_frame(&frames[1], false, CELLS, 0, 2000);
		cell_frame(&frames[2], false, 0, UINT16_MAX, 2000);
		rig_run(&rig, frames, 3, 1, 100, 1);
		for (int f = 1; f < 3; f++)
			for (int i = 0; i < RIG_PIXELS; i++) {
				bool bad = (f == 1) == (i < RIG_MODULE_PIXELS);

				if (kev)
					assert_int_equal(isnan(((float *)frames[f].out)[i]), bad);
				else
					assert_int_equal(((int16_t *)frames[f].out)[i] == BAD, bad);
			}
		for (int f = 0; f < 3; f++) {
			rig_check_canaries(&rig, &frames[f]);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
		free(pedestals);
	}
}

/* With one cell nobody looks at what the record says. */
static void test_one_cell_serves_all(void **arg)
{
	struct rig_frame f;
	struct rig rig;

	open_unity(&rig, "4");
	cell_frame(&f, false, 7, 9, 3000);
	rig_batch(&rig, &f, 1, 100, 1);
	assert_true(((float *)f.out)[5] == 3000 - rig.table[0][5]);
	rig_frame_fini(&f);
	rig_close(&rig);
}

static void test_masked_pixels_are_bad(void **arg)
{
	uint8_t mask[RIG_PIXELS] = {[11] = 1, [500] = 255};
	struct rig rig;

	open_rig(&rig, "photons_i16", "4");
	rig.calibration.mask = mask;
	rig_open(&rig);
	assert_int_equal(photons_of(&rig, 11, 3000), BAD);
	assert_int_equal(photons_of(&rig, 500, 0x4000 | 9000), BAD);
	assert_int_equal(photons_of(&rig, 500, 0xc000), BAD); /* stuck there: no overload */
	assert_int_not_equal(photons_of(&rig, 12, 3000), BAD);
	assert_int_equal(photons_of(&rig, 12, 0xc000), OVERLOAD);
	rig_close(&rig);
	open_rig(&rig, "kev_f32", "4");
	rig.calibration.mask = mask;
	rig_open(&rig);
	assert_true(isnan(kev_of(&rig, 500, 0xc000)));
	assert_true(kev_of(&rig, 12, 0xc000) == INFINITY);
	rig_close(&rig);
}

/* --- verdicts and refusals --- */

static void test_verdicts(void **arg)
{
	struct rig_frame frames[3];
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig_open(&rig);
	for (int f = 0; f < 3; f++) {
		rig_frame_init(&frames[f], f == 1);
		frames[f].verdict.score = 5;
	}
	rig_run(&rig, frames, 3, 3, 100, 1);
	assert_int_equal(frames[0].verdict.keep, 1);
	assert_int_equal(frames[0].verdict.reason, SL_REASON_NO_PEDESTAL);
	assert_int_equal(frames[1].verdict.keep, 0);
	assert_int_equal(frames[1].verdict.reason, SL_REASON_DARK);
	assert_true(frames[1].verdict.score == 0);
	assert_int_equal(frames[2].verdict.keep, 1);
	assert_int_equal(frames[2].verdict.reason, SL_REASON_UNJUDGED);
	for (int f = 0; f < 3; f++)
		rig_frame_fini(&frames[f]);
	rig_close(&rig);
}

static void check_refused(struct rig *rig, const char *says)
{
	const char *said;
	int err;

	capture_begin();
	err = rig_try_open(rig);
	said = capture_end();
	assert_int_equal(err, -EINVAL);
	assert_non_null(strstr(said, says));
	rig_close(rig);
}

static void test_no_calibration_is_refused(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.env.calibration = NULL;
	check_refused(&rig, "correct needs a calibration; detector 'rig' has none");
}

static void test_a_calibration_of_other_cells_is_refused(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.calibration.cells = 4;
	check_refused(&rig, "a calibration of 4 storage cells for a detector that has 1");
}

static void test_other_raw_types_are_refused(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.in.dtype = SL_U32;
	check_refused(&rig, "uint32");
}

static void test_photons_need_a_photon_energy_and_kev_does_not(void **arg)
{
	struct rig rig;

	open_rig(&rig, "photons_i16", "128");
	rig.geometry.photon_energy_keV = 0;
	check_refused(&rig, "photon energy");
	open_rig(&rig, "kev_f32", "128");
	rig.geometry.photon_energy_keV = 0;
	rig_open(&rig);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_photons_of_every_raw_value),
		cmocka_unit_test(test_kev_of_every_raw_value),
		cmocka_unit_test(test_photons_against_double_precision),
		cmocka_unit_test(test_special_raw_values),
		cmocka_unit_test(test_special_values_in_kev),
		cmocka_unit_test(test_gain_of_zero_is_bad_in_that_gain),
		cmocka_unit_test(test_pedestal_above_the_range_is_bad),
		cmocka_unit_test(test_ties_round_away_from_zero),
		cmocka_unit_test(test_just_below_a_tie_rounds_towards_zero),
		cmocka_unit_test(test_large_values_clamp_beside_the_special_ones),
		cmocka_unit_test(test_calibration_is_the_start_until_a_dark_frame),
		cmocka_unit_test(test_first_darks_are_averaged_exactly),
		cmocka_unit_test(test_later_darks_move_a_running_mean),
		cmocka_unit_test(test_float_photons),
		cmocka_unit_test(test_noisy_pixels_are_bad_while_they_are),
		cmocka_unit_test(test_samples_of_another_gain_are_left_out),
		cmocka_unit_test(test_a_pixel_without_any_good_sample_is_bad),
		cmocka_unit_test(test_a_measured_pedestal_replaces_a_bad_start),
		cmocka_unit_test(test_other_gains_keep_their_pedestals),
		cmocka_unit_test(test_a_bright_frame_sees_exactly_the_darks_before_it),
		cmocka_unit_test(test_left_out_samples_are_reported),
		cmocka_unit_test(test_each_cell_has_its_pedestals),
		cmocka_unit_test(test_each_cell_learns_alone),
		cmocka_unit_test(test_a_cell_without_darks_says_so),
		cmocka_unit_test(test_a_cell_that_is_not_there_makes_bad_pixels),
		cmocka_unit_test(test_one_cell_serves_all),
		cmocka_unit_test(test_masked_pixels_are_bad),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_a_calibration_of_other_cells_is_refused),
		cmocka_unit_test(test_no_calibration_is_refused),
		cmocka_unit_test(test_other_raw_types_are_refused),
		cmocka_unit_test(test_photons_need_a_photon_energy_and_kev_does_not),
	};

	return cmocka_run_group_tests_name("correct", tests, NULL, NULL);
}
