/* results.c - a dataset per result. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice/detector.h>

#include "sink/nexus/account.h"
#include "sink/nexus/nxmx.h"
#include "sink/nexus/results.h"

enum { SMALL_BYTES = 4096, RAGGED_CHUNK_BYTES = 64 << 10 }; /* rows up to here share a chunk */

static void open_series(struct sl_results *results, struct sl_h5 *file,
			const struct sl_shape *shape)
{
	struct sl_h5_shape row = {.type = sl_nxmx_type(shape->dtype)};
	struct sl_h5_shape count = {.type = SL_H5_U32};
	char path[sizeof("/entry/results/_rows") + SL_NAME_BYTES];
	uint64_t bytes = sl_dtype_bytes(shape->dtype);

	for (uint32_t d = shape->ragged; d < shape->rank; d++) {
		row.dim[row.rank++] = shape->dim[d];
		bytes *= shape->dim[d];
	}
	snprintf(path, sizeof(path), "/entry/results/%s", shape->name);
	sl_h5_series_open(file, path, &row,
			  bytes > SMALL_BYTES ? 1
			  : shape->ragged     ? (uint32_t)(RAGGED_CHUNK_BYTES / bytes)
					      : SL_ACCOUNT_ROWS,
			  &results->series[results->n]);
	if (shape->doc)
		sl_h5_attribute_text(file, path, "long_name", shape->doc);
	if (!shape->ragged)
		return;
	snprintf(path, sizeof(path), "/entry/results/%s_rows", shape->name);
	sl_h5_series_open(file, path, &count, SL_ACCOUNT_ROWS, &results->rows[results->n]);
}

/* A block of events is kept for any of them: which, is said here. */
static int open_verdicts(struct sl_results *results, struct sl_h5 *file, uint32_t items)
{
	static const char keep[] = "/entry/results/event_keep";
	static const char score[] = "/entry/results/event_score";
	struct sl_h5_shape row = {.type = SL_H5_U8, .rank = 1, .dim = {items}};

	results->keep = calloc(items, sizeof(*results->keep));
	results->score = calloc(items, sizeof(*results->score));
	if (!results->keep || !results->score)
		return -ENOMEM;
	if (!results->n)
		sl_h5_group(file, "/entry/results", "NXcollection");
	sl_h5_series_open(file, keep, &row, 1 + SMALL_BYTES / items, &results->keep_series);
	sl_h5_attribute_text(file, keep, "long_name", "1: the event is to be kept");
	row.type = SL_H5_F32;
	sl_h5_series_open(file, score, &row, 1 + SMALL_BYTES / items, &results->score_series);
	sl_h5_attribute_text(file, score, "long_name", "what the stage that judged it counted");
	results->bytes += items * (sizeof(*results->keep) + sizeof(*results->score));
	return 0;
}

void sl_results_close(struct sl_results *results)
{
	free(results->keep);
	free(results->score);
	results->keep = NULL;
	results->score = NULL;
}

int sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env)
{
	uint32_t items = sl_geometry_frame_items(env->geometry);

	*results = (struct sl_results){.n = 0};
	for (uint32_t i = 0; i < env->results; i++) {
		const struct sl_shape *shape = &env->result[i];

		if (shape->image)
			continue;
		if (!results->n)
			sl_h5_group(file, "/entry/results", "NXcollection");
		open_series(results, file, shape);
		results->index[results->n++] = i;
		results->bytes += sl_shape_bytes(shape);
	}
	return items > 1 ? open_verdicts(results, file, items) : 0;
}

static void append_rows(const struct sl_results *results, uint32_t i, const struct sl_array *array)
{
	uint32_t rows = array->rows < array->shape.dim[0] ? array->rows : array->shape.dim[0];

	sl_h5_series_append(results->rows[i], &rows);
	sl_h5_series_append_rows(results->series[i], array->host, rows);
}

void sl_results_append(const struct sl_results *results, const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < results->n; i++) {
		const struct sl_array *array = &frame->result[results->index[i]];

		if (array->shape.ragged)
			append_rows(results, i, array);
		else
			sl_h5_series_append(results->series[i], array->host);
	}
	if (!results->keep)
		return;
	for (uint32_t i = 0; i < frame->items; i++) {
		results->keep[i] = frame->verdict[i].keep != 0;
		results->score[i] = frame->verdict[i].score;
	}
	sl_h5_series_append(results->keep_series, results->keep);
	sl_h5_series_append(results->score_series, results->score);
}
