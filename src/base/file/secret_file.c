/* secret_file.c - who may read it is checked on the descriptor that is read. */
#include "base/file/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 4096 }; /* a file of secrets is smaller; the rest is not looked at */

struct reader {
	const char *path;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct reader *r, int err,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(r->why, r->why_bytes, format, arguments);
	va_end(arguments);
	return err;
}

/* The descriptor that the path names; -1: it names a file. */
static int named_descriptor(const char *path)
{
	static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end;

	if (!strcmp(path, "/dev/stdin"))
		return STDIN_FILENO;
	for (size_t i = 0; i < sizeof(folder) / sizeof(*folder); i++) {
		size_t length = strlen(folder[i]);
		long fd;

		if (strncmp(path, folder[i], length) != 0)
			continue;
		fd = strtol(path + length, &end, 10);
		return *end || end == path + length || fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
	}
	return -1;
}

static int check_file(const struct reader *r, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return refuse(r, -EPERM, "belongs to another user, who knows what is in it");
	if (st->st_mode & (S_IWGRP | S_IRWXO))
		return refuse(r, -EPERM,
			      "other users can read or write it (mode %03o): chmod 600 %s",
			      (unsigned)st->st_mode & 0777, r->path);
	return 0;
}

static ssize_t read_all(int fd, char *text, size_t bytes)
{
	size_t have = 0;
	ssize_t n = 1;

	while (have < bytes && n > 0) {
		n = read(fd, text + have, bytes - have);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n > 0)
			have += (size_t)n;
	}
	return n < 0 ? -errno : (ssize_t)have;
}

/* In the place of a pipe that has been read to its end. */
static int keep_in_memory(int fd, const char *text, size_t bytes)
{
	int memory = memfd_create("sluice-secret", MFD_CLOEXEC), err = 0;

	if (memory < 0)
		return -errno;
	if (fchmod(memory, 0600) || write(memory, text, bytes) != (ssize_t)bytes ||
	    dup2(memory, fd) < 0) /* the copy stays open in child processes, as the pipe did */
		err = errno ? -errno : -EIO;
	close(memory);
	return err;
}

/* The path of a descriptor is opened anew: another process that shares it keeps its position. */
static int open_and_read(const struct reader *r, char *text, size_t bytes, size_t *have)
{
	int named = named_descriptor(r->path), fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n = 0;
	int err;

	if (fd < 0)
		return refuse(r, -errno, "cannot be opened: %s", strerror(errno));
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && S_ISREG(st.st_mode))
		err = check_file(r, &st);
	if (!err) {
		n = read_all(fd, text, bytes);
		err = n < 0 ? refuse(r, (int)n, "cannot be read: %s", strerror((int)-n)) : 0;
	}
	close(fd);
	if (!err && named >= 0 && !S_ISREG(st.st_mode)) {
		err = keep_in_memory(named, text, (size_t)n);
		if (err)
			refuse(r, err, "cannot be kept in memory: %s", strerror(-err));
	}
	*have = n > 0 ? (size_t)n : 0;
	return err;
}

static bool is_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

int sl_secret_file_read(const char *path, char *secret, size_t bytes, char *why, size_t why_bytes)
{
	const struct reader r = {path, why, why_bytes};
	char text[FILE_BYTES + 1] = "";
	size_t have = 0, length;
	int err = open_and_read(&r, text, FILE_BYTES, &have);

	for (length = 0; length < have && text[length] != '\n' && text[length] != '\r';)
		length++;
	text[length] = 0;
	if (err)
		; /* has been said */
	else if (!length)
		err = refuse(&r, -EINVAL, "its first line is empty");
	else if (length >= bytes)
		err = refuse(&r, -EINVAL, "its first line has more than %zu bytes", bytes - 1);
	else if (!is_text(text) || strlen(text) != length)
		err = refuse(&r, -EINVAL, "its first line is not text");
	else
		memcpy(secret, text, length + 1);
	explicit_bzero(text, sizeof(text));
	return err;
}

int sl_secret_file_text(const char *path, char *text, size_t bytes, char *why, size_t why_bytes)
{
	const struct reader r = {path, why, why_bytes};
	size_t have = 0;
	int err = open_and_read(&r, text, bytes, &have);

	if (!err && have == bytes)
		err = refuse(&r, -E2BIG, "has more than %zu bytes", bytes - 1);
	if (!err && memchr(text, 0, have))
		err = refuse(&r, -EINVAL, "is not text");
	text[err ? 0 : have] = 0;
	return err;
}
