/* request.h - what a viewer asks for: text becomes numbers, all of them in bounds.
 *
 * Model:     "image?KEY=VALUE&...", "image.png?..." or "results?...", with %XX in values.
 *            docs/reference/live-image.md has the keys. A key that is not known, comes twice, or
 *            has a value that it cannot have makes the request wrong.
 * Threads:   functions of their arguments. */
#ifndef SL_SERVICE_IMAGE_REQUEST_H
#define SL_SERVICE_IMAGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_image_kind { SL_IMAGE_PIXELS, SL_IMAGE_PICTURE, SL_IMAGE_RESULTS, SL_IMAGE_KINDS };

struct sl_image_request {
	uint32_t kind;			      /* enum sl_image_kind */
	char array[32];			      /* "": the one to look at */
	uint32_t x, y, width, height;	      /* width, height 0: to the edge */
	uint32_t bin;			      /* 0: chosen: 1 for pixels; of a picture by `size` */
	uint32_t size;			      /* of a picture's longer side, where bin is 0 */
	uint32_t mean, deflate, peaks, rings; /* 1: yes */
	uint32_t scale, colours;	      /* enum sl_picture_scale, sl_picture_colours */
	double low, high;		      /* percentiles */
	uint32_t has_after, wait_ms;
	uint64_t after; /* an element that the viewer has */
};

/* text: without a final zero. -EINVAL: `why` says what is wrong. */
int sl_image_request_parse(const char *text, size_t bytes, struct sl_image_request *request,
			   char *why, size_t why_bytes);

/* Whether the same bytes answer both, of one element. */
bool sl_image_request_same(const struct sl_image_request *a, const struct sl_image_request *b);

#endif
