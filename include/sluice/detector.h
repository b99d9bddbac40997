/* detector.h - what bytes mean: geometry, raw format, calibration, and synthetic frames with their
 * truth.
 *
 * Model:     a detector is opened from the experiment file on both sides. The emulator sends what
 *            render() gives; the receiver asks its own copy for the truth of the same frame.
 *            Everything is a function of (options, seed, frame number, dark or not): no clock, no
 *            global state, so the two never differ.
 * Threads:   open and close on one thread; render and truth on one thread at a time.
 * Ownership: render() either fills `buffer` (module_bytes) or points into memory of the detector
 *            that stays valid and unchanged until close. */
#ifndef SLUICE_DETECTOR_H
#define SLUICE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>
#include <sluice/option.h>

struct sl_geometry {
	char detector[SL_NAME_BYTES];
	uint32_t modules, rows, columns; /* of one module */
	enum sl_dtype dtype;		 /* of raw pixels */
	uint32_t bit_depth;
	uint64_t module_bytes;
	double pixel_size_m, sensor_thickness_m, distance_m;
	char sensor_material[8];
	double photon_energy_keV; /* 0: not a photon detector */
	/* Which of its frames a stream has: first_frame, first_frame + frame_step, ...; step 0
	 * means 1. */
	uint64_t first_frame, frame_step;
};

static inline uint64_t sl_geometry_pixels(const struct sl_geometry *geometry)
{
	return (uint64_t)geometry->rows * geometry->columns;
}

/* The number of a stream's k-th frame. */
static inline uint64_t sl_geometry_frame(const struct sl_geometry *geometry, uint64_t k)
{
	return geometry->first_frame + k * (geometry->frame_step ? geometry->frame_step : 1);
}

/* What every detector section has besides the kind's own options. */
struct sl_detector_run {
	uint32_t modules;
	uint64_t frames, dark_frames, seed;
	double frame_rate_Hz;
};
extern const struct sl_option sl_detector_run_options[];

/* Adaptive-gain calibration, [gain][module][pixel]; gains in ADU per keV. Pedestals of G1 and G2
 * are constant, that of G0 is a starting value at best: it is measured from dark frames. */
struct sl_calibration {
	const float *pedestal[3], *gain[3];
};

struct sl_truth {
	bool hit;	/* the frame has spots */
	uint32_t spots; /* over all modules */
};

struct sl_detector {
	const char *name, *doc;
	size_t state_bytes;
	const struct sl_option *options;

	int (*open)(void *state, const struct sl_detector_run *run, struct sl_geometry *geometry);
	void (*close)(void *state);

	/* flags: SL_RECORD_DARK. May be slow the first time a frame is asked for; prepare() does
	 * that work ahead. */
	int (*render)(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		      const void **pixels);
	int (*prepare)(void *state); /* NULL: nothing to prepare */
	void (*truth)(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth);
	uint64_t (*timestamp)(void *state, uint64_t frame);
	int (*calibration)(void *state, struct sl_calibration *calibration); /* NULL: has none */
};

#endif
