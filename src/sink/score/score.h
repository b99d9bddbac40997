/* score.h - what the files of the sink `score` share.
 *
 * Model:     score.c takes frames apart into events: rows of the truth's table, rows of the stage's
 *            result, the event's bytes. A kind (rings.c, tracks.c) compares what is
 *            known of an event with what was found, adds to the tallies, and says whether the
 *            trigger should have kept it. Which found one is which true one is decided as in
 *            tools/trigger_rings.py and trigger_tracks.py; tests compare the two.
 * Threads:   the sink's.
 * Ownership: an event's pointers are valid during the call. */
#ifndef SL_SINK_SCORE_SCORE_H
#define SL_SINK_SCORE_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/events.h>
#include <sluice/sink.h>

enum { SL_SCORE_CLASSES = 3, SL_SCORE_COLUMNS = 8 };

/* Events with 1, 2 and 3 rings; or all tracks, and those that are fast enough for the trigger. */
struct sl_score_class {
	uint64_t events;
	uint64_t findable, found; /* true ones that can be found, and of these, that were */
	uint64_t fakes;		  /* found ones that are none */
	uint64_t duplicates;	  /* second ones of the same true one */
	uint64_t counted;	  /* events of which as many were found as there are */
	double radius, centre;	  /* sums over `found` of the squares of what they are off, mm^2 */
};

struct sl_score {
	struct sl_score_class class[SL_SCORE_CLASSES];
	union {
		struct sl_rings_wanted rings;
		struct sl_tracks_wanted tracks;
	} wanted;
	uint8_t at[SL_SCORE_COLUMNS]; /* where the kind's columns are in a row of the truth */
	uint32_t columns;	      /* of such a row */
	uint32_t sectors;	      /* of a module */
	void *scratch;		      /* [truth rows of a frame] of the kind's scratch_bytes */
};

struct sl_score_event {
	const double *known; /* [knowns][columns] */
	const float *found;  /* [founds][columns of the result] */
	uint32_t knowns, founds;
	uint32_t number; /* of the frame's events */
	/* For tracks: what is listed of this event's stubs, and the bytes of the frame. */
	const uint16_t *stub;
	const uint8_t *raw;
	uint64_t module_bytes;
};

/* What the trigger should do. */
enum { SL_SCORE_REJECT, SL_SCORE_KEEP, SL_SCORE_KEEP_FINDABLE };

struct sl_score_kind {
	const char *result, *list;	 /* names of results; list: NULL, or that of lists */
	uint32_t result_columns, listed; /* listed: the column that says how much is in the list */
	const char *wanted;		 /* the constant, of so many bytes */
	size_t wanted_bytes, scratch_bytes;
	const char *column[SL_SCORE_COLUMNS]; /* of the truth; the first is the event */

	bool (*decides)(const struct sl_score *score);
	/* SL_SCORE_*. Findable: it is also to be kept by what can be found of it alone. */
	int (*event)(struct sl_score *score, const struct sl_score_event *event);
	/* Rows that were found, and are not in the table. */
	uint64_t (*unlisted)(struct sl_frame *frame);
	void (*tell)(const struct sl_score *score);
	void (*figures)(const struct sl_score *score, sl_sink_figure *figure, void *arg);
};
extern const struct sl_score_kind sl_score_rings, sl_score_tracks;

/* "97.6 %", or "-" of nothing. */
const char *sl_score_share(char text[16], uint64_t part, uint64_t whole);

#endif
