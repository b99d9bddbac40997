/* cores.h - the same work on one core, or on several by as many processes, each with memory of its
 * own, at the same time. From the environment: BENCH_CORES, how many; BENCH_CORE_0 and so on,
 * which. */
#ifndef SL_BENCH_PEER_CORES_H
#define SL_BENCH_PEER_CORES_H

#include <sys/wait.h>

#include "bench/peer/peer.h"

enum { CORES_MOST = 64 };

struct cores {
	size_t n, own; /* how many; which this process has */
	struct cores_shared {
		_Atomic uint32_t ready;
		double per_s[CORES_MOST];
	} * shared;
	pid_t child[CORES_MOST]; /* known to the first process alone */
};

/* From here on there may be several processes. Memory comes after this. */
static inline void cores_split(struct cores *c)
{
	uint64_t n = bench_env("BENCH_CORES", 1);
	char name[32];

	c->n = n < 1 ? 1 : n < CORES_MOST ? n : CORES_MOST;
	c->own = 0;
	c->shared = bench_memory(sizeof(*c->shared), MAP_SHARED);
	memset(c->shared, 0, sizeof(*c->shared));
	for (size_t i = 1; i < c->n && !c->own; i++) {
		c->child[i] = fork();
		if (c->child[i] < 0)
			bench_fail("fork");
		if (!c->child[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			c->own = i;
		}
	}
	snprintf(name, sizeof(name), "BENCH_CORE_%zu", c->own);
	bench_pin(name);
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

/* Work per second on all cores, in the first process; the others end here. A quarter of the time
 * to get warm, then all begin together. */
static inline double cores_measure(struct cores *c, cores_work *work, void *arg, double seconds)
{
	struct cores_shared *shared = c->shared;
	double own, sum = 0;
	int status;

	cores_repeat(work, arg, seconds / 4);
	atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->ready) < c->n)
		work(arg, 0); /* nobody measures alone */
	own = cores_repeat(work, arg, seconds);
	shared->per_s[c->own] = own;
	if (c->own)
		_exit(0);
	for (size_t i = 1; i < c->n; i++)
		if (waitpid(c->child[i], &status, 0) != c->child[i] || status) {
			errno = EIO;
			bench_fail("another core");
		}
	for (size_t i = 0; i < c->n; i++)
		sum += shared->per_s[i];
	return sum;
}

#endif
