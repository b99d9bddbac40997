/* row_queue.h - rows that Redis has not acknowledged yet, as commands, in order.
 *
 * Model:     rows have numbers from 0. A row is pushed, sent, and forgotten when Redis acknowledged
 *            it. After a connection was lost, all that are not acknowledged are sent again. A full
 *            queue takes no more: the row then has no number.
 *            Numbers that Redis does not have although they were answered are holes: Redis refused
 *            the row, the sink gave it up, or Redis has lost it.
 * Threads:   one at a time.
 * Ownership: rows are copied. */
#ifndef SL_SINK_REDIS_ROW_QUEUE_H
#define SL_SINK_REDIS_ROW_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_waiting_row {
	char *bytes;
	size_t length;
};

struct sl_row_span {
	uint64_t first, end;
};

enum { SL_ROW_BYTES = 256 << 20 }; /* most of all rows that wait together */
enum { SL_ROW_HOLES = 256 }; /* spans that are kept apart; beyond these, counts are estimates */

struct sl_row_queue {
	struct sl_waiting_row *row; /* [capacity] */
	uint32_t capacity;
	uint64_t bytes;	 /* of all rows that wait */
	uint64_t first;	 /* not acknowledged, the oldest */
	uint64_t sent;	 /* the next to send */
	uint64_t end;	 /* the number of the next row */
	uint64_t tried;	 /* rows before this one were sent at least once */
	uint64_t resent; /* rows before this one were sent on an earlier connection */
	struct sl_row_span hole[SL_ROW_HOLES];
	uint32_t holes;
};

int sl_row_queue_open(struct sl_row_queue *queue, uint32_t capacity);
void sl_row_queue_close(struct sl_row_queue *queue);

static inline bool sl_row_queue_full(const struct sl_row_queue *queue)
{
	return queue->end - queue->first >= queue->capacity;
}

/* Number queue->end. -ENOBUFS: it is full; -ENOMEM. */
int sl_row_queue_push(struct sl_row_queue *queue, const char *bytes, size_t length);

/* The next to send, which then counts as sent; NULL: there is none. */
const struct sl_waiting_row *sl_row_queue_next(struct sl_row_queue *queue);

/* The oldest is answered; hole: and Redis does not have it. */
void sl_row_queue_answered(struct sl_row_queue *queue, bool hole);

/* The connection is lost. */
void sl_row_queue_rewind(struct sl_row_queue *queue);

/* Redis has the rows before `has`, but for holes, and no others. Those of them that wait are
 * answered by this. Returns how many of those that were answered before it has lost. */
uint64_t sl_row_queue_resume(struct sl_row_queue *queue, uint64_t has);

#endif
