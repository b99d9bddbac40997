/* sparse_test.c - images of lists are what numpy would make of them; files that contradict
 * themselves are refused, and nothing outside of an image is written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hdf5/sparse.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

enum { ROWS = 4, COLUMNS = 5, PIXELS = ROWS * COLUMNS, BINS = 3, FRAMES = 3, TOTAL = 6 };
enum {
	TALL = 130,
	MODULES_MOST = 64
}; /* rows of the largest image here; bits of missing_modules */

static char scratch[200], path[256];

/* What a file has; tests change some of it. */
struct content {
	const char *entry; /* "/entry", or as others call theirs */
	const char *leave_out;
	float mask[TALL * COLUMNS], radius[BINS], average[FRAMES * BINS];
	uint64_t pointer[FRAMES + 1], missing[FRAMES];
	uint32_t index[TOTAL], found[FRAMES];
	int16_t intensity[TOTAL], dummy;
	uint64_t bins, indices, mask_rows, frames;
	bool has_norm, has_found, has_missing;
	enum sl_h5_type intensities, indices_are, pointers_are; /* as HDF5 has them in the file */
	struct sl_h5_shape outcome;				/* frames, modules */
	uint64_t founds, missings;				/* elements of the lists */
};

static void init(struct content *c)
{
	*c = (struct content){.entry = "/entry",
			      .leave_out = "",
			      .radius = {1, 2, 4},
			      .average = {10, 20, 40, -3, -3, -3, 0.4f, 0.5f, 0.6f},
			      .pointer = {0, 2, 2, 6},
			      .index = {3, 19, 0, 1, 2, 12},
			      .intensity = {100, 200, 7, 8, 9, 32767},
			      .found = {2, 0, 4},
			      .dummy = -32768,
			      .bins = BINS,
			      .indices = TOTAL,
			      .mask_rows = ROWS,
			      .frames = FRAMES,
			      .intensities = SL_H5_I16,
			      .indices_are = SL_H5_U32,
			      .pointers_are = SL_H5_U64,
			      .outcome = {SL_H5_U8, 2, {2, 2}},
			      .founds = FRAMES,
			      .missings = FRAMES};
	for (int i = 0; i < PIXELS; i++)
		c->mask[i] = (float)i / 4; /* 0 to 4.75 */
	c->mask[7] = NAN;
	c->mask[8] = INFINITY;
}

static void put(struct sl_h5 *file, const struct content *c, const char *name,
		struct sl_h5_shape shape, const void *data)
{
	char full[128];

	if (!strcmp(name, c->leave_out))
		return;
	snprintf(full, sizeof(full), "%s/sparse_frames/%s", c->entry, name);
	sl_h5_write(file, full, &shape, data);
}

static void write_frames(struct sl_h5 *file, const struct content *c)
{
	static const uint64_t wide[TOTAL];
	static float norm[PIXELS];
	const struct sl_h5_shape image = {SL_H5_F32, 2, {c->mask_rows, COLUMNS}};

	for (int i = 0; i < PIXELS; i++)
		norm[i] = i == 4 ? 2 : 1;
	put(file, c, "mask", image, c->mask);
	if (c->has_norm)
		put(file, c, "normalization", image, norm);
	put(file, c, "radius", (struct sl_h5_shape){SL_H5_F32, 1, {c->bins}}, c->radius);
	put(file, c, "background_avg", (struct sl_h5_shape){SL_H5_F32, 2, {FRAMES, BINS}},
	    c->average);
	put(file, c, "frame_ptr", (struct sl_h5_shape){c->pointers_are, 1, {c->frames + 1}},
	    c->pointer);
	put(file, c, "index", (struct sl_h5_shape){c->indices_are, 1, {c->indices}}, c->index);
	put(file, c, "intensity", (struct sl_h5_shape){c->intensities, 1, {TOTAL}},
	    sl_h5_type_bytes(c->intensities) > 2 ? (const void *)wide : c->intensity);
	put(file, c, "dummy", (struct sl_h5_shape){.type = SL_H5_I16}, &c->dummy);
	if (c->has_found)
		put(file, c, "found", (struct sl_h5_shape){SL_H5_U32, 1, {c->founds}}, c->found);
}

static void make(const struct content *c)
{
	static const uint8_t outcome[2 * (MODULES_MOST + 1)];
	char group[96];
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_attribute_text(file, "/", "default", c->entry + 1);
	sl_h5_group(file, c->entry, "NXentry");
	sl_h5_attribute_text(file, c->entry, "default", "sparse_frames");
	snprintf(group, sizeof(group), "%s/sparse_frames", c->entry);
	sl_h5_group(file, group, "NXdata");
	write_frames(file, c);
	if (c->has_missing) {
		sl_h5_group(file, "/entry/data", "NXdata");
		sl_h5_group(file, "/entry/sluice", "NXcollection");
		sl_h5_group(file, "/entry/sluice/frames", "NXcollection");
		sl_h5_write(file, "/entry/sluice/frames/outcome", &c->outcome, outcome);
		sl_h5_write(file, "/entry/data/missing_modules",
			    &(struct sl_h5_shape){SL_H5_U64, 1, {c->missings}}, c->missing);
	}
	assert_int_equal(sl_h5_finish(file), 0);
}

static struct sl_h5_sparse *reopen_rows(uint64_t rows)
{
	struct sl_h5_sparse *sparse = NULL;
	struct sl_h5_shape image;
	uint64_t images;

	assert_int_equal(sl_h5_sparse_open(path, &sparse, &image, &images), 0);
	assert_int_equal(image.type, SL_H5_I16);
	assert_int_equal(image.dim[0], rows);
	assert_int_equal(image.dim[1], COLUMNS);
	assert_int_equal(images, FRAMES);
	return sparse;
}

static struct sl_h5_sparse *reopen(void)
{
	return reopen_rows(ROWS);
}

/* As numpy.interp, and rounded. */
static int16_t expected(const struct content *c, int frame, int i)
{
	const float *average = c->average + frame * BINS;
	double at = c->mask[i], value;

	for (uint64_t k = c->pointer[frame]; k < c->pointer[frame + 1]; k++)
		if (c->index[k] == (uint32_t)i)
			return c->intensity[k];
	if (!isfinite(at))
		return c->dummy;
	value = at <= 1	  ? average[0]
		: at <= 2 ? average[0] + (at - 1) * (average[1] - average[0])
		: at <= 4 ? average[1] + (at - 2) / 2 * (average[2] - average[1])
			  : average[2];
	return (int16_t)floor(value * (c->has_norm && i == 4 ? 2 : 1) + 0.5);
}

static void check_images(const struct content *c)
{
	struct sl_h5_sparse *sparse = reopen();
	int16_t image[PIXELS + 1];
	bool cut = true;

	for (int f = 0; f < FRAMES; f++) {
		image[PIXELS] = 1234;
		assert_int_equal(sl_h5_sparse_read(sparse, (uint64_t)f, true, image, &cut), 0);
		assert_false(cut);
		for (int i = 0; i < PIXELS; i++)
			assert_int_equal(image[i], expected(c, f, i));
		assert_int_equal(image[PIXELS], 1234);
	}
	assert_int_equal(sl_h5_sparse_read(sparse, FRAMES, true, image, &cut), -ERANGE);
	sl_h5_sparse_close(sparse);
}

static void test_images_of_lists(void **arg)
{
	struct content c;

	init(&c);
	make(&c);
	check_images(&c);
	c.has_norm = c.has_found = true;
	make(&c);
	check_images(&c);
	c.entry = "/entry_0000"; /* as pyFAI names it */
	make(&c);
	check_images(&c);
}

static void test_without_background_there_are_zeros(void **arg)
{
	struct sl_h5_sparse *sparse;
	struct content c;
	int16_t image[PIXELS];
	bool cut;

	init(&c);
	make(&c);
	sparse = reopen();
	assert_int_equal(sl_h5_sparse_read(sparse, 0, false, image, &cut), 0);
	for (int i = 0; i < PIXELS; i++)
		assert_int_equal(image[i], i == 3	      ? 100
					   : i == 19	      ? 200
					   : i == 7 || i == 8 ? -32768
							      : 0);
	sl_h5_sparse_close(sparse);
}

static void test_what_is_not_known_is_marked(void **arg)
{
	struct sl_h5_sparse *sparse;
	struct content c;
	int16_t image[PIXELS];
	bool cut;

	init(&c);
	c.has_found = c.has_missing = true;
	c.found[1] = 9; /* and none of them is there */
	c.found[2] = 5;
	c.missing[0] = 2;
	make(&c);
	sparse = reopen();
	assert_int_equal(sl_h5_sparse_read(sparse, 0, true, image, &cut), 0);
	assert_false(cut);
	for (int i = 0; i < PIXELS; i++)
		assert_int_equal(image[i], i < PIXELS / 2 ? expected(&c, 0, i) : -32768);
	assert_int_equal(sl_h5_sparse_read(sparse, 1, true, image, &cut), 0);
	assert_true(cut);
	for (int i = 0; i < PIXELS; i++)
		assert_int_equal(image[i], -32768);
	assert_int_equal(sl_h5_sparse_read(sparse, 2, true, image, &cut), 0);
	assert_true(cut);
	for (int i = 0; i < PIXELS; i++)
		assert_int_equal(image[i], i <= 12 ? expected(&c, 2, i) : -32768);
	sl_h5_sparse_close(sparse);
}

/* What of the first image is not known: rows from `first` up to `end`. */
static void check_blank(struct content *c, uint64_t first, uint64_t end)
{
	static int16_t image[TALL * COLUMNS];
	struct sl_h5_sparse *sparse;
	bool cut;

	c->has_missing = true;
	c->pointer[0] = c->pointer[1] = c->pointer[2] = 0; /* no pixel is listed */
	make(c);
	sparse = reopen_rows(c->mask_rows);
	assert_int_equal(sl_h5_sparse_read(sparse, 0, true, image, &cut), 0);
	for (uint64_t i = 0; i < c->mask_rows * COLUMNS; i++)
		if (isfinite(c->mask[i]))
			assert_int_equal(image[i] == c->dummy,
					 i / COLUMNS >= first && i / COLUMNS < end);
	sl_h5_sparse_close(sparse);
}

static void test_missing_modules_count_only_where_their_rows_are_known(void **arg)
{
	static const struct sl_h5_shape strange[] = {
		{SL_H5_U8, 1, {2}},	  /* of no module */
		{SL_H5_U8, 3, {2, 2, 1}}, /* of something else */
		{SL_H5_U8, 2, {2, 0}},	  /* no module */
		{SL_H5_U8, 2, {2, 3}},	  /* the image cannot be divided */
		{SL_H5_U8, 2, {2, 2 * ROWS}},
	};
	struct content c;

	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		init(&c);
		c.missing[0] = 1;
		c.outcome = strange[i];
		check_blank(&c, 0, 0);
	}
	for (uint64_t modules = 1; modules <= ROWS; modules *= 2) {
		init(&c);
		c.missing[0] = 1;
		c.outcome.dim[1] = modules;
		check_blank(&c, 0, ROWS / modules);
	}
	init(&c);
	c.missing[0] = 1;
	c.missings = FRAMES - 1; /* not one for each frame */
	check_blank(&c, 0, 0);
}

static void test_as_many_modules_may_miss_as_a_word_has_bits(void **arg)
{
	struct content c;

	for (uint64_t rows = 1; rows <= 2; rows++) {
		init(&c);
		c.outcome.dim[1] = MODULES_MOST;
		c.mask_rows = rows * MODULES_MOST;
		c.missing[0] = UINT64_C(1) << (MODULES_MOST - 1);
		check_blank(&c, rows * (MODULES_MOST - 1), rows * MODULES_MOST);
		c.outcome.dim[1] = MODULES_MOST + 1;
		c.mask_rows = rows * (MODULES_MOST + 1);
		c.missing[0] = 1;
		check_blank(&c, 0, 0);
	}
}

static void test_pixels_that_were_found_count_only_if_there_is_a_number_for_each_frame(void **arg)
{
	struct sl_h5_sparse *sparse;
	struct content c;
	int16_t image[PIXELS];
	bool cut;

	for (uint64_t founds = FRAMES - 1; founds <= FRAMES; founds++) {
		init(&c);
		c.has_found = true;
		c.found[0] = 9; /* more than are listed */
		c.founds = founds;
		make(&c);
		sparse = reopen();
		assert_int_equal(sl_h5_sparse_read(sparse, 0, true, image, &cut), 0);
		assert_int_equal(cut, founds == FRAMES);
		sl_h5_sparse_close(sparse);
	}
}

static void check_refused(const struct content *c, const char *words)
{
	struct sl_h5_sparse *sparse;
	struct sl_h5_shape image;
	uint64_t images;
	const char *said;
	int err;

	make(c);
	capture_begin();
	err = sl_h5_sparse_open(path, &sparse, &image, &images);
	said = capture_end();
	if (err == 0)
		sl_h5_sparse_close(sparse);
	assert_int_equal(err, -EINVAL);
	assert_non_null(strstr(said, words));
}

static void test_files_that_contradict_themselves_are_refused(void **arg)
{
	static const char *const needed[] = {"mask",	  "radius",    "background_avg",
					     "frame_ptr", "intensity", "index"};
	struct content c;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		init(&c);
		c.leave_out = needed[i];
		check_refused(&c, "no sparse frames");
	}
	init(&c);
	c.pointer[1] = 5;
	c.pointer[2] = 4;
	check_refused(&c, "goes back");
	init(&c);
	c.pointer[0] = 1;
	check_refused(&c, "begin with 0");
	init(&c);
	c.pointer[3] = 7;
	check_refused(&c, "cut short");
	init(&c);
	c.pointer[3] = UINT64_MAX;
	check_refused(&c, "more pixels than an image has");
	init(&c);
	c.indices = TOTAL - 1;
	check_refused(&c, "same length");
	init(&c);
	c.radius[1] = NAN;
	check_refused(&c, "does not rise");
	init(&c);
	c.radius[1] = 1;
	check_refused(&c, "does not rise");
	init(&c);
	c.bins = BINS - 1;
	check_refused(&c, "a bin per radius");
	init(&c);
	c.frames = FRAMES - 1;
	check_refused(&c, "a row per frame");
}

/* What is not read is refused; HDF5 would make 0 of a number that is below it. */
static void test_other_types_are_refused(void **arg)
{
	static const enum sl_h5_type wide[] = {SL_H5_U64, SL_H5_I64, SL_H5_F64};
	struct content c;

	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		init(&c);
		c.intensities = wide[i];
		check_refused(&c, "pixels of 64 bits");
	}
	init(&c);
	c.indices_are = SL_H5_I32;
	check_refused(&c, "index: is not unsigned");
	init(&c);
	c.indices_are = SL_H5_F32;
	check_refused(&c, "index: is not unsigned");
	init(&c);
	c.pointers_are = SL_H5_I64;
	check_refused(&c, "frame_ptr: is not unsigned");
}

static void test_a_pixel_out_of_the_image_is_refused(void **arg)
{
	struct sl_h5_sparse *sparse;
	struct content c;
	int16_t image[PIXELS];
	const char *said;
	bool cut;
	int err;

	for (int large = 0; large < 2; large++) {
		init(&c);
		c.index[1] = large ? UINT32_MAX : PIXELS;
		make(&c);
		sparse = reopen();
		capture_begin();
		err = sl_h5_sparse_read(sparse, 0, true, image, &cut);
		said = capture_end();
		assert_int_equal(err, -EINVAL);
		assert_non_null(strstr(said, "of an image of 20"));
		assert_int_equal(sl_h5_sparse_read(sparse, 1, true, image, &cut), 0);
		sl_h5_sparse_close(sparse);
	}
}

static int set_up(void **arg)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/sparse.h5", scratch);
	return 0;
}

static int tear_down(void **arg)
{
	scratch_remove(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images_of_lists),
		cmocka_unit_test(test_without_background_there_are_zeros),
		cmocka_unit_test(test_what_is_not_known_is_marked),
		cmocka_unit_test(test_missing_modules_count_only_where_their_rows_are_known),
		cmocka_unit_test(test_as_many_modules_may_miss_as_a_word_has_bits),
		cmocka_unit_test(
			test_pixels_that_were_found_count_only_if_there_is_a_number_for_each_frame),
		cmocka_unit_test(test_files_that_contradict_themselves_are_refused),
		cmocka_unit_test(test_other_types_are_refused),
		cmocka_unit_test(test_a_pixel_out_of_the_image_is_refused),
	};

	return cmocka_run_group_tests_name("sparse frames", tests, set_up, tear_down);
}
