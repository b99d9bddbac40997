/* tracks.h - what the files of the stage `tracks` share.
 *
 * Model:     a plan, made once, has the map's constants. A worker has a workspace: the stubs of one
 *            sector and their map, and the candidates of one event. map.c puts stubs into
 *            the map, a bit for each cell and layer, and says which stubs a cell has;
 *            sector.c makes candidates of one sector's cells, fit.c puts a helix
 *            through them, event.c takes out what overlapping sectors have found twice.
 * Threads:   the plan is read-only; a workspace is one worker's. */
#ifndef SL_STAGE_TRACKS_TRACKS_H
#define SL_STAGE_TRACKS_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/events.h>

enum {
	SL_TRACKS_CELLS = 64,  /* most rows and most columns */
	SL_TRACKS_WORDS = 2,   /* of 32 rows */
	SL_TRACKS_VECTOR = 16, /* columns and stubs that are worked on together */
	SL_TRACKS_LAYERS = 8,  /* numbers of layers; 0 is none */
	SL_TRACKS_SET = 3,     /* words of 64 stubs */
	SL_TRACKS_BEND_R = 64, /* steps in r of the table of bends */
	SL_TRACKS_MOST = 1024, /* candidates of a sector */
	SL_TRACKS_OWNERS = SL_TRACKS_MOST / 32,
	SL_TRACKS_DISK_Z = (int)(124 / SL_STUB_Z_CM), /* beyond the barrel */
};

struct sl_tracks_settings {
	double min_pt_GeV; /* of the map: |q/pT| is at most 1 over it */
	uint32_t columns, rows, min_layers;
	uint32_t cells;	 /* enum sl_tracks_cells */
	double bend;	 /* deviations that a stub's bend may be off; 0: any */
	uint32_t common; /* duplicates have stubs of so many layers in common; 0: none are sought */
	bool between;	 /* also between sectors */
	bool fit;
	float fit_limit;	/* squared deviations of a stub */
	uint32_t sector_tracks; /* of one sector, at most */
};

struct sl_tracks_plan {
	struct sl_tracks_settings set;
	uint32_t words, padded;		/* words of rows; columns up to whole vectors */
	int32_t turn;			/* rows per unit of phi */
	int32_t reach, reach_at;	/* |r * reach - reach_at| */
	int32_t slope[SL_TRACKS_CELLS]; /* rows per unit of r */
	int32_t offset[SL_TRACKS_CELLS], side[SL_TRACKS_CELLS];
	/* By bend and r: the first column that it may be in, and how many after it. */
	uint8_t first[16][SL_TRACKS_BEND_R], after[16][SL_TRACKS_BEND_R];
	float x[SL_TRACKS_CELLS]; /* q/pT in the middle of a column, per GeV */
	float y[2], row;	  /* phi of row 0 in even and odd columns, height of a row */
	float x_window, y_window; /* candidates farther apart are of different tracks */
};

void sl_tracks_plan(struct sl_tracks_plan *plan, const struct sl_tracks_settings *set);

/* Phi at 67 cm of a cell's middle, from that of the sector. */
static inline float sl_tracks_cell_phi(const struct sl_tracks_plan *plan, uint32_t column,
				       uint32_t row)
{
	return plan->y[column % 2] + (float)row * plan->row;
}

/* How many bits are set; the builtin is a call where CPUs may be old. */
static inline uint32_t sl_tracks_ones(uint64_t bits)
{
	bits -= bits >> 1 & 0x5555555555555555u;
	bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	return (uint32_t)(bits * 0x0101010101010101u >> 56);
}

typedef uint64_t sl_tracks_set[SL_TRACKS_SET]; /* a bit per stub of a sector */

struct sl_tracks_stubs {    /* of one sector */
	uint32_t n, padded; /* padded: up to whole vectors; zeros after the last */
	_Alignas(64) int32_t turned[SL_STUBS];
	_Alignas(64) int32_t r[SL_STUBS];
	_Alignas(64) int32_t reach[SL_STUBS];
	_Alignas(64) uint32_t first[SL_STUBS];
	_Alignas(64) uint32_t after[SL_STUBS];
	uint8_t layer[SL_STUBS];
	sl_tracks_set used; /* those with a layer */
};

struct sl_tracks_map {
	_Alignas(64) uint32_t layer[SL_TRACKS_WORDS][SL_TRACKS_LAYERS][SL_TRACKS_CELLS];
	_Alignas(64) uint32_t found[SL_TRACKS_WORDS][SL_TRACKS_CELLS]; /* enough layers */
	_Alignas(64) uint32_t column[SL_TRACKS_WORDS][SL_STUBS]; /* rows that each stub is in */
};

struct sl_tracks_calls {
	/* All stubs into map->layer, and map->found from it. */
	void (*fill)(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs,
		     struct sl_tracks_map *map);
	/* map->column of one column. */
	void (*column)(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs,
		       uint32_t column, struct sl_tracks_map *map);
	/* The stubs that are in any of these rows of that column. */
	void (*within)(const struct sl_tracks_map *map, uint64_t rows, uint32_t padded,
		       sl_tracks_set set);
};
struct sl_tracks_calls sl_tracks_calls(const struct sl_tracks_plan *plan, uint32_t vectors);

enum sl_tracks_state { SL_TRACKS_WAITS, SL_TRACKS_IS_KEPT, SL_TRACKS_IS_DUPLICATE };

struct sl_track { /* a candidate */
	uint16_t sector;
	uint8_t column, row, layers; /* layers: a bit for each */
	uint8_t stubs, fitted;	     /* stubs of the cell, and of the fit */
	uint8_t state;		     /* enum sl_tracks_state */
	sl_tracks_set set;	     /* of the fit, where there is one */
	float x, phi;		     /* q/pT, phi at 67 cm from the middle of the sector */
	float z0, cot, chi2;
};

/* What has become of the cells of an event: cells = tracks + duplicates + misfits + crowded. */
struct sl_tracks_found {
	uint32_t tracks;
	uint32_t cells;	     /* with enough layers */
	uint32_t duplicates; /* of a better one */
	uint32_t misfits;    /* no helix goes through them */
	uint32_t crowded;    /* more than a sector may have */
	uint32_t unlisted;   /* of the tracks: no room in the table */
	uint32_t strange;    /* stubs with layer 0 */
	uint32_t full;	     /* sectors with as many stubs as there is room for */
};
enum { SL_TRACKS_FOUND = sizeof(struct sl_tracks_found) / sizeof(uint32_t) };

struct sl_tracks_cell {
	uint8_t column, row, layers, stubs;
	sl_tracks_set set;
};

struct sl_tracks_work {
	struct sl_tracks_stubs stubs;
	struct sl_tracks_map map;
	struct sl_tracks_cell cell[SL_TRACKS_CELLS * SL_TRACKS_CELLS];
	/* A bit for each candidate of the sector, 32 to a word: those that have this stub. */
	uint32_t owner[SL_TRACKS_OWNERS][SL_STUBS];
	uint32_t end[SL_TRACKER_SECTORS + 1];	/* sector s has candidates end[s] to end[s + 1] */
	const uint8_t *row[SL_TRACKER_SECTORS]; /* its stubs; NULL: none */
	struct sl_track track[];		/* [sectors * sector_tracks] */
};

/* sector.c: candidates of one row of stubs, best first; how many. */
void sl_tracks_unpack(const struct sl_tracks_plan *plan, const uint8_t *row,
		      struct sl_tracks_stubs *stubs, struct sl_tracks_found *found);
uint32_t sl_tracks_sector(const struct sl_tracks_plan *plan, const struct sl_tracks_calls *calls,
			  const uint8_t *row, struct sl_tracks_work *work, struct sl_track *track,
			  struct sl_tracks_found *found);

/* fit.c: a helix through the stubs of the candidate, the worst left out one after the other;
 * false: too few layers are left. */
bool sl_tracks_fit(const struct sl_tracks_plan *plan, const uint8_t *row, struct sl_track *track);

/* event.c: candidates of all sectors are kept, or duplicates of one in a sector beside
 * theirs. */
void sl_tracks_event(const struct sl_tracks_plan *plan, struct sl_tracks_work *work,
		     uint32_t sectors, struct sl_tracks_found *found);

#endif
