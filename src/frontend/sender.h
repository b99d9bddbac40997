/* sender.h - what firmware runs: frames in, RoCEv2 packets out, never beyond credit.
 *
 * Model:     a sender is one data transfer process: a transfer (which frames, which bytes of
 *            them), the receiver's plan, a queue pair (UC). Hand it every frame of the run; it
 *            keeps those of its transfer, seals a record for each block, and gives out packet
 *            after packet: headers, pieces of memory, and trailer (padding, ICRC), for the DMA
 *            engine to gather behind IP and UDP headers. What comes back from the receiver goes
 *            into sl_sender_answer(): credits.
 *            A front end is a fixed number of senders that take turns, packet by packet.
 * Threads:   one at a time per sender.
 * Ownership: the caller's memory throughout, of a size that is known when this is compiled. A
 *            frame's pixels must stay until sl_sender_busy() is false: there is no copy.
 * Cost:      builds freestanding: memcpy, memset, no heap. Some divisions per block, none per
 *            packet. SL_SENDER_* below set the footprint; give them to the compiler. */
#ifndef SL_FRONTEND_SENDER_H
#define SL_FRONTEND_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/record.h>

#include "core/plan.h"
#include "core/write.h"
#include "frontend/block.h"
#include "frontend/descriptor.h"
#include "frontend/transfer.h"
#include "roce/icrc.h"
#include "roce/requester.h"
#include "roce/responder.h"

#ifndef SL_SENDER_TRANSFERS
#define SL_SENDER_TRANSFERS 4 /* senders of a front end */
#endif
#ifndef SL_SENDER_STACK
#define SL_SENDER_STACK 4 /* most frames in a block */
#endif
#ifndef SL_SENDER_PIECES
#define SL_SENDER_PIECES 8 /* most pieces of memory in a packet */
#endif

struct sl_sender_packet { /* the payload of a UDP datagram, in pieces */
	uint8_t header[SL_ROCE_HEADERS_MAX];
	uint8_t trailer[SL_ROCE_TRAILER_MAX + 1];
	uint32_t header_bytes, trailer_bytes, pieces;
	struct sl_roce_piece piece[SL_SENDER_PIECES];
	uint32_t bytes; /* all of it */
	uint16_t transfer;
};

struct sl_sender {
	struct sl_transfer transfer;
	struct sl_plan plan;
	struct sl_roce_path out;
	sl_roce_crc32 *crc32, *crc32c; /* NULL: the portable ones */
	/* the block */
	const void *frame[SL_SENDER_STACK];
	uint32_t collected;	     /* frames of it that are here */
	uint64_t collecting;	     /* which block */
	struct sl_frame_stamp stamp; /* of its first frame */
	struct sl_block block;
	struct sl_descriptors descriptors;
	struct sl_write write;
	struct sl_from_cursor cursor; /* in the message under way */
	struct sl_roce_requester message;
	bool busy;
	/* credits */
	struct sl_roce_responder credits;
	struct sl_roce_key key; /* of the credit word */
	uint64_t granted, sent; /* positions */
	uint64_t blocks;	/* that are out */
};

/* SL_ROCE_EINVAL: the plan is not one for this transfer, or not for UC; the transfer needs more
 * frames or pieces than this was compiled for. */
int sl_sender_init(struct sl_sender *sender, const struct sl_transfer *transfer,
		   const struct sl_plan *plan, sl_roce_crc32 *crc32, sl_roce_crc32 *crc32c);

/* Frame f of the run, all of it. 1: taken; 0: not one of this transfer, or of a block whose
 * beginning was missed; SL_ROCE_EFULL: the block before is not out yet, and this one is skipped,
 * with its sequence and its PSNs. */
int sl_sender_frame(struct sl_sender *sender, uint64_t frame, const void *pixels,
		    const struct sl_frame_stamp *stamp);

/* The next packet; false when there is none, or no credit for it. */
bool sl_sender_next(struct sl_sender *sender, struct sl_sender_packet *packet);

/* Is any frame's memory still needed? */
bool sl_sender_busy(const struct sl_sender *sender);

/* A UDP datagram came to the credit port: from where to where, and its payload. True when it was a
 * credit for this sender. path->ip_id need not be known. */
bool sl_sender_answer(struct sl_sender *sender, const struct sl_roce_path *path,
		      const void *udp_payload, size_t bytes);

struct sl_frontend {
	struct sl_sender sender[SL_SENDER_TRANSFERS];
	uint32_t senders, turn;
};

/* To all senders. How many refused it for being busy. */
unsigned sl_frontend_frame(struct sl_frontend *frontend, uint64_t frame, const void *pixels,
			   const struct sl_frame_stamp *stamp);

/* The next packet of whoever's turn it is and may send. */
bool sl_frontend_next(struct sl_frontend *frontend, struct sl_sender_packet *packet);
bool sl_frontend_answer(struct sl_frontend *frontend, const struct sl_roce_path *path,
			const void *udp_payload, size_t bytes);

#endif
