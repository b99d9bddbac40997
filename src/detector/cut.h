/* cut.h - the part of a detector that one transfer carries, as a detector of its own.
 *
 * Model:     a transfer takes some modules, a rectangle of each, one frame in N, and several
 *            frames at a time; or, instead of pixels, the records alone, or the configuration.
 *            The receiver sees a detector of that shape: geometry, calibration, synthetic
 *            frames and their truth are those of the generator, cut. Frames keep the generator's
 *            numbers and timestamps: one transfer's are first_frame, first_frame + frame_step, ...
 *            A stack of K frames is one image of K times the rows, with the number and time of
 *            its first. Whole modules keep their places in the image; all else lies one below
 *            the other.
 * Threads:   as sluice/detector.h.
 * Ownership: the generator's state stays the caller's; open() and close() of the generator are
 *            called from those of the cut. */
#ifndef SL_DETECTOR_CUT_H
#define SL_DETECTOR_CUT_H

#include <stddef.h>

#include <sluice/detector.h>
#include <sluice/record.h>

enum sl_cut_part { SL_CUT_PIXELS, SL_CUT_RECORDS, SL_CUT_CONFIGURATION };

struct sl_cut_options {
	uint32_t first_module, modules; /* modules: 0: all the others */
	uint32_t x, y, width, height;	/* width, height 0: to the edge */
	uint32_t every, phase, stack;
	uint32_t part; /* enum sl_cut_part */
};
extern const struct sl_option sl_cut_options[];

struct sl_cut {
	struct sl_cut_options options;
	const struct sl_detector *generator;
	void *generator_state;
	struct sl_detector_options generator_options;
	struct sl_geometry source_geometry, geometry;
	/* What is known better of the generator's geometry, put into it; NULL: nothing. */
	int (*refine)(void *arg, struct sl_geometry *geometry);
	void *refine_arg;
	uint32_t width, height; /* of the rectangle */
	bool whole;		/* frames are sent as they are */
	uint8_t *buffer;	/* a module of the source */
	char *text;		/* how the source was set when it was opened */
	float *table;		/* calibration and mask, cut */
};

/* The run as this cut sees it: how many modules and frames, how often. -EINVAL, with a reason,
 * when it would be senseless. */
int sl_cut_apply(const struct sl_cut_options *options, const struct sl_detector_options *source,
		 struct sl_detector_options *run, char *why, size_t why_bytes);

/* Frames at the end of the run that would belong to it, but fill no stack: they are not sent. */
uint64_t sl_cut_left_over(const struct sl_cut_options *options,
			  const struct sl_detector_options *source);

/* A detector whose state is a struct sl_cut with options, generator, generator_state and
 * generator_options set. It goes by the name of its generator. */
void sl_cut_detector(const struct sl_cut *cut, struct sl_detector *detector);

#endif
