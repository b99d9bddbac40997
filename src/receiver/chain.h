/* chain.h - an experiment's stages, opened and joined output to input. */
#ifndef SL_RECEIVER_CHAIN_H
#define SL_RECEIVER_CHAIN_H

#include "core/unit.h"
#include "experiment/experiment.h"
#include "receiver/part.h"

struct sl_chain_build {
	struct sl_chain chain;
	struct sl_shape result[SL_RESULTS];
	uint32_t results;
	struct sl_constant constant[SL_RESULTS];
	uint32_t constants;
	void *copy_state; /* of the stage added for sinks that want raw pixels */
	struct sl_part_stage part[SL_EXPERIMENT_OTHERS]; /* of those added for other detectors */
};

/* Open every stage in order; errors are logged. On failure everything opened is closed again. */
int sl_chain_open(const struct sl_experiment *experiment, const struct sl_env *env,
		  struct sl_chain_build *build);
void sl_chain_close(struct sl_chain_build *build);

#endif
