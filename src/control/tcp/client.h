/* client.h - the front end's side of the plan exchange: of whoever sends.
 *
 * Threads:   one.
 * Errors:    logged here with what to do; -ETIMEDOUT (no receiver, or it does not answer),
 *            -ECONNREFUSED (it said no: logged with its reason), -EPIPE (it is gone). */
#ifndef SL_CONTROL_TCP_CLIENT_H
#define SL_CONTROL_TCP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "control/tcp/channel.h"
#include "control/tcp/proof.h"

struct sl_client {
	struct sl_channel channel;
	int answer_ms;	  /* how long the receiver may take to answer; connect sets 10 s */
	const char *peer; /* for messages: "the receiver", or what else listens there */
	enum sl_proof_purpose purpose; /* of the connection; connect and try set SL_PROOF_PLANS */
	/* Whoever asks again and again: what asking again may mend is not logged. */
	bool quiet;
	/* Not 0: answers are waited for no longer (-EINTR). NULL: never; connect sets it. */
	const _Atomic int *stop;
	bool more;	   /* BYE said that another run may follow */
	char refusal[256]; /* what it said when it last said no; or empty */
};

/* One attempt. -errno, not logged: nobody listens there; -EINVAL: that is no place. */
int sl_client_try(struct sl_client *client, const char *peer, const char *address, uint16_t port,
		  int timeout_ms);

/* Try until somebody listens there, at most wait_s. *stop (may be NULL) ends the attempt with
 * -EINTR. */
int sl_client_connect(struct sl_client *client, const char *address, uint16_t port, double wait_s,
		      const _Atomic int *stop);
void sl_client_close(struct sl_client *client);

/* With a token, both sides prove that they know it; the nonce of `hello` is set here. A receiver
 * that cannot prove it is refused with -ECONNREFUSED before it is offered anything. "": there is
 * no token. */
int sl_client_hello(struct sl_client *client, const struct sl_wire_hello *hello, const char *token);
int sl_client_offer(struct sl_client *client, const struct sl_offer *offer, struct sl_plan *plan);
int sl_client_ready(struct sl_client *client);

int sl_client_count(struct sl_client *client, const struct sl_wire_count *count, bool final);

/* The next word of the receiver: its type, 0 when there is none within timeout_ms, or -errno. */
int sl_client_listen(struct sl_client *client, int timeout_ms);

#endif
