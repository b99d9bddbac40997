/* receive.c - packets from the sockets of a link thread: those of a source that has a socket of its
 * own are received where they belong (link/predict.h), all others into a buffer. Each is then
 * judged (judge.c).
 *
 * A source's packets come in the order of its plan. For each that is expected next there is a list
 * of [headers, final place, padding and ICRC]. A packet is taken as the expected one only if its
 * headers and its ICRC say so. */
#include <string.h>

#include "base/clock.h"
#include "base/crc.h"
#include "link/predict.h"
#include "link/udp/udp.h"
#include "roce/icrc.h"

enum {
	SHARED_EVERY = 16,
	ID_MAX = 64, /* a segmented send has no more packets: see sl_udp_append */
};

struct flow { /* one poll of a source's socket */
	struct sl_udp *udp;
	struct sl_udp_queue *queue;
	struct sl_udp_buffers *b;
	uint64_t now_ns;
	struct sl_flight_tap *tap; /* NULL: no packet is sampled */
};

/* ---- a source with a socket of its own ---- */

SL_PREDICT_FN uint64_t next_packet(void *flow, unsigned most)
{
	struct flow *f = flow;

	sl_udp_note_reading(f->queue, most);
	return sl_placer_expected(&f->queue->placer);
}

/* The headers that the next packet has, by its place in the block. */
static uint32_t header_bytes(const struct sl_plan *plan, const struct sl_place *place)
{
	bool reth = plan->operation == SL_OPERATION_WRITE && place->first;

	return SL_ROCE_BTH_BYTES + (reth ? 16 : 0) + (place->last ? 4 : 0);
}

static uint32_t packet_bytes(const struct sl_udp_guess *guess)
{
	return guess->header_bytes + guess->place.bytes + guess->trailer_bytes;
}

SL_PREDICT_FN uint32_t lay_out(void *flow, unsigned number, uint64_t n, struct iovec *iov,
			       unsigned *iovs)
{
	struct flow *f = flow;
	struct sl_udp_guess *guess = &f->b->guess[number];

	sl_placer_predict(&f->queue->placer, n, &guess->place);
	guess->data = guess->place.to ? guess->place.to : f->b->scratch[number];
	guess->header_bytes = header_bytes(&f->queue->plan, &guess->place);
	guess->trailer_bytes = (uint32_t)(-guess->place.bytes & 3) + SL_ROCE_ICRC_BYTES;
	iov[0] = (struct iovec){guess->header, guess->header_bytes};
	iov[1] = (struct iovec){guess->data, guess->place.bytes};
	iov[2] = (struct iovec){guess->trailer, guess->trailer_bytes};
	*iovs = 3;
	return packet_bytes(guess);
}

static bool is_marked(const struct msghdr *header)
{
	return (sl_net_class(header) & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
}

/* The first bytes of a datagram lie where the headers of its first packet are expected. */
static __attribute__((noinline)) void
sample(struct flow *f, const struct sl_predict_datagram *datagram, const struct msghdr *header)
{
	const struct sl_udp_guess *guess = &f->b->guess[datagram->first];
	size_t bytes = datagram->segment;
	size_t here = bytes < guess->header_bytes ? bytes : guess->header_bytes;

	sl_udp_sample(f->udp, f->tap, &f->queue->in, sl_net_class(header), guess->header, here,
		      bytes, f->now_ns);
}

SL_PREDICT_FN void arrived(void *flow, struct sl_predict_datagram *datagram,
			   const struct msghdr *header)
{
	struct flow *f = flow;

	datagram->marked = is_marked(header);
	if (sl_flight_due(f->tap, f->now_ns))
		sample(f, datagram, header);
}

/* Is the ICRC that of the packet, under an identification that its source may have sent? */
static bool icrc_good(struct sl_udp_queue *queue, const struct sl_udp_guess *guess, size_t bytes,
		      const struct sl_roce_packet *packet)
{
	struct sl_roce_piece piece = {guess->data, guess->place.bytes};
	struct sl_roce_path path = queue->in;
	uint32_t icrc;
	uint16_t id;

	path.ip_id = queue->next_id;
	icrc = sl_roce_icrc(&path, guess->header, guess->header_bytes, &piece, 1, packet->pad,
			    sl_crc32);
	if (icrc != packet->icrc) {
		/* Perhaps with another identification, where the source counts them. */
		path.ip_id = 0;
		if (queue->plan.ip_id == SL_IP_ID_ZERO ||
		    !sl_roce_icrc_recover_id(sl_roce_icrc(&path, guess->header, guess->header_bytes,
							  &piece, 1, packet->pad, sl_crc32) ^
						     packet->icrc,
					     bytes, &id) ||
		    (queue->plan.ip_id == SL_IP_ID_COUNTS && id >= ID_MAX))
			return false;
		queue->next_id = id;
	}
	queue->next_id = queue->plan.ip_id == SL_IP_ID_ZERO ? 0 : (uint16_t)(queue->next_id + 1);
	return true;
}

/* Is it the packet that was expected there, and intact? Then *packet is it, payload in place. */
static bool as_guessed(const struct sl_udp *udp, struct sl_udp_queue *queue,
		       const struct sl_udp_guess *guess, struct sl_roce_packet *packet)
{
	size_t bytes = packet_bytes(guess);

	if (sl_roce_parse_headers(guess->header, guess->header_bytes, bytes, packet) ||
	    packet->header_bytes != guess->header_bytes || packet->psn != guess->place.psn ||
	    packet->payload_bytes != guess->place.bytes)
		return false;
	packet->icrc = sl_roce_icrc_get(guess->trailer + guess->trailer_bytes - SL_ROCE_ICRC_BYTES);
	packet->payload = guess->data;
	return udp->icrc == SL_UDP_ICRC_IGNORE || icrc_good(queue, guess, bytes, packet);
}

SL_PREDICT_FN bool take_guessed(void *flow, const struct sl_predict_datagram *datagram,
				unsigned number)
{
	struct flow *f = flow;
	struct sl_roce_packet packet;

	if (number == datagram->first && f->queue->plan.ip_id == SL_IP_ID_COUNTS &&
	    datagram->bytes > datagram->segment)
		f->queue->next_id = 0; /* most likely one send of the source */
	if (!as_guessed(f->udp, f->queue, &f->b->guess[number], &packet))
		return false;
	if (datagram->marked)
		sl_udp_notify(f->udp, f->queue, f->now_ns);
	sl_udp_judge(f->udp, f->queue, &f->queue->in, &packet, f->now_ns);
	return true;
}

SL_PREDICT_FN void take_other(void *flow, const struct sl_predict_datagram *datagram,
			      const uint8_t *data, size_t bytes)
{
	struct flow *f = flow;

	sl_udp_receive(f->udp, f->queue->poller, data, bytes, &f->queue->in, datagram->marked,
		       f->now_ns);
}

static const struct sl_predict_ops predict_ops = {
	.next = next_packet,
	.lay_out = lay_out,
	.arrived = arrived,
	.take_guessed = take_guessed,
	.take_other = take_other,
};

static unsigned poll_flow(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned budget,
			  uint64_t now_ns)
{
	struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	struct flow flow = {udp, queue, b, now_ns, sl_udp_tap(udp, queue->poller)};
	unsigned n = sl_predict_poll(&predict_ops, &flow, queue->fd, &queue->stream, &b->predict,
				     budget);

	sl_ring_looked(udp->env.ring, queue->plan.module,
		       sl_look_pass(&queue->look, now_ns, n, n < budget));
	return n;
}

/* ---- all other sources ---- */

/* The shared socket is that of every source without one of its own. */
static void note_look(struct sl_udp *udp, unsigned taken, bool emptied, uint64_t now_ns)
{
	uint64_t looked_ns = sl_look_pass(&udp->look, now_ns, taken, emptied);

	for (uint32_t i = 0; udp->shared && i < udp->queues; i++)
		if (atomic_load_explicit(&udp->queue[i].active, memory_order_acquire) &&
		    udp->queue[i].fd < 0)
			sl_ring_looked(udp->env.ring, udp->queue[i].plan.module, looked_ns);
}

/* The socket that everybody may send to: sources whose port nobody knows, and strangers. */
static int poll_shared(struct sl_udp *udp, unsigned budget, uint64_t now_ns)
{
	struct sl_flight_tap *tap = sl_udp_tap(udp, 0);
	struct sl_udp_buffers *b = udp->buffers;
	unsigned batch = budget < SL_UDP_BATCH ? budget : SL_UDP_BATCH;
	int n;

	for (unsigned i = 0; i < batch; i++) {
		b->iov[i] = (struct iovec){b->packet[i], sizeof(b->packet[i])};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->peer[i],
							.msg_namelen = sizeof(b->peer[i]),
							.msg_iov = &b->iov[i],
							.msg_iovlen = 1,
							.msg_control = b->control[i],
							.msg_controllen = sizeof(b->control[i])};
	}
	for (uint32_t i = 0; udp->env.notes && i < udp->queues; i++)
		if (atomic_load_explicit(&udp->queue[i].active, memory_order_acquire) &&
		    udp->queue[i].fd < 0)
			sl_udp_note_reading(&udp->queue[i], batch);
	n = recvmmsg(udp->fd, b->message, batch, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		const struct msghdr *message = &b->message[i].msg_hdr;
		struct sl_roce_path path = {.dest_port = (uint16_t)udp->port,
					    .dont_fragment = true};

		path.source_port = sl_net_gid(&b->peer[i], path.source);
		memcpy(path.dest, udp->local, sizeof(path.dest));
		if (sl_flight_due(tap, now_ns))
			sl_udp_sample(udp, tap, &path, sl_net_class(message), b->packet[i],
				      b->message[i].msg_len, b->message[i].msg_len, now_ns);
		if (message->msg_flags & MSG_TRUNC)
			sl_udp_count(udp, SL_DROP_MALFORMED);
		else
			sl_udp_receive(udp, 0, b->packet[i], b->message[i].msg_len, &path,
				       is_marked(message), now_ns);
	}
	/* Empty, or an ICMP error of a credit packet: nothing to receive either way. */
	n = n < 0 ? 0 : n;
	note_look(udp, (unsigned)n, (unsigned)n < batch, now_ns);
	return n;
}

void sl_udp_looked(struct sl_udp *udp, unsigned poller, uint64_t looked_ns)
{
	for (uint32_t i = 0; looked_ns && i < udp->queues; i++)
		if (atomic_load_explicit(&udp->queue[i].active, memory_order_acquire) &&
		    udp->queue[i].poller == poller)
			sl_ring_looked(udp->env.ring, udp->queue[i].plan.module, looked_ns);
}

int sl_udp_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_udp *udp = state;
	uint64_t now_ns = sl_clock_ns();
	unsigned n = 0;

	sl_ring_enter(udp->env.ring, poller);
	for (uint32_t i = 0; i < udp->queues; i++) {
		struct sl_udp_queue *queue = &udp->queue[i];

		/* Acquire: pairs with the release in accept. */
		if (atomic_load_explicit(&queue->active, memory_order_acquire) && queue->fd >= 0 &&
		    queue->poller == poller)
			n += poll_flow(udp, queue, budget, now_ns);
	}
	/* Where every source has its own socket, only strangers come to the other one. */
	if (poller == 0 && (udp->shared || n == 0 || udp->polls++ % SHARED_EVERY == 0))
		n += (unsigned)poll_shared(udp, budget, now_ns);
	sl_ring_leave(udp->env.ring, poller);
	sl_udp_return_all(udp, poller, n == 0, now_ns);
	return (int)n;
}
