/* results.c - a dataset per result. */
#include <stdio.h>

#include "sink/account.h"
#include "sink/nxmx.h"
#include "sink/results.h"

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

void sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env)
{
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
}
