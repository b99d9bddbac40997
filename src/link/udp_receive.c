/* udp_receive.c - packets from the socket: check, place, grant. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc.h"
#include "link/udp.h"
#include "roce/icrc.h"

enum { SETTLE_NS = 20 * 1000 * 1000 };

static void count(struct sl_udp *udp, enum sl_drop why)
{
	atomic_fetch_add_explicit(&udp->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* What the protocol calls it, and what the user is told. */
static enum sl_drop cause_of(enum sl_roce_drop drop)
{
	switch (drop) {
	case SL_ROCE_DROP_QUEUE:
	case SL_ROCE_DROP_TRANSPORT:
	case SL_ROCE_DROP_PKEY:
		return SL_DROP_QUEUE;
	case SL_ROCE_DROP_PEER:
		return SL_DROP_PEER;
	case SL_ROCE_DROP_BROKEN:
		return SL_DROP_BROKEN;
	case SL_ROCE_DROP_KEY:
	case SL_ROCE_DROP_ACCESS:
		return SL_DROP_KEY;
	case SL_ROCE_DROP_RANGE:
		return SL_DROP_RANGE;
	default:
		return SL_DROP_MALFORMED;
	}
}

static struct sl_udp_queue *queue_of(struct sl_udp *udp, uint32_t qpn)
{
	uint32_t index = qpn - udp->qpn_base;
	struct sl_udp_queue *queue;

	if (index >= SL_UDP_TRANSFERS)
		return NULL;
	queue = &udp->queue[index];
	/* Acquire: pairs with the release in accept. */
	return atomic_load_explicit(&queue->active, memory_order_acquire) ? queue : NULL;
}

static bool icrc_good(struct sl_udp *udp, const struct sl_roce_path *path, const uint8_t *data,
		      size_t bytes)
{
	uint16_t id;

	if (sl_roce_icrc_check(path, data, bytes, sl_crc32))
		return true;
	return udp->any_id && sl_roce_icrc_check_any_id(path, data, bytes, sl_crc32, &id);
}

static void receive(struct sl_udp *udp, const uint8_t *data, size_t bytes, bool truncated,
		    const struct sockaddr_in *peer, uint64_t now_ns)
{
	struct sl_roce_path path = {.source_port = ntohs(peer->sin_port),
				    .dest_port = (uint16_t)udp->port,
				    .dont_fragment = true};
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	struct sl_udp_queue *queue;
	enum sl_roce_drop drop;

	if (truncated || sl_roce_parse(data, bytes, &packet)) {
		count(udp, SL_DROP_MALFORMED);
		return;
	}
	sl_udp_gid(&peer->sin_addr, path.source);
	memcpy(path.dest, udp->local, sizeof(path.dest));
	if (!icrc_good(udp, &path, data, bytes)) {
		count(udp, SL_DROP_ICRC);
		return;
	}
	queue = queue_of(udp, packet.qpn);
	if (!queue) {
		count(udp, SL_DROP_QUEUE);
		return;
	}
	drop = sl_roce_responder_receive(&queue->responder, &path, &packet, sl_udp_key_of,
					 &queue->key, &action);
	if (drop != SL_ROCE_ACCEPTED)
		count(udp, cause_of(drop));
	else if (action.place == SL_ROCE_PLACE_MEMORY)
		sl_placer_put(&queue->placer, packet.psn, action.va, packet.payload, action.bytes,
			      now_ns);
	else
		count(udp, SL_DROP_RANGE); /* a write of nothing: no plan asks for it */
}

/* The grant as an 8-byte RDMA write into the source's credit word. If the socket has no room,
 * the next one does it. */
static void send_grant(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t grant)
{
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = SL_ROCE_KIND_WRITE,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = queue->plan.pmtu,
		.qpn = queue->plan.credit_qpn,
		.psn = queue->credit_psn,
		.rkey = queue->plan.credit_rkey,
		.va = queue->plan.credit_va,
		.bytes = sizeof(grant),
	};
	struct sl_roce_path path = {.source_port = (uint16_t)udp->port,
				    .dest_port = queue->plan.credit_port,
				    .dont_fragment = true};
	struct sockaddr_in dest = {.sin_family = AF_INET,
				   .sin_port = htons(queue->plan.credit_port),
				   .sin_addr = sl_udp_ip(queue->plan.source.ip)};
	struct sl_roce_piece piece = {&grant, sizeof(grant)};
	uint8_t header[SL_ROCE_HEADERS_MAX], trailer[SL_ROCE_TRAILER_MAX];
	struct sl_roce_requester cursor;
	struct sl_roce_fragment fragment;
	struct iovec iov[3];
	struct msghdr msg = {
		.msg_name = &dest, .msg_namelen = sizeof(dest), .msg_iov = iov, .msg_iovlen = 3};

	memcpy(path.source, udp->local, sizeof(path.source));
	memcpy(path.dest, queue->plan.source.ip, sizeof(path.dest));
	if (sl_roce_requester_begin(&cursor, &message) ||
	    !sl_roce_requester_next(&cursor, header, &fragment))
		return;
	iov[0] = (struct iovec){header, fragment.header_bytes};
	iov[1] = (struct iovec){&grant, sizeof(grant)};
	iov[2] = (struct iovec){trailer, sl_roce_seal(&path, header, fragment.header_bytes, &piece,
						      1, sl_crc32, trailer)};
	if (sendmsg(udp->fd, &msg, MSG_DONTWAIT) >= 0)
		queue->credit_psn = cursor.psn;
}

/* What the source says it sent and what never came is lost: but its word travels another way and
 * may overtake packets that still wait in some queue of the kernel, so it has to grow old first. */
static void catch_up(struct sl_udp_queue *queue, uint64_t now_ns)
{
	struct sl_placer *placer = &queue->placer;

	if (queue->heard <= placer->seen) {
		queue->heard = atomic_load_explicit(&queue->reported, memory_order_acquire);
		queue->heard_ns = now_ns;
	} else if (now_ns - queue->heard_ns >= SETTLE_NS) {
		sl_placer_catch_up(placer, queue->heard);
	}
}

static void grant_all(struct sl_udp *udp, bool idle, uint64_t now_ns)
{
	udp->opened_seen = atomic_load_explicit(&udp->env.ring->opened, memory_order_acquire);
	for (uint32_t i = 0; i < SL_UDP_TRANSFERS; i++) {
		struct sl_udp_queue *queue = &udp->queue[i];
		uint64_t grant;

		if (!atomic_load_explicit(&queue->active, memory_order_acquire))
			continue;
		if (idle)
			catch_up(queue, now_ns);
		if (queue->plan.credit_va &&
		    sl_credit_due(&queue->credit, &queue->plan, udp->env.ring, queue->placer.seen,
				  idle, now_ns, &grant))
			send_grant(udp, queue, grant);
	}
}

int sl_udp_poll(void *state, unsigned budget)
{
	struct sl_udp *udp = state;
	struct sl_udp_buffers *b = udp->buffers;
	unsigned batch = budget < SL_UDP_BATCH ? budget : SL_UDP_BATCH;
	uint64_t now_ns;
	int n;

	for (unsigned i = 0; i < batch; i++) {
		b->iov[i][0] = (struct iovec){b->packet[i], sizeof(b->packet[i])};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->peer[i],
							.msg_namelen = sizeof(b->peer[i]),
							.msg_iov = b->iov[i],
							.msg_iovlen = 1};
	}
	n = recvmmsg(udp->fd, b->message, batch, MSG_DONTWAIT, NULL);
	if (n < 0) /* empty, or an ICMP error of a credit packet: nothing to receive either way */
		n = 0;
	now_ns = sl_clock_ns();
	sl_ring_enter(udp->env.ring, udp->env.poller);
	for (int i = 0; i < n; i++)
		receive(udp, b->packet[i], b->message[i].msg_len,
			b->message[i].msg_hdr.msg_flags & MSG_TRUNC, &b->peer[i], now_ns);
	sl_ring_leave(udp->env.ring, udp->env.poller);
	grant_all(udp, n == 0, now_ns);
	return n;
}

/* Receiving: data, or somebody who opened slots. Sending: credits. */
int sl_udp_wait(void *state, uint32_t timeout_us)
{
	struct sl_udp *udp = state;
	struct pollfd fds[SL_UDP_TRANSFERS];
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	nfds_t n = 0;

	if (!udp->env.ring) {
		for (uint32_t i = 0; i < udp->sources; i++)
			fds[n++] = (struct pollfd){.fd = udp->send[i].fd, .events = POLLIN};
		return ppoll(fds, n, &timeout, NULL) > 0;
	}
	fds[n++] = (struct pollfd){.fd = udp->fd, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = udp->env.wake_fd, .events = POLLIN};
	/* Asleep, then look at the slots once more: who opens slots does it the other way round,
	 * so one sees the other. */
	atomic_store(udp->env.asleep, 1);
	if (atomic_load(&udp->env.ring->opened) == udp->opened_seen)
		ppoll(fds, n, &timeout, NULL);
	atomic_store(udp->env.asleep, 0);
	if (fds[1].revents) {
		uint64_t drained;

		if (read(udp->env.wake_fd, &drained, sizeof(drained)) < 0)
			return 0; /* another reader was faster */
	}
	return fds[0].revents != 0;
}
