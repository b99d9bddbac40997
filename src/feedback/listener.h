/* listener.h - a thread that hears answers for a front end: packets to a UDP socket, or
 * blocks in a ring that the receiver writes (inbox.h).
 *
 * Model:     open before anything is sent; finish when all is: it waits for what is still to come,
 *            says what came, and whether each event had its one answer.
 * Threads:   open, finish and close on the control thread; sl_feedback_account_sent() on the
 *            senders. */
#ifndef SL_FEEDBACK_LISTENER_H
#define SL_FEEDBACK_LISTENER_H

#include <sluice/detector.h>
#include <sluice/feedback.h>
#include <sluice/option.h>

#include "base/thread.h"
#include "feedback/account.h"
#include "feedback/inbox.h"

struct sl_feedback_options {
	char address[64]; /* empty: nobody listens */
	uint32_t by;	  /* enum sl_feedback_by */
	uint32_t port, deadline_us;
	double wait_s;
	/* by write */
	char link[16];
	uint32_t service, pmtu; /* index into the choices */
	uint32_t slots, roce_port;
};
extern const struct sl_option sl_feedback_options[];

struct sl_feedback_listener {
	struct sl_feedback_account account;
	struct sl_feedback_options options;
	int fd;
	struct sl_feedback_inbox write;
	_Atomic uint32_t stop;
	struct sl_thread thread;
};

struct sl_feedback_account_terms { /* what both sides of an experiment know */
	const struct sl_geometry *geometry;
	uint32_t first_module, end_module; /* that it sends; others may send the others */
	unsigned senders;		   /* threads that send; 0: one */
	const char *token;		   /* who writes must know it */
	uint64_t experiment;		   /* and have this digest of it */
};

/* For a front end that sends such frames. */
int sl_feedback_listener_open(const struct sl_feedback_options *options,
			      const struct sl_feedback_account_terms *terms,
			      struct sl_feedback_listener **thread);

/* By write: until a sink has connected. -ETIMEDOUT, logged: none did. */
int sl_feedback_listener_wait(struct sl_feedback_listener *thread);

/* 0, or -EBADMSG: some events have no answer, or several, or others came. `name` begins the lines
 * that it logs. quiet: only what is wrong. */
int sl_feedback_listener_finish(struct sl_feedback_listener *thread, const char *name, bool quiet);
void sl_feedback_listener_close(struct sl_feedback_listener *thread);

#endif
