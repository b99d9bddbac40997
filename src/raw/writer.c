/* writer.c - a writer from creation to its end. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/log.h"
#include "raw/private.h"

static const uint64_t FILE_BYTES = UINT64_C(1) << 30, ROLLING_BYTES = 128 << 20,
		      FILE_BYTES_MIN = 64 << 10, FLUSH_NS = 1000000000, TAIL_BYTES = 64 << 10;
enum { BUFFER_BYTES = 1 << 20, BUFFER_BYTES_MAX = 1 << 30, BUFFERS = 32 };

void raw_fail(struct sl_raw_writer *w, int status)
{
	int none = 0;

	atomic_compare_exchange_strong(&w->status, &none, status);
}

static int refuse_option(const char *name, const char *why)
{
	sl_error("raw: %s %s", name, why);
	return -EINVAL;
}

/* So that a window of time or bytes consists of at least RAW_WINDOW_FILES data files; beside them
 * each lane has one that is open, and one that follows. */
static int set_window(struct sl_raw_writer *w)
{
	struct sl_raw_options *o = &w->o;
	uint64_t share = o->keep_bytes / (RAW_WINDOW_FILES + 2 * w->lanes);

	w->period_ns = o->keep_ns ? o->keep_ns / RAW_WINDOW_FILES + 1 : 0;
	if (!o->keep_bytes)
		return 0;
	if (share < FILE_BYTES_MIN)
		return refuse_option("keep_bytes", "is too small: give at least 64 KiB for each of "
						   "8 data files and 2 in each folder");
	if (o->file_bytes > share)
		o->file_bytes = share;
	return 0;
}

static int set_options(struct sl_raw_writer *w, const struct sl_raw_options *options)
{
	struct sl_raw_options *o = &w->o;

	*o = *options;
	w->lanes = o->folders ? o->folders : 1;
	if (!o->file_bytes)
		o->file_bytes = o->keep_ns || o->keep_bytes ? ROLLING_BYTES : FILE_BYTES;
	if (!o->flush_ns)
		o->flush_ns = FLUSH_NS;
	if (!o->tail_bytes)
		o->tail_bytes = TAIL_BYTES;
	if (!o->buffer_bytes)
		o->buffer_bytes = BUFFER_BYTES;
	if (!o->buffers)
		o->buffers = BUFFERS;
	if (o->folders > RAW_FOLDERS)
		return refuse_option("folders", "are too many: at most 64");
	if (o->buffer_bytes % RAW_BLOCK || o->buffer_bytes > BUFFER_BYTES_MAX)
		return refuse_option("buffer_bytes", "must be a multiple of 4096, at most 1 GiB");
	if (o->buffers + w->lanes > RAW_BUFFERS)
		return refuse_option("buffers", "are too many: at most 4096, with the folders");
	if (o->file_bytes < FILE_BYTES_MIN || o->file_bytes > INT64_MAX / 4)
		return refuse_option("file_bytes", "is out of range (at least 64 KiB)");
	if (o->tail_bytes > RAW_BLOB_MAX)
		return refuse_option("tail_bytes", "is too large: at most 4 GiB");
	w->buffers = o->buffers + w->lanes;
	return set_window(w);
}

/* Data files of an earlier run would be in the way sooner or later: better now. */
static int refuse_old_files(const struct sl_raw_writer *w, unsigned lane)
{
	char *first = raw_data_path(w->o.path, w->folder[lane], 1), *slash;
	struct dirent *entry;
	DIR *folder;
	int r = 0;

	if (!first)
		return -ENOMEM;
	slash = strrchr(first, '/');
	if (slash)
		slash[slash == first] = '\0';
	folder = opendir(slash ? first : ".");
	while (folder && !r && (entry = readdir(folder)))
		if (raw_data_number(w->o.path, entry->d_name)) {
			sl_error("%s/%s: is a data file of an earlier run of this name; move it "
				 "away, or choose another path",
				 slash ? first : ".", entry->d_name);
			r = -EEXIST;
		}
	if (folder)
		closedir(folder);
	free(first);
	return r;
}

static int copy_paths(struct sl_raw_writer *w)
{
	const char *const *folder = w->o.folder;
	int r = 0;

	w->o.path = strdup(w->o.path);
	w->o.folder = NULL;
	w->folder = calloc(w->lanes, sizeof(*w->folder));
	if (!w->o.path || !w->folder)
		return -ENOMEM;
	for (unsigned i = 0; i < w->o.folders && !r; i++) {
		r = sl_make_folders(folder[i]); /* that lead to it */
		if (r)
			return r;
		if (mkdir(folder[i], 0777) && errno != EEXIST) {
			r = -errno;
			sl_error("%s: cannot create this folder for data files: %s", folder[i],
				 strerror(-r));
			return r;
		}
		w->folder[i] = realpath(folder[i], NULL); /* readers may be elsewhere */
		if (!w->folder[i]) {
			r = -errno;
			sl_error("%s: cannot use this folder for data files: %s", folder[i],
				 strerror(-r));
		}
	}
	for (unsigned i = 0; i < w->lanes && !r; i++)
		r = refuse_old_files(w, i);
	return r;
}

static int make_buffers(struct sl_raw_writer *w)
{
	size_t bytes = (size_t)w->buffers * w->o.buffer_bytes;
	const struct raw_io_options options = {.buffers = w->buffers,
					       .buffer_bytes = w->o.buffer_bytes,
					       .done = raw_stream_done,
					       .arg = w};
	struct raw_io_options with;

	w->buffer = calloc(w->buffers, sizeof(*w->buffer));
	w->memory = aligned_alloc(RAW_BLOCK, bytes);
	if (!w->buffer || !w->memory)
		return -ENOMEM;
	madvise(w->memory, bytes, MADV_HUGEPAGE);
	memset(w->memory, 0, bytes); /* so that no append waits for memory */
	for (uint32_t i = 0; i < w->buffers; i++) {
		w->buffer[i].write.buffer = i;
		w->buffer[i].write.data = w->memory + (size_t)i * w->o.buffer_bytes;
		w->buffer[i].next = w->free;
		w->free = &w->buffer[i];
	}
	with = options;
	with.memory = w->memory;
	return raw_io_open(&w->io, w->o.plain, &with);
}

static int make_lanes(struct sl_raw_writer *w)
{
	int r = 0;

	w->lane = calloc(w->lanes, sizeof(*w->lane));
	if (!w->lane)
		return -ENOMEM;
	for (unsigned i = 0; i < w->lanes && !r; i++) {
		r = raw_lane_roll(w, &w->lane[i], 0);
		if (raw_is_full(r))
			sl_error("%s: no room for a data file in its folder number %u: %s",
				 w->o.path, i + 1, strerror(-r));
	}
	return r;
}

/* Stops the threads. What was appended is on disk, with indices, unless the disk failed. */
static void stop(struct sl_raw_writer *w)
{
	if (w->thread.running) {
		pthread_mutex_lock(&w->stream);
		for (unsigned i = 0; i < w->lanes; i++)
			raw_lane_end(w, &w->lane[i]);
		pthread_mutex_unlock(&w->stream);
		pthread_mutex_lock(&w->lock);
		w->end = true;
		pthread_cond_signal(&w->work);
		pthread_mutex_unlock(&w->lock);
		sl_thread_join(&w->thread);
	}
}

static void destroy(struct sl_raw_writer *w)
{
	raw_io_close(&w->io);
	raw_window_free(w);
	sl_part_file_leave(&w->run);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->done);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->stream);
	for (unsigned i = 0; w->folder && i < w->lanes; i++)
		free(w->folder[i]);
	free(w->folder);
	free(w->lane);
	free(w->buffer);
	free(w->memory);
	free((char *)w->o.path);
	free(w);
}

/* A writer that did not get as far as its threads: its files go. */
static void undo_create(struct sl_raw_writer *w)
{
	for (unsigned i = 0; w->lane && i < w->lanes; i++)
		if (w->lane[i].file) {
			raw_stream_seal(w, &w->lane[i]);
			pthread_mutex_lock(&w->lock);
			while (w->lane[i].file->in_flight)
				pthread_cond_wait(&w->done, &w->lock);
			pthread_mutex_unlock(&w->lock);
			raw_file_discard(w, w->lane[i].file);
		}
	if (w->run.fd >= 0)
		sl_part_file_discard(&w->run);
	destroy(w);
}

static int init_locks(struct sl_raw_writer *w)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->stream, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->done, NULL);
	pthread_cond_init(&w->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return 0;
}

int sl_raw_create(const struct sl_raw_options *options, const void *head, size_t bytes,
		  struct sl_raw_writer **writer)
{
	struct sl_raw_writer *w;
	int r;

	if (bytes > RAW_BLOB_MAX)
		return -E2BIG;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->run.fd = -1;
	w->full_last = &w->full;
	w->closed_last = &w->closed;
	init_locks(w);
	r = set_options(w, options);
	if (r)
		w->o.path = NULL; /* not a copy yet */
	if (!r)
		r = copy_paths(w);
	if (!r)
		r = raw_run_begin(w, head, bytes);
	if (!r)
		r = make_buffers(w);
	if (!r)
		r = make_lanes(w);
	if (!r)
		r = sl_thread_start(&w->thread, "raw-flush", NULL, raw_flush_main, w);
	if (r)
		undo_create(w);
	else
		*writer = w;
	return r;
}

uint64_t sl_raw_durable(const struct sl_raw_writer *w)
{
	return atomic_load_explicit(&w->durable, memory_order_acquire);
}

void sl_raw_counts(const struct sl_raw_writer *w, struct sl_raw_counts *counts)
{
	*counts = (struct sl_raw_counts){.chunks = atomic_load(&w->chunks),
					 .bytes = atomic_load(&w->bytes),
					 .durable = atomic_load(&w->durable),
					 .lost = atomic_load(&w->lost),
					 .written_bytes = atomic_load(&w->written_bytes),
					 .stalls = atomic_load(&w->stalls),
					 .stalled_ns = atomic_load(&w->stalled_ns),
					 .longest_stall_ns = atomic_load(&w->longest_stall_ns),
					 .files = atomic_load(&w->files),
					 .removed_files = atomic_load(&w->removed_files),
					 .removed_chunks = atomic_load(&w->removed_chunks),
					 .direct = !w->o.cached && !atomic_load(&w->cached),
					 .uring = w->io.kind == &raw_uring};
}

int sl_raw_flush(struct sl_raw_writer *w)
{
	uint64_t mine;

	pthread_mutex_lock(&w->lock);
	mine = ++w->flush_asked;
	pthread_cond_signal(&w->work);
	while (w->flush_done < mine)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
	return atomic_load(&w->status);
}

int sl_raw_finish(struct sl_raw_writer *w, const void *tail, size_t bytes)
{
	int r, status;

	stop(w);
	status = atomic_load(&w->status);
	r = raw_window_check(w);
	status = status ? status : r;
	r = bytes > RAW_BLOB_MAX ? -E2BIG : raw_run_finish(w, tail, bytes);
	destroy(w);
	return status ? status : r;
}

void sl_raw_abandon(struct sl_raw_writer *w)
{
	stop(w);
	destroy(w);
}

void sl_raw_discard(struct sl_raw_writer *w)
{
	stop(w);
	raw_window_discard(w);
	sl_part_file_discard(&w->run);
	destroy(w);
}
