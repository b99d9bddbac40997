/* place.h - where an accepted payload goes, and whether it may: the enforced guard of links
 * whose responder is ours.
 *
 * Model:     one placer per transfer. The PSN says which packet of which sequence this is
 *            (core/plan.h); address and length must then be exactly that packet's. It is copied
 *            into the ring only while its slot is open and only if those bytes have not been
 *            received before; the last missing packet raises the event. Everything else is counted
 *            by cause. What is beyond the frames that were offered, or, where the source takes
 *            credits, beyond its grant, changes nothing but that count: neither the stream's
 *            newest packet nor how far the module was seen to come. A source without credits whose
 *            offer has no end is believed whatever its PSN says. For a source whose blocks are
 *            pixels alone (plan.bare) the placer writes the record, before the event.
 * Threads:   the link's poller thread, between sl_ring_enter and sl_ring_leave.
 * Cost:      a division and a bit test per packet besides the copy, three divisions where packets
 *            end with lines; no allocation after init. */
#ifndef SL_LINK_PLACE_H
#define SL_LINK_PLACE_H

#include <stdint.h>

#include "core/link.h"

struct sl_place_track { /* of one slot: which packets of which sequence are in */
	uint64_t sequence_plus_1;
	uint32_t packets;
};

struct sl_placer {
	struct sl_ring *ring;
	struct sl_link_counters *counters;
	struct sl_plan plan;
	uint64_t span;	      /* of a block as it lies in the ring, the record too */
	uint64_t end;	      /* the sequence after the last that was offered; UINT64_MAX: no end */
	uint64_t last_packet; /* the stream's newest packet: unwraps 24-bit PSNs */
	uint64_t next;	      /* 1 + the same; 0: nothing came yet */
	uint64_t seen;	      /* position after it: what credits build on */
	struct sl_place_track *track; /* [slots] */
	uint64_t *bits;		      /* [slots][words] */
	uint32_t words;
};

/* frames: that the source offered; 0: no end. */
int sl_placer_init(struct sl_placer *placer, struct sl_ring *ring,
		   struct sl_link_counters *counters, const struct sl_plan *plan, uint64_t frames);
void sl_placer_fini(struct sl_placer *placer);

/* False when it is not where its PSN says: no honest source does that. What comes too late, too
 * early or again is counted and no lie. rest: of its message from this packet on, as announced: it
 * must end in the block. */
bool sl_placer_put(struct sl_placer *placer, uint32_t psn, uint64_t va, const void *data,
		   uint32_t bytes, uint32_t rest, uint64_t now_ns);

/* The same where the source names no address: the PSN alone says where it belongs. */
bool sl_placer_put_next(struct sl_placer *placer, uint32_t psn, const void *data, uint32_t bytes,
			uint64_t now_ns);

/* Where a packet of the stream belongs, counted from 0: its place, length and PSN, and whether
 * it begins a message or ends its block. NULL when nothing may be written there now: the slot is
 * not open, or the bytes are there already. */
struct sl_place {
	uint8_t *to;
	uint32_t bytes, psn;
	bool first; /* of its message */
	bool last;  /* of its block */
};
void sl_placer_predict(const struct sl_placer *placer, uint64_t packet, struct sl_place *place);

/* The same for the packet with this PSN; false: the stream has none. */
bool sl_placer_locate(const struct sl_placer *placer, uint32_t psn, struct sl_place *place);

/* The packet of the stream that should come next. */
uint64_t sl_placer_expected(const struct sl_placer *placer);

/* Whether the slot that a packet of this PSN belongs to is open. */
enum sl_ring_place sl_placer_may_put(const struct sl_placer *placer, uint32_t psn);

/* So many packets of the stream were taken before, by somebody else. */
void sl_placer_begin(struct sl_placer *placer, uint64_t packets);

/* Everything that was sent below `position` has arrived or never will: the source said so, and the
 * queue was found empty since. */
void sl_placer_catch_up(struct sl_placer *placer, uint64_t position);

#endif
