/* spots.h - what the files of the stage `spots` share.
 *
 * Threads:   settings are read-only; a work is one worker's. */
#ifndef SL_STAGE_SPOTS_SPOTS_H
#define SL_STAGE_SPOTS_SPOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/frame.h>

#include "core/region.h"
#include "stage/blobs.h"

struct sl_spots_settings {
	uint32_t modules, rows, columns; /* of a module */
	const uint8_t *mask;		 /* [modules][rows][columns]; NULL: none */
	float threshold, sigmas;
	uint32_t box, min_pixels, max_pixels;
};

struct sl_spots_box { /* of the pixels around one */
	double n, sum, square;
};

/* Of each column, over the rows of a box: [columns + 2 box], zero on both sides. */
struct sl_spots_running {
	uint32_t *counts; /* of small pixels, and of others times 2^16 */
	uint32_t *sums, *squares;
};

struct sl_spots_work {
	const struct sl_spots_settings *settings;
	/* [columns + 2 box] each, zero on both sides: sums over the rows of a box, and the same
	 * without the row in the middle. */
	double *n, *sum, *square, *n_else, *sum_else, *square_else;
	double *box_n, *box_sum, *box_square; /* [columns] */
	uint32_t *candidate;		      /* [columns] */
	struct sl_spots_running running;
	struct sl_blobs blobs;
};

size_t sl_spots_work_bytes(const struct sl_spots_settings *settings);
void sl_spots_work_init(struct sl_spots_work *work, const struct sl_spots_settings *settings,
			void *memory);

/* find.c: marks strong pixels in blobs. */
typedef void sl_spots_pass(struct sl_spots_work *work, const void *image);
sl_spots_pass *sl_spots_find(enum sl_dtype dtype, uint32_t vectors);

/* The box around a pixel of a module. */
void sl_spots_look(const struct sl_spots_settings *settings, enum sl_dtype dtype, const void *image,
		   uint32_t module, uint32_t row, uint32_t column, struct sl_spots_box *box);

/* ---- the stage ---- */

enum { SL_SPOTS_OF_KEPT, SL_SPOTS_OF_ALL }; /* frames to look at: the choices of `look` */

struct sl_spots {
	double threshold, sigmas;
	uint32_t box, min_pixels, max_pixels, min_spots, max_spots, look, vectors;
	bool wide;

	struct sl_region memory; /* of the mask; none: all pixels are fit */
	struct sl_spots_settings settings;
	enum sl_dtype dtype;
	sl_spots_pass *find;
	int input, result;
	size_t scratch_bytes, work_bytes;
};

extern const struct sl_gpu sl_gpu_spots;

#endif
