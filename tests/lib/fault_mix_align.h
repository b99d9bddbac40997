/* fault_mix_align.h - what makes module data one frame, drawn: numbers or clocks, their offsets,
 * their drift, where they wrap.
 *
 * Clocks show multiples of 10 ns and windows end in 5, so that rounding decides nothing. Triggers
 * are further apart than clocks and the window together: which of them a block is of can be told.
 */
#ifndef TESTS_LIB_FAULT_MIX_ALIGN_H
#define TESTS_LIB_FAULT_MIX_ALIGN_H

#include "lib/fault_mix.h"

/* Between two frames, in ns: a detector that goes as fast as it can counts as 1 kHz. */
static inline int64_t mix_period(const struct mix *mix)
{
	return INT64_C(1000000) * mix_step(mix);
}

/* How far a module's clock is ahead at the detector's frame of that index. */
static inline int64_t mix_ahead(const struct mix *mix, uint32_t module, uint64_t index)
{
	if (!mix_hurts(mix, module))
		return 0;
	/* A ppm of a millisecond is a nanosecond. */
	return module * (mix->clock_offset + (int64_t)mix_number(mix, index) * mix->drift_ppm);
}

/* What a clock shows then that is right. */
static inline int64_t mix_time(const struct mix *mix, uint64_t index)
{
	return INT64_C(1000000) * (int64_t)mix_number(mix, index);
}

/* What the receiver goes by, as a number that never wraps. `frame` counts from 0 in the run. */
static inline int64_t mix_key(const struct mix *mix, uint32_t module, uint64_t frame)
{
	uint64_t index = mix->first + frame;

	if (mix->align == MIX_TIMESTAMP)
		return mix_time(mix, index) + mix_ahead(mix, module, index) - mix->offset[module];
	return (int64_t)mix_number(mix, index) - mix->offset[module];
}

/* The counter begins again in the run, and far enough before and after it. */
static inline void mix_draw_wrap(struct mix *mix)
{
	uint64_t step = mix->align == MIX_FRAME ? mix_step(mix) : (uint64_t)mix_period(mix);
	uint64_t span = (mix->frames + 8) * step, wrap;

	mix->wrap_bits = 8;
	while (UINT64_C(1) << (mix->wrap_bits - 1) < span)
		mix->wrap_bits++;
	mix->wrap_bits += mix_range(mix, 0, 1);
	wrap = (UINT64_C(1) << mix->wrap_bits) * mix_range(mix, 1, 3) / step;
	mix->first = wrap - mix_range(mix, 0, mix->frames);
}

/* Modules' clocks differ by `residue` ns each when the run begins, and by more or less later. What
 * they differ by at most. */
static inline int64_t mix_draw_clocks(struct mix *mix)
{
	int64_t others = mix->modules > 1 ? mix->modules - 1 : 1, step = mix_step(mix), drift;
	int64_t residue = INT64_C(10) *
			  mix_range(mix, 0, (uint32_t)(mix_period(mix) / 80 / others));

	if (!mix_one_in(mix, 3))
		mix->drift_ppm =
			10 * (int32_t)mix_range(mix, 0, 25000 / (mix->frames * (uint32_t)others));
	if (mix_one_in(mix, 2))
		mix->drift_ppm = -mix->drift_ppm;
	drift = labs(mix->drift_ppm) * step * mix->frames;
	/* No clock is set back beyond its beginning. */
	mix->clock_offset = mix_range(mix, 0, 1000000) * INT64_C(10);
	if (mix->drift_ppm < 0)
		mix->clock_offset -= (int64_t)(mix->first + mix->frames) * step * mix->drift_ppm;
	for (uint32_t m = 1; m < mix->modules; m++)
		if (mix_hurts(mix, m))
			mix->offset[m] = mix_ahead(mix, m, mix->first) - m * residue;
	return others * (residue + drift);
}

/* Too short for the clocks, just long enough, or as long as it may be. */
static inline void mix_draw_window(struct mix *mix, int64_t spread)
{
	uint64_t most = (uint64_t)(mix_period(mix) - spread) / 10 - 2, few = (uint64_t)spread / 5;

	if (spread && few < most && !mix_one_in(mix, 3))
		most = few;
	mix->window = mix_range(mix, 0, (uint32_t)most) * UINT64_C(10) + 5;
}

/* Some modules count on from elsewhere: what they send of one trigger is of different frames here.
 */
static inline void mix_draw_offsets(struct mix *mix)
{
	uint32_t most = mix->slots - 2 - mix->late - mix->delay;
	int64_t unit = mix->align == MIX_FRAME ? (int64_t)mix_step(mix) : mix_period(mix);

	most = most < 3 ? most : 3;
	for (uint32_t m = 0; m < mix->modules; m++) {
		uint32_t frames = mix_range(mix, 0, most);

		mix->offset[m] += frames * unit;
		mix->apart = frames > mix->apart ? frames : mix->apart;
		/* A number that no frame of the others has. */
		if (mix->align == MIX_FRAME && unit > 1 && mix_one_in(mix, 20))
			mix->offset[m]++;
	}
	/* No trigger is dark for one module and bright for another. */
	mix->darks = 0;
}

static inline void mix_draw_align(struct mix *mix)
{
	int64_t spread = 0;
	bool drifts = mix_one_in(mix, 2);

	mix->wrap_bits = 64;
	if (mix->align != MIX_SEQUENCE && mix_one_in(mix, 2))
		mix_draw_wrap(mix);
	else if (mix_one_in(mix, 4))
		mix->first = mix_range(mix, 1, 5000);
	if (drifts && mix->align == MIX_TIMESTAMP)
		spread = mix_draw_clocks(mix);
	else if (drifts) {
		mix->drift_ppm = (int32_t)mix_range(mix, 0, 1000);
		mix->clock_offset = mix_range(mix, 0, 1000000);
	}
	if (mix->align == MIX_TIMESTAMP)
		mix_draw_window(mix, spread);
	if (mix->align != MIX_SEQUENCE && !mix->restarts && mix_one_in(mix, 4))
		mix_draw_offsets(mix);
	if (drifts)
		mix_say(mix, ", drift_ppm: %d, clock_offset_ns: %lld", mix->drift_ppm,
			(long long)mix->clock_offset);
}

#endif
