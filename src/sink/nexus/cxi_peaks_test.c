/* cxi_peaks_test.c - a peak's position points at its pixels in the stored image. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hdf5/testing.h"
#include "sink/nexus/cxi_peaks.h"

enum { MOST = 6, MODULES = 3, ROWS = 8, COLUMNS = 12, PEAK = 8 };

static char scratch[200], path[256];

/* Three modules in an image of their own, two of them turned, with ASICs of 4 x 6 that are two
 * pixels apart. */
static const struct sl_geometry geometry = {
	.modules = MODULES,
	.rows = ROWS,
	.columns = COLUMNS,
	.layout = {.rows = 40,
		   .columns = 30,
		   .asic_rows = 4,
		   .asic_columns = 6,
		   .gap = 2,
		   .module = {{1, 2, 0}, {12, 3, 1}, {27, 10, 2}}},
};

static const struct sl_shape shapes[] = {
	{.name = "image", .dtype = SL_U16, .rank = 3, .dim = {MODULES, ROWS, COLUMNS}},
	{.name = "peaks", .dtype = SL_F32, .rank = 2, .dim = {MOST, PEAK}, .ragged = 1},
};

/* Stores frames of peaks; [frames][MOST][PEAK], and how many of each. */
static struct sl_h5 *store(bool assembled, uint32_t results, float *peaks, const uint32_t *rows,
			   int frames)
{
	struct sl_env env = {.geometry = &geometry, .result = shapes, .results = results};
	struct sl_cxi_peaks cxi;
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	assert_int_equal(sl_cxi_peaks_open(&cxi, file, &env, assembled), 0);
	for (int f = 0; f < frames; f++) {
		struct sl_frame frame = {.results = 2};

		frame.result[1] = (struct sl_array){
			.shape = shapes[1], .host = peaks + f * MOST * PEAK, .rows = rows[f]};
		sl_cxi_peaks_append(&cxi, &frame);
	}
	sl_cxi_peaks_close(&cxi);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	return file;
}

static void read_floats(struct sl_h5 *file, const char *name, float *data, size_t bytes)
{
	char full[64];

	snprintf(full, sizeof(full), "/entry/peaks/%s", name);
	assert_int_equal(sl_h5_read(file, full, SL_H5_F32, data, bytes), 0);
}

static void modules_lie_below_each_other(void **state)
{
	float peaks[2][MOST][PEAK] = {{{0, 2.5f, 3.5f, 100, 7}, {2, 1.25f, 11, 50, 6}},
				      {{1, 7.5f, 0.5f, 30, 5}}};
	const uint32_t rows[] = {2, 1};
	float x[2][MOST], y[2][MOST], intensity[2][MOST], snr[2][MOST];
	int32_t count[2];
	struct sl_h5 *file = store(false, 2, &peaks[0][0][0], rows, 2);

	(void)state;
	assert_int_equal(sl_h5_read(file, "/entry/peaks/nPeaks", SL_H5_I32, count, sizeof(count)),
			 0);
	read_floats(file, "peakXPosRaw", &x[0][0], sizeof(x));
	read_floats(file, "peakYPosRaw", &y[0][0], sizeof(y));
	read_floats(file, "peakTotalIntensity", &intensity[0][0], sizeof(intensity));
	read_floats(file, "peakSNR", &snr[0][0], sizeof(snr));
	sl_h5_close(file);
	assert_true(count[0] == 2 && count[1] == 1);
	assert_true(x[0][0] == 3 && y[0][0] == 2 && x[0][1] == 10.5f && y[0][1] == 16.75f);
	assert_true(x[1][0] == 0 && y[1][0] == 15);
	assert_true(intensity[0][1] == 50 && snr[0][0] == 7 && snr[1][0] == 5);
	assert_true(x[0][2] == 0 && x[1][1] == 0 && intensity[1][1] == 0);
}

/* Every raw pixel in turn is the one bright pixel of an assembled image. */
static void positions_point_at_pixels_of_the_assembled_image(void **state)
{
	enum { ALL = MODULES * ROWS * COLUMNS, FRAMES = ALL / MOST };
	static float peaks[FRAMES][MOST][PEAK], x[FRAMES][MOST], y[FRAMES][MOST];
	static uint16_t modules[ALL], image[40 * 30];
	static uint32_t rows[FRAMES];
	const uint16_t fill = 0xffff;
	struct sl_h5 *file;

	(void)state;
	for (int i = 0; i < ALL; i++) {
		float *peak = peaks[i / MOST][i % MOST];

		modules[i] = (uint16_t)i;
		rows[i / MOST] = MOST;
		peak[0] = (float)(i / (ROWS * COLUMNS));
		peak[1] = (float)(i / COLUMNS % ROWS) + 0.5f;
		peak[2] = (float)(i % COLUMNS) + 0.5f;
	}
	file = store(true, 2, &peaks[0][0][0], rows, FRAMES);
	read_floats(file, "peakXPosRaw", &x[0][0], sizeof(x));
	read_floats(file, "peakYPosRaw", &y[0][0], sizeof(y));
	sl_h5_close(file);
	sl_layout_assemble(&geometry, 2, modules, 0, &fill, image);
	for (int i = 0; i < ALL; i++) {
		double row = y[i / MOST][i % MOST], column = x[i / MOST][i % MOST];

		assert_int_equal(image[(int)floor(row + 0.5) * 30 + (int)floor(column + 0.5)], i);
	}
}

/* A third of the way from one pixel to the next, also where the gap is between them. */
static void positions_between_pixels_lie_between_them(void **state)
{
	static float peaks[MOST][PEAK];
	float x[MOST], y[MOST];
	uint32_t rows = MOST;
	struct sl_h5 *file;

	(void)state;
	for (int i = 0; i < MOST; i++) {
		float along = (float)(i % 3) / 2, column = i < 3 ? 2.5f : 5.5f;

		memcpy(peaks[i], (float[]){1, 1.5f, column + along}, 3 * sizeof(float));
	}
	file = store(true, 2, &peaks[0][0], &rows, 1);
	read_floats(file, "peakXPosRaw", x, sizeof(x));
	read_floats(file, "peakYPosRaw", y, sizeof(y));
	sl_h5_close(file);
	for (int i = 0; i < MOST; i += 3) {
		assert_true(fabsf(y[i + 1] - (y[i] + y[i + 2]) / 2) < 1e-5f);
		assert_true(fabsf(x[i + 1] - (x[i] + x[i + 2]) / 2) < 1e-5f);
		/* The module is turned: along its columns is down. Wide pixels are two wide. */
		assert_true(fabsf(fabsf(y[i + 2] - y[i]) - (i ? 2 : 1)) < 1e-5f);
		assert_true(x[i + 2] == x[i]);
	}
}

static void without_peaks_there_is_no_group(void **state)
{
	float none[MOST * PEAK] = {0};
	const uint32_t rows = 0;
	struct sl_h5 *file = store(false, 1, none, &rows, 1);
	struct sl_h5_shape shape;

	(void)state;
	assert_int_equal(sl_h5_describe(file, "/entry/peaks/nPeaks", &shape), -ENOENT);
	sl_h5_close(file);
}

static int make_scratch(void **state)
{
	(void)state;
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/peaks.h5", scratch);
	return 0;
}

static int remove_scratch(void **state)
{
	(void)state;
	scratch_remove(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_lie_below_each_other),
		cmocka_unit_test(positions_point_at_pixels_of_the_assembled_image),
		cmocka_unit_test(positions_between_pixels_lie_between_them),
		cmocka_unit_test(without_peaks_there_is_no_group),
	};

	return cmocka_run_group_tests_name("cxi_peaks", tests, make_scratch, remove_scratch);
}
