/* listener.h - a thread that hears answers for a front end: packets to a UDP socket, or
 * blocks in a ring that the receiver writes (inbox.h).
 *
 * Model:     open before anything is sent; finish when all is: it waits for what is still to come,
 *            says what came, and whether each event had its one answer.
 * Threads:   open, finish and close on the control thread; sl_answers_sent() on the sender. */
#ifndef SL_FEEDBACK_LISTENER_H
#define SL_FEEDBACK_LISTENER_H

#include <sluice/detector.h>
#include <sluice/option.h>

#include "base/thread.h"
#include "feedback/account.h"
#include "feedback/inbox.h"

enum sl_answers_by { SL_ANSWERS_BY_UDP, SL_ANSWERS_BY_WRITE };

struct sl_answers_options {
	char address[64]; /* empty: nobody listens */
	uint32_t by;	  /* enum sl_answers_by */
	uint32_t port, deadline_us;
	double wait_s;
	/* by write */
	char link[16];
	uint32_t service, pmtu; /* index into the choices */
	uint32_t slots, roce_port;
};
extern const struct sl_option sl_answers_options[];

struct sl_answers_thread {
	struct sl_answers answers;
	struct sl_answers_options options;
	int fd;
	struct sl_answers_write write;
	_Atomic uint32_t stop;
	struct sl_thread thread;
};

struct sl_answers_terms { /* what both sides of an experiment know */
	const struct sl_geometry *geometry;
	uint32_t first_module, end_module; /* that it sends; others may send the others */
	const char *token;		   /* who writes must know it */
	uint64_t experiment;		   /* and have this digest of it */
};

/* For a front end that sends such frames. */
int sl_answers_open(const struct sl_answers_options *options, const struct sl_answers_terms *terms,
		    struct sl_answers_thread **thread);

/* By write: until a sink has connected. -ETIMEDOUT, logged: none did. */
int sl_answers_wait(struct sl_answers_thread *thread);

/* 0, or -EBADMSG: some events have no answer, or several, or others came. `name` begins the lines
 * that it logs. quiet: only what is wrong. */
int sl_answers_finish(struct sl_answers_thread *thread, const char *name, bool quiet);
void sl_answers_close(struct sl_answers_thread *thread);

#endif
