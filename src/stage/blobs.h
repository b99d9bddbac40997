/* blobs.h - marked pixels that touch each other, also at corners.
 *
 * Model:     a bit per pixel of the image, [modules][rows][columns], says that it is marked; sides
 *            of modules are walls. fill() takes the marks of a blob away and says which pixels it
 *            had. A blob of more than `most` pixels is of no interest: filling stops there, and
 *            what is left of it will be filled from another of its pixels, again and again. Its
 *            pixels are remembered in a second set of bits: whatever touches one of them is a piece
 *            of the same blob, and goes the same way. So memory does not grow with blobs, and time
 *            only with marked pixels.
 * Threads:   one blobs per worker.
 * Ownership: the caller's memory, of sl_blobs_bytes(). */
#ifndef SL_STAGE_BLOBS_H
#define SL_STAGE_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_blob_pixel {
	uint32_t at; /* in the image */
	uint32_t row, column;
};

struct sl_blobs {
	uint32_t modules, rows, columns, most;
	uint64_t words;
	uint64_t *marked, *dropped;   /* [words] */
	struct sl_blob_pixel *member; /* [most + 1] */
};

size_t sl_blobs_bytes(uint32_t modules, uint32_t rows, uint32_t columns, uint32_t most);
void sl_blobs_init(struct sl_blobs *blobs, uint32_t modules, uint32_t rows, uint32_t columns,
		   uint32_t most, void *memory);

/* Nothing is marked. */
void sl_blobs_clear(struct sl_blobs *blobs);

static inline void sl_blobs_mark(struct sl_blobs *blobs, uint32_t at)
{
	blobs->marked[at / 64] |= UINT64_C(1) << at % 64;
}

/* Goes through marked pixels in order, from *at on: all, or those inside, with neighbours on all
 * sides. 0: there are no more; otherwise *at is the number of one. */
int sl_blobs_next(const struct sl_blobs *blobs, bool inside, uint32_t *at);

/* The blob of a marked pixel: how many pixels it has, in blobs->member; 0: too many. */
uint32_t sl_blobs_fill(struct sl_blobs *blobs, uint32_t at);

#endif
