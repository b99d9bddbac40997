/* scratch.c - a folder in /tmp for as long as this process lives. */
#include "cmd/run/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define NAME "/tmp/sluice-run-"

/* Its files and itself; it has no folders. */
static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

/* A real folder of this user, to which no other user has access. */
static bool is_ours(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

static void remove_leftovers(void)
{
	glob_t found;

	if (glob(NAME "*", GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char lock[128];
		int fd;

		if (!is_ours(found.gl_pathv[i]))
			continue;
		snprintf(lock, sizeof(lock), "%s/lock", found.gl_pathv[i]);
		fd = open(lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
			remove_folder(found.gl_pathv[i]);
		if (fd >= 0)
			close(fd);
	}
	globfree(&found);
}

int sl_scratch_make(struct sl_scratch *scratch)
{
	char lock[128];
	int err;

	remove_leftovers();
	strcpy(scratch->path, NAME "XXXXXX");
	if (!mkdtemp(scratch->path))
		goto undo_nothing;
	snprintf(lock, sizeof(lock), "%s/lock", scratch->path);
	scratch->lock = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (scratch->lock >= 0 && !flock(scratch->lock, LOCK_EX | LOCK_NB))
		return 0;
	err = errno;
	remove_folder(scratch->path);
	errno = err;
undo_nothing:
	err = -errno;
	scratch->lock = -1;
	sl_error("cannot make a folder in /tmp: %s", strerror(-err));
	return err;
}

void sl_scratch_remove(struct sl_scratch *scratch)
{
	if (scratch->lock < 0)
		return;
	remove_folder(scratch->path);
	close(scratch->lock);
	scratch->lock = -1;
}
