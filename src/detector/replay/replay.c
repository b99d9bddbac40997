/* replay.c - what a detector recorded, as a detector: raw binary files and HDF5 datasets, played
 * once or in a loop at any rate.
 *
 * Frame k of the run is image first + k. Without `darks`, that holds for dark frames, too: the
 * first dark_frames images of the file are sent as dark ones, and a chopper's (dark_every) lie
 * among the others, as they were recorded. With `darks`, dark frames are images of that file, in a
 * loop, and bright frame number k is image first + k minus the dark ones before it.
 *
 * Images have one module after another (an axis of the dataset, or the rows in equal parts), or are
 * assembled: what the detector was, and where its modules lie, is origin.h's. Numbers are what they
 * are in the file; records, frame numbers and timestamps are the run's.
 *
 * Cost:      from memory nothing: pixels are sent from where they lie. What does not fit into
 *            `cache` is copied once, from the page cache or from disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>

#include "base/log.h"
#include "base/paths.h"
#include "detector/replay/image_cache.h"
#include "detector/replay/origin.h"

enum { BRIGHT, DARK, KINDS };

struct replay {
	struct sl_stack_options files;
	char darks[SL_STACK_PATH], darks_dataset[SL_STACK_DATASET], scratch[256];
	char origin[SL_NAME_BYTES];
	uint32_t bits, storage_cells, bit_depth;
	uint32_t byte_order;
	uint64_t first, cache;
	bool loop;
	double photon_energy_keV, distance_m, beam_x, beam_y, pixel_size_m, sensor_thickness_m;
	char sensor_material[8];

	struct sl_detector_options run;
	struct sl_image_cache images[KINDS];
	struct sl_origin_found found;
	bool separate; /* dark frames have files of their own */
	uint64_t module_bytes, period_ns;
};

/* Options of a struct in the struct. */
#define FILES(f) offsetof(struct replay, files.f), sizeof(((struct replay *)0)->files.f)

static const struct sl_option options[] = {
	{"file", SL_OPTION_STRING, FILES(file), "", 0, 0, "",
	 "HDF5 or raw binary; several in order: run_*.h5, run_%06d.raw, or names with commas",
	 NULL},
	{"dataset", SL_OPTION_STRING, FILES(dataset), "", 0, 0, "",
	 "HDF5: where the images are, as in /entry/data/data or /entry/data/data_%06d; empty: "
	 "found",
	 NULL},
	{"format", SL_OPTION_CHOICE, FILES(format), "auto", 0, 0, "",
	 "what the files are; auto: as they begin", "auto|hdf5|raw"},
	{"rows", SL_OPTION_U32, FILES(rows), "0", 0, 1e6, "pixels",
	 "of an image in the file, all modules; raw needs it, others are held to it", NULL},
	{"columns", SL_OPTION_U32, FILES(columns), "0", 0, 1e6, "pixels", "likewise", NULL},
	SL_CHOICE(struct replay, bits, 16, "8|16|32", "raw: bits of a pixel"),
	{"numbers", SL_OPTION_CHOICE, FILES(numbers), "unsigned", 0, 0, "", "raw: what a pixel is",
	 "unsigned|signed|float"},
	SL_CHOICE(struct replay, byte_order, little, "little|big", "raw: of a pixel"),
	{"header_bytes", SL_OPTION_U64, FILES(header_bytes), "0", 0, 1e12, "bytes",
	 "raw: left out at the beginning of each file", NULL},
	{"frame_header_bytes", SL_OPTION_U64, FILES(frame_header_bytes), "0", 0, 1e9, "bytes",
	 "raw: left out before each image", NULL},
	{"gap_bytes", SL_OPTION_U64, FILES(gap_bytes), "0", 0, 1e9, "bytes",
	 "raw: left out after each image", NULL},
	{"ragged", SL_OPTION_BOOL, FILES(ragged), "false", 0, 1, "",
	 "raw: leave out a last image that is not whole, rather than refuse the file", NULL},
	SL_U64(struct replay, first, 0, 0, 1e12, "images", "image that is played first"),
	SL_BOOL(struct replay, loop, false,
		"begin again when the images end; otherwise detector.frames must not be more"),
	SL_STRING(struct replay, darks, "",
		  "file that dark frames come from, like file; empty: they are in file as well"),
	SL_STRING(struct replay, darks_dataset, "", "HDF5: likewise"),
	SL_U64(struct replay, cache, 1024, 0, 1e7, "MiB",
	       "front end: images up to so much are put into memory before the run"),
	SL_STRING(struct replay, scratch, "",
		  "folder to unpack into what is more than that; empty: $TMPDIR, or /var/tmp"),
	SL_STRING(struct replay, origin, "",
		  "detector that recorded it: jungfrau and eiger have a layout, wide pixels and a "
		  "sensor; calibration files are held to the name; empty: as the file says"),
	SL_U32(struct replay, storage_cells, 1, 1, 16, "cells", "that it used in turn"),
	SL_U32(struct replay, bit_depth, 0, 0, 32, "bits",
	       "of what was read out; 0: all of a pixel"),
	SL_F64(struct replay, photon_energy_keV, 0, 0, 1000, "keV",
	       "energy of a photon; 0: as the file says, else unknown"),
	SL_F64(struct replay, distance_m, 0, 0, 1000, "m",
	       "from sample to detector; 0: as the file says, else unknown"),
	SL_F64(struct replay, beam_x, 0, -100000, 100000, "pixels",
	       "where the beam hits: to the right of the image's middle; both 0: as the file says, "
	       "else the middle"),
	SL_F64(struct replay, beam_y, 0, -100000, 100000, "pixels", "below it"),
	SL_F64(struct replay, pixel_size_m, 0, 0, 1, "m",
	       "edge of a pixel; 0: as the file says, else 75 um"),
	SL_F64(struct replay, sensor_thickness_m, 0, 0, 1, "m",
	       "0: as the file or the origin says, else unknown"),
	SL_STRING(struct replay, sensor_material, "",
		  "as in Si; empty: as the file or the origin says, else unknown"),
	SL_OPTION_END};

static int open_files(struct replay *r)
{
	static const uint32_t bits[] = {8, 16, 32};
	struct sl_stack_options darks;
	int err;

	if (!r->files.file[0]) {
		sl_error("replay: which file? set detector.file");
		return -EINVAL;
	}
	r->files.bits = bits[r->bits];
	r->files.big_endian = r->byte_order;
	err = sl_image_cache_open(&r->files, &r->images[BRIGHT]);
	if (err || !r->darks[0])
		return err;
	darks = r->files;
	snprintf(darks.file, sizeof(darks.file), "%s", r->darks);
	snprintf(darks.dataset, sizeof(darks.dataset), "%s", r->darks_dataset);
	r->separate = true;
	return sl_image_cache_open(&darks, &r->images[DARK]);
}

static int check_darks(const struct replay *r)
{
	const struct sl_stack_shape *a, *b;

	if (!r->separate)
		return 0;
	a = sl_stack_shape(r->images[BRIGHT].stack);
	b = sl_stack_shape(r->images[DARK].stack);
	if (a->dtype == b->dtype && a->rows == b->rows && a->columns == b->columns &&
	    a->modules == b->modules)
		return 0;
	sl_error("replay: '%s' has images of %u x %u %s, the dark ones in '%s' are %u x %u %s",
		 r->files.file, a->rows, a->columns, sl_dtype_name(a->dtype), r->darks, b->rows,
		 b->columns, sl_dtype_name(b->dtype));
	return -EINVAL;
}

static int check_modules(const struct replay *r, const struct sl_stack_shape *shape)
{
	uint32_t modules = r->run.modules;

	if (shape->modules && shape->modules != modules) {
		sl_error("replay: '%s' has %u modules; set detector.modules: %u", r->files.file,
			 shape->modules, shape->modules);
		return -EINVAL;
	}
	if (shape->image_bytes / modules > UINT32_MAX) { /* a record has 32 bits for it */
		sl_error("replay: a module has %llu bytes, 4 GiB at most can be sent",
			 (unsigned long long)(shape->image_bytes / modules));
		return -EFBIG;
	}
	return 0;
}

/* Of the frames below `frame`, how many are dark; as sl_detector_darks() has them. */
static uint64_t darks_below(const struct replay *r, uint64_t frame)
{
	uint64_t begun = r->run.dark_frames;

	if (frame <= begun)
		return frame;
	return begun + (r->run.dark_every ? (frame - begun) / r->run.dark_every : 0);
}

/* Frames that have images of their own; 0: they are played in a loop. */
static uint64_t frames_there(const struct replay *r)
{
	uint64_t images = sl_stack_images(r->images[BRIGHT].stack) - r->first;
	uint32_t every = r->run.dark_every;

	if (r->loop)
		return 0;
	if (!r->separate)
		return images;
	/* After the first dark ones, one in `every` is dark and takes no image of this file. */
	return r->run.dark_frames + images + (every > 1 ? (images - 1) / (every - 1) : 0);
}

/* Images of `file` that the run plays. */
static uint64_t wanted(const struct replay *r)
{
	uint64_t all = r->run.dark_frames + r->run.frames;

	if (!r->run.frames)
		return sl_stack_images(r->images[BRIGHT].stack) - r->first;
	return r->separate ? all - darks_below(r, all) : all;
}

static int check_frames(const struct replay *r)
{
	uint64_t images = sl_stack_images(r->images[BRIGHT].stack);
	const char *what = r->separate ? "detector.frames" : "detector.dark_frames and frames";

	if (r->first >= images) {
		sl_error("replay: '%s' has %llu images; the first to be played cannot be %llu",
			 r->files.file, (unsigned long long)images, (unsigned long long)r->first);
		return -EINVAL;
	}
	if (!r->run.frames && frames_there(r) == r->run.dark_frames && !r->loop) {
		sl_error("replay: '%s' has only dark frames: detector.dark_frames is %llu, and it "
			 "has %llu images%s",
			 r->files.file, (unsigned long long)r->run.dark_frames,
			 (unsigned long long)(images - r->first),
			 r->first ? " from `first` on" : "");
		return -EINVAL;
	}
	if (r->loop || wanted(r) <= images - r->first)
		return 0;
	sl_error("replay: '%s' has %llu images%s, and %s ask%s for %llu: set fewer, or loop: true",
		 r->files.file, (unsigned long long)(images - r->first),
		 r->first ? " from `first` on" : "", what, r->separate ? "s" : "",
		 (unsigned long long)wanted(r));
	return -EINVAL;
}

/* What is known of the detector; images that are assembled are cut into its modules from now on. */
static int find_origin(struct replay *r)
{
	const struct sl_origin_options known = {
		.name = r->origin,
		.sensor_material = r->sensor_material,
		.bit_depth = r->bit_depth,
		.cells = r->storage_cells,
		.photon_energy_keV = r->photon_energy_keV,
		.distance_m = r->distance_m,
		.beam_x = r->beam_x,
		.beam_y = r->beam_y,
		.pixel_size_m = r->pixel_size_m,
		.sensor_thickness_m = r->sensor_thickness_m,
	};
	struct sl_stack *stack = r->images[BRIGHT].stack;
	const char *path = sl_stack_first(stack);
	struct sl_origin_file from;
	int err;

	sl_origin_nothing(&from);
	err = sl_stack_hdf5_is(path) ? sl_origin_hdf5(path, &from) : 0;
	if (!err)
		err = sl_origin_find(&known, &from, sl_stack_shape(stack), r->run.modules, path,
				     &r->found);
	free(from.mask);
	free(from.plane);
	for (int kind = 0; kind < KINDS && !err && r->found.cut; kind++)
		if (r->images[kind].stack)
			err = sl_image_cache_cut(&r->images[kind], &r->found.geometry);
	return err;
}

static void describe(struct replay *r, struct sl_geometry *geometry)
{
	const struct sl_stack_shape *shape = sl_stack_shape(r->images[BRIGHT].stack);

	r->module_bytes = shape->image_bytes / r->run.modules;
	*geometry = r->found.geometry;
	geometry->module_bytes = r->module_bytes;
	geometry->frames = frames_there(r);
}

static int open_replay(void *state, const struct sl_detector_options *run,
		       struct sl_geometry *geometry)
{
	struct replay *r = state;
	const struct sl_stack_shape *shape;
	int err;

	r->run = *run;
	r->period_ns = sl_detector_period_ns(run);
	err = open_files(r);
	if (err)
		return err;
	shape = sl_stack_shape(r->images[BRIGHT].stack);
	err = check_darks(r);
	if (!err)
		err = check_modules(r, shape);
	if (!err)
		err = find_origin(r);
	if (!err)
		err = check_frames(r);
	if (!err)
		describe(r, geometry);
	return err;
}

static void close_replay(void *state)
{
	struct replay *r = state;

	for (int kind = 0; kind < KINDS; kind++)
		sl_image_cache_close(&r->images[kind]);
	free(r->found.mask);
	free(r->found.plane);
	r->found.mask = NULL;
	r->found.plane = NULL;
}

/* Pixels that the file marks as bad: there are no pedestals and gains. */
static int calibration(void *state, struct sl_calibration *calibration)
{
	*calibration = (struct sl_calibration){.mask = ((struct replay *)state)->found.mask};
	return 0;
}

static int prepare(void *state)
{
	struct replay *r = state;
	uint64_t images = sl_stack_images(r->images[BRIGHT].stack), most = r->cache << 20, darks;
	int err;

	images = wanted(r) < images ? wanted(r) : images;
	err = sl_image_cache_prepare(&r->images[BRIGHT], r->first, images, most, r->scratch);
	if (err || !r->separate)
		return err;
	if (r->images[BRIGHT].memory)
		most -= images * r->images[BRIGHT].image_bytes;
	darks = sl_stack_images(r->images[DARK].stack);
	return sl_image_cache_prepare(&r->images[DARK], 0, darks, most, r->scratch);
}

/* Which image of which file a frame is. -ENODATA: the images have ended. */
static int find(struct replay *r, uint64_t frame, bool dark, struct sl_image_cache **cache,
		uint64_t *image)
{
	uint64_t images, k;

	*cache = &r->images[dark && r->separate ? DARK : BRIGHT];
	images = sl_stack_images((*cache)->stack);
	if (dark && r->separate) {
		*image = frame % images;
		return 0;
	}
	k = r->separate ? frame - darks_below(r, frame) : frame;
	if (!r->loop && k >= images - r->first)
		return -ENODATA;
	*image = (r->first + k % images) % images;
	return 0;
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct replay *r = state;
	struct sl_image_cache *cache;
	uint64_t image;
	int err;

	if (module >= r->run.modules)
		return -EINVAL;
	err = find(r, frame, flags & SL_RECORD_DARK, &cache, &image);
	if (err)
		return err;
	return sl_image_cache_get(cache, image, module * r->module_bytes, r->module_bytes, buffer,
				  pixels);
}

/* Nobody knows what was recorded. */
static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	*truth = (struct sl_truth){.hit = false};
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct replay *)state)->period_ns;
}

static void each_file(const char *text, sl_file_each *each, void *arg)
{
	struct sl_paths paths;
	char why[600];

	/* Files that cannot be found are reported by open(). */
	if (!text[0] || sl_paths_expand(text, &paths, why, sizeof(why)))
		return;
	for (size_t i = 0; i < paths.n; i++)
		each(arg, SL_FILE_READ, paths.path[i]);
	sl_paths_free(&paths);
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct replay *r = state;

	each_file(r->files.file, each, arg);
	each_file(r->darks, each, arg);
}

static int finite(const void *state)
{
	const struct replay *r = state;

	return !r->loop;
}

const struct sl_detector sl_detector_replay = {
	.name = "replay",
	.doc = "plays raw binary files and HDF5 datasets, once or in a loop, at any rate",
	.state_bytes = sizeof(struct replay),
	.options = options,
	.open = open_replay,
	.close = close_replay,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.timestamp = timestamp,
	.calibration = calibration,
	.files = files,
	.finite = finite,
};
