/* watch.h - sources that were taken over and do not speak: when are they done, or gone?
 *
 * Model:     what control/tcp/server.h and control/feroce/watch.c are for others. A source has
 *            ended when it was seen to send all that it offered to its first receiver; it is gone
 *            when nothing came for `silence_ms`, unless it waits for slots. Stopping means to open
 *            no more slots and take what comes into those that are open, or not to listen any more
 *            to who cannot be held back.
 * Threads:   the control thread.
 * Ownership: borrows the receiver. */
#ifndef SL_CONTROL_HANDOVER_WATCH_H
#define SL_CONTROL_HANDOVER_WATCH_H

#include "receiver/private.h"

struct sl_handover_watch {
	struct sl_receiver *receiver;
	uint64_t silence_ns; /* 0: they may be silent for ever */
	bool stopping;
	struct sl_handover_watch_module {
		struct sl_receiver_progress seen;
		uint64_t quiet_ns, quiet_idle; /* since when nothing came */
		bool over;
	} module[SL_ASSEMBLER_MODULES];
};

void sl_handover_watch_init(struct sl_handover_watch *taken_over, struct sl_receiver *receiver,
			    double silence_s);
void sl_handover_watch_poll(struct sl_handover_watch *taken_over, uint64_t now_ns);
void sl_handover_watch_stop(struct sl_handover_watch *taken_over);
void sl_handover_watch_abandon(
	struct sl_handover_watch *taken_over); /* who has not ended is gone */

/* All of them sent what they had offered: nobody will need their plans again. */
bool sl_handover_watch_exhausted(const struct sl_receiver *receiver);

#endif
