/* results.c - a dataset per result. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>

#include "base/log.h"
#include "sink/nexus/account.h"
#include "sink/nexus/nxmx.h"
#include "sink/nexus/results.h"

#define GROUP "/entry/results"

/* Rows share chunks of about so many bytes. */
enum { CHUNK_BYTES = 256 << 10, RAGGED_CHUNK_BYTES = 64 << 10 };

static const char *const companions[] = {"sequence", "frame_number", "image_index", "event_keep",
					 "event_score"};

/* ---- a result ---- */

uint32_t sl_results_per_chunk(uint64_t row_bytes)
{
	uint64_t rows = CHUNK_BYTES / (row_bytes ? row_bytes : 1);

	return rows < 2 ? 1 : rows < SL_ACCOUNT_ROWS ? (uint32_t)rows : SL_ACCOUNT_ROWS;
}

static uint32_t ragged_per_chunk(uint64_t row_bytes)
{
	return row_bytes * 2 > RAGGED_CHUNK_BYTES ? 1 : (uint32_t)(RAGGED_CHUNK_BYTES / row_bytes);
}

static void align(const struct sl_result_column *column, struct sl_h5 *file, const char *path)
{
	sl_h5_attribute_text(file, path, "aligned_with",
			     column->of_image ? "/entry/data/sequence" : GROUP "/sequence");
}

static void open_ragged(struct sl_result_column *column, struct sl_h5 *file,
			const struct sl_shape *shape)
{
	const struct sl_h5_shape count = {.type = SL_H5_U32}, first = {.type = SL_H5_U64};
	char path[sizeof(GROUP "/_first") + SL_NAME_BYTES];

	snprintf(path, sizeof(path), GROUP "/%s_rows", shape->name);
	sl_h5_series_open(file, path, &count, SL_ACCOUNT_ROWS, &column->rows);
	sl_h5_attribute_text(file, path, "long_name", "rows of each frame");
	align(column, file, path);
	snprintf(path, sizeof(path), GROUP "/%s_first", shape->name);
	sl_h5_series_open(file, path, &first, SL_ACCOUNT_ROWS, &column->first);
	sl_h5_attribute_text(file, path, "long_name",
			     "the first row of each frame, of the whole run");
	align(column, file, path);
}

static void open_column(struct sl_result_column *column, struct sl_h5 *file,
			const struct sl_shape *shape)
{
	struct sl_h5_shape row = {.type = sl_nxmx_type(shape->dtype)};
	char path[sizeof(GROUP "/") + SL_NAME_BYTES];
	uint64_t bytes = sl_dtype_bytes(shape->dtype);

	for (uint32_t d = shape->ragged; d < shape->rank; d++) {
		row.dim[row.rank++] = shape->dim[d];
		bytes *= shape->dim[d];
	}
	snprintf(path, sizeof(path), GROUP "/%s", shape->name);
	sl_h5_series_open(file, path, &row,
			  shape->ragged ? ragged_per_chunk(bytes) : sl_results_per_chunk(bytes),
			  &column->series);
	if (shape->doc)
		sl_h5_attribute_text(file, path, "long_name", shape->doc);
	if (shape->ragged)
		open_ragged(column, file, shape);
	else
		align(column, file, path);
}

/* ---- all of them ---- */

/* A block of events is kept for any of them: which, is said here. */
static int open_verdicts(struct sl_results *results, struct sl_h5 *file, uint32_t items)
{
	static const char keep[] = GROUP "/event_keep", score[] = GROUP "/event_score";
	static const struct sl_result_column column;
	struct sl_h5_shape row = {.type = SL_H5_U8, .rank = 1, .dim = {items}};

	results->keep = calloc(items, sizeof(*results->keep));
	results->score = calloc(items, sizeof(*results->score));
	if (!results->keep || !results->score)
		return -ENOMEM;
	sl_h5_series_open(file, keep, &row, sl_results_per_chunk(items), &results->keep_series);
	sl_h5_attribute_text(file, keep, "long_name", "1: the event is to be kept");
	align(&column, file, keep);
	row.type = SL_H5_F32;
	sl_h5_series_open(file, score, &row, sl_results_per_chunk(items * sizeof(float)),
			  &results->score_series);
	sl_h5_attribute_text(file, score, "long_name", "what the stage that judged it counted");
	align(&column, file, score);
	results->bytes += items * (sizeof(*results->keep) + sizeof(*results->score));
	return 0;
}

static void open_companions(struct sl_results *results, struct sl_h5 *file)
{
	const struct sl_h5_shape number = {.type = SL_H5_U64}, index = {.type = SL_H5_I64};
	static const char of_image[] = "/entry/data/result_index";

	sl_h5_series_open(file, GROUP "/sequence", &number, SL_ACCOUNT_ROWS, &results->sequence);
	sl_h5_attribute_text(file, GROUP "/sequence", "long_name", "whose the row is");
	sl_h5_series_open(file, GROUP "/frame_number", &number, SL_ACCOUNT_ROWS, &results->number);
	sl_h5_attribute_text(file, GROUP "/frame_number", "long_name", "frame number");
	sl_h5_series_open(file, GROUP "/image_index", &index, SL_ACCOUNT_ROWS, &results->image);
	sl_h5_attribute_text(file, GROUP "/image_index", "long_name",
			     "index into /entry/data/data; -1: the frame was rejected");
	sl_h5_series_open(file, of_image, &index, SL_ACCOUNT_ROWS, &results->of_image);
	sl_h5_attribute_text(file, of_image, "long_name",
			     "the row of " GROUP " that is about this image; -1: there is none");
}

/* A stage of a user's own may call its result anything. */
static int refuse_names(const struct sl_env *env)
{
	for (uint32_t i = 0; i < env->results; i++)
		for (size_t k = 0; k < sizeof(companions) / sizeof(companions[0]); k++)
			if (!env->result[i].image && !strcmp(env->result[i].name, companions[k])) {
				sl_error("nexus: a stage calls its result '%s': the file has that "
					 "name in " GROUP " already; rename the result",
					 companions[k]);
				return -EINVAL;
			}
	return 0;
}

static bool is_any(const struct sl_env *env)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (!env->result[i].image)
			return true;
	return sl_geometry_frame_items(env->geometry) > 1;
}

/* Of columns with a row for each image, whatever is known of it. */
static int open_blank(struct sl_results *results, const struct sl_env *env)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < results->n; i++) {
		const struct sl_result_column *column = &results->column[i];
		uint64_t bytes = sl_shape_bytes(&env->result[column->index]);

		if (column->of_image && !column->rows && bytes > most)
			most = bytes;
	}
	results->blank = most ? calloc(1, most) : NULL;
	return most && !results->blank ? -ENOMEM : 0;
}

int sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env,
		    bool all)
{
	uint32_t items = sl_geometry_frame_items(env->geometry);
	int r = refuse_names(env);

	*results = (struct sl_results){.all = all};
	if (r || !is_any(env))
		return r;
	sl_h5_group(file, GROUP, "NXcollection");
	open_companions(results, file);
	sl_profiles_open(&results->profiles, file, env);
	for (uint32_t i = 0; i < env->results; i++) {
		struct sl_result_column *column = &results->column[results->n];

		if (env->result[i].image)
			continue;
		results->bytes += sl_shape_bytes(&env->result[i]);
		if (sl_profiles_take(env, i))
			continue;
		column->index = i;
		column->of_image = !strncmp(env->result[i].name, "sparse_", strlen("sparse_"));
		open_column(column, file, &env->result[i]);
		results->n++;
	}
	r = open_blank(results, env);
	return !r && items > 1 ? open_verdicts(results, file, items) : r;
}

/* ---- detectors that attach to events ---- */

#define EVENTS "/entry/events"

enum { OTHER_PATH = 128 };

static void add_link(struct sl_h5 *file, const char *group, const char *name, const char *target)
{
	char path[OTHER_PATH];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	sl_h5_link(file, path, target);
}

static void add_detector(struct sl_h5 *file, const struct sl_env_detector *d)
{
	char group[OTHER_PATH], path[OTHER_PATH + 32], pixels[OTHER_PATH], frame[OTHER_PATH];

	snprintf(group, sizeof(group), "/entry/instrument/detector_%s", d->name);
	snprintf(pixels, sizeof(pixels), GROUP "/%s", d->name);
	snprintf(frame, sizeof(frame), GROUP "/%s_frame", d->name);
	sl_h5_group(file, group, "NXdetector");
	snprintf(path, sizeof(path), "%s/local_name", group);
	sl_h5_write_text(file, path, d->name);
	if (d->geometry->detector) {
		snprintf(path, sizeof(path), "%s/description", group);
		sl_h5_write_text(file, path, d->geometry->detector);
	}
	if (d->geometry->pixel_size_m > 0) {
		snprintf(path, sizeof(path), "%s/x_pixel_size", group);
		sl_h5_write_f64(file, path, d->geometry->pixel_size_m, "m");
		snprintf(path, sizeof(path), "%s/y_pixel_size", group);
		sl_h5_write_f64(file, path, d->geometry->pixel_size_m, "m");
	}
	add_link(file, group, "data", pixels);
	add_link(file, group, "frame_number", frame);
	add_link(file, EVENTS, d->name, frame);
}

void sl_results_open_others(struct sl_h5 *file, const struct sl_env *env)
{
	if (!env->others)
		return;
	sl_h5_group(file, EVENTS, "NXcollection");
	sl_h5_write_text(file, EVENTS "/description",
			 "a row for each event, in the order of " GROUP
			 ": which frame of each detector belongs to it; -1: none");
	add_link(file, EVENTS, "sequence", GROUP "/sequence");
	add_link(file, EVENTS, "number", GROUP "/frame_number");
	for (uint32_t i = 0; i < env->others; i++)
		add_detector(file, &env->other[i]);
}

void sl_results_close(struct sl_results *results)
{
	free(results->keep);
	free(results->score);
	free(results->blank);
	results->blank = NULL;
	results->keep = NULL;
	results->score = NULL;
}

/* ---- a frame ---- */

/* A kept frame that on_slow left out comes without its results. */
bool sl_results_take(const struct sl_results *results, const struct sl_frame *frame, bool kept)
{
	return results->sequence &&
	       (kept || (results->all && frame->results && sl_frame_goes_on(frame) &&
			 !(frame->flags & SL_FRAME_DARK)));
}

static void append_column(struct sl_result_column *column, const struct sl_array *array)
{
	uint32_t rows = array->rows < array->shape.dim[0] ? array->rows : array->shape.dim[0];

	if (!column->rows) {
		sl_h5_series_append(column->series, array->host);
		return;
	}
	sl_h5_series_append(column->rows, &rows);
	sl_h5_series_append(column->first, &column->total);
	sl_h5_series_append_rows(column->series, array->host, rows);
	column->total += rows;
}

static void append_verdicts(const struct sl_results *results, const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < frame->items; i++) {
		results->keep[i] = frame->verdict[i].keep != 0;
		results->score[i] = frame->verdict[i].score;
	}
	sl_h5_series_append(results->keep_series, results->keep);
	sl_h5_series_append(results->score_series, results->score);
}

void sl_results_append(struct sl_results *results, const struct sl_frame *frame, int64_t image)
{
	for (uint32_t i = 0; i < results->n; i++) {
		struct sl_result_column *column = &results->column[i];

		if (image >= 0 || !column->of_image)
			append_column(column, &frame->result[column->index]);
	}
	sl_profiles_append(&results->profiles, frame);
	if (results->keep)
		append_verdicts(results, frame);
	sl_h5_series_append(results->sequence, &frame->sequence);
	sl_h5_series_append(results->number, &frame->number);
	sl_h5_series_append(results->image, &image);
	if (image >= 0)
		sl_h5_series_append(results->of_image, &results->rows);
	results->rows++;
}

void sl_results_append_none(struct sl_results *results)
{
	static const int64_t none = -1;
	static const uint32_t no_rows;

	if (!results->sequence)
		return;
	for (uint32_t i = 0; i < results->n; i++) {
		struct sl_result_column *column = &results->column[i];

		if (column->of_image && column->rows) {
			sl_h5_series_append(column->rows, &no_rows);
			sl_h5_series_append(column->first, &column->total);
		} else if (column->of_image) {
			sl_h5_series_append(column->series, results->blank);
		}
	}
	sl_h5_series_append(results->of_image, &none);
}
