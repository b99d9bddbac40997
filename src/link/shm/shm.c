/* shm.c - shared memory: the source copies straight into the ring, the receiver checks and
 * raises the event. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "link/lines.h"
#include "link/shm/shm.h"

static const struct sl_option options[] = {
	SL_STRING(struct sl_shm, name, "",
		  "name of the abstract Unix socket; empty: a random one, told to the front end in "
		  "the plan"),
	SL_OPTION_END,
};

static int shm_open_link(void *state, const struct sl_link_env *env)
{
	struct sl_shm *shm = state;

	shm->env = *env;
	shm->listener = -1;
	shm->ring.fd = -1;
	shm->queue = calloc(SL_SHM_TRANSFERS, sizeof(*shm->queue));
	if (!shm->queue)
		return -ENOMEM;
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		shm->queue[i].connection = shm->queue[i].wake_receiver = shm->queue[i].wake_source =
			-1;
	return env->ring ? sl_shm_listen(shm) : 0;
}

static void shm_close(void *state)
{
	struct sl_shm *shm = state;

	if (!shm->queue)
		return;
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		sl_shm_queue_close(&shm->queue[i]);
	if (shm->ring.base)
		sl_region_close(&shm->ring);
	if (shm->listener >= 0)
		close(shm->listener);
	free(shm->queue);
	shm->queue = NULL;
}

/* One that was dropped, or a new one. Front ends come and go only before the start, when no poller
 * runs. */
static uint32_t free_queue(const struct sl_shm *shm)
{
	uint32_t index = 0;

	while (index < shm->queues &&
	       atomic_load_explicit(&shm->queue[index].active, memory_order_relaxed))
		index++;
	return index;
}

static int shm_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_shm *shm = state;
	const struct sl_ring *ring = shm->env.ring;
	uint32_t index = free_queue(shm);
	struct sl_shm_queue *queue = &shm->queue[index];
	/* Nothing is cut into packets here. */
	uint16_t message = shm->env.message == SL_MESSAGE_LINE ? SL_MESSAGE_LINE
							       : SL_MESSAGE_MODULE;
	uint32_t key;
	int err;

	if (index == SL_SHM_TRANSFERS || ring->slots > SL_SHM_ENTRIES)
		return -ENOSPC;
	if (offer->module >= ring->modules || offer->block_bytes != ring->block_bytes ||
	    !(offer->messages & message) || !(offer->operations & SL_OPERATION_WRITE) ||
	    !sl_lines_fit(&shm->env, offer))
		return -EINVAL;
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	sl_shm_queue_close(queue); /* of who had the queue before */
	queue->tail = 0;
	atomic_store(&queue->reported, 0);
	err = sl_shm_queue_open(queue);
	if (err)
		return err;
	queue->plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = (uint16_t)index,
		.module = offer->module,
		.service = shm->env.service,
		.operation = SL_OPERATION_WRITE,
		.message = message,
		.pmtu = shm->env.pmtu,
		.crc = shm->env.crc,
		.rkey = key,
		.slots = ring->slots,
		.stride = ring->slot_stride,
		.block_at = sl_ring_block_at(ring, 0, offer->module),
		.block_bytes = ring->block_bytes,
		.first_sequence = offer->first_sequence,
		.window_bytes = ring->slots * ring->block_bytes,
		.source = offer->source,
	};
	sl_lines_plan(ring, offer, &queue->plan);
	memcpy(queue->plan.location, shm->location, sizeof(queue->plan.location));
	*plan = queue->plan;
	if (index == shm->queues)
		shm->queues++;
	/* Release: pairs with the acquire in poll, which may already be running. */
	atomic_store_explicit(&queue->active, 1, memory_order_release);
	return 0;
}

static void count(struct sl_shm *shm, enum sl_drop why)
{
	atomic_fetch_add_explicit(&shm->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* A descriptor is outside input: check it as a packet would be. */
static void take(struct sl_shm *shm, const struct sl_plan *plan, const struct sl_shm_entry *e,
		 uint64_t now_ns)
{
	struct sl_ring *ring = shm->env.ring;
	uint64_t event_bytes = sl_plan_event_bytes(plan), ns;

	if (e->rkey != plan->rkey) {
		count(shm, SL_DROP_KEY);
		return;
	}
	if (e->sequence > UINT64_MAX >> 8 || e->bytes != event_bytes ||
	    e->va != sl_plan_address(plan, e->sequence, plan->block_bytes - event_bytes)) {
		count(shm, SL_DROP_RANGE);
		return;
	}
	switch (sl_ring_may_place(ring, e->sequence, plan->module)) {
	case SL_PLACE_LATE:
		count(shm, SL_DROP_LATE);
		return;
	case SL_PLACE_AHEAD:
		sl_ring_turn_away(ring, e->sequence, plan->module);
		sl_ring_reach(ring, e->sequence, plan->module);
		count(shm, SL_DROP_AHEAD);
		return;
	case SL_PLACE_OK:
		break;
	}
	if (sl_ring_event(ring, e->sequence, plan->module, &ns)) {
		count(shm, SL_DROP_DUPLICATE);
		return;
	}
	atomic_fetch_add_explicit(&shm->env.counters->packets, plan->packets, memory_order_relaxed);
	atomic_fetch_add_explicit(&shm->env.counters->bytes, plan->block_bytes,
				  memory_order_relaxed);
	sl_ring_progress(ring, e->sequence, plan->module, plan->packets);
	sl_ring_raise(ring, e->sequence, plan->module, now_ns);
	sl_ring_reach(ring, e->sequence, plan->module);
}

static int drain(struct sl_shm *shm, struct sl_shm_queue *queue, unsigned budget, uint64_t now_ns)
{
	/* Acquire: pairs with the source's release of head; its pixels are visible after it. */
	uint64_t head = atomic_load_explicit(&queue->lane->head, memory_order_acquire);
	int n = 0;

	if (head - queue->tail > SL_SHM_ENTRIES) { /* no honest source does that */
		count(shm, SL_DROP_MALFORMED);
		atomic_store_explicit(&queue->active, 0, memory_order_release);
		return 0;
	}
	for (; queue->tail != head && (unsigned)n < budget; queue->tail++, n++) {
		/* One copy: the source could change it between check and use. */
		struct sl_shm_entry entry = queue->lane->entry[queue->tail % SL_SHM_ENTRIES];

		take(shm, &queue->plan, &entry, now_ns);
	}
	return n;
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake anyway */
}

static void grant(struct sl_shm *shm, struct sl_shm_queue *queue)
{
	uint64_t opened = sl_ring_opened(shm->env.ring, queue->plan.module);
	uint64_t position = sl_plan_position(&queue->plan, opened, 0);

	if (position == atomic_load_explicit(&queue->lane->granted, memory_order_relaxed))
		return;
	/* seq_cst with the source's asleep flag: it sleeps only after looking at this once more
	 * (invariant WOKEN). Slots that are open, and no more (invariant GRANTED). */
	atomic_store(&queue->lane->granted, position);
	if (atomic_load(&queue->lane->source_asleep))
		wake(queue->wake_source);
}

/* The source says it sent this much; what raised no event by now never will. */
static void catch_up(struct sl_shm *shm, struct sl_shm_queue *queue, uint64_t reported)
{
	if (reported >= queue->plan.block_bytes)
		sl_ring_reach(shm->env.ring,
			      queue->plan.first_sequence + reported / queue->plan.block_bytes - 1,
			      queue->plan.module);
}

static int shm_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_shm *shm = state;
	uint64_t now_ns = sl_clock_ns();
	int n = 0;

	shm->opened_seen = atomic_load_explicit(&shm->env.ring->opened, memory_order_acquire);
	sl_ring_enter(shm->env.ring, poller);
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];
		uint64_t reported;
		int taken;

		if (!atomic_load_explicit(&queue->active, memory_order_acquire))
			continue;
		/* The word first, then the queue: what was announced before the word is found
		 * (invariant NAMED). */
		reported = atomic_load_explicit(&queue->reported, memory_order_acquire);
		taken = drain(shm, queue, budget, now_ns);
		if (!taken)
			catch_up(shm, queue, reported);
		grant(shm, queue);
		n += taken;
	}
	sl_ring_leave(shm->env.ring, poller);
	return n;
}

static bool nothing_new(struct sl_shm *shm)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (atomic_load_explicit(&queue->active, memory_order_acquire) &&
		    atomic_load(&queue->lane->head) != queue->tail)
			return false;
	}
	return atomic_load(&shm->env.ring->opened) == shm->opened_seen;
}

static void set_asleep(struct sl_shm *shm, uint32_t asleep)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (!atomic_load_explicit(&queue->active, memory_order_acquire))
			continue;
		if (shm->env.ring)
			atomic_store(&queue->lane->receiver_asleep, asleep);
		else
			atomic_store(&queue->lane->source_asleep, asleep);
	}
	if (shm->env.ring)
		atomic_store(&shm->env.wake[0].asleep, asleep);
}

static bool no_credit(struct sl_shm *shm)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (atomic_load_explicit(&queue->active, memory_order_acquire) &&
		    atomic_load(&queue->lane->granted) > queue->sent)
			return false;
	}
	return true;
}

static int shm_wait(void *state, unsigned poller, uint32_t timeout_us)
{
	struct sl_shm *shm = state;
	struct pollfd fds[SL_SHM_TRANSFERS + 1];
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	nfds_t n = 0;

	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		if (atomic_load_explicit(&shm->queue[i].active, memory_order_acquire))
			fds[n++] = (struct pollfd){.fd = shm->env.ring ? shm->queue[i].wake_receiver
								       : shm->queue[i].wake_source,
						   .events = POLLIN};
	if (shm->env.ring)
		fds[n++] = (struct pollfd){.fd = shm->env.wake[0].fd, .events = POLLIN};
	/* Asleep, then look once more; the other side publishes, then looks at asleep (invariant
	 * WOKEN). */
	set_asleep(shm, 1);
	if (shm->env.ring ? nothing_new(shm) : no_credit(shm))
		ppoll(fds, n, &timeout, NULL);
	set_asleep(shm, 0);
	for (nfds_t i = 0; i < n; i++) {
		uint64_t drained;

		if (fds[i].revents && read(fds[i].fd, &drained, sizeof(drained)) < 0)
			continue; /* another reader was faster */
	}
	return 1;
}

static void shm_reported(void *state, uint16_t transfer, uint64_t position)
{
	struct sl_shm *shm = state;

	if (transfer < SL_SHM_TRANSFERS)
		atomic_store_explicit(&shm->queue[transfer].reported, position,
				      memory_order_release);
}

static void shm_drop(void *state, uint16_t transfer)
{
	struct sl_shm *shm = state;

	if (transfer < SL_SHM_TRANSFERS)
		atomic_store_explicit(&shm->queue[transfer].active, 0, memory_order_release);
}

static int shm_offer(void *state, struct sl_offer *offer)
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
	struct sl_source_cursor cursor;

	if (!write->source) {
		for (unsigned i = 0; i < 2; dest += write->part[i++].bytes)
			if (write->part[i].bytes)
				sl_copy_away(dest, write->part[i].data, write->part[i].bytes);
		return;
	}
	sl_source_seek(write->source, write->at, &cursor);
	for (uint32_t left = write->bytes; left;) {
		struct sl_part part = sl_source_next(&cursor, left);

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

	if (!shm->env.fate) {
		copy_all(write, dest);
		return true;
	}
	for (uint32_t packet = first; at < write->bytes; packet++) {
		uint32_t left = write->bytes - at, n = left < plan->pmtu ? left : plan->pmtu;
		enum sl_fate fate =
			shm->env.fate(shm->env.fate_arg, plan->module, write->sequence, packet);

		if (fate == SL_FATE_DROP || fate == SL_FATE_CORRUPT)
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
		wake(queue->wake_receiver);
}

static bool hung_up(const struct sl_shm_queue *queue)
{
	struct pollfd fd = {.fd = queue->connection, .events = POLLRDHUP};

	return poll(&fd, 1, 0) > 0;
}

static int shm_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
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

static uint64_t shm_reap(void *state, uint16_t transfer)
{
	struct sl_shm *shm = state;

	return shm->queue[transfer].sent;
}

static enum sl_proof shm_proof(uint16_t service, uint16_t message)
{
	(void)service;
	(void)message;
	return SL_PROOF_MESSAGE;
}

const struct sl_link sl_link_shm = {
	.name = "shm",
	.doc = "shared memory: source and receiver on one host, one copy by the source",
	.wire = "shm",
	.state_bytes = sizeof(struct sl_shm),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE,
	.messages = SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_MODULE,
	.proof = shm_proof,
	.guards = SL_GUARD_CREDITED,
	.places = SL_REGION_SHARED,
	.fates = 1u << SL_FATE_DROP | 1u << SL_FATE_CORRUPT, /* either way there is no event */
	.open = shm_open_link,
	.close = shm_close,
	.accept = shm_accept,
	.poll = shm_poll,
	.wait = shm_wait,
	.serve = sl_shm_serve,
	.reported = shm_reported,
	.drop = shm_drop,
	.unkept = "its queue lives in the source's connection to this process",
	.offer = shm_offer,
	.connect = sl_shm_connect,
	.post = shm_post,
	.reap = shm_reap,
};
