/* front_ends.h - FEROCE front ends as sources of a run.
 *
 * Model:     what control/tcp/server.h is for front ends: offers go to the receiver, and how far a
 *            front end has come is what the receiver has seen of it.
 * Threads:   the control thread.
 * Ownership: borrows experiment and receiver until the server is closed. */
#ifndef SL_CMD_RUN_FRONT_ENDS_H
#define SL_CMD_RUN_FRONT_ENDS_H

#include "control/feroce/server.h"
#include "receiver/receiver.h"

/* Logs and returns -errno. */
int sl_front_ends_open(const struct sl_experiment *experiment, struct sl_receiver *receiver,
		       struct sl_feroce_server **server);

/* Open no more slots, and let go who has filled them or rests. */
void sl_front_ends_stop(struct sl_receiver *receiver, struct sl_feroce_server *server);

#endif
