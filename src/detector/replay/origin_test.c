/* origin_test.c - which detector images are of: by the file, by name, by options. */
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

#include "base/log.h"
#include "detector/replay/origin.h"
#include "hdf5/geometry.h"
#include "hdf5/testing.h"

static char scratch[256], path[512], said[1024];

static void listen(void *arg, enum sl_log_level level, const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
}

static const struct sl_log_target target = {listen, NULL};

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/a.h5", scratch);
	sl_log_set_target(&target);
	return 0;
}

static int teardown(void **state)
{
	sl_log_set_target(NULL);
	scratch_remove(scratch);
	return 0;
}

static struct sl_origin_file nothing(void)
{
	struct sl_origin_file from;

	sl_origin_nothing(&from);
	return from;
}

static struct sl_origin_options named(const char *name)
{
	return (struct sl_origin_options){.name = name, .sensor_material = "", .cells = 1};
}

static struct sl_stack_shape image_of(uint32_t modules, uint32_t rows, uint32_t columns)
{
	uint64_t pixels = (uint64_t)rows * columns * (modules ? modules : 1);

	return (struct sl_stack_shape){.dtype = SL_U16,
				       .modules = modules,
				       .rows = rows,
				       .columns = columns,
				       .image_bytes = 2 * pixels};
}

static int find(const char *name, const struct sl_origin_file *from, struct sl_stack_shape shape,
		uint32_t modules, struct sl_origin_found *found)
{
	struct sl_origin_options o = named(name);

	said[0] = 0;
	return sl_origin_find(&o, from, &shape, modules, "run.h5", found);
}

static void test_a_stack_of_a_known_detector_has_its_places(void **state)
{
	struct sl_origin_file from = nothing();
	struct sl_origin_found found;
	const struct sl_geometry *g = &found.geometry;

	for (int way = 0; way < 2; way++) {
		struct sl_stack_shape shape = way ? image_of(8, 512, 1024)
						  : image_of(0, 4096, 1024);

		assert_int_equal(find("jungfrau", &from, shape, 8, &found), 0);
		assert_false(found.cut);
		assert_int_equal(g->layout.rows, 2164);
		assert_int_equal(g->layout.columns, 2068);
		assert_int_equal(g->layout.module[3].column, 1038);
		assert_int_equal(sl_layout_share(g, 255 * 1024 + 255), 4);
		assert_string_equal(g->sensor_material, "Si");
		assert_true(g->sensor_thickness_m == 320e-6);
		assert_null(found.mask);
	}
	assert_int_equal(find("eiger", &from, image_of(0, 4096, 1024), 8, &found), 0);
	assert_int_equal(g->layout.rows, 2167);
}

static void test_an_assembled_image_is_cut_or_one_panel(void **state)
{
	struct sl_origin_file from = nothing();
	struct sl_origin_found found;

	assert_int_equal(find("jungfrau", &from, image_of(0, 2164, 2068), 8, &found), 0);
	assert_true(found.cut);
	assert_int_equal(found.geometry.rows, 512);
	assert_int_equal(find("jungfrau", &from, image_of(0, 2164, 2068), 1, &found), 0);
	assert_false(found.cut);
	assert_int_equal(found.geometry.rows, 2164);
	assert_int_equal(found.geometry.layout.gap, 0);
	assert_string_equal(found.geometry.sensor_material, "Si");
	/* The beam of an image of another program is in its pixels. */
	from.geometry.layout.beam_row = 1000;
	from.geometry.layout.beam_column = 900;
	assert_int_equal(find("jungfrau", &from, image_of(0, 2164, 2068), 8, &found), 0);
	assert_true(found.geometry.layout.beam_row == 1000);
	assert_int_equal(find("jungfrau", &from, image_of(0, 4096, 1024), 8, &found), 0);
	assert_true(found.geometry.layout.beam_row == 1082); /* of a stack it says nothing */
}

static void test_what_is_unknown_is_asked_for(void **state)
{
	struct sl_origin_file from = nothing();
	struct sl_origin_found found;

	assert_int_equal(find("", &from, image_of(0, 4096, 1024), 8, &found), 0);
	assert_non_null(strstr(said, "Set detector.origin: jungfrau or eiger"));
	assert_int_equal(found.geometry.layout.rows, 4096);
	assert_int_equal(find("mine", &from, image_of(0, 4096, 1024), 8, &found), 0);
	assert_string_equal(said, "");
	assert_string_equal(found.geometry.detector, "mine");
	assert_int_equal(find("jungfrau", &from, image_of(0, 4096, 1024), 2, &found), -EINVAL);
	assert_non_null(strstr(said, "set detector.modules: 8"));
	assert_int_equal(find("jungfrau", &from, image_of(0, 4096, 1024), 1, &found), -EINVAL);
	assert_non_null(strstr(said, "set detector.modules: 8"));
	assert_int_equal(find("jungfrau", &from, image_of(0, 2167, 2070), 8, &found), -EINVAL);
	assert_non_null(strstr(said, "2164 x 2068 assembled"));
	assert_int_equal(find("", &from, image_of(0, 2164, 2068), 8, &found), -EINVAL);
	assert_non_null(strstr(said, "detector.origin"));
}

/* Two modules of 4 x 6, of 2 x 3 ASICs, the second turned upside down beside the first. */
static struct sl_geometry small(void)
{
	struct sl_geometry g = {
		.detector = "small",
		.modules = 2,
		.rows = 4,
		.columns = 6,
		.bit_depth = 14,
		.pixel_size_m = 1.0 / 3,
		.sensor_thickness_m = 1e-4,
		.sensor_material = "CdTe",
		.distance_m = 0.1,
		.photon_energy_keV = 12.7,
		.layout = {.rows = 8, .columns = 18, .asic_rows = 2, .asic_columns = 3, .gap = 2},
	};

	g.layout.module[0] = (struct sl_layout_module){1, 0, 0};
	g.layout.module[1] = (struct sl_layout_module){2, 9, 2};
	g.layout.beam_row = 3.7;
	g.layout.beam_column = 9.1;
	return g;
}

static void write_small(const struct sl_geometry *g, uint32_t *mask, uint32_t rows,
			uint32_t columns)
{
	const struct sl_h5_shape shape = {SL_H5_U32, 2, {rows, columns}};
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/sluice", "NXcollection");
	sl_h5_group(file, "/entry/instrument", "NXinstrument");
	sl_h5_group(file, "/entry/instrument/detector", "NXdetector");
	sl_geometry_hdf5_write(file, g);
	sl_h5_write(file, "/entry/instrument/detector/pixel_mask", &shape, mask);
	assert_int_equal(sl_h5_finish(file), 0);
}

static void test_a_file_of_ours_says_it_all(void **state)
{
	struct sl_geometry g = small();
	struct sl_origin_file from = nothing();
	uint32_t mask[8 * 18] = {0}, *places = sl_origin_places(&g);
	struct sl_origin_found found;

	mask[places[24 + 5]] = SL_MASK_DEAD;
	mask[places[3]] = SL_MASK_VIRTUAL;
	write_small(&g, mask, 8, 18);
	assert_int_equal(sl_origin_hdf5(path, &from), 0);
	assert_true(from.laid_out);
	assert_memory_equal(&from.geometry.layout, &g.layout, sizeof(g.layout));
	assert_true(from.geometry.photon_energy_keV == 12.7 && from.geometry.distance_m == 0.1);

	assert_int_equal(find("", &from, image_of(0, 8, 18), 2, &found), 0);
	assert_true(found.cut);
	assert_string_equal(found.geometry.detector, "small");
	assert_int_equal(found.geometry.bit_depth, 14);
	assert_true(found.geometry.layout.beam_row == 3.7);
	for (unsigned i = 0; i < 48; i++)
		assert_int_equal(found.mask[i], i == 24 + 5);
	free(found.mask);

	assert_int_equal(find("", &from, image_of(0, 8, 18), 1, &found), 0);
	assert_false(found.cut);
	assert_int_equal(found.geometry.rows, 8);
	assert_int_equal(found.mask[places[3]], 1); /* a part of a wide pixel is of no use alone */
	free(found.mask);

	assert_int_equal(find("", &from, image_of(0, 8, 6), 2, &found), 0);
	assert_false(found.cut);
	assert_null(found.mask); /* it is of another shape */
	assert_int_equal(find("", &from, image_of(0, 8, 6), 4, &found), -EINVAL);
	assert_non_null(strstr(said, "set detector.modules: 2"));
	assert_int_equal(find("", &from, image_of(0, 10, 7), 2, &found), 0);
	assert_non_null(strstr(said, "another size than its detector"));
	assert_int_equal(found.geometry.layout.columns, 7);
	free(from.mask);
	free(places);
}

/* Every raw pixel is read back from an assembled image, wide ones and turned modules too. */
static void test_what_was_assembled_is_cut_back(void **state)
{
	struct sl_geometry g = small();
	uint16_t modules[48], image[8 * 18], fill = 0xffff;
	uint32_t *places = sl_origin_places(&g);

	for (unsigned i = 0; i < 48; i++)
		modules[i] = (uint16_t)(100 + i);
	sl_layout_assemble(&g, 2, modules, 0, &fill, image);
	for (unsigned i = 0; i < 48; i++)
		assert_int_equal(image[places[i]], 100 + i);
	free(places);
}

static void spoil(const char *name, uint64_t value)
{
	struct sl_geometry g = small();
	struct sl_origin_file from = nothing();
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/sluice", "NXcollection");
	if (!strcmp(name, "modules"))
		g.modules = (uint32_t)value;
	if (!strcmp(name, "asic_gap"))
		g.layout.gap = (uint32_t)value;
	if (!strcmp(name, "turns"))
		g.layout.module[1].turns = (uint32_t)value;
	if (!strcmp(name, "column"))
		g.layout.module[1].column = (uint32_t)value;
	if (!strcmp(name, "distance"))
		g.distance_m = NAN;
	if (!strcmp(name, "rows"))
		g.rows = (uint32_t)value;
	sl_geometry_hdf5_write(file, &g);
	assert_int_equal(sl_h5_finish(file), 0);
	said[0] = 0;
	assert_int_equal(sl_origin_hdf5(path, &from), -EINVAL);
	assert_non_null(strstr(said, "/entry/sluice/geometry"));
	free(from.mask);
}

static void test_geometries_that_cannot_be_are_refused(void **state)
{
	spoil("modules", 0);
	spoil("asic_gap", 1);
	spoil("turns", 4);
	spoil("column", 3); /* one module lies on the other */
	spoil("column", UINT32_MAX);
	spoil("distance", 0);
	spoil("rows", 0);
}

static void write_number(struct sl_h5 *file, const char *name, double value, const char *units)
{
	char at[128];

	snprintf(at, sizeof(at), "/entry/instrument/%s", name);
	sl_h5_write_f64(file, at, value, units);
}

static void write_dectris(const char *wavelength_units)
{
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/instrument", "NXinstrument");
	sl_h5_group(file, "/entry/instrument/detector", "NXdetector");
	sl_h5_group(file, "/entry/instrument/beam", "NXbeam");
	write_number(file, "detector/detector_distance", 150, "mm");
	write_number(file, "detector/x_pixel_size", 7.5e-5, "m");
	write_number(file, "detector/sensor_thickness", 450, "um");
	write_number(file, "detector/beam_center_x", 1030.5, "pixel");
	write_number(file, "detector/beam_center_y", 1080.25, "pixel");
	write_number(file, "beam/incident_wavelength", 1, wavelength_units);
	sl_h5_write_text(file, "/entry/instrument/detector/sensor_material", "Silicon");
	assert_int_equal(sl_h5_finish(file), 0);
}

static void test_fields_of_others_are_taken_with_their_units(void **state)
{
	struct sl_origin_file from = nothing();
	struct sl_origin_found found;
	struct sl_origin_options o = named("");
	struct sl_stack_shape shape = image_of(0, 2167, 2070);

	write_dectris("angstrom");
	assert_int_equal(sl_origin_hdf5(path, &from), 0);
	assert_false(from.laid_out);
	o.distance_m = 0.2; /* options stand over the file */
	assert_int_equal(sl_origin_find(&o, &from, &shape, 1, "run.h5", &found), 0);
	assert_true(found.geometry.distance_m == 0.2);
	assert_true(fabs(found.geometry.photon_energy_keV - 12.398419843) < 1e-8);
	assert_true(fabs(found.geometry.sensor_thickness_m - 450e-6) < 1e-15);
	assert_string_equal(found.geometry.sensor_material, "Si");
	assert_true(found.geometry.layout.beam_column == 1030.5);
	assert_true(found.geometry.layout.beam_row == 1080.25);
	from = nothing();
	said[0] = 0;
	write_dectris("furlong");
	assert_int_equal(sl_origin_hdf5(path, &from), 0);
	assert_true(from.geometry.photon_energy_keV == 0);
	assert_non_null(strstr(said, "furlong"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stack_of_a_known_detector_has_its_places),
		cmocka_unit_test(test_an_assembled_image_is_cut_or_one_panel),
		cmocka_unit_test(test_what_is_unknown_is_asked_for),
		cmocka_unit_test(test_a_file_of_ours_says_it_all),
		cmocka_unit_test(test_what_was_assembled_is_cut_back),
		cmocka_unit_test(test_geometries_that_cannot_be_are_refused),
		cmocka_unit_test(test_fields_of_others_are_taken_with_their_units),
	};

	return cmocka_run_group_tests_name("origin", tests, setup, teardown);
}
