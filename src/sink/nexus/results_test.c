/* results_test.c - results that are no images, and verdicts of events, come back from the file as
 * they were put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "sink/nexus/results.h"

enum { EVENTS = 3, SUMS = 4, ROWS = 8, COLUMNS = 2, FRAMES = 5 };

static char scratch[200], path[256];

static struct sl_geometry geometry = {.modules = 2, .items = EVENTS, .items_shared = true};
static struct sl_shape shape[] = {
	{"image", SL_U16, 3, {2, 4, 6}, .image = 1},
	{"sums", SL_U32, 1, {SUMS}, .doc = "four sums"},
	{"table", SL_F32, 2, {ROWS, COLUMNS}, .ragged = 1, .doc = "some rows"},
};
static struct sl_env env = {.geometry = &geometry, .result = shape, .results = 3};

/* Frame k has k rows. */
static void append(struct sl_results *results, uint32_t k)
{
	uint32_t sums[SUMS] = {k, k + 1, k + 2, 1u << 30};
	float table[ROWS][COLUMNS];
	struct sl_verdict verdict[EVENTS] = {
		{.keep = 1, .score = (float)k}, {.keep = 0}, {.keep = 4}};
	struct sl_frame frame = {.result = {{.shape = shape[0]},
					    {.shape = shape[1], .host = sums},
					    {.shape = shape[2], .host = table, .rows = k}},
				 .results = 3,
				 .verdict = verdict,
				 .items = EVENTS};

	for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
		table[i / COLUMNS][i % COLUMNS] = (float)(100 * k + i);
	sl_results_append(results, &frame);
}

static void check_shape(struct sl_h5 *file, const char *name, enum sl_h5_type type, uint64_t rows,
			uint64_t columns)
{
	struct sl_h5_shape found;

	assert_int_equal(sl_h5_describe(file, name, &found), 0);
	assert_int_equal(found.type, type);
	assert_int_equal(found.rank, columns ? 2 : 1);
	assert_int_equal(found.dim[0], rows);
	if (columns)
		assert_int_equal(found.dim[1], columns);
}

static void check_doc(struct sl_h5 *file, const char *name, const char *expected)
{
	char text[128];

	assert_int_equal(sl_h5_read_attribute_text(file, name, "long_name", text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static void check_rows(struct sl_h5 *file)
{
	uint64_t row = 0, rows;
	float have[COLUMNS];

	for (uint32_t k = 0; k < FRAMES; k++) {
		assert_int_equal(sl_h5_read_row(file, "/entry/results/table_rows", k, SL_H5_U64,
						&rows, sizeof(rows)),
				 0);
		assert_int_equal(rows, k);
		for (uint32_t i = 0; i < k; i++) {
			assert_int_equal(sl_h5_read_row(file, "/entry/results/table", row++,
							SL_H5_F32, have, sizeof(have)),
					 0);
			assert_true(have[0] == (float)(100 * k + i * COLUMNS));
			assert_true(have[1] == (float)(100 * k + i * COLUMNS + 1));
		}
	}
}

static void check_frames(struct sl_h5 *file)
{
	for (uint32_t k = 0; k < FRAMES; k++) {
		uint32_t sums[SUMS];
		uint8_t keep[EVENTS];
		float score[EVENTS];

		assert_int_equal(sl_h5_read_row(file, "/entry/results/sums", k, SL_H5_U32, sums,
						sizeof(sums)),
				 0);
		assert_int_equal(sums[0], k);
		assert_int_equal(sums[2], k + 2);
		assert_int_equal(sums[3], 1u << 30);
		assert_int_equal(sl_h5_read_row(file, "/entry/results/event_keep", k, SL_H5_U8,
						keep, sizeof(keep)),
				 0);
		assert_memory_equal(keep, ((uint8_t[]){1, 0, 1}), EVENTS);
		assert_int_equal(sl_h5_read_row(file, "/entry/results/event_score", k, SL_H5_F32,
						score, sizeof(score)),
				 0);
		assert_true(score[0] == (float)k && score[1] == 0 && score[2] == 0);
	}
}

static void results_and_verdicts_come_back(void **state)
{
	struct sl_results results;
	struct sl_h5_shape none;
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	assert_int_equal(sl_results_open(&results, file, &env), 0);
	assert_int_equal(results.bytes, SUMS * 4 + ROWS * COLUMNS * 4 + EVENTS * (1 + 4));
	for (uint32_t k = 0; k < FRAMES; k++)
		append(&results, k);
	sl_results_close(&results);
	sl_results_close(&results); /* as after a failure */
	assert_int_equal(sl_h5_finish(file), 0);

	assert_int_equal(sl_h5_open(path, &file), 0);
	check_shape(file, "/entry/results/sums", SL_H5_U32, FRAMES, SUMS);
	check_shape(file, "/entry/results/table", SL_H5_F32, 0 + 1 + 2 + 3 + 4, COLUMNS);
	check_shape(file, "/entry/results/event_keep", SL_H5_U8, FRAMES, EVENTS);
	check_shape(file, "/entry/results/event_score", SL_H5_F32, FRAMES, EVENTS);
	check_doc(file, "/entry/results/sums", "four sums");
	check_doc(file, "/entry/results/table", "some rows");
	check_doc(file, "/entry/results/event_keep", "1: the event is to be kept");
	assert_true(sl_h5_describe(file, "/entry/results/image", &none) < 0);
	check_frames(file);
	check_rows(file);
	sl_h5_close(file);
}

static void frames_that_are_images_have_no_verdicts_of_events(void **state)
{
	struct sl_geometry plain = {.modules = 2};
	struct sl_env image = {.geometry = &plain, .result = shape, .results = 1};
	struct sl_results results;
	struct sl_h5_shape none;
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	assert_int_equal(sl_results_open(&results, file, &image), 0);
	assert_int_equal(results.bytes, 0);
	assert_null(results.keep);
	sl_results_close(&results);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	assert_true(sl_h5_describe(file, "/entry/results/event_keep", &none) < 0);
	sl_h5_close(file);
}

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/results.h5", scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_and_verdicts_come_back),
		cmocka_unit_test(frames_that_are_images_have_no_verdicts_of_events),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
