/* cpu.h - the CPU for other units: for stages that accelerators do not have, for checks, and when
 * an accelerator fails. */
#ifndef SL_UNIT_CPU_H
#define SL_UNIT_CPU_H

#include "core/unit.h"

extern const struct sl_unit sl_unit_cpu;

/* Until a stage decides, a frame is kept. */
void sl_verdicts_reset(struct sl_batch *batch);

/* Run the chain over the batch here and now; verdicts go on from what they are. The unit must be
 * open with one worker, and nobody else may use it. */
int sl_cpu_run(void *state, struct sl_batch *batch);

#endif
