/* stage.h - one algorithm over frames. Each is one `struct sl_stage`;
 * docs/tutorials/write-a-stage.md builds one.
 *
 * Model:     a stage reads one named array ("raw", or an output of an earlier stage) and may add
 *            some. tile() works on a span of pixels of one module across all frames of a batch, so
 *            that per-pixel tables are read once per batch and consecutive stages find the tile in
 *            cache. frame() works on one frame, for what must see pixels and their neighbours; it
 *            runs when all tiles of the batch are done. finish() sees each batch once, when the
 *            stage's tiles and frames are done, and may decide. That is before any later pass: so
 *            a frame() whose input is complete only then finds the verdicts of stages that needed
 *            tiles alone, and need not look at what they rejected. A stage has any of the three;
 *            one with finish() alone comes after all stages before it in the chain. Per-pixel state
 *            that evolves (pedestals) is exact: a pixel belongs to one tile, its tile is worked on
 *            by one worker at a time, and frames within a batch, and batches, come in sequence
 *            order whatever the number of workers (`ordered` says how much of the state evolves).
 *            Sinks read results of rejected frames, too: a stage that leaves such a frame out still
 *            writes its results, as a fill (0 rows, zeros), since memory of results is used again.
 * Threads:   tile() on any worker, different tiles at once; frame() on any worker, different frames
 *            at once; finish() on one worker after all of them; open and close elsewhere. None but
 *            these may allocate, lock or log. No call waits for anything, but for finish() of a
 *            stage that says so (`waits`).
 * Ownership: state is zeroed memory of state_bytes, filled with options before open(). close() runs
 *            even when open() failed. */
#ifndef SLUICE_STAGE_H
#define SLUICE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/env.h>
#include <sluice/file.h>
#include <sluice/frame.h>
#include <sluice/option.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_tile {
	uint32_t module;
	uint32_t first, count; /* pixels of that module */
	const void **in;       /* [batch->frames]: the tile's first input pixel of each frame */
	void **out;	       /* [batch->frames]: likewise for the output; NULL without one */
	/* Nobody reads the output soon, and it is large: write around the cache where you can. */
	int stream;
};

enum { SL_STAGE_OUTPUTS = 6, SL_STAGE_CONSTANTS = 10, SL_STAGE_RAW = -1 };

struct sl_stage;

/* How much of its state a stage writes after open(): several batches may be under way at a time. */
enum {
	SL_ORDER_NONE, /* nothing: it may find itself at work on several batches at once */
	/* Anything: none of its calls for a batch comes before all those for the batch before. */
	SL_ORDER_BATCHES,
	/* tile(), what belongs to the pixels of the tile; finish(), what only finish() looks at;
	 * frame(), nothing. A tile sees batches in sequence, and so does finish(); but tiles of the
	 * next batch may be worked on before finish() of this one. */
	SL_ORDER_PARTS,
};

/* What open() settles. */
struct sl_stage_terms {
	/* Given: where in sl_frame.result the input is (SL_STAGE_RAW: in the views), and where the
	 * outputs will be, one after another. */
	int input, result;
	/* [result]: what the stages before it add; valid during open(). */
	const struct sl_shape *before;
	/* To fill in. An output with one element per pixel, which tile() writes, comes first and is
	 * alone in that; others are of any shape, and frame() or finish() writes them. */
	struct sl_shape output[SL_STAGE_OUTPUTS];
	uint32_t outputs;
	/* A bit for each of `before` that finish() reads besides the input. */
	uint32_t reads;
	size_t scratch_bytes; /* per frame of a batch, per worker; zeroed for each batch */
	size_t stale_bytes;   /* of these, at their end: not zeroed, for buffers */
	/* What is the same for all frames; valid until close(). */
	struct sl_constant constant[SL_STAGE_CONSTANTS];
	uint32_t constants;
	/* Where options decide which of the calls there are: the descriptor to go on with. NULL:
	 * the one that was opened. Its close() is called in any case. */
	const struct sl_stage *as;
};

struct sl_gpu;

/* One figure for the summary; `failed` marks one that must make the run fail when it is not zero.
 */
typedef void sl_stage_figure(void *arg, const char *name, uint64_t value, int failed);

struct sl_stage {
	const char *name, *doc;
	size_t state_bytes;
	const struct sl_option *options;
	const char *input; /* "raw", or the name of an earlier output */
	int ordered;	   /* SL_ORDER_... */
	/* 1: finish() may sleep, for milliseconds. Its worker does nothing else meanwhile, so
	 * such a stage does not go together with one data thread (threads.together). */
	int waits;
	/* How accelerators do the same (core/gpu.h). NULL: they do not. */
	const struct sl_gpu *gpu;

	/* Check the input and say what it will add and need. */
	int (*open)(void *state, const struct sl_env *env, const struct sl_shape *in,
		    struct sl_stage_terms *terms);
	void (*close)(void *state);

	/* scratch: this worker's, [batch->frames] entries of scratch_bytes. NULL: it has no tiles.
	 */
	void (*tile)(void *state, void *scratch, const struct sl_batch *batch,
		     const struct sl_tile *tile);

	/* Frame f of the batch, which may have been rejected already; scratch: this worker's entry
	 * for it, which may hold what its tiles left there; the entries of other frames are before
	 * and behind it. NULL: it looks at no frame as a whole. */
	void (*frame)(void *state, void *scratch, const struct sl_batch *batch, uint32_t f);

	/* scratch[i]: [batch->frames] entries of scratch_bytes, of each of the workers that took
	 * part in the batch. NULL: nothing to conclude. */
	void (*finish)(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch);

	/* The files of its options; before open(). NULL: none. */
	void (*files)(const void *state, sl_file_each *each, void *arg);

	/* Of an ordered stage: forget what was learned, so that all is as after open(), for another
	 * run. NULL, or an error: it is closed and opened. Other stages are not asked. */
	int (*again)(void *state);

	/* The run is over: constants that are known at its end (`at_end`) become what they are. On
	 * one thread, after all batches and before sinks are closed; not called for a run that did
	 * not begin. NULL: it has none. */
	void (*conclude)(void *state);

	/* What it counts by itself: numbers of the run, for its summary, beside those of the unit.
	 * On a worker, at any time between open() and close(): it neither allocates, locks, logs
	 * nor formats, and names are the stage's own, unique in the chain. NULL: nothing. */
	void (*figures)(const void *state, sl_stage_figure *figure, void *arg);
};

#ifdef __cplusplus
}
#endif

#endif
