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
 *              address  = base + slot * stride + block_at + place(offset)
 *              psn      = first_psn + (k - first_sequence) * packets + packet(offset)  (mod 2^24)
 *              position = (k - first_sequence) * block_bytes + offset                  (credits)
 *
 *            `offset` counts the bytes of a block as they travel: its pixels, line after line,
 *            then the record. As long as nothing asks for lines,
 *
 *              place(offset)  = offset
 *              packet(offset) = offset / pmtu
 *
 *            Where the receiver wants a pitch between lines, or the message plan is one message
 *            per line, packets end with lines: none holds bytes of two lines, nor of a line and
 *            the record, which has a packet of its own.
 *
 *              line           = offset / line_bytes       (below `lines`; then comes the record)
 *              place(offset)  = line * line_pitch + offset % line_bytes;  record: record_at + ..
 *              packet(offset) = line * ceil(line_bytes / pmtu) + offset % line_bytes / pmtu
 *
 *            (line_pitch 0: lines follow each other, and the record follows the last.)
 *
 * Ownership: plain data. Plans hold keys: do not log them. */
#ifndef SL_CORE_PLAN_H
#define SL_CORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/darks.h>

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
	/* One FIRST..LAST or ONLY per line, and one for the record; the last with immediate. */
	SL_MESSAGE_LINE = 1 << 2,
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
	/* Of devices that know nothing of records. */
	uint16_t bare;	       /* its blocks are pixels alone: the receiver writes the record */
	struct sl_darks darks; /* bare: which of them; does not travel over TCP */
	uint32_t psn_plus_1;   /* it begins with this PSN; 0: the receiver chooses; nor does this */
	/* Its pixels are so many lines of so many bytes, and can be placed with a pitch. 0: it
	 * knows of no lines. */
	uint32_t lines, line_bytes;
	/* Its frame numbers go in such steps, where they are on the wire; 0 means 1. Does not
	 * travel. */
	uint64_t frame_step;
	/* The receiver's own: where its plan is to begin, after another source of the module. */
	uint64_t first_sequence;
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
	struct sl_darks darks;
	uint64_t window_bytes; /* most in flight: for information, the credit word counts */
	struct sl_addr source, dest;
	uint32_t credit_qpn, credit_rkey;
	uint32_t credit_psn; /* of the first packet that comes back */
	uint64_t credit_va;
	uint16_t credit_port;
	char location[SL_LOCATION_BYTES]; /* shm: the name of the Unix socket ("@" for abstract) */
	uint32_t lines, line_bytes;	  /* as offered; 0: none */
	uint64_t line_pitch;		  /* bytes from line to line in the block; 0: line_bytes */
	uint64_t record_at;		  /* with a pitch: where in the block the record goes */
};

/* One packet of a block. */
struct sl_plan_packet {
	uint64_t offset, place; /* of its first byte: as it travels, and in the block */
	uint32_t bytes;
	bool first; /* of its message */
};

/* Whether packets end with lines. */
static inline bool sl_plan_cuts(const struct sl_plan *plan)
{
	return plan->line_pitch || plan->message == SL_MESSAGE_LINE;
}

/* How many bytes of a block are pixels, and how many packets it takes. */
uint64_t sl_plan_pixel_bytes(const struct sl_plan *plan);
uint32_t sl_plan_packets(const struct sl_plan *plan);

/* The packet of a block that holds byte `offset`, and the other way round. */
uint32_t sl_plan_packet_of(const struct sl_plan *plan, uint64_t offset);
void sl_plan_packet(const struct sl_plan *plan, uint32_t index, struct sl_plan_packet *packet);

/* The longest message, and the last one, which brings the immediate. */
uint64_t sl_plan_message_bytes(const struct sl_plan *plan);
uint64_t sl_plan_event_bytes(const struct sl_plan *plan);

/* Whether lines, pitch, message and packets go together: plans are outside input to a source. */
bool sl_plan_lines_fit(const struct sl_plan *plan);

/* Where byte `offset` of sequence's block lies, and the PSN of the packet that holds it. */
uint64_t sl_plan_address(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);
uint32_t sl_plan_psn(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);
uint64_t sl_plan_position(const struct sl_plan *plan, uint64_t sequence, uint64_t offset);

#endif
