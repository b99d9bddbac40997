/* host.c - stages of a chain on the CPU, run by the thread that has the device. */
#include <errno.h>
#include <stdlib.h>

#include "base/bell.h"
#include "unit/cpu/cpu.h"
#include "unit/gpu/gpu.h"

int sl_host_open(struct sl_host *host, const struct sl_chain *chain, enum sl_host_part part)
{
	unsigned workers;
	int err;

	*host = (struct sl_host){.chain = *chain};
	host->chain.stages = 0;
	for (unsigned s = 0; s < chain->stages; s++)
		if (part == SL_HOST_ALL || !chain->stage[s].ops->gpu == (part == SL_HOST_OTHERS))
			host->chain.stage[host->chain.stages++] = chain->stage[s];
	if (!host->chain.stages)
		return 0;
	host->bell = calloc(2, sizeof(*host->bell));
	host->state = calloc(1, sl_unit_cpu.state_bytes);
	if (!host->bell || !host->state)
		return -ENOMEM;
	sl_options_defaults(sl_unit_cpu.options, host->state);
	err = sl_unit_cpu.open(host->state, &host->chain, &host->bell[0], &host->bell[1], &workers);
	if (err) {
		free(host->state);
		host->state = NULL;
	}
	return err;
}

void sl_host_close(struct sl_host *host)
{
	if (host->state)
		sl_unit_cpu.close(host->state);
	free(host->state);
	free(host->bell);
	*host = (struct sl_host){0};
}

int sl_host_run(struct sl_host *host, struct sl_batch *batch)
{
	return host->state ? sl_cpu_run(host->state, batch) : 0;
}
