/* stage.h - between the stage `tracks` and its GPU side. */
#ifndef SL_STAGE_TRACKS_STAGE_H
#define SL_STAGE_TRACKS_STAGE_H

#include <sluice/stage.h>

#include "stage/tracks/tracks.h"

enum { SL_TRACKS_LOOK_AT_KEPT, SL_TRACKS_LOOK_AT_ALL };

struct sl_tracks {
	uint32_t cells, columns, rows, min_layers, unique, common;
	uint32_t min_tracks, max_tracks, max_stubs, sector_tracks, look, vectors;
	bool fit;
	double min_pt_GeV, bend, fit_deviations, trigger_pt_GeV;

	struct sl_tracks_plan plan;
	struct sl_tracks_calls calls;
	struct sl_tracks_wanted wanted;
	uint32_t events, sectors, modules; /* sectors: of a module */
	int result;
	size_t scratch_bytes;
};

extern const struct sl_gpu sl_gpu_tracks;

struct sl_kernel_tracks;
struct sl_kernel_tracks_plan;

/* The stage's settings and plan as kernels take them. */
void sl_tracks_for_kernels(const struct sl_tracks *stage, struct sl_kernel_tracks *rules,
			   struct sl_kernel_tracks_plan *plan);

#endif
