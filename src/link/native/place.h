/* place.h - which packet of a module's stream a header speaks of, whether it may be placed,
 * and what of each block is in: the packet mask of links whose detectors number their packets.
 *
 * Model:     one placer per module. A header's number, counted from the first one of the run, says
 *            which sequence its packet belongs to; numbers wrap, so they are taken as the nearest
 *            to the newest one. A frame number that jumps ahead leaves sequences without packets:
 *            the assembler names them lost. One stray packet must not do that: a jump past all that
 *            the ring could hold is believed when a second packet says the same.
 *            A packet is placed only while its cell is open and only if it is not in; the last
 *            missing one raises the event, after the record was written: frame, timestamp and
 *            storage cell as the headers say. Everything else is counted by cause.
 * Threads:   the module's poller, between sl_ring_enter and sl_ring_leave.
 * Cost:      some divisions and a bit test per packet besides the copy; no allocation after init.
 */
#ifndef SL_LINK_NATIVE_PLACE_H
#define SL_LINK_NATIVE_PLACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/link.h"
#include "link/native/shape.h"

struct sl_native_track { /* of one slot */
	uint64_t sequence_plus_1;
	uint32_t packets;
	uint16_t cell;
	uint64_t timestamp; /* as the first packet that came said */
	uint64_t first_ns;  /* when that was, here */
};

struct sl_native_numbers {		  /* how a module's packets are counted */
	unsigned bits;			  /* of a number on the wire */
	uint64_t step;			  /* numbers from one sequence to the next */
	uint64_t frames;		  /* of the run; 0: no end */
	uint64_t first_frame, frame_step; /* what records call them */
	bool frame_is_number;		  /* and that is what the wire says */
	/* 1 + the number of sequence 0, the same for all modules; 0: not known yet, and then the
	 * first one that comes is. */
	_Atomic uint64_t *first_plus;
};

struct sl_native_placer {
	struct sl_ring *ring;
	struct sl_link_counters *counters;
	struct sl_plan plan;
	struct sl_native_shape shape;
	struct sl_native_numbers numbers;
	uint64_t newest; /* the highest number that came, from the first on */
	bool jumped;	 /* one packet said that the stream has gone on to jumped_to */
	uint64_t jumped_to;
	/* Per port, 1 + the highest sequence of which anything came; and the highest of them when
	 * the ports were last looked at. */
	uint64_t reached[SL_NATIVE_PORTS], newest_reached;
	struct sl_native_track *track; /* [slots] */
	uint64_t *bits;		       /* [slots][words] */
	uint32_t words;
};

struct sl_native_where { /* a packet of a module */
	uint64_t sequence;
	uint32_t port, packet;
	uint64_t timestamp;
	uint16_t cell;
};

int sl_native_placer_init(struct sl_native_placer *placer, struct sl_ring *ring,
			  struct sl_link_counters *counters, const struct sl_plan *plan,
			  const struct sl_native_shape *shape,
			  const struct sl_native_numbers *numbers);
void sl_native_placer_fini(struct sl_native_placer *placer);

/* A port's packet with this number on the wire; packet as its header names it, if it does. False
 * when the run has none, or when it is not believed: it is counted. */
bool sl_native_find(struct sl_native_placer *placer, uint64_t number, uint32_t packet,
		    struct sl_native_where *where);

/* The same for a packet that should be the n'th of its port's stream: true when it is. Otherwise
 * nothing is counted: it may be any other. */
bool sl_native_expected(struct sl_native_placer *placer, uint64_t number, uint32_t packet,
			uint64_t n, struct sl_native_where *where);

/* Where the n'th packet of a port's stream goes: pieces, and how many; 0 when nothing may be
 * written there now. Packed pixels: 1 when they may be written, and no piece. */
unsigned sl_native_predict(const struct sl_native_placer *placer, uint32_t port, uint64_t n,
			   struct sl_native_piece piece[SL_NATIVE_PIECES], uint8_t **block);

/* Take a packet. payload: its bytes, or NULL when they are where sl_native_predict() said. */
void sl_native_put(struct sl_native_placer *placer, const struct sl_native_where *where,
		   const uint8_t *payload, uint64_t now_ns);

/* After all ports were looked at; drained: each was found empty. How far the module's stream has
 * come is how far all its ports have: what one has yet to bring may lie in its socket while another
 * is read. A port that was found empty since holds nothing up. */
void sl_native_reach(struct sl_native_placer *placer, bool drained);

#endif
