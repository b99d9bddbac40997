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

static struct raw_closed *take(struct sl_raw_writer *w, struct raw_closed **at)
{
	struct raw_closed *closed = *at;

	if (!closed)
		return NULL;
	*at = closed->next;
	if (!*at)
		w->closed_last = at;
	w->closed_bytes -= closed->row.bytes;
	return closed;
}

/* The oldest file of a folder, off the list. NULL: there is none. */
static struct raw_closed *take_oldest(struct sl_raw_writer *w, uint32_t folder)
{
	struct raw_closed **at = &w->closed, *closed;

	pthread_mutex_lock(&w->lock);
	while (*at && (*at)->row.folder != folder)
		at = &(*at)->next;
	closed = take(w, at);
	pthread_mutex_unlock(&w->lock);
	return closed;
}

/* The oldest file of all, if it has to go. */
static struct raw_closed *take_outdated(struct sl_raw_writer *w)
{
	struct raw_closed *closed = NULL;

	pthread_mutex_lock(&w->lock);
	if (w->closed && (is_too_old(w, w->closed) || is_too_much(w)))
		closed = take(w, &w->closed);
	pthread_mutex_unlock(&w->lock);
	return closed;
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

bool raw_window_drop_oldest(struct sl_raw_writer *w, uint32_t folder)
{
	return drop(w, take_oldest(w, folder));
}

void raw_window_trim(struct sl_raw_writer *w)
{
	while (drop(w, take_outdated(w)))
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
	for (uint32_t folder = 0; folder < w->lanes; folder++)
		while (raw_window_drop_oldest(w, folder))
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
