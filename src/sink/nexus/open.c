/* open.c - the beginning of a file: what is checked, what is written before the first frame. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/rolled/rolled.h"
#include "sink/nexus/nexus.h"
#include "sink/nexus/nxmx.h"
#include "sink/nexus/state.h"

#ifndef SL_VERSION
#define SL_VERSION "unknown"
#endif

/* Of auto: packing takes about as long as receiving, and the unit needs most cores. */
enum { CORES_PER_WORKER = 4, AUTO_WORKERS_MOST = 8 };

const struct sl_option sl_nexus_options[] = {
	SL_OUTPUT(struct sl_nexus, path, "run.nxs",
		  "the file; missing folders are created; {run}, {date}, {time}, {transfer} and "
		  "{sample} are replaced"),
	SL_STRING(struct sl_nexus, dataset, "image", "the stage's result that is stored"),
	SL_CHOICE(struct sl_nexus, image, modules, "modules|assembled|none",
		  "modules one below the other as they were read; one image with the detector's "
		  "gaps, and a mask of them; or results without images"),
	SL_CHOICE(struct sl_nexus, results, all, "all|kept",
		  "frames whose results (peaks, profiles, scores; not images) are stored: all that "
		  "went through the stages, or those that are kept"),
	SL_CHOICE(
		struct sl_nexus, compression, bslz4, "bslz4|bszstd|lz4|none",
		"how images are packed: bitshuffle with LZ4 or with Zstandard, LZ4 alone, or not"),
	SL_U32(struct sl_nexus, workers, 0, 0, SL_SINK_WORKERS, "threads",
	       "that pack images; 0: one for every four cores, at least one"),
	SL_U32(struct sl_nexus, frames_per_file, 1000, 0, 1000000, "images",
	       "in each data file beside the file that path names; 0: all in that one, which a "
	       "killed receiver then leaves unreadable"),
	SL_F64(struct sl_nexus, flush_s, 1, 0.01, 3600, "s",
	       "what is older than this survives a killed receiver; with frames_per_file"),
	SL_BOOL(struct sl_nexus, overwrite, false,
		"replace a file that is at path already, and the data files that belong to it"),
	SL_BOOL(struct sl_nexus, audit, true,
		"write checksums and a hash tree of all frames, so that 'sluice audit' can prove "
		"that nothing is missing or changed"),
	SL_ON_SLOW(struct sl_nexus, on_slow),
	SL_REQUIRED(struct sl_nexus, required),
	SL_STRING(struct sl_nexus, instrument, SL_NEXUS_UNKNOWN,
		  "name of the instrument, where section metadata has none"),
	SL_STRING(struct sl_nexus, source, SL_NEXUS_UNKNOWN, "name of the source, likewise"),
	SL_STRING(struct sl_nexus, sample, SL_NEXUS_UNKNOWN, "name of the sample, likewise"),
	SL_STRING(struct sl_nexus, group, "",
		  "group of the file and its data files, of which this user is a member; empty: as "
		  "the system makes them"),
	SL_STRING(struct sl_nexus, mode, "",
		  "who may read and write them, octal, as \"0640\"; empty: by the umask"),
	SL_OPTION_END};

/* The result to store, or a message that says which there are. */
static const struct sl_shape *find_result(const struct sl_nexus *nexus, const struct sl_env *env)
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

/* The group that viewers show first. */
static const char *plot_of(const struct sl_nexus *nexus, const struct sl_env *env)
{
	const char *profile = sl_profiles_plot(env);

	return nexus->image != SL_NEXUS_NONE ? "data"
	       : sl_sparse_frames_are(env)   ? "sparse_frames"
	       : profile		     ? profile
					     : "hits";
}

/* Images of any rank become two-dimensional: what precedes the columns is rows. Without images it
 * is the modules, one below the other, that results are about. */
static void describe(const struct sl_nexus *nexus, const struct sl_env *env,
		     const struct sl_geometry *geometry, const struct sl_shape *shape,
		     struct sl_nxmx *about)
{
	const struct sl_metadata_known *known = &nexus->facts.known;

	*about = (struct sl_nxmx){
		.geometry = geometry,
		.frame_rate_Hz = env->frame_rate_Hz,
		.began_unix_ns = env->began_unix_ns,
		.height = geometry->modules * geometry->rows,
		.width = geometry->columns,
		.dtype = shape ? shape->dtype : geometry->dtype,
		.counts = shape && shape->dtype == geometry->dtype && shape->dtype <= SL_U32 &&
			  !sl_calibration_has_gains(env->calibration),
		.instrument = known->instrument[0] ? known->instrument : nexus->instrument,
		.source = known->source[0] ? known->source : nexus->source,
		.sample = known->sample[0] ? known->sample : nexus->sample,
		.signal = nexus->image == SL_NEXUS_NONE ? "frame_number" : "data",
		.plot = plot_of(nexus, env)};
	if (nexus->image == SL_NEXUS_MODULES) {
		about->height = 1;
		about->width = shape->rank ? shape->dim[shape->rank - 1] : 1;
		for (uint32_t i = 0; i + 1 < shape->rank; i++)
			about->height *= shape->dim[i];
	}
	if (nexus->image == SL_NEXUS_ASSEMBLED) {
		about->assembled = true;
		about->height = geometry->layout.rows;
		about->width = geometry->layout.columns;
	}
}

/* fabio knows the layout of /entry/sparse_frames by the name of the program that it is from. */
static int open_sparse(struct sl_nexus *nexus, const struct sl_env *env)
{
	if (nexus->image == SL_NEXUS_NONE && sl_sparse_frames_are(env))
		sl_h5_attribute_text(nexus->file, "/", "creator",
				     "pyFAI's layout, written by sluice " SL_VERSION);
	return sl_sparse_frames_open(&nexus->sparse, nexus->file, env);
}

static enum sl_codec codec_of(const struct sl_nexus *nexus)
{
	static const enum sl_codec codecs[] = {SL_CODEC_BSLZ4, SL_CODEC_BSZSTD, SL_CODEC_LZ4,
					       SL_CODEC_NONE};

	return nexus->image == SL_NEXUS_NONE ? SL_CODEC_NONE : codecs[nexus->compression];
}

static int begin(struct sl_nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about)
{
	struct sl_h5 *file = nexus->file;
	struct sl_h5_shape number = {.type = SL_H5_U64};
	struct sl_h5_shape image = {sl_nxmx_type(about->dtype), 2, {about->height, about->width}};
	int r;

	nexus->env = env;
	sl_nxmx_begin(file, about);
	sl_turns_open(&nexus->turns, file, env);
	sl_h5_write_text(file, "/entry/program_name", "sluice");
	sl_h5_attribute_text(file, "/entry/program_name", "version", SL_VERSION);
	if (nexus->image != SL_NEXUS_NONE)
		sl_h5_series_open_packed(file, "/entry/data/data", &image, codec_of(nexus), 1,
					 &nexus->images);
	sl_h5_series_open(file, "/entry/data/frame_number", &number, SL_ACCOUNT_ROWS,
			  &nexus->number);
	sl_h5_series_open(file, "/entry/data/timestamp", &number, SL_ACCOUNT_ROWS,
			  &nexus->timestamp);
	sl_h5_series_open(file, "/entry/data/sequence", &number, SL_ACCOUNT_ROWS, &nexus->sequence);
	sl_h5_series_open(file, "/entry/data/missing_modules", &number, SL_ACCOUNT_ROWS,
			  &nexus->missing);
	sl_h5_attribute_text(file, "/entry/data/missing_modules", "long_name",
			     "a bit per module: its pixels are a fill");
	sl_hits_open(&nexus->hits, file);
	r = sl_results_open(&nexus->found, file, env, nexus->results == SL_NEXUS_ALL);
	if (!r)
		sl_results_open_others(file, env);
	if (!r)
		r = sl_cxi_peaks_open(&nexus->peaks, file, env, nexus->image == SL_NEXUS_ASSEMBLED);
	if (!r)
		r = open_sparse(nexus, env);
	if (!r)
		r = sl_account_open(&nexus->account, file, env);
	if (!r)
		sl_geometry_hdf5_write(file, about->geometry);
	if (!r && nexus->audit)
		r = sl_nexus_audit_open(&nexus->leaves, file, env, nexus->dataset,
					nexus->image == SL_NEXUS_NONE	     ? "none"
					: nexus->image == SL_NEXUS_ASSEMBLED ? "assembled"
									     : "modules");
	nexus->rebuilds = env->began_unix_ns != 0;
	if (nexus->rebuild.cut)
		sl_h5_write_text(file, "/entry/sluice/cut", nexus->rebuild.cut);
	sl_facts_begin(&nexus->facts, file);
	sl_h5_write_text(file, SL_NEXUS_STATE, "writing");
	sl_h5_keep(file, SL_FACTS_BYTES);
	if (!r)
		r = sl_h5_status(file);
	if (r)
		return r;
	r = sl_h5_reserve(file, 0);
	if (r)
		sl_error("nexus: %s: no space even for an empty file: %s", nexus->path,
			 strerror(-r));
	return r ? r : sl_h5_rows_begin(file);
}

/* Not an answer for ever: a file that appears after this look is not replaced either. */
static int refuse_overwriting(const struct sl_nexus *nexus)
{
	struct stat st;

	if (nexus->overwrite || lstat(nexus->path, &st) || !S_ISREG(st.st_mode))
		return 0;
	sl_error("nexus: %s exists: move it away, choose another path, or set overwrite: true",
		 nexus->path);
	return -EEXIST;
}

static int create(struct sl_nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about)
{
	struct sl_file_access access;
	int r = refuse_overwriting(nexus);

	if (!r)
		r = sl_file_access_read("nexus", nexus->group, nexus->mode, &access);
	if (!r)
		r = nexus->frames_per_file
			    ? nexus->rebuild.file_set
				      ? sl_h5_resume_rolled(nexus->path, nexus->overwrite,
							    nexus->rebuild.file_set,
							    nexus->rebuild.kept_files, &nexus->file)
				      : sl_h5_create_rolled(nexus->path, nexus->overwrite,
							    &nexus->file)
			    : sl_h5_create_single(nexus->path, &nexus->file);
	if (r)
		return r;
	r = sl_h5_set_access(nexus->file, &access);
	if (!r)
		r = begin(nexus, env, about);
	if (r) {
		sl_h5_abandon(nexus->file);
		nexus->file = NULL;
	}
	return r;
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
static int make_mask(struct sl_nexus *nexus, const struct sl_env *env, const struct sl_nxmx *about,
		     uint32_t **mask)
{
	const struct sl_geometry *g = about->geometry;

	if (nexus->image == SL_NEXUS_ASSEMBLED)
		*mask = sl_mosaic_mask(&nexus->mosaic, env->calibration);
	else if (nexus->image == SL_NEXUS_MODULES && !g->items && about->width == g->columns &&
		 about->height == g->modules * g->rows)
		*mask = sl_modules_mask(g, env->calibration);
	else
		return 0;
	return *mask ? 0 : -ENOMEM;
}

/* A disk that is slow for a while delays neither other sinks nor what goes back to the front
 * end. */
int sl_nexus_own_thread(const void *state)
{
	(void)state;
	return sl_h5_is_threadsafe();
}

/* Threads for images that take work; those that are stored as they lie need none. */
unsigned sl_nexus_workers(const void *state)
{
	const struct sl_nexus *nexus = state;
	long cores = sysconf(_SC_NPROCESSORS_ONLN) / CORES_PER_WORKER;

	if (nexus->image == SL_NEXUS_NONE ||
	    (codec_of(nexus) == SL_CODEC_NONE && nexus->image == SL_NEXUS_MODULES))
		return 0;
	if (nexus->workers)
		return nexus->workers;
	return cores < 1 ? 1 : cores > AUTO_WORKERS_MOST ? AUTO_WORKERS_MOST : (unsigned)cores;
}

static int open_images(struct sl_nexus *nexus, const struct sl_shape *shape)
{
	const struct sl_images_options o = {
		.codec = codec_of(nexus),
		.mosaic = nexus->image == SL_NEXUS_ASSEMBLED ? &nexus->mosaic : NULL,
		.dtype = shape->dtype,
		.bytes = nexus->image_bytes,
		.slots = sl_sink_slots(sl_nexus_workers(nexus)),
		.sum = nexus->audit};

	return sl_images_open(&nexus->ready, &o);
}

static int open_facts(struct sl_nexus *nexus, const struct sl_env *env)
{
	nexus->facts.instrument = nexus->instrument;
	nexus->facts.source = nexus->source;
	nexus->facts.sample = nexus->sample;
	return sl_facts_open(&nexus->facts, env);
}

int sl_nexus_open(void *state, const struct sl_env *env)
{
	struct sl_nexus *nexus = state;
	const struct sl_shape *shape = nexus->image == SL_NEXUS_NONE ? NULL
								     : find_result(nexus, env);
	struct sl_geometry geometry = *env->geometry;
	struct sl_nxmx about;
	uint32_t *mask = NULL;
	int r = 0;

	nexus->refusal = -EINVAL; /* until it is open */
	if (!shape && nexus->image != SL_NEXUS_NONE)
		return -EINVAL;
	r = open_facts(nexus, env);
	if (r)
		return r;
	sl_layout_resolve(env->geometry, &geometry.layout);
	describe(nexus, env, &geometry, shape, &about);
	if (shape) {
		nexus->result_bytes = sl_shape_bytes(shape);
		nexus->image_bytes = (uint64_t)about.height * about.width *
				     sl_dtype_bytes(shape->dtype);
	}
	warn_of_missing(env);
	if (nexus->image == SL_NEXUS_ASSEMBLED)
		r = sl_mosaic_open(&nexus->mosaic, env, shape, "nexus");
	if (!r)
		r = make_mask(nexus, env, &about, &mask);
	about.mask = mask;
	if (!r && shape)
		r = open_images(nexus, shape);
	if (!r)
		r = create(nexus, env, &about);
	free(mask);
	if (r)
		return r;
	snprintf(nexus->where, sizeof(nexus->where), "%s", nexus->path);
	nexus->refusal = 0;
	return 0;
}
