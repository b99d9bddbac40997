/* flush.c - the thread that waits for the disk, so that no append does: it makes what was appended
 * durable, closes full data files, prepares the next ones, and removes those that are too old. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "raw/private.h"

static void prepare_next(struct sl_raw_writer *w, struct raw_lane *lane)
{
	struct raw_file *file = NULL;
	uint64_t need;

	pthread_mutex_lock(&w->lock);
	if (lane->next != RAW_NEXT_ASKED) {
		pthread_mutex_unlock(&w->lock);
		return;
	}
	lane->next = RAW_NEXT_MAKING;
	need = atomic_load(&w->largest);
	pthread_mutex_unlock(&w->lock);
	/* Without it, or with too small a one, the append that needs it makes one, and says why. */
	raw_file_open(w, (uint32_t)(lane - w->lane), need, &file);
	pthread_mutex_lock(&w->lock);
	lane->ready = file;
	lane->next = file ? RAW_NEXT_READY : RAW_NEXT_NONE;
	pthread_cond_broadcast(&w->done);
	pthread_mutex_unlock(&w->lock);
}

static void wait_for_writes(struct sl_raw_writer *w, const struct raw_file *file)
{
	pthread_mutex_lock(&w->lock);
	while (file->in_flight)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/* Full files that wait to be closed. Only this thread makes it less. */
static uint64_t count_full(struct sl_raw_writer *w)
{
	uint64_t files;

	pthread_mutex_lock(&w->lock);
	files = w->closing;
	pthread_mutex_unlock(&w->lock);
	return files;
}

/* The first `files` full files: appends may fill others as fast as these are closed. */
static void close_full(struct sl_raw_writer *w, uint64_t files)
{
	struct raw_closed *closed;
	struct raw_file *file;
	int r;

	for (; files; files--) {
		pthread_mutex_lock(&w->lock);
		file = w->full;
		w->full = file->next;
		if (!w->full)
			w->full_last = &w->full;
		pthread_mutex_unlock(&w->lock);
		wait_for_writes(w, file);
		r = raw_file_close(w, file, &closed);
		if (r)
			raw_fail(w, r);
		if (closed)
			raw_window_close(w, closed);
		raw_window_trim(w);
		pthread_mutex_lock(&w->lock);
		w->closing--;
		w->closes++;
		pthread_cond_broadcast(&w->done);
		pthread_mutex_unlock(&w->lock);
	}
}

static bool is_in_flight(const struct sl_raw_writer *w, uint64_t ticket)
{
	for (uint32_t i = 0; i < w->buffers; i++)
		if (w->buffer[i].ticket && w->buffer[i].ticket <= ticket)
			return true;
	return false;
}

static void wait_for_ticket(struct sl_raw_writer *w, uint64_t ticket)
{
	pthread_mutex_lock(&w->lock);
	while (is_in_flight(w, ticket))
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

static void sync_file(struct sl_raw_writer *w, const struct raw_file *file)
{
	int error = fdatasync(file->disk.fd) ? errno : 0;

	if (!error)
		return;
	sl_error("%s: cannot sync: %s; the run ends with what is on disk", file->disk.path,
		 strerror(error));
	raw_fail(w, -error);
}

/* Everything that was appended by now becomes durable. Files are freed by this thread alone, so
 * those that were open at the seal stay, even if an append has replaced them meanwhile. */
static void flush(struct sl_raw_writer *w)
{
	const struct raw_file *open[RAW_FOLDERS];
	uint64_t target, ticket, full;

	pthread_mutex_lock(&w->stream);
	target = atomic_load(&w->chunks);
	for (unsigned i = 0; i < w->lanes; i++) {
		open[i] = w->lane[i].file;
		if (open[i])
			raw_stream_seal(w, &w->lane[i]);
	}
	pthread_mutex_lock(&w->lock);
	ticket = w->tickets;
	full = w->closing;
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->stream);

	if (target != atomic_load(&w->durable)) {
		wait_for_ticket(w, ticket);
		for (unsigned i = 0; i < w->lanes; i++)
			if (open[i])
				sync_file(w, open[i]);
	}
	close_full(w, full);
	if (!atomic_load(&w->status))
		atomic_store_explicit(&w->durable, target, memory_order_release);
}

/* Until there is something to do; with `lock` held. */
static void wait_for_work(struct sl_raw_writer *w, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				 .tv_nsec = (long)(until_ns % 1000000000)};
	int r = 0;

	while (!r && !w->end && !w->prepare && !w->full && w->flush_asked == w->flush_done)
		r = pthread_cond_timedwait(&w->work, &w->lock, &until);
}

void *raw_flush_main(void *arg)
{
	struct sl_raw_writer *w = arg;
	uint64_t next_ns = sl_clock_ns() + w->o.flush_ns, asked;
	bool end, now;

	do {
		pthread_mutex_lock(&w->lock);
		wait_for_work(w, next_ns);
		end = w->end;
		asked = w->flush_asked;
		now = end || asked != w->flush_done || sl_clock_ns() >= next_ns;
		w->prepare = false;
		pthread_mutex_unlock(&w->lock);

		for (unsigned i = 0; i < w->lanes && !end; i++)
			prepare_next(w, &w->lane[i]);
		if (now) {
			next_ns = sl_clock_ns() + w->o.flush_ns;
			flush(w);
		} else {
			close_full(w, count_full(w));
		}
		raw_window_trim(w);
		pthread_mutex_lock(&w->lock);
		w->flush_done = asked;
		pthread_cond_broadcast(&w->done);
		pthread_mutex_unlock(&w->lock);
	} while (!end);
	return NULL;
}
