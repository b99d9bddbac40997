/* described_test.c - where the pixels of an NXmx file of another program lie: as a description, as
 * a table and as a PONI file; and files that do not say it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geometry/described.h"
#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

#define DETECTOR "/entry/instrument/detector"
#define MOVED	 DETECTOR "/transformations/moved"

/* Two parts of 3 x 8 pixels of 1 mm, one above the other, 100 mm from the sample. */
enum { PARTS = 2, ROWS = 3, COLUMNS = 8 };

/* What a case leaves out. */
enum missing { NOTHING, PIXEL_SIZE, DISTANCE, DIRECTION, PART };

static char scratch[256], path[512];

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/a.nxs", scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

static void write_axis(struct sl_h5 *file, const char *name, double length, const double vector[3])
{
	sl_h5_write_f64(file, name, length, "m");
	sl_h5_attribute(file, name, "vector", SL_H5_F64, 3, vector);
}

static void write_translation(struct sl_h5 *file, const char *name, double length,
			      const double vector[3], const double offset[3], const char *next)
{
	write_axis(file, name, length, vector);
	sl_h5_attribute(file, name, "offset", SL_H5_F64, 3, offset);
	sl_h5_attribute_text(file, name, "transformation_type", "translation");
	sl_h5_attribute_text(file, name, "depends_on", next);
}

static void write_part(struct sl_h5 *file, uint32_t part, enum missing missing)
{
	const struct sl_h5_shape two = {SL_H5_U64, 1, {2}};
	const uint64_t origin[] = {part * ROWS, 0}, size[] = {ROWS, COLUMNS};
	const double left[] = {-1, 0, 0}, down[] = {0, -1, 0}, none[] = {0, 0, 0};
	char group[64], name[128];

	snprintf(group, sizeof(group), DETECTOR "/module_%u", part);
	sl_h5_group(file, group, "NXdetector_module");
	snprintf(name, sizeof(name), "%s/data_origin", group);
	sl_h5_write(file, name, &two, origin);
	snprintf(name, sizeof(name), "%s/data_size", group);
	sl_h5_write(file, name, &two, size);
	snprintf(name, sizeof(name), "%s/module_offset", group);
	write_translation(file, name, 1e-3 * part * ROWS, down, none, MOVED);
	snprintf(name, sizeof(name), "%s/fast_pixel_direction", group);
	write_axis(file, name, 1e-3, left);
	snprintf(name, sizeof(name), "%s/slow_pixel_direction", group);
	if (part == 0 || missing != DIRECTION)
		write_axis(file, name, 1e-3, down);
}

static void write_nxmx(enum missing missing)
{
	const struct sl_h5_shape images = {SL_H5_U16, 3, {1, PARTS * ROWS, COLUMNS}};
	static const uint16_t image[PARTS * ROWS * COLUMNS];
	const double along[] = {0, 0, 1}, offset[] = {5e-3, 3e-3, 0};
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/data", "NXdata");
	sl_h5_write(file, "/entry/data/data", &images, image);
	sl_h5_group(file, "/entry/instrument", "NXinstrument");
	sl_h5_group(file, "/entry/instrument/beam", "NXbeam");
	sl_h5_write_f64(file, "/entry/instrument/beam/incident_wavelength", 2, "angstrom");
	sl_h5_group(file, DETECTOR, "NXdetector");
	sl_h5_write_text(file, DETECTOR "/description", "by hand");
	if (missing != PIXEL_SIZE)
		sl_h5_write_f64(file, DETECTOR "/x_pixel_size", 1e-3, "m");
	if (missing != DISTANCE)
		sl_h5_write_f64(file, DETECTOR "/distance", 0.1, "m");
	sl_h5_group(file, DETECTOR "/transformations", "NXtransformations");
	write_translation(file, MOVED, 0.1, along, offset, ".");
	for (uint32_t part = 0; missing != PART && part < PARTS; part++)
		write_part(file, part, missing);
	assert_int_equal(sl_h5_finish(file), 0);
}

static void near(double a, double b)
{
	if (!(fabs(a - b) < 1e-12))
		fail_msg("%.17g instead of %.17g", a, b);
}

static void what_an_nxmx_file_says_is_described(void **state)
{
	struct sl_described d;

	write_nxmx(NOTHING);
	assert_int_equal(sl_describe_file(path, &d), 0);
	assert_string_equal(d.detector, "by hand");
	assert_int_equal(d.parts, PARTS);
	assert_int_equal(d.modules, 0);
	assert_int_equal(d.rows, PARTS * ROWS);
	assert_int_equal(d.columns, COLUMNS);
	assert_int_equal(d.image_rows, PARTS * ROWS);
	assert_int_equal(d.image_columns, COLUMNS);
	assert_true(d.assembled);
	assert_false(d.has_mask);
	near(d.pixel_size_m, 1e-3);
	near(d.distance_m, 0.1);
	near(d.energy_keV, 12.398419843320026 / 2);
	for (uint32_t i = 0; i < PARTS; i++) {
		assert_int_equal(d.part[i].module, i);
		assert_int_equal(d.part[i].first_row, i * ROWS);
		assert_int_equal(d.part[i].rows, ROWS);
		assert_int_equal(d.part[i].columns, COLUMNS);
		near(d.part[i].origin[0], 5e-3);
		near(d.part[i].origin[1], 3e-3 - 1e-3 * i * ROWS);
		near(d.part[i].origin[2], 0.1);
		near(d.part[i].fast[0], -1e-3);
		near(d.part[i].slow[1], -1e-3);
	}
	sl_described_free(&d);
}

/* Every number of a part's line, and what the head says of the whole image. */
static void the_table_has_the_middle_of_every_part(void **state)
{
	static const char *const says[] = {
		"detector    by hand, images of 6 x 8 pixels of 1000 um\n",
		"\ndistance    0.1 m, along the normal\n",
		"\nbeam        row 3.000, column 5.000 of the assembled image\n",
		"\nphotons     6.19921 keV, 2 A\n",
		"\nm0a0                0-2            0-7     1.0000     1.5000   100.0000 ",
		"\nm1a0                3-5            0-7     1.0000    -1.5000   100.0000 ",
	};
	struct sl_described d;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	write_nxmx(NOTHING);
	assert_int_equal(sl_describe_file(path, &d), 0);
	sl_described_table(out, &d);
	fclose(out);
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!strstr(text, says[i]))
			fail_msg("'%s' is not in\n%s", says[i], text);
	free(text);
	sl_described_free(&d);
}

static void a_poni_file_is_of_the_whole_image(void **state)
{
	struct sl_described d;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	write_nxmx(NOTHING);
	assert_int_equal(sl_describe_file(path, &d), 0);
	assert_int_equal(sl_described_poni(out, &d), 0);
	fclose(out);
	if (!strstr(text, "\"max_shape\": [6, 8]"))
		fail_msg("%s", text);
	free(text);
	sl_described_free(&d);
}

static void files_that_lack_something_are_refused_with_what_it_is(void **state)
{
	static const struct {
		enum missing missing;
		const char *says;
	} cases[] = {{PIXEL_SIZE, "a.nxs: it has no pixel size or no distance"},
		     {DISTANCE, "a.nxs: it has no pixel size or no distance"},
		     {DIRECTION, "/module_1/slow_pixel_direction: has no length or no vector"},
		     {PART, "has no module_0"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_described d;
		const char *said;
		int err;

		write_nxmx(cases[i].missing);
		capture_begin();
		err = sl_describe_file(path, &d);
		said = capture_end();
		assert_int_equal(err, -EINVAL);
		if (!strstr(said, cases[i].says))
			fail_msg("'%s' is not in '%s'", cases[i].says, said);
		assert_int_equal(d.parts, 0);
		assert_null(d.part);
		sl_described_free(&d);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_an_nxmx_file_says_is_described),
		CASE(the_table_has_the_middle_of_every_part),
		CASE(a_poni_file_is_of_the_whole_image),
		CASE(files_that_lack_something_are_refused_with_what_it_is),
	};

	return cmocka_run_group_tests_name("described", tests, NULL, NULL);
}
