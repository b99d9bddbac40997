/* plan.h - what a receiver and a front end agree on, per transfer.
 *
 * Model:     the front end offers (where it sends from, where its credits go), the receiver answers
 *            with the plan: where in its ring this transfer's blocks lie, under which key and
 *            queue, from which PSN. A plan is plain data; how it reaches the source is a driver
 *            (our TCP protocol here, registers elsewhere).
 *            Address, PSN and sequence are one function of each other, so that both ends can tell
 *            from any packet which frame it belongs to, and a packet of an earlier lap never passes
 *            for one of this lap:
 *
 *              slot     = k % slots
 *              address  = base + slot * stride + block_at + offset in block
 *              psn      = first_psn + (k - first_sequence) * packets + offset / pmtu   (mod 2^24)
 *              position = (k - first_sequence) * block_bytes + offset in block         (credits)
 *
 * Ownership: plain data. Plans hold keys: do not log them. */
#ifndef SLUICE_PLAN_H
#define SLUICE_PLAN_H

#include <stdint.h>

enum { SL_PLAN_VERSION = 2, SL_LOCATION_BYTES = 108 };

struct sl_addr { /* IPv4 as ::ffff:a.b.c.d; port in host order */
	uint8_t ip[16];
	uint16_t port;
};

enum sl_service { SL_SERVICE_UC = 1 << 0, SL_SERVICE_RC = 1 << 1 };

/* Who says where a block goes: the source, by the addresses of its plan, or the receiver, by the
 * receives it posts in the order of sequences. Then a block is always one message. */
enum sl_operation { SL_OPERATION_WRITE = 1 << 0, SL_OPERATION_SEND = 1 << 1 };

/* How a block becomes messages. */
enum sl_message {
	/* One WRITE_ONLY per packet, the last with immediate: survives reordering. */
	SL_MESSAGE_PACKET = 1 << 0,
	/* One FIRST..LAST_IMM per block: a lost packet ends the block. */
	SL_MESSAGE_MODULE = 1 << 1,
};

enum sl_ip_id { /* which IPv4 identification the source sends; the ICRC covers it */
		SL_IP_ID_ZERO,
		SL_IP_ID_COUNTS, /* 0,1,2,.. within one segmented send */
		SL_IP_ID_ANY,
};

struct sl_offer { /* by the front end, per transfer */
	uint16_t module;
	uint16_t services, operations, messages; /* bit sets: what it can do */
	uint16_t max_pmtu;
	uint16_t ip_id;
	struct sl_addr source; /* bound: the ICRC covers it */
	/* Credits and acknowledgements go to source.ip and this port; 4791 on real devices. */
	uint16_t credit_port;
	uint32_t credit_qpn, credit_rkey;
	uint64_t credit_va; /* an 8-byte word: the granted position, little-endian; 0: open loop */
	uint64_t block_bytes; /* pixels and record; must agree with the receiver's */
	uint64_t first_frame; /* the detector's number of the first frame it will send */
	uint64_t frames;      /* that it intends to send; 0: unknown */
	/* Of devices that know nothing of records; these do not travel over TCP. */
	uint16_t bare;	      /* its blocks are pixels alone: the receiver writes the record */
	uint64_t dark_frames; /* bare: so many come first */
	uint32_t psn_plus_1;  /* it begins with this PSN; 0: the receiver chooses */
};

struct sl_plan { /* by the receiver */
	uint16_t version, transfer, module;
	uint16_t service, operation, message, pmtu, ip_id; /* one bit each of the sets above */
	uint16_t crc; /* the record must carry a CRC32C of the pixels */
	uint32_t qpn, rkey, first_psn;
	uint32_t slots, packets; /* packets per block */
	uint64_t base, stride, block_at, block_bytes;
	/* Of this source: frame number = offer.first_frame + k - first_sequence. */
	uint64_t first_sequence;
	uint16_t bare; /* as offered: block_bytes are pixels alone */
	uint64_t dark_frames;
	uint64_t window_bytes; /* most in flight: for information, the credit word counts */
	struct sl_addr source, dest;
	uint32_t credit_qpn, credit_rkey;
	uint32_t credit_psn; /* of the first packet that comes back */
	uint64_t credit_va;
	uint16_t credit_port;
	char location[SL_LOCATION_BYTES]; /* shm: the name of the Unix socket ("@" for abstract) */
};

/* Where byte `offset` of sequence's block lies, and the PSN of the packet that holds it. */
uint64_t sl_plan_address(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);
uint32_t sl_plan_psn(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);
uint64_t sl_plan_position(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);

#endif
