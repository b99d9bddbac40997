/* receiver.h - the receiver of a link that is measured, as link.c and pollers.c share it. */
#ifndef SL_BENCH_LINK_RECEIVER_H
#define SL_BENCH_LINK_RECEIVER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/bell.h"
#include "bench/bench.h"

enum { SL_BENCH_BUDGET = 256 }; /* packets of a queue and poll, as the pipeline has it */

struct sl_bench_poller;

struct sl_bench_receiver {
	const struct sl_bench *bench;
	const struct sl_bench_row *row;
	const struct sl_link *link;
	const struct sl_link_receiving *receiving;
	void *state;
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_link_counters counters;
	struct sl_flight_tap *flight; /* [pollers]; NULL: packets are not sampled */
	unsigned pollers;
	struct sl_wake wake[SL_POLLERS];
	struct sl_bench_poller *poller; /* [pollers], where there are several */
	struct sl_plan plan[SL_BENCH_QUEUES];
	struct sl_bench_shared *shared;
	struct sl_bench_source source; /* of the one that is started next */
	unsigned sources;
	pid_t child[SL_BENCH_QUEUES];
	int fd[SL_BENCH_QUEUES];
	uint64_t next;	  /* sequence that is not whole yet */
	uint32_t module;  /* of it, that is missing */
	uint64_t lost;	  /* packets */
	uint64_t idle_ns; /* since when nothing came; 0: something did */
	uint64_t heal_ns;
	uint32_t *time_ns; /* latencies */
	size_t times;
};

/* Several threads poll, each on a cpu of its own; then the caller does not. 0 or -errno. */
int sl_bench_pollers_start(struct sl_bench_receiver *r);
void sl_bench_pollers_end(struct sl_bench_receiver *r);

/* Give back the blocks of a sequence that threads may be writing. */
void sl_bench_pollers_hand_back(struct sl_bench_receiver *r, uint64_t sequence);

#endif
