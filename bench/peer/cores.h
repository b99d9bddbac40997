/* cores.h - the same work on one core, or on two by two processes, each with memory of its own, at
 * the same time. From the environment: BENCH_CORES, how many; BENCH_RECEIVER_CORE and
 * BENCH_SENDER_CORE, which. */
#ifndef SL_BENCH_PEER_CORES_H
#define SL_BENCH_PEER_CORES_H

#include <sys/wait.h>

#include "bench/peer/peer.h"

struct cores {
	size_t n, own; /* how many; which this process has */
	struct cores_shared {
		_Atomic uint32_t ready;
		double per_s[2];
	} * shared;
	pid_t child;
};

/* From here on there may be two of us. Memory comes after this. */
static inline void cores_split(struct cores *c)
{
	c->n = bench_env("BENCH_CORES", 1) > 1 ? 2 : 1;
	c->own = 0;
	c->shared = bench_memory(sizeof(*c->shared), MAP_SHARED);
	memset(c->shared, 0, sizeof(*c->shared));
	c->child = c->n > 1 ? fork() : 0;
	if (c->child < 0)
		bench_fail("fork");
	if (c->n > 1 && !c->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c->own = 1;
	}
	bench_pin(c->own ? "BENCH_SENDER_CORE" : "BENCH_RECEIVER_CORE");
}

typedef void cores_work(void *arg, uint64_t i);

static inline double cores_repeat(cores_work *work, void *arg, double seconds)
{
	double start = bench_now_s(), took;
	uint64_t i = 0;

	do {
		work(arg, i++);
		took = bench_now_s() - start;
	} while (took < seconds);
	return (double)i / took;
}

/* Work per second on all cores, in the first process; the second ends here. A quarter of the time
 * to get warm, then both begin together. */
static inline double cores_measure(struct cores *c, cores_work *work, void *arg, double seconds)
{
	struct cores_shared *shared = c->shared;
	double own;
	int status;

	cores_repeat(work, arg, seconds / 4);
	atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->ready) < c->n)
		work(arg, 0); /* nobody measures alone */
	own = cores_repeat(work, arg, seconds);
	shared->per_s[c->own] = own;
	if (c->own)
		_exit(0);
	if (c->n > 1 && (waitpid(c->child, &status, 0) != c->child || status)) {
		errno = EIO;
		bench_fail("the second core");
	}
	return shared->per_s[0] + shared->per_s[1];
}

#endif
