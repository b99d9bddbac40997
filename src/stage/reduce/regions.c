/* regions.c - rectangles of the image as spans of raw pixels. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stage/reduce/reduce.h"

enum { IMAGE, MODULES }; /* the choices of `roi_in` */

struct rectangle {
	long row, column, rows, columns;
};

static int refuse(const char *text, const char *why)
{
	sl_error("reduce: roi '%.60s': %s", text, why);
	return -EINVAL;
}

/* "row, column, rows, columns; ..." */
static int parse(const char *text, struct rectangle *r, uint32_t most, uint32_t *n)
{
	const char *at = text;

	for (*n = 0; *at; ++*n) {
		int used = 0;
		char end;

		if (*n == most)
			return refuse(text, "more than 16 rectangles");
		if (sscanf(at, " %9ld , %9ld , %9ld , %9ld %n", &r[*n].row, &r[*n].column,
			   &r[*n].rows, &r[*n].columns, &used) != 4 ||
		    !used)
			return refuse(at, "is not 'row, column, rows, columns; ...'");
		end = at[used];
		if (end != ';' && end != '\0')
			return refuse(at, "is not 'row, column, rows, columns; ...'");
		if (r[*n].row < 0 || r[*n].column < 0 || r[*n].rows < 1 || r[*n].columns < 1)
			return refuse(at, "begins before the image, or has no pixel");
		at += used + (end == ';');
		while (isspace((unsigned char)*at))
			at++;
	}
	return 0;
}

static bool is_in(const struct rectangle *r, long row, long column)
{
	return row >= r->row && row < r->row + r->rows && column >= r->column &&
	       column < r->column + r->columns;
}

/* A pixel more of the region: its last span becomes longer, or there is a new one. */
static int extend(struct sl_reduce_region *region, uint64_t pixel, uint32_t *room)
{
	struct sl_reduce_span *last = region->spans ? &region->span[region->spans - 1] : NULL,
			      *more;

	if (last && last->first + last->count == pixel) {
		last->count++;
		return 0;
	}
	if (region->spans == *room) {
		*room = *room ? 2 * *room : 64;
		more = realloc(region->span, *room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		region->span = more;
	}
	region->span[region->spans++] = (struct sl_reduce_span){pixel, 1};
	return 0;
}

/* The pixels whose middle lies in the rectangle, of the image or of modules one below the other. */
static int fill(struct sl_reduce *r, const struct sl_geometry *g, const struct rectangle *rectangle)
{
	uint32_t room[SL_REDUCE_REGIONS] = {0};
	int err = 0;

	for (uint64_t i = 0; i < r->modules * r->module_pixels && !err; i++) {
		double row = (double)(i / r->columns), column = (double)(i % r->columns);

		if (r->roi_in == IMAGE)
			sl_layout_centre(g, (uint32_t)(i / r->module_pixels),
					 (uint32_t)(i % r->module_pixels), &row, &column);
		for (uint32_t k = 1; k < r->regions && !err; k++)
			if (is_in(&rectangle[k - 1], (long)row, (long)column))
				err = extend(&r->region[k], i, &room[k]);
	}
	return err;
}

int sl_reduce_regions_open(struct sl_reduce *r, const struct sl_env *env)
{
	struct rectangle rectangle[SL_REDUCE_REGIONS - 1];
	struct sl_geometry geometry = *env->geometry;
	uint32_t n;
	int err = parse(r->roi, rectangle, SL_REDUCE_REGIONS - 1, &n);

	r->regions = 1;
	if (err || !n)
		return err;
	r->regions = 1 + n;
	sl_layout_resolve(env->geometry, &geometry.layout);
	err = fill(r, &geometry, rectangle);
	if (err)
		sl_error("reduce: no memory for regions");
	for (uint32_t k = 1; k < r->regions && !err; k++)
		if (!r->region[k].spans) {
			sl_error("reduce: no pixel of the detector lies in rectangle %u of roi", k);
			err = -EINVAL;
		}
	return err;
}

void sl_reduce_regions_close(struct sl_reduce *r)
{
	for (uint32_t k = 0; k < SL_REDUCE_REGIONS; k++) {
		free(r->region[k].span);
		r->region[k].span = NULL;
	}
}

/* The first span that ends behind this pixel. */
static uint32_t find(const struct sl_reduce_region *region, uint64_t pixel)
{
	uint32_t low = 0, high = region->spans;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (region->span[middle].first + region->span[middle].count <= pixel)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void sl_reduce_region_add(const struct sl_reduce *r, uint32_t number, const void *pixels,
			  uint64_t first, uint32_t count, struct sl_reduce_sum *sum)
{
	const struct sl_reduce_region *region = &r->region[number];
	size_t bytes = sl_dtype_bytes(r->dtype);
	uint64_t end = first + count;

	for (uint32_t i = find(region, first); i < region->spans && region->span[i].first < end;
	     i++) {
		const struct sl_reduce_span *span = &region->span[i];
		uint64_t from = span->first > first ? span->first : first;
		uint64_t to = span->first + span->count < end ? span->first + span->count : end;

		r->add((const char *)pixels + (from - first) * bytes, (uint32_t)(to - from), sum);
	}
}
