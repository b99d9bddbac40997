/* scratch.c - memory that workers need for the batches in flight. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "unit/cpu/engine.h"

/* A stage that only looks at single frames, and expects no zeros, leaves nothing in its scratch
 * from one call to the next: one is enough for all batches in flight. */
static bool is_shared(const struct sl_chain_stage *stage)
{
	return !stage->ops->tile && !stage->ops->finish &&
	       stage->terms.stale_bytes == stage->terms.scratch_bytes;
}

static double bytes_of(const struct sl_cpu_engine *e, unsigned flights, unsigned stage)
{
	const struct sl_chain_stage *s = &e->chain.stage[stage];

	return (double)s->terms.scratch_bytes * (double)e->chain.batch_frames * e->workers *
	       (is_shared(s) ? 1 : flights);
}

static double bytes_of_all(const struct sl_cpu_engine *e, unsigned flights)
{
	double bytes = 0;

	for (unsigned s = 0; s < e->chain.stages; s++)
		bytes += bytes_of(e, flights, s);
	return bytes;
}

/* As many as wanted, unless their scratch would take more than a quarter of the memory. */
static unsigned choose_flights(const struct sl_cpu_engine *e, unsigned wanted, double memory)
{
	unsigned flights = wanted < SL_CPU_QUEUE ? wanted : SL_CPU_QUEUE;

	while (flights > 1 && bytes_of_all(e, flights) > memory / 4)
		flights--;
	return flights;
}

static int check_memory(const struct sl_cpu_engine *e, double memory)
{
	for (unsigned s = 0; s < e->chain.stages; s++) {
		double bytes = bytes_of(e, e->flights, s);

		if (bytes <= memory)
			continue;
		sl_error("cpu: stage '%s' wants %.1f GB for its work, and this host has %.1f GB; "
			 "lower unit.batch, unit.workers, or what it is to do",
			 e->chain.stage[s].ops->name, bytes * 1e-9, memory * 1e-9);
		return -ENOMEM;
	}
	return 0;
}

/* Not zeroed here: each worker zeroes its own on first use, so that the pages lie on its node. */
static int allocate(const struct sl_cpu_engine *e, struct sl_cpu_flight *flight, unsigned stage)
{
	size_t bytes = e->chain.stage[stage].terms.scratch_bytes * e->chain.batch_frames;

	flight->scratch[stage] = calloc(e->workers, sizeof(void *));
	if (!flight->scratch[stage])
		return -ENOMEM;
	bytes = (bytes + SL_CPU_LINE - 1) / SL_CPU_LINE * SL_CPU_LINE;
	for (unsigned w = 0; bytes && w < e->workers; w++) {
		flight->scratch[stage][w] = aligned_alloc(SL_CPU_LINE, bytes);
		if (!flight->scratch[stage][w])
			return -ENOMEM;
	}
	return 0;
}

int sl_cpu_scratch_open(struct sl_cpu_engine *e, unsigned flights)
{
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	int err;

	e->flights = choose_flights(e, flights, memory);
	err = check_memory(e, memory);
	if (err)
		return err;
	e->flight = sl_cpu_lines(e->flights * sizeof(*e->flight));
	e->worker = sl_cpu_lines(e->workers * sizeof(*e->worker));
	if (!e->flight || !e->worker)
		return -ENOMEM;
	for (unsigned f = 0; f < e->flights; f++)
		for (unsigned s = 0; s < e->chain.stages; s++) {
			if (f && is_shared(&e->chain.stage[s]))
				e->flight[f].scratch[s] = e->flight[0].scratch[s];
			else if (allocate(e, &e->flight[f], s))
				return -ENOMEM;
		}
	return 0;
}

void sl_cpu_scratch_close(struct sl_cpu_engine *e)
{
	for (unsigned f = 0; e->flight && f < e->flights; f++)
		for (unsigned s = 0; s < e->chain.stages; s++) {
			void **scratch = e->flight[f].scratch[s];

			if (f && is_shared(&e->chain.stage[s]))
				continue;
			for (unsigned w = 0; scratch && w < e->workers; w++)
				free(scratch[w]);
			free(scratch);
		}
	free(e->flight);
	free(e->worker);
	e->flight = NULL;
	e->worker = NULL;
}

void sl_cpu_scratch_clear(const struct sl_cpu_engine *e, const struct sl_cpu_flight *flight,
			  unsigned worker, uint32_t frames)
{
	for (unsigned s = 0; s < e->chain.stages; s++) {
		const struct sl_stage_terms *terms = &e->chain.stage[s].terms;
		size_t zeroed = terms->scratch_bytes - terms->stale_bytes;

		if (zeroed == terms->scratch_bytes && zeroed) {
			memset(flight->scratch[s][worker], 0, frames * zeroed);
			continue;
		}
		for (uint32_t f = 0; zeroed && f < frames; f++)
			memset((char *)flight->scratch[s][worker] + f * terms->scratch_bytes, 0,
			       zeroed);
	}
}
