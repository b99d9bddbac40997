/* data_file.c - a data file of a writer: from its name to its index. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "raw/private.h"

bool raw_is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* Asks for O_DIRECT; a file system without it is written to through the page cache. */
static void set_direct(struct sl_raw_writer *w, const struct raw_file *file)
{
	int flags = fcntl(file->disk.fd, F_GETFL);

	if (w->o.cached || (flags >= 0 && !fcntl(file->disk.fd, F_SETFL, flags | O_DIRECT)))
		return;
	if (!atomic_exchange(&w->cached, true))
		sl_info("%s: this file system has no O_DIRECT: writing through the page cache",
			file->disk.path);
}

/* As large as wished, or half of it, and so on, but at least `need`. */
static int allocate(struct raw_file *file, uint64_t wish, uint64_t need)
{
	int r = -ENOSPC;

	for (uint64_t bytes = wish > need ? wish : need;;
	     bytes = bytes / 2 > need ? bytes / 2 : need) {
		bytes = raw_up(bytes, RAW_BLOCK);
		r = fallocate(file->disk.fd, 0, 0, (off_t)bytes) ? -errno : 0;
		if (r == -EINTR)
			continue;
		file->limit = bytes;
		file->allocated = !r;
		if (!raw_is_full(r) || bytes <= raw_up(need, RAW_BLOCK))
			break;
	}
	return raw_is_full(r) ? r : 0; /* others: this file system cannot set space aside */
}

/* What a folder has room for is known without making a file there. */
static int look_for_room(const char *path, uint64_t need)
{
	char *folder = strdup(path), *slash;
	struct statvfs st;
	int r = 0;

	if (!folder)
		return -ENOMEM;
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	if (!statvfs(slash ? folder : ".", &st) && st.f_blocks &&
	    (uint64_t)st.f_bavail * st.f_frsize < need)
		r = -ENOSPC;
	free(folder);
	return r;
}

int raw_file_open(struct sl_raw_writer *w, uint32_t folder, uint64_t need, struct raw_file **out)
{
	struct raw_file *file = calloc(1, sizeof(*file));
	char *path;
	int r;

	if (!file)
		return -ENOMEM;
	file->disk.fd = -1;
	file->folder = folder;
	file->number = atomic_fetch_add(&w->last, 1) + 1;
	file->bad_from = UINT64_MAX;
	/* Head, chunk, the padding of a seal, index. */
	need = RAW_BLOCK + raw_up(need, RAW_BLOCK) + raw_index_bytes(1);
	path = raw_data_path(w->o.path, w->folder[folder], file->number);
	r = path ? look_for_room(path, need) : -ENOMEM;
	if (!r)
		r = sl_part_file_open_new(path, NULL, &file->disk);
	free(path);
	if (r) {
		free(file);
		return r;
	}
	set_direct(w, file);
	r = allocate(file, w->o.file_bytes, need);
	if (!r)
		r = sl_folder_sync(file->disk.path);
	atomic_fetch_add(&w->open_bytes, file->limit);
	if (r) {
		raw_file_discard(w, file);
		return r;
	}
	*out = file;
	return 0;
}

/* For a file without chunks. */
void raw_file_discard(struct sl_raw_writer *w, struct raw_file *file)
{
	atomic_fetch_sub(&w->open_bytes, file->limit);
	sl_part_file_discard(&file->disk);
	free(file->entry);
	free(file);
}

/* The entries that are on disk: those before the first failed write. */
static uint64_t whole_entries(const struct raw_file *file)
{
	uint64_t n = file->entries;

	while (n && file->entry[n - 1].offset + raw_chunk_bytes(file->entry[n - 1].bytes) >
			    file->bad_from)
		n--;
	return n;
}

/* The index as it will be on disk; the caller frees it. */
static uint8_t *make_index(const struct sl_raw_writer *w, const struct raw_file *file,
			   uint64_t entries, uint64_t at)
{
	const struct raw_chunk chunk = {
		.kind = RAW_INDEX, .generation = w->head.generation, .bytes = entries * RAW_ENTRY};
	const struct raw_footer footer = {
		.generation = w->head.generation, .index_at = at, .entries = entries};
	uint64_t bytes = raw_index_bytes(entries);
	uint8_t *index = aligned_alloc(RAW_BLOCK, bytes);
	struct raw_trailer trailer = {0};

	if (!index)
		return NULL;
	memset(index, 0, bytes);
	raw_write_chunk(&chunk, index);
	for (uint64_t i = 0; i < entries; i++)
		raw_write_entry(&file->entry[i], index + RAW_HEADER + i * RAW_ENTRY);
	trailer.payload_crc = sl_crc32c(0, index + RAW_HEADER, chunk.bytes);
	raw_write_trailer(&trailer, index + raw_chunk_bytes(chunk.bytes) - RAW_TRAILER);
	raw_write_footer(&footer, index + bytes - RAW_FOOTER);
	return index;
}

/* Size of the file afterwards. A file without index is read by a scan: no error. */
static uint64_t write_index(const struct sl_raw_writer *w, const struct raw_file *file,
			    uint64_t entries, uint64_t at)
{
	uint64_t bytes = raw_index_bytes(entries), done = 0;
	uint8_t *index = make_index(w, file, entries, at);
	int r = index ? 0 : -ENOMEM;

	while (done < bytes && !r) {
		uint64_t left = bytes - done;
		struct raw_write write = {.fd = file->disk.fd,
					  .offset = at + done,
					  .data = index + done,
					  .bytes = left < 1 << 30 ? (uint32_t)left : 1 << 30};

		r = raw_write_now(&write);
		done += write.bytes;
	}
	free(index);
	if (!r)
		return at + bytes;
	sl_warn("%s: no index at its end (%s): readers look through the whole file instead",
		file->disk.path, strerror(-r));
	return at;
}

static int note_closed(const struct raw_file *file, uint64_t entries, uint64_t lost_bytes,
		       struct raw_closed **out)
{
	struct raw_closed *closed = calloc(1, sizeof(*closed));
	struct stat st;

	if (!closed)
		return -ENOMEM;
	closed->path = strdup(file->disk.path);
	if (!closed->path) {
		free(closed);
		return -ENOMEM;
	}
	if (fstat(file->disk.fd, &st)) /* then the check at the end finds another file */
		memset(&st, 0, sizeof(st));
	closed->device = st.st_dev;
	closed->inode = st.st_ino;
	closed->row = (struct raw_table_row){.number = file->number,
					     .folder = file->folder,
					     .chunks = entries,
					     .first = file->entry[0].number,
					     .last = file->entry[entries - 1].number,
					     .bytes = (uint64_t)st.st_size,
					     .first_arrived_ns = file->first_arrived_ns,
					     .last_arrived_ns = file->last_arrived_ns,
					     .payload_bytes = file->payload_bytes - lost_bytes};
	*out = closed;
	return 0;
}

static void end_data(struct sl_raw_writer *w, struct raw_file *file, uint64_t entries)
{
	uint64_t at = file->at;

	if (entries < file->entries)
		at = raw_up(file->entry[entries - 1].offset +
				    raw_chunk_bytes(file->entry[entries - 1].bytes),
			    RAW_BLOCK);
	at = write_index(w, file, entries, at);
	if (ftruncate(file->disk.fd, (off_t)at))
		sl_warn("%s: cannot cut off the unused end: %s", file->disk.path, strerror(errno));
}

/* The index, sync, and what is to be remembered; the file is freed. *closed NULL: it held no chunk,
 * and is removed. */
int raw_file_close(struct sl_raw_writer *w, struct raw_file *file, struct raw_closed **closed)
{
	uint64_t entries = whole_entries(file), lost_bytes = 0;
	int r = 0;

	*closed = NULL;
	for (uint64_t i = entries; i < file->entries; i++)
		lost_bytes += file->entry[i].bytes;
	atomic_fetch_add(&w->lost, file->entries - entries);
	if (!entries) { /* as if it had never begun */
		atomic_fetch_sub(&w->files, 1);
		raw_file_discard(w, file);
		return 0;
	}
	atomic_fetch_sub(&w->open_bytes, file->limit);
	end_data(w, file, entries);
	if (fdatasync(file->disk.fd)) {
		r = -errno;
		sl_error("%s: cannot sync: %s", file->disk.path, strerror(-r));
	}
	if (!r)
		r = sl_part_file_check(&file->disk);
	if (!r)
		r = note_closed(file, entries, lost_bytes, closed);
	sl_part_file_leave(&file->disk);
	free(file->entry);
	free(file);
	return r;
}
