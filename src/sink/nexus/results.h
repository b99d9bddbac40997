/* results.h - what stages found out about each kept frame, beside its image.
 *
 * Model:     every result that is no image (one element per pixel) becomes a dataset
 *            /entry/results/NAME [n, ...], row by row with /entry/data. A ragged one is a table of
 *            all frames' rows one after another; NAME_rows [n] says how many each has. Where frames
 *            are blocks of events, event_keep and event_score [n, events] are their verdicts.
 * Threads:   those of the file. */
#ifndef SL_SINK_NEXUS_RESULTS_H
#define SL_SINK_NEXUS_RESULTS_H

#include <sluice/sink.h>

#include "hdf5/file.h"

struct sl_results {
	struct sl_h5_series *series[SL_RESULTS];
	struct sl_h5_series *rows[SL_RESULTS]; /* of ragged ones; else NULL */
	uint32_t index[SL_RESULTS];	       /* in sl_frame.result */
	uint32_t n;
	uint64_t bytes; /* of one frame's */
	/* Of events; NULL: frames are images. */
	struct sl_h5_series *keep_series, *score_series;
	uint8_t *keep; /* [items] */
	float *score;
};

/* 0 or -ENOMEM; the file's status tells whether it went well. */
int sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env);
void sl_results_close(struct sl_results *results);
void sl_results_append(const struct sl_results *results, const struct sl_frame *frame);

#endif
