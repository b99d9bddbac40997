/* exchange.h - a front end and its receiver: plans are agreed, frames sent and counted, until the
 * receiver says that everything is stored.
 *
 * Model:     connect; then run(), and for each further run of the same session again() and
 *            run(); close. Over a link that goes one way there is no receiver to speak to:
 *            blindly() alone.
 * Threads:   the caller's, which does all of it; the flags may be set by any thread.
 * Ownership: emulator and flags are the caller's.
 * Errors:    -errno, logged: -EPIPE: the receiver vanished (not logged); -ECONNREFUSED: it said no;
 *            -EINTR: stopped before the start, or given up; -ECANCELED: aborted; -ERESTART: the
 *            front end is to go away (frontend.restart_after); -ETIMEDOUT: no receiver came. */
#ifndef SL_EMULATOR_EXCHANGE_H
#define SL_EMULATOR_EXCHANGE_H

#include "control/tcp/client.h"
#include "emulator/emulator.h"

enum sl_exchange_phase {
	SL_EXCHANGE_REST,    /* between two runs */
	SL_EXCHANGE_CONNECT, /* no receiver listens yet */
	SL_EXCHANGE_AGAIN,   /* the receiver has to begin its next run */
	SL_EXCHANGE_PLAN,    /* offers are made, plans come */
	SL_EXCHANGE_READY,   /* the receiver has to start the run */
	SL_EXCHANGE_HOLD,    /* it has; this side has to */
	SL_EXCHANGE_SEND,
	SL_EXCHANGE_STORE, /* all is sent; the receiver has to say that it is stored */
	SL_EXCHANGE_PHASES,
};

struct sl_exchange {
	struct sl_emulator *emulator;
	/* Not 0: end after the current frame; wait for the receiver's good-bye 5 s at most; end at
	 * once; do not begin yet. NULL: never. */
	const _Atomic int *stop, *hurry, *abort, *hold;
	bool fixed; /* its plan is set once: go on when the receiver goes away */
	bool quiet; /* log no more than what is wrong */
	/* The receiver may rest between two runs, and answers when the next begins: wait for that
	 * as long as for a receiver (control.wait_s). */
	bool patient;
	/* On the caller's thread, when the phase has changed. NULL: not wanted. */
	void (*phase)(void *arg, enum sl_exchange_phase phase);
	void *arg;

	struct sl_client client;
	bool connected;
};

/* Wait for a receiver, at most control.wait_s. */
int sl_exchange_connect(struct sl_exchange *exchange);
void sl_exchange_close(struct sl_exchange *exchange); /* nothing where it is not connected */

/* Whether the receiver may take another run over this connection. */
bool sl_exchange_stays(const struct sl_exchange *exchange);
/* Until the receiver begins its next run. -EPROTO: it takes no more. -EPIPE: it hung up. */
int sl_exchange_again(struct sl_exchange *exchange);

/* Agree on plans, send, and wait until the receiver has stored it. */
int sl_exchange_run(struct sl_exchange *exchange);

/* The receiver can neither ask nor answer: to the end of what there is, at the detector's pace. */
int sl_exchange_blindly(struct sl_exchange *exchange);

#endif
