/* element.c - copies of elements. */
#include "service/image/element.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

uint64_t sl_image_element_bytes(const struct sl_share_description *d,
				const struct sl_share_note *note, uint32_t i)
{
	const struct sl_share_array *array = &d->array[i];
	uint32_t rows = note->rows[i] < array->dim[0] ? note->rows[i] : array->dim[0];

	return array->ragged ? array->bytes / array->dim[0] * rows : array->bytes;
}

static uint64_t lay_out(struct sl_image_element *copy)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < copy->description.arrays; i++) {
		if (!(copy->held >> i & 1))
			continue;
		copy->at[i] = end;
		end += sl_image_element_bytes(&copy->description, &copy->element.note, i) + ALIGN;
		end = end / ALIGN * ALIGN;
	}
	return end;
}

struct sl_image_element *sl_image_element_make(struct sl_image_pool *pool,
					       const struct sl_share_description *description,
					       const struct sl_follow_element *element,
					       uint64_t arrays, int *err)
{
	struct sl_image_element *copy;
	uint64_t bytes;

	*err = -EAGAIN;
	if (atomic_fetch_add(&pool->live, 1) >= SL_IMAGE_ELEMENTS) {
		atomic_fetch_sub(&pool->live, 1);
		return NULL;
	}
	*err = -ENOMEM;
	copy = calloc(1, sizeof(*copy));
	if (copy) {
		copy->refs = 1;
		copy->pool = pool;
		copy->held = arrays;
		copy->description = *description;
		copy->element = *element;
		copy->element.data = NULL;
		bytes = lay_out(copy);
		*err = bytes > SL_IMAGE_ELEMENT_BYTES ? -EFBIG : -ENOMEM;
		if (bytes <= SL_IMAGE_ELEMENT_BYTES)
			copy->data = malloc(bytes ? bytes : 1);
		if (copy->data) {
			*err = 0;
			return copy;
		}
	}
	free(copy);
	atomic_fetch_sub(&pool->live, 1);
	return NULL;
}

struct sl_image_element *sl_image_element_hold(struct sl_image_element *copy)
{
	atomic_fetch_add(&copy->refs, 1);
	return copy;
}

void sl_image_element_release(struct sl_image_element *copy)
{
	if (!copy || atomic_fetch_sub(&copy->refs, 1) != 1)
		return;
	atomic_fetch_sub(&copy->pool->live, 1);
	free(copy->data);
	free(copy);
}

int sl_image_element_find(const struct sl_image_element *copy, const char *name)
{
	for (uint32_t i = 0; i < copy->description.arrays; i++)
		if (!strcmp(copy->description.array[i].name, name))
			return (int)i;
	return -1;
}

const void *sl_image_element_array(const struct sl_image_element *copy, int array)
{
	if (array < 0 || !(copy->held >> array & 1) || copy->element.note.absent >> array & 1)
		return NULL;
	return copy->data + copy->at[array];
}
