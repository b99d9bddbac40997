/* stage.h - one algorithm over frames. Each is one `struct sl_stage`; docs/write-a-stage.md builds
 * one.
 *
 * Model:     a stage reads one named array ("raw", or the output of an earlier stage) and may add
 *            one. tile() works on a run of pixels of one module across all frames of a batch, so
 *            that per-pixel tables are read once per batch and consecutive stages find the tile in
 *            cache; finish() then sees each batch once and may decide. Per-pixel state that evolves
 *            (pedestals) is exact: a pixel belongs to one tile, its tile is worked on by one worker
 *            at a time, and frames within a batch, and batches, come in sequence order whatever the
 *            number of workers.
 * Threads:   tile() on any worker, different tiles at once; finish() on one worker after all tiles;
 *            open and close elsewhere. Neither tile() nor finish() may allocate, lock or log.
 * Ownership: state is zeroed memory of state_bytes, filled with options before open(). close() runs
 *            even when open() failed. */
#ifndef SLUICE_STAGE_H
#define SLUICE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/env.h>
#include <sluice/frame.h>
#include <sluice/option.h>

struct sl_tile {
	uint32_t module;
	uint32_t first, count; /* pixels of that module */
	const void **in;       /* [batch->frames]: the tile's first input pixel of each frame */
	void **out;	       /* [batch->frames]: likewise for the output; NULL without one */
};

struct sl_stage {
	const char *name, *doc;
	size_t state_bytes;
	size_t scratch_bytes; /* per frame of a batch, per worker; zeroed before each batch */
	const struct sl_option *options;
	const char *input; /* "raw", or the name of an earlier output */

	/* Check the input and describe the output; leave out->name empty when there is none. */
	int (*open)(void *state, const struct sl_env *env, const struct sl_shape *in,
		    struct sl_shape *out);
	void (*close)(void *state);

	void (*tile)(void *state, void *scratch, const struct sl_batch *batch,
		     const struct sl_tile *tile);

	/* scratch[w] is worker w's: [batch->frames] entries of scratch_bytes. NULL: nothing to
	 * conclude. */
	void (*finish)(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch);
};

#endif
