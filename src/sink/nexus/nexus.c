/* nexus.c - kept images in an NXmx file, with a row about every frame and the ledger.
 *
 *   /entry/data              data [n, rows, columns], frame_number, timestamp, sequence,
 *                            missing_modules [n]
 *   /entry/results           what else stages made, of kept and of rejected frames (results.c)
 *   /entry/profile, cake     intensity over q or angle (profiles.c)
 *   /entry/hits, scores      hit rate over the run, score of every frame (hits.c)
 *   /entry/peaks             peaks in pixels of the images, as CrystFEL reads them (cxi_peaks.c)
 *   /entry/sparse_frames     lists of pixels as pyFAI writes them (sparse_frames.c)
 *   /entry/instrument, ...   NXmx (nxmx.c)
 *   /entry/title, user, ...  what users say of the run (facts.c)
 *   /entry/sluice            frames: one row per sequence; ledger; link, guard, proof (account.c)
 *   /entry/sluice/audit      a hash tree over these rows, images and results (audit.c)
 *
 * The same data over another link gives the same datasets, but for /entry/sluice/{link, guard,
 * proof, experiment, audit/run_id}, which describe the run, and the wall-clock fields that nxmx.c
 * lists.
 *
 * Series of rows are in data files beside this one, frames_per_file images each, which a killed run
 * leaves readable up to the last flush (hdf5/rolled/rolled.h); or all in one file (frames_per_file
 * 0), which has its name only when it is whole and on disk (hdf5/file.h).
 *
 * A full disk: space is reserved before a frame is taken. When there is none, this frame and all
 * later ones are refused, and the file still ends well with what was accepted before.
 *
 * Threads:   workers assemble and pack images; the sink's own thread does all that is HDF5's.
 *
 * Cost:      one write of the image from where the stage left it, where it is not packed or
 *            assembled. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "hdf5/rolled/rolled.h"
#include "sink/nexus/left_out.h"
#include "sink/nexus/nexus.h"
#include "sink/nexus/nxmx.h"
#include "sink/nexus/state.h"

static int reads(const void *state, const char *image)
{
	const struct sl_nexus *nexus = state;

	return nexus->image != SL_NEXUS_NONE && !strcmp(image, nexus->dataset);
}

/* From now on nothing more is taken. */
static int refuse(struct sl_nexus *nexus, const struct sl_frame *frame, int why)
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
static const struct sl_array *image_of(const struct sl_nexus *nexus, struct sl_frame *frame)
{
	const struct sl_array *image = sl_frame_result(frame, nexus->dataset);

	return image && image->host && sl_shape_bytes(&image->shape) == nexus->result_bytes ? image
											    : NULL;
}

/* Frames whose images and results are stored. */
static bool takes(const struct sl_nexus *nexus, struct sl_frame *frame)
{
	return sl_account_kept(frame) || (nexus->rebuild.all_images &&
					  nexus->image != SL_NEXUS_NONE && image_of(nexus, frame));
}

/* Images that are kept, on any worker. */
static void prepare(void *state, unsigned slot, struct sl_frame *frame)
{
	struct sl_nexus *nexus = state;
	const struct sl_array *image = NULL;

	if (nexus->image != SL_NEXUS_NONE && takes(nexus, frame))
		image = image_of(nexus, frame);
	if (image)
		sl_images_make(&nexus->ready, slot, image->host, frame->missing);
}

/* Lists of an image. Without results, as of a dark frame, stages have left in them what they had
 * found in another frame. */
static void append_lists(struct sl_nexus *nexus, const struct sl_frame *frame, bool has_results)
{
	struct sl_frame none = {.results = 0};

	if (!has_results && nexus->found.sequence) {
		none.results = frame->results; /* all of them with 0 rows */
		frame = &none;
		sl_results_append_none(&nexus->found);
	}
	sl_cxi_peaks_append(&nexus->peaks, frame);
	sl_sparse_frames_append(&nexus->sparse, frame);
}

static void append(struct sl_nexus *nexus, const struct sl_frame *frame, const void *image,
		   size_t bytes, bool has_results)
{
	if (image)
		sl_h5_series_append_packed(nexus->images, image, bytes);
	append_lists(nexus, frame, has_results);
	sl_turns_append(&nexus->turns, frame);
	sl_h5_series_append(nexus->number, &frame->number);
	sl_h5_series_append(nexus->timestamp, &frame->timestamp);
	sl_h5_series_append(nexus->sequence, &frame->sequence);
	sl_h5_series_append(nexus->missing, &frame->missing);
}

/* The mark is a number of rows: frames of any kind, in order. */
static int flush(struct sl_nexus *nexus, uint64_t now_ns)
{
	if (nexus->rows == nexus->flushed_rows ||
	    (double)(now_ns - nexus->flushed_ns) < nexus->flush_s * 1e9)
		return 0;
	nexus->flushed_ns = now_ns;
	nexus->flushed_rows = nexus->rows;
	return sl_h5_flush(nexus->file, nexus->rows);
}

/* Where a kept frame begins a data file. */
static int roll(struct sl_nexus *nexus)
{
	int r;

	if (!nexus->frames_per_file || nexus->in_file < nexus->frames_per_file)
		return 0;
	nexus->in_file = 0;
	r = sl_h5_roll(nexus->file);
	return r ? r : sl_nexus_audit_roll(&nexus->leaves);
}

/* Room for the frame, in the data file that it goes to. */
static int make_room(struct sl_nexus *nexus, bool kept, bool has_results, uint64_t bytes)
{
	int r = kept ? roll(nexus) : 0;

	return r ? r
		 : sl_h5_reserve(nexus->file, (kept ? bytes + nexus->peaks.bytes : 0) +
						      (has_results ? nexus->found.bytes : 0));
}

/* The row about the frame, and its results. */
static int add_row(struct sl_nexus *nexus, const struct sl_frame *frame, int64_t image,
		   bool has_results)
{
	int64_t result = has_results ? (int64_t)nexus->found.rows : -1;

	if (has_results)
		sl_results_append(&nexus->found, frame, image);
	sl_hits_add(&nexus->hits, frame);
	return sl_account_add(&nexus->account, frame, image, result);
}

static int store(struct sl_nexus *nexus, struct sl_frame *frame, const void *image, uint64_t bytes)
{
	bool kept = takes(nexus, frame);
	bool has_results = sl_results_take(&nexus->found, frame, sl_account_kept(frame));
	int r = make_room(nexus, kept, has_results, bytes);

	if (r)
		return refuse(nexus, frame, r);
	if (kept)
		append(nexus, frame, image, bytes, has_results);
	r = add_row(nexus, frame, kept ? (int64_t)nexus->frames : -1, has_results);
	if (!r && nexus->audit)
		r = sl_nexus_audit_add(&nexus->leaves, frame, &nexus->account,
				       image ? &nexus->image_crc : NULL);
	if (r)
		return refuse(nexus, frame, r);
	nexus->first = nexus->rows ? nexus->first : frame->sequence;
	nexus->rows++;
	if (kept) {
		nexus->frames++;
		nexus->in_file++;
		nexus->bytes += nexus->image_bytes;
		nexus->stored_bytes += bytes;
	}
	r = flush(nexus, sl_clock_ns());
	return r ? refuse(nexus, frame, r) : 0;
}

/* The data file that the next image goes to is kept. */
static bool is_kept_file(const struct sl_nexus *nexus)
{
	uint32_t file = sl_h5_data_files(nexus->file) + (nexus->in_file >= nexus->frames_per_file);

	return nexus->rebuild.kept_files && file <= nexus->rebuild.kept_files;
}

/* Of an image that is in a data file already nothing is written but that it is there. */
static int64_t ready_image(const struct sl_nexus *nexus, unsigned slot, const void **image)
{
	static const uint8_t none[1];

	if (!is_kept_file(nexus))
		return sl_images_get(&nexus->ready, slot, image);
	*image = none;
	return sizeof(none);
}

static int put_prepared(void *state, unsigned slot, struct sl_frame *frame)
{
	struct sl_nexus *nexus = state;
	const void *image = NULL;
	int64_t bytes = 0;

	if (nexus->refusal) {
		nexus->refused++;
		return nexus->refusal;
	}
	if (nexus->image != SL_NEXUS_NONE && takes(nexus, frame)) {
		bytes = image_of(nexus, frame) ? ready_image(nexus, slot, &image) : -EINVAL;
		if (bytes < 0)
			return refuse(nexus, frame, (int)bytes);
		nexus->image_crc = sl_images_crc(&nexus->ready, slot);
	}
	return store(nexus, frame, image, (uint64_t)bytes);
}

static int put(void *state, struct sl_frame *frame)
{
	prepare(state, 0, frame);
	return put_prepared(state, 0, frame);
}

/* No frame has come for a while: what is there becomes safe all the same. */
static void idle(void *state)
{
	struct sl_nexus *nexus = state;

	if (nexus->file && !nexus->refusal)
		flush(nexus, sl_clock_ns());
}

static void free_parts(struct sl_nexus *nexus)
{
	sl_facts_close(&nexus->facts);
	sl_account_close(&nexus->account);
	sl_results_close(&nexus->found);
	sl_cxi_peaks_close(&nexus->peaks);
	sl_images_close(&nexus->ready);
	sl_nexus_audit_close(&nexus->leaves);
}

static int close_nexus(void *state, const struct sl_status *status)
{
	struct sl_nexus *nexus = state;
	int r = 0, finished;

	/* The run never began: what an earlier one left under this name is better. */
	if (nexus->file && !status) {
		sl_h5_abandon(nexus->file);
		nexus->file = NULL;
	}
	/* Without a file nothing was accepted, so nothing is unsafe. */
	if (nexus->file) {
		sl_hits_end(&nexus->hits);
		sl_h5_rows_end(nexus->file);
		sl_turns_end(&nexus->turns, nexus->path);
		sl_profiles_end(nexus->file, nexus->env);
		if (nexus->frames_per_file)
			sl_nexus_link_data(nexus->file, nexus->path, sl_h5_data_files(nexus->file));
		sl_nexus_set_state(nexus->file,
				   nexus->rebuild.state ? nexus->rebuild.state : "complete");
		sl_nxmx_end(nexus->file, nexus->frames,
			    nexus->rebuilds ? status->ended_unix_ns : 0);
		sl_facts_end(&nexus->facts, nexus->file);
		if (nexus->rebuild.recorder)
			sl_left_out_write(nexus->file, nexus->rebuild.recorder,
					  nexus->rebuild.recorded_at, status);
		else
			sl_left_out_write(nexus->file, "nexus", nexus->where, status);
		r = sl_account_end(&nexus->account, status,
				   nexus->refused + nexus->rebuild.refused);
		r = r ? r : sl_nexus_audit_end(&nexus->leaves, nexus->path);
		finished = sl_h5_finish(nexus->file);
		r = r ? r : finished;
		nexus->file = NULL;
		nexus->durable = r ? 0 : nexus->rows;
		if (finished)
			snprintf(nexus->where, sizeof(nexus->where), "%s.part", nexus->path);
	}
	free_parts(nexus);
	return r;
}

void sl_nexus_leave(void *state)
{
	struct sl_nexus *nexus = state;

	if (nexus->file)
		sl_h5_leave(nexus->file);
	nexus->file = NULL;
	free_parts(nexus);
}

const char *sl_nexus_dataset(const void *state)
{
	const struct sl_nexus *nexus = state;

	return nexus->image == SL_NEXUS_NONE ? NULL : nexus->dataset;
}

void sl_nexus_set_rebuild(void *state, const struct sl_nexus_rebuild *rebuild)
{
	((struct sl_nexus *)state)->rebuild = *rebuild;
}

bool sl_nexus_reads_images(const void *state)
{
	return ((const struct sl_nexus *)state)->audit;
}

uint32_t sl_nexus_safe_files(const void *state)
{
	const struct sl_nexus *nexus = state;

	return nexus->file ? sl_h5_data_files_safe(nexus->file) : 0;
}

uint32_t sl_nexus_data_files(const void *state)
{
	const struct sl_nexus *nexus = state;

	return nexus->file ? sl_h5_data_files(nexus->file) : 0;
}

static const char *where(const void *state)
{
	return ((const struct sl_nexus *)state)->where;
}

static uint64_t durable_rows(const struct sl_nexus *nexus)
{
	return nexus->file ? sl_h5_durable(nexus->file) : nexus->durable;
}

/* Rows are of consecutive sequences. */
static uint64_t durable(const void *state)
{
	const struct sl_nexus *nexus = state;
	uint64_t rows = durable_rows(nexus);

	return rows ? nexus->first + rows : 0;
}

static enum sl_on_slow on_slow(const void *state)
{
	return (enum sl_on_slow)((const struct sl_nexus *)state)->on_slow;
}

static int required(const void *state)
{
	return ((const struct sl_nexus *)state)->required;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct sl_nexus *nexus = state;

	figure(arg, "frames", nexus->frames, 0);
	figure(arg, "bytes", nexus->bytes, 0);
	figure(arg, "bytes_stored", nexus->stored_bytes, 0);
	figure(arg, "rows_durable", durable_rows(nexus), 0);
	figure(arg, "frames_refused", nexus->refused, 1);
}

static void texts(const void *state, sl_sink_text *text, void *arg)
{
	const struct sl_nexus *nexus = state;
	char root[SL_HASH_TEXT];

	if (nexus->audit && nexus->leaves.tree.leaves)
		text(arg, "audit_root", sl_nexus_audit_root(&nexus->leaves, root));
}

static uint32_t wants_more(const void *state)
{
	const struct sl_nexus *nexus = state;

	return (strcmp(nexus->dataset, "raw") == 0 ? SL_WANT_RAW : 0u) |
	       (nexus->results == SL_NEXUS_ALL ? SL_WANT_REJECTED_RESULTS : 0u);
}

/* Options of files from before the section `metadata`. */
static const char *fact(const void *state, const char *key)
{
	const struct sl_nexus *nexus = state;
	const char *value = !strcmp(key, "sample")	 ? nexus->sample
			    : !strcmp(key, "instrument") ? nexus->instrument
			    : !strcmp(key, "source")	 ? nexus->source
							 : SL_NEXUS_UNKNOWN;

	return strcmp(value, SL_NEXUS_UNKNOWN) ? value : NULL;
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	each(arg, SL_FILE_WRITE, ((const struct sl_nexus *)state)->path);
}

const struct sl_sink sl_sink_nexus = {
	.name = "nexus",
	.doc = "writes kept images and a row about every frame to a NeXus file (HDF5, NXmx)",
	.state_bytes = sizeof(struct sl_nexus),
	.options = sl_nexus_options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = sl_nexus_own_thread,
	.workers = sl_nexus_workers,
	.prepare = prepare,
	.put_prepared = put_prepared,
	.idle = idle,
	.open = sl_nexus_open,
	.put = put,
	.close = close_nexus,
	.where = where,
	.figures = figures,
	.texts = texts,
	.files = files,
	.fact = fact,
	.space = sl_nexus_space,
	.on_slow = on_slow,
	.required = required,
	.durable = durable,
	.numbers_images = 1,
};
