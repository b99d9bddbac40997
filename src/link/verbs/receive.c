/* receive.c - completions become events; open slots become credits, or posted memory. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/verbs/verbs.h"

enum { SETTLE_NS = 20 * 1000 * 1000 };

static void count(struct sl_verbs_link *link, enum sl_drop why)
{
	atomic_fetch_add_explicit(&link->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* Sequence or drop: what the immediate can mean, near to what came before. */
static int64_t extend(const struct sl_verbs_in *in, uint32_t immediate)
{
	return (int64_t)in->next + (int32_t)(immediate - (uint32_t)in->next);
}

/* A source with credits cannot be a whole ring ahead of what is open. */
static bool beyond_reason(const struct sl_verbs_link *link, const struct sl_verbs_in *in,
			  uint64_t sequence)
{
	uint64_t opened = sl_ring_opened(link->env.ring, in->plan.module);

	return in->plan.credit_va && sequence >= opened + in->plan.slots;
}

/* Open loop: the one copy, out of the source's reach. Its checksum decides (invariant PROVEN). */
static void fetch(const struct sl_verbs_link *link, const struct sl_verbs_in *in, uint64_t sequence)
{
	const struct sl_plan *plan = &in->plan;

	/* With the gaps between lines, where there are any. */
	memcpy(sl_ring_block(link->env.ring, sequence, plan->module),
	       (const uint8_t *)in->landing.base + sequence % plan->slots * plan->stride,
	       link->env.ring->record_at + SL_RECORD_BYTES);
}

/* The NIC says that the last message of a block is here. What it does not say is where the block
 * went: a source that writes elsewhere is found out by the record. */
static void take_event(struct sl_verbs_link *link, struct sl_verbs_in *in, uint64_t sequence,
		       uint64_t now_ns)
{
	struct sl_ring *ring = link->env.ring;
	const struct sl_plan *plan = &in->plan;
	uint64_t ns;

	switch (sl_ring_may_place(ring, sequence, plan->module)) {
	case SL_PLACE_LATE:
		count(link, SL_DROP_LATE);
		return;
	case SL_PLACE_AHEAD:
		sl_ring_turn_away(ring, sequence, plan->module);
		if (!plan->credit_va) /* with credits, it has no business there */
			sl_ring_reach(ring, sequence, plan->module);
		count(link, SL_DROP_AHEAD);
		return;
	case SL_PLACE_OK:
		break;
	}
	if (sl_ring_event(ring, sequence, plan->module, &ns)) {
		count(link, SL_DROP_DUPLICATE);
		return;
	}
	if (in->landing.base)
		fetch(link, in, sequence);
	sl_link_count(link->env.counters, plan->transfer, plan->packets, plan->block_bytes);
	sl_ring_progress(ring, sequence, plan->module, plan->packets);
	sl_ring_raise(ring, sequence, plan->module, now_ns);
	sl_ring_reach(ring, sequence, plan->module);
}

static void take_receive(struct sl_verbs_link *link, struct sl_verbs_in *in,
			 const struct sl_verbs_completion *c, uint64_t now_ns)
{
	int64_t sequence = extend(in, c->immediate);

	if (!c->has_immediate)
		count(link, SL_DROP_MALFORMED);
	else if (sequence < 0 || c->bytes != in->event_bytes ||
		 beyond_reason(link, in, (uint64_t)sequence))
		count(link, SL_DROP_RANGE);
	/* Sends fill the posted blocks in their order, whatever they say. */
	else if (in->plan.operation == SL_OPERATION_SEND && (uint64_t)sequence != in->used - 1)
		count(link, SL_DROP_RANGE);
	else {
		take_event(link, in, (uint64_t)sequence, now_ns);
		if ((uint64_t)sequence + 1 > in->next)
			in->next = (uint64_t)sequence + 1;
	}
}

/* A receive that was used up by an event is posted again at once; one with memory when its slot is
 * open (post_blocks). */
static void take(struct sl_verbs_link *link, const struct sl_verbs_completion *c, uint64_t now_ns)
{
	uint32_t index = sl_verbs_id_index(c->id);
	struct sl_verbs_in *in = &link->in[index];

	if (index >= SL_VERBS_TRANSFERS ||
	    !atomic_load_explicit(&in->active, memory_order_acquire) ||
	    (uint32_t)c->id != in->generation)
		return;
	if (sl_verbs_id_work(c->id) == SL_VERBS_WORK_GRANT) {
		in->grants--;
		in->failed |= c->status != 0;
		return;
	}
	in->used++;
	if (c->status) {
		/* What was posted comes back when a connection ends: that is not a loss. */
		if (!in->failed && c->status != -ECANCELED)
			count(link, c->status == -EMSGSIZE ? SL_DROP_RANGE : SL_DROP_BROKEN);
		in->failed = true;
		return;
	}
	take_receive(link, in, c, now_ns);
	if (in->plan.operation == SL_OPERATION_WRITE)
		sl_verbs_post_receive(in->queue, c->id, 0, 0, 0);
}

static int take_completions(struct sl_verbs_link *link, struct sl_verbs_nic *nic, unsigned budget,
			    uint64_t now_ns, bool *emptied)
{
	struct sl_verbs_completion completion[SL_VERBS_BATCH];
	int taken = 0, n;

	while (budget) {
		unsigned room = budget < SL_VERBS_BATCH ? budget : SL_VERBS_BATCH;

		n = sl_verbs_poll(nic, completion, room);
		for (int i = 0; i < n; i++) {
			taken += sl_verbs_id_work(completion[i].id) == SL_VERBS_WORK_RECEIVE;
			take(link, &completion[i], now_ns);
		}
		if (n < (int)room)
			return taken;
		budget -= (unsigned)n;
	}
	*emptied = false;
	return taken;
}

/* As in link/udp/return.c: the source's word on what it sent may overtake it, so it has to grow
 * old. */
static void catch_up(struct sl_verbs_link *link, struct sl_verbs_in *in, uint64_t now_ns)
{
	if (in->heard <= in->next) {
		in->heard = in->plan.first_sequence +
			    atomic_load_explicit(&in->reported, memory_order_acquire) /
				    in->plan.block_bytes;
		in->heard_ns = now_ns;
	} else if (now_ns - in->heard_ns >= SETTLE_NS) {
		in->next = in->heard;
		sl_ring_reach(link->env.ring, in->next - 1, in->plan.module);
	}
}

static void grant(struct sl_verbs_link *link, struct sl_verbs_in *in, uint32_t index, bool idle,
		  uint64_t now_ns)
{
	/* On a reliable connection no grant is lost, so none is repeated. */
	uint64_t now = in->plan.service == SL_SERVICE_RC ? in->credit.sent_ns : now_ns;
	uint64_t position;
	struct sl_verbs_send send = {
		.id = sl_verbs_id(SL_VERBS_WORK_GRANT, index, in->generation),
		.local = (uintptr_t)&position,
		.remote = in->plan.credit_va,
		.rkey = in->plan.credit_rkey,
		.bytes = sizeof(position),
		.flags = SL_VERBS_SIGNAL | SL_VERBS_INLINE,
	};

	if (!in->plan.credit_va || in->failed || in->grants == SL_VERBS_GRANTS)
		return;
	/* There is no receive buffer to guard: only the slots count. */
	if (sl_credit_due(&in->credit, &in->plan, link->env.ring, UINT64_MAX, idle, now,
			  &position) &&
	    sl_verbs_post_send(in->queue, &send) == 0)
		in->grants++;
}

/* Send: the blocks of open slots, in the order of sequences. */
static void post_blocks(struct sl_verbs_link *link, struct sl_verbs_in *in, uint32_t index)
{
	const struct sl_ring *ring = link->env.ring;
	const struct sl_verbs_memory *memory = &link->ring[in->nic];
	uint64_t id = sl_verbs_id(SL_VERBS_WORK_RECEIVE, index, in->generation);

	while (!in->failed && in->posted < sl_ring_opened(ring, in->plan.module) &&
	       in->posted - in->used < in->plan.slots) {
		uint64_t at = memory->at + sl_ring_block_at(ring, in->posted, in->plan.module);

		if (sl_verbs_post_receive(in->queue, id, at, (uint32_t)in->plan.block_bytes,
					  memory->lkey))
			return;
		in->posted++;
	}
}

static void give_room(struct sl_verbs_link *link, bool idle, uint64_t now_ns)
{
	link->opened_seen = atomic_load_explicit(&link->env.ring->opened, memory_order_acquire);
	for (uint32_t i = 0; i < SL_VERBS_TRANSFERS; i++) {
		struct sl_verbs_in *in = &link->in[i];

		if (!atomic_load_explicit(&in->active, memory_order_acquire))
			continue;
		if (idle)
			catch_up(link, in, now_ns);
		if (in->plan.operation == SL_OPERATION_SEND)
			post_blocks(link, in, i);
		grant(link, in, i, idle, now_ns);
	}
}

/* Everything that completed by then has been taken. */
static void note_look(struct sl_verbs_link *link, uint64_t looked_ns)
{
	for (uint32_t i = 0; looked_ns && i < SL_VERBS_TRANSFERS; i++)
		if (atomic_load_explicit(&link->in[i].active, memory_order_acquire))
			sl_ring_looked(link->env.ring, link->in[i].plan.module, looked_ns);
}

int sl_verbs_link_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_verbs_link *link = state;
	uint64_t now_ns = sl_clock_ns();
	bool emptied = true;
	int n = 0;

	sl_ring_enter(link->env.ring, poller);
	for (unsigned d = 0; d < link->nics; d++)
		n += take_completions(link, link->nic[d], budget, now_ns, &emptied);
	note_look(link, sl_look_pass(&link->look, now_ns, (unsigned)n, emptied));
	sl_ring_leave(link->env.ring, poller);
	give_room(link, n == 0, now_ns);
	return n;
}

int sl_verbs_wait_receive(struct sl_verbs_link *link, uint32_t timeout_us)
{
	struct pollfd fds[SL_VERBS_DEVICES + 1];
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	uint64_t drained;
	nfds_t n = 0;

	if (link->poll == SL_VERBS_SPIN)
		return 1;
	for (unsigned d = 0; d < link->nics; d++) {
		fds[n++] = (struct pollfd){.fd = sl_verbs_fd(link->nic[d]), .events = POLLIN};
		sl_verbs_arm(link->nic[d]);
	}
	fds[n++] = (struct pollfd){.fd = link->env.wake[0].fd, .events = POLLIN};
	/* What came before it was armed wakes nobody. */
	if (sl_verbs_link_poll(link, 0, SL_VERBS_BATCH) > 0)
		return 1;
	/* Asleep, then look at the slots once more: who opens slots does it the other way round,
	 * so one sees the other (invariant WOKEN). */
	atomic_store(&link->env.wake[0].asleep, 1);
	if (atomic_load(&link->env.ring->opened) == link->opened_seen)
		ppoll(fds, n, &timeout, NULL);
	atomic_store(&link->env.wake[0].asleep, 0);
	for (unsigned d = 0; d < link->nics; d++)
		if (fds[d].revents)
			sl_verbs_drain(link->nic[d]);
	if (fds[n - 1].revents && read(link->env.wake[0].fd, &drained, sizeof(drained)) < 0)
		return 0; /* another reader was faster */
	return 1;
}
