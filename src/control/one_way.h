/* one_way.h - sources that nobody can ask: offers made for them, and when they are over.
 *
 * Model:     a native UDP detector sends when it likes, and says neither that it begins nor that it
 *            ends. So the receiver makes the offers itself, out of the experiment (core/link.h, one
 *            way), opens all its slots, and waits. A module is over
 *              - when its last frame was reached;
 *              - when another module's was, and nothing has come for a second: the detector sent
 *                that frame, and this module's part of it was lost;
 *              - when nothing has come for silence_s: it is gone;
 *              - when the run is stopped: it may go on sending, and is listened to no more.
 *            What it sent is what was seen of it.
 * Threads:   the control thread.
 * Ownership: borrows the receiver. */
#ifndef SL_CONTROL_ONE_WAY_H
#define SL_CONTROL_ONE_WAY_H

#include "receiver/private.h"

struct sl_one_way {
	struct sl_receiver *receiver;
	uint64_t frames;		  /* of the run */
	uint64_t first_ns, silence_ns;	  /* to wait for the first packet; for any more */
	uint64_t packets, idle, quiet_ns; /* when something last came */
	bool over[SL_ASSEMBLER_MODULES];
};

/* Offers for all modules, and plans. Logs. */
int sl_one_way_open(struct sl_one_way *oneway, struct sl_receiver *receiver);

/* The receiver's threads run: wait until there are slots for what may come. -ETIMEDOUT, logged. */
int sl_one_way_wait(const struct sl_one_way *oneway);

void sl_one_way_start(struct sl_one_way *oneway, uint64_t now_ns); /* from now on silence counts */
void sl_one_way_poll(struct sl_one_way *oneway, uint64_t now_ns);
/* Whoever sends has failed, as we happen to know: a second without packets is silence enough. */
void sl_one_way_hasten(struct sl_one_way *oneway);
void sl_one_way_stop(struct sl_one_way *oneway);

#endif
