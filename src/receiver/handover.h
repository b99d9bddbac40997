/* handover.h - a receiver takes the place of another while its sources go on: what the first
 * leaves.
 *
 * Model:     a handover state is what sources rely on and what must therefore outlive a receiver:
 *            the ring's memory, the link's sockets, and the plans by which sources write; beside
 *            them notes in shared memory, in which the link goes on writing down how far it has
 *            come (core/link.h). Somebody holds it (control/handover/keeper.h). A receiver that
 *            takes over it begins with the first sequence of which its predecessor took nothing:
 *            what was under way is not of its run, and neither sent nor lost in its ledger.
 *            Aligned by sequence, all modules begin with the same one, the highest.
 * Order:     sl_receiver_open_handover without a handover state, accept, hand over, start, ...; or
 *            with one, then take over, start, ...
 * Threads:   the control thread, before start.
 * Ownership: descriptors in a handover state are the handover state's (sl_handover_close);
 *            receivers duplicate them. */
#ifndef SL_RECEIVER_HANDOVER_H
#define SL_RECEIVER_HANDOVER_H

#include <stdint.h>

#include "core/link.h"

enum { SL_HANDOVER_MODULES = 64 };

struct sl_handover_transfer {
	struct sl_offer offer;
	struct sl_plan plan;
	int fd; /* -1: none */
};

struct sl_handover {
	char link[16]; /* its name */
	/* A receiver must agree on these to take over it. */
	uint64_t experiment; /* sl_experiment_digest() */
	uint32_t slots, modules;
	uint64_t region_bytes;
	uint64_t host; /* 1: the sources share this host's clock */
	int region, notes, link_fd;
	struct sl_handover_transfer transfer[SL_HANDOVER_MODULES]; /* [modules] */
};

/* No descriptor is open. */
void sl_handover_init(struct sl_handover *handover);
void sl_handover_close(struct sl_handover *handover);

struct sl_experiment;
struct sl_receiver;

/* As sl_receiver_open(), with memory and sockets that may outlive the process. handover: an
 * earlier receiver's, or NULL. Logs why the experiment does not fit it. */
int sl_receiver_open_handover(struct sl_experiment *experiment, const char *outcomes_path,
			      const struct sl_handover *handover, struct sl_receiver **receiver);

/* After all modules were accepted: what a receiver after this one needs. The descriptors remain
 * the receiver's: close none of them. */
void sl_receiver_hand_over(const struct sl_receiver *receiver, struct sl_handover *handover);

/* Accept the transfers of the handover state that the receiver was opened with, and begin where
 * they are. Logs. */
int sl_receiver_take_over(struct sl_receiver *receiver);

/* Plans that were made or taken over so far: when it has changed, hand over anew. */
uint32_t sl_receiver_plans(const struct sl_receiver *receiver);

#endif
