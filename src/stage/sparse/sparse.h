/* sparse.h - what the files of the stage `sparse` share.
 *
 * Model:     a list is the pixels of one frame that were picked, by rising index: the number of the
 *            pixel in [modules][rows][columns]. What does not fit is counted.
 * Threads:   a list belongs to one worker; the state is read-only once open.
 * Ownership: the stage's state owns all tables. */
#ifndef SL_STAGE_SPARSE_SPARSE_H
#define SL_STAGE_SPARSE_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/stage.h>

#include "stage/outside.h"
#include "stage/radial.h"

enum { SL_SPARSE_THRESHOLD, SL_SPARSE_RADIAL }; /* the choices of `method` */
enum { SL_SPARSE_CYCLES = 16 };			/* most rounds of clipping */

struct sl_sparse_list {
	uint32_t *index;
	void *value;
	uint32_t room, count; /* `found` when they fit */
	uint64_t found;
};

/* Of one frame, by one worker; index and value follow, and are not zeroed. */
struct sl_sparse_head {
	uint64_t found;
	uint32_t count;
	uint32_t merged; /* by finish() */
};

/* Bins and norms that the pixels of a block have: what a bound of the block follows from. */
struct sl_sparse_block {
	uint16_t first, last; /* bins; first > last: no pixel of it has one */
	float least, most;    /* norms */
};

struct sl_sparse {
	uint32_t method, threshold, max_pixels, vectors;
	uint32_t bins, unit, cycle;
	double low, high, cutoff_clip, cutoff_pick, noise, polarisation;
	bool solid_angle, row_pointers, rejected;

	enum sl_dtype dtype;
	uint32_t modules, rows, columns, room;
	uint64_t module_pixels;
	int input, result; /* as in the terms */
	int background;	   /* offset of its two results, and of the row pointers; 0: not there */
	int pointers;
	sl_outside *outside;

	struct sl_outside_bounds bounds; /* by threshold */

	struct sl_radial radial;
	struct sl_sparse_block *block; /* [modules][blocks of a module] */
	uint32_t module_blocks;
	uint32_t *pixels_of; /* [bins]: pixels that are not masked */
	float *radius;	     /* [modules][pixels]: in the unit; NaN without a bin */
	float *middle;	     /* [bins]: of the bins */
	float step;	     /* between middles */
	float photon;	     /* what one counts, in the image's numbers */
	struct sl_region memory;
};

/* ---- lists.c ---- */

/* What is no measurement: bad pixels; the largest unsigned number. Overloads are measurements of a
 * kind, and picked. */
bool sl_sparse_is_bad(enum sl_dtype dtype, const void *pixels, uint64_t i);
bool sl_sparse_is_overload(enum sl_dtype dtype, const void *pixels, uint64_t i);

void sl_sparse_pick(struct sl_sparse_list *list, enum sl_dtype dtype, uint32_t index,
		    const void *pixels, uint64_t i);

/* What a worker needs for a frame by threshold: a head, and the list behind it. */
static inline size_t sl_sparse_entry_bytes(const struct sl_sparse *s)
{
	size_t bytes = sizeof(struct sl_sparse_head) +
		       s->room * (sizeof(uint32_t) + sl_dtype_bytes(s->dtype));

	return (bytes + 63) / 64 * 64;
}

/* Of struct sl_stage: tile and finish by threshold, frame by radius. */
void sl_sparse_tile(void *state, void *scratch, const struct sl_batch *batch,
		    const struct sl_tile *tile);
void sl_sparse_finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch);
void sl_sparse_frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f);

/* ---- tables.c ---- */

int sl_sparse_radial_open(struct sl_sparse *s, const struct sl_env *env);
void sl_sparse_radial_close(struct sl_sparse *s);

/* ---- radial.c ---- */

/* In deviations, for a bin with n pixels. */
float sl_sparse_cutoff(const struct sl_sparse *s, uint32_t n);

/* Memory that a frame needs, in bytes; and the list and backgrounds [bins] of one. */
uint64_t sl_sparse_radial_scratch(const struct sl_sparse *s);
void sl_sparse_radial_frame(const struct sl_sparse *s, void *scratch, const struct sl_frame *frame,
			    struct sl_sparse_list *list, float *average, float *deviation);

extern const struct sl_gpu sl_gpu_sparse;

#endif
