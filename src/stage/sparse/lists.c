/* lists.c - pixels into lists: each worker picks them into lists of its own, which become one for
 * each frame, and its results. */
#include "stage/sparse/sparse.h"

#include <float.h>
#include <string.h>

enum { BLOCK = SL_OUTSIDE_BLOCK, MASKS = 64 };

bool sl_sparse_is_bad(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i] == UINT8_MAX;
	case SL_U16:
		return ((const uint16_t *)pixels)[i] == UINT16_MAX;
	case SL_U32:
		return ((const uint32_t *)pixels)[i] == UINT32_MAX;
	case SL_I16:
		return ((const int16_t *)pixels)[i] == INT16_MIN;
	default:
		return !(((const float *)pixels)[i] >= -FLT_MAX); /* NaN, -infinity */
	}
}

bool sl_sparse_is_overload(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	if (dtype == SL_F32)
		return ((const float *)pixels)[i] > FLT_MAX;
	return dtype == SL_I16 && ((const int16_t *)pixels)[i] == INT16_MAX;
}

static void copy_value(size_t bytes, void *to, uint64_t at, const void *from, uint64_t i)
{
	switch (bytes) {
	case 1:
		((uint8_t *)to)[at] = ((const uint8_t *)from)[i];
		break;
	case 2:
		((uint16_t *)to)[at] = ((const uint16_t *)from)[i];
		break;
	default:
		((uint32_t *)to)[at] = ((const uint32_t *)from)[i];
	}
}

void sl_sparse_pick(struct sl_sparse_list *list, enum sl_dtype dtype, uint32_t index,
		    const void *pixels, uint64_t i)
{
	list->found++;
	if (list->count == list->room)
		return;
	list->index[list->count] = index;
	copy_value(sl_dtype_bytes(dtype), list->value, list->count, pixels, i);
	list->count++;
}

/* ---- by threshold ---- */

static struct sl_sparse_list list_of(const struct sl_sparse *s, struct sl_sparse_head *head)
{
	uint32_t *index = (uint32_t *)(head + 1);

	return (struct sl_sparse_list){.index = index,
				       .value = index + s->room,
				       .room = s->room,
				       .count = head->count,
				       .found = head->found};
}

static void pick_bits(const struct sl_sparse *s, struct sl_sparse_list *list, uint64_t mask,
		      const void *pixels, uint32_t i, uint32_t index)
{
	for (; mask; mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);

		if (!sl_sparse_is_bad(s->dtype, pixels, i + bit))
			sl_sparse_pick(list, s->dtype, index + bit, pixels, i + bit);
	}
}

static void select_run(const struct sl_sparse *s, struct sl_sparse_list *list, const void *pixels,
		       uint32_t count, uint32_t index)
{
	size_t bytes = sl_dtype_bytes(s->dtype);
	uint64_t mask[MASKS];
	uint32_t i = 0;

	while (count - i >= BLOCK) {
		uint32_t blocks = (count - i) / BLOCK < MASKS ? (count - i) / BLOCK : MASKS;

		s->outside((const char *)pixels + i * bytes, blocks, &s->bounds, 0, mask);
		for (uint32_t b = 0; b < blocks; b++, i += BLOCK)
			pick_bits(s, list, mask[b], pixels, i, index + i);
	}
	if (i < count)
		pick_bits(s, list,
			  sl_outside_part(s->dtype, (const char *)pixels + i * bytes, count - i,
					  &s->bounds),
			  pixels, i, index + i);
}

void sl_sparse_tile(void *state, void *scratch, const struct sl_batch *batch,
		    const struct sl_tile *tile)
{
	const struct sl_sparse *s = state;
	uint32_t index = (uint32_t)(tile->module * s->module_pixels + tile->first);

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_sparse_head *head =
			(void *)((char *)scratch + f * sl_sparse_entry_bytes(s));
		struct sl_sparse_list list = list_of(s, head);

		if (batch->frame[f]->flags & SL_FRAME_DARK)
			continue; /* has no image */
		select_run(s, &list, tile->in[f], tile->count, index);
		head->count = list.count;
		head->found = list.found;
	}
}

/* ---- lists of all workers become one ---- */

static void swap_values(size_t bytes, void *values, uint32_t a, uint32_t b)
{
	uint32_t kept = 0;

	copy_value(bytes, &kept, 0, values, a);
	copy_value(bytes, values, a, values, b);
	copy_value(bytes, values, b, &kept, 0);
}

/* A worker takes tiles by rising number, so that its list is in order. Should a unit hand them out
 * otherwise, it is put in order (Shell's sort). */
static void sort(struct sl_sparse_list *list, size_t bytes)
{
	uint32_t gap = 1, i = 1;

	while (i < list->count && list->index[i - 1] < list->index[i])
		i++;
	if (i >= list->count)
		return;
	while (gap < list->count / 3)
		gap = 3 * gap + 1;
	for (; gap; gap /= 3)
		for (i = gap; i < list->count; i++)
			for (uint32_t k = i; k >= gap && list->index[k - gap] > list->index[k];
			     k -= gap) {
				uint32_t kept = list->index[k];

				list->index[k] = list->index[k - gap];
				list->index[k - gap] = kept;
				swap_values(bytes, list->value, k, k - gap);
			}
}

/* How many of the list, from `first` on, come before that index. */
static uint32_t run_of(const struct sl_sparse_list *list, uint32_t first, uint32_t before)
{
	uint32_t low = first, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->index[middle] < before)
			low = middle + 1;
		else
			high = middle;
	}
	return low - first;
}

static void append(struct sl_sparse_list *to, const struct sl_sparse_list *from, uint32_t first,
		   uint32_t count, size_t bytes)
{
	uint32_t room = to->room - to->count;

	count = count < room ? count : room;
	memcpy(to->index + to->count, from->index + first, count * sizeof(*to->index));
	memcpy((char *)to->value + to->count * bytes, (char *)from->value + first * bytes,
	       count * bytes);
	to->count += count;
}

/* The worker whose next index is lowest, and the next index of all others; -1: all is merged. */
static int lowest(const struct sl_sparse *s, void *const *scratch, unsigned workers, size_t offset,
		  uint32_t *before)
{
	uint32_t least = UINT32_MAX;
	int found = -1;

	*before = UINT32_MAX;
	for (unsigned w = 0; w < workers; w++) {
		struct sl_sparse_head *head = (void *)((char *)scratch[w] + offset);
		struct sl_sparse_list list = list_of(s, head);

		if (head->merged == list.count)
			continue;
		if (found < 0 || list.index[head->merged] < least) {
			*before = found < 0 ? *before : least;
			least = list.index[head->merged];
			found = (int)w;
		} else if (list.index[head->merged] < *before) {
			*before = list.index[head->merged];
		}
	}
	return found;
}

static void merge(const struct sl_sparse *s, void *const *scratch, unsigned workers, size_t offset,
		  struct sl_sparse_list *to)
{
	size_t bytes = sl_dtype_bytes(s->dtype);
	uint32_t before;
	int next;

	for (unsigned w = 0; w < workers; w++) {
		struct sl_sparse_list list = list_of(s, (void *)((char *)scratch[w] + offset));

		sort(&list, bytes);
		to->found += list.found;
	}
	while ((next = lowest(s, scratch, workers, offset, &before)) >= 0) {
		struct sl_sparse_head *head = (void *)((char *)scratch[next] + offset);
		struct sl_sparse_list list = list_of(s, head);
		uint32_t count = run_of(&list, head->merged, before);

		append(to, &list, head->merged, count, bytes);
		head->merged += count;
	}
}

/* ---- results ---- */

static struct sl_sparse_list result_of(const struct sl_sparse *s, struct sl_frame *frame)
{
	return (struct sl_sparse_list){.index = frame->result[s->result].host,
				       .value = frame->result[s->result + 1].host,
				       .room = s->room};
}

static void point_at_rows(const struct sl_sparse *s, const struct sl_sparse_list *list,
			  uint32_t *pointer)
{
	uint32_t rows = s->modules * s->rows, row = 0;

	for (uint32_t i = 0; i < list->count; i++)
		while (row <= list->index[i] / s->columns)
			pointer[row++] = i;
	while (row <= rows)
		pointer[row++] = list->count;
}

static void set_results(const struct sl_sparse *s, struct sl_frame *frame,
			const struct sl_sparse_list *list)
{
	frame->result[s->result].rows = list->count;
	frame->result[s->result + 1].rows = list->count;
	*(uint32_t *)frame->result[s->result + 2].host = (uint32_t)list->found;
	if (s->pointers)
		point_at_rows(s, list, frame->result[s->result + s->pointers].host);
}

void sl_sparse_finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	const struct sl_sparse *s = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_sparse_list list = result_of(s, batch->frame[f]);

		if (!(batch->frame[f]->flags & SL_FRAME_DARK))
			merge(s, scratch, workers, f * sl_sparse_entry_bytes(s), &list);
		set_results(s, batch->frame[f], &list);
	}
}

void sl_sparse_frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_sparse *s = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_sparse_list list = result_of(s, frame);
	float *average = frame->result[s->result + s->background].host;
	float *deviation = frame->result[s->result + s->background + 1].host;

	if (!(frame->flags & SL_FRAME_DARK) && (s->rejected || sl_frame_is_kept(frame))) {
		sl_sparse_radial_frame(s, scratch, frame, &list, average, deviation);
	} else {
		memset(average, 0, s->radial.bins * sizeof(*average));
		memset(deviation, 0, s->radial.bins * sizeof(*deviation));
	}
	set_results(s, frame, &list);
}
