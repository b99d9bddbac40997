/* kernel.h - what the kernels of `tracks` are told and leave for each other, the same for host and
 * device. */
#ifndef SL_STAGE_TRACKS_KERNEL_H
#define SL_STAGE_TRACKS_KERNEL_H

#include "stage/tracks/maths.h"

enum {
	SL_KERNEL_STUBS = 160,
	SL_KERNEL_STUB_WORDS = 5, /* of 32 stubs */
	SL_KERNEL_STUB_BYTES = 6,
	SL_KERNEL_TRACK_CELLS = 64, /* most columns, and most rows */
	SL_KERNEL_BEND_R = 64,
	SL_KERNEL_ETAS = 9,
	SL_KERNEL_PHIS = 32,
	SL_KERNEL_NEIGHBOURS =
		15, /* sectors that may have a stub in common: 3 in phi by 5 in eta */
	SL_KERNEL_TRACK_COLUMNS = 13,
	SL_KERNEL_TRACK_COUNTS = 8,
};

struct sl_kernel_tracks {
	sl_u32 cells; /* enum sl_tracks_cells */
	sl_u32 columns, rows, words, min_layers, common, between, fit, limit;
	sl_i32 turn, reach, reach_at;
	float fit_limit, y[2], row, x_window, y_window, x_fast;
	float phi_rad, r_cm, z_cm; /* units of stubs */
	float turns[3];		   /* from the middles of sectors beside a sector to its own */
	sl_i32 disk_z;
	sl_u32 events, sectors, modules, all; /* sectors: of a module; of all of them */
	sl_u32 max_tracks, max_stubs, min_tracks, looks_at_all;
	sl_u32 sets; /* words of a bit per candidate of a sector */
};

struct sl_kernel_tracks_plan {
	sl_i32 slope[SL_KERNEL_TRACK_CELLS], offset[SL_KERNEL_TRACK_CELLS],
		side[SL_KERNEL_TRACK_CELLS];
	float x[SL_KERNEL_TRACK_CELLS];
	sl_u8 first[16 * SL_KERNEL_BEND_R], after[16 * SL_KERNEL_BEND_R];
};

struct sl_kernel_track { /* a candidate */
	sl_u32 set[SL_KERNEL_STUB_WORDS];
	sl_u32 column, row, layers, stubs;
	float x, phi, z0, cot, chi2;
};

struct sl_kernel_sector { /* what was found in it */
	sl_u32 looked_at, candidates, cells, duplicates, misfits, crowded, strange, full;
	sl_u32 kept, listed; /* candidates that are tracks; their stubs that go into the list */
};

struct sl_kernel_event {
	sl_u32 kept, listed;
};

#endif
