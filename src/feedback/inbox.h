/* inbox.h - answers that are written into a front end's memory, one-sided: its ring.
 *
 * Model:     the receiving side of the plan exchange, in small: one module, whose blocks are
 *            packets of answers (docs/reference/feedback.md). A sink comes, offers blocks of some
 *            size, gets a ring and a link for itself, and writes; blocks are taken as they become
 *            whole, whatever was lost before them. When it has said how much it sent, or is gone,
 *            and nothing more comes, ring and link are closed, and another may come.
 * Threads:   one; `connected` may be read by anybody.
 * Ownership: owns server, ring and link.
 * Cost:      a copy of each packet out of the ring, where over shm its source could still change
 *            it. */
#ifndef SL_FEEDBACK_INBOX_H
#define SL_FEEDBACK_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/tcp/server.h"
#include "core/link.h"
#include "feedback/link.h"

struct sl_feedback_inbox_options {
	const char *link, *address, *token;
	uint16_t port, roce_port; /* of the exchange (TCP), of packets (UDP) */
	uint16_t service;	  /* enum sl_service */
	uint16_t pmtu;
	uint32_t slots;
	uint64_t experiment; /* digest that the sink must have, too */
};

struct sl_feedback_inbox {
	uint16_t pmtu;
	uint32_t slots;
	/* Each packet, and NULL for a block that cannot be believed; then those that never came,
	 * where none came after them. */
	void (*packet)(void *arg, const uint8_t *bytes, size_t n);
	void (*lost)(void *arg, uint64_t packets);
	void *arg;

	struct sl_feedback_link over;
	struct sl_server *server;
	struct sl_wake wake;
	struct sl_link_counters counters;
	_Atomic uint32_t connected; /* a sink is there, and has begun */
	uint64_t served_ns;

	/* While there is one. */
	bool up, ended, said;
	struct sl_region region;
	struct sl_ring ring;
	struct sl_plan plan;
	uint8_t *copy;	    /* of a packet */
	uint64_t *taken;    /* [slots]: 1 + the sequence that was */
	uint64_t head;	    /* sequences below it were taken or given up */
	uint64_t end;	    /* that the sink says it sent */
	uint64_t last;	    /* 1 + the highest that was taken */
	uint64_t active_ns; /* when something came */
};

/* Logs what is wrong. */
int sl_feedback_inbox_open(struct sl_feedback_inbox *write,
			   const struct sl_feedback_inbox_options *options);
void sl_feedback_inbox_close(struct sl_feedback_inbox *write);

/* Take what there is, and wait a moment for more where there is nothing. How many packets. */
int sl_feedback_inbox_poll(struct sl_feedback_inbox *write);

#endif
