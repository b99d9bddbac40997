/* frame_rig.h - a stage that looks at whole frames, on images of any size, for tests: results with
 * canaries behind them, scratch that is full of rubbish, any number of (pretended) workers. */
#ifndef FRAME_RIG_H
#define FRAME_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/stage.h>

enum { FRAME_RIG_BATCH = 8, FRAME_RIG_CANARY = 64, FRAME_RIG_POISON = 0x5a };

struct frame_rig {
	const struct sl_stage *ops;
	void *state;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	struct sl_env env;
	struct sl_shape in;
	struct sl_stage_terms terms;
	bool raw; /* the input lies in the views */
	char *scratch;
};

struct frame_rig_frame {
	struct sl_frame frame;
	struct sl_verdict verdict;
	struct sl_view view[SL_LAYOUT_MODULES];
	char *memory[SL_STAGE_OUTPUTS];
};

void frame_rig_init(struct frame_rig *rig, const struct sl_stage *ops, enum sl_dtype dtype,
		    uint32_t modules, uint32_t rows, uint32_t columns);

void frame_rig_set(struct frame_rig *rig, const char *option, const char *value);

int frame_rig_try_open(struct frame_rig *rig);

void frame_rig_open(struct frame_rig *rig);

void frame_rig_close(struct frame_rig *rig);

/* image: [modules][rows][columns]. */
void frame_rig_frame_init(struct frame_rig *rig, struct frame_rig_frame *f, void *image);

void frame_rig_frame_fini(struct frame_rig *rig, struct frame_rig_frame *f);

struct sl_array *frame_rig_result(struct frame_rig *rig, struct frame_rig_frame *f, int i);

/* The frame as number `number` of a batch. */
void frame_rig_run(struct frame_rig *rig, struct frame_rig_frame *f, uint32_t number);

/* ---- images ---- */

uint32_t frame_rig_random(uint64_t *state);

double frame_rig_uniform(uint64_t *state);

/* About Poisson with that mean: sums of a few uniform numbers where it is large. */
double frame_rig_counts(uint64_t *state, double mean);

/* A value of that type; NaN: no measurement, by turns of each kind. */
void frame_rig_store(enum sl_dtype dtype, void *image, uint64_t at, double value);

/* What is there; NaN: no measurement. */
double frame_rig_load(enum sl_dtype dtype, const void *image, uint64_t at);

#endif
