/* results_test.c - results that are no images, verdicts of events, profiles and hit rates come back
 * from the file as they were put into it, and it says whose they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hdf5/rolled/rolled.h"
#include "hdf5/testing.h"
#include "sink/nexus/hits.h"
#include "sink/nexus/results.h"

enum { EVENTS = 3, SUMS = 4, ROWS = 8, COLUMNS = 2, FRAMES = 5, BINS = 6, SECTORS = 3 };

static char scratch[200], path[256];

static struct sl_geometry geometry = {.modules = 2, .items = EVENTS, .items_shared = true};
static struct sl_shape shape[] = {
	{"image", SL_U16, 3, {2, 4, 6}, .image = 1},
	{"sums", SL_U32, 1, {SUMS}, .doc = "four sums"},
	{"table", SL_F32, 2, {ROWS, COLUMNS}, .ragged = 1, .doc = "some rows"},
	{"sparse_found", SL_U32, 1, {1}},
};
static struct sl_env env = {.geometry = &geometry, .result = shape, .results = 4};

static bool is_kept(uint32_t k)
{
	return k % 2 == 0;
}

/* Frame k has k rows; its image, if it is kept, is number k / 2. */
static void append(struct sl_results *results, uint32_t k)
{
	uint32_t sums[SUMS] = {k, k + 1, k + 2, 1u << 30}, pixels = 1000 + k;
	float table[ROWS][COLUMNS];
	struct sl_verdict verdict[EVENTS] = {
		{.keep = 1, .score = (float)k}, {.keep = 0}, {.keep = 4}};
	struct sl_frame frame = {.sequence = 10 + k,
				 .number = 20 + k,
				 .result = {{.shape = shape[0]},
					    {.shape = shape[1], .host = sums},
					    {.shape = shape[2], .host = table, .rows = k},
					    {.shape = shape[3], .host = &pixels}},
				 .results = 4,
				 .verdict = verdict,
				 .items = EVENTS};

	for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
		table[i / COLUMNS][i % COLUMNS] = (float)(100 * k + i);
	sl_results_append(results, &frame, is_kept(k) ? (int64_t)k / 2 : -1);
}

static struct sl_h5 *create(void)
{
	struct sl_h5 *file;

	assert_int_equal(sl_h5_create(path, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/data", "NXdata");
	return file;
}

static int64_t number_at(struct sl_h5 *file, const char *name, uint64_t row)
{
	int64_t number;

	assert_int_equal(sl_h5_read_row(file, name, row, SL_H5_I64, &number, sizeof(number)), 0);
	return number;
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

static void check_text(struct sl_h5 *file, const char *name, const char *attribute,
		       const char *expected)
{
	char text[128];

	assert_int_equal(sl_h5_read_attribute_text(file, name, attribute, text, sizeof(text)), 0);
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
		assert_int_equal(number_at(file, "/entry/results/table_first", k), row);
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

/* Whose the rows are, from results to images and back. */
static void check_companions(struct sl_h5 *file)
{
	check_shape(file, "/entry/results/image_index", SL_H5_I64, FRAMES, 0);
	check_shape(file, "/entry/data/result_index", SL_H5_I64, FRAMES / 2 + 1, 0);
	check_shape(file, "/entry/results/sparse_found", SL_H5_U32, FRAMES / 2 + 1, 1);
	for (uint32_t k = 0; k < FRAMES; k++) {
		assert_int_equal(number_at(file, "/entry/results/sequence", k), 10 + k);
		assert_int_equal(number_at(file, "/entry/results/frame_number", k), 20 + k);
		assert_int_equal(number_at(file, "/entry/results/image_index", k),
				 is_kept(k) ? (int64_t)k / 2 : -1);
		if (!is_kept(k))
			continue;
		assert_int_equal(number_at(file, "/entry/data/result_index", k / 2), k);
		assert_int_equal(number_at(file, "/entry/results/sparse_found", k / 2), 1000 + k);
	}
	check_text(file, "/entry/results/sums", "aligned_with", "/entry/results/sequence");
	check_text(file, "/entry/results/table_first", "aligned_with", "/entry/results/sequence");
	check_text(file, "/entry/results/event_keep", "aligned_with", "/entry/results/sequence");
	check_text(file, "/entry/results/sparse_found", "aligned_with", "/entry/data/sequence");
}

static void results_and_verdicts_come_back(void **state)
{
	struct sl_results results;
	struct sl_h5_shape none;
	struct sl_h5 *file = create();

	assert_int_equal(sl_results_open(&results, file, &env, true), 0);
	assert_int_equal(results.bytes, SUMS * 4 + ROWS * COLUMNS * 4 + 4 + EVENTS * (1 + 4));
	for (uint32_t k = 0; k < FRAMES; k++)
		append(&results, k);
	assert_int_equal(results.rows, FRAMES);
	sl_results_close(&results);
	sl_results_close(&results); /* as after a failure */
	assert_int_equal(sl_h5_finish(file), 0);

	assert_int_equal(sl_h5_open(path, &file), 0);
	check_shape(file, "/entry/results/sums", SL_H5_U32, FRAMES, SUMS);
	check_shape(file, "/entry/results/table", SL_H5_F32, 0 + 1 + 2 + 3 + 4, COLUMNS);
	check_shape(file, "/entry/results/event_keep", SL_H5_U8, FRAMES, EVENTS);
	check_shape(file, "/entry/results/event_score", SL_H5_F32, FRAMES, EVENTS);
	check_text(file, "/entry/results/sums", "long_name", "four sums");
	check_text(file, "/entry/results/table", "long_name", "some rows");
	check_text(file, "/entry/results/event_keep", "long_name", "1: the event is to be kept");
	assert_true(sl_h5_describe(file, "/entry/results/image", &none) < 0);
	check_frames(file);
	check_rows(file);
	check_companions(file);
	sl_h5_close(file);
}

/* What is aligned with images has a row for each, also where nothing is known of it. */
static void an_image_without_results_has_blank_rows(void **state)
{
	struct sl_results results;
	struct sl_h5 *file = create();

	assert_int_equal(sl_results_open(&results, file, &env, true), 0);
	append(&results, 0);
	sl_results_append_none(&results);
	append(&results, 2);
	sl_results_close(&results);
	assert_int_equal(sl_h5_finish(file), 0);

	assert_int_equal(sl_h5_open(path, &file), 0);
	check_shape(file, "/entry/results/sequence", SL_H5_U64, 2, 0);
	check_shape(file, "/entry/data/result_index", SL_H5_I64, 3, 0);
	check_shape(file, "/entry/results/sparse_found", SL_H5_U32, 3, 1);
	assert_int_equal(number_at(file, "/entry/data/result_index", 0), 0);
	assert_int_equal(number_at(file, "/entry/data/result_index", 1), -1);
	assert_int_equal(number_at(file, "/entry/data/result_index", 2), 1);
	assert_int_equal(number_at(file, "/entry/results/sparse_found", 0), 1000);
	assert_int_equal(number_at(file, "/entry/results/sparse_found", 1), 0);
	assert_int_equal(number_at(file, "/entry/results/sparse_found", 2), 1002);
	sl_h5_close(file);
}

static void rejected_frames_have_rows_where_all_are_asked_for(void **state)
{
	struct sl_frame whole = {.flags = SL_FRAME_COMPLETE, .results = env.results};
	struct sl_frame partial = {.flags = SL_FRAME_PARTIAL, .results = env.results};
	struct sl_frame dark = {.flags = SL_FRAME_COMPLETE | SL_FRAME_DARK, .results = env.results};
	struct sl_frame broken = {.flags = 0}, left_out = {.flags = SL_FRAME_COMPLETE};
	struct sl_results results;
	struct sl_h5 *file = create();

	assert_int_equal(sl_results_open(&results, file, &env, true), 0);
	assert_true(sl_results_take(&results, &whole, true));
	assert_true(sl_results_take(&results, &whole, false));
	assert_true(sl_results_take(&results, &partial, false));
	assert_false(sl_results_take(&results, &dark, false));
	assert_false(sl_results_take(&results, &broken, false));
	assert_false(sl_results_take(&results, &left_out, false)); /* by on_slow */
	results.all = false;
	assert_true(sl_results_take(&results, &whole, true));
	assert_false(sl_results_take(&results, &whole, false));
	sl_results_close(&results);
	sl_h5_abandon(file);
}

/* Without results there is no group, and frames get no rows. */
static void frames_that_are_images_have_no_verdicts_of_events(void **state)
{
	struct sl_geometry plain = {.modules = 2};
	struct sl_env image = {.geometry = &plain, .result = shape, .results = 1};
	struct sl_frame whole = {.flags = SL_FRAME_COMPLETE};
	struct sl_results results;
	struct sl_h5_shape none;
	struct sl_h5 *file = create();

	assert_int_equal(sl_results_open(&results, file, &image, true), 0);
	assert_int_equal(results.bytes, 0);
	assert_null(results.keep);
	assert_false(sl_results_take(&results, &whole, true));
	sl_results_close(&results);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	assert_true(sl_h5_describe(file, "/entry/results/event_keep", &none) < 0);
	assert_true(sl_h5_describe(file, "/entry/results/sequence", &none) < 0);
	sl_h5_close(file);
}

static void a_result_with_the_name_of_a_column_is_refused(void **state)
{
	struct sl_shape taken = {"image_index", SL_U32, 1, {1}};
	struct sl_env other = {.geometry = &geometry, .result = &taken, .results = 1};
	struct sl_results results;
	struct sl_h5 *file = create();

	assert_int_equal(sl_results_open(&results, file, &other, true), -EINVAL);
	sl_results_close(&results);
	taken.image = 1; /* images are not stored there */
	assert_int_equal(sl_results_open(&results, file, &other, true), 0);
	sl_results_close(&results);
	sl_h5_abandon(file);
}

/* ---- profiles ---- */

static const float q[BINS] = {1, 2, 3, 4, 5, 6}, azimuth[SECTORS] = {-120, 0, 120};
static struct sl_shape made[] = {
	{"profile", SL_F32, 2, {3, BINS}},	    {"cake", SL_F32, 2, {SECTORS, BINS}},
	{"cake_sigma", SL_F32, 2, {SECTORS, BINS}}, {"cake_radius", SL_F32, 1, {BINS}},
	{"cake_azimuth", SL_F32, 1, {SECTORS}},	    {"profile_sum", SL_F32, 1, {1}},
};
static const struct sl_constant axes[] = {
	{{"profile_q", SL_F32, 1, {BINS}, .doc = "q (1/nm)"}, q},
	{{"cake_azimuth", SL_F32, 1, {SECTORS}, .doc = "azimuth (degrees)"}, azimuth},
	{{"cake_q", SL_F32, 1, {BINS}, .doc = "q (1/nm)"}, q},
};
static struct sl_geometry plain_geometry = {.modules = 1};
static struct sl_env with_profiles = {.geometry = &plain_geometry,
				      .result = made,
				      .results = 6,
				      .constant = axes,
				      .constants = 3};

static void append_profiles(struct sl_results *results, uint32_t k)
{
	float profile[3][BINS], cake[SECTORS][BINS], sigma[SECTORS][BINS], sum = 7;
	struct sl_frame frame = {.result = {{.shape = made[0], .host = profile},
					    {.shape = made[1], .host = cake},
					    {.shape = made[2], .host = sigma},
					    {.shape = made[3]},
					    {.shape = made[4]},
					    {.shape = made[5], .host = &sum}},
				 .results = 6};

	for (uint32_t i = 0; i < 3 * BINS; i++)
		profile[i / BINS][i % BINS] = (float)(100 * k + i);
	for (uint32_t i = 0; i < SECTORS * BINS; i++) {
		cake[i / BINS][i % BINS] = (float)(1000 * k + i);
		sigma[i / BINS][i % BINS] = (float)(2000 * k + i);
	}
	sl_results_append(results, &frame, -1);
}

static void check_profiles(struct sl_h5 *file)
{
	float row[BINS], image[SECTORS * BINS];

	for (uint32_t k = 0; k < FRAMES; k++) {
		assert_int_equal(sl_h5_read_row(file, "/entry/profile/intensity", k, SL_H5_F32, row,
						sizeof(row)),
				 0);
		assert_true(row[0] == (float)(100 * k + BINS));
		assert_int_equal(sl_h5_read_row(file, "/entry/profile/intensity_errors", k,
						SL_H5_F32, row, sizeof(row)),
				 0);
		assert_true(row[BINS - 1] == (float)(100 * k + 3 * BINS - 1));
		assert_int_equal(sl_h5_read_row(file, "/entry/cake/intensity", k, SL_H5_F32, image,
						sizeof(image)),
				 0);
		assert_true(image[BINS + 1] == (float)(1000 * k + BINS + 1));
		assert_int_equal(sl_h5_read_row(file, "/entry/cake/intensity_errors", k, SL_H5_F32,
						image, sizeof(image)),
				 0);
		assert_true(image[1] == (float)(2000 * k + 1));
	}
}

static void profiles_have_their_axes_once(void **state)
{
	struct sl_h5 *file = create();
	struct sl_results results;
	struct sl_h5_shape none;
	float have[BINS];

	assert_string_equal(sl_profiles_plot(&with_profiles), "profile");
	assert_int_equal(sl_results_open(&results, file, &with_profiles, true), 0);
	for (uint32_t k = 0; k < FRAMES; k++)
		append_profiles(&results, k);
	sl_results_close(&results);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	check_profiles(file);
	assert_int_equal(sl_h5_read(file, "/entry/profile/q", SL_H5_F32, have, sizeof(have)), 0);
	assert_memory_equal(have, q, sizeof(q));
	assert_int_equal(sl_h5_read(file, "/entry/cake/azimuth", SL_H5_F32, have, sizeof(azimuth)),
			 0);
	assert_memory_equal(have, azimuth, sizeof(azimuth));
	check_text(file, "/entry/profile", "NX_class", "NXdata");
	check_text(file, "/entry/profile", "signal", "intensity");
	check_text(file, "/entry/profile/q", "units", "1/nm");
	check_text(file, "/entry/profile/q", "long_name", "q (1/nm)");
	check_text(file, "/entry/profile/intensity", "interpretation", "spectrum");
	check_text(file, "/entry/cake/intensity", "interpretation", "image");
	check_shape(file, "/entry/profile/frame_number", SL_H5_U64, FRAMES, 0);
	check_shape(file, "/entry/results/profile_sum", SL_H5_F32, FRAMES, 1);
	assert_true(sl_h5_describe(file, "/entry/results/profile", &none) < 0);
	assert_true(sl_h5_describe(file, "/entry/results/cake_radius", &none) < 0);
	sl_h5_close(file);
}

/* What is called so, but is not what the stage makes, is a result as others are. */
static void a_profile_without_an_axis_stays_a_result(void **state)
{
	struct sl_env other = with_profiles;
	struct sl_results results;
	struct sl_h5 *file = create();

	other.results = 1;
	other.constants = 0;
	assert_null(sl_profiles_plot(&other));
	assert_int_equal(sl_results_open(&results, file, &other, true), 0);
	assert_int_equal(results.n, 1);
	assert_int_equal(results.profiles.n, 0);
	sl_results_close(&results);
	sl_h5_abandon(file);
}

/* ---- data files ---- */

static void first_rows_count_through_data_files(void **state)
{
	char master[256];
	struct sl_results results;
	struct sl_h5 *file;

	snprintf(master, sizeof(master), "%s/rolled.nxs", scratch);
	assert_int_equal(sl_h5_create_rolled(master, true, &file), 0);
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_group(file, "/entry/data", "NXdata");
	sl_h5_group(file, "/entry/sluice", "NXcollection");
	assert_int_equal(sl_results_open(&results, file, &env, true), 0);
	assert_int_equal(sl_h5_rows_begin(file), 0);
	for (uint32_t k = 0; k < FRAMES; k++) {
		if (k == 2 || k == 3)
			assert_int_equal(sl_h5_roll(file), 0);
		append(&results, k);
	}
	assert_int_equal(sl_h5_rows_end(file), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	sl_results_close(&results);
	assert_int_equal(sl_h5_open(master, &file), 0);
	check_frames(file);
	check_rows(file);
	check_companions(file);
	sl_h5_close(file);
}

/* ---- hit rates ---- */

static void feed_hits(struct sl_hits *hits, uint64_t number, bool keep, enum sl_reason reason,
		      uint32_t flags)
{
	struct sl_verdict verdict = {.keep = keep, .reason = (uint16_t)reason, .score = keep};
	struct sl_frame frame = {.number = number,
				 .timestamp = 5 * number,
				 .flags = flags,
				 .items = 1,
				 .verdict = &verdict};

	sl_hits_add(hits, &frame);
}

static float rate_at(struct sl_h5 *file, uint64_t row)
{
	float rate;

	assert_int_equal(
		sl_h5_read_row(file, "/entry/hits/hit_rate", row, SL_H5_F32, &rate, sizeof(rate)),
		0);
	return rate;
}

/* 250 frames through the stages, of which every fourth is a hit, between others. */
static void hit_rates_are_of_blocks(void **state)
{
	struct sl_h5 *file = create();
	struct sl_hits hits;

	sl_hits_open(&hits, file);
	for (uint64_t k = 0; k < 250; k++) {
		feed_hits(&hits, 1000 + k, true, SL_REASON_DARK, SL_FRAME_COMPLETE | SL_FRAME_DARK);
		feed_hits(&hits, 2000 + k, true, SL_REASON_PEAKS, 0); /* broken */
		feed_hits(&hits, k, k % 4 == 0 || k == 1,
			  k == 1 ? SL_REASON_PRESCALED : SL_REASON_PEAKS, SL_FRAME_COMPLETE);
	}
	sl_hits_end(&hits);
	sl_hits_end(&hits); /* there is nothing more */
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	check_shape(file, "/entry/hits/hit_rate", SL_H5_F32, 3, 0);
	assert_true(rate_at(file, 0) == 0.25f && rate_at(file, 1) == 0.25f);
	assert_true(rate_at(file, 2) == 13.f / 50);
	assert_int_equal(number_at(file, "/entry/hits/frame_number", 2), 200);
	assert_int_equal(number_at(file, "/entry/hits/timestamp", 1), 500);
	assert_int_equal(number_at(file, "/entry/hits/frames", 2), 50);
	assert_int_equal(number_at(file, "/entry/hits/hits", 0), 25);
	check_text(file, "/entry/hits", "signal", "hit_rate");
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
		cmocka_unit_test(an_image_without_results_has_blank_rows),
		cmocka_unit_test(rejected_frames_have_rows_where_all_are_asked_for),
		cmocka_unit_test(frames_that_are_images_have_no_verdicts_of_events),
		cmocka_unit_test(a_result_with_the_name_of_a_column_is_refused),
		cmocka_unit_test(profiles_have_their_axes_once),
		cmocka_unit_test(a_profile_without_an_axis_stays_a_result),
		cmocka_unit_test(first_rows_count_through_data_files),
		cmocka_unit_test(hit_rates_are_of_blocks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
