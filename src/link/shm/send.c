/* send.c - the source's side of shared memory: blocks are copied straight into the ring, and
 * announced. */
#include <errno.h>
#include <poll.h>

#include "base/copy.h"
#include "link/shm/shm.h"

int sl_shm_offer(void *state, struct sl_offer *offer)
{
	offer->services = SL_SERVICE_UC | SL_SERVICE_RC; /* memory is both */
	offer->operations = SL_OPERATION_WRITE;
	offer->messages = SL_MESSAGE_MODULE | SL_MESSAGE_LINE;
	offer->max_pmtu = 4096;
	offer->ip_id = SL_IP_ID_ZERO;
	return 0;
}

/* As few and large copies as the source allows. */
static void copy_all(const struct sl_write *write, uint8_t *dest)
{
	struct sl_from_cursor cursor;

	if (!write->from) {
		for (unsigned i = 0; i < 2; dest += write->part[i++].bytes)
			if (write->part[i].bytes)
				sl_copy_away(dest, write->part[i].data, write->part[i].bytes);
		return;
	}
	sl_from_seek(write->from, write->at, &cursor);
	for (uint32_t left = write->bytes; left;) {
		struct sl_part part = sl_from_next(&cursor, left);

		if (!part.bytes)
			return;
		sl_copy_away(dest, part.data, part.bytes);
		dest += part.bytes;
		left -= part.bytes;
	}
}

/* Copy chunk by chunk, as packets would go, so that injected faults mean the same as on a wire.
 * False when one was lost: as with any UC message there is then no event. */
static bool copy(struct sl_shm *shm, struct sl_shm_queue *queue, const struct sl_write *write,
		 uint8_t *dest)
{
	const struct sl_plan *plan = &queue->plan;
	uint64_t start = write->position - write->bytes -
			 sl_plan_position(plan, write->sequence, 0);
	uint32_t first = sl_plan_packet_of(plan, start), at = 0;
	bool whole = true;

	if (!shm->env.fault) {
		copy_all(write, dest);
		return true;
	}
	for (uint32_t packet = first; at < write->bytes; packet++) {
		uint32_t left = write->bytes - at, n = left < plan->pmtu ? left : plan->pmtu;
		enum sl_packet_fault fault =
			shm->env.fault(shm->env.fault_arg, plan->module, write->sequence, packet);

		if (fault == SL_PACKET_FAULT_DROP || fault == SL_PACKET_FAULT_CORRUPT)
			whole = false;
		else
			sl_write_copy(write, at, n, dest + at);
		at += n;
	}
	return whole;
}

/* Whether the block that this write ends is whole: no write of it was damaged. */
static bool block_whole(struct sl_shm_queue *queue, const struct sl_write *write, bool whole)
{
	if (!whole)
		queue->broken_plus_1 = write->sequence + 1;
	return queue->broken_plus_1 != write->sequence + 1;
}

static void announce(struct sl_shm_queue *queue, const struct sl_write *write)
{
	uint64_t head = atomic_load_explicit(&queue->lane->head, memory_order_relaxed);

	queue->lane->entry[head % SL_SHM_ENTRIES] =
		(struct sl_shm_entry){.sequence = write->sequence,
				      .va = write->va,
				      .rkey = write->rkey,
				      .bytes = write->bytes};
	/* Release for the pixels and the entry; seq_cst with receiver_asleep. */
	atomic_store(&queue->lane->head, head + 1);
	if (atomic_load(&queue->lane->receiver_asleep))
		sl_shm_wake(queue->wake_receiver);
}

static bool hung_up(const struct sl_shm_queue *queue)
{
	struct pollfd fd = {.fd = queue->connection, .events = POLLRDHUP};

	return poll(&fd, 1, 0) > 0;
}

int sl_shm_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
{
	struct sl_shm *shm = state;
	struct sl_shm_queue *queue;
	size_t done = 0;

	if (transfer >= SL_SHM_TRANSFERS || !shm->queue[transfer].lane)
		return -EINVAL;
	queue = &shm->queue[transfer];
	for (; done < n; done++) {
		const struct sl_write *w = &write[done];
		/* Acquire: pairs with grant(); the receiver's readers are done with the slot. */
		uint64_t granted =
			atomic_load_explicit(&queue->lane->granted, memory_order_acquire);
		bool whole = true;

		if (w->position > granted) {
			if (!done && hung_up(queue))
				return -EPIPE;
			break;
		}
		/* A write that its key or the ring does not cover is not made. The last of a block
		 * is announced all the same, so that the receiver counts it; without any of the
		 * others there is no block to announce. */
		if (w->rkey == queue->plan.rkey && w->va >= queue->plan.base &&
		    w->va - queue->plan.base <= shm->ring.bytes &&
		    w->bytes <= shm->ring.bytes - (w->va - queue->plan.base))
			whole = copy(shm, queue, w,
				     (uint8_t *)shm->ring.base + (w->va - queue->plan.base));
		else if (!(w->flags & SL_WRITE_IMM))
			whole = false;
		queue->sent = w->position;
		whole = block_whole(queue, w, whole);
		if (whole && (w->flags & SL_WRITE_IMM))
			announce(queue, w);
	}
	return (int)done;
}

uint64_t sl_shm_reap(void *state, uint16_t transfer)
{
	struct sl_shm *shm = state;

	return shm->queue[transfer].sent;
}
