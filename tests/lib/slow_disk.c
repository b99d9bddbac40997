/* slow_disk.c - a disk that is slow, for system tests: loaded by LD_PRELOAD, it delays each write
 * to a file of HDF5, or to one with SLOW_DISK_OF in its name, as long as a disk of
 * SLOW_DISK_BYTES_PER_S would take for its bytes. With SLOW_DISK_OF there is no io_uring, whose
 * writes cannot be delayed.
 *
 * Threads:   any; each waits for itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_slow(int fd)
{
	const char *of = getenv("SLOW_DISK_OF");
	char link[64], name[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return 0;
	name[n] = '\0';
	return of ? strstr(name, of) != NULL : strstr(name, ".h5") || strstr(name, ".nxs");
}

struct io_uring;
int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	int (*next)(unsigned, struct io_uring *, unsigned) =
		dlsym(RTLD_NEXT, "io_uring_queue_init");

	return next && !getenv("SLOW_DISK_OF") ? next(entries, ring, flags) : -EPERM;
}

static void delay(int fd, size_t bytes)
{
	const char *rate = getenv("SLOW_DISK_BYTES_PER_S");
	double seconds = rate && is_slow(fd) ? (double)bytes / atof(rate) : 0;
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	if (seconds > 0)
		nanosleep(&t, NULL);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");

	delay(fd, bytes);
	return next(fd, from, bytes, offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");

	delay(fd, bytes);
	return next(fd, from, bytes, offset);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
	ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");

	delay(fd, bytes);
	return next(fd, from, bytes);
}
