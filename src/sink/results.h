/* results.h - what stages found out about each kept frame, beside its image.
 *
 * Model:     every result that is no image (one element per pixel) becomes a dataset
 *            /entry/results/NAME [n, ...], row by row with /entry/data. A ragged one is a table
 *            of all frames' rows one after another; NAME_rows [n] says how many each has.
 * Threads:   those of the file. */
#ifndef SL_SINK_RESULTS_H
#define SL_SINK_RESULTS_H

#include <sluice/sink.h>

#include "hdf5/file.h"

struct sl_results {
	struct sl_h5_series *series[SL_RESULTS];
	struct sl_h5_series *rows[SL_RESULTS]; /* of ragged ones; else NULL */
	uint32_t index[SL_RESULTS];	       /* in sl_frame.result */
	uint32_t n;
	uint64_t bytes; /* of one frame's */
};

/* The file's status tells whether it went well. */
void sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env);
void sl_results_append(const struct sl_results *results, const struct sl_frame *frame);

#endif
