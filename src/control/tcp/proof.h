/* proof.h - front end and receiver prove to each other that they know control.token.
 *
 * Model:     the token is never sent. HELLO carries a nonce of the front end, CHALLENGE one of the
 *            receiver. Each side sends HMAC-SHA256, with the token as the key, of a label that
 *            names the side, the body of HELLO and the receiver's nonce. Both nonces are fresh,
 *            so that a recorded proof is of no use later; the labels differ, so that a proof
 *            cannot be sent back to the side that made it; the front end proves itself first, so
 *            that a stranger who connects to a receiver learns nothing to try tokens against.
 * Limits:    what follows the proofs is neither signed nor encrypted. Guessing a short token from
 *            a recorded exchange is a matter of time: tokens are long and random.
 * Threads:   functions of their arguments. */
#ifndef SL_CONTROL_TCP_PROOF_H
#define SL_CONTROL_TCP_PROOF_H

#include <stdbool.h>

#include "control/tcp/wire.h"

enum sl_proof_side { SL_PROOF_FRONT_END, SL_PROOF_RECEIVER };

/* Whether the front end has a token, and wants the receiver to prove that it has it, too. */
bool sl_proof_is_asked(const struct sl_wire_hello *hello);

void sl_proof_make(enum sl_proof_side side, const char *token, const struct sl_wire_hello *hello,
		   const struct sl_wire_challenge *challenge, struct sl_wire_proof *proof);

/* Whether this is the proof that the side would make. */
bool sl_proof_is_right(enum sl_proof_side side, const char *token,
		       const struct sl_wire_hello *hello, const struct sl_wire_challenge *challenge,
		       const struct sl_wire_proof *proof);

#endif
