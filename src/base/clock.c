/* clock.c - time. */
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t sl_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sl_clock_coarse_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sl_clock_sleep_until(uint64_t ns)
{
	const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

uint64_t sl_clock_unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sl_clock_iso8601(uint64_t unix_ns, char *text, size_t bytes)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char day_and_time[32];
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(day_and_time, sizeof(day_and_time), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, bytes, "%s.%03uZ", day_and_time, (unsigned)(unix_ns / 1000000 % 1000));
}

static uint64_t fnv1a(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	while (bytes--)
		hash = (hash ^ *p++) * 0x100000001b3u; /* the FNV-1a prime for 64 bits */
	return hash;
}

uint64_t sl_clock_host(void)
{
	char id[64];
	ssize_t n = -1;
	struct stat space;
	uint64_t hash = 0xcbf29ce484222325u; /* the FNV-1a offset basis for 64 bits */
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, id, sizeof(id));
		close(fd);
	}
	if (n <= 0) {
		/* An unknown host must not look like another one: better never equal. */
		if (getrandom(&hash, sizeof(hash), 0) != sizeof(hash))
			hash = sl_clock_ns() ^ (uint64_t)getpid() << 40;
		return hash;
	}
	hash = fnv1a(hash, id, (size_t)n);
	/* A time namespace shifts CLOCK_MONOTONIC within one boot. */
	if (!stat("/proc/self/ns/time", &space))
		hash = fnv1a(hash, &space.st_ino, sizeof(space.st_ino));
	return hash;
}
