/* cnp.h - congestion, the receiver's side: tell the sender that a switch marked its packets.
 *
 * Model:     a switch whose queue grows sets CE in the IP header of what passes. Whoever receives
 *            such a packet (the notification point) sends a congestion notification packet (CNP) to
 *            the queue that it came from, but not for each: one per gap is enough. What the sender
 *            makes of it is in rate.h. A CNP is sent like any packet: encode its headers, seal it
 *            (sl_roce_seal, without payload), with DSCP 48 as ConnectX does. It has no PSN and is
 *            never answered; losing one or ignoring it breaks nothing.
 * Threads:   one at a time per state.
 * Ownership: the caller's memory.
 * Cost:      one comparison per marked packet; 28 bytes written per CNP. */
#ifndef SL_ROCE_CNP_H
#define SL_ROCE_CNP_H

#include "roce/responder.h"

enum {
	SL_ROCE_CNP_BYTES = 28,	    /* BTH and 16 reserved bytes, without the ICRC */
	SL_ROCE_CNP_GAP_NS = 50000, /* as in the DCQCN paper: see rate.h */
	SL_ROCE_CNP_DSCP = 48,	    /* default of ConnectX; its captured CNPs carry it */
};

/* The lower two bits of the IPv4 type of service and of the IPv6 traffic class. */
enum sl_roce_ecn {
	SL_ROCE_ECN_MASK = 3,
	SL_ROCE_ECN_OFF = 0, /* switches drop instead of marking */
	SL_ROCE_ECN_ECT0 = 2,
	SL_ROCE_ECN_ECT1 = 1,
	SL_ROCE_ECN_CE = 3, /* congestion experienced */
};

struct sl_roce_cnp {		/* per receiving queue; all zero is ready */
	uint64_t gap_ns;	/* 0: SL_ROCE_CNP_GAP_NS */
	uint64_t quiet_until;	/* its own */
	uint64_t marked, asked; /* its own, to be read: packets with CE, CNPs that were due */
};

/* A packet with CE came for this queue: true when a CNP is due. Time as for rc_requester.h. */
bool sl_roce_cnp_due(struct sl_roce_cnp *state, uint64_t now_ns);

/* The CNP for the queue qpn at the sender, into SL_ROCE_CNP_BYTES. SL_ROCE_EINVAL: a number wider
 * than 24 bits. */
int sl_roce_cnp_encode(uint32_t qpn, void *headers);

/* Is this parsed packet, whose ICRC is good, a CNP for the queue qpn that is connected from local
 * to peer (GIDs)? Strangers must not slow it down. SL_ROCE_DROP_TRANSPORT: no CNP at all. path as
 * for sl_roce_responder_receive(). */
enum sl_roce_drop sl_roce_cnp_receive(uint32_t qpn, const uint8_t *peer, const uint8_t *local,
				      const struct sl_roce_path *path,
				      const struct sl_roce_packet *packet);

#endif
