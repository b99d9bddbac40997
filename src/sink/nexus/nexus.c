/* nexus.c - kept images in an NXmx file, with a row about every frame and the ledger.
 *
 *   /entry/data              data [n, rows, columns], frame_number, timestamp, sequence,
 *                            missing_modules [n]
 *   /entry/results           what else stages made, [n, ...] each (results.c)
 *   /entry/peaks             peaks in pixels of the images, as CrystFEL reads them (cxi_peaks.c)
 *   /entry/sparse_frames     lists of pixels as pyFAI writes them (sparse_frames.c)
 *   /entry/instrument, ...   NXmx (nxmx.c)
 *   /entry/sluice            frames: one row per sequence; ledger; link, guard, proof (account.c)
 *
 * The same data over another link gives the same datasets, but for /entry/sluice/{link, guard,
 * proof, experiment}, which describe the run, and the wall-clock fields that nxmx.c lists.
 *
 * A full disk: space is reserved before a frame is taken. When there is none, this frame and all
 * later ones are refused, and the file still ends well with what was accepted before. A file has
 * its name only when it is whole and on disk (hdf5/file.h).
 *
 * Cost:      one write of the image from where the stage left it; no copy, unless it is assembled.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/log.h"
#include "hdf5/file.h"
#include "sink/mosaic.h"
#include "sink/nexus/account.h"
#include "sink/nexus/cxi_peaks.h"
#include "sink/nexus/nxmx.h"
#include "sink/nexus/results.h"
#include "sink/nexus/sparse_frames.h"
#include "sink/nexus/turns.h"

#ifndef SL_VERSION
#define SL_VERSION "unknown"
#endif

enum { PATH_BYTES = 1024, METADATA_BYTES = 128 << 10 };
enum { MODULES, ASSEMBLED, NONE }; /* the choices of `image` */

struct nexus {
	char path[PATH_BYTES], dataset[SL_NAME_BYTES], instrument[64], source[64], sample[64];
	uint32_t image; /* of the choices */

	const struct sl_env_metadata *const *metadata; /* as the environment has them in the end */
	struct sl_h5 *file;
	struct sl_account account;
	struct sl_mosaic mosaic; /* when assembled */
	struct sl_results results;
	struct sl_cxi_peaks peaks;
	struct sl_sparse_frames sparse;
	struct sl_turns turns;
	struct sl_h5_series *images, *number, *timestamp, *sequence, *missing;
	uint64_t result_bytes, image_bytes; /* of what stages made; as stored */
	int refusal;			    /* why no more frames are taken; 0: they are */
	uint64_t frames, bytes, refused;
	char where[PATH_BYTES + sizeof(".part")];
};

static const struct sl_option options[] = {
	SL_OUTPUT(struct nexus, path, "run.nxs", "the file; missing folders are created"),
	SL_STRING(struct nexus, dataset, "image", "the stage's result that is stored"),
	SL_CHOICE(struct nexus, image, modules, "modules|assembled|none",
		  "modules one below the other as they were read; one image with the detector's "
		  "gaps, and a mask of them; or results without images"),
	SL_STRING(struct nexus, instrument, "unknown", "name of the instrument, for the file"),
	SL_STRING(struct nexus, source, "unknown", "name of the source, for the file"),
	SL_STRING(struct nexus, sample, "unknown", "name of the sample, for the file"),
	SL_OPTION_END};

/* The result to store, or a message that says which there are. */
static const struct sl_shape *find_result(const struct nexus *nexus, const struct sl_env *env)
{
	char names[SL_RESULTS * (SL_NAME_BYTES + 2)] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < env->results; i++) {
		if (!strcmp(env->result[i].name, nexus->dataset))
			return &env->result[i];
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       env->result[i].name);
	}
	if (env->results)
		sl_error("nexus: no stage makes '%s'; set dataset to what there is: %s",
			 nexus->dataset, names);
	else
		sl_error("nexus: no stage makes an image to store: add one to stages, for example "
			 "'- correct:'");
	return NULL;
}

/* Images of any rank become two-dimensional: what precedes the columns is rows. Without images it
 * is the modules, one below the other, that results are about. */
static void describe(const struct nexus *nexus, const struct sl_env *env,
		     const struct sl_geometry *geometry, const struct sl_shape *shape,
		     struct sl_nxmx *about)
{
	*about = (struct sl_nxmx){
		.geometry = geometry,
		.frame_rate_Hz = env->frame_rate_Hz,
		.height = geometry->modules * geometry->rows,
		.width = geometry->columns,
		.dtype = shape ? shape->dtype : geometry->dtype,
		.counts = shape && shape->dtype == geometry->dtype && shape->dtype <= SL_U32 &&
			  !sl_calibration_has_gains(env->calibration),
		.instrument = nexus->instrument,
		.source = nexus->source,
		.sample = nexus->sample,
		.signal = nexus->image == NONE ? "frame_number" : "data",
		.plot = nexus->image == NONE && sl_sparse_frames_are(env) ? "sparse_frames"
									  : "data"};
	if (nexus->image == MODULES) {
		about->height = 1;
		about->width = shape->rank ? shape->dim[shape->rank - 1] : 1;
		for (uint32_t i = 0; i + 1 < shape->rank; i++)
			about->height *= shape->dim[i];
	}
	if (nexus->image == ASSEMBLED) {
		about->assembled = true;
		about->height = geometry->layout.rows;
		about->width = geometry->layout.columns;
	}
}

/* fabio knows the layout of /entry/sparse_frames by the name of the program that it is from. */
static int open_sparse(struct nexus *nexus, const struct sl_env *env)
{
	if (nexus->image == NONE && sl_sparse_frames_are(env))
		sl_h5_attribute_text(nexus->file, "/", "creator",
				     "pyFAI's layout, written by sluice " SL_VERSION);
	return sl_sparse_frames_open(&nexus->sparse, nexus->file, env);
}

static int begin(struct nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about)
{
	struct sl_h5 *file = nexus->file;
	struct sl_h5_shape number = {.type = SL_H5_U64};
	struct sl_h5_shape image = {sl_nxmx_type(about->dtype), 2, {about->height, about->width}};
	int r;

	sl_nxmx_begin(file, about);
	sl_turns_open(&nexus->turns, file, env);
	sl_h5_write_text(file, "/entry/program_name", "sluice");
	sl_h5_attribute_text(file, "/entry/program_name", "version", SL_VERSION);
	if (nexus->image != NONE)
		sl_h5_series_open(file, "/entry/data/data", &image, 1, &nexus->images);
	sl_h5_series_open(file, "/entry/data/frame_number", &number, SL_ACCOUNT_ROWS,
			  &nexus->number);
	sl_h5_series_open(file, "/entry/data/timestamp", &number, SL_ACCOUNT_ROWS,
			  &nexus->timestamp);
	sl_h5_series_open(file, "/entry/data/sequence", &number, SL_ACCOUNT_ROWS, &nexus->sequence);
	sl_h5_series_open(file, "/entry/data/missing_modules", &number, SL_ACCOUNT_ROWS,
			  &nexus->missing);
	sl_h5_attribute_text(file, "/entry/data/missing_modules", "long_name",
			     "a bit per module: its pixels are a fill");
	r = sl_results_open(&nexus->results, file, env);
	if (!r)
		r = sl_cxi_peaks_open(&nexus->peaks, file, env, nexus->image == ASSEMBLED);
	if (!r)
		r = open_sparse(nexus, env);
	if (!r)
		r = sl_account_open(&nexus->account, file, env);
	if (!r)
		sl_geometry_hdf5_write(file, about->geometry);
	nexus->metadata = &env->metadata;
	sl_h5_keep(file, METADATA_BYTES);
	if (r)
		return r;
	r = sl_h5_reserve(file, 0);
	if (r)
		sl_error("nexus: %s: no space even for an empty file: %s", nexus->path,
			 strerror(-r));
	return r;
}

static int create(struct nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about)
{
	int r = sl_h5_create(nexus->path, &nexus->file);

	if (r)
		return r;
	r = begin(nexus, env, about);
	if (r) {
		sl_h5_abandon(nexus->file);
		nexus->file = NULL;
	}
	return r;
}

static int reads(const void *state, const char *image)
{
	const struct nexus *nexus = state;

	return nexus->image != NONE && !strcmp(image, nexus->dataset);
}

/* Before the run, when it can still be set: of images from files only the user may know it. Of
 * other detectors the geometry is all that there is. */
static void warn_of_missing(const struct sl_env *env)
{
	char lacks[128];

	sl_nxmx_lacks(env->geometry, lacks, sizeof(lacks));
	if (lacks[0] && env->detector && env->detector->files && !env->geometry->items)
		sl_warn("nexus: the file will not be called NXmx, and DIALS will not read it: not "
			"known are %s; set them in section detector",
			lacks);
}

/* NULL where the image is none of the detector's. */
static int make_mask(struct nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about,
		     uint32_t **mask)
{
	const struct sl_geometry *g = about->geometry;

	if (nexus->image == ASSEMBLED)
		*mask = sl_mosaic_mask(&nexus->mosaic, env->calibration);
	else if (nexus->image == MODULES && !g->items && about->width == g->columns &&
		 about->height == g->modules * g->rows)
		*mask = sl_modules_mask(g, env->calibration);
	else
		return 0;
	return *mask ? 0 : -ENOMEM;
}

/* A disk that is slow for a while delays neither other sinks nor what goes back to the front
 * end. */
static int own_thread(const void *state)
{
	(void)state;
	return sl_h5_is_threadsafe();
}

static int open_nexus(void *state, const struct sl_env *env)
{
	struct nexus *nexus = state;
	const struct sl_shape *shape = nexus->image == NONE ? NULL : find_result(nexus, env);
	struct sl_geometry geometry = *env->geometry;
	struct sl_nxmx about;
	uint32_t *mask = NULL;
	int r = 0;

	nexus->refusal = -EINVAL; /* until it is open */
	if (!shape && nexus->image != NONE)
		return -EINVAL;
	sl_layout_resolve(env->geometry, &geometry.layout);
	describe(nexus, env, &geometry, shape, &about);
	if (shape) {
		nexus->result_bytes = sl_shape_bytes(shape);
		nexus->image_bytes = (uint64_t)about.height * about.width *
				     sl_dtype_bytes(shape->dtype);
	}
	warn_of_missing(env);
	if (nexus->image == ASSEMBLED)
		r = sl_mosaic_open(&nexus->mosaic, env, shape, "nexus");
	if (!r)
		r = make_mask(nexus, env, &about, &mask);
	about.mask = mask;
	if (!r)
		r = create(nexus, env, &about);
	free(mask);
	if (r)
		return r;
	snprintf(nexus->where, sizeof(nexus->where), "%s", nexus->path);
	nexus->refusal = 0;
	return 0;
}

/* From now on nothing more is taken. */
static int refuse(struct nexus *nexus, const struct sl_frame *frame, int why)
{
	const char *hint = why == -EFBIG    ? "raise the limit (ulimit -f)"
			   : why == -EINVAL ? "this is an error in the program"
			   : why == -ENOSPC || why == -EDQUOT
				   ? "free some space or set path to another file system"
				   : "see the messages above";

	sl_error("nexus: %s: cannot take frame %" PRIu64 ": %s. It and all later frames are "
		 "refused; the %" PRIu64 " images before it are kept. To do: %s",
		 nexus->path, frame->number, strerror(-why), nexus->frames, hint);
	nexus->refusal = why;
	nexus->refused++;
	return why;
}

/* The image to store, or NULL: it is not what open() was told of. */
static const struct sl_array *image_of(const struct nexus *nexus, struct sl_frame *frame)
{
	const struct sl_array *image = sl_frame_result(frame, nexus->dataset);

	return image && image->host && sl_shape_bytes(&image->shape) == nexus->result_bytes ? image
											    : NULL;
}

static void append(struct nexus *nexus, const struct sl_frame *frame, const struct sl_array *image)
{
	if (image)
		sl_h5_series_append(
			nexus->images,
			nexus->image == ASSEMBLED
				? sl_mosaic_assemble(&nexus->mosaic, image->host, frame->missing)
				: image->host);
	sl_results_append(&nexus->results, frame);
	sl_cxi_peaks_append(&nexus->peaks, frame);
	sl_sparse_frames_append(&nexus->sparse, frame);
	sl_turns_append(&nexus->turns, frame);
	sl_h5_series_append(nexus->number, &frame->number);
	sl_h5_series_append(nexus->timestamp, &frame->timestamp);
	sl_h5_series_append(nexus->sequence, &frame->sequence);
	sl_h5_series_append(nexus->missing, &frame->missing);
}

static int put(void *state, struct sl_frame *frame)
{
	struct nexus *nexus = state;
	const struct sl_array *image = NULL;
	bool kept = sl_account_kept(frame);
	int r;

	if (nexus->refusal) {
		nexus->refused++;
		return nexus->refusal;
	}
	if (kept && nexus->image != NONE) {
		image = image_of(nexus, frame);
		if (!image)
			return refuse(nexus, frame, -EINVAL);
	}
	r = sl_h5_reserve(nexus->file,
			  kept ? nexus->image_bytes + nexus->results.bytes + nexus->peaks.bytes
			       : 0);
	if (r)
		return refuse(nexus, frame, r);
	if (kept)
		append(nexus, frame, image);
	r = sl_account_add(&nexus->account, frame, kept ? (int64_t)nexus->frames : -1);
	if (r)
		return refuse(nexus, frame, r);
	if (kept) {
		nexus->frames++;
		nexus->bytes += nexus->image_bytes;
	}
	return 0;
}

#define METADATA "/entry/sluice/metadata"

static void write_one(void *to, const char *key, const char *value)
{
	char path[sizeof(METADATA) + 128];

	snprintf(path, sizeof(path), METADATA "/%s", key);
	sl_h5_write_text(to, path, value);
}

static void write_metadata(struct nexus *nexus)
{
	const struct sl_env_metadata *metadata = *nexus->metadata;

	if (!metadata)
		return;
	sl_h5_group(nexus->file, METADATA, "NXcollection");
	metadata->each(metadata->arg, write_one, nexus->file);
}

static int close_nexus(void *state, const struct sl_status *status)
{
	struct nexus *nexus = state;
	int r = 0, finished;

	/* The run never began: what an earlier one left under this name is better. */
	if (nexus->file && !status) {
		sl_h5_abandon(nexus->file);
		nexus->file = NULL;
	}
	/* Without a file nothing was accepted, so nothing is unsafe. */
	if (nexus->file) {
		sl_nxmx_end(nexus->file, nexus->frames);
		write_metadata(nexus);
		r = sl_account_end(&nexus->account, status, nexus->refused);
		finished = sl_h5_finish(nexus->file);
		r = r ? r : finished;
		nexus->file = NULL;
		if (finished)
			snprintf(nexus->where, sizeof(nexus->where), "%s.part", nexus->path);
	}
	sl_account_close(&nexus->account);
	sl_results_close(&nexus->results);
	sl_cxi_peaks_close(&nexus->peaks);
	sl_mosaic_close(&nexus->mosaic);
	return r;
}

static const char *where(const void *state)
{
	return ((const struct nexus *)state)->where;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct nexus *nexus = state;

	figure(arg, "frames", nexus->frames, 0);
	figure(arg, "bytes", nexus->bytes, 0);
	figure(arg, "frames_refused", nexus->refused, 1);
}

static uint32_t wants_more(const void *state)
{
	return strcmp(((const struct nexus *)state)->dataset, "raw") == 0 ? SL_WANT_RAW : 0;
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	each(arg, SL_FILE_WRITE, ((const struct nexus *)state)->path);
}

const struct sl_sink sl_sink_nexus = {
	.name = "nexus",
	.doc = "writes kept images and a row about every frame to a NeXus file (HDF5, NXmx)",
	.state_bytes = sizeof(struct nexus),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = own_thread,
	.open = open_nexus,
	.put = put,
	.close = close_nexus,
	.where = where,
	.figures = figures,
	.files = files,
};
