/* recorded.h - a run that the sink `raw` wrote, opened for reading.
 *
 * Model:     the container (raw/raw.h) with its head as an environment and, where the run has
 *            ended, its tail as a status. Each entry of the container is a frame.
 * Threads:   opening and closing: one. Frames can be read by any number of threads, each with
 *            memory of its own.
 * Ownership: everything in it is its own, until sl_recorded_close(). It stays where it is.
 * Errors:    -errno, logged with the path. */
#ifndef SL_CONVERT_RECORDED_H
#define SL_CONVERT_RECORDED_H

#include <sluice/status.h>

#include "raw/raw.h"
#include "sink/raw/stored_frame.h"
#include "sink/raw/stored_run.h"

struct sl_recorded {
	const char *path; /* the caller's */
	struct sl_raw_reader *reader;
	struct sl_raw_facts facts;
	struct sl_stored_run run;
	bool ended; /* the status is that of its end; else it is zeros */
	struct sl_status status;
	uint64_t frame_most; /* bytes of a frame */
};

int sl_recorded_open(const char *path, struct sl_recorded *recorded);
void sl_recorded_close(struct sl_recorded *recorded); /* also after an error; zeroed memory, too */

/* Name of the result whose pixels are stored; NULL: none. */
const char *sl_recorded_dataset(const struct sl_recorded *recorded);

/* Frame i into room->frame, which points into `buffer` of frame_most bytes, aligned to 64. */
int sl_recorded_read(const struct sl_recorded *recorded, uint64_t i, void *buffer,
		     struct sl_frame_room *room);

#endif
