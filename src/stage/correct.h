/* correct.h - between the files of the stage: its tables, and what works on them. */
#ifndef SL_STAGE_CORRECT_H
#define SL_STAGE_CORRECT_H

#include <stdbool.h>

#include <sluice/region.h>
#include <sluice/stage.h>

enum { SL_CORRECT_GAINS = 3 };
enum { SL_CORRECT_PHOTONS_I16, SL_CORRECT_KEV_F32 }; /* the choices of `output` */

struct sl_correct;
typedef void sl_correct_work(struct sl_correct *c, const struct sl_batch *batch,
			     const struct sl_tile *tile);

struct sl_correct {
	uint32_t output, darks, vectors;

	uint64_t pixels, module_pixels; /* of all modules; of one */
	uint32_t cells;
	sl_correct_work *work;
	struct sl_region memory;	 /* of what follows */
	float *factor[SL_CORRECT_GAINS]; /* [modules][pixels]; NaN: bad */
	/* [cells][modules][pixels] from here on. pedestal[0] is pedestal_0, the others are the
	 * calibration's; cell_pixels: from one cell's to the next, 0 when all have the same. */
	float *pedestal_0; /* NaN: bad */
	const float *pedestal[SL_CORRECT_GAINS];
	uint64_t cell_pixels[SL_CORRECT_GAINS];
	float *sum;
	uint16_t *samples, *wrong; /* in G0; in another gain */
	uint32_t dark_seen;	   /* a bit per cell; all, when others have seen them before */
};

/* Check what is given, and make tables of it; pages are there before the first frame is. 0 or
 * -errno, logged. */
int sl_correct_open(struct sl_correct *c, const struct sl_env *env, const struct sl_shape *in);

#endif
