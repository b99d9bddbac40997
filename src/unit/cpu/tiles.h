/* tiles.h - a batch in tiles: which pixels a worker takes at a time, and where stages find them.
 *
 * Model:     a tile is a span of pixels of one module, across all frames of a batch, small enough
 *            that what all stages of a pass read and write of it stays in a core's cache. What a
 *            stage makes of a tile may go to the frame's results at once; or into the worker's own
 *            buffer, where the next stages of the pass find it, and from there around the cache
 *            to the results, or nowhere, when nobody reads it later.
 * Threads:   open and close elsewhere; run(w) on worker w.
 * Ownership: buffers are the worker's, of one tile; what is in them lasts until its next tile. */
#ifndef SL_UNIT_CPU_TILES_H
#define SL_UNIT_CPU_TILES_H

#include <stdbool.h>

#include "core/unit.h"
#include "unit/cpu/passes.h"

/* The choices of `stores`. */
enum sl_cpu_stores { SL_CPU_STORES_AUTO, SL_CPU_STORES_CACHED, SL_CPU_STORES_STREAMED };

struct sl_cpu_tile_worker {
	const void **in;	       /* [batch_frames] */
	void **out;		       /* [batch_frames] */
	char *buffer[SL_CHAIN_STAGES]; /* of a stage's output: [batch_frames][tile_pixels] */
};

struct sl_cpu_tiles {
	const struct sl_chain *chain;
	uint32_t pixels, columns, tile_pixels, module_tiles;
	uint32_t n; /* tiles of a batch */
	/* Of a stage's output: made in the buffer; wanted in the results; written there around the
	 * cache by the stage itself. */
	bool buffered[SL_CHAIN_STAGES], stored[SL_CHAIN_STAGES], streamed[SL_CHAIN_STAGES];
	int maker[SL_RESULTS]; /* the stage whose tiles make this result, or -1 */
	unsigned workers;
	struct sl_cpu_tile_worker *worker; /* [workers] */
};

/* tile_pixels 0: as many as fit the cache. 0 or -errno; close() is due in any case. */
int sl_cpu_tiles_open(struct sl_cpu_tiles *tiles, const struct sl_chain *chain,
		      const struct sl_cpu_passes *passes, uint32_t tile_pixels,
		      enum sl_cpu_stores stores, unsigned workers);
void sl_cpu_tiles_close(struct sl_cpu_tiles *tiles);

/* All stages of the pass over one tile. scratch: [stages][workers]. */
void sl_cpu_tiles_run(const struct sl_cpu_tiles *tiles, unsigned worker,
		      const struct sl_cpu_pass *pass, void **const *scratch, struct sl_batch *batch,
		      uint32_t number);

/* Zeroed, and alone on its cache lines: workers write to these all the time. */
void *sl_cpu_lines(size_t bytes);

#endif
