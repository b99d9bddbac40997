/* raw.c - frames as they are, as fast as the disk takes them; for `sluice convert` and `sluice
 * cut`.
 *
 * The container (raw/raw.h) has the environment as its head, a chunk for every frame, kept or not,
 * whole or not, and the status of the run as its tail: all that a NeXus file is made of, but for
 * the packing, which comes later (stored_run.h, stored_frame.h, stored_end.h).
 *
 * A rolling buffer (keep_s, keep_bytes) is no promise: what it cannot take is counted and harms no
 * frame, and what comes while the disk is slow is not given to it (on_slow: drop). In any other raw
 * file a frame that is refused is unwritten, and so are all later ones.
 *
 * Threads:   the sink's own.
 * Cost:      one copy and a checksum of what is stored; no packing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sink/raw/raw_sink.h"
#include "sink/raw/stored_end.h"
#include "sink/row.h"

enum {
	CHUNK_BYTES = 512, /* around what is stored */
	PART_BYTES = 64,
	FIXED_BYTES = 1 << 20,
	FILE_BYTES = 1 << 30 /* that the container reserves for a data file, if not told */
};

static int reads(const void *state, const char *image)
{
	return !strcmp(image, ((const struct sl_raw_sink *)state)->dataset);
}

static int own_thread(const void *state)
{
	(void)state;
	return 1;
}

/* Small results of rejected frames have rows, too. */
static uint32_t wants_more(const void *state)
{
	const struct sl_raw_sink *raw = state;

	return SL_WANT_REJECTED_RESULTS | (sl_raw_sink_all(raw) ? SL_WANT_REJECTED_IMAGES : 0u) |
	       (!strcmp(raw->dataset, "raw") ? SL_WANT_RAW : 0u);
}

/* Stages make no image of a dark frame, except that raw pixels are one. */
static bool stores_image(const struct sl_raw_sink *raw, const struct sl_frame *frame)
{
	bool dark = frame->flags & SL_FRAME_DARK;

	/* No results: on_slow has left it out. */
	if (raw->choice.image < 0 || !sl_frame_goes_on(frame) || !frame->results)
		return false;
	if (sl_row_kept(frame))
		return true;
	return raw->choice.all && (!dark || !strcmp(raw->dataset, "raw"));
}

/* The image is what open() was told of. */
static bool has_image(const struct sl_raw_sink *raw, const struct sl_frame *frame)
{
	uint32_t i = (uint32_t)raw->choice.image;

	return i < frame->results && frame->result[i].host &&
	       sl_shape_bytes(&frame->result[i].shape) == sl_shape_bytes(&raw->env->result[i]);
}

static int refuse(struct sl_raw_sink *raw, const struct sl_frame *frame, int why)
{
	bool rolls = sl_raw_sink_rolls(raw);

	if (!raw->refused && rolls)
		sl_warn("raw: %s: frame %" PRIu64 " is not in the rolling buffer: %s. The run goes "
			"on without it; frames_refused counts such frames",
			raw->path, frame->number, strerror(-why));
	else if (!raw->refused)
		sl_error("raw: %s: cannot take frame %" PRIu64 ": %s. It and all later frames are "
			 "refused; the %" PRIu64 " frames before it are kept. To do: %s",
			 raw->path, frame->number, strerror(-why), raw->rows,
			 why == -EFBIG ? "raise the limit (ulimit -f)"
			 : why == -ENOSPC || why == -EDQUOT
				 ? "free some space or set path to another file system"
				 : "see the messages above");
	raw->refused++;
	if (rolls)
		return 0;
	raw->refusal = why;
	return why;
}

static int put(void *state, struct sl_frame *frame)
{
	struct sl_raw_sink *raw = state;
	struct iovec part[SL_FRAME_PARTS];
	bool image = stores_image(raw, frame);
	struct sl_raw_key key = {
		.sequence = frame->sequence,
		.number = frame->number,
		.timestamp = frame->timestamp,
		/* Wall clock that does not jump. */
		.arrived_ns = raw->began_unix_ns + (sl_clock_ns() - raw->began_ns),
		.flags = frame->flags,
	};
	unsigned parts;
	int r;

	if (raw->refusal) {
		raw->refused++;
		return raw->refusal;
	}
	if (image && !has_image(raw, frame))
		return refuse(raw, frame, -EINVAL);
	parts = sl_stored_frame_write(raw->env, &raw->choice, frame, image, &raw->room, part);
	r = sl_raw_append(raw->writer, &key, part, parts);
	if (r)
		return refuse(raw, frame, r);
	if (!raw->rows) {
		raw->first = frame->sequence;
		sl_raw_sink_end_old(raw, false);
	}
	raw->rows++;
	raw->images += image;
	return 0;
}

static const char *where(const void *state)
{
	const struct sl_raw_sink *raw = state;

	return raw->where[0] ? raw->where : raw->path;
}

/* What the run would be told of its end, if it were asked now. */
static int finish(struct sl_raw_sink *raw, const struct sl_status *status)
{
	static const char no_memory[] = "raw: no memory for the end of %s; it is as if the run had "
					"been killed: sluice convert still reads it";
	struct sl_bytes tail = {.used = 0};
	struct sl_status end = *status;
	int r;

	if (!end.ended_unix_ns)
		end.ended_unix_ns = sl_clock_unix_ns();
	r = sl_stored_end_write(&end, where(raw), raw->env->metadata, &tail);
	sl_raw_flush(raw->writer); /* an error is finish()'s to return */
	sl_raw_counts(raw->writer, &raw->last);
	if (r) {
		sl_error(no_memory, raw->path);
		sl_raw_abandon(raw->writer);
	} else {
		r = sl_raw_finish(raw->writer, tail.data, tail.used);
	}
	raw->last.durable = r ? 0 : raw->rows;
	sl_bytes_free(&tail);
	return r;
}

static int close_raw(void *state, const struct sl_status *status)
{
	struct sl_raw_sink *raw = state;
	int r = 0;

	if (raw->writer && !status) {
		sl_raw_discard(raw->writer);
		sl_raw_sink_end_old(raw, true);
	} else if (raw->writer) {
		r = finish(raw, status);
	}
	raw->writer = NULL;
	sl_raw_sink_end_old(raw, false);
	sl_frame_room_close(&raw->room);
	return r;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct sl_raw_sink *raw = state;
	struct sl_raw_counts counts = raw->last;

	if (raw->writer)
		sl_raw_counts(raw->writer, &counts);
	figure(arg, "frames", raw->images, 0);
	figure(arg, "bytes", counts.bytes, 0);
	figure(arg, "bytes_stored", counts.written_bytes, 0);
	figure(arg, "rows_durable", counts.durable, 0);
	figure(arg, "rows_removed", counts.removed_chunks, 0);
	figure(arg, "disk_waits", counts.stalls, 0);
	figure(arg, "frames_refused", raw->refused, !sl_raw_sink_rolls(raw));
}

static enum sl_on_slow on_slow(const void *state)
{
	return sl_raw_sink_on_slow(state);
}

/* A rolling buffer promises nothing. */
static int required(const void *state)
{
	const struct sl_raw_sink *raw = state;

	return raw->required && !sl_raw_sink_rolls(raw);
}

/* Rows are of consecutive sequences. */
static uint64_t durable(const void *state)
{
	const struct sl_raw_sink *raw = state;
	struct sl_raw_counts counts = raw->last;

	if (raw->writer)
		sl_raw_counts(raw->writer, &counts);
	return counts.durable ? raw->first + counts.durable : 0;
}

/* A rolling buffer takes the room that there is. Of data files in other folders nothing is said:
 * only one file system can be named here. */
static void space(const void *state, struct sl_sink_space *space)
{
	const struct sl_raw_sink *raw = state;

	if (!raw->writer || sl_raw_sink_rolls(raw) || raw->folders[0])
		return;
	space->path = raw->path;
	space->fixed_bytes = FIXED_BYTES;
	space->held_bytes = raw->file_bytes ? raw->file_bytes : FILE_BYTES;
	space->frame_bytes = raw->room.head_bytes + CHUNK_BYTES;
	for (uint32_t i = 0; i < raw->env->results; i++)
		if (!raw->env->result[i].image || (int32_t)i == raw->choice.image)
			space->frame_bytes += sl_shape_bytes(&raw->env->result[i]) + PART_BYTES;
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	each(arg, SL_FILE_WRITE, ((const struct sl_raw_sink *)state)->path);
}

const struct sl_sink sl_sink_raw = {
	.name = "raw",
	.doc = "writes frames as they are, at the speed of the disk, for sluice convert; or keeps "
	       "the last seconds, for sluice cut",
	.state_bytes = sizeof(struct sl_raw_sink),
	.options = sl_raw_sink_options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = own_thread,
	.open = sl_raw_sink_open,
	.put = put,
	.close = close_raw,
	.where = where,
	.figures = figures,
	.files = files,
	.space = space,
	.on_slow = on_slow,
	.required = required,
	.durable = durable,
};
