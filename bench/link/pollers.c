/* pollers.c - rows of several cores: link threads poll, each on its cpu, and the caller gives
 * blocks back, as the pipeline's dispatcher does. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "bench/link/receiver.h"

enum { SPIN_NS = 100000, WAIT_US = 200 };

struct sl_bench_poller {
	struct sl_bench_receiver *receiver;
	unsigned index;
	_Atomic uint32_t stop;
	struct sl_thread thread;
};

static void *poll_main(void *arg)
{
	struct sl_bench_poller *poller = arg;
	struct sl_bench_receiver *r = poller->receiver;
	uint64_t idle_ns = 0, now_ns;

	while (!atomic_load_explicit(&poller->stop, memory_order_relaxed)) {
		if (r->receiving->poll(r->state, poller->index, SL_BENCH_BUDGET) > 0) {
			idle_ns = 0;
			continue;
		}
		now_ns = sl_clock_ns();
		idle_ns = idle_ns ? idle_ns : now_ns;
		if (now_ns - idle_ns > SPIN_NS)
			r->receiving->wait(r->state, poller->index, WAIT_US);
	}
	return NULL;
}

int sl_bench_pollers_start(struct sl_bench_receiver *r)
{
	int err = 0;

	r->poller = calloc(r->pollers, sizeof(*r->poller));
	if (!r->poller)
		return -ENOMEM;
	for (unsigned i = 0; i < r->pollers && !err; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)r->bench->core[i], &set);
		r->poller[i].receiver = r;
		r->poller[i].index = i;
		err = sl_thread_start(&r->poller[i].thread, "link", &set, poll_main, &r->poller[i]);
	}
	return err;
}

void sl_bench_pollers_end(struct sl_bench_receiver *r)
{
	for (unsigned i = 0; r->poller && i < r->pollers; i++)
		atomic_store(&r->poller[i].stop, 1);
	for (unsigned i = 0; r->poller && i < r->pollers; i++)
		sl_thread_join(&r->poller[i].thread);
	free(r->poller);
	r->poller = NULL;
}

void sl_bench_pollers_hand_back(struct sl_bench_receiver *r, uint64_t sequence)
{
	struct sl_grace grace;
	bool broken = false;
	uint64_t ns;

	for (uint32_t q = 0; q < r->row->queues; q++)
		if (sl_ring_event(&r->ring, sequence, q, &ns)) {
			sl_ring_finish(&r->ring, sequence, q);
		} else {
			sl_ring_close(&r->ring, sequence, q);
			broken = true;
		}
	if (broken) {
		sl_ring_grace(&r->ring, &grace);
		while (!sl_ring_quiet(&r->ring, &grace))
			sched_yield();
	}
	for (uint32_t q = 0; q < r->row->queues; q++)
		sl_ring_release(&r->ring, sequence, q);
}
