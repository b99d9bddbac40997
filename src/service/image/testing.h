/* testing.h - for tests: an element with an image, lists and facts, made by hand. */
#ifndef SL_SERVICE_IMAGE_TESTING_H
#define SL_SERVICE_IMAGE_TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/frame.h>

#include "service/image/element.h"

enum { RIG_ROWS = 20, RIG_COLUMNS = 30, RIG_PEAKS = 3 };

static const struct sl_share_array rig_arrays[] = {
	{.name = "image", .unit = "photons", .type = "<i2", .rank = 2, .dim = {20, 30}},
	{.name = "peaks", .type = "<f4", .rank = 2, .ragged = 1, .dim = {10, 8}},
	{.name = "peaks_in_image",
	 .unit = "pixels",
	 .type = "<f4",
	 .rank = 2,
	 .ragged = 1,
	 .dim = {10, 2}},
	{.name = "image_plane", .unit = "m", .type = "<f8", .rank = 1, .dim = {11}},
	{.name = "photon_energy", .unit = "keV", .type = "<f8", .rank = 1, .dim = {1}},
	{.name = "profile", .type = "<f4", .rank = 2, .dim = {3, 4}},
	{.name = "counts", .type = "<u8", .rank = 1, .dim = {2}},
	{.name = "wave", .type = "<c8", .rank = 1, .dim = {2}},
	{.name = "stack", .type = "|u1", .rank = 3, .dim = {2, 20, 30}},
};
enum { RIG_ARRAYS = sizeof(rig_arrays) / sizeof(rig_arrays[0]) };

/* -32768 in the first two columns, else 100 * row + column. */
static inline int16_t rig_pixel(unsigned row, unsigned column)
{
	return column < 2 ? INT16_MIN : (int16_t)(100 * row + column);
}

static inline uint64_t rig_bytes(const struct sl_share_array *array)
{
	static const char *const types[] = {"<i2", "<f4", "<f8", "<u8", "<c8", "|u1"};
	static const uint64_t sizes[] = {2, 4, 8, 8, 8, 1};
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(array->type, types[i]))
			bytes = sizes[i];
	for (uint32_t i = 0; i < array->rank; i++)
		bytes *= array->dim[i];
	return bytes;
}

static inline void rig_describe(struct sl_share_description *d)
{
	*d = (struct sl_share_description){.generation = 1, .count = 8, .arrays = RIG_ARRAYS};
	strcpy(d->name, "rig");
	strcpy(d->run, "rig");
	for (unsigned i = 0; i < RIG_ARRAYS; i++) {
		d->array[i] = rig_arrays[i];
		d->array[i].bytes = rig_bytes(&rig_arrays[i]);
		d->array[i].offset = d->data_bytes;
		d->data_bytes += (d->array[i].bytes + 63) / 64 * 64;
	}
}

static inline void *rig_array(const struct sl_image_element *e, const char *name)
{
	return (void *)(uintptr_t)sl_image_element_array(e, sl_image_element_find(e, name));
}

/* With these of its arrays: a bit each. */
static inline struct sl_image_element *rig_element(struct sl_image_pool *pool, uint64_t held)
{
	static const float peaks[RIG_PEAKS][8] = {{0, 5, 6, 70.5f}, {0, 7, 8, 9}, {1, 1, 1, NAN}};
	static const float places[RIG_PEAKS][2] = {{5.25f, 6.5f}, {NAN, 8}, {19, 29}};
	static const double plane[11] = {15 * 1e-4, 10 * 1e-4, 0.01, 0,	 -1e-4, 0,
					 -1e-4,	    0,	       0,    20, 30};
	struct sl_follow_element seen = {.n = 41,
					 .missed = 3,
					 .note = {.number = 1234,
						  .timestamp = INT64_MAX,
						  .commit_unix_ns = 1000000,
						  .missing = 2,
						  .score = 73.5f,
						  .keep = 1,
						  .reason = SL_REASON_PEAKS,
						  .flags = SL_FRAME_COMPLETE}};
	struct sl_share_description d;
	struct sl_image_element *e;
	int err;

	rig_describe(&d);
	seen.note.rows[1] = seen.note.rows[2] = RIG_PEAKS;
	e = sl_image_element_make(pool, &d, &seen, held, &err);
	assert_non_null(e);
	e->id = 141;
	for (unsigned i = 0; held & 1 && i < RIG_ROWS * RIG_COLUMNS; i++)
		((int16_t *)rig_array(e, "image"))[i] = rig_pixel(i / RIG_COLUMNS, i % RIG_COLUMNS);
	for (unsigned i = 1; i < RIG_ARRAYS; i++)
		if (held >> i & 1)
			memset(rig_array(e, rig_arrays[i].name), 0,
			       sl_image_element_bytes(&d, &seen.note, i));
	if (held >> 1 & 1)
		memcpy(rig_array(e, "peaks"), peaks, sizeof(peaks));
	if (held >> 2 & 1)
		memcpy(rig_array(e, "peaks_in_image"), places, sizeof(places));
	if (held >> 3 & 1)
		memcpy(rig_array(e, "image_plane"), plane, sizeof(plane));
	if (held >> 4 & 1)
		*(double *)rig_array(e, "photon_energy") = 12.4;
	if (held >> 6 & 1)
		((uint64_t *)rig_array(e, "counts"))[1] = INT64_MAX;
	return e;
}

#endif
