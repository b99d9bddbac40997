/* testing.h - for tests: a scratch folder, a file size limit, a small file system of one's own.
 *
 * Model:     a test that needs a full disk starts itself again in a mount namespace with a small
 * tmpfs; where that is not allowed it is skipped with the reason. */
#ifndef SL_HDF5_TESTING_H
#define SL_HDF5_TESTING_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TESTING_NOT_ALLOWED = 77 };

extern char **environ;

static inline void scratch_make(char *folder, size_t bytes)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, bytes, "%s/sluice-test-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder)) {
		perror(folder);
		abort();
	}
}

static inline int scratch_remove_entry(const char *path, const struct stat *st, int flag,
				       struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static inline void scratch_remove(const char *folder)
{
	nftw(folder, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* 0 lifts the limit again. */
static inline void limit_file_size(uint64_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes ? bytes : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), r = 0;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		r = -1;
	if (fd >= 0)
		close(fd);
	return r;
}

/* In the child: a tmpfs of that size at folder, seen by nobody else. */
static inline int mount_small(const char *folder, const char *size)
{
	char text[64];
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return -errno;
		write_file("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "0 %u 1", uid);
		write_file("/proc/self/uid_map", text);
		snprintf(text, sizeof(text), "0 %u 1", gid);
		write_file("/proc/self/gid_map", text);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	snprintf(text, sizeof(text), "size=%s", size);
	return mount("small", folder, "tmpfs", 0, text) ? -errno : 0;
}

/* In main(), first: when started by run_on_tmpfs(), do its part and exit. */
static inline void tmpfs_child(int argc, char **argv, int (*check)(const char *folder))
{
	int r;

	if (argc != 4 || strcmp(argv[1], "--on-tmpfs"))
		return;
	signal(SIGXFSZ, SIG_IGN);
	r = mount_small(argv[2], argv[3]);
	if (r) {
		fprintf(stderr, "no tmpfs: %s\n", strerror(-r));
		exit(TESTING_NOT_ALLOWED);
	}
	exit(check(argv[2]) ? 1 : 0);
}

/* Exit status of this program's check() on a tmpfs of that size, or TESTING_NOT_ALLOWED. Death by a
 * signal counts as 128 + signal. */
static inline int run_on_tmpfs(const char *folder, const char *size)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *argv[] = {self, "--on-tmpfs", (char *)folder, (char *)size, NULL};
	pid_t pid;
	int status;

	if (n < 0)
		return TESTING_NOT_ALLOWED;
	self[n] = '\0';
	if (posix_spawn(&pid, self, NULL, NULL, argv, environ) || waitpid(pid, &status, 0) != pid)
		return TESTING_NOT_ALLOWED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
