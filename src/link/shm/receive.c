/* receive.c - the receiver's side of shared memory: plans, descriptors taken and checked, events
 * raised, credits granted. The link thread, but for accept. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "link/shm/shm.h"
#include "link/terms.h"

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

static int describe_plan(const struct sl_shm *shm, const struct sl_offer *offer, uint32_t index,
			 struct sl_plan *plan)
{
	const struct sl_ring *ring = shm->env.ring;
	struct sl_plan_terms terms;
	int err;

	sl_terms_init(&terms, &shm->env, offer->module);
	terms.transfer = (uint16_t)index;
	/* Nothing is cut into packets here. */
	terms.operation = SL_OPERATION_WRITE;
	if (terms.message != SL_MESSAGE_LINE)
		terms.message = SL_MESSAGE_MODULE;
	terms.fixed_pmtu = true;
	terms.window_bytes = ring->slots * ring->block_bytes;
	err = sl_plan_answer(offer, &terms, plan);
	if (err)
		return err;
	memcpy(plan->location, shm->location, sizeof(plan->location));
	return getrandom(&plan->rkey, sizeof(plan->rkey), 0) == sizeof(plan->rkey) ? 0 : -EIO;
}

int sl_shm_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_shm *shm = state;
	uint32_t index = free_queue(shm);
	struct sl_shm_queue *queue = &shm->queue[index];
	struct sl_plan made;
	int err;

	if (index == SL_SHM_TRANSFERS || shm->env.ring->slots > SL_SHM_ENTRIES)
		return -ENOSPC;
	err = describe_plan(shm, offer, index, &made);
	if (err)
		return err;
	sl_shm_queue_close(queue); /* of who had the queue before */
	queue->tail = 0;
	atomic_store(&queue->reported, 0);
	err = sl_shm_queue_open(queue);
	if (err)
		return err;
	*plan = queue->plan = made;
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
		/* Without credit, so the module has not come that far; but it may have written
		 * there. */
		sl_ring_turn_away(ring, e->sequence, plan->module);
		count(shm, SL_DROP_AHEAD);
		return;
	case SL_PLACE_OK:
		break;
	}
	if (sl_ring_event(ring, e->sequence, plan->module, &ns)) {
		count(shm, SL_DROP_DUPLICATE);
		return;
	}
	sl_link_count(shm->env.counters, plan->transfer, plan->packets, plan->block_bytes);
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
		sl_ring_looked(shm->env.ring, queue->plan.module, UINT64_MAX);
		return 0;
	}
	for (; queue->tail != head && (unsigned)n < budget; queue->tail++, n++) {
		/* One copy: the source could change it between check and use. */
		struct sl_shm_entry entry = queue->lane->entry[queue->tail % SL_SHM_ENTRIES];

		take(shm, &queue->plan, &entry, now_ns);
	}
	sl_ring_looked(shm->env.ring, queue->plan.module,
		       sl_look_pass(&queue->look, now_ns, (unsigned)n, queue->tail == head));
	return n;
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
		sl_shm_wake(queue->wake_source);
}

/* The source says it sent this much; what raised no event by now never will. */
static void catch_up(struct sl_shm *shm, struct sl_shm_queue *queue, uint64_t reported)
{
	if (reported >= queue->plan.block_bytes)
		sl_ring_reach(shm->env.ring,
			      queue->plan.first_sequence + reported / queue->plan.block_bytes - 1,
			      queue->plan.module);
}

int sl_shm_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_shm *shm = state;
	uint64_t now_ns = sl_clock_ns();
	int n = 0;

	shm->opened_seen = atomic_load_explicit(&shm->env.ring->opened, memory_order_acquire);
	sl_ring_enter(shm->env.ring, poller);
	for (unsigned i = 0; i < shm->queues; i++) {
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
