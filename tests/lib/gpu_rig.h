/* gpu_rig.h - the same frames through a chain of stages on two units, and their results compared.
 *
 * A detector of any size, or one that there is; pixels and events of all kinds; results poisoned
 * before each batch, so that what a unit does not write is seen. */
#ifndef TESTS_LIB_GPU_RIG_H
#define TESTS_LIB_GPU_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bell.h"
#include "core/gpu.h"
#include "receiver/calibration.h"
#include "receiver/chain.h"
#include "receiver/pool.h"

enum { GPU_POISON = 0x5a, GPU_MODULES = 4 };

uint32_t gpu_random(uint64_t *state);

/* What both sides get. */
struct gpu_case {
	const char *name;
	const char *stages;   /* the rest of the experiment */
	const char *detector; /* NULL: one of this size */
	uint32_t modules, rows, columns, cells, batch;
	enum sl_dtype dtype;
	bool pitch, missing, no_darks;
	bool peaks;	   /* on a background that is nearly flat */
	bool rejects;	   /* a stage before all others rejects every third frame */
	bool blank;	   /* every second frame has no measurement at all */
	bool masked;	   /* all pixels are, by the calibration */
	bool aside;	   /* the beam does not go through the image */
	bool jumps;	   /* frame numbers leave some out, and go back */
	double bound;	   /* of floats */
	const char *sinks; /* of the experiment; NULL: one that reads nothing. None is opened. */
};

struct gpu_side {
	struct sl_experiment *experiment;
	struct sl_geometry geometry;
	struct sl_calibrated calibrated;
	struct sl_calibration calibration;
	float *table[6];
	uint8_t *mask;
	struct sl_env env;
	struct sl_chain_build build;
	struct sl_bell todo, done;
	struct sl_pool pool;
	struct sl_flow_frame **frame; /* in order of their numbers */
	unsigned workers;
	bool detector_open, unit_open;
};

/* ---- a stage that rejects frames whatever is in them ---- */

/* -errno of the unit's open(). */
int gpu_try_open(struct gpu_side *s, const struct gpu_case *c, const struct sl_unit *unit,
		 const char *const *set, size_t sets);

void gpu_close(struct gpu_side *s, const struct sl_unit *unit);

/* ---- pixels ---- */

/* Values where something begins or ends, `which` of them: the first is 0, and the second says that
 * nothing was measured, or that it was too much. */
enum { GPU_SPECIAL = 5 };

/* The number says all about a frame. */
void gpu_make(const struct gpu_side *s, const struct gpu_case *c, struct sl_frame *frame,
	      uint64_t number, char *memory);

/* ---- running and comparing ---- */

uint64_t gpu_frame_bytes(const struct gpu_side *s);

/* One batch, and it is back. */
int gpu_batch(struct gpu_side *s, const struct sl_unit *unit, struct sl_batch *batch);

/* How many were kept. */
unsigned gpu_compare(const struct gpu_case *c, const struct sl_frame *a, const struct sl_frame *b);

/* Frames from `first` on, in one batch, through both. */
unsigned gpu_both(const struct gpu_case *c, struct gpu_side *side,
		  const struct sl_unit *const *unit, uint64_t first, uint32_t frames);

#endif
