/* wire.h - packets that tell a front end what was decided about its events.
 *
 * Model:     a packet is a header and answers to consecutive events of one frame;
 *            docs/reference/feedback.md has it byte by byte. All little-endian:
 *
 *              u32 magic @0       u16 version @4     u16 flags @6       u64 packet @8
 *              u64 first @16      u64 timestamp @24  u16 count @32      u16 answer_bytes @34
 *              u32 items @36      then `count` answers:
 *              u64 number @0      u64 timestamp @8   f32 score @16      u16 reason @20
 *              u16 decision @22
 *
 *            What is read is outside input: a packet is believed as a whole, or not at all.
 * Threads:   pure functions.
 * Ownership: plain data. */
#ifndef SL_FEEDBACK_WIRE_H
#define SL_FEEDBACK_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SL_FEEDBACK_MAGIC = 0x42464c53, /* "SLFB" */
	SL_FEEDBACK_VERSION = 1,
	SL_FEEDBACK_HEADER = 40,
	SL_FEEDBACK_ANSWER = 24,
	SL_FEEDBACK_PAYLOAD_MAX = 65507, /* that UDP over IPv4 can carry */
};

enum sl_feedback_flags {
	SL_FEEDBACK_DARK = 1 << 0,
	SL_FEEDBACK_PARTIAL = 1 << 1, /* some modules of the frame were missing */
	SL_FEEDBACK_BROKEN = 1 << 2,  /* nothing of the frame was judged */
	SL_FEEDBACK_LATE = 1 << 3,    /* left after it was due */
	SL_FEEDBACK_LAST = 1 << 4,    /* packet of its frame */
};

enum sl_feedback_decision {
	SL_FEEDBACK_REJECT,
	SL_FEEDBACK_KEEP,
	SL_FEEDBACK_NO_DATA, /* the event did not arrive whole: nobody judged it */
	SL_FEEDBACK_DECISIONS,
};

struct sl_feedback_header {
	uint64_t packet;    /* counts those of a run from 0 */
	uint64_t first;	    /* event; the others follow it */
	uint64_t timestamp; /* of the frame, the detector's clock in ns; 0: it is not known */
	uint32_t items;	    /* events of the frame */
	uint16_t flags, count;
};

struct sl_feedback_answer {
	uint64_t number, timestamp;
	float score;
	uint16_t reason, decision;
};

void sl_feedback_write_header(const struct sl_feedback_header *header,
			      uint8_t bytes[SL_FEEDBACK_HEADER]);
void sl_feedback_write_answer(const struct sl_feedback_answer *answer,
			      uint8_t bytes[SL_FEEDBACK_ANSWER]);

/* 0 when all of it can be believed; otherwise -EBADMSG. */
int sl_feedback_read(const uint8_t *packet, size_t bytes, struct sl_feedback_header *header);

/* How long the packet is that stands at the beginning of a block of so many bytes; 0: none that
 * would fit there. Nothing is believed yet. */
size_t sl_feedback_bytes(const uint8_t *block, size_t bytes);

/* Of a packet that was believed; i < count. */
void sl_feedback_read_answer(const uint8_t *packet, uint32_t i, struct sl_feedback_answer *answer);

#endif
