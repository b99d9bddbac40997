/* bench.h - what the programs of this folder share.
 *
 * Model:     a program does one thing for as long as it is told, and prints one line of JSON with
 *            what it measured. tools/bench.py runs them in turn and makes the table. Peers use
 *            nothing of Sluice. */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static inline double bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline _Noreturn void bench_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline _Noreturn void bench_usage(const char *usage)
{
	fprintf(stderr, "usage: %s\n", usage);
	exit(2);
}

/* A whole number from the command line, at least 1. */
static inline uint64_t bench_number(const char *text, const char *usage)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || !value)
		bench_usage(usage);
	return value;
}

/* Touched, so that nobody pays for page faults, and in huge pages where the host gives them, as the
 * ring of Sluice is. */
static inline void *bench_memory(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		bench_fail("mmap");
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0x5a, bytes);
	return memory;
}

#endif
