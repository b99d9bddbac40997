/* wire.h - the messages in which plans are agreed, as bytes (docs/reference/wire.md has the
 * tables).
 *
 * Model:     a header of 12 bytes (magic, version, type, length of the body), then a body of fixed
 *            little-endian fields. A body may be longer than we know, so that fields can be
 *            appended; those that were appended may be missing, and are then 0. Shorter than that
 *            is an error.
 *
 *              front end                           receiver
 *              HELLO                        ->     with control.token: CHALLENGE
 *              (then) PROOF                 ->     PROOF: both know the token (proof.h)
 *              OFFER per module             ->     PLAN per offer
 *              READY                        ->     START
 *              COUNT per module, often      ->     STOP, at any time
 *              DONE per module, at the end  ->     BYE
 *              (stays, if BYE says `more`)  <-     AGAIN: begin with HELLO for the next run
 *              either side: ERROR with a reason, then close
 *
 * Ownership: plain data in the caller's memory.
 * Errors:    decode never reads beyond what it was given and never trusts a length. */
#ifndef SL_CONTROL_TCP_WIRE_H
#define SL_CONTROL_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "core/plan.h"

enum { SL_WIRE_VERSION = 2, SL_WIRE_HEADER = 12, SL_WIRE_MAX = 1024, SL_WIRE_NONCE = 32 };

enum sl_wire_type {
	SL_WIRE_HELLO = 1,
	SL_WIRE_OFFER,
	SL_WIRE_PLAN,
	SL_WIRE_READY,
	SL_WIRE_START,
	SL_WIRE_COUNT,
	SL_WIRE_DONE,
	SL_WIRE_STOP,
	SL_WIRE_BYE,
	SL_WIRE_ERROR,
	SL_WIRE_AGAIN,
	SL_WIRE_CHALLENGE,
	SL_WIRE_PROOF,
	SL_WIRE_TYPES,
};

struct sl_wire_hello {
	uint16_t modules;    /* OFFERs that follow */
	uint64_t host;	     /* equal to the receiver's: one clock */
	uint64_t experiment; /* digest of what both must agree on; see sl_experiment_digest */
	char link[16], detector[32];
	/* Zeros. Front ends from before CHALLENGE sent the token here, readable by anyone. */
	uint8_t reserved[64];
	/* Random; zeros: this front end has no token, and asks for no proof. */
	uint8_t nonce[SL_WIRE_NONCE];
};

struct sl_wire_challenge {
	uint8_t nonce[SL_WIRE_NONCE]; /* random, the receiver's */
};

struct sl_wire_proof {
	uint8_t proof[SL_SECRET_PROOF_BYTES];
};

struct sl_wire_count {
	uint16_t transfer;
	uint64_t next;	   /* sequences below it have been sent */
	uint64_t sent;	   /* how many that were */
	uint64_t position; /* everything below it is on the wire */
};

struct sl_wire_bye {
	/* 1: the session takes more runs. A front end that stays connected hears AGAIN when the
	 * next one begins. */
	uint16_t more;
};

struct sl_wire_error {
	char text[256];
};

struct sl_wire_message {
	enum sl_wire_type type;
	union {
		struct sl_wire_hello hello;
		struct sl_offer offer;
		struct sl_plan plan;
		struct sl_wire_count count; /* COUNT and DONE */
		struct sl_wire_bye bye;
		struct sl_wire_error error;
		struct sl_wire_challenge challenge;
		struct sl_wire_proof proof;
	};
};

/* Bytes written, or -ENOSPC. */
int sl_wire_encode(const struct sl_wire_message *message, void *out, size_t bytes);

/* Bytes used; 0: not all there yet; -EPROTO: not this protocol; -EPROTONOSUPPORT: another
 * version. */
int sl_wire_decode(const void *in, size_t bytes, struct sl_wire_message *message);

const char *sl_wire_name(enum sl_wire_type type);

#endif
