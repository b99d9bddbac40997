/* integrate_rig.h - stacks of frames through the stage `integrate`, beside their oracle. */
#ifndef INTEGRATE_RIG_H
#define INTEGRATE_RIG_H

#include <math.h>
#include <stdio.h>

#include "lib/integrate_oracle.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_integrate;

enum { FRAMES = 21, BINS = 37, SECTORS = 8, RESULTS = 4 };

static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
static const char *const vectors[] = {"auto", "avx512", "avx2", "baseline"};

static inline void fill_pixel(enum sl_dtype dtype, void *pixels, int i, uint32_t draw)
{
	static const uint32_t special[] = {INT16_MAX, (uint16_t)INT16_MIN};
	bool bad = draw % 50 == 0, few = draw % 3 == 0;

	switch (dtype) {
	case SL_U8:
		((uint8_t *)pixels)[i] = bad ? UINT8_MAX : (uint8_t)(draw >> 8) % (few ? 2 : 255);
		break;
	case SL_U16:
		((uint16_t *)pixels)[i] = bad ? UINT16_MAX
					      : (uint16_t)((draw >> 8) % (few ? 2 : 65535));
		break;
	case SL_U32:
		((uint32_t *)pixels)[i] = bad ? UINT32_MAX : draw * 2654435761u % UINT32_MAX;
		break;
	case SL_I16:
		((int16_t *)pixels)[i] = bad ? (int16_t)special[draw >> 8 & 1]
					     : (int16_t)((int)((draw >> 8) % 65000) - 32500);
		break;
	default:
		((float *)pixels)[i] = bad ? (draw >> 8 & 1 ? NAN : INFINITY)
					   : (float)(draw >> 8) * 1e-3f;
	}
}

/* Frames with pixels, and memory for what is made of them. */
struct stack {
	struct rig_frame frame[FRAMES];
	float *result[FRAMES][RESULTS];
	enum sl_dtype dtype;
};

static inline void stack_init(struct stack *stack, enum sl_dtype dtype)
{
	stack->dtype = dtype;
	for (int f = 0; f < FRAMES; f++) {
		rig_frame_init(&stack->frame[f], false);
		for (int r = 0; r < RESULTS; r++) {
			stack->result[f][r] = calloc(3 * BINS * SECTORS, sizeof(float));
			stack->frame[f].frame.result[r].host = stack->result[f][r];
		}
		for (int i = 0; i < RIG_PIXELS; i++)
			fill_pixel(dtype, stack->frame[f].in, i,
				   (uint32_t)(i + f * 77777) * 2654435761u >> 3);
	}
}

static inline void stack_fini(struct stack *stack)
{
	for (int f = 0; f < FRAMES; f++) {
		rig_frame_fini(&stack->frame[f]);
		for (int r = 0; r < RESULTS; r++)
			free(stack->result[f][r]);
	}
}

/* A stage with the options that the oracle is asked for. */
static inline void rig_for(struct rig *rig, enum sl_dtype dtype, const struct oracle *o)
{
	char text[32];

	rig_init(rig, &sl_stage_integrate, dtype);
	rig->geometry.pixel_size_m = 75e-6;
	rig->geometry.distance_m = 0.002; /* large angles */
	sl_layout_resolve(&rig->geometry, &rig->geometry.layout);
	rig->geometry.layout.beam_row += 0.31;
	rig->geometry.layout.beam_column -= 7.83;
	rig->calibration.mask = o->mask;
	snprintf(text, sizeof(text), "%u", o->bins);
	rig_set(rig, "bins", text);
	snprintf(text, sizeof(text), "%u", o->sectors);
	rig_set(rig, "azimuth_bins", text);
	snprintf(text, sizeof(text), "%.17g", o->low);
	rig_set(rig, "low", text);
	snprintf(text, sizeof(text), "%.17g", o->high);
	rig_set(rig, "high", text);
	rig_set(rig, "polarisation", "0.9");
	rig_set(rig, "split", o->boxes ? "bbox" : "none");
	rig_set(rig, "variance", o->at_least_one ? "at_least_one" : "counts");
}

static inline struct oracle oracle_for(unsigned n)
{
	static uint8_t mask[RIG_PIXELS];
	struct oracle o = {.bins = BINS, .high = 50, .polarisation = 0.9};

	for (int i = 0; i < RIG_PIXELS; i++)
		mask[i] = i % 13 == 5;
	o.boxes = n & 1;
	o.sectors = n & 2 ? SECTORS : 0;
	o.at_least_one = n & 4;
	o.low = n & 8 ? 8.1 : 0;
	o.mask = n & 8 ? mask : NULL;
	return o;
}

/* Every third frame of a stack that was run: one of each kind of group, and each in its turn. */
static inline void check_stack(const struct rig *rig, struct oracle *o, struct stack *stack,
			       unsigned turn)
{
	for (int f = (int)turn % 3; f < FRAMES; f += 3) {
		const float *first = stack->result[f][0];
		uint32_t cells = o->bins * (o->sectors ? o->sectors : 1);
		int compared;

		oracle_run(rig, o, stack->frame[f].in);
		compared = o->sectors ? oracle_check(o, first, stack->result[f][1])
				      : oracle_check(o, first + BINS, first + 2 * BINS);
		assert_true(compared > (int)cells / 3);
		for (int b = 0; b < BINS; b++)
			assert_float_equal(o->sectors ? stack->result[f][2][b] : first[b],
					   o->low + (b + 0.5) * (o->high - o->low) / BINS, 1e-5);
		for (unsigned s = 0; s < o->sectors; s++)
			assert_float_equal(stack->result[f][3][s], (s + 0.5) * 45 - 180, 1e-4);
	}
}

#endif
