/* arrays.h - what of a frame goes into an element of a share: which arrays, and their bytes.
 *
 * Model:     open() makes a list of arrays out of the results that stages make: images as the
 *            modules lie, or assembled with the detector's gaps; numbers and lists as they are. Of
 *            detectors of events it adds `event_number`, `event_keep` and `event_score`; always
 *            `outcome`, a number of enum sl_outcome for each module; and, where it is asked for,
 *            facts that tell what other arrays mean (facts.c): axes of profiles, where the image
 *            lies in space, positions of peaks in the image.
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
	SL_SHARED_CONSTANT,  /* the same in every element */
	SL_SHARED_POSITIONS, /* of a list's rows in the image */
};

struct sl_shared_array {
	enum sl_shared_from from;
	uint32_t result;	  /* index of sl_frame.result */
	uint64_t result_bytes;	  /* of the result, whole */
	enum sl_dtype dtype;	  /* for the mark of no measurement */
	struct sl_mosaic *mosaic; /* of SL_SHARED_ASSEMBLED */
	const void *constant;	  /* of SL_SHARED_CONSTANT */
	uint32_t list;		  /* of SL_SHARED_POSITIONS: index of the array */
};

struct sl_shared { /* zeroed: closed */
	uint32_t arrays, modules;
	struct sl_share_array share[SL_SHARE_ARRAYS];
	struct sl_shared_array array[SL_SHARE_ARRAYS];
	uint8_t outcome[64], cause[64];
	void *events; /* numbers, scores and decisions of a frame with several events */
	struct sl_geometry geometry; /* with its layout */
	/* Of the image: corner, a row down, a column to the right; its rows and columns. */
	double plane[11], energy_keV;
	bool assembled; /* images are; else modules lie one below the other */
};

/* Whether a result of this name is selected: names with commas between them; "": all but `raw`;
 * "auto": sl_shared_auto(). */
bool sl_shared_selects(const char *selection, const char *name);

/* The selection that "auto" stands for: all that stages make, and raw pixels, too, where they make
 * no image and a result `raw` is there for another sink. NULL: there is nothing to select. */
const char *sl_shared_auto(const struct sl_env *env);

struct sl_shared_wish {
	const char *selection;
	bool assembled; /* images */
	bool facts;
	const char *sink; /* its name, for messages */
};

/* Logged: -EINVAL, -ENOMEM. */
int sl_shared_open(struct sl_shared *shared, const struct sl_env *env,
		   const struct sl_shared_wish *wish);
void sl_shared_close(struct sl_shared *shared);

uint64_t sl_shared_bytes(const struct sl_shared *shared); /* of an element, about */

/* The note of a frame but for its rows, and what is absent. */
void sl_shared_note(const struct sl_frame *frame, struct sl_share_note *note);

/* ---- between the files ---- */

/* NULL: there are as many arrays as an element can have. */
struct sl_share_array *sl_shared_add(struct sl_shared *shared, const char *name,
				     enum sl_dtype dtype, struct sl_shared_array from);
/* The number of that array; -1: there is none. */
int sl_shared_find(const struct sl_shared *shared, const char *name);
/* As many facts as there is room for arrays. */
void sl_shared_add_facts(struct sl_shared *shared, const struct sl_env *env);
/* to: [rows][2] of the list's rows. */
void sl_shared_positions(const struct sl_shared *shared, const struct sl_array *list, uint32_t rows,
			 float *to);

/* Arrays of a frame, into the place that is reserved in the share: from[i] is where the bytes of
 * array i are, or NULL: they are in place already. Sets note->rows and note->absent. */
void sl_shared_fill(struct sl_shared *shared, const struct sl_frame *frame, struct sl_share *share,
		    struct sl_share_note *note, const void *from[SL_SHARE_ARRAYS]);

#endif
