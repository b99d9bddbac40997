/* source.c - the source of a link that is measured: prepared memory, descriptors as a front
 * end makes them, posted as fast as credits allow. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "frontend/descriptor.h"

#define IN_FLIGHT (UINT64_C(4) << 20) /* bytes, at most: still in the cache when they are read */

enum {
	SPINS = 200,	/* without room, before it sleeps */
	WAIT_US = 50,	/* then, at most */
	GAP_NS = 10000, /* between messages whose latency is measured: queues are empty */
	YIELDS = 2000,	/* one way: looks in vain before the core is offered to others */
	SKB_BYTES = 1024,
};

struct flow { /* one queue's flow */
	struct sl_plan plan;
	struct sl_write *write;
	uint32_t count, at; /* of the block being sent */
	uint64_t next;	    /* sequence after it */
};

struct sender {
	struct sl_bench_source *s;
	const struct sl_link *link;
	const struct sl_link_sending *sending;
	void *state;
	struct flow flow[SL_BENCH_QUEUES];
	unsigned idle;
	uint64_t window; /* one way: packets in flight */
};

const uint8_t *sl_bench_block(const struct sl_bench_source *source, uint64_t sequence,
			      uint32_t queue)
{
	uint64_t blocks = source->memory_bytes / source->row->block_bytes;

	return source->memory +
	       (sequence * source->row->queues + queue) % blocks * source->row->block_bytes;
}

static void fill(struct sender *x, uint32_t queue)
{
	struct flow *flow = &x->flow[queue];
	const void *block = sl_bench_block(x->s, flow->next, queue);
	/* Two pieces at most: they are in the writes, and the source may go. */
	struct sl_from source = {
		.frame = &block,
		.frames = 1,
		.lines = 1,
		.line_bytes = (uint32_t)sl_plan_pixel_bytes(&flow->plan),
	};

	if (source.line_bytes < flow->plan.block_bytes)
		source.record = (const uint8_t *)block + source.line_bytes;
	sl_descriptor_fill(&flow->plan, flow->next++, &source, flow->write);
	flow->at = 0;
}

/* Sequences below `end` only. Writes that were taken, or -errno. */
static int push(struct sender *x, uint32_t queue, uint64_t end)
{
	struct flow *flow = &x->flow[queue];
	int n;

	if (flow->at == flow->count) {
		if (flow->next >= end)
			return 0;
		fill(x, queue);
	}
	n = x->sending->post(x->state, flow->plan.transfer, flow->write + flow->at,
			     flow->count - flow->at);
	if (n <= 0)
		return n;
	flow->at += (uint32_t)n;
	atomic_store_explicit(&x->s->shared->position[queue], flow->write[flow->at - 1].position,
			      memory_order_release);
	return n;
}

static void rest(struct sender *x)
{
	if (++x->idle > SPINS || x->s->bench->core[1] < 0) /* on one core the receiver waits */
		x->sending->wait(x->state, WAIT_US);
}

static int push_all(struct sender *x, uint64_t end)
{
	int all = 0;

	for (uint32_t q = x->s->first; q < x->s->last; q++) {
		int n = push(x, q, end);

		if (n < 0)
			return n;
		all += n;
	}
	if (all)
		x->idle = 0;
	else
		rest(x);
	return all;
}

/* What the receive buffer surely holds, where there are no credits: the kernel counts up to twice
 * the payload, and gives back what was read only when that is a quarter of the buffer. */
static uint64_t safe_packets(const struct sender *x)
{
	uint64_t n = 2 * x->s->bench->o.receive_buffer * 3 / 4 / (2 * x->s->row->pmtu + SKB_BYTES);
	uint64_t best = IN_FLIGHT / x->s->row->pmtu;

	return n < best ? n : best;
}

/* A detector without a way back does not wait. Here it does, before each packet, so that what is
 * measured is the receiver and not what it loses. */
static enum sl_packet_fault wait_for_room(void *arg, uint16_t module, uint64_t sequence,
					  uint32_t packet)
{
	const struct sender *x = arg;
	const struct flow *flow = &x->flow[module];
	uint64_t number = sequence * flow->plan.packets + packet;
	unsigned looks = 0;

	while (number >= atomic_load_explicit(&x->s->shared->seen, memory_order_acquire) +
				 x->window &&
	       !atomic_load_explicit(&x->s->shared->done, memory_order_acquire))
		if (++looks > YIELDS || x->s->bench->core[1] < 0)
			sched_yield();
	return SL_PACKET_FAULT_NONE;
}

static bool stopped(const struct sender *x)
{
	return atomic_load_explicit(&x->s->shared->stop, memory_order_acquire);
}

/* How many sequences all sources send: as many as any of them has begun. */
static uint64_t agree_on_end(struct sender *x, uint64_t end)
{
	struct sl_bench_shared *shared = x->s->shared;
	uint64_t most = atomic_load(&shared->most);

	while (most < end && !atomic_compare_exchange_weak(&shared->most, &most, end))
		continue;
	atomic_fetch_add(&shared->said, 1);
	while (atomic_load(&shared->said) < sl_bench_at_least_1(x->s->row->sources) &&
	       !atomic_load(&shared->done))
		if (push_all(x, end) < 0)
			break;
	return atomic_load(&shared->most);
}

/* Blocks that some queue has begun are sent by all of them. */
static int finish(struct sender *x)
{
	uint64_t end = 0;
	bool whole = false;

	for (uint32_t q = x->s->first; q < x->s->last; q++)
		end = x->flow[q].next > end ? x->flow[q].next : end;
	end = agree_on_end(x, end);
	while (!whole && !atomic_load(&x->s->shared->done)) {
		int n = push_all(x, end);

		if (n < 0)
			return n;
		whole = true;
		for (uint32_t q = x->s->first; q < x->s->last; q++)
			whole &= x->flow[q].next == end && x->flow[q].at == x->flow[q].count;
	}
	if (atomic_fetch_add(&x->s->shared->finished, 1) + 1 ==
	    sl_bench_at_least_1(x->s->row->sources))
		atomic_store(&x->s->shared->end, end + 1);
	return 0;
}

/* What may have to be sent again is, until all has arrived. */
static int linger(struct sender *x)
{
	while (!atomic_load(&x->s->shared->done)) {
		for (uint32_t q = x->s->first; q < x->s->last; q++) {
			int n = x->sending->post(x->state, x->flow[q].plan.transfer, NULL, 0);

			if (n < 0)
				return n;
		}
		x->sending->wait(x->state, WAIT_US);
	}
	return 0;
}

/* Outlined: what callgrind counts of the source. */
static __attribute__((noinline)) int bench_send_all(struct sender *x)
{
	while (!stopped(x)) {
		int n = push_all(x, UINT64_MAX);

		if (n < 0)
			return n;
	}
	return finish(x);
}

static void pause_until(uint64_t ns)
{
	while (sl_clock_ns() < ns)
		continue;
}

/* One message at a time; the next when the last was noticed. */
static int send_singly(struct sender *x)
{
	struct sl_bench_shared *shared = x->s->shared;
	struct flow *flow = &x->flow[0];

	while (!stopped(x)) {
		int n = 0;

		pause_until(sl_clock_ns() + GAP_NS);
		fill(x, 0);
		atomic_store_explicit(&shared->stamp_ns, sl_clock_ns(), memory_order_release);
		while (flow->at < flow->count && n >= 0 && !stopped(x)) {
			n = x->sending->post(x->state, flow->plan.transfer, flow->write + flow->at,
					     flow->count - flow->at);
			flow->at += n > 0 ? (uint32_t)n : 0;
		}
		if (n < 0)
			return n;
		while (atomic_load_explicit(&shared->seen, memory_order_acquire) < flow->next &&
		       !stopped(x))
			if (x->sending->post(x->state, flow->plan.transfer, NULL, 0) < 0)
				return -EPIPE;
	}
	return finish(x);
}

static int exchange(struct sender *x)
{
	const struct sl_bench_row *row = x->s->row;

	for (uint32_t q = x->s->first; q < x->s->last; q++) {
		struct sl_offer offer = {.module = (uint16_t)q, .block_bytes = row->block_bytes};
		struct flow *flow = &x->flow[q];
		int err = x->sending->offer(x->state, &offer);

		if (err)
			return err;
		if (!x->link->oneway)
			offer.bare = row->block_bytes <= SL_RECORD_BYTES;
		if (write(x->s->fd, &offer, sizeof(offer)) != sizeof(offer) ||
		    read(x->s->fd, &flow->plan, sizeof(flow->plan)) != sizeof(flow->plan))
			return -EPIPE;
	}
	for (uint32_t q = x->s->first; q < x->s->last; q++) {
		struct flow *flow = &x->flow[q];
		int err = x->sending->connect(x->state, &flow->plan);

		if (err)
			return err;
		flow->count = flow->at = sl_descriptor_count(&flow->plan);
		flow->write = calloc(flow->count, sizeof(*flow->write));
		if (!flow->write)
			return -ENOMEM;
	}
	return write(x->s->fd, "", 1) == 1 ? 0 : -EPIPE;
}

int sl_bench_send(struct sl_bench_source *source)
{
	struct sl_link_env env = {.service = source->row->service};
	struct sender x = {
		.s = source, .link = source->row->link, .sending = source->row->link->sending};
	int err = sl_bench_take_side(source->bench, source->row, 1);

	if (err)
		return err;
	sl_bench_take_cpu(source->bench, source->row, source->row->pollers + source->index);
	if (x.link->oneway) {
		x.window = safe_packets(&x);
		env.fault = wait_for_room;
		env.fault_arg = &x;
	}
	x.state = sl_bench_state(source->bench, source->row);
	if (!x.state)
		return -EINVAL;
	err = x.link->open(x.state, &env);
	if (!err)
		err = exchange(&x);
	if (!err)
		err = source->row->latency ? send_singly(&x) : bench_send_all(&x);
	if (!err)
		err = linger(&x);
	for (uint32_t q = source->first; q < source->last; q++)
		free(x.flow[q].write);
	x.link->close(x.state);
	free(x.state);
	return err;
}
