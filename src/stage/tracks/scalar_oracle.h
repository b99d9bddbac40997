/* scalar_oracle.h - cells and candidates of a sector by plain loops, the same as the stage's.
 *
 * Model:     maps of at most 32 columns and 32 rows.
 * Threads:   pure functions. */
#ifndef SL_STAGE_TRACKS_SCALAR_ORACLE_H
#define SL_STAGE_TRACKS_SCALAR_ORACLE_H

#include "stage/tracks/tracks.h"

struct sl_scalar_sector { /* what was found in a sector */
	uint32_t cells, tracks;
};

struct sl_scalar_sector sl_scalar_sector(const struct sl_tracks_plan *plan, const uint8_t *row);

/* Column, row and layers of at most `most` cells: those with the most layers first, then by
 * columns. Returns how many. */
uint32_t sl_scalar_cells(const struct sl_tracks_plan *plan, const uint8_t *row, uint8_t (*list)[3],
			 uint32_t most);

#endif
