/* sender.h - packets back to a front end, by RDMA WRITE (sluice/feedback.h): the sink's end of the
 * way.
 *
 * Model:     packets are copied into blocks, which the link has until it has reaped them. What is
 *            in a block goes out in order, now or when there is credit; what finds none free is
 *            not sent. Beside the sender there is a thread that looks for the front end, agrees
 *            on a plan, and from then on, every millisecond or every 20 when nothing is under way,
 *            lets the link go on and tells how much was sent. When the connection is gone, blocks
 *            that are not known to have arrived are counted, and it looks again. Who refuses is
 *            asked again, since it may answer to another sink still; slowly when wait_s are over.
 *            A device has no plans to give out and no credits: its numbers make the plan, and
 *            whether it is there nobody knows (over rc, when it does not acknowledge).
 * Threads:   send() on one thread, the other as above: they share a lock, which neither holds
 *            while it sleeps, but for the sender while it waits for credit.
 * Ownership: owns link, connection and blocks.
 * Cost:      a copy of the packet, and a system call of the link for all packets of a call. */
#ifndef SL_FEEDBACK_SENDER_H
#define SL_FEEDBACK_SENDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/feedback.h>

#include "base/thread.h"
#include "control/tcp/client.h"
#include "core/link.h"
#include "feedback/link.h"
#include "frontend/block.h"
#include "frontend/transfer.h"

enum { SL_FEEDBACK_SENDER_BLOCKS = 256 };

enum sl_feedback_sender_state {
	SL_FEEDBACK_SENDER_LOOKING,   /* for a front end */
	SL_FEEDBACK_SENDER_CONNECTED, /* to one */
	SL_FEEDBACK_SENDER_FAILED,    /* for good: its plan does not fit, or a device failed */
};

struct sl_feedback_block {
	uint8_t *bytes; /* of the packet, filled up with zeros */
	struct sl_block block;
	const void *frame; /* bytes, as the block wants to have it */
	uint64_t position; /* where it ends in the stream */
	uint32_t items;
};

struct sl_feedback_sender {
	const struct sl_feedback_senders *feedback;
	char address[64], source[64];
	uint16_t port;
	uint32_t bytes;
	struct sl_feedback_target device;
	uint64_t wait_ns;
	enum sl_packet_fault (*fault)(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet);
	void *fault_arg;

	struct sl_feedback_link over;
	struct sl_transfer transfer; /* one packet */
	struct sl_thread thread;

	/* All that follows is under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum sl_feedback_sender_state state;
	bool stop, link_open, online;
	bool stuck;	     /* waited in vain: not again before there is progress */
	uint64_t give_up_ns; /* waiting for the first front end ends; 0: nothing was sent yet */
	bool given_up;	     /* nobody waits for it any more; it is looked for, slowly */
	bool cut_short;	     /* that attempts end so was said */
	char refusal[256];   /* the last that was told; or empty */
	unsigned connections;
	int why; /* the last one ended, and nobody was told yet; 0: there is nothing to tell */

	struct sl_client client;
	struct sl_plan plan;
	uint64_t counted_ns; /* when how much was sent was told */
	struct sl_feedback_block block[SL_FEEDBACK_SENDER_BLOCKS];
	uint32_t writes; /* of a block */
	struct sl_write *
		write; /* [SL_FEEDBACK_SENDER_BLOCKS][writes]: so that one post takes many blocks */
	uint64_t begun, reaped; /* blocks of this connection */
	uint64_t posted;	/* writes of it */
	uint64_t missing;	/* items of blocks that are known not to have arrived */
};

/* fault: as a link's, or NULL. */
int sl_feedback_sender_open(const struct sl_feedback_senders *feedback,
			    const struct sl_feedback_sender_options *options,
			    enum sl_packet_fault (*fault)(void *arg, uint16_t module,
							  uint64_t sequence, uint32_t packet),
			    void *fault_arg, struct sl_feedback_sender **back);
uint32_t sl_feedback_sender_send(struct sl_feedback_sender *back,
				 const struct sl_feedback_packet *packet, uint32_t n);
uint64_t sl_feedback_sender_close(struct sl_feedback_sender *back);

/* The calls of sluice/feedback.h, with this token and this digest of the experiment. */
void sl_feedback_senders_init(struct sl_feedback_senders *feedback, const char *token,
			      uint64_t experiment);

/* ---- connect.c; under the lock, but for the thread ---- */

void *sl_feedback_sender_run(void *back); /* the thread */
void sl_feedback_sender_disconnect(struct sl_feedback_sender *back, int why);
void sl_feedback_sender_log_why(struct sl_feedback_sender *back); /* once */

/* ---- sender.c, under the lock ---- */

/* Let the link go on: writes that it takes now, blocks that it has no more need of. -errno: the
 * front end is gone, or the connection failed. */
int sl_feedback_sender_pump(struct sl_feedback_sender *back);

#endif
