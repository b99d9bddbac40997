/* element.h - a copy of an element of a share, which all viewers look at together.
 *
 * Model:     a copy has the arrays that somebody has asked for lately, and all small ones. It
 *            lives until its last reference is given up. A pool bounds how many there are.
 * Threads:   a copy does not change; references are counted atomically.
 * Ownership: each reference is its holder's.
 * Cost:      the bytes of its arrays; allocated anew for each, since the kernel zeroes such pages
 *            faster than they are filled. */
#ifndef SL_SERVICE_IMAGE_ELEMENT_H
#define SL_SERVICE_IMAGE_ELEMENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sluice/share.h>

struct sl_image_pool {
	_Atomic uint32_t live;
};
enum { SL_IMAGE_ELEMENTS = 4 };			     /* of a pool at most */
#define SL_IMAGE_ELEMENT_BYTES (UINT64_C(512) << 20) /* of one element at most */

struct sl_image_element {
	_Atomic uint32_t refs;
	struct sl_image_pool *pool;
	uint64_t share; /* its number among those that were followed */
	uint64_t id;	/* as viewers know it: rises from run to run, too */
	uint64_t held;	/* a bit for each array that is in the copy */
	struct sl_share_description description;
	struct sl_follow_element element;
	uint64_t at[SL_SHARE_ARRAYS]; /* in `data` */
	uint8_t *data;
};

/* With room for these arrays, as many rows as the note says. NULL, *err: -EAGAIN: the pool has none
 * left; -EFBIG; -ENOMEM. */
struct sl_image_element *sl_image_element_make(struct sl_image_pool *pool,
					       const struct sl_share_description *description,
					       const struct sl_follow_element *element,
					       uint64_t arrays, int *err);
struct sl_image_element *sl_image_element_hold(struct sl_image_element *element);
void sl_image_element_release(struct sl_image_element *element); /* NULL is fine */

/* Bytes of an array in this element: of a ragged one those of its rows. */
uint64_t sl_image_element_bytes(const struct sl_share_description *description,
				const struct sl_share_note *note, uint32_t array);
/* -1: there is none of that name. */
int sl_image_element_find(const struct sl_image_element *element, const char *name);
/* The array's bytes; NULL: this copy does not have it, or the frame had none. */
const void *sl_image_element_array(const struct sl_image_element *element, int array);

#endif
