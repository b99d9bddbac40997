/* results.c - a dataset per result. */
#include <stdio.h>

#include "sink/account.h"
#include "sink/nxmx.h"
#include "sink/results.h"

enum { SMALL_BYTES = 4096 }; /* rows up to here share a chunk */

static bool is_image(const struct sl_env *env, const struct sl_shape *shape)
{
	return sl_shape_elements(shape) ==
	       env->geometry->modules * sl_geometry_pixels(env->geometry);
}

void sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env)
{
	*results = (struct sl_results){.n = 0};
	for (uint32_t i = 0; i < env->results; i++) {
		const struct sl_shape *shape = &env->result[i];
		struct sl_h5_shape row = {.type = sl_nxmx_type(shape->dtype), .rank = shape->rank};
		char path[sizeof("/entry/results/") + SL_NAME_BYTES];

		if (is_image(env, shape))
			continue;
		if (!results->n)
			sl_h5_group(file, "/entry/results", "NXcollection");
		for (uint32_t d = 0; d < shape->rank; d++)
			row.dim[d] = shape->dim[d];
		snprintf(path, sizeof(path), "/entry/results/%s", shape->name);
		sl_h5_series_open(file, path, &row,
				  sl_shape_bytes(shape) > SMALL_BYTES ? 1 : SL_ACCOUNT_ROWS,
				  &results->series[results->n]);
		results->index[results->n++] = i;
		results->bytes += sl_shape_bytes(shape);
	}
}

void sl_results_append(const struct sl_results *results, const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < results->n; i++)
		sl_h5_series_append(results->series[i], frame->result[results->index[i]].host);
}
