/* jungfrau_test.c - the synthetic detector looks like a real one, and hits stand out. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sluice/detector.h>

extern const struct sl_detector sl_detector_jungfrau;
static const struct sl_detector *const ops = &sl_detector_jungfrau;

enum { PIXELS = 512 * 1024 };

struct subject {
	void *state;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
};

/* settings: name, value, ..., NULL */
static struct subject subject_open(uint64_t seed, uint32_t modules, const char *const *settings)
{
	struct sl_detector_options run = {.modules = modules, .frames = 100, .seed = seed};
	struct subject s = {.state = calloc(1, ops->state_bytes)};
	char why[128];

	sl_options_defaults(ops->options, s.state);
	for (; settings && *settings; settings += 2)
		assert_int_equal(sl_option_set(sl_option_find(ops->options, settings[0]), s.state,
					       settings[1], why, sizeof(why)),
				 0);
	assert_int_equal(ops->open(s.state, &run, &s.geometry), 0);
	assert_int_equal(ops->calibration(s.state, &s.calibration), 0);
	return s;
}

static void subject_close(struct subject *s)
{
	ops->close(s->state);
	free(s->state);
}

static const uint16_t *subject_render(struct subject *s, uint64_t frame, uint32_t module,
				      uint32_t flags)
{
	const void *pixels;

	assert_int_equal(ops->render(s->state, frame, module, flags, NULL, &pixels), 0);
	return pixels;
}

static bool subject_hit(struct subject *s, uint64_t frame)
{
	struct sl_truth truth;

	ops->truth(s->state, frame, 0, &truth);
	return truth.hit;
}

/* In the detector's own calibration; NAN: a bad pixel, INFINITY: overload. */
static double photons(const struct subject *s, uint32_t module, uint32_t pixel, uint16_t raw)
{
	static const int gain_of_code[] = {0, 1, -1, 2};
	int g = gain_of_code[raw >> 14];
	size_t i = (size_t)module * PIXELS + pixel;

	if (raw == 0xc000)
		return INFINITY;
	if (raw == 0xffff || raw == 0x4000 || g < 0 || s->calibration.gain[g][i] == 0 ||
	    s->calibration.mask[i])
		return NAN;
	return ((raw & 0x3fff) - s->calibration.pedestal[g][i]) / s->calibration.gain[g][i] /
	       s->geometry.photon_energy_keV;
}

static uint32_t count_bright(struct subject *s, uint64_t frame)
{
	uint32_t count = 0;

	for (uint32_t module = 0; module < s->geometry.modules; module++) {
		const uint16_t *raw = subject_render(s, frame, module, 0);

		for (uint32_t i = 0; i < PIXELS; i++)
			count += photons(s, module, i, raw[i]) >= 9.5;
	}
	return count;
}

static void check_separation(uint64_t seed, uint32_t modules)
{
	struct subject s = subject_open(seed, modules, NULL);
	int hits = 0;

	for (uint64_t frame = 0; frame < 31; frame++) {
		uint32_t bright = count_bright(&s, frame);

		if (subject_hit(&s, frame)) {
			assert_true(bright >= 100);
			hits++;
		} else {
			assert_true(bright <= 4);
		}
	}
	assert_int_equal(hits, 2);
	subject_close(&s);
}

static void test_default_veto_separates_hits_from_blanks(void **arg)
{
	check_separation(1, 2);
	check_separation(2, 1);
	check_separation(3, 1);
}

static void test_share_of_hits_is_as_near_as_the_pool_allows(void **arg)
{
	static const struct {
		const char *fraction, *pool;
		int hits;
	} cases[] = {{"0", "31", 0},  {"0.001", "31", 1}, {"0.05", "31", 2},  {"0.5", "10", 5},
		     {"1", "31", 31}, {"0.3", "1", 1},	  {"0.25", "101", 25}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		const char *settings[] = {"hit_fraction", cases[c].fraction, "pool", cases[c].pool,
					  NULL};
		struct subject s = subject_open(11, 1, settings);
		int hits = 0;

		for (int i = 0; i < atoi(cases[c].pool); i++)
			hits += subject_hit(&s, (uint64_t)i);
		assert_int_equal(hits, cases[c].hits);
		subject_close(&s);
	}
}

static void test_seed_chooses_which_frames_are_hits(void **arg)
{
	uint32_t first = 0;
	bool differs = false;

	for (uint64_t seed = 0; seed < 8; seed++) {
		struct subject s = subject_open(seed, 1, NULL);
		uint32_t mask = 0;

		for (uint32_t i = 0; i < 31; i++)
			mask |= (uint32_t)subject_hit(&s, i) << i;
		differs |= seed && mask != first;
		first = mask;
		subject_close(&s);
	}
	assert_true(differs);
}

static void test_frames_repeat_after_the_pool(void **arg)
{
	struct subject s = subject_open(1, 1, NULL);

	assert_ptr_equal(subject_render(&s, 3, 0, 0), subject_render(&s, 34, 0, 0));
	assert_ptr_not_equal(subject_render(&s, 3, 0, 0), subject_render(&s, 4, 0, 0));
	assert_int_equal(subject_hit(&s, 3), subject_hit(&s, 34));
	subject_close(&s);
}

/* Real modules: median and 1st and 99th percentile per gain. */
static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void test_pedestals_are_spread_as_on_real_modules(void **arg)
{
	static const float want[3][3] = {
		{1903, 2446, 3072}, {13263, 13584, 13945}, {13736, 14100, 14491}};
	struct subject s = subject_open(1, 1, NULL);
	float *sorted = malloc(PIXELS * sizeof(*sorted));

	for (int g = 0; g < 3; g++) {
		for (int i = 0; i < PIXELS; i++)
			sorted[i] = s.calibration.pedestal[g][i];
		qsort(sorted, PIXELS, sizeof(*sorted), compare_floats);
		assert_true(fabsf(sorted[PIXELS / 100] - want[g][0]) < 5);
		assert_true(fabsf(sorted[PIXELS / 2] - want[g][1]) < 5);
		assert_true(fabsf(sorted[PIXELS / 100 * 99] - want[g][2]) < 5);
	}
	free(sorted);
	subject_close(&s);
}

static void test_gains_are_spread_about_their_mean(void **arg)
{
	static const double want[3] = {41.0, -1.439, -0.1145};
	struct subject s = subject_open(1, 1, NULL);

	for (int g = 0; g < 3; g++) {
		double sum = 0, squares = 0;
		int n = 0;

		for (int i = 0; i < PIXELS; i++) {
			double x = s.calibration.gain[g][i] / want[g];

			if (x == 0)
				continue;
			n++;
			sum += x;
			squares += (x - 1) * (x - 1);
		}
		assert_true(fabs(sum / n - 1) < 1e-3);
		assert_true(sqrt(squares / n) > 0.01 && sqrt(squares / n) < 0.025);
	}
	subject_close(&s);
}

static void test_dark_frames_are_pedestal_and_noise(void **arg)
{
	struct subject s = subject_open(4, 1, NULL);
	const uint16_t *raw = subject_render(&s, 9, 0, SL_RECORD_DARK);
	double sum = 0, squares = 0;
	int n = 0;

	for (int i = 0; i < PIXELS; i++) {
		double difference = raw[i] - s.calibration.pedestal[0][i];

		if (s.calibration.mask[i])
			continue;
		assert_int_equal(raw[i] >> 14, 0);
		sum += difference;
		squares += difference * difference;
		n++;
	}
	assert_true(n >= PIXELS - 24);
	assert_true(fabs(sum / n) < 0.2);
	assert_true(fabs(sqrt(squares / n) - 23.9) < 0.2);
	subject_close(&s);
}

/* Mean photons in the ordinary pixels of a frame whose distance from the beam is in between. */
static double ring_mean(struct subject *s, uint64_t frame, double from, double to)
{
	double sum = 0;
	int n = 0;

	for (uint32_t module = 0; module < s->geometry.modules; module++) {
		const uint16_t *raw = subject_render(s, frame, module, 0);

		for (uint32_t i = 0; i < PIXELS; i++) {
			double row, column, r, value = photons(s, module, i, raw[i]);

			sl_layout_centre(&s->geometry, module, i, &row, &column);
			r = hypot(row - s->geometry.layout.beam_row,
				  column - s->geometry.layout.beam_column);
			if (isnan(value) || sl_layout_share(&s->geometry, i) > 1 || r < from ||
			    r >= to)
				continue;
			sum += value;
			n++;
		}
	}
	assert_true(n > 50);
	return sum / n;
}

/* Water's ring is at 3.2 Angstrom: 18.1 degrees, 435 pixels at 0.1 m and 12.4 keV. There the third
 * power of the cosine is 0.859, and polarisation takes half of a tenth, on the average. */
static void test_background_is_as_bright_as_asked_for_and_looks_like_water(void **arg)
{
	const char *const settings[] = {"background_photons", "1.7", "hit_fraction", "0", NULL};
	struct subject s = subject_open(4, 2, settings);
	double ring = ring_mean(&s, 0, 425, 445);

	assert_true(fabs(ring / (1.7 * 0.859 * 0.95) - 1) < 0.03);
	assert_true(ring_mean(&s, 0, 240, 260) < 0.75 * ring); /* inside the ring */
	assert_true(ring_mean(&s, 0, 690, 720) < 0.6 * ring);  /* outside */
	assert_true(ring_mean(&s, 0, 35, 45) > 1.3 * ring);    /* air, near the beam */
	assert_true(ring_mean(&s, 0, 18, 28) < 0.1 * ring);    /* behind the beam stop */
	subject_close(&s);
}

/* However large the detector, its blanks are the same in every place. */
static void test_background_does_not_depend_on_the_size(void **arg)
{
	const char *const settings[] = {"hit_fraction", "0", NULL};
	struct subject small = subject_open(4, 2, settings), large = subject_open(4, 8, settings);

	assert_true(fabs(ring_mean(&small, 0, 400, 500) / ring_mean(&large, 0, 400, 500) - 1) <
		    0.05);
	assert_true(count_bright(&large, 0) <= 8);
	subject_close(&small);
	subject_close(&large);
}

static void test_wide_pixels_collect_more(void **arg)
{
	const char *const settings[] = {"background_photons", "2", "hit_fraction", "0", NULL};
	struct subject s = subject_open(4, 1, settings);
	double sum[5] = {0};
	int n[5] = {0};

	for (uint64_t frame = 0; frame < 20; frame++) {
		const uint16_t *raw = subject_render(&s, frame, 0, 0);

		for (uint32_t i = 0; i < PIXELS; i++) {
			uint32_t share = sl_layout_share(&s.geometry, i);

			/* Those at the corners of ASICs, their neighbours and the next ones. */
			if ((i / 1024 + 4) % 256 > 7 || (i % 1024 + 4) % 256 > 7 ||
			    i / 1024 % 508 < 8 || i % 1024 % 1016 < 8 || s.calibration.mask[i])
				continue;
			sum[share] += photons(&s, 0, i, raw[i]);
			n[share]++;
		}
	}
	assert_true(n[4] == 12 * 20 && n[2] > 1400 && n[1] > 2000);
	assert_true(fabs(sum[2] / n[2] / (sum[1] / n[1]) - 2) < 0.2);
	assert_true(fabs(sum[4] / n[4] / (sum[1] / n[1]) - 4) < 0.6);
	subject_close(&s);
}

/* Each cell's dark frames lie on its own pedestal, and not on another's. */
static void test_storage_cells_have_pedestals_of_their_own(void **arg)
{
	const char *const settings[] = {"storage_cells", "4", "pool", "6", NULL};
	struct subject s = subject_open(4, 1, settings);

	assert_int_equal(s.geometry.cells, 4);
	assert_int_equal(s.calibration.cells, 4);
	for (uint64_t frame = 0; frame < 12; frame++) {
		const uint16_t *raw = subject_render(&s, frame, 0, SL_RECORD_DARK);

		for (uint32_t cell = 0; cell < 4; cell++) {
			const float *pedestal = s.calibration.pedestal[0] + (size_t)cell * PIXELS;
			double squares = 0;

			for (int i = 0; i < PIXELS; i++)
				if (!s.calibration.mask[i])
					squares += (raw[i] - pedestal[i]) * (raw[i] - pedestal[i]);
			if (cell == sl_geometry_cell(&s.geometry, frame))
				assert_true(fabs(sqrt(squares / PIXELS) - 23.9) < 0.2);
			else
				assert_true(sqrt(squares / PIXELS) > 30);
		}
	}
	/* Twelve frames have every exposure in every cell that it comes to; then they repeat. */
	assert_ptr_equal(subject_render(&s, 1, 0, 0), subject_render(&s, 13, 0, 0));
	assert_ptr_not_equal(subject_render(&s, 1, 0, 0), subject_render(&s, 7, 0, 0));
	assert_int_equal(subject_hit(&s, 1), subject_hit(&s, 7));
	subject_close(&s);
}

/* Where the table says that a spot is, there is one. */
static void test_truth_points_at_bright_pixels(void **arg)
{
	const char *const settings[] = {"hit_fraction", "1", "background_photons", "0", NULL};
	struct subject s = subject_open(5, 8, settings);
	double table[200][9], row, column;
	struct sl_truth truth;
	uint32_t rows = ops->truth_rows(s.state, 2, 0, table[0], 200);

	ops->truth(s.state, 2, 0, &truth);
	assert_int_equal(rows, truth.spots);
	assert_int_equal(ops->truth_rows(s.state, 2, SL_RECORD_DARK, table[0], 200), 0);
	for (uint32_t i = 0; i < rows; i++) {
		const double *spot = table[i];
		uint32_t module = (uint32_t)spot[2];
		uint32_t pixel = (uint32_t)(spot[3] * 1024 + spot[4]);
		const uint16_t *raw = subject_render(&s, 2, module, 0);
		double n = photons(&s, module, pixel, raw[pixel]);

		sl_layout_centre(&s.geometry, module, pixel, &row, &column);
		assert_true(fabs(row - spot[0]) <= 1 && fabs(column - spot[1]) <= 1);
		/* A seventeenth or more of a spot's photons are in its middle. */
		assert_true(isnan(n) || n > spot[5] / 30 - 3);
		assert_true(fabs(spot[8] / spot[5] - 12.4) < 1e-9);
		assert_true(spot[7] >= 2 && spot[6] > 30);
	}
	subject_close(&s);
}

/* All three gains and overloads, and what was digitised can be read back: the same spot rises and
 * falls through the gains without a step. */
static void test_bright_spots_switch_the_gain_and_overload(void **arg)
{
	const char *const settings[] = {"hit_fraction",
					"1",
					"spot_photons",
					"3000",
					"spots",
					"60",
					"background_photons",
					"0",
					NULL};
	struct subject s = subject_open(2, 1, settings);
	const uint16_t *raw = subject_render(&s, 0, 0, 0);
	double most[4] = {0}, least[4] = {1e9, 1e9, 1e9, 1e9};
	int codes[4] = {0}, overloads = 0;

	for (uint32_t i = 0; i < PIXELS; i++) {
		double n = photons(&s, 0, i, raw[i]);
		int code = raw[i] >> 14;

		overloads += raw[i] == 0xc000;
		if (!isfinite(n))
			continue;
		codes[code]++;
		most[code] = n > most[code] ? n : most[code];
		least[code] = n < least[code] ? n : least[code];
	}
	assert_true(codes[1] > 100 && codes[3] > 20 && codes[2] == 0 && overloads > 0);
	/* Where they should be, with the spread of pedestals and gains. */
	assert_true(most[0] > 19 && most[0] < 25);
	assert_true(least[1] > 18 && least[1] < 26);
	assert_true(most[1] > 550 && most[1] < 750);
	assert_true(least[3] > 550 && least[3] < 800);
	assert_true(most[3] > 3000 && most[3] < 11000);
	subject_close(&s);
}

static void test_resolution_limit_bounds_the_spots(void **arg)
{
	/* 20 Angstrom at 0.1 m and 12.4 keV: sin theta = 0.025, 5.005 mm or 66.7 pixels. */
	const char *const settings[] = {"hit_fraction",
					"1",
					"resolution_A",
					"20",
					"spots",
					"60",
					"background_photons",
					"0",
					NULL};
	struct subject s = subject_open(2, 1, settings);
	const uint16_t *raw = subject_render(&s, 0, 0, 0);
	int inside = 0;

	for (uint32_t i = 0; i < PIXELS; i++) {
		double row, column, r;

		sl_layout_centre(&s.geometry, 0, i, &row, &column);
		r = hypot(row - 257, column - 515);
		if (!(photons(&s, 0, i, raw[i]) > 5))
			continue;
		assert_true(r < 66.7 + 9);
		inside++;
	}
	assert_true(inside > 100);
	subject_close(&s);
}

/* The spots of one frame leave nothing behind for the next. */
static void test_hits_do_not_depend_on_hits_before_them(void **arg)
{
	const char *const settings[] = {"hit_fraction", "1", "spots", "1000", NULL};
	struct subject a = subject_open(6, 1, settings), b = subject_open(6, 1, settings);

	for (uint64_t frame = 0; frame < 4; frame++)
		subject_render(&a, frame, 0, 0);
	assert_memory_equal(subject_render(&a, 3, 0, 0), subject_render(&b, 3, 0, 0),
			    PIXELS * sizeof(uint16_t));
	subject_close(&a);
	subject_close(&b);
}

/* What is left of dark frames without their pedestals must not repeat in the other module, the next
 * frame or the other seed. */
static double correlation(struct subject *a, uint64_t frame_a, uint32_t module_a, struct subject *b,
			  uint64_t frame_b, uint32_t module_b)
{
	const uint16_t *x = subject_render(a, frame_a, module_a, SL_RECORD_DARK);
	const uint16_t *y = subject_render(b, frame_b, module_b, SL_RECORD_DARK);
	double sum = 0;

	for (size_t i = 0; i < PIXELS; i++)
		if (!a->calibration.mask[module_a * PIXELS + i] &&
		    !b->calibration.mask[module_b * PIXELS + i])
			sum += (x[i] - a->calibration.pedestal[0][module_a * PIXELS + i]) *
			       (y[i] - b->calibration.pedestal[0][module_b * PIXELS + i]);
	return sum / PIXELS / (23.9 * 23.9);
}

static void test_noise_does_not_repeat(void **arg)
{
	struct subject a = subject_open(1, 2, NULL), b = subject_open(2, 1, NULL);

	/* Five standard errors; the first is the check of the check. */
	assert_true(correlation(&a, 0, 0, &a, 0, 0) > 0.98);
	assert_true(fabs(correlation(&a, 0, 0, &a, 0, 1)) < 0.007);
	assert_true(fabs(correlation(&a, 0, 0, &a, 1, 0)) < 0.007);
	assert_true(fabs(correlation(&a, 0, 0, &b, 0, 0)) < 0.007);
	subject_close(&a);
	subject_close(&b);
}

static void test_bad_pixels_are_stuck_dead_or_hot_and_masked(void **arg)
{
	const char *const settings[] = {"bad_pixels", "40", NULL};
	struct subject s = subject_open(1, 2, settings);

	for (uint32_t module = 0; module < 2; module++) {
		const uint16_t *raw = subject_render(&s, 0, module, SL_RECORD_DARK);
		int high = 0, low = 0, dead = 0, hot = 0, masked = 0;

		for (int i = 0; i < PIXELS; i++) {
			size_t at = (size_t)module * PIXELS + (size_t)i;

			high += raw[i] == 0xffff;
			low += raw[i] == 0x4000;
			dead += s.calibration.gain[0][at] == 0;
			hot += raw[i] < 0x4000 && raw[i] > s.calibration.pedestal[0][at] + 1000;
			masked += s.calibration.mask[at] != 0;
		}
		assert_int_equal(high, 10);
		assert_int_equal(low, 10);
		assert_int_equal(dead, 10);
		assert_int_equal(hot, 10);
		assert_int_equal(masked, 40);
	}
	subject_close(&s);
}

/* Pixels have whole photons, but for the noise: a tenth of one at 6.2 keV. */
static void test_photon_energy_scales_the_signal(void **arg)
{
	const char *const settings[] = {
		"photon_energy_keV", "6.2", "hit_fraction", "0", "background_photons", "3", NULL};
	struct subject s = subject_open(1, 1, settings);
	const uint16_t *raw = subject_render(&s, 0, 0, 0);
	int near = 0, odd = 0;

	assert_true(s.geometry.photon_energy_keV == 6.2);
	for (uint32_t i = 0; i < PIXELS; i++) {
		double n = photons(&s, 0, i, raw[i]);

		near += fabs(n - round(n)) < 0.3;
		odd += isfinite(n) && (int)round(n) % 2 == 1;
	}
	assert_true(near > 0.99 * PIXELS);
	assert_true(odd > 0.2 * PIXELS);
	subject_close(&s);
}

/* The middle rows alone lie where they lie in the whole module, and are as wide. */
static void test_partial_readout_keeps_its_place_in_the_image(void **arg)
{
	static const uint32_t modules[] = {1, 8, 32}, rows[] = {8, 128, 504};
	static const char *const text[] = {"8", "128", "504"};

	for (unsigned i = 0; i < 3; i++) {
		const char *const settings[] = {"read_rows", text[i], "pool", "1", NULL};
		const char *const whole_pool[] = {"pool", "1", NULL};
		struct subject part = subject_open(1, modules[i], settings);
		struct subject whole = subject_open(1, modules[i], whole_pool);
		const struct sl_geometry *g = &part.geometry;
		uint32_t unread = (512 - rows[i]) / 2;
		char why[200] = "";

		assert_int_equal(g->rows, rows[i]);
		assert_int_equal(g->unread_rows, unread);
		assert_int_equal(g->module_bytes, rows[i] * 2048);
		assert_int_equal(g->layout.rows, whole.geometry.layout.rows);
		assert_int_equal(sl_layout_check(g, why, sizeof(why)), 0);
		for (uint32_t r = 0; r < rows[i]; r++) {
			uint32_t pixel = r * 1024 + 255, at = (r + unread) * 1024 + 255;
			uint32_t module = modules[i] - 1;
			double y[2], x[2];

			sl_layout_centre(g, module, pixel, &y[0], &x[0]);
			sl_layout_centre(&whole.geometry, module, at, &y[1], &x[1]);
			assert_true(y[0] == y[1] && x[0] == x[1]);
			assert_int_equal(sl_layout_share(g, pixel),
					 sl_layout_share(&whole.geometry, at));
		}
		subject_close(&part);
		subject_close(&whole);
	}
}

static void test_partial_readout_has_frames_and_calibration(void **arg)
{
	const char *const settings[] = {"read_rows",	 "16", "bad_pixels",   "8", "pool", "2",
					"storage_cells", "2",  "hit_fraction", "1", NULL};
	struct subject s = subject_open(1, 2, settings);
	const uint32_t pixels = 16 * 1024;

	for (uint32_t module = 0; module < 2; module++)
		for (uint64_t frame = 0; frame < 2; frame++) {
			const uint16_t *raw = subject_render(&s, frame, module, SL_RECORD_DARK);
			const float *pedestal = s.calibration.pedestal[0] +
						(frame * 2 + module) * pixels;
			int near = 0, masked = 0;

			for (uint32_t i = 0; i < pixels; i++) {
				near += fabsf(raw[i] - pedestal[i]) < 150;
				masked += s.calibration.mask[module * pixels + i];
			}
			assert_true(near >= (int)pixels - 8);
			assert_int_equal(masked, 8);
			assert_non_null(subject_render(&s, frame, module, 0));
		}
	subject_close(&s);
}

static void test_rows_that_cannot_be_read_out_are_refused(void **arg)
{
	struct sl_detector_options run = {.modules = 1, .frames = 1, .seed = 1};
	const struct sl_option *rows = sl_option_find(ops->options, "read_rows");
	static const char *const beyond[] = {"0", "4", "513", "520"};
	static const char *const odd[] = {"12", "500", "511"};
	void *state = calloc(1, ops->state_bytes);
	struct sl_geometry geometry;
	char why[128];

	sl_options_defaults(ops->options, state);
	for (unsigned i = 0; i < 4; i++)
		assert_int_not_equal(sl_option_set(rows, state, beyond[i], why, sizeof(why)), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_option_set(rows, state, odd[i], why, sizeof(why)), 0);
		assert_int_equal(ops->open(state, &run, &geometry), -EINVAL);
		ops->close(state);
	}
	free(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_veto_separates_hits_from_blanks),
		cmocka_unit_test(test_share_of_hits_is_as_near_as_the_pool_allows),
		cmocka_unit_test(test_seed_chooses_which_frames_are_hits),
		cmocka_unit_test(test_frames_repeat_after_the_pool),
		cmocka_unit_test(test_pedestals_are_spread_as_on_real_modules),
		cmocka_unit_test(test_gains_are_spread_about_their_mean),
		cmocka_unit_test(test_dark_frames_are_pedestal_and_noise),
		cmocka_unit_test(test_background_is_as_bright_as_asked_for_and_looks_like_water),
		cmocka_unit_test(test_background_does_not_depend_on_the_size),
		cmocka_unit_test(test_bright_spots_switch_the_gain_and_overload),
		cmocka_unit_test(test_resolution_limit_bounds_the_spots),
		cmocka_unit_test(test_hits_do_not_depend_on_hits_before_them),
		cmocka_unit_test(test_noise_does_not_repeat),
		cmocka_unit_test(test_bad_pixels_are_stuck_dead_or_hot_and_masked),
		cmocka_unit_test(test_wide_pixels_collect_more),
		cmocka_unit_test(test_storage_cells_have_pedestals_of_their_own),
		cmocka_unit_test(test_truth_points_at_bright_pixels),
		cmocka_unit_test(test_photon_energy_scales_the_signal),
		cmocka_unit_test(test_partial_readout_keeps_its_place_in_the_image),
		cmocka_unit_test(test_partial_readout_has_frames_and_calibration),
		cmocka_unit_test(test_rows_that_cannot_be_read_out_are_refused),
	};

	return cmocka_run_group_tests_name("jungfrau", tests, NULL, NULL);
}
