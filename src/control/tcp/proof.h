/* proof.h - front end and receiver prove to each other that they know control.token.
 *
 * Model:     the token is never sent. HELLO carries a nonce of the side that connects, CHALLENGE
 *            one of the side that listens. Each side sends HMAC-SHA256, with the token as the key,
 *            of a label, the body of HELLO, the nonce of the CHALLENGE, and the address and port of
 *            the listener. The side that connects proves itself first, so that a stranger who
 *            connects learns nothing to try tokens against.
 *
 *            Both nonces are fresh: a recorded proof is of no use later. The label names the side
 *            and the purpose: a process that connects for one purpose and listens for the other
 *            (a receiver with a feedback sink, a front end that hears feedback) makes no proof for
 *            one that is right for the other. The connecting side takes the address that it
 *            dialled, the listening side the one it was reached at: a proof that is relayed to
 *            another listener with the same token is wrong there.
 * Limits:    what follows the proofs is neither signed nor encrypted. Guessing a short token from
 *            a recorded exchange is a matter of time: tokens are long and random. A translated
 *            address (NAT, a forwarded port) is another address: the proofs do not match.
 * Threads:   functions of their arguments. */
#ifndef SL_CONTROL_TCP_PROOF_H
#define SL_CONTROL_TCP_PROOF_H

#include <stdbool.h>

#include "control/tcp/wire.h"

enum sl_proof_side { SL_PROOF_CONNECTS, SL_PROOF_LISTENS };
enum sl_proof_purpose {
	SL_PROOF_PLANS,	   /* a front end connects to a receiver */
	SL_PROOF_FEEDBACK, /* a receiver connects to a front end */
	SL_PROOF_SHARES,   /* a follower connects to a share */
};

struct sl_proof_terms {
	enum sl_proof_purpose purpose;
	struct sl_wire_hello hello;
	struct sl_wire_challenge challenge;
	uint8_t ip[16]; /* of the listener: IPv6, or IPv4 as ::ffff:a.b.c.d */
	uint16_t port;
};

/* Whether the connecting side has a token, and wants the other to prove that it has it, too. */
bool sl_proof_is_asked(const struct sl_wire_hello *hello);

/* The address of the listener as this side of the connection sees it. -errno: it is no
 * connection. */
int sl_proof_set_listener(struct sl_proof_terms *terms, enum sl_proof_side side, int fd);

void sl_proof_make(enum sl_proof_side side, const char *token, const struct sl_proof_terms *terms,
		   struct sl_wire_proof *proof);

/* Whether this is the proof that the side would make. */
bool sl_proof_is_right(enum sl_proof_side side, const char *token,
		       const struct sl_proof_terms *terms, const struct sl_wire_proof *proof);

#endif
