/* image.h - which array of a share is the one to look at.
 *
 * Threads:   a function of its arguments. */
#ifndef SL_SHARE_IMAGE_H
#define SL_SHARE_IMAGE_H

#include <stdbool.h>

#include <sluice/share.h>

/* Rows and columns of an array as a picture: the last dimension are its columns. False: it is none,
 * or its rows differ from element to element. */
bool sl_share_picture_size(const struct sl_share_array *array, uint64_t *rows, uint64_t *columns);

/* The array called `image`; else `raw`; else the largest of those with at least 16 rows. -1: there
 * is none. */
int sl_share_image_of(const struct sl_share_description *description);

#endif
