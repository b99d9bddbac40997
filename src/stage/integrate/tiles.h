/* tiles.h - shares of pixels as accelerators want them: by tiles of the detector, and
 * there by cells (stage/integrate/kernel.h).
 *
 * Threads:   one, when a run begins.
 * Ownership: tables are plain memory, to be given back by close(). */
#ifndef SL_STAGE_INTEGRATE_TILES_H
#define SL_STAGE_INTEGRATE_TILES_H

#include "stage/integrate/kernel.h"
#include "stage/shares.h"

struct sl_integrate_tiles {
	struct sl_kernel_tile *tile; /* [tiles] */
	struct sl_kernel_piece *piece;
	uint32_t *rank; /* [cells + 1]: the first of a cell */
	uint32_t tiles, pieces;

	/* [entries]: pieces begin at multiples of eight. */
	uint16_t *place;
	uint32_t *share; /* NULL: pixels count whole */
	int64_t *norm;
	double *dark; /* NULL: there is none */
	uint64_t entries;
};

/* 0 or -ENOMEM, logged; -EINVAL: too many pieces for a table, logged. close() in any case. */
int sl_integrate_tiles_open(struct sl_integrate_tiles *tiles, const struct sl_shares *shares,
			    uint32_t modules, uint32_t rows, uint32_t columns);
void sl_integrate_tiles_close(struct sl_integrate_tiles *tiles);

#endif
