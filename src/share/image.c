/* image.c - which array of a share is the one to look at. */
#include "share/image.h"

#include <string.h>

enum { LEAST_ROWS = 16 };

bool sl_share_picture_size(const struct sl_share_array *array, uint64_t *rows, uint64_t *columns)
{
	*rows = 1;
	*columns = array->rank ? array->dim[array->rank - 1] : 1;
	for (uint32_t i = 0; i + 1 < array->rank; i++)
		*rows *= array->dim[i]; /* of a share that was checked the product is in bounds */
	return array->rank >= 2 && !array->ragged;
}

int sl_share_image_of(const struct sl_share_description *d)
{
	static const char *const names[] = {"image", "raw"};
	uint64_t rows, columns, most = 0;
	int found = -1;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		for (uint32_t i = 0; i < d->arrays; i++)
			if (!strcmp(d->array[i].name, names[k]) &&
			    sl_share_picture_size(&d->array[i], &rows, &columns))
				return (int)i;
	for (uint32_t i = 0; i < d->arrays; i++) {
		if (!sl_share_picture_size(&d->array[i], &rows, &columns) || rows < LEAST_ROWS ||
		    rows * columns <= most)
			continue;
		most = rows * columns;
		found = (int)i;
	}
	return found;
}
