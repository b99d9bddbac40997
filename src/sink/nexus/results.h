/* results.h - what stages found out about frames, beside their images.
 *
 * Model:     /entry/results has a row for each frame that went through the stages, kept or rejected
 *            (option results: all), or for each kept one (kept); dark and broken frames have none.
 *            sequence, frame_number and image_index [n] (-1: rejected) say whose a row is;
 *            result_index of /entry/data and of /entry/sluice/frames lead back to it.
 *
 *            Every result that is no image (one element per pixel) is a dataset NAME [n, ...]. A
 *            ragged one is a table of all frames' rows one after another; NAME_rows [n] says how
 *            many each has, NAME_first [n] where they begin. Where frames are blocks of events,
 *            event_keep and event_score [n, events] are their verdicts. Profiles are elsewhere
 *            (profiles.h). Lists of the stage `sparse` are images in another form: they have rows
 *            for kept frames alone, as /entry/data has. The attribute aligned_with of each dataset
 *            with a row per frame names the dataset that says whose the rows are.
 * Threads:   those of the file.
 * Cost:      a copy of the results into the chunk at hand; a write when the chunk is full. */
#ifndef SL_SINK_NEXUS_RESULTS_H
#define SL_SINK_NEXUS_RESULTS_H

#include <stdbool.h>

#include <sluice/sink.h>

#include "hdf5/file.h"
#include "sink/nexus/profiles.h"

struct sl_result_column {
	struct sl_h5_series *series;
	struct sl_h5_series *rows, *first; /* of a ragged one; else NULL */
	uint64_t total;			   /* rows of a ragged one so far */
	uint32_t index;			   /* in sl_frame.result */
	bool of_image;			   /* images have a row, others have none */
};

struct sl_results {
	struct sl_result_column column[SL_RESULTS];
	uint32_t n;
	struct sl_profiles profiles;
	/* Whose a row is; NULL: there is nothing to store. */
	struct sl_h5_series *sequence, *number, *image;
	struct sl_h5_series *of_image; /* the row of each image; -1: it has none */
	bool all;		       /* rejected frames have rows, too */
	uint64_t rows;		       /* so far */
	uint64_t bytes;		       /* of one frame's */
	void *blank;		       /* the largest row of an image, zeros; NULL: there is none */
	/* Of events; NULL: frames are images. */
	struct sl_h5_series *keep_series, *score_series;
	uint8_t *keep; /* [items] */
	float *score;
};

/* 0 or -errno; the file's status tells whether the rest went well. close() in any case. */
int sl_results_open(struct sl_results *results, struct sl_h5 *file, const struct sl_env *env,
		    bool all);
void sl_results_close(struct sl_results *results);

/* Detectors that attach to events, after the above:
 *   /entry/instrument/detector_NAME   NXdetector: data and frame_number are links to /entry/results
 *   /entry/events                     which frame of which detector belongs to which event:
 *                                     sequence and number of the event, and a column for each
 *                                     detector, -1 where the event has no frame of it
 * The row is the index into each detector's stack. Readers of one detector take the first group of
 * the instrument by its name: that is /entry/instrument/detector. */
void sl_results_open_others(struct sl_h5 *file, const struct sl_env *env);

/* Rows of a series of results that share a chunk. */
uint32_t sl_results_per_chunk(uint64_t row_bytes);

/* Whether the frame gets a row. kept: the run has kept it. */
bool sl_results_take(const struct sl_results *results, const struct sl_frame *frame, bool kept);

/* image: its index in /entry/data, or -1. For frames that get a row. */
void sl_results_append(struct sl_results *results, const struct sl_frame *frame, int64_t image);
/* For an image of a frame that gets none. */
void sl_results_append_none(struct sl_results *results);

#endif
