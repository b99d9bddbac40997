/* scene.h - the photons that fall on a synthetic X-ray detector: background and Bragg-like spots.
 *
 * Model:     a pool of `pool` different exposures, of which a chosen share are hits: they have
 *            spots inside the resolution limit. The background falls with the distance from the
 *            beam and is the same on all exposures, but for its statistics. Modules lie one below
 *            the other, the beam goes through the middle of the whole. All is a function of the
 *            setup: any part of any exposure can be had alone.
 * Threads:   read-only once open.
 * Cost:      a background draw is one byte from a table of 64 KiB. */
#ifndef SL_DETECTOR_SCENE_H
#define SL_DETECTOR_SCENE_H

#include <sluice/detector.h>

#include "detector/random.h"

/* The background is constant on squares of this many pixels. */
enum { SL_SCENE_SQUARE = 16, SL_SCENE_LEVELS = 64 };

struct sl_scene_setup {
	uint64_t seed;
	uint32_t modules, rows, columns; /* rows and columns: multiples of SL_SCENE_SQUARE */
	uint32_t pool;
	double photon_energy_keV, distance_m, pixel_size_m;
	double resolution_A; /* no spots beyond it */
	double hit_fraction; /* at least one hit in the pool unless 0 */
	double spots;	     /* mean of a hit, over all modules */
	double spot_photons; /* in the brightest pixel of a bright spot; a few have far more */
	double background_photons; /* mean per pixel */
};

struct sl_scene {
	struct sl_scene_setup setup;
	struct sl_poisson *background; /* [SL_SCENE_LEVELS] */
	uint8_t *level;		       /* [modules][rows / SQUARE][columns / SQUARE] */
	uint32_t *spots;	       /* [pool]; 0: not a hit */
	double limit;		       /* resolution limit, pixels from the beam */
	double falloff;		       /* pixels from the beam where the background is halved */
};

/* 0 or -ENOMEM. */
int sl_scene_open(const struct sl_scene_setup *setup, struct sl_scene *scene);
void sl_scene_close(struct sl_scene *scene);

void sl_scene_truth(const struct sl_scene *scene, uint32_t exposure, struct sl_truth *truth);

/* The background's distribution on the square that holds this pixel. */
static inline const struct sl_poisson *
sl_scene_background(const struct sl_scene *scene, uint32_t module, uint32_t row, uint32_t column)
{
	uint32_t across = scene->setup.columns / SL_SCENE_SQUARE;
	uint32_t down = scene->setup.rows / SL_SCENE_SQUARE;
	size_t square = ((size_t)module * down + row / SL_SCENE_SQUARE) * across;

	return &scene->background[scene->level[square + column / SL_SCENE_SQUARE]];
}

/* Add the expected photons of the exposure's spots to `mean` ([rows][columns] of this module), and
 * call `touch` for every pixel that was 0 before. */
typedef void sl_scene_touch(void *arg, uint32_t pixel);
void sl_scene_spots(const struct sl_scene *scene, uint32_t exposure, uint32_t module, float *mean,
		    sl_scene_touch *touch, void *arg);

#endif
