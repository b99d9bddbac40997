/* hits.h - how many frames are hits, over the run: /entry/hits and /entry/scores, NXdata both.
 *
 * Model:     frames that went through the stages are counted in blocks of SL_HITS_FRAMES; when a
 *            block is full, and at the end, /entry/hits gets a row: frame_number and timestamp of
 *            its first frame, frames, judged (frames, or their events), hits (judged and kept; a
 *            frame that is kept only as a sample of the rejected is none), hit_rate, score_mean.
 *            /entry/scores is links to columns of /entry/sluice/frames: a score for every frame.
 *            A killed run lacks the row of the block that was not full.
 * Threads:   those of the file.
 * Cost:      a few additions per frame. */
#ifndef SL_SINK_NEXUS_HITS_H
#define SL_SINK_NEXUS_HITS_H

#include <sluice/frame.h>

#include "hdf5/file.h"

#define SL_HITS "/entry/hits"

enum { SL_HITS_FRAMES = 100 };

struct sl_hits {
	struct sl_h5_series *number, *timestamp, *frames, *judged, *hits, *rate, *score;
	struct { /* the block at hand */
		uint64_t number, timestamp;
		uint32_t frames, judged, hits;
		double score;
	} block;
};

void sl_hits_open(struct sl_hits *hits, struct sl_h5 *file);
void sl_hits_add(struct sl_hits *hits, const struct sl_frame *frame);
void sl_hits_end(struct sl_hits *hits); /* before sl_h5_rows_end() */

#endif
