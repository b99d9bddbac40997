/* queue.h - pointers from one thread to another, in order.
 *
 * Model:     a fixed ring with free-running indices; their difference tells full from empty.
 * Threads:   one pusher, one popper.
 * Cost:      wait-free; no allocation or system call after init. */
#ifndef SL_BASE_QUEUE_H
#define SL_BASE_QUEUE_H

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct sl_queue {
	void **item;
	uint32_t capacity;		   /* a power of two */
	alignas(64) _Atomic uint32_t head; /* pusher's */
	alignas(64) _Atomic uint32_t tail; /* popper's */
};

/* Room for at least `items`. */
static inline int sl_queue_init(struct sl_queue *queue, uint32_t items)
{
	uint32_t capacity = 1;

	while (capacity < items)
		capacity *= 2;
	queue->item = calloc(capacity, sizeof(*queue->item));
	queue->capacity = capacity;
	atomic_init(&queue->head, 0);
	atomic_init(&queue->tail, 0);
	return queue->item ? 0 : -ENOMEM;
}

static inline void sl_queue_fini(struct sl_queue *queue)
{
	free(queue->item);
	queue->item = NULL;
}

/* While neither thread uses it. */
static inline void sl_queue_clear(struct sl_queue *queue)
{
	atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
	atomic_store_explicit(&queue->tail, 0, memory_order_relaxed);
}

static inline bool sl_queue_push(struct sl_queue *queue, void *item)
{
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

	/* Acquire: pairs with pop's release; the place has been read. */
	if (head - atomic_load_explicit(&queue->tail, memory_order_acquire) == queue->capacity)
		return false;
	queue->item[head & (queue->capacity - 1)] = item;
	atomic_store_explicit(&queue->head, head + 1, memory_order_release);
	return true;
}

/* Whether everything that was pushed has been taken; for the pusher. */
static inline bool sl_queue_empty(struct sl_queue *queue)
{
	return atomic_load_explicit(&queue->head, memory_order_relaxed) ==
	       atomic_load_explicit(&queue->tail, memory_order_acquire);
}

/* NULL when empty. */
static inline void *sl_queue_pop(struct sl_queue *queue)
{
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
	void *item;

	/* Acquire: pairs with push's release; the item and what it points to are visible. */
	if (tail == atomic_load_explicit(&queue->head, memory_order_acquire))
		return NULL;
	item = queue->item[tail & (queue->capacity - 1)];
	atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
	return item;
}

#endif
