/* keeper.h - a run with a keeper: takes over what an earlier receiver left, and leaves the same
 * to the next.
 *
 * Model:     without control.keeper every call is what it was before. With it, the run claims the
 *            keeper's handover state first. There is none: the run begins as any other, and stores
 *            one before it starts. There is one: sources are taken over (control driver
 *            `resumed`). At the end, when the sinks have closed, it is forgotten if no source needs
 *            it any more; otherwise it stays.
 * Threads:   the control thread.
 * Ownership: borrows experiment and receiver. */
#ifndef SL_SESSION_KEEPER_H
#define SL_SESSION_KEEPER_H

#include "control/handover/keeper.h"
#include "receiver/receiver.h"

struct sl_session_keeper {
	int socket;	 /* to the keeper; -1: there is none, or no more */
	bool taken_over; /* sources have plans already: there are no offers */
	const struct sl_receiver *receiver;
	uint32_t stored; /* plans that the keeper knows of */
};

/* Logs. */
int sl_session_keeper_open(struct sl_session_keeper *handover, struct sl_experiment *experiment,
			   const char *outcomes, struct sl_receiver **receiver);

/* All modules have plans; before the start. */
int sl_session_keeper_store(struct sl_session_keeper *handover, const struct sl_receiver *receiver);

void sl_session_keeper_poll(struct sl_session_keeper *handover);

/* Every frame has its outcome, and what was stored is safe. */
void sl_session_keeper_end(struct sl_session_keeper *handover, const struct sl_receiver *receiver);
void sl_session_keeper_close(struct sl_session_keeper *handover);

#endif
