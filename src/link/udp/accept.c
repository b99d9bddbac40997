/* accept.c - an offer becomes a queue of the receiver, and a plan that says how to reach it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secret.h"
#include "link/terms.h"
#include "link/udp/udp.h"

enum {
	HEADERS = 40 + 8 + 32 + 4, /* IPv6, UDP, BTH with RETH and immediate, ICRC */
	SKB_EXTRA = 400,	   /* head room and shared info */
	SKB_HEAD = 256,
	WINDOW_MAX = 2 << 20,
	WINDOW_PACKETS_MIN = 2, /* per module: one would wait for its own credit */
};

/* What a packet costs of the receive buffer: the kernel counts the memory it takes, not its length.
 * Measured on loopback, Linux 6.18: the packet and some 400 bytes, rounded up to a power of two,
 * and 256 more; 8448 for a payload of 4096. */
static uint64_t buffer_cost(uint64_t payload)
{
	uint64_t need = payload + HEADERS + SKB_EXTRA, cost = 512;

	while (cost < need)
		cost *= 2;
	return cost + SKB_HEAD;
}

/* What so many bytes cost that travel in packets of their own. */
static uint64_t packets_cost(const struct sl_plan *plan, uint64_t bytes)
{
	uint64_t full = bytes / plan->pmtu, tail = bytes % plan->pmtu;

	return full * buffer_cost(plan->pmtu) + (tail ? buffer_cost(tail) : 0);
}

/* So much of a buffer in bytes of blocks, by what the packets of a block cost at most: packets that
 * the kernel keeps together cost less. */
static uint64_t safe_window(double buffer_bytes, const struct sl_plan *plan)
{
	uint64_t cost =
		sl_plan_cuts(plan)
			? plan->lines * packets_cost(plan, plan->line_bytes) +
				  packets_cost(plan, plan->block_bytes - sl_plan_pixel_bytes(plan))
			: packets_cost(plan, plan->block_bytes);

	return (uint64_t)(buffer_bytes / (double)cost * (double)plan->block_bytes);
}

/* Of one module. To a socket of its own come its own packets and nothing else, so nearly all of the
 * buffer may be in use; the shared one is for all other modules, and for strangers. In any case no
 * more than stays in cache between the kernel's copy and ours. */
static uint64_t window_of(const struct sl_udp *udp, const struct sl_plan *plan, bool own_socket)
{
	uint32_t modules = udp->env.ring->modules;
	double share = own_socket ? 0.9 : 0.5 / modules;
	uint64_t window = udp->backend ? udp->backend->window(udp, plan) / modules
				       : safe_window(share * (double)udp->buffer_bytes, plan);

	if (udp->window)
		return udp->window / modules;
	return window < WINDOW_MAX / modules ? window : WINDOW_MAX / modules;
}

static void set_window(const struct sl_udp *udp, struct sl_plan *plan, bool own_socket)
{
	bool nic = plan->source.port == 0;
	uint64_t least = WINDOW_PACKETS_MIN * (uint64_t)plan->pmtu;

	/* An RDMA NIC sends a message whole once it is posted: it could wait for ever for less. */
	if (nic && sl_plan_message_bytes(plan) > least)
		least = sl_plan_message_bytes(plan);

	plan->window_bytes = window_of(udp, plan, own_socket);
	if (plan->window_bytes >= least || plan->window_bytes >= plan->block_bytes)
		return;
	plan->window_bytes = least;
	if (plan->module == 0 && !udp->window && !udp->backend)
		sl_warn("a receive buffer of %llu bytes is small for %u modules; if packets get "
			"lost: sudo sysctl -w net.core.rmem_max=%d",
			(unsigned long long)udp->buffer_bytes, udp->env.ring->modules, 64 << 20);
}

/* -EINVAL: the offer does not fit. */
static int describe_plan(const struct sl_udp *udp, const struct sl_offer *offer, uint32_t index,
			 struct sl_plan *plan)
{
	struct sl_plan_terms terms;
	int err;

	sl_terms_init(&terms, &udp->env, offer->module);
	terms.transfer = (uint16_t)index;
	terms.bare = true;
	terms.qpn = udp->qpn_base + index;
	terms.rkey = sl_secret_u32();
	terms.psn = sl_secret_u32();
	terms.credit_psn = sl_secret_u32();
	/* Addresses on the wire are offsets from a random base: a peer learns nothing of our
	 * layout. */
	terms.base = (uint64_t)(sl_secret_u32() & 0x7fff) << 32;
	memcpy(terms.dest.ip, udp->local, sizeof(terms.dest.ip));
	terms.dest.port = (uint16_t)udp->port;
	err = sl_plan_answer(offer, &terms, plan);
	if (!err)
		set_window(udp, plan, offer->source.port && !udp->backend);
	return err;
}

/* One that was dropped, or a new one. Front ends come and go only before the start: a poller that
 * runs already looks at no queue that is not active. */
static uint32_t free_queue(const struct sl_udp *udp)
{
	uint32_t index = 0;

	while (index < udp->queues &&
	       atomic_load_explicit(&udp->queue[index].active, memory_order_relaxed))
		index++;
	return index;
}

static void describe_responder(const struct sl_udp *udp, const struct sl_plan *plan,
			       uint8_t transport, struct sl_roce_responder *responder)
{
	*responder = (struct sl_roce_responder){
		.transport = transport,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = plan->qpn,
		.pmtu = plan->pmtu,
		.access = plan->operation == SL_OPERATION_WRITE ? SL_ROCE_REMOTE_WRITE : 0,
		.expected_psn = plan->first_psn,
		/* Every slot has its cell: an event always finds its place. What comes before its
		 * slot is open is turned away by the placer. */
		.receives = SL_ROCE_RECEIVES_UNLIMITED,
		.receive_bytes = plan->operation == SL_OPERATION_SEND ? (uint32_t)plan->block_bytes
								      : 0,
	};
	memcpy(responder->peer, plan->source.ip, sizeof(responder->peer));
	memcpy(responder->local, udp->local, sizeof(responder->local));
}

/* Ready to receive data and to send credits. */
static int open_rc(const struct sl_udp *udp, struct sl_udp_queue *queue)
{
	struct sl_roce_rc_queue *rc = &queue->rc;

	memset(rc, 0, sizeof(*rc));
	describe_responder(udp, &queue->plan, SL_ROCE_RC, &rc->responder.queue);
	rc->responder.peer_qpn = queue->plan.credit_qpn;
	rc->responder.rnr_timer = (uint8_t)udp->min_rnr_timer;
	rc->requester.psn = queue->plan.credit_psn;
	rc->requester.window = SL_UDP_GRANTS;
	rc->requester.ack_every = 1;
	rc->requester.timeout_ns = sl_roce_timeout_ns(udp->timeout);
	/* A credit may come late as often as it likes: whether the front end still lives is for
	 * the control connection to say. */
	rc->requester.retries = SL_ROCE_RETRY_FOREVER;
	rc->requester.rnr_retries = SL_ROCE_RNR_FOREVER;
	rc->requester.works = queue->work;
	rc->requester.capacity = SL_UDP_GRANTS;
	for (int state = SL_ROCE_INIT; state <= SL_ROCE_RTS; state++)
		if (sl_roce_rc_queue_modify(rc, (enum sl_roce_state)state))
			return -EINVAL;
	return 0;
}

/* A source that sends from one port gets a socket of its own; one that says no port (an RDMA NIC
 * chooses for itself), or the kernel says no, sends to the shared one. handover_fd: it is already
 * decided. */
static void open_flow(struct sl_udp *udp, struct sl_udp_queue *queue, const int *handover_fd)
{
	const struct sl_plan *plan = &queue->plan;
	struct sl_udp_path in;

	if (queue->fd >= 0 && queue->opened)
		close(queue->fd); /* of who had the queue before */
	queue->opened = true;
	queue->fd = -1;
	queue->next_id = 0;
	queue->stream = (struct sl_predict_stream){.batch = SL_PREDICT_BATCH};
	queue->look = (struct sl_look){0};
	sl_udp_path_set(&in, plan->source.ip, plan->source.port, udp->local, (uint16_t)udp->port);
	queue->in = in.path;
	if (handover_fd)
		queue->fd = *handover_fd;
	else if (plan->source.port && !udp->backend)
		queue->fd = sl_net_open_flow(udp->fd, udp->local, (uint16_t)udp->port,
					     plan->source.ip, plan->source.port);
	sl_udp_look_at_memory(udp, queue->fd, &queue->full, NULL);
	/* Who has no socket of its own shares one, and with it the thread that reads it. */
	queue->poller = queue->fd >= 0 || udp->backend ? plan->transfer % udp->env.pollers : 0;
	queue->wanted = 0;
	if (queue->fd >= 0) {
		sl_udp_enlarge_buffer(udp, queue->fd);
		return;
	}
	/* The buffer is shared, too: so is what may be under way. */
	udp->shared = true;
	if (handover_fd)
		return;
	set_window(udp, &queue->plan, false);
	queue->credit.window = plan->window_bytes;
}

static int open_queue(struct sl_udp *udp, struct sl_udp_queue *queue)
{
	const struct sl_plan *plan = &queue->plan;

	sl_udp_path_set(&queue->back, udp->local, sl_net_port(udp->fd), plan->source.ip,
			plan->credit_port);
	queue->key = (struct sl_roce_key){
		.rkey = plan->rkey,
		.access = SL_ROCE_REMOTE_WRITE,
		.base = plan->base,
		.bytes = (uint64_t)udp->env.ring->slots * udp->env.ring->slot_stride,
	};
	queue->credit = (struct sl_credit){.window = plan->window_bytes};
	queue->cnp = (struct sl_roce_cnp){0};
	queue->credit_psn = plan->credit_psn;
	queue->heard = queue->heard_ns = queue->grants = 0;
	queue->replies = 0;
	atomic_store(&queue->reported, 0);
	atomic_store(&queue->failed, 0);
	if (plan->service == SL_SERVICE_RC)
		return open_rc(udp, queue);
	describe_responder(udp, plan, SL_ROCE_UC, &queue->uc);
	return sl_roce_responder_init(&queue->uc) ? -EINVAL : 0;
}

/* The plan of the queue is made. */
static int install(struct sl_udp *udp, uint32_t index, uint64_t frames, const int *handover_fd)
{
	struct sl_udp_queue *queue = &udp->queue[index];
	int err = open_queue(udp, queue);

	if (err)
		return err;
	sl_placer_fini(&queue->placer); /* of who had the queue before */
	err = sl_placer_init(&queue->placer, udp->env.ring, udp->env.counters, &queue->plan,
			     frames);
	if (err)
		return err;
	open_flow(udp, queue, handover_fd);
	if (index >= udp->queues)
		udp->queues = index + 1;
	return 0;
}

int sl_udp_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_udp *udp = state;
	uint32_t index = free_queue(udp);
	struct sl_udp_queue *queue = &udp->queue[index];
	struct sl_plan made;
	int err;

	if (index == SL_UDP_TRANSFERS)
		return -ENOSPC;
	err = describe_plan(udp, offer, index, &made);
	if (err)
		return err;
	queue->plan = made;
	err = install(udp, index, offer->frames, NULL);
	if (err)
		return err;
	*plan = queue->plan;
	sl_udp_note_begin(udp, queue);
	/* Release: pairs with the acquire in receive.c and judge.c; the poller may already be
	 * running. */
	atomic_store_explicit(&queue->active, 1, memory_order_release);
	return 0;
}

/* What of a plan would be otherwise if it were made now; NULL: nothing that the source knows. */
static const char *differs(const struct sl_plan *now, const struct sl_plan *kept)
{
	if (now->service != kept->service || now->operation != kept->operation ||
	    now->message != kept->message)
		return "link.service, operation or message";
	if (now->pmtu != kept->pmtu || now->packets != kept->packets)
		return "link.pmtu";
	if (now->crc != kept->crc)
		return "link.crc";
	if (now->slots != kept->slots || now->stride != kept->stride ||
	    now->block_at != kept->block_at || now->block_bytes != kept->block_bytes ||
	    now->line_pitch != kept->line_pitch || now->record_at != kept->record_at)
		return "the ring's shape";
	if (memcmp(now->dest.ip, kept->dest.ip, sizeof(now->dest.ip)) != 0 ||
	    now->dest.port != kept->dest.port)
		return "link.listen or link.port";
	return kept->version == SL_PLAN_VERSION ? NULL : "the version of the program";
}

int sl_udp_handover_accept(void *state, const struct sl_offer *offer, const struct sl_plan *plan,
			   int fd)
{
	struct sl_udp *udp = state;
	uint32_t index = plan->transfer;
	struct sl_plan now;
	const char *what;
	int err;

	if (index >= SL_UDP_TRANSFERS || udp->queue[index].active ||
	    plan->module != offer->module || !udp->env.notes ||
	    (udp->queues && plan->qpn != udp->qpn_base + index) ||
	    describe_plan(udp, offer, index, &now))
		return -EINVAL;
	what = differs(&now, plan);
	if (what) {
		sl_error("module %u: %s differs from what its source was told", plan->module, what);
		return -EINVAL;
	}
	udp->qpn_base = plan->qpn - index;
	udp->queue[index].plan = *plan;
	err = install(udp, index, offer->frames, &fd);
	if (err)
		return err;
	udp->queue[index].note = (void *)((char *)udp->env.notes + index * SL_LINK_NOTE_BYTES);
	sl_udp_note_restore(&udp->queue[index]);
	atomic_store_explicit(&udp->queue[index].active, 1, memory_order_release);
	return 0;
}

int sl_udp_set_queue(void *state, uint16_t transfer, uint32_t qpn)
{
	struct sl_udp *udp = state;
	struct sl_udp_queue *queue;

	if (transfer >= udp->queues || qpn > SL_ROCE_QPN_MASK)
		return -EINVAL;
	queue = &udp->queue[transfer];
	queue->plan.credit_qpn = qpn;
	queue->rc.responder.peer_qpn = qpn;
	queue->rc.requester.peer_qpn = qpn;
	return 0;
}
