/* render.h - an element and a request become a payload: pixels with their header, a picture, or
 * small results as JSON.
 *
 * Threads:   functions of their arguments: several threads draw the same element.
 * Cost:      that of reading the region once; packing and PNG cost more, and are done once for all
 *            viewers that ask for the same. */
#ifndef SL_SERVICE_IMAGE_RENDER_H
#define SL_SERVICE_IMAGE_RENDER_H

#include <stdio.h>

#include "picture/pixels.h"
#include "service/image/element.h"
#include "service/image/payload.h"
#include "service/image/request.h"
#include "service/image/rings.h"

/* An array that the request is about, and that this copy of the element does not have; -1: it has
 * what is asked for, or there is no such array. */
int sl_image_lacks(const struct sl_image_request *request, const struct sl_image_element *element);

/* What there is to say; errors, too. NULL: no memory. */
struct sl_image_payload *sl_image_render(const struct sl_image_request *request,
					 const struct sl_image_element *element);

/* ---- between the files ---- */

enum { SL_IMAGE_PEAKS = 4096 }; /* that a header lists */

struct sl_image_part { /* of an array: what is to be seen */
	int array;
	const struct sl_pixels_kind *kind;
	const void *pixels;
	uint32_t rows, columns; /* of the whole array */
	struct sl_pixels_view view;
};

/* Peaks or spots in pixels of the image; rows NULL: none are known. */
struct sl_image_peaks {
	uint32_t n, columns;   /* columns: of a row of `list` */
	const float *position; /* [n][2]: row, column */
	const float *list;     /* module, row, column, intensity ... */
};

/* False: nothing is known of this array. */
bool sl_image_find_peaks(const struct sl_image_element *element, const struct sl_image_part *part,
			 struct sl_image_peaks *peaks);
bool sl_image_find_rings(const struct sl_image_element *element, const struct sl_image_part *part,
			 struct sl_image_rings *rings);

/* render.c: "element":N,"n":N, ... : what is known of any element. */
void sl_image_put_note(FILE *out, const struct sl_image_element *element);
/* results.c */
struct sl_image_payload *sl_image_render_results(const struct sl_image_element *element);
/* drawing.c */
struct sl_image_payload *sl_image_render_picture(const struct sl_image_request *request,
						 const struct sl_image_element *element,
						 const struct sl_image_part *part);

#endif
