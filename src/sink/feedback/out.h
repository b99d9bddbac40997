/* out.h - packets of answers on their way to a front end: by UDP, or by RDMA WRITE.
 *
 * Model:     UDP: a datagram for each, which the kernel cuts out of a larger one where it can;
 *            nobody says whether it arrives, but a host that answers says so where nobody
 *            listens (`refused`). WRITE: a block of the front end's ring for each,
 *            through a way back of the pipeline's (sluice/feedback.h). Either way what cannot be
 *            sent within a bound is counted (`unsent`) and not waited for again.
 * Threads:   one, which may sleep.
 * Ownership: owns its socket or way; packets are the caller's. */
#ifndef SL_SINK_FEEDBACK_OUT_H
#define SL_SINK_FEEDBACK_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/feedback.h>

struct mmsghdr;
struct iovec;
struct sl_feedback_burst;

struct sl_feedback_out {
	enum sl_feedback_by by;
	struct sl_feedback_sender_options to; /* of UDP, address and port alone */
	uint32_t packets;		      /* most in a call */
	int fd;				      /* UDP; -1: none */
	bool segments;			      /* UDP: packets of a size can go out as one message */
	struct mmsghdr *message;	      /* [packets]: of one packet, or a run of them */
	struct sl_feedback_burst *run;	      /* [packets]: what message is of */
	struct iovec *iov;		      /* [packets] */
	const struct sl_feedback_senders *feedback;
	struct sl_feedback_sender *back; /* WRITE; NULL: none */
	bool stuck;			 /* UDP: waited in vain: not again before something goes */
	int why;			 /* UDP: the first error; 0: there was none */
	bool told;			 /* it was logged; a data thread leaves that to close() */
	uint64_t unsent;		 /* answers */
	uint64_t refused;		 /* packets */
};

/* The texts in `to` must stay. backs may be NULL. Logs what is wrong. */
int sl_feedback_out_open(struct sl_feedback_out *out, enum sl_feedback_by by,
			 const struct sl_feedback_sender_options *to,
			 const struct sl_feedback_senders *feedback, uint32_t packets);
void sl_feedback_out_send(struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
			  uint32_t n);

/* `unsent` is final afterwards. Also after an open that failed. */
void sl_feedback_out_close(struct sl_feedback_out *out);

#endif
