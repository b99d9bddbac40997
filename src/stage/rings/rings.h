/* rings.h - between the stage and its GPU side. */
#ifndef SL_STAGE_RINGS_RINGS_H
#define SL_STAGE_RINGS_RINGS_H

#include <sluice/stage.h>

#include "stage/rings/find.h"

enum { SL_RINGS_LOOK_AT_KEPT, SL_RINGS_LOOK_AT_ALL };

struct sl_rings {
	double radius_min_mm, radius_max_mm, centre_max_mm, window_mm;
	uint32_t min_hits, min_own, triplets;
	uint32_t min_rings, max_rings, min_matches, particle;
	double momentum_min_GeV, momentum_max_GeV, tolerance_mm, match_min_mm, match_max_mm;
	double match_x_mm, match_y_mm, match_distance_mm;
	uint32_t max_rows, look, vectors;

	struct sl_rings_settings settings;
	const struct sl_rings_passes *passes;
	float slow, fast;  /* radii of `particle` at both momenta; any: 0 and inf */
	float least, most; /* radius of a ring that matches */
	struct sl_rings_wanted wanted;
	float x, y, distance;  /* square of the distance; inf: anywhere */
	uint32_t events, rows; /* of a module; of the result */
	int input, result;
	size_t scratch_bytes;
};

extern const struct sl_gpu sl_gpu_rings;

#endif
