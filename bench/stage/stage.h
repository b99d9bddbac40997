/* stage.h - between the files of `sluice bench stage`.
 *
 * Model:     a scene is frames of one size with everything that belongs to them: raw pixels, the
 *            calibration, the photons that a plain loop makes of them, the planted peaks. Scenes
 *            are made once, before the rounds; processes that measure inherit them, programs and
 *            Python read the same from a folder.
 * Files:     rows.c which rows there are; data.c the scene;
 *            files.c the same for other programs; chain.c stages, frames
 *            and unit, as in a run; stage.c one measurement of ours; check.c
 *            whether all computed the same; report.c the table and what is compared;
 *            bench/python.c the one peer that is kept between the rounds. */
#ifndef SL_BENCH_STAGE_STAGE_H
#define SL_BENCH_STAGE_STAGE_H

#include <sluice/detector.h>

#include "base/bell.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "core/region.h"
#include "core/unit.h"
#include "receiver/chain.h"
#include "receiver/pool.h"

enum { SL_BENCH_STACK = 16, SL_BENCH_PLANES = 6, SL_BENCH_BINS = 1000 };
enum sl_bench_size {
	SL_BENCH_4M,
	SL_BENCH_500K,
	SL_BENCH_RICH, /* events of triggers: see bench/trigger/data.c */
	SL_BENCH_RICH_32,
	SL_BENCH_RICH_1024,
	SL_BENCH_RICH_NOISE,
	SL_BENCH_SECTORS,
	SL_BENCH_TRACKER_140,
	SL_BENCH_TRACKER_200,
	SL_BENCH_SIZES
};

/* What two rows must agree about. */
enum sl_bench_agree {
	SL_BENCH_AGREE_NOTHING,
	SL_BENCH_AGREE_IMAGE, /* the same int16 photons in every pixel */
	SL_BENCH_AGREE_NO_SPLIT,
	SL_BENCH_AGREE_BBOX, /* profiles, one for each way to share a pixel */
};

struct sl_bench_work {
	const char *name;
	const char *chain; /* ours: "correct:output=photons_i16 veto"; "image": photons are there */
	const char *program, *mode; /* or a peer's */
	bool python;		    /* it is kept between the rounds */
	bool unread;		    /* no stage or sink reads the image that `correct` makes */
	bool tilted;		    /* the detector is not square to the beam */
	unsigned ways;
	enum sl_bench_agree agree;
};

struct sl_bench_peak {
	float row, column; /* of the image; the middle of its first pixel is at (0.5, 0.5) */
};

struct sl_bench_scene {
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	uint64_t pixels;
	uint32_t frames, peaks;
	float *plane[SL_BENCH_PLANES]; /* pedestals of G0, G1, G2, then gains */
	uint8_t *mask;
	uint16_t *raw;		    /* [frames][pixels] */
	int16_t *image;		    /* [frames][pixels]: the photons in them */
	struct sl_bench_peak *peak; /* [frames][peaks] */
	double high;		    /* of the radial range of profiles, in 1/nm */
	uint8_t *events;	    /* or events: [frames][modules][module_bytes] */
	uint32_t items;		    /* of a frame of events: what figures are of; 0: one */
	double parts;		    /* hits or stubs of an item */
	struct sl_region memory;
};

struct sl_bench_python {
	int pid, to, from, err; /* pid 0: not started; -1: there is none */
	char why[SL_BENCH_WHY];
};

struct sl_bench_stages {
	struct sl_bench_scene scene[SL_BENCH_SIZES]; /* frames 0: not made */
	char folder[64];			     /* "": not made */
	bool filled[SL_BENCH_SIZES];
	struct sl_bench_python python;
};

/* 0 or -ENOMEM. */
int sl_bench_scene_make(struct sl_bench_scene *scene, enum sl_bench_size size);
void sl_bench_scene_free(struct sl_bench_scene *scene);

/* Sum of pixel * (2 * index + 1), modulo 2^32: what peers compute of their images, too. */
uint32_t sl_bench_check(const void *pixels, uint64_t n);

/* The folder, and in it what programs read of that size; 0 or -errno, logged. */
int sl_bench_files_make(struct sl_bench_stages *stages, enum sl_bench_size size);
void sl_bench_files_remove(struct sl_bench_stages *stages);
/* Where the row's profile goes. */
void sl_bench_files_profile(const struct sl_bench_stages *stages, const char *row, char *path,
			    size_t bytes);

/* ---- one measurement ---- */

struct sl_bench_subject { /* stages, frames and unit, as in a run */
	const struct sl_bench_row *row;
	const struct sl_bench_scene *scene;
	struct sl_experiment e;	     /* only its stages */
	struct sl_geometry geometry; /* the scene's, or the same tilted */
	struct sl_refined refined;
	struct sl_env env;
	struct sl_chain_build build;
	const struct sl_unit *unit;
	void *unit_state;
	struct sl_pool pool;
	struct sl_bell todo, done;
	uint32_t batches; /* that the frames are */
	struct sl_batch *batch;
	struct sl_frame **line; /* [frames of the scene] */
	uint64_t number;	/* of the next frame, where stages are to see time go on */
};

/* Frames of the batch have the next numbers, and the batch is submitted. 0 or -errno. */
static inline int sl_bench_submit(struct sl_bench_subject *s, struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		batch->frame[f]->number = s->number + f;
	s->number += batch->frames;
	return s->unit->submit(s->unit_state, batch);
}

/* 0 or -errno, logged; -ENODEV: a stage or an option of it is not there. */
int sl_bench_subject_open(struct sl_bench_subject *s, const struct sl_bench_row *row,
			  const struct sl_bench_scene *scene);

/* For who goes on afterwards; in any case. */
void sl_bench_subject_close(struct sl_bench_subject *s);

/* After frames 0 to `frames` - 1 have been through: 0 or -EBADMSG, logged. Fills in what was
 * found. */
int sl_bench_subject_check(const struct sl_bench_subject *s, uint32_t frames,
			   const struct sl_bench_stages *stages, struct sl_bench_sample *sample);

/* The same of triggers. */
int sl_bench_trigger_check(const struct sl_bench_subject *s, uint32_t frames);

/* In the first process, after a measurement: sample->why when it computed something else than
 * another row. */
void sl_bench_agree(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample);

/* One measurement by the peer that is kept. */
void sl_bench_python_measure(const struct sl_bench *bench, const struct sl_bench_row *row,
			     struct sl_bench_sample *sample);
void sl_bench_python_end(struct sl_bench_python *python);

#endif
