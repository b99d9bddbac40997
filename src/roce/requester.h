/* requester.h - one message becomes packets.
 *
 * Model:     begin with a message, then take packet after packet: its headers, and which bytes of
 *            the message follow them. The caller gathers the payload and seals the packet
 *            (sl_roce_seal in icrc.h). The PSN of the first packet comes with the message; each
 *            packet takes one. The cursor is UC: nothing is ever sent again. RC keeps a queue of
 *            messages: rc_requester.h.
 * Ownership: the cursor is the caller's memory; it may be copied to remember a place.
 * Cost:      some 40 bytes written per packet. */
#ifndef SL_ROCE_REQUESTER_H
#define SL_ROCE_REQUESTER_H

#include "roce/opcode.h"
#include "roce/roce.h"

struct sl_roce_message {
	uint8_t transport; /* SL_ROCE_UC; SL_ROCE_RC for sl_roce_fragment_at() */
	uint8_t kind;	   /* SL_ROCE_KIND_WRITE or SL_ROCE_KIND_SEND; on RC also _READ */
	bool immediate;	   /* the last packet carries imm */
	bool solicited;	   /* SE on the last packet */
	bool mig;	   /* MigReq on every packet: mlx5 sends 1, Soft-RoCE 0 */
	uint16_t pkey;	   /* usually SL_ROCE_PKEY_DEFAULT */
	uint32_t pmtu;
	uint32_t qpn; /* of the destination */
	uint32_t psn; /* of the first packet */
	uint32_t imm;
	uint32_t rkey; /* WRITE */
	uint64_t va;   /* WRITE */
	uint32_t bytes;
};

struct sl_roce_requester { /* a cursor over one message */
	struct sl_roce_message message;
	uint32_t offset; /* of the next packet's payload */
	uint32_t psn;	 /* of the next packet; after the last one, free for the next message */
	bool done;
};

struct sl_roce_fragment { /* one packet */
	uint8_t opcode;
	uint8_t pad;
	bool last;
	uint16_t header_bytes;
	uint32_t psn;
	uint32_t offset, bytes; /* its payload, within the message */
};

/* How many packets a message of this length has; at least one. */
uint32_t sl_roce_packets(uint32_t bytes, uint32_t pmtu);

/* SL_ROCE_EINVAL: not UC, not WRITE or SEND, no such PMTU, more than SL_ROCE_MESSAGE_MAX bytes, or
 * numbers wider than 24 bits. */
int sl_roce_requester_begin(struct sl_roce_requester *requester,
			    const struct sl_roce_message *message);

/* The next packet: its headers into SL_ROCE_HEADERS_MAX bytes, and the rest of it. false when the
 * message is done (requester->psn is then the PSN after it). */
bool sl_roce_requester_next(struct sl_roce_requester *requester, void *headers,
			    struct sl_roce_fragment *fragment);

/* One packet from anywhere in a message: offset is a multiple of the PMTU within it, psn the number
 * of this packet (message->psn is not read). A READ request asks for all from there on and carries
 * nothing. The message must be one that its transport has. */
void sl_roce_fragment_at(const struct sl_roce_message *message, uint32_t offset, uint32_t psn,
			 bool ackreq, void *headers, struct sl_roce_fragment *fragment);

#endif
