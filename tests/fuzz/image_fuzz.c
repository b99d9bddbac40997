/* image_fuzz.c - any bytes as a request for an image, and any numbers in an element: a request is
 * refused with a reason, or has an answer whose size is what its head says. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/image/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 20, COLUMNS = 30, LIST = 10 };

static void require(bool good)
{
	if (!good)
		abort();
}

static void describe(struct sl_share_description *d)
{
	static const struct sl_share_array arrays[] = {
		{.name = "image_plane", .type = "<f8", .rank = 1, .dim = {11}, .bytes = 88},
		{.name = "photon_energy", .type = "<f8", .rank = 1, .dim = {1}, .bytes = 8},
		{.name = "peaks_in_image",
		 .type = "<f4",
		 .rank = 2,
		 .ragged = 1,
		 .dim = {LIST, 2},
		 .bytes = LIST * 8},
		{.name = "peaks",
		 .type = "<f4",
		 .rank = 2,
		 .ragged = 1,
		 .dim = {LIST, 4},
		 .bytes = LIST * 16},
		{.name = "image",
		 .type = "<f4",
		 .rank = 2,
		 .dim = {ROWS, COLUMNS},
		 .bytes = ROWS * COLUMNS * 4},
	};

	memset(d, 0, sizeof(*d));
	d->arrays = sizeof(arrays) / sizeof(arrays[0]);
	memcpy(d->array, arrays, sizeof(arrays));
	strcpy(d->run, "fuzz");
}

/* What is behind the first zero byte fills the arrays, again and again. */
static struct sl_image_element *make_element(struct sl_image_pool *pool, const uint8_t *bytes,
					     size_t n)
{
	struct sl_follow_element seen = {.n = 7};
	struct sl_share_description d;
	struct sl_image_element *e;
	size_t used = 0;
	int err;

	describe(&d);
	seen.note.rows[2] = n % (LIST + 3);
	seen.note.rows[3] = LIST;
	seen.note.reason = (uint16_t)n;
	e = sl_image_element_make(pool, &d, &seen, 31, &err);
	require(e != NULL);
	for (uint32_t i = 0; i < d.arrays; i++) {
		uint8_t *to = e->data + e->at[i];

		for (uint64_t k = 0; k < sl_image_element_bytes(&d, &seen.note, i); k++)
			to[k] = n ? bytes[used++ % n] : 0;
	}
	return e;
}

static void answer(const struct sl_image_request *request, const struct sl_image_element *e)
{
	const struct sl_image_now now = {.unix_ns = 5, .rate_Hz = -1, .state = ""};
	struct sl_image_payload *p;
	struct sl_image_parts parts;

	require(sl_image_lacks(request, e) < 0);
	p = sl_image_render(request, e);
	require(p != NULL && !sl_image_parts_make(p, &now, &parts));
	require(sl_image_head_is_right(&parts.head));
	require(parts.head.bytes == parts.prefix_bytes + p->bytes + parts.suffix_bytes);
	if (p->type == SL_IMAGE_SLIM && !p->deflated)
		require(parts.prefix_bytes % 8 == 0 && !memcmp(parts.prefix, "SLIM", 4));
	sl_image_parts_fini(&parts);
	sl_image_payload_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_image_pool pool;
	const uint8_t *zero = memchr(data, 0, size);
	size_t length = zero ? (size_t)(zero - data) : size;
	char *text = malloc(length ? length : 1),
	     why[200] = ""; /* so that a byte behind is found */
	struct sl_image_request request;
	struct sl_image_head head = {0};

	memcpy(&head, data, size < sizeof(head) ? size : sizeof(head));
	if (sl_image_head_is_right(&head))
		require(head.bytes <= UINT64_C(1) << 28 && head.type < SL_IMAGE_TYPES);
	require(text != NULL);
	memcpy(text, data, length);
	if (sl_image_request_parse(text, length, &request, why, sizeof(why))) {
		require(why[0] != 0);
	} else {
		struct sl_image_element *e =
			make_element(&pool, zero ? zero + 1 : NULL, zero ? size - length - 1 : 0);

		require(sl_image_request_same(&request, &request));
		answer(&request, e);
		sl_image_element_release(e);
	}
	free(text);
	return 0;
}
