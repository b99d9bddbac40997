/* arrays.h - what of a frame goes into an element of a share: which arrays, and their bytes.
 *
 * Model:     open() makes a list of arrays out of the results that stages make: images as the
 *            modules lie, or assembled with the detector's gaps; numbers and lists as they are. Of
 *            detectors of events it adds `event_number`, `event_keep` and `event_score`; always
 *            `outcome`, a number of enum sl_outcome for each module.
 *            fill() says where the bytes of each array are, or writes them in place. An array that
 *            a frame does not have is filled with what marks no measurement, and has its bit in
 *            note.absent.
 * Threads:   one at a time.
 * Ownership: the caller's struct; open, then close, also after an open that failed. */
#ifndef SL_SINK_SHARE_ARRAYS_H
#define SL_SINK_SHARE_ARRAYS_H

#include <stdbool.h>

#include <sluice/env.h>
#include <sluice/share.h>

#include "sink/mosaic.h"

enum sl_shared_from {
	SL_SHARED_RESULT,
	SL_SHARED_ASSEMBLED, /* a result, through the mosaic */
	SL_SHARED_EVENT_NUMBER,
	SL_SHARED_EVENT_KEEP,
	SL_SHARED_EVENT_SCORE,
	SL_SHARED_OUTCOME,
};

struct sl_shared_array {
	enum sl_shared_from from;
	uint32_t result;	  /* index of sl_frame.result */
	uint64_t result_bytes;	  /* of the result, whole */
	enum sl_dtype dtype;	  /* for the mark of no measurement */
	struct sl_mosaic *mosaic; /* of SL_SHARED_ASSEMBLED */
};

struct sl_shared { /* zeroed: closed */
	uint32_t arrays, modules;
	struct sl_share_array share[SL_SHARE_ARRAYS];
	struct sl_shared_array array[SL_SHARE_ARRAYS];
	uint8_t outcome[64], cause[64];
	void *events; /* numbers, scores and decisions of a frame with several events */
};

/* Whether a result of this name is selected: names with commas between them; "": all but `raw`. */
bool sl_shared_selects(const char *selection, const char *name);

/* sink: its name, for messages. Logged: -EINVAL, -ENOMEM. */
int sl_shared_open(struct sl_shared *shared, const struct sl_env *env, const char *selection,
		   bool assembled, const char *sink);
void sl_shared_close(struct sl_shared *shared);

uint64_t sl_shared_bytes(const struct sl_shared *shared); /* of an element, about */

/* The note of a frame but for its rows, and what is absent. */
void sl_shared_note(const struct sl_frame *frame, struct sl_share_note *note);

/* Arrays of a frame, into the place that is reserved in the share: from[i] is where the bytes of
 * array i are, or NULL: they are in place already. Sets note->rows and note->absent. */
void sl_shared_fill(struct sl_shared *shared, const struct sl_frame *frame, struct sl_share *share,
		    struct sl_share_note *note, const void *from[SL_SHARE_ARRAYS]);

#endif
