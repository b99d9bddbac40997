/* row_queue.c - a ring of rows, and the numbers that Redis does not have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/redis/row_queue.h"

int sl_row_queue_open(struct sl_row_queue *queue, uint32_t capacity)
{
	*queue = (struct sl_row_queue){.capacity = capacity};
	queue->row = calloc(capacity, sizeof(*queue->row));
	return queue->row ? 0 : -ENOMEM;
}

static struct sl_waiting_row *at(const struct sl_row_queue *queue, uint64_t number)
{
	return &queue->row[number % queue->capacity];
}

void sl_row_queue_close(struct sl_row_queue *queue)
{
	for (uint64_t i = queue->first; i < queue->end; i++)
		free(at(queue, i)->bytes);
	free(queue->row);
	*queue = (struct sl_row_queue){0};
}

int sl_row_queue_push(struct sl_row_queue *queue, const char *bytes, size_t length)
{
	struct sl_waiting_row *row = at(queue, queue->end);
	char *copy;

	if (sl_row_queue_full(queue) || queue->bytes + length > SL_ROW_BYTES)
		return -ENOBUFS;
	copy = malloc(length ? length : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, length);
	*row = (struct sl_waiting_row){copy, length};
	queue->bytes += length;
	queue->end++;
	return 0;
}

const struct sl_waiting_row *sl_row_queue_next(struct sl_row_queue *queue)
{
	if (queue->sent == queue->end)
		return NULL;
	if (queue->tried <= queue->sent)
		queue->tried = queue->sent + 1;
	return at(queue, queue->sent++);
}

static void note_hole(struct sl_row_queue *queue, uint64_t number)
{
	struct sl_row_span *last = queue->holes ? &queue->hole[queue->holes - 1] : NULL;

	if (last && (last->end == number || queue->holes == SL_ROW_HOLES))
		last->end++;
	else
		queue->hole[queue->holes++] = (struct sl_row_span){number, number + 1};
}

void sl_row_queue_answered(struct sl_row_queue *queue, bool hole)
{
	struct sl_waiting_row *row = at(queue, queue->first);

	if (queue->first == queue->end)
		return;
	free(row->bytes);
	row->bytes = NULL;
	queue->bytes -= row->length;
	if (hole)
		note_hole(queue, queue->first);
	queue->first++;
	if (queue->sent < queue->first)
		queue->sent = queue->first;
}

void sl_row_queue_rewind(struct sl_row_queue *queue)
{
	queue->resent = queue->tried;
	queue->sent = queue->first;
}

/* All numbers from `from` to the oldest that waits are holes now; how many were not before. */
static uint64_t lose(struct sl_row_queue *queue, uint64_t from)
{
	uint64_t lost = queue->first - from;

	while (queue->holes) {
		struct sl_row_span *last = &queue->hole[queue->holes - 1];
		uint64_t first = last->first > from ? last->first : from;

		if (last->end <= from)
			break;
		lost -= last->end - first;
		if (last->first < from) {
			last->end = from;
			break;
		}
		queue->holes--;
	}
	if (queue->holes < SL_ROW_HOLES)
		queue->hole[queue->holes++] = (struct sl_row_span){from, queue->first};
	else
		queue->hole[SL_ROW_HOLES - 1].end = queue->first;
	return lost;
}

uint64_t sl_row_queue_resume(struct sl_row_queue *queue, uint64_t has)
{
	while (queue->first < has && queue->first < queue->end)
		sl_row_queue_answered(queue, false);
	return has < queue->first ? lose(queue, has) : 0;
}
