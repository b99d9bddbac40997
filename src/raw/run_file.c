/* run_file.c - the run file of a writer: head at the start; tail and table of data files at the
 * end. It is locked from beginning to end, which is how readers know a writer that lives. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/log.h"
#include "raw/private.h"

enum { TABLE_RESERVE = 64 << 10 }; /* for 1024 data files */

static int failed(const struct sl_raw_writer *w, const char *what, int error)
{
	sl_error("%s: cannot %s: %s", w->o.path, what, strerror(error));
	return -error;
}

static int write_at(const struct sl_raw_writer *w, const uint8_t *data, uint64_t bytes, uint64_t at)
{
	ssize_t n;

	while (bytes) {
		n = pwrite(w->run.fd, data, bytes, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return failed(w, "write", n ? errno : EIO);
		data += n;
		at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* Of the open file, not of the process: readers in this process see it, too. */
static void lock_run(const struct sl_raw_writer *w)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(w->run.fd, F_OFD_SETLK, &all))
		sl_warn("%s: cannot lock it (%s): readers will take this run for one that was "
			"killed",
			w->o.path, strerror(errno));
}

/* Set aside what the end will need, so that a run on a full disk can be finished. */
static int reserve(const struct sl_raw_writer *w)
{
	uint64_t bytes = w->head.end_at + RAW_BLOCK + w->o.tail_bytes + TABLE_RESERVE;

	if (fallocate(w->run.fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) && raw_is_full(-errno))
		return failed(w, "set space aside for its end", errno);
	return 0;
}

/* And behind them where this file is, so that a copy of it is known as one. */
static void put_folders(const struct sl_raw_writer *w, const char *self, uint8_t *to)
{
	for (unsigned i = 0; i < w->lanes; i++) {
		const char *folder = w->folder[i] ? w->folder[i] : "";

		memcpy(to, folder, strlen(folder) + 1);
		to += strlen(folder) + 1;
	}
	memcpy(to, self, strlen(self) + 1);
}

static int make_head(struct sl_raw_writer *w, const void *head, size_t bytes, uint8_t **out)
{
	struct raw_run_head *h = &w->head;
	uint8_t *block;

	char *self = raw_absolute_path(w->o.path);

	if (!self)
		return -ENOMEM;
	*h = (struct raw_run_head){.created_unix_ns = sl_clock_unix_ns(),
				   .keep_ns = w->o.keep_ns,
				   .keep_bytes = w->o.keep_bytes,
				   .head_bytes = bytes,
				   .head_crc = sl_crc32c(0, head, bytes),
				   .folders = w->lanes};
	if (getrandom(&h->generation, sizeof(h->generation), 0) != sizeof(h->generation))
		h->generation = h->created_unix_ns * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned i = 0; i < w->lanes; i++)
		h->folders_bytes += (w->folder[i] ? strlen(w->folder[i]) : 0) + 1;
	h->folders_bytes += strlen(self) + 1;
	h->end_at = raw_up(RAW_BLOCK + bytes + h->folders_bytes, RAW_BLOCK);
	block = calloc(1, h->end_at);
	if (!block) {
		free(self);
		return -ENOMEM;
	}
	if (bytes)
		memcpy(block + RAW_BLOCK, head, bytes);
	put_folders(w, self, block + RAW_BLOCK + bytes);
	free(self);
	h->folders_crc = sl_crc32c(0, block + RAW_BLOCK + bytes, h->folders_bytes);
	raw_write_run_head(h, block);
	*out = block;
	return 0;
}

int raw_run_begin(struct sl_raw_writer *w, const void *head, size_t bytes)
{
	uint8_t *block;
	int r = sl_make_folders(w->o.path);

	if (!r)
		r = make_head(w, head, bytes, &block);
	if (r)
		return r;
	r = sl_part_file_open_new(w->o.path, NULL, &w->run);
	if (!r) {
		lock_run(w);
		r = reserve(w);
	}
	if (!r)
		r = write_at(w, block, w->head.end_at, 0);
	free(block);
	if (!r && fsync(w->run.fd))
		r = failed(w, "sync", errno);
	if (!r && (r = sl_folder_sync(w->o.path)))
		failed(w, "sync the folder of", -r);
	return r;
}

static uint64_t count_closed(const struct sl_raw_writer *w)
{
	uint64_t n = 0;

	for (const struct raw_closed *c = w->closed; c; c = c->next)
		n++;
	return n;
}

/* The end block, tail and table as they will be on disk. */
static int make_end(struct sl_raw_writer *w, const void *tail, size_t bytes, uint8_t **out,
		    uint64_t *all)
{
	struct raw_run_end end = {.generation = w->head.generation,
				  .finished_unix_ns = sl_clock_unix_ns(),
				  .chunks = atomic_load(&w->chunks),
				  .lost = atomic_load(&w->lost),
				  .bytes = atomic_load(&w->bytes),
				  .tail_bytes = bytes,
				  .tail_crc = sl_crc32c(0, tail, bytes),
				  .files = count_closed(w)};
	uint8_t *block, *row;

	*all = RAW_BLOCK + bytes + end.files * RAW_TABLE_ROW;
	block = calloc(1, *all);
	if (!block)
		return -ENOMEM;
	if (bytes)
		memcpy(block + RAW_BLOCK, tail, bytes);
	row = block + RAW_BLOCK + bytes;
	for (const struct raw_closed *c = w->closed; c; c = c->next, row += RAW_TABLE_ROW)
		raw_write_row(&c->row, row);
	end.table_crc = sl_crc32c(0, block + RAW_BLOCK + bytes, end.files * RAW_TABLE_ROW);
	raw_write_run_end(&end, block);
	*out = block;
	return 0;
}

/* The end block, which makes the run complete, follows what it speaks of. */
int raw_run_finish(struct sl_raw_writer *w, const void *tail, size_t bytes)
{
	uint64_t at = w->head.end_at, all;
	uint8_t *block;
	int r = make_end(w, tail, bytes, &block, &all);

	if (r)
		return r;
	r = write_at(w, block + RAW_BLOCK, all - RAW_BLOCK, at + RAW_BLOCK);
	if (!r && fdatasync(w->run.fd))
		r = failed(w, "sync", errno);
	if (!r)
		r = write_at(w, block, RAW_BLOCK, at);
	if (!r && ftruncate(w->run.fd, (off_t)(at + all)))
		r = failed(w, "cut off the unused end of", errno);
	free(block);
	if (r)
		return r;
	return sl_part_file_publish(&w->run);
}
