/* jitter.c - what the machine does on its own: a thread on each of the cores that are
 * used here does nothing but read the clock. Where it does not get to read it for a microsecond or
 * more, something else had the core: the kernel, another program, the hypervisor.
 *
 * Figures are what an event would see that comes at any time and needs the core: most wait for
 * nothing, one that comes during a gap waits for its end. So percentiles can be put beside those of
 * decisions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/trigger/trigger.h"

enum { CORES = 2, GAPS = 1 << 20, GAP_NS = 1000, LONGER = 5 /* than other rows */ };

struct probe {
	struct sl_thread thread;
	uint64_t until_ns, took_ns;
	uint32_t *gap_ns; /* [GAPS] */
	size_t gaps;
};

static void *watch(void *arg)
{
	struct probe *p = arg;
	uint64_t start = sl_clock_ns(), before = start, now = start;

	while (now < p->until_ns) {
		now = sl_clock_ns();
		if (now - before >= GAP_NS && p->gaps < GAPS)
			p->gap_ns[p->gaps++] = (uint32_t)(now - before);
		before = now;
	}
	p->took_ns = now - start;
	return NULL;
}

static int start(struct probe *p, int core, uint64_t until_ns)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (core >= 0)
		CPU_SET((size_t)core, &set);
	p->until_ns = until_ns;
	p->gap_ns = malloc(GAPS * sizeof(*p->gap_ns));
	if (!p->gap_ns)
		return -ENOMEM;
	memset(p->gap_ns, 1, GAPS * sizeof(*p->gap_ns)); /* its pages are there */
	return sl_thread_start(&p->thread, "jitter", core >= 0 ? &set : NULL, watch, p);
}

/* The share of all times from which it takes longer than `ns` to the end of a gap. */
static double share_beyond(const struct probe *p, size_t n, double ns)
{
	double beyond = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < p[i].gaps; k++)
			beyond += p[i].gap_ns[k] > ns ? p[i].gap_ns[k] - ns : 0;
		all += (double)p[i].took_ns;
	}
	return all > 0 ? beyond / all : 0;
}

/* The wait that all but 1 - level of the times have at most; within a nanosecond. */
static double quantile_ns(const struct probe *p, size_t n, double level)
{
	double low = 0, high = UINT32_MAX;

	if (share_beyond(p, n, 0) <= 1 - level)
		return 0;
	while (high - low > 1) {
		double middle = (low + high) / 2;

		if (share_beyond(p, n, middle) > 1 - level)
			low = middle;
		else
			high = middle;
	}
	return high;
}

int sl_bench_jitter(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample)
{
	struct probe probe[CORES] = {0};
	size_t cores = bench->core[1] >= 0 ? CORES : 1;
	uint64_t until_ns = sl_clock_ns() + (uint64_t)(1e9 * LONGER * bench->o.seconds);
	int err = 0;

	for (size_t i = 0; i < cores && !err; i++)
		err = start(&probe[i], bench->core[i], until_ns);
	for (size_t i = 0; i < cores; i++) {
		sl_thread_join(&probe[i].thread);
		sample->count += probe[i].gaps;
		for (size_t k = 0; k < probe[i].gaps; k++)
			if (1e-3 * probe[i].gap_ns[k] > sample->quantile_us[SL_BENCH_MOST])
				sample->quantile_us[SL_BENCH_MOST] = 1e-3 * probe[i].gap_ns[k];
	}
	for (unsigned i = 0; i < SL_BENCH_MOST; i++)
		sample->quantile_us[i] = 1e-3 * quantile_ns(probe, cores, sl_bench_levels[i]);
	sample->share = share_beyond(probe, cores, 0);
	return err;
}
