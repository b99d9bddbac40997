/* run_read.c - the run file of a reader. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "raw/reader.h"

int raw_damaged(const char *path, uint64_t offset, const char *what)
{
	sl_error("%s: byte %llu: %s", path, (unsigned long long)offset, what);
	return -EBADMSG;
}

int raw_read_at(const char *path, int fd, void *to, uint64_t bytes, uint64_t offset)
{
	uint8_t *at = to;
	ssize_t n;

	while (bytes) {
		n = pread(fd, at, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			n = -errno;
			sl_error("%s: cannot read at byte %llu: %s", path,
				 (unsigned long long)offset, strerror((int)-n));
			return (int)n;
		}
		if (!n)
			return -EBADMSG;
		at += n;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

static int size_of(const struct sl_raw_reader *r, uint64_t *bytes)
{
	struct stat st;

	if (fstat(r->fd, &st))
		return -errno;
	*bytes = (uint64_t)st.st_size;
	return 0;
}

/* A piece of the run file with its checksum; the caller frees it. */
static int read_blob(const struct sl_raw_reader *r, uint64_t at, uint64_t bytes, uint32_t crc,
		     const char *what, uint8_t **out)
{
	uint8_t *blob;
	uint64_t size;
	int e = size_of(r, &size);

	if (e)
		return e;
	if (at > size || bytes > size - at)
		return raw_damaged(r->path, at, what);
	blob = malloc(bytes + 1);
	if (!blob)
		return -ENOMEM;
	e = raw_read_at(r->path, r->fd, blob, bytes, at);
	if (e == -EBADMSG || (!e && sl_crc32c(0, blob, bytes) != crc))
		e = raw_damaged(r->path, at, what);
	if (e) {
		free(blob);
		return e;
	}
	blob[bytes] = 0;
	*out = blob;
	return 0;
}

/* The folder of the run file, with its slash; "" for the present one. */
static char *own_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("");
}

/* Strings behind each other; an empty one is the folder of the run file, which is also looked at
 * last: data files may have been moved there. */
static int take_folders(struct sl_raw_reader *r, const char *text)
{
	const char *end = text + r->head.folders_bytes;

	r->folder = calloc(r->head.folders + 1u, sizeof(*r->folder));
	if (!r->folder)
		return -ENOMEM;
	for (uint32_t i = 0; i <= r->head.folders; i++) {
		const char *one = i < r->head.folders ? text : "";

		if (i < r->head.folders && text >= end)
			return raw_damaged(r->path, RAW_BLOCK, "the list of folders is damaged");
		r->folder[i] = *one ? strdup(one) : own_folder(r->path);
		if (!r->folder[i])
			return -ENOMEM;
		r->folders++;
		if (i < r->head.folders)
			text += strlen(one) + 1;
	}
	if (text < end && *text == '/')
		r->written_as = strdup(text);
	return text < end && *text == '/' && !r->written_as ? -ENOMEM : 0;
}

/* Its folder, without the last part. */
static bool same_folder(const char *a, const char *b)
{
	const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');

	return slash_a && slash_b && slash_a - a == slash_b - b &&
	       !strncmp(a, b, (size_t)(slash_a - a));
}

/* A copy of a run file finds the data files of the original in folders that it lists, and one with
 * another ending beside it. A run that was moved as a whole has them in its own folder. */
bool sl_raw_owns(const struct sl_raw_reader *r, uint32_t file)
{
	char *self = raw_absolute_path(r->path), *data = raw_absolute_path(sl_raw_file(r, file));
	const char *was = r->written_as;
	bool owns = false;

	if (self && data && was && !strcmp(self, was))
		owns = true;
	else if (self && data && same_folder(self, data))
		owns = !was || !strcmp(strrchr(self, '/'), strrchr(was, '/'));
	free(self);
	free(data);
	return owns;
}

const char *sl_raw_written_as(const struct sl_raw_reader *r)
{
	return r->written_as ? r->written_as : "";
}

static int read_head(struct sl_raw_reader *r)
{
	uint8_t block[RAW_BLOCK], *folders;
	int e = raw_read_at(r->path, r->fd, block, sizeof(block), 0);

	if (!e)
		e = raw_read_run_head(block, &r->head);
	else if (e == -EBADMSG)
		e = -EPROTO;
	if (e == -EPROTO)
		sl_error("%s: is no raw container that this version of Sluice can read", r->path);
	if (e == -EBADMSG)
		raw_damaged(r->path, 0, "the head of the run file is damaged");
	if (!e)
		e = read_blob(r, RAW_BLOCK, r->head.head_bytes, r->head.head_crc,
			      "the head of the run is damaged", &r->head_blob);
	if (!e)
		e = read_blob(r, RAW_BLOCK + r->head.head_bytes, r->head.folders_bytes,
			      r->head.folders_crc, "the list of folders is damaged", &folders);
	if (e)
		return e;
	e = take_folders(r, (const char *)folders);
	free(folders);
	return e;
}

static int take_table(struct sl_raw_reader *r, const uint8_t *table)
{
	r->row = calloc(r->end.files + 1, sizeof(*r->row));
	if (!r->row)
		return -ENOMEM;
	for (uint64_t i = 0; i < r->end.files; i++)
		if (raw_read_row(table + i * RAW_TABLE_ROW, &r->row[i]) ||
		    r->row[i].folder >= r->folders)
			return raw_damaged(r->path, r->head.end_at,
					   "the table of data files is damaged");
	return 0;
}

/* There is no whole end block before the run is complete. */
static int read_end(struct sl_raw_reader *r, bool locked, bool *complete)
{
	uint8_t block[RAW_BLOCK], *table;
	uint64_t at = r->head.end_at + RAW_BLOCK;
	int e = raw_read_at(r->path, r->fd, block, sizeof(block), r->head.end_at);

	*complete = false;
	if (e)
		return e == -EBADMSG ? 0 : e;
	e = raw_read_run_end(block, &r->end);
	if (e == -EPROTO || (e && locked)) /* not written yet, or just being written */
		return 0;
	if (e || r->end.generation != r->head.generation)
		return raw_damaged(r->path, r->head.end_at, "the end of the run is damaged");
	free(r->tail_blob); /* of a look that failed, likewise: */
	free(r->row);
	r->tail_blob = NULL;
	r->row = NULL;
	e = read_blob(r, at, r->end.tail_bytes, r->end.tail_crc, "the tail of the run is damaged",
		      &r->tail_blob);
	if (!e)
		e = read_blob(r, at + r->end.tail_bytes, r->end.files * RAW_TABLE_ROW,
			      r->end.table_crc, "the table of data files is damaged", &table);
	if (e)
		return e;
	e = take_table(r, table);
	free(table);
	*complete = !e;
	return e;
}

/* The lock is looked at first: a writer that finishes in between has left its end block. */
int raw_run_look(struct sl_raw_reader *r)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	bool locked, complete;
	int e;

	if (r->state != SL_RAW_WRITING)
		return 0;
	locked = !fcntl(r->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
	e = read_end(r, locked, &complete);
	if (e)
		return e;
	r->state = complete ? SL_RAW_COMPLETE : locked ? SL_RAW_WRITING : SL_RAW_KILLED;
	return 0;
}

int raw_run_open(struct sl_raw_reader *r)
{
	int e;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0) {
		e = -errno;
		sl_error("%s: cannot open: %s", r->path, strerror(-e));
		return e;
	}
	r->state = SL_RAW_WRITING;
	return read_head(r);
}
