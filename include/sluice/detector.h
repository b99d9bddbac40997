/* detector.h - what bytes mean: geometry, raw format, calibration, and synthetic frames with their
 * truth.
 *
 * Model:     a detector is opened from the experiment file on both sides. The emulator sends what
 *            render() gives; the receiver asks its own copy for the truth of the same frame.
 *            Everything is a function of (options, seed, frame number, dark or not): no clock, no
 *            global state, so the two never differ.
 * Threads:   open and close on one thread; render and truth on one thread at a time, unless
 *            `parallel` says otherwise.
 * Ownership: render() either fills `buffer` (module_bytes) or points into memory of the detector
 *            that stays valid and unchanged until close. */
#ifndef SLUICE_DETECTOR_H
#define SLUICE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/darks.h>
#include <sluice/file.h>
#include <sluice/frame.h>
#include <sluice/layout.h>
#include <sluice/option.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_geometry {
	char detector[SL_NAME_BYTES];
	uint32_t modules, rows, columns; /* of one module */
	enum sl_dtype dtype;		 /* of raw pixels */
	uint32_t bit_depth;
	/* Partial readout: a module has this many rows above the `rows` that are read out, and as
	 * many below. */
	uint32_t unread_rows;
	uint64_t module_bytes;
	double pixel_size_m, sensor_thickness_m, distance_m;
	char sensor_material[8];
	double photon_energy_keV; /* 0: not a photon detector */
	struct sl_layout layout;  /* where the modules lie */
	/* Where they lie in space, as far as that is known better than by the layout, distance_m
	 * and beam: 0 planes: it is not; 1: all are in one; `modules`: one each; or one for each
	 * piece of each module (sl_layout_pieces). Memory of its setter, until the detector is
	 * closed. With planes distance_m is that of their mean, along its normal, and the layout's
	 * beam is where it hits that (NaN: it does not). */
	const struct sl_plane *plane;
	uint32_t planes;
	uint32_t items; /* events in a block, each one row or more; 0 means 1: an image */
	/* Every module has a part of each of those events; else each has events of its own, and a
	 * frame has modules times as many. */
	bool items_shared;
	uint32_t cells; /* storage cells, used in turn; 0 means 1 */
	/* Which of its frames a stream has: first_frame, first_frame + frame_step, ...; step 0
	 * means 1. */
	uint64_t first_frame, frame_step;
	uint64_t frames; /* that it has, the dark ones too; 0: without end */
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

/* The storage cell that holds a frame, by its number. */
static inline uint16_t sl_geometry_cell(const struct sl_geometry *geometry, uint64_t frame)
{
	return (uint16_t)(geometry->cells > 1 ? frame % geometry->cells : 0);
}

static inline uint32_t sl_geometry_items(const struct sl_geometry *geometry)
{
	return geometry->items ? geometry->items : 1;
}

/* Events of a frame: an image is one. */
static inline uint32_t sl_geometry_frame_items(const struct sl_geometry *geometry)
{
	return sl_geometry_items(geometry) *
	       (geometry->items && !geometry->items_shared ? geometry->modules : 1);
}

/* What every detector section has besides the kind's own options. */
struct sl_detector_options {
	uint32_t modules;
	uint64_t frames; /* after the dark ones; 0: endless, or all that the detector has */
	uint64_t dark_frames, seed;
	uint32_t dark_every;
	double frame_rate_Hz;
	/* Of a stream that is a part of the detector's frames: the chopper's count of them. */
	uint32_t chopper_phase, chopper_step; /* step 0: it has them all */
};
extern const struct sl_option sl_detector_options[];

/* All frames of a run, the dark ones too; UINT64_MAX: it is endless. */
uint64_t sl_detector_frames(const struct sl_detector_options *run,
			    const struct sl_geometry *geometry);

/* Which frames of the run are dark. */
struct sl_darks sl_detector_darks(const struct sl_detector_options *run);

/* Time between two frames by the detector's own clock; a run "as fast as credits allow" counts as
 * 1 kHz, so that timestamps never depend on how fast it went. At least 1 ns. */
uint64_t sl_detector_period_ns(const struct sl_detector_options *run);

/* Adaptive-gain calibration, or a mask alone: then gains and pedestals are NULL. Pedestals are
 * [cell][module][pixel], in ADU; gains [module][pixel], in ADU per keV. Pedestals of G1 and G2 are
 * constant, that of G0 is a starting value at best: it is measured from dark frames. */
struct sl_calibration {
	const float *pedestal[3], *gain[3]; /* all NULL: the mask alone is known */
	uint32_t cells;			    /* 0 means 1 */
	/* [module][pixel]: not 0 for pixels that are not to be used; NULL: none is known. */
	const uint8_t *mask;
	bool measured; /* the pedestal of G0 is from dark frames of another run, and will do */
};

/* Whether raw pixels mean nothing before it was applied. */
static inline bool sl_calibration_has_gains(const struct sl_calibration *calibration)
{
	return calibration && calibration->gain[0];
}

struct sl_truth {
	bool hit;	/* the frame has what is looked for: spots, rings, tracks */
	uint32_t spots; /* how many, over all modules and events */
};

/* What is known of each of them: a column of the table that truth_rows() gives. */
struct sl_truth_column {
	const char *name, *unit; /* unit "": a number */
};
enum { SL_TRUTH_COLUMNS = 16 };

/* A frame as people look at it, for `sluice show`. */
struct sl_picture {
	uint32_t rows, columns;
	float *pixels; /* [rows][columns] in any unit, malloc'ed; NaN: nothing is there */
};

struct sl_detector {
	const char *name, *doc;
	size_t state_bytes;
	const struct sl_option *options;
	double rate_Hz; /* frames, or blocks, per second of the real one; 0: there is none */
	const struct sl_truth_column *truth_columns; /* ends with an empty one; NULL: no table */

	int (*open)(void *state, const struct sl_detector_options *run,
		    struct sl_geometry *geometry);
	void (*close)(void *state);

	/* flags: SL_RECORD_DARK. May be slow the first time a frame is asked for; prepare() does
	 * that work ahead. */
	int (*render)(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		      const void **pixels);
	int (*prepare)(void *state); /* NULL: nothing to prepare */
	void (*truth)(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth);

	/* The same in detail, [rows][columns]: how many rows there are, of which `most` are filled
	 * in. NULL without truth_columns. */
	uint32_t (*truth_rows)(void *state, uint64_t frame, uint32_t flags, double *table,
			       uint32_t most);
	uint64_t (*timestamp)(void *state, uint64_t frame);
	int (*calibration)(void *state, struct sl_calibration *calibration); /* NULL: has none */

	/* One event of a frame drawn, with its truth: RGB, [rows][columns][3]; item <
	 * sl_geometry_frame_items(). 0 or -errno. NULL: the modules as an image are the picture,
	 * corrected where there is a calibration. */
	int (*picture)(void *state, uint64_t frame, uint32_t flags, uint32_t item, uint8_t *rgb,
		       uint32_t rows, uint32_t columns);
	double picture_aspect; /* its width over its height; 0 means 1 */

	/* By its options, before open(): after how many bright frames their pixels repeat; 0: they
	 * never do. NULL: never. */
	uint32_t (*repeats_after)(const void *state);
	/* The files of its options. NULL: none. */
	void (*files)(const void *state, sl_file_each *each, void *arg);
	/* By its options: 1: it has an end of its own, and without detector.frames all of it is
	 * played. NULL: it has none. */
	int (*finite)(const void *state);
	/* 1: after prepare(), render() of different modules may run on several threads at once. */
	int parallel;
};

#ifdef __cplusplus
}
#endif

#endif
