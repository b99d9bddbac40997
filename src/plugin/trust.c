/* trust.c - a path is walked name by name, and each folder is looked at before a name is looked up
 * in it: a user that can write a folder decides what its names mean. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"

enum { LINKS = 40 }; /* as the kernel's limit for symbolic links in a path */

struct walk {
	const char *path; /* as it was given */
	char rest[PATH_MAX], so_far[PATH_MAX];
	int folder;    /* O_PATH */
	bool writable; /* by others, who can only add names: it is sticky */
	unsigned links;
	char *why;
	size_t bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct walk *w, int err, const char *format,
							...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(w->why, w->bytes, format, arguments);
	va_end(arguments);
	return err;
}

/* A program that got capabilities from its file (setcap) takes code of root's alone: code of its
 * user would get the capabilities, too. */
static bool is_ours(const struct stat *st)
{
	return st->st_uid == 0 || (st->st_uid == geteuid() && !getauxval(AT_SECURE));
}

static const char *owners(void)
{
	return getauxval(AT_SECURE) ? "root: this program has capabilities (setcap)"
				    : "root or to the user of the run";
}

/* With an access control list the group bits are its mask: they cover everybody named in it. */
static bool others_write(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

static int check_folder(struct walk *w, int folder)
{
	const char *name = w->so_far[0] ? w->so_far : "/";
	struct stat st;

	if (fstat(folder, &st))
		return refuse(w, -errno, "%s: %s", name, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return refuse(w, -ENOTDIR, "%s is no folder", name);
	if (!is_ours(&st))
		return refuse(w, -EACCES,
			      "the folder %s belongs to user %u, who could exchange the file; keep "
			      "plug-ins in folders that belong to %s",
			      name, (unsigned)st.st_uid, owners());
	w->writable = others_write(&st);
	if (w->writable && !(st.st_mode & S_ISVTX))
		return refuse(w, -EACCES,
			      "other users can write the folder %s (mode %04o) and exchange the "
			      "file: chmod go-w %s",
			      name, (unsigned)st.st_mode & 07777, name);
	return 0;
}

static int check_file(struct walk *w, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return refuse(w, -EACCES, "it is no regular file");
	if (!is_ours(st))
		return refuse(w, -EACCES, "it belongs to user %u; plug-ins must belong to %s",
			      (unsigned)st->st_uid, owners());
	if (others_write(st))
		return refuse(w, -EACCES, "other users can write it (mode %04o): chmod go-w %s",
			      (unsigned)st->st_mode & 07777, w->path);
	return 0;
}

/* Put the target of a symbolic link before what is left of the path. */
static int follow(struct walk *w, int link)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n <= 0 || ++w->links > LINKS)
		return refuse(w, -ELOOP, "%s: %s", w->so_far, strerror(ELOOP));
	target[n] = 0;
	memcpy(rest, w->rest, strlen(w->rest) + 1);
	if (strlen(target) + 1 + strlen(rest) >= sizeof(w->rest))
		return refuse(w, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	stpcpy(stpcpy(stpcpy(w->rest, target), "/"), rest);
	if (rest[0] == 0)
		w->rest[strlen(target)] = 0; /* no slash behind a file */
	return 0;
}

/* Begin at the root, for an absolute path or link. */
static int enter_root(struct walk *w)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return refuse(w, -errno, "/: %s", strerror(errno));
	if (w->folder >= 0)
		close(w->folder);
	w->folder = root;
	w->so_far[0] = 0;
	return check_folder(w, root);
}

/* Take the next name off the path; false: there is none. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1], bool *last)
{
	char *from = w->rest + strspn(w->rest, "/"), *to = strchrnul(from, '/');
	size_t length = (size_t)(to - from);

	if (!length || length > NAME_MAX)
		return false;
	memcpy(name, from, length);
	name[length] = 0;
	*last = *to == 0;
	memmove(w->rest, to, strlen(to) + 1);
	return true;
}

static void add_name(struct walk *w, const char *name)
{
	size_t used = strlen(w->so_far);

	snprintf(w->so_far + used, sizeof(w->so_far) - used, "/%s", name);
}

/* The name in the folder, as a descriptor (O_PATH) of the thing itself, link or not. */
static int look_up(struct walk *w, const char *name, bool last, struct stat *st)
{
	int fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	add_name(w, name);
	if (fd < 0 || fstat(fd, st)) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		return refuse(w, -err, "%s%s%s", last ? "" : w->so_far, last ? "" : ": ",
			      strerror(err));
	}
	if (w->writable && (last || !S_ISDIR(st->st_mode))) {
		close(fd);
		return refuse(w, -EACCES,
			      "%s lies in a folder that other users can write; move it into a "
			      "folder of your own",
			      w->so_far);
	}
	return fd;
}

/* 1: go on; 0: `found` is the file; or -errno. */
static int step(struct walk *w, int *found)
{
	char name[NAME_MAX + 1];
	struct stat st;
	bool last;
	int fd, err;

	if (!next_name(w, name, &last))
		return refuse(w, -EACCES, "it is no regular file");
	if (!strcmp(name, "."))
		return 1;
	fd = look_up(w, name, last, &st);
	if (fd < 0)
		return fd;
	if (S_ISLNK(st.st_mode)) {
		err = follow(w, fd);
		close(fd);
		*strrchr(w->so_far, '/') = 0;
		if (!err && w->rest[0] == '/')
			err = enter_root(w);
		return err ? err : 1;
	}
	if (!last) {
		close(w->folder);
		w->folder = fd;
		err = check_folder(w, fd);
		return err ? err : 1;
	}
	err = check_file(w, &st);
	if (err)
		close(fd);
	else
		*found = fd;
	return err;
}

int sl_trust_open(const char *path, char *why, size_t bytes)
{
	struct walk w = {.path = path, .folder = -1, .why = why, .bytes = bytes};
	char here[PATH_MAX] = "";
	int found = -1, err;

	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return refuse(&w, -errno, "the working directory: %s", strerror(errno));
	if (strlen(here) + 1 + strlen(path) >= sizeof(w.rest))
		return refuse(&w, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	stpcpy(stpcpy(stpcpy(w.rest, here), "/"), path);
	err = enter_root(&w);
	if (!err)
		do
			err = step(&w, &found);
		while (err > 0);
	if (w.folder >= 0)
		close(w.folder);
	return err ? err : found;
}
