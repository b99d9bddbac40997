/* fault_pixels.h - a sink that holds every frame that is called good against the truth: pixels,
 * numbers, clocks that drift as they were told to, and the fill of what is missing.
 *
 * It stands in the place of the sink `verify`, which knows of no drift, and asks it too where there
 * is none. Truth is the receiver's own copy of the detector. */
#ifndef TESTS_LIB_FAULT_PIXELS_H
#define TESTS_LIB_FAULT_PIXELS_H

#include <errno.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "experiment/experiment.h"
#include "lib/fault_mix_align.h"

static struct pixels {
	const struct mix *mix;
	struct sl_experiment *experiment;
	const struct sl_sink *verify;
	struct sl_sink sink;
	const struct sl_env *env;
	uint8_t *truth;
	uint64_t blocks; /* that were called good */
	char problem[160];
} pixels;

static inline int pixels_wrong(const struct sl_frame *frame, uint32_t module, const char *what)
{
	if (!pixels.problem[0])
		snprintf(pixels.problem, sizeof(pixels.problem),
			 "frame %llu (sequence %llu), module %u: %s is wrong",
			 (unsigned long long)frame->number, (unsigned long long)frame->sequence,
			 module, what);
	return -EBADMSG;
}

/* As far as a counter of so many bits can tell them apart. */
static inline int64_t pixels_difference(uint64_t a, uint64_t b)
{
	unsigned unused = 64 - pixels.mix->wrap_bits;

	return (int64_t)((a - b) << unused) >> unused;
}

/* What the record says of frame and time. Clocks are computed in floating point there: 1 ns more or
 * less. */
static inline const char *pixels_record_problem(const struct sl_frame *frame, uint32_t module)
{
	const struct mix *mix = pixels.mix;
	const struct sl_record *r = &frame->view[module].record;
	uint64_t index = r->frame / mix_step(mix);
	int64_t clock, key, behind;

	if (r->frame != mix_number(mix, index) || index < mix->first ||
	    index - mix->first >= mix->frames)
		return "its number";
	clock = mix_time(mix, index) + mix_ahead(mix, module, index);
	key = mix_key(mix, module, index - mix->first);
	if (r->timestamp + 1 < (uint64_t)clock || r->timestamp > (uint64_t)clock + 1)
		return "its clock";
	if (!(r->flags & SL_RECORD_DARK) == mix_is_dark(mix, index - mix->first))
		return "that it is dark or not";
	if (mix->align != MIX_TIMESTAMP)
		return frame->number == (uint64_t)key ? NULL : "the frame's number";
	behind = pixels_difference((uint64_t)key, frame->timestamp);
	return behind >= -1 && behind <= (int64_t)mix->window + 1 ? NULL : "the frame's time";
}

static inline const char *pixels_problem(const struct sl_frame *frame, uint32_t module,
					 const uint8_t *got)
{
	const struct sl_record *r = &frame->view[module].record;
	const struct sl_experiment *e = pixels.experiment;
	uint64_t bytes = pixels.env->geometry->module_bytes;
	const void *truth;

	if (e->detector->render(e->detector_state, r->frame, module, r->flags & SL_RECORD_DARK,
				pixels.truth, &truth))
		return "it cannot be rendered; something";
	return memcmp(got, truth, bytes) ? "a pixel" : pixels_record_problem(frame, module);
}

static inline bool pixels_filled(const uint8_t *got, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (got[i] != SL_FILL_BYTE)
			return false;
	return true;
}

static inline int pixels_put(void *state, struct sl_frame *frame)
{
	uint64_t bytes = pixels.env->geometry->module_bytes;
	const struct sl_array *raw = sl_frame_result(frame, "raw");
	const struct mix *mix = pixels.mix;
	bool plain = !mix->drift_ppm && !mix->clock_offset;

	for (uint32_t m = 0; m < frame->views; m++) {
		const uint8_t *got = raw && raw->host ? (const uint8_t *)raw->host + m * bytes
						      : NULL;
		const char *what;

		plain &= !mix->offset[m];
		if (!got)
			return pixels_wrong(frame, m, "that there are no pixels");
		if (sl_frame_misses(frame, m)) {
			if (!mix->keep || !pixels_filled(got, bytes))
				return pixels_wrong(frame, m, "the fill");
			continue;
		}
		what = pixels_problem(frame, m, got);
		if (what)
			return pixels_wrong(frame, m, what);
		pixels.blocks++;
	}
	if (plain && (mix->align != MIX_TIMESTAMP || mix->wrap_bits == 64) &&
	    pixels.verify->put(state, frame))
		return pixels_wrong(frame, 0, "in the eyes of verify something");
	if (mix->nap_us)
		sl_clock_sleep_until(sl_clock_ns() + mix->nap_us * UINT64_C(1000));
	return 0;
}

static inline int pixels_open(void *state, const struct sl_env *env)
{
	pixels.env = env;
	pixels.truth = malloc(env->geometry->module_bytes);
	return pixels.truth ? pixels.verify->open(state, env) : -ENOMEM;
}

/* Before the receiver is opened: its second sink is verify. */
static inline void pixels_watch(struct sl_experiment *experiment, const struct mix *mix)
{
	pixels.mix = mix;
	pixels.experiment = experiment;
	pixels.verify = experiment->sink[1];
	pixels.sink = *pixels.verify;
	pixels.sink.open = pixels_open;
	pixels.sink.put = pixels_put;
	experiment->sink[1] = &pixels.sink;
}

#endif
