/* handover.c - a receiver takes the place of another while its sources go on: what is written down
 * for it all the time, and how it goes on from there.
 *
 * Somebody else (control/handover/keeper.h) holds the sockets meanwhile: what arrives waits in
 * them. RC: a source sends again what was not acknowledged, so the note must be true before an
 * acknowledgement leaves. UC: what the receiver before took from its socket is gone, also what it
 * took in the very call in which it ended; so the call is announced, and at worst a few packets
 * too many count as taken. A source with credits cannot be further than it was granted. One
 * without may be anywhere: PSNs come round after 2^24 packets, so the number in the immediate of a
 * block says where. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "link/udp/udp.h"

enum {
	FIND_NS = 1000 * 1000 * 1000, /* for a source without credits to end a block */
	DRAIN_CALLS = 1 << 20,
};

static bool is_rc(const struct sl_udp_queue *queue)
{
	return queue->plan.service == SL_SERVICE_RC;
}

/* ---- writing ---- */

void sl_udp_note_reading(struct sl_udp_queue *queue, uint64_t packets)
{
	/* Relaxed, here and below: whoever reads it starts after this process has ended. */
	if (queue->note && !is_rc(queue))
		atomic_store_explicit(&queue->note->taken,
				      sl_placer_expected(&queue->placer) + packets,
				      memory_order_relaxed);
}

static void note_rc(struct sl_udp_queue *queue)
{
	const struct sl_roce_rc_requester *requester = &queue->rc.requester;
	const struct sl_roce_rc_responder *responder = &queue->rc.responder;
	const struct sl_roce_responder *in = &responder->queue;
	struct sl_udp_note *note = queue->note;
	uint32_t turn = !atomic_load_explicit(&note->turn, memory_order_relaxed);

	note->rc[turn] = (struct sl_udp_note_rc){
		.taken = sl_placer_expected(&queue->placer),
		.expected_psn = in->expected_psn,
		.msn = responder->msn,
		.open = in->open,
		.kind = in->kind,
		.rkey = in->rkey,
		.length = in->length,
		.offset = in->offset,
		.va = in->va,
		.credit_psn = sl_roce_psn_add(requester->psn,
					      (uint32_t)requester->oldest & SL_ROCE_PSN_MASK),
		.credits = (uint32_t)(requester->end - requester->oldest),
	};
	/* Release: the copy is whole before it is believed. */
	atomic_store_explicit(&note->turn, turn, memory_order_release);
}

void sl_udp_note(struct sl_udp_queue *queue)
{
	struct sl_udp_note *note = queue->note;

	if (!note)
		return;
	atomic_store_explicit(&note->granted, queue->credit.granted, memory_order_relaxed);
	if (is_rc(queue))
		note_rc(queue);
	else
		atomic_store_explicit(&note->taken, sl_placer_expected(&queue->placer),
				      memory_order_relaxed);
}

void sl_udp_note_begin(struct sl_udp *udp, struct sl_udp_queue *queue)
{
	queue->note = NULL;
	if (!udp->env.notes)
		return;
	queue->note = (void *)((char *)udp->env.notes +
			       (size_t)queue->plan.transfer * SL_LINK_NOTE_BYTES);
	memset(queue->note, 0, sizeof(*queue->note));
	sl_udp_note(queue);
}

/* ---- reading ---- */

static void restore_rc(struct sl_udp_queue *queue, const struct sl_udp_note_rc *was,
		       uint64_t granted)
{
	struct sl_roce_rc_responder *responder = &queue->rc.responder;
	struct sl_roce_responder *in = &responder->queue;

	in->expected_psn = was->expected_psn & SL_ROCE_PSN_MASK;
	responder->msn = was->msn;
	in->open = was->open;
	in->kind = (uint8_t)was->kind;
	in->rkey = was->rkey;
	in->length = was->length;
	in->offset = was->offset;
	in->va = was->va;
	/* The source may have some of the credits that were on their way, or none: under the same
	 * numbers it takes what it lacks and acknowledges the rest. */
	queue->rc.requester.psn = was->credit_psn & SL_ROCE_PSN_MASK;
	for (uint32_t i = 0; i < was->credits && i < SL_UDP_GRANTS; i++)
		sl_udp_grant_rc(queue, granted);
}

/* Packets that a grant may have let out. */
static uint64_t packets_at(const struct sl_plan *plan, uint64_t position)
{
	uint64_t rest = position % plan->block_bytes;

	return position / plan->block_bytes * plan->packets +
	       (rest ? sl_plan_packet_of(plan, rest) + 1 : 0);
}

void sl_udp_note_restore(struct sl_udp_queue *queue)
{
	const struct sl_udp_note *note = queue->note;
	const struct sl_plan *plan = &queue->plan;
	uint64_t granted = atomic_load_explicit(&note->granted, memory_order_relaxed);
	uint64_t taken = atomic_load_explicit(&note->taken, memory_order_relaxed);

	if (is_rc(queue)) {
		const struct sl_udp_note_rc *was =
			&note->rc[atomic_load_explicit(&note->turn, memory_order_acquire) & 1];

		taken = was->taken;
		restore_rc(queue, was, granted);
	} else if (plan->credit_va && packets_at(plan, granted) < taken) {
		taken = packets_at(plan, granted);
	}
	sl_placer_begin(&queue->placer, taken);
	queue->credit.granted = granted;
	/* What was granted may be lost by now, and nothing would say so: the next grant builds on
	 * it. At most two windows are then under way. */
	if (plan->credit_va && granted > queue->placer.seen)
		queue->placer.seen = granted;
}

/* ---- where is a source that nothing holds back? ---- */

static bool is_free(const struct sl_udp_queue *queue)
{
	return atomic_load(&queue->active) && !is_rc(queue) && !queue->plan.credit_va &&
	       !queue->plan.bare;
}

/* One packet: does it end a block of this queue? Then *packets are those up to it. */
static bool ends_block(const struct sl_udp *udp, const struct sl_udp_queue *queue,
		       const struct sl_roce_path *path, const uint8_t *data, size_t bytes,
		       uint64_t *packets)
{
	const struct sl_plan *plan = &queue->plan;
	uint64_t known = sl_placer_expected(&queue->placer) / plan->packets;
	struct sl_roce_packet packet;
	uint64_t block;

	if (sl_roce_parse(data, bytes, &packet) || packet.qpn != plan->qpn ||
	    !(packet.has & SL_ROCE_HAS_IMM))
		return false;
	if (udp->icrc == SL_UDP_ICRC_CHECK &&
	    !sl_udp_icrc_good(path, data, bytes, (enum sl_ip_id)plan->ip_id))
		return false;
	/* Sequences only grow: the next one with these 32 bits. */
	block = known + (uint32_t)(packet.imm - (uint32_t)(plan->first_sequence + known));
	*packets = (block + 1) * plan->packets;
	return true;
}

/* What a datagram says; packets behind the end of the block in it are taken, too. */
static bool look_at(struct sl_udp *udp, struct sl_udp_queue *queue, const struct sl_roce_path *path,
		    const uint8_t *data, size_t bytes, size_t segment)
{
	uint64_t packets = 0;
	bool found = false;

	for (size_t at = 0; at < bytes; at += segment) {
		size_t rest = bytes - at < segment ? bytes - at : segment;
		uint64_t end;

		if (ends_block(udp, queue, path, data + at, rest, &end)) {
			found = true;
			packets = end;
		} else if (found) {
			packets++;
		}
	}
	if (found)
		sl_placer_begin(&queue->placer, packets);
	return found;
}

static bool receive(struct sl_udp *udp, struct sl_udp_queue *queue)
{
	struct sl_udp_buffers *b = udp->buffers;
	int fd = queue->fd >= 0 ? queue->fd : udp->fd;
	struct iovec iov = {b->predict.overflow[0], sizeof(b->predict.overflow[0])};
	struct sl_roce_path path = queue->in;
	struct msghdr message = {.msg_name = &b->peer[0],
				 .msg_namelen = sizeof(b->peer[0]),
				 .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = b->control[0],
				 .msg_controllen = sizeof(b->control[0])};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
	uint32_t segment;

	if (n <= 0)
		return false;
	if (queue->fd < 0) /* whoever may have sent it */
		path.source_port = sl_net_gid(&b->peer[0], path.source);
	segment = sl_net_segment_bytes(&message);
	return look_at(udp, queue, &path, b->predict.overflow[0], (size_t)n,
		       segment ? segment : (size_t)n);
}

/* What waits there is of long ago, and behind it comes a gap of unknown length. */
static void drain(const struct sl_udp *udp, const struct sl_udp_queue *queue)
{
	int fd = queue->fd >= 0 ? queue->fd : udp->fd;
	char byte;

	for (int i = 0; i < DRAIN_CALLS && recv(fd, &byte, 1, MSG_DONTWAIT) >= 0; i++)
		continue;
}

static void find_free_sources(struct sl_udp *udp)
{
	uint64_t end = sl_clock_ns() + FIND_NS, left = 0, now;
	struct pollfd fds[SL_UDP_TRANSFERS];

	for (uint32_t i = 0; i < udp->queues; i++)
		if (is_free(&udp->queue[i])) {
			left |= UINT64_C(1) << i;
			drain(udp, &udp->queue[i]);
		}
	while (left && (now = sl_clock_ns()) < end) {
		nfds_t n = 0;

		for (uint32_t i = 0; i < udp->queues; i++) {
			struct sl_udp_queue *queue = &udp->queue[i];

			if (!(left >> i & 1))
				continue;
			if (receive(udp, queue))
				left &= ~(UINT64_C(1) << i);
			fds[n++] = (struct pollfd){.fd = queue->fd >= 0 ? queue->fd : udp->fd,
						   .events = POLLIN};
		}
		if (left)
			poll(fds, n, (int)((end - now) / 1000000) + 1);
	}
}

/* ---- the link's calls ---- */

int sl_udp_handover_fd(void *state, uint16_t transfer)
{
	struct sl_udp *udp = state;

	return transfer < udp->queues ? udp->queue[transfer].fd : udp->fd;
}

void sl_udp_resume(void *state, uint64_t *first)
{
	struct sl_udp *udp = state;

	find_free_sources(udp);
	for (uint32_t i = 0; i < udp->queues; i++) {
		struct sl_udp_queue *queue = &udp->queue[i];
		uint32_t packets = queue->plan.packets;

		if (!atomic_load(&queue->active))
			continue;
		first[i] = queue->plan.first_sequence +
			   (sl_placer_expected(&queue->placer) + packets - 1) / packets;
		sl_udp_note(queue);
	}
}
