/* credit.h - how much a receiver lets a source send, in bytes of stream position.
 *
 * Model:     granted = min(end of the open slots, seen + window): the first guards the slots,
 *            the second the receive buffer. A grant goes out when it has grown by a quarter of
 *            the window, or whatever it has grown when there is nothing else to do and the source
 *            may soon run out, and again from time to time while a source may be waiting for it,
 *            since a grant can be lost.
 * Promises:  invariant GRANTED: the source writes sequence k only after the slot was opened for k.
 *            invariant FITS: no more is under way than the window, which the receive buffer holds.
 *            invariant DELAYED: a lost packet or grant only delays (tests/model/credit.pml).
 * Threads:   the link's poller thread. */
#ifndef SL_LINK_CREDIT_H
#define SL_LINK_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/link.h"

struct sl_credit {
	uint64_t window;  /* bytes in flight at most; UINT64_MAX: only the slots count */
	uint64_t granted; /* last sent */
	uint64_t sent_ns; /* when */
};

/* True with *grant when one is to be sent now; the caller sends it and it counts as sent. */
bool sl_credit_due(struct sl_credit *credit, const struct sl_plan *plan, const struct sl_ring *ring,
		   uint64_t seen, bool idle, uint64_t now_ns, uint64_t *grant);

#endif
