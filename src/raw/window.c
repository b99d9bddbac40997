/* window.c - data files that are closed: which stay, and which make room. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "raw/private.h"

static bool is_ours(const struct raw_closed *closed, struct stat *st)
{
	return !lstat(closed->path, st) && st->st_dev == closed->device &&
	       st->st_ino == closed->inode;
}

static void forget(struct raw_closed *closed)
{
	free(closed->path);
	free(closed);
}

void raw_window_close(struct sl_raw_writer *w, struct raw_closed *closed)
{
	closed->next = NULL;
	pthread_mutex_lock(&w->lock);
	*w->closed_last = closed;
	w->closed_last = &closed->next;
	w->closed_bytes += closed->row.bytes;
	pthread_mutex_unlock(&w->lock);
}

static bool is_too_old(const struct sl_raw_writer *w, const struct raw_closed *closed)
{
	uint64_t newest = atomic_load(&w->newest_ns), last = closed->row.last_arrived_ns;

	return w->o.keep_ns && newest > last && newest - last > w->o.keep_ns;
}

static bool is_too_much(const struct sl_raw_writer *w)
{
	return w->o.keep_bytes && w->closed_bytes + atomic_load(&w->open_bytes) > w->o.keep_bytes;
}

/* The oldest file, off the list. NULL: there is none, or it may stay. */
static struct raw_closed *take_oldest(struct sl_raw_writer *w, bool anyway)
{
	struct raw_closed *oldest;

	pthread_mutex_lock(&w->lock);
	oldest = w->closed;
	if (oldest && !anyway && !is_too_old(w, oldest) && !is_too_much(w))
		oldest = NULL;
	if (oldest) {
		w->closed = oldest->next;
		w->closed_bytes -= oldest->row.bytes;
	}
	if (!w->closed)
		w->closed_last = &w->closed;
	pthread_mutex_unlock(&w->lock);
	return oldest;
}

/* Readers that have it open keep it. Without the lock: removing a large file takes a while. */
static bool drop(struct sl_raw_writer *w, struct raw_closed *closed)
{
	struct stat st;

	if (!closed)
		return false;
	if (is_ours(closed, &st) && unlink(closed->path))
		sl_warn("%s: cannot remove this data file, which is too old: %s", closed->path,
			strerror(errno));
	atomic_fetch_add(&w->removed_files, 1);
	atomic_fetch_add(&w->removed_chunks, closed->row.chunks);
	forget(closed);
	return true;
}

bool raw_window_drop_oldest(struct sl_raw_writer *w)
{
	return drop(w, take_oldest(w, true));
}

void raw_window_trim(struct sl_raw_writer *w)
{
	while (drop(w, take_oldest(w, false)))
		;
}

int raw_window_check(const struct sl_raw_writer *w)
{
	struct stat st;
	int r = 0;

	for (const struct raw_closed *c = w->closed; c; c = c->next) {
		if (!is_ours(c, &st))
			sl_error("%s: this data file of the run is no longer at this name: it was "
				 "moved or removed, or another file was put in its place",
				 c->path);
		else if ((uint64_t)st.st_size != c->row.bytes)
			sl_error("%s: has %lld bytes, and this run has written %llu: another "
				 "program has changed it",
				 c->path, (long long)st.st_size, (unsigned long long)c->row.bytes);
		else
			continue;
		r = -ESTALE;
	}
	return r;
}

void raw_window_discard(struct sl_raw_writer *w)
{
	while (raw_window_drop_oldest(w))
		;
}

void raw_window_free(struct sl_raw_writer *w)
{
	while (w->closed) {
		struct raw_closed *next = w->closed->next;

		forget(w->closed);
		w->closed = next;
	}
	w->closed_last = &w->closed;
}
