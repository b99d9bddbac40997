/* passes.h - in which order the CPU goes over a batch: tiles, then whole frames, and again where a
 * stage needs what came of that.
 *
 * Model:     a stage joins the earliest pass in which its input is there, so that as many stages as
 *            possible share a pass over the memory. Within a pass stages keep their order. A
 *            stage's finish() runs after the last pass that it, or a stage before it, is in: so
 *            they speak in the order of the chain. */
#ifndef SL_UNIT_CPU_PASSES_H
#define SL_UNIT_CPU_PASSES_H

#include <stdbool.h>

#include "core/unit.h"

struct sl_cpu_pass {
	bool frames; /* over frames; else over tiles */
	bool learns; /* a stage learns pixel by pixel: each tile sees batches in order */
	/* The batch before must have concluded this pass before this one is begun; -1: none. */
	int after;
	unsigned stages; /* 0: there is nothing to do but to conclude */
	unsigned char stage[SL_CHAIN_STAGES];
	unsigned finishes; /* stages that are done after it, and have a finish() */
	unsigned char finish[SL_CHAIN_STAGES];
};

struct sl_cpu_passes {
	struct sl_cpu_pass pass[2 * SL_CHAIN_STAGES];
	unsigned n; /* at least 1 */
};

/* -EINVAL, logged: a stage does nothing, or reads tiles of what has none. */
int sl_cpu_passes_make(const struct sl_chain *chain, struct sl_cpu_passes *passes);

#endif
