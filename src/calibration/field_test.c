/* field_test.c - numbers per pixel from raw and HDF5 files; others are refused, and told why. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibration/field.h"
#include "hdf5/file.h"
#include "lib/capture.h"

enum { MODULES = 3, ROWS = 4, COLUMNS = 5, PIXELS = MODULES * ROWS * COLUMNS };

static const struct sl_geometry geometry = {
	.detector = "test", .modules = MODULES, .rows = ROWS, .columns = COLUMNS};

static char path[200];

static int set_up(void **arg)
{
	const char *folder = getenv("TMPDIR");

	(void)arg;
	snprintf(path, sizeof(path), "%s/field-%d", folder ? folder : "/tmp", (int)getpid());
	return 0;
}

static int tear_down(void **arg)
{
	(void)arg;
	unlink(path);
	return 0;
}

static void write_raw(const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
}

static void write_hdf5(const char *const *name, const struct sl_h5_shape *shape, unsigned datasets,
		       const void *data)
{
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	for (unsigned i = 0; i < datasets; i++)
		assert_int_equal(sl_h5_write(file, name[i], &shape[i], data), 0);
	assert_int_equal(sl_h5_finish(file), 0);
}

static void read_and_check(const char *text, int nan_at)
{
	float *field = NULL;

	assert_int_equal(sl_field_read(text, "test", &geometry, &field), 0);
	for (int i = 0; i < PIXELS; i++)
		assert_true(i == nan_at ? isnan(field[i]) : field[i] == (float)i * 2);
	free(field);
}

static void refused(const char *text, const char *words)
{
	float *field = NULL;

	capture_begin();
	assert_true(sl_field_read(text, "test", &geometry, &field) < 0);
	assert_non_null(strstr(capture_end(), words));
	assert_null(field);
}

static void raw_files_are_float32_or_float64_by_their_size(void **arg)
{
	float single[PIXELS];
	double twice[PIXELS];

	(void)arg;
	for (int i = 0; i < PIXELS; i++)
		twice[i] = single[i] = (float)i * 2;
	single[7] = NAN;
	write_raw(single, sizeof(single));
	read_and_check(path, 7);
	write_raw(twice, sizeof(twice));
	read_and_check(path, -1);
	write_raw(twice, sizeof(twice) - 1);
	refused(path, "are 240 as float32, 480 as float64");
	write_raw(twice, 0);
	refused(path, "has 0 bytes");
	refused("/nothing/there", "cannot read '/nothing/there'");
}

/* The lowest number that is free. */
static int next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void files_are_closed_again(void **arg)
{
	double data[PIXELS] = {0};
	float *field = NULL;
	int before = next_descriptor();

	(void)arg;
	for (unsigned half = 1; half <= 2; half++) {
		write_raw(data, sizeof(data) / half);
		assert_int_equal(sl_field_read(path, "test", &geometry, &field), 0);
		free(field);
		field = NULL;
		assert_int_equal(next_descriptor(), before);
	}
	write_raw(data, 1);
	refused(path, "has 1 bytes");
	assert_int_equal(next_descriptor(), before);
}

static void hdf5_in_any_shape_and_type_that_fits(void **arg)
{
	static const char *const one[] = {"/data"};
	const struct sl_h5_shape good[] = {
		{SL_H5_F64, 3, {MODULES, ROWS, COLUMNS}},
		{SL_H5_F64, 2, {MODULES * ROWS, COLUMNS}},
		{SL_H5_F64, 3, {1, MODULES * ROWS, COLUMNS}},
		{SL_H5_F64, 4, {1, MODULES, ROWS, COLUMNS}},
	};
	const struct sl_h5_shape bad[] = {
		{SL_H5_F64, 3, {MODULES, COLUMNS, ROWS}},
		{SL_H5_F64, 3, {2, MODULES * ROWS, COLUMNS}},
		{SL_H5_F64, 2, {ROWS, COLUMNS}},
		{SL_H5_F64, 4, {2, MODULES, ROWS, COLUMNS}},
	};
	const struct sl_h5_shape whole = {SL_H5_U16, 3, {MODULES, ROWS, COLUMNS}};
	double data[2 * PIXELS];
	uint16_t counts[PIXELS];

	(void)arg;
	for (int i = 0; i < 2 * PIXELS; i++) {
		data[i] = i * 2;
		counts[i % PIXELS] = (uint16_t)(i % PIXELS * 2);
	}
	for (unsigned i = 0; i < 4; i++) {
		write_hdf5(one, &good[i], 1, data);
		read_and_check(path, -1);
		write_hdf5(one, &bad[i], 1, data);
		refused(path, "the detector has 3 modules of 4 x 5 pixels");
	}
	write_hdf5(one, &whole, 1, counts);
	read_and_check(path, -1);
}

static void of_several_datasets_one_is_named(void **arg)
{
	static const char *const two[] = {"/one", "/two"};
	const struct sl_h5_shape shape[] = {{SL_H5_F64, 2, {2, 2}},
					    {SL_H5_F64, 3, {MODULES, ROWS, COLUMNS}}};
	double data[PIXELS];
	char text[sizeof(path) + 32];

	(void)arg;
	for (int i = 0; i < PIXELS; i++)
		data[i] = i * 2;
	write_hdf5(two, shape, 2, data);
	refused(path, "several datasets");
	snprintf(text, sizeof(text), "%s:/two", path);
	read_and_check(text, -1);
	snprintf(text, sizeof(text), "%s:/one", path);
	refused(text, "has 2 x 2 numbers in /one");
	snprintf(text, sizeof(text), "%s:/three", path);
	refused(text, "has no dataset '/three'");
	write_hdf5(two, shape, 0, data);
	refused(path, "no dataset");
}

static void without_a_finite_number_there_is_nothing(void **arg)
{
	float numbers[PIXELS];

	(void)arg;
	for (int i = 0; i < PIXELS; i++)
		numbers[i] = i % 2 ? NAN : INFINITY;
	write_raw(numbers, sizeof(numbers));
	refused(path, "not one finite number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_closed_again),
		cmocka_unit_test(raw_files_are_float32_or_float64_by_their_size),
		cmocka_unit_test(hdf5_in_any_shape_and_type_that_fits),
		cmocka_unit_test(of_several_datasets_one_is_named),
		cmocka_unit_test(without_a_finite_number_there_is_nothing),
	};

	return cmocka_run_group_tests_name("field", tests, set_up, tear_down);
}
