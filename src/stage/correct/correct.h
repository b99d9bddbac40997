/* correct.h - between the files of the stage: its tables, and what works on them. */
#ifndef SL_STAGE_CORRECT_CORRECT_H
#define SL_STAGE_CORRECT_CORRECT_H

#include <stdbool.h>

#include <sluice/stage.h>

#include "core/region.h"
#include "stage/vectors.h"

/* The choices of `output`. */
enum { SL_CORRECT_PHOTONS_I16, SL_CORRECT_KEV_F32, SL_CORRECT_PHOTONS_F32 };

struct sl_correct;

/* A span of pixels: where it begins in the tables, [modules][pixels] and with the cell. */
struct sl_correct_place {
	uint64_t at, in_cell;
	uint32_t cell;
};

/* One dark frame's samples of `count` pixels, the first of which is `at`. */
typedef void sl_correct_learn(struct sl_correct *c, uint64_t at, uint32_t count,
			      const uint16_t *raw);

/* Bright frames that are in the same storage cell. */
enum { SL_CORRECT_GROUP = 4 };
struct sl_correct_group {
	uint32_t frames;
	const uint16_t *raw[SL_CORRECT_GROUP];
	void *out[SL_CORRECT_GROUP];
	/* What is worked on next, to be prefetched: the same pixels of the frames after these, or,
	 * behind the last frame of the batch, the pixels that follow those of the first ones. */
	const uint16_t *next[SL_CORRECT_GROUP];
	bool stream; /* out: around the cache; on cache lines */
	bool cold;   /* no group before it has read these tables: they are not in the cache */
};
typedef void sl_correct_image(const struct sl_correct *c, const struct sl_correct_place *place,
			      uint32_t count, const struct sl_correct_group *group);

/* Of G1 and G2: together, as a pixel that is not in G0 needs one of them and has no neighbours. */
struct sl_correct_other {
	float pedestal[2], factor[2]; /* NaN: bad */
};

struct sl_correct {
	uint32_t output, darks, vectors;
	double noise_max;

	uint64_t pixels, module_pixels; /* of all modules; of one */
	uint32_t cells;
	sl_correct_learn *learn;
	sl_correct_image *image;
	float noise_squared;	 /* of noise_max; FLT_MAX: however noisy */
	uint32_t noise_samples;	 /* before noise is judged */
	struct sl_region memory; /* of what follows */
	bool bounded;		 /* in G0 no number of photons is beyond 16 bits */
	float *factor;		 /* of G0: [modules][pixels]; NaN: bad */
	/* [calibration's cells][modules][pixels]; other_pixels: from one cell's to the next, 0 when
	 * all have the same. */
	struct sl_correct_other *other;
	uint64_t other_pixels;
	/* [cells][modules][pixels] from here on: of G0. */
	float *pedestal_0;	   /* NaN: bad */
	float *sum, *spread;	   /* of the samples; of their squares around the mean */
	uint16_t *samples, *wrong; /* in G0; in another gain */
	const struct sl_calibration *calibration;
	uint32_t dark_seen; /* a bit per cell; all, when others have seen them before */
};

extern const struct sl_gpu sl_gpu_correct;

sl_correct_learn *sl_correct_choose_learn(enum sl_vectors vectors);
sl_correct_image *sl_correct_choose_image(uint32_t output, enum sl_vectors vectors);

/* Verdicts that need no pixels; *dark_seen goes on with the batch. */
void sl_correct_judge(const struct sl_correct *c, struct sl_batch *batch, uint32_t *dark_seen);

/* Whether this pixel ([cells][modules][pixels]) is bad for its noise. */
bool sl_correct_is_noisy(const struct sl_correct *c, uint64_t pixel);

/* Check what is given, and make tables of it; pages are there before the first frame is. 0 or
 * -errno, logged. */
int sl_correct_open(struct sl_correct *c, const struct sl_env *env, const struct sl_shape *in);

/* Pedestals of G0 as the calibration has them, and no samples. */
void sl_correct_forget(struct sl_correct *c);

#endif
