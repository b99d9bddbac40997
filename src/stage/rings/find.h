/* find.h - what the files of the stage `rings` share.
 *
 * Model:     events are unpacked into records, some hundred at a time. Passes work on VECTOR_WIDTH
 *            events side by side, of about as many hits: `single` tries whether one ring explains
 *            an event; for others `search` looks for the best circle among what hits are left,
 *            again and again; `share` gives hits that several rings claim to the nearest. Between
 *            them queues are sorted by the number of hits. What is found in an event depends on
 *            its own hits alone, not on its neighbours, and not on VECTOR_WIDTH.
 * Threads:   settings are read-only; a workspace is one worker's. */
#ifndef SL_STAGE_RINGS_FIND_H
#define SL_STAGE_RINGS_FIND_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/events.h>

#include "stage/vectors.h"

/* Of an event, at most; one more is looked for, to say when there are more. */
enum { SL_RINGS = 3, SL_RINGS_LOOKED_FOR = SL_RINGS + 1 };
enum { SL_RINGS_CHUNK = 1024 }; /* events of a workspace */

/* Hits in the order of their angle are spread over so many places; a table of such places says
 * which three are tried, so that the same are for all events side by side. */
enum { SL_RINGS_PLACES = 32, SL_RINGS_TRIPLETS = 512 };

/* Which hits to compare, and to exchange when they are in the wrong order, one pair after the
 * other, so that they are sorted in the end: the same for all events side by side. */
enum { SL_RINGS_PAIRS = 191 }; /* of Batcher's network for SL_RICH_HITS */
struct sl_rings_network {
	uint32_t pairs;
	uint8_t pair[SL_RINGS_PAIRS][2];
};

struct sl_rings_settings {
	float radius_min, radius_max, reach; /* mm; reach: of the centre from the disk's */
	float window;			     /* mm: hits that are nearer belong to a ring */
	float rms;			     /* mm: of hits from a ring that is alone, at most */
	uint32_t min_hits;		     /* of a ring */
	uint32_t min_own;		     /* of these, nearer to it than to another ring */
	uint32_t triplets;		     /* that are tried, at most SL_RINGS_TRIPLETS */

	float x[SL_RICH_CELLS], y[SL_RICH_CELLS]; /* of cells, mm */
	uint8_t triplet[SL_RINGS_TRIPLETS][3];
	struct sl_rings_network network[SL_RICH_HITS + 1]; /* by the number of hits */
};

struct sl_rings_ring {
	float x, y, square; /* of the radius */
	float hits, spread; /* mean square of their distance from it */
};

struct sl_rings_event {
	uint16_t cell[SL_RICH_HITS];
	uint8_t hits;  /* of known cells, each once */
	uint8_t left;  /* the first so many belong to no ring */
	uint8_t odd;   /* numbers that are no cell, or come again */
	uint8_t rings; /* at most SL_RINGS_LOOKED_FOR, of which SL_RINGS are there */
	uint8_t alone; /* found by `single` */
	struct sl_rings_ring ring[SL_RINGS];
};

struct sl_rings_work {
	struct sl_rings_event event[SL_RINGS_CHUNK];
	uint16_t queue[2][SL_RINGS_CHUNK];
	uint16_t seen[SL_RICH_CELLS]; /* the last event that had it, and 1 */
};

/* Over events queue[0 .. n) of the workspace. */
typedef void sl_rings_pass(const struct sl_rings_settings *settings, struct sl_rings_work *work,
			   const uint16_t *queue, uint32_t n);

struct sl_rings_passes {
	sl_rings_pass *single, *order, *search, *share;
};

/* avx512.c, avx2.c, baseline.c. */
extern const struct sl_rings_passes sl_rings_avx512, sl_rings_avx2, sl_rings_baseline;
const struct sl_rings_passes *sl_rings_passes_of(enum sl_vectors vectors);

/* Fills in the tables. */
void sl_rings_settings_init(struct sl_rings_settings *settings);

/* Rings of n <= SL_RINGS_CHUNK events, `pitch` bytes apart, into work->event. */
void sl_rings_find(const struct sl_rings_settings *settings, const struct sl_rings_passes *passes,
		   const uint8_t *packed, ptrdiff_t pitch, uint32_t n, struct sl_rings_work *work);

#endif
