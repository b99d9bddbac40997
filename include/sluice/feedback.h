/* feedback.h - a way back to the front end: packets that a sink writes into its memory, one-sided.
 *
 * Model:     the wire is that of data (docs/reference/wire.md), the other way round: the front end
 *            has a ring and gives out the plan, the sink asks for it over TCP, and each packet is
 *            one block: an RDMA WRITE with immediate, never beyond credit. Who starts first does
 *            not matter; a front end that goes and comes back is found again.
 *            Nobody is waited for without end: `wait_s` for a front end that has not been seen
 *            yet, a second for credit, and after that not at all until there is progress.
 * Threads:   open, send and close on one thread, which may sleep. There is another behind it that
 *            connects, sends again what was lost (rc), and says how much was sent.
 * Ownership: packets are copied. */
#ifndef SLUICE_FEEDBACK_H
#define SLUICE_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_feedback_sender; /* one that is open */

/* How packets reach the front end. */
enum sl_feedback_by { SL_FEEDBACK_BY_UDP, SL_FEEDBACK_BY_WRITE };

/* A device with RDMA memory that knows nothing of plans, or credits: these are its numbers. Block k
 * goes to `memory` + (k mod slots) * stride, whether or not what was there has been read. */
struct sl_feedback_target {
	uint32_t qpn; /* 0: it is no device; a plan is asked for */
	uint32_t rkey, psn, slots;
	uint64_t memory, stride; /* stride 0: blocks follow each other */
	uint16_t pmtu;
};

struct sl_feedback_sender_options {
	const char *link;    /* its name */
	const char *address; /* where the front end gives out plans, or has its memory: numeric */
	const char *source;  /* of the packets; empty: that by which it is reached */
	uint16_t port;
	uint16_t service; /* enum sl_service */
	uint32_t bytes;	  /* of a packet, at most */
	double wait_s;
	struct sl_feedback_target device;
};

struct sl_feedback_packet {
	const void *data;
	uint32_t bytes;
	uint32_t items; /* answers in it */
	uint64_t number, timestamp;
};

/* What the pipeline hands to sinks. */
struct sl_feedback_senders {
	/* The options' texts need not stay. -EINVAL, logged. Connecting goes on in the
	 * background. */
	int (*open)(const struct sl_feedback_senders *feedback,
		    const struct sl_feedback_sender_options *options,
		    struct sl_feedback_sender **back);

	/* How many were taken, in order; the others are not sent. */
	uint32_t (*send)(struct sl_feedback_sender *back, const struct sl_feedback_packet *packet,
			 uint32_t n);

	/* Waits a moment for what is under way. Items of packets that were taken, and of which it
	 * is known that they have not arrived. */
	uint64_t (*close)(struct sl_feedback_sender *back);

	/* The run waits for its front ends. Do not connect yet: the listener may belong to another
	 * run. The receiver's control thread sets it, the sender's thread reads it, by __atomic_*:
	 * C++ cannot read _Atomic. */
	bool idle;

	/* Both sides must agree on these: see control/tcp/wire.h, HELLO. */
	const char *token;
	uint64_t experiment;
};

#ifdef __cplusplus
}
#endif

#endif
