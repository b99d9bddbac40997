/* file_test.c - calibrations in files: what was written is read, and what is of another detector,
 * shape or unit is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibration/tables.h"
#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

enum { ROWS = 4, COLUMNS = 6, PIXELS = ROWS * COLUMNS };

static char scratch[256], path[512];
static const struct sl_geometry two = {
	.detector = "jungfrau", .modules = 2, .rows = ROWS, .columns = COLUMNS, .cells = 2};

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/c.h5", scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

static float value(int what, int gain, unsigned i)
{
	static const float scale[] = {41, -1.4f, -0.1f};

	return what == 2 ? scale[gain] * (1 + (float)i / 100)
			 : (float)(1000 * what + 100 * gain) + (float)i;
}

/* Gain 1 has no pedestals. */
static void fill(struct sl_tables *t, const struct sl_geometry *geometry)
{
	sl_tables_init(t, geometry);
	for (int g = 0; g < SL_GAINS; g++) {
		assert_int_equal(sl_tables_make(t, &t->gain[g], 1), 0);
		for (unsigned i = 0; i < t->pixels; i++)
			t->gain[g][i] = value(2, g, i);
		if (g == 1)
			continue;
		assert_int_equal(sl_tables_make(t, &t->pedestal[g], t->cells), 0);
		assert_int_equal(sl_tables_make(t, &t->rms[g], t->cells), 0);
		for (unsigned i = 0; i < t->cells * t->pixels; i++) {
			t->pedestal[g][i] = value(0, g, i);
			t->rms[g][i] = value(1, g, i);
		}
		t->frames[g] = 100 + (uint64_t)g;
	}
	assert_int_equal(sl_tables_make_mask(t), 0);
	for (unsigned i = 0; i < t->pixels; i++)
		t->mask[i] = (uint8_t)(i % 7 ? 0 : i);
}

static void write_one(const struct sl_geometry *geometry)
{
	struct sl_tables t;

	fill(&t, geometry);
	assert_int_equal(sl_calibration_write(path, &t), 0);
	sl_tables_free(&t);
}

static int read_as(const struct sl_geometry *geometry)
{
	struct sl_tables t;
	int err;

	sl_tables_init(&t, geometry);
	err = sl_calibration_read(path, &t);
	sl_tables_free(&t);
	return err;
}

static void what_was_written_is_read(void **state)
{
	struct sl_tables t;
	struct sl_geometry g;

	write_one(&two);
	assert_int_equal(sl_calibration_look(path, &g), 0);
	assert_string_equal(g.detector, "jungfrau");
	assert_int_equal(g.cells, 2);
	sl_tables_init(&t, &g);
	assert_int_equal(sl_calibration_read(path, &t), 0);
	assert_null(t.pedestal[1]); /* was not measured */
	for (int k = 0; k < SL_GAINS; k++)
		for (unsigned i = 0; i < 2 * t.pixels; i++) {
			if (k != 1) {
				assert_true(t.pedestal[k][i] == value(0, k, i));
				assert_true(t.rms[k][i] == value(1, k, i));
			}
			if (i < t.pixels)
				assert_true(t.gain[k][i] == value(2, k, i));
		}
	for (unsigned i = 0; i < t.pixels; i++)
		assert_int_equal(t.mask[i], i % 7 ? 0 : i);
	assert_int_equal(t.frames[0], 100);
	assert_int_equal(t.frames[2], 102);
	assert_true(strlen(t.created) > 10);
	sl_tables_free(&t);
}

/* Measured one after another: a file has what it has, and leaves the rest alone. */
static void files_add_up(void **state)
{
	struct sl_tables t, other;

	write_one(&two);
	sl_tables_init(&t, &two);
	assert_int_equal(sl_tables_make(&t, &t.pedestal[1], 2), 0);
	t.pedestal[1][5] = 77;
	assert_int_equal(sl_calibration_read(path, &t), 0);
	assert_true(t.pedestal[1][5] == 77);
	assert_true(t.pedestal[0][5] == value(0, 0, 5));
	/* The gains alone. */
	sl_tables_init(&other, &two);
	assert_int_equal(sl_gains_read(path, &other), 0);
	assert_true(other.gain[2][7] == value(2, 2, 7));
	assert_null(other.pedestal[0]);
	assert_null(other.mask);
	sl_tables_free(&t);
	sl_tables_free(&other);
}

static void a_file_without_gains_is_refused_as_gains(void **state)
{
	struct sl_tables t;

	sl_tables_init(&t, &two);
	assert_int_equal(sl_tables_make_mask(&t), 0);
	assert_int_equal(sl_calibration_write(path, &t), 0);
	sl_tables_free(&t);
	sl_tables_init(&t, &two);
	assert_int_equal(sl_calibration_read(path, &t), 0);
	sl_tables_free(&t);
	sl_tables_init(&t, &two);
	assert_int_equal(sl_gains_read(path, &t), -EINVAL);
	sl_tables_free(&t);
}

/* A pixel switches between all gains: a table less is none. */
static void gains_are_written_if_all_are_there(void **state)
{
	for (int without = -1; without < SL_GAINS; without++) {
		struct sl_tables t;

		fill(&t, &two);
		if (without >= 0) {
			free(t.gain[without]);
			t.gain[without] = NULL;
		}
		assert_int_equal(sl_calibration_write(path, &t), 0);
		sl_tables_free(&t);
		sl_tables_init(&t, &two);
		capture_begin();
		assert_int_equal(sl_gains_read(path, &t), without < 0 ? 0 : -EINVAL);
		capture_end();
		sl_tables_free(&t);
	}
}

static void another_detector_is_refused(void **state)
{
	struct sl_geometry g = two;

	write_one(&two);
	assert_int_equal(read_as(&two), 0);
	strcpy(g.detector, "eiger");
	assert_int_equal(read_as(&g), -EINVAL);
	strcpy(g.detector, "replay"); /* of what, it does not say */
	assert_int_equal(read_as(&g), 0);
	for (int i = 0; i < 8; i++) { /* one more, one less, of each */
		uint32_t *number[] = {&g.modules, &g.rows, &g.columns, &g.cells};

		g = two;
		*number[i / 2] += i % 2 ? 1u : -1u;
		assert_int_equal(read_as(&g), -EINVAL);
	}
}

/* Of the right shape, and with pedestals of numbers, or NaN, or without. */
static void a_file_without_anything_is_refused(void **state)
{
	static const struct sl_h5_shape shape = {SL_H5_F32, 5, {2, 3, 2, ROWS, COLUMNS}};
	static float data[2 * 3 * 2 * PIXELS];
	const uint32_t numbers[] = {1, 2, ROWS, COLUMNS, 2};
	const char *const names[] = {"version", "modules", "rows", "columns", "cells"};

	for (int n = 0; n < 3; n++) {
		struct sl_h5 *file;

		for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++)
			data[i] = n ? NAN : 1;
		assert_int_equal(sl_h5_create(path, &file), 0);
		sl_h5_attribute_text(file, "/", "format", "sluice-calibration");
		sl_h5_attribute_text(file, "/", "detector", "jungfrau");
		for (int i = 0; i < 5; i++)
			sl_h5_attribute(file, "/", names[i], SL_H5_U32, 0, &numbers[i]);
		if (n < 2) {
			sl_h5_write(file, "/pedestal", &shape, data);
			sl_h5_attribute_text(file, "/pedestal", "units", "ADU");
		}
		assert_int_equal(sl_h5_finish(file), 0);
		assert_int_equal(read_as(&two), n ? -EINVAL : 0);
	}
}

static void other_units_and_shapes_are_refused(void **state)
{
	static const struct sl_h5_shape shapes[] = {{SL_H5_F32, 5, {2, 3, 2, ROWS, COLUMNS}},
						    {SL_H5_F32, 5, {2, 3, 2, COLUMNS, ROWS}}};
	static const char *const units[] = {"ADU", "keV"};
	static float data[2 * 3 * 2 * PIXELS];
	const uint32_t numbers[] = {1, 2, ROWS, COLUMNS, 2};
	const char *const names[] = {"version", "modules", "rows", "columns", "cells"};

	for (int shape = 0; shape < 2; shape++)
		for (int unit = 0; unit < 2; unit++) {
			struct sl_h5 *file;

			assert_int_equal(sl_h5_create(path, &file), 0);
			sl_h5_attribute_text(file, "/", "format", "sluice-calibration");
			sl_h5_attribute_text(file, "/", "detector", "jungfrau");
			for (int i = 0; i < 5; i++)
				sl_h5_attribute(file, "/", names[i], SL_H5_U32, 0, &numbers[i]);
			sl_h5_write(file, "/pedestal", &shapes[shape], data);
			sl_h5_attribute_text(file, "/pedestal", "units", units[unit]);
			assert_int_equal(sl_h5_finish(file), 0);
			assert_int_equal(read_as(&two), shape || unit ? -EINVAL : 0);
		}
}

static void files_that_are_none_are_refused(void **state)
{
	struct sl_geometry g;
	struct sl_h5 *file;
	FILE *text;

	assert_int_equal(read_as(&two), -ENOENT);
	text = fopen(path, "w");
	fputs("no calibration", text);
	fclose(text);
	assert_true(read_as(&two) < 0);
	assert_int_equal(sl_h5_create(path, &file), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(read_as(&two), -EINVAL);
	assert_int_equal(sl_calibration_look(path, &g), -EINVAL);
}

/* As PSI's: float64, planes of a module one after another. */
static void write_raw(unsigned module, unsigned planes, double factor, bool turned)
{
	char name[600];
	FILE *file;

	snprintf(name, sizeof(name), "%s/gainMaps_M%03u.bin", scratch, module);
	file = fopen(name, "wb");
	for (unsigned g = 0; g < planes; g++)
		for (unsigned i = 0; i < PIXELS; i++) {
			double gain = value(2, (int)(g % 3), module * PIXELS + i);

			gain = turned ? 1 / gain : gain * factor;
			fwrite(&gain, sizeof(gain), 1, file);
		}
	fclose(file);
}

static int read_raw_of(const struct sl_geometry *geometry, struct sl_tables *t)
{
	char pattern[600];

	sl_tables_init(t, geometry);
	snprintf(pattern, sizeof(pattern), "%s/gainMaps_M*.bin", scratch);
	return sl_gains_read(pattern, t);
}

static int read_raw(struct sl_tables *t)
{
	return read_raw_of(&two, t);
}

static void gains_come_raw_with_three_or_six_planes(void **state)
{
	struct sl_tables t;

	for (unsigned planes = 3; planes <= 6; planes += 3) {
		write_raw(0, planes, 1, false);
		write_raw(1, planes, 1, false);
		assert_int_equal(read_raw(&t), 0);
		for (int g = 0; g < SL_GAINS; g++)
			for (unsigned i = 0; i < 2 * PIXELS; i++)
				assert_true(t.gain[g][i] == value(2, g, i));
		sl_tables_free(&t);
	}
}

/* Files have the whole module, whatever is read out of it. */
static void raw_gains_of_a_partial_readout_are_the_middle_rows(void **state)
{
	struct sl_geometry middle = two;
	struct sl_tables t;

	middle.rows = ROWS - 2;
	middle.unread_rows = 1;
	write_raw(0, 3, 1, false);
	write_raw(1, 3, 1, false);
	assert_int_equal(read_raw_of(&middle, &t), 0);
	for (int g = 0; g < SL_GAINS; g++)
		for (unsigned m = 0; m < 2; m++)
			for (unsigned i = 0; i < PIXELS - 2 * COLUMNS; i++)
				assert_true(t.gain[g][m * (PIXELS - 2 * COLUMNS) + i] ==
					    value(2, g, m * PIXELS + COLUMNS + i));
	sl_tables_free(&t);
	middle.unread_rows = 0; /* files of a larger module */
	assert_int_equal(read_raw_of(&middle, &t), -EINVAL);
	sl_tables_free(&t);
}

static void raw_gains_that_cannot_be_true_are_refused(void **state)
{
	struct sl_tables t;

	write_raw(0, 3, 1, false);
	assert_int_equal(read_raw(&t), -EINVAL); /* of one module */
	sl_tables_free(&t);
	write_raw(1, 4, 1, false);
	assert_int_equal(read_raw(&t), -EINVAL);
	sl_tables_free(&t);
	write_raw(0, 3, 1, true);
	write_raw(1, 3, 1, true);
	assert_int_equal(read_raw(&t), -EINVAL); /* keV per ADU */
	sl_tables_free(&t);
	write_raw(0, 3, 1, false); /* one of them is enough */
	assert_int_equal(read_raw(&t), -EINVAL);
	sl_tables_free(&t);
	write_raw(1, 3, NAN, false);
	assert_int_equal(read_raw(&t), -EINVAL);
	sl_tables_free(&t);
	write_raw(0, 3, 0, false);
	write_raw(1, 3, 0, false);
	assert_int_equal(read_raw(&t), -EINVAL);
	sl_tables_free(&t);
	write_raw(0, 3, -1, false);
	write_raw(1, 3, -1, false);
	assert_int_equal(read_raw(&t), -EINVAL);
	sl_tables_free(&t);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_was_written_is_read),
		CASE(files_add_up),
		CASE(a_file_without_gains_is_refused_as_gains),
		CASE(gains_are_written_if_all_are_there),
		CASE(another_detector_is_refused),
		CASE(a_file_without_anything_is_refused),
		CASE(other_units_and_shapes_are_refused),
		CASE(files_that_are_none_are_refused),
		CASE(gains_come_raw_with_three_or_six_planes),
		CASE(raw_gains_of_a_partial_readout_are_the_middle_rows),
		CASE(raw_gains_that_cannot_be_true_are_refused),
	};

	return cmocka_run_group_tests_name("calibration file", tests, NULL, NULL);
}
