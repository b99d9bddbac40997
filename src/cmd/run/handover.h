/* handover.h - a run with a keeper: adopts what an earlier receiver left, and leaves the same to
 * the next.
 *
 * Model:     without control.keeper every call is what it was before. With it, the run claims the
 *            keeper's estate first. There is none: the run begins as any other, and stores one
 *            before it starts. There is one: sources are adopted and watched
 *            (control/handover/watch.h). At the end it is forgotten when no source will need it,
 *            otherwise it stays.
 * Threads:   the control thread.
 * Ownership: borrows experiment and receiver. */
#ifndef SL_CMD_RUN_HANDOVER_H
#define SL_CMD_RUN_HANDOVER_H

#include "control/handover/keeper.h"
#include "control/handover/watch.h"
#include "receiver/receiver.h"

struct sl_heir {
	int socket;   /* to the keeper; -1: there is none, or no more */
	bool adopted; /* sources have plans already, and come from nobody's offer */
	const struct sl_receiver *receiver;
	uint32_t stored; /* plans that the keeper knows of */
	struct sl_adopted watch;
};

/* Logs. */
int sl_heir_open(struct sl_heir *heir, struct sl_experiment *experiment, const char *outcomes,
		 struct sl_receiver **receiver);

/* All modules have plans; before the start. */
int sl_heir_store(struct sl_heir *heir, const struct sl_receiver *receiver);

void sl_heir_poll(struct sl_heir *heir);
void sl_heir_stop(struct sl_heir *heir);
void sl_heir_abandon(struct sl_heir *heir);

/* Every frame has its outcome. */
void sl_heir_end(struct sl_heir *heir, const struct sl_receiver *receiver);
void sl_heir_close(struct sl_heir *heir);

#endif
