/* rc.h - what both halves of a reliable connection know: acknowledgement codes, timer codes, and a
 * reply as data.
 *
 * Model:     the responder never sends; it describes a reply. A reply is a cursor: take packet
 *            after packet of it, as from a requester. An acknowledgement is one packet; a READ is
 *            answered from the key's memory, PMTU by PMTU. Replies of a queue leave in the order
 *            in which they were given. */
#ifndef SL_ROCE_RC_H
#define SL_ROCE_RC_H

#include "roce/requester.h"
#include "roce/responder.h"

/* The syndrome byte of an AETH. */
enum sl_roce_syndrome {
	SL_ROCE_SYNDROME_TYPE = 0x60,  /* its bits that tell which of the following it is */
	SL_ROCE_SYNDROME_VALUE = 0x1f, /* credits, timer code or NAK code */
	SL_ROCE_ACK = 0x00,
	SL_ROCE_RNR_NAK = 0x20,
	SL_ROCE_NAK = 0x60,
	SL_ROCE_ACK_UNLIMITED = 0x1f, /* an ACK that says nothing about credits */
	SL_ROCE_NAK_SEQUENCE = 0x60,
	SL_ROCE_NAK_INVALID = 0x61,
	SL_ROCE_NAK_ACCESS = 0x62,
	SL_ROCE_NAK_OPERATION = 0x63,
};

/* How long a requester must wait after an RNR NAK with this code (5 bits). */
uint64_t sl_roce_rnr_ns(unsigned code);

/* The time-out behind a code (5 bits): 4.096 us times 2^code; 0 for code 0, which means never. */
uint64_t sl_roce_timeout_ns(unsigned code);

struct sl_roce_reply {
	bool pending; /* there are packets left to send */
	bool read;    /* READ responses; otherwise one ACKNOWLEDGE */
	bool counted; /* READ: outstanding until sl_roce_rc_responder_answered() */
	bool mig;
	uint8_t syndrome;
	uint16_t pkey;
	uint32_t qpn;	   /* of the peer */
	uint32_t psn, msn; /* of the next packet */
	uint32_t pmtu;
	/* READ: the fragment of each packet is at va + fragment.offset. The key covered all of it
	 * when the request came; who sends later looks rkey up again. */
	const struct sl_roce_key *key; /* NULL when bytes is 0 */
	uint32_t rkey;
	uint64_t va;
	uint32_t bytes;
	uint32_t offset; /* of the next packet */
};

/* The next packet of a reply: headers into SL_ROCE_HEADERS_MAX bytes, the rest into *fragment.
 * false when there is none left. */
bool sl_roce_reply_next(struct sl_roce_reply *reply, void *headers,
			struct sl_roce_fragment *fragment);

/* Coalescing: when a waiting ACK says nothing that the later reply does not say too, *waiting
 * becomes *later, and one packet is saved. false: both must be sent. */
bool sl_roce_reply_merge(struct sl_roce_reply *waiting, const struct sl_roce_reply *later);

#endif
