/* preview.c - a file that can be read before it is finished, in the place of an earlier one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_private.h"

#define REPLACED ".replaced"

static int copy_bytes(int from, int to)
{
	off_t at = 0;
	struct stat st;
	ssize_t n = 1;

	if (fstat(from, &st))
		return -errno;
	while (at < st.st_size && n > 0)
		n = copy_file_range(from, &at, to, NULL, (size_t)(st.st_size - at), 0);
	if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
		for (n = 1; at < st.st_size && n > 0; at += n > 0 ? n : 0) {
			char buffer[1 << 16];

			n = pread(from, buffer, sizeof(buffer), at);
			if (n > 0)
				n = pwrite(to, buffer, (size_t)n, at);
		}
	return n < 0 ? -errno : at < st.st_size ? -EIO : 0;
}

int sl_part_file_take(struct sl_part_file *file)
{
	int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return sl_part_refused(file->path, "read", errno);
	r = copy_bytes(fd, file->fd);
	close(fd);
	return r ? sl_part_refused(file->part, "write", -r) : 0;
}

static int rename_aside(struct sl_part_file *file)
{
	char *aside;
	int r;

	if (!file->replaces || !sl_part_is_old(file, file->path))
		return 0;
	if (asprintf(&aside, "%s" REPLACED, file->path) < 0)
		return -ENOMEM;
	r = sl_rename_new(file->path, aside);
	if (r)
		sl_part_refused(file->path, "set aside", -r);
	file->set_aside = !r;
	free(aside);
	return r;
}

void sl_part_file_replaced(struct sl_part_file *file)
{
	char *aside;

	if (!file->set_aside || asprintf(&aside, "%s" REPLACED, file->path) < 0)
		return;
	unlink(aside);
	free(aside);
	file->set_aside = false;
}

void sl_part_bring_back(const struct sl_part_file *file)
{
	char *aside;

	if (!file->set_aside || asprintf(&aside, "%s" REPLACED, file->path) < 0)
		return;
	sl_rename_new(aside, file->path);
	free(aside);
}

static int name_preview(struct sl_part_file *file, int fd, const char *temporary)
{
	struct stat st;
	int r = fstat(fd, &st) ? sl_part_refused(temporary, "look at", errno) : rename_aside(file);

	if (r)
		return r;
	r = sl_rename_new(temporary, file->path);
	if (r)
		return sl_part_refused(file->path, "create", -r);
	file->replaces = file->previewed = true;
	file->old_device = st.st_dev;
	file->old_inode = st.st_ino;
	return 0;
}

int sl_part_file_set_access(struct sl_part_file *file, const struct sl_file_access *access)
{
	file->access = *access;
	return sl_file_access_set(file->fd, file->part, access);
}

int sl_part_file_preview(struct sl_part_file *file)
{
	char *temporary = NULL;
	int fd, r;

	if (asprintf(&temporary, "%s.preview", file->path) < 0)
		return -ENOMEM;
	unlink(temporary); /* of a run that was killed in this moment; PATH.part is locked */
	fd = sl_file_create(temporary, &file->access);
	r = fd == -EEXIST ? sl_part_refused(temporary, "create", EEXIST) : fd;
	if (fd < 0)
		goto undo_name;
	r = copy_bytes(file->fd, fd);
	if (!r && fsync(fd))
		r = -errno;
	r = r ? sl_part_refused(temporary, "write", -r) : name_preview(file, fd, temporary);
	close(fd);
	if (r)
		unlink(temporary);
undo_name:
	free(temporary);
	return r;
}
