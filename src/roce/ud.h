/* ud.h - datagrams: UD SEND, one packet each, to and from anyone who knows the Q_Key.
 *
 * Model:     sending turns one message into one packet. Receiving judges a packet; what is not
 *            wanted is dropped and nobody is told. There is no order and no state but the receives.
 *            As in verbs a receive begins with SL_ROCE_UD_HEADER_BYTES about where the datagram
 *            came from; its payload follows them.
 * Ownership: the caller's memory; the caller has checked the ICRC.
 * Cost:      some 24 bytes written per packet. */
#ifndef SL_ROCE_UD_H
#define SL_ROCE_UD_H

#include "roce/requester.h"
#include "roce/responder.h"

enum { SL_ROCE_UD_HEADER_BYTES = 40 };

struct sl_roce_ud_message {
	bool immediate, solicited, mig;
	uint16_t pkey;
	uint32_t pmtu;
	uint32_t qpn, qkey; /* of the destination */
	uint32_t source_qpn;
	uint32_t psn; /* counts packets; nobody checks it */
	uint32_t imm;
	uint32_t bytes; /* at most the PMTU */
};

/* Its packet: headers into SL_ROCE_HEADERS_MAX bytes. SL_ROCE_EINVAL: more than the PMTU, no such
 * PMTU, numbers wider than 24 bits. */
int sl_roce_ud_encode(const struct sl_roce_ud_message *message, void *headers,
		      struct sl_roce_fragment *fragment);

struct sl_roce_ud_receiver {
	uint16_t pkey;
	uint32_t qpn, qkey, pmtu;
	uint8_t local[SL_ROCE_GID_BYTES];
	uint32_t receives;	/* posted */
	uint32_t receive_bytes; /* room in the one that is next, the header included */
};

struct sl_roce_ud_arrival {
	uint32_t offset;	/* of the payload in the receive */
	uint32_t bytes;		/* of the payload */
	uint32_t receive_bytes; /* used in the receive: header and payload */
	uint32_t source_qpn;
	bool immediate, solicited;
	uint32_t imm;
};

/* Judge one packet; an accepted one takes a receive. Anyone may send, so path (NULL when the caller
 * has looked) is checked for its destination only. */
enum sl_roce_drop sl_roce_ud_receive(struct sl_roce_ud_receiver *receiver,
				     const struct sl_roce_path *path,
				     const struct sl_roce_packet *packet,
				     struct sl_roce_ud_arrival *arrival);

/* The header of a receive: an IPv6 header, or 20 zero bytes and an IPv4 header with the checksum
 * that belongs to it. What a UDP socket never tells (IPv6 flow label) is zero. */
void sl_roce_ud_header(const struct sl_roce_path *path, uint32_t udp_bytes,
		       uint8_t out[SL_ROCE_UD_HEADER_BYTES]);

#endif
