/* payload.h - what is made of an element once for all viewers that ask for the same, and the answer
 * to each of them.
 *
 * Model:     an answer is a head, a prefix, the payload's bytes, and a suffix. What differs from
 *            one viewer to the next, as the age of the image, is in the prefix: the JSON header of
 *            pixels. Packed, the prefix is made of blocks that are stored as they are, in front of
 *            the blocks of the pixels, which were packed once.
 * Threads:   a payload does not change; references are counted atomically.
 * Ownership: each reference is its holder's; parts are the caller's, to sl_image_parts_fini(). */
#ifndef SL_SERVICE_IMAGE_PAYLOAD_H
#define SL_SERVICE_IMAGE_PAYLOAD_H

#include <stdatomic.h>
#include <stddef.h>

#include "service/image/wire.h"

struct sl_image_payload {
	_Atomic uint32_t refs;
	unsigned status;
	enum sl_image_type type;
	uint64_t commit_unix_ns, share; /* of the element */
	/* Of SL_IMAGE_SLIM, and of SL_IMAGE_JSON that is about an element: members of the JSON
	 * object behind those of the prefix, without braces. NULL: the bytes are all of it. */
	char *members;
	uint8_t *data;
	size_t bytes; /* of `data` */
	bool deflated;
	uint32_t adler;	      /* of the pixels, where they are deflated */
	uint64_t plain_bytes; /* of the pixels before that */
};

/* Zeroed, with one reference; NULL: no memory. */
struct sl_image_payload *sl_image_payload_make(unsigned status, enum sl_image_type type);
struct sl_image_payload *sl_image_payload_hold(struct sl_image_payload *payload);
void sl_image_payload_release(struct sl_image_payload *payload); /* NULL is fine */

/* {"error": {...}} of the service's API. */
struct sl_image_payload *sl_image_payload_error(unsigned status, const char *code, const char *hint,
						const char *format, ...)
	__attribute__((format(printf, 4, 5)));

struct sl_image_now { /* what is true while an answer is sent */
	uint64_t unix_ns, published;
	double rate_Hz; /* below 0: not known */
	uint64_t run, hit_frames, hits;
	const char *state; /* of the session; "": not known */
	bool over;	   /* the share has ended */
};

struct sl_image_parts {
	struct sl_image_head head;
	uint8_t *prefix;
	size_t prefix_bytes;
	uint8_t suffix[4];
	size_t suffix_bytes;
};

int sl_image_parts_make(const struct sl_image_payload *payload, const struct sl_image_now *now,
			struct sl_image_parts *parts);
void sl_image_parts_fini(struct sl_image_parts *parts);

#endif
