/* peer.h - what the programs of this folder share.
 *
 * Model:     a program does one thing for as long as it is told, and prints one line of JSON with
 *            what it measured. tools/bench.py and `sluice bench link` run them in turn and make
 *            tables. Peers use nothing of Sluice.
 * Peers:     PROGRAM MODE BYTES SECONDS. The receiver is the program itself, the sender a process
 *            that it forks. From the environment: BENCH_RECEIVER, the address to receive on;
 *            BENCH_SENDER_NETNS, the sender's network namespace; BENCH_RECEIVER_CORE and
 *            BENCH_SENDER_CORE; BENCH_BUFFER, the receive buffer to ask for; BENCH_RING, bytes of
 *            memory to receive into; BENCH_NOCSUM, leave the UDP checksum 0; BENCH_SENDER, the
 *            sender's address where it matters (RDMA devices); else the receiver's. */
#ifndef SL_BENCH_PEER_PEER_H
#define SL_BENCH_PEER_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

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

/* ---- peers of the links ---- */

#define BENCH_PEER_USAGE(name, modes) name " " modes " BYTES SECONDS"

enum {
	BENCH_SOURCE = 64 << 20, /* what is sent: more than caches hold */
	BENCH_QUANTILES = 13,
	BENCH_TIMES = 1 << 20,
};

struct bench_shared {			 /* between the two processes */
	_Atomic uint64_t received, sent; /* messages */
	_Atomic uint32_t stop;
};

static inline double bench_seconds(const char *text, const char *usage)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || !(value > 0))
		bench_usage(usage);
	return value;
}

static inline uint64_t bench_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static inline const char *bench_receiver(void)
{
	const char *text = getenv("BENCH_RECEIVER");

	return text ? text : "127.0.0.1";
}

static inline void bench_pin(const char *name)
{
	uint64_t core = bench_env(name, UINT64_MAX);
	cpu_set_t set;

	CPU_ZERO(&set);
	if (core >= CPU_SETSIZE)
		return;
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* In the forked process: where the sender belongs, and no longer than who started it. */
static inline void bench_be_sender(void)
{
	const char *netns = getenv("BENCH_SENDER_NETNS");
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!netns)
		return;
	fd = open(netns, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		bench_fail(netns);
	close(fd);
}

static inline void bench_print_rate(uint64_t messages, size_t bytes, double seconds, uint64_t lost)
{
	printf("{\"GB_per_s\": %.6f, \"packets_per_s\": %.1f, \"seconds\": %.6f, \"lost\": %llu, "
	       "\"bytes\": %llu}\n",
	       1e-9 * (double)messages * (double)bytes / seconds, (double)messages / seconds,
	       seconds, (unsigned long long)lost, (unsigned long long)(messages * bytes));
}

static inline uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int bench_by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Times at the levels that `sluice bench` has, as a member of a JSON object. */
static inline void bench_put_times(uint32_t *ns, size_t n)
{
	static const double level[BENCH_QUANTILES] = {0,   0.01, 0.05, 0.1,   0.25,   0.5, 0.75,
						      0.9, 0.95, 0.99, 0.999, 0.9999, 1};

	qsort(ns, n, sizeof(*ns), bench_by_value);
	printf("\"quantiles_us\": [");
	for (unsigned i = 0; i < BENCH_QUANTILES && n; i++)
		printf("%s%.3f", i ? ", " : "", 1e-3 * ns[(size_t)(level[i] * (double)(n - 1))]);
	printf("]");
}

/* One-way times. */
static inline void bench_print_times(uint32_t *ns, size_t n)
{
	printf("{");
	bench_put_times(ns, n);
	printf(", \"lost\": 0}\n");
}

/* ---- peers of shares: one piece of memory after the other, and how long each takes ---- */

typedef void bench_work(void *arg);

/* A quarter of the time to get warm, then for as long as asked, and at least three times. */
static inline void bench_each(bench_work *work, void *arg, size_t bytes, double seconds)
{
	uint32_t *ns = bench_memory(BENCH_TIMES * sizeof(*ns), MAP_PRIVATE);
	uint64_t begun = bench_now_ns(), start, last, now, n = 0;
	uint64_t warm = (uint64_t)(2.5e8 * seconds), most = (uint64_t)(1e9 * seconds);

	do
		work(arg);
	while (bench_now_ns() - begun < warm);
	start = last = now = bench_now_ns();
	while (now - start < most || n < 3) {
		work(arg);
		now = bench_now_ns();
		ns[n++ % BENCH_TIMES] = (uint32_t)(now - last);
		last = now;
	}
	printf("{\"GB_per_s\": %.9f, \"count\": %llu, \"bytes\": %llu, \"lost\": 0, ",
	       (double)n * (double)bytes / (double)(now - start), (unsigned long long)n,
	       (unsigned long long)(n * bytes));
	bench_put_times(ns, n < BENCH_TIMES ? n : BENCH_TIMES);
	printf("}\n");
}

#endif
