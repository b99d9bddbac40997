/* wire.h - what the service and an image process say to each other.
 *
 * Model:     the two ends of a socket pair (SOCK_SEQPACKET) are the control socket. A request is
 *            one datagram on it: a text as "image?array=image&bin=4" (request.h), with the
 *            descriptor of one end of a stream socket. The answer comes on that stream: a head,
 *            and the body. The service closes its end when it has read the answer, or does not
 *            want it any more; the image process ends when the control socket is closed.
 * Trust:     an image process may have crashed in the middle of anything: the service checks the
 *            head, and reads no more than it says. */
#ifndef SL_SERVICE_IMAGE_WIRE_H
#define SL_SERVICE_IMAGE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SL_IMAGE_QUERY_BYTES = 1024, /* of a request's text, at most */
	SL_IMAGE_MAGIC = 0x4d494c53,
	SL_IMAGE_WAIT_MS = 30000, /* that a request may wait for a new element */
};
/* Of a body: pixels of one answer. */
#define SL_IMAGE_BODY_BYTES (UINT64_C(128) << 20)

enum sl_image_type { SL_IMAGE_NOTHING, SL_IMAGE_SLIM, SL_IMAGE_PNG, SL_IMAGE_JSON, SL_IMAGE_TYPES };

struct sl_image_head {
	uint32_t magic;
	uint16_t status;   /* as of HTTP */
	uint16_t type;	   /* enum sl_image_type, of the body */
	uint32_t deflated; /* 1: the body is packed: Content-Encoding: deflate */
	uint32_t unused;
	uint64_t bytes; /* of the body */
};

static inline bool sl_image_head_is_right(const struct sl_image_head *head)
{
	return head->magic == SL_IMAGE_MAGIC && head->status >= 200 && head->status < 600 &&
	       head->type < SL_IMAGE_TYPES && head->deflated <= 1 && !head->unused &&
	       head->bytes <= SL_IMAGE_BODY_BYTES + (1 << 20) &&
	       (head->type != SL_IMAGE_NOTHING || !head->bytes);
}

#endif
