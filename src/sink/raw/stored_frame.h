/* stored_frame.h - a frame as sinks see it, as bytes, and back.
 *
 * Model:     a head of fixed size, views without pixels, verdicts, a table that says which results
 *            follow; then small results, each at a multiple of 8 bytes, and last the image, at a
 *            multiple of 64. Of ragged results only the rows that there are. Results of frames that
 *            did not go on (broken, lost) are not stored: there are none.
 * Threads:   functions of their arguments; reading uses memory of one struct sl_frame_room.
 * Ownership: the parts of a frame to be written point into the frame and into the room; a frame
 *            that was read points into the room and into the bytes that it was read from.
 * Errors:    -EBADMSG: the bytes are not what was written; every number is checked against the
 *            run. Not logged.
 * Cost:      writing copies the small parts; images and results are not touched. */
#ifndef SL_SINK_RAW_STORED_FRAME_H
#define SL_SINK_RAW_STORED_FRAME_H

#include <sys/uio.h>

#include <sluice/env.h>
#include <sluice/frame.h>

#include "sink/raw/stored_run.h"

enum { SL_FRAME_PARTS = 2 * (SL_RESULTS + 1) }; /* each with what aligns the next */

struct sl_frame_room {
	uint8_t *head; /* of a frame to be written: all but results */
	size_t head_bytes;
	struct sl_view *view;
	struct sl_verdict *verdict;
	uint32_t views, items; /* most */
	struct sl_frame frame; /* that was read */
};

/* -ENOMEM. Close even when this failed; zeroed memory may be closed. */
int sl_frame_room_open(struct sl_frame_room *room, const struct sl_env *env);
void sl_frame_room_close(struct sl_frame_room *room);

/* Most bytes that a frame of this run takes. */
uint64_t sl_stored_frame_most(const struct sl_env *env, const struct sl_stored_choice *choice);

/* image: its pixels are stored, too. Returns how many parts, at most SL_FRAME_PARTS. */
unsigned sl_stored_frame_write(const struct sl_env *env, const struct sl_stored_choice *choice,
			       const struct sl_frame *frame, bool image, struct sl_frame_room *room,
			       struct iovec *part);

/* Into room->frame. data: aligned to 64 bytes. Results that were not stored have host NULL. */
int sl_stored_frame_read(const struct sl_env *env, const struct sl_stored_choice *choice,
			 const void *data, size_t bytes, struct sl_frame_room *room);

#endif
