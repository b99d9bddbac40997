/* remote_wire.h - what a share and a follower on another host say over TCP before and beside RDMA.
 *
 * Model:     frames of frame.h, little-endian, with these payloads:
 *
 *              follower                         share
 *              GREETING hello            ->     with a secret: CHALLENGE nonce
 *              (then) PROOF              ->     PROOF: both know the secret (control/tcp/proof.h)
 *                                        <-     WELCOME: the value is the longest message
 *              CONNECT end               ->     CONNECTED offer: keys, sizes, header
 *              ARRIVALS                  ->     the value is how many WRITEs of a struct
 *                                               sl_share_remote_line it may send from now on
 *              PING, MESSAGE             <->    PONG, MESSAGE
 *                                        <-     ENDED: no further element is published
 *              FINISHED                  ->     it has read what it wants
 *                                        <-     REFUSED: a reason as text, instead of any answer
 *
 *            CONNECT may come again: after a resize, and when the path has failed. It makes new
 *            queue pairs each time.
 * NICs:      either side may be on one; it sends to UDP port 4791 alone, and says so.
 * Queues:    three between a share and a follower. DATA and LOOKS are RC and carry READs of the
 *            follower: notes and data; and the line of words that change. ARRIVALS is UC and
 *            carries WRITEs of the share into one line of the follower.
 * Trust:     functions of their arguments; nothing in a payload is believed before it is checked.
 * Errors:    0 or -EPROTO, with `why` in words. */
#ifndef SL_SHARE_REMOTE_WIRE_H
#define SL_SHARE_REMOTE_WIRE_H

#include "control/tcp/proof.h"
#include "share/frame.h"
#include "share/layout.h"

enum {
	SL_SHARE_REMOTE_VERSION = 1,
	SL_SHARE_REMOTE_STRANGER = 256, /* longest payload of a peer that is not welcome yet */
	SL_SHARE_REMOTE_TEXT = 240,	/* longest reason */
	SL_SHARE_REMOTE_HOST = 256,
	SL_SHARE_NAME = 64,
};

enum { SL_SHARE_DATA, SL_SHARE_LOOKS, SL_SHARE_ARRIVALS, SL_SHARE_QUEUES };

enum sl_share_refusal { /* the value of REFUSED */
			SL_SHARE_REFUSED_OTHER,
			SL_SHARE_REFUSED_NAME,
			SL_SHARE_REFUSED_SECRET,
			SL_SHARE_REFUSED_VERSION,
			SL_SHARE_REFUSED_FULL,
};

struct sl_share_remote_hello {
	uint32_t version, zero;
	char name[SL_SHARE_NAME];
	uint8_t nonce[SL_WIRE_NONCE]; /* random; zeros: this follower has no secret */
	uint8_t unused[24];
};

struct sl_share_remote_end { /* one side's queue pairs */
	uint32_t qpn[SL_SHARE_QUEUES], psn[SL_SHARE_QUEUES];
	uint32_t port;	/* UDP; its address is that of the TCP connection */
	uint32_t pmtu;	/* the largest that its path takes */
	uint32_t key;	/* follower: of its line ... */
	uint32_t nic;	/* 1: it sends to UDP port 4791 alone */
	uint64_t at;	/* ... and where that is */
	uint64_t reads; /* in flight on a queue pair, either way; 0: 16 */
	uint64_t unused;
};

struct sl_share_remote_offer {
	struct sl_share_remote_end end;
	/* What READs may reach: offsets in the share's first memory, from 0, and in its second,
	 * from the header's data_offset. */
	uint64_t region_bytes, second_bytes;
	uint32_t region_key, second_key;
	uint64_t unused[5];
	struct sl_share_header header;
};

/* A cache line of the follower's. A share WRITEs its beginning when elements arrive. */
struct sl_share_remote_line {
	uint64_t published, generation, state;
	uint64_t left; /* how many more WRITEs it may send */
	uint64_t unused[4];
};

_Static_assert(sizeof(struct sl_share_remote_hello) == 128, "no padding");
_Static_assert(sizeof(struct sl_share_remote_end) == 64, "no padding");
_Static_assert(offsetof(struct sl_share_remote_offer, header) == 128, "no padding");
_Static_assert(sizeof(struct sl_share_remote_line) == 64, "a cache line");

int sl_share_remote_check_hello(const void *payload, uint64_t bytes,
				struct sl_share_remote_hello *hello, char *why, size_t why_bytes);
/* follower: it is the end of a follower, which has a line. */
int sl_share_remote_check_end(const void *payload, uint64_t bytes, bool follower,
			      struct sl_share_remote_end *end, char *why, size_t why_bytes);
int sl_share_remote_check_offer(const void *payload, uint64_t bytes,
				struct sl_share_remote_offer *offer, char *why, size_t why_bytes);

/* A reason that the other side gave, as text for people: no control characters. */
void sl_share_remote_text(const void *payload, uint64_t bytes, char text[SL_SHARE_REMOTE_TEXT + 1]);

/* What is proven: the label of shares, the name, both nonces, address and port of the share. */
void sl_share_remote_terms(const struct sl_share_remote_hello *hello, struct sl_proof_terms *terms);

/* "HOST:PORT" or "[HOST]:PORT", with or without "/NAME" behind it; name: NULL: without. */
bool sl_share_remote_place(const char *text, char host[SL_SHARE_REMOTE_HOST], uint16_t *port,
			   char name[SL_SHARE_NAME]);

#endif
