/* flow.c - one source, one socket: the kernel gets the final addresses of the payloads that
 * are expected next, so that its copy is the only one.
 *
 * A detector's packets come in the order of its plan. For each that is expected next there is an
 * iovec of [headers, final place, padding and ICRC]. What arrives is believed only after its
 * headers and its ICRC have been checked, and is judged as any packet; when it is the one that
 * was expected, its payload is where it belongs. When it is not (something was lost, doubled or
 * overtaken), it is put together in a buffer, with all that came in the same datagram, and
 * placed from there.
 *
 * Nothing is predicted into a slot that is not open, nor over bytes that were received: a wrong
 * guess leaves its traces only in bytes that nobody has been promised (invariant EXCLUSIVE). */
#include <string.h>

#include "base/crc.h"
#include "link/udp/udp.h"
#include "roce/icrc.h"

enum {
	MANY = 4, /* packets in a datagram from which on one datagram per call is best */
	BATCH_MIN = 4,
	ID_MAX = 64, /* a segmented send has no more packets: see sl_udp_append */
};

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

/* Guess `number` of this poll: the packet'th of the stream. */
static void guess_at(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t packet,
		     unsigned number)
{
	struct sl_udp_guess *guess = &udp->buffers[queue->poller].guess[number];

	sl_placer_predict(&queue->placer, packet, &guess->place);
	guess->data = guess->place.to ? guess->place.to
				      : udp->buffers[queue->poller].scratch[number];
	guess->header_bytes = header_bytes(&queue->plan, &guess->place);
	guess->trailer_bytes = (uint32_t)(-guess->place.bytes & 3) + SL_ROCE_ICRC_BYTES;
}

/* Room for `most` packets in one datagram, and for anything else that may come instead. */
static void lay_out(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned number, unsigned most,
		    struct sl_udp_message *message)
{
	struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	unsigned n = 0;

	message->first = number;
	message->iovs = 0;
	while (n < most) {
		struct sl_udp_guess *guess = &b->guess[number + n];
		struct iovec *iov = &message->iov[message->iovs];

		guess_at(udp, queue, queue->expected + number + n, number + n);
		/* Those put together are of one length, and only the last may be shorter. */
		if (n && (packet_bytes(guess) > packet_bytes(&b->guess[number]) ||
			  packet_bytes(guess - 1) < packet_bytes(&b->guess[number])))
			break;
		iov[0] = (struct iovec){guess->header, guess->header_bytes};
		iov[1] = (struct iovec){guess->data, guess->place.bytes};
		iov[2] = (struct iovec){guess->trailer, guess->trailer_bytes};
		message->iovs += 3;
		n++;
	}
	message->guesses = n;
	message->iov[message->iovs++] =
		(struct iovec){b->overflow[message - b->laid], SL_UDP_DATAGRAM_MAX};
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

/* Is it the packet that was expected there, and whole? Then *packet is it, payload in place. */
static bool as_guessed(const struct sl_udp *udp, struct sl_udp_queue *queue,
		       const struct sl_udp_guess *guess, size_t bytes,
		       struct sl_roce_packet *packet)
{
	if (bytes != packet_bytes(guess) ||
	    sl_roce_parse_headers(guess->header, guess->header_bytes, bytes, packet) ||
	    packet->header_bytes != guess->header_bytes || packet->psn != guess->place.psn ||
	    packet->payload_bytes != guess->place.bytes)
		return false;
	packet->icrc = sl_roce_icrc_get(guess->trailer + guess->trailer_bytes - SL_ROCE_ICRC_BYTES);
	packet->payload = guess->data;
	return udp->icrc == SL_UDP_ICRC_IGNORE || icrc_good(queue, guess, bytes, packet);
}

/* How many packets of a datagram came as guessed; those are taken. */
static unsigned take_guessed(struct sl_udp *udp, struct sl_udp_queue *queue,
			     const struct sl_udp_message *message, uint64_t now_ns)
{
	struct sl_roce_packet packet;
	unsigned n = 0;

	if (queue->plan.ip_id == SL_IP_ID_COUNTS && message->bytes > message->segment)
		queue->next_id = 0; /* most likely one send of the source */
	for (size_t at = 0; at < message->bytes && n < message->guesses;
	     at += message->segment, n++) {
		size_t rest = message->bytes - at;

		/* In place only as long as every packet before it had the length that was expected:
		 * this one then has, too, or it is the last. */
		if (!as_guessed(udp, queue, &udp->buffers[queue->poller].guess[message->first + n],
				rest < message->segment ? rest : message->segment, &packet))
			break;
		queue->guessed++;
		if (message->marked)
			sl_udp_notify(udp, queue, now_ns);
		sl_udp_judge(udp, queue, &queue->in, &packet, now_ns);
	}
	return n;
}

/* What a datagram brought from byte `at` on, out of where it was scattered to. */
static void collect_rest(struct sl_udp_buffers *buffers, unsigned number, size_t at)
{
	const struct sl_udp_message *message = &buffers->laid[number];

	sl_net_collect(message->iov, message->iovs, at, message->bytes - at,
		       buffers->linear[number] + at);
}

static unsigned take_linear(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned number,
			    size_t at, uint64_t now_ns)
{
	const struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	const struct sl_udp_message *message = &b->laid[number];
	unsigned n = 0;

	for (; at < message->bytes; at += message->segment, n++) {
		size_t rest = message->bytes - at;

		queue->repaired++;
		sl_udp_receive(udp, queue->poller, b->linear[number] + at,
			       rest < message->segment ? rest : message->segment, &queue->in,
			       message->marked, now_ns);
	}
	return n;
}

/* Datagrams 0..n-1 of this call. When one is not what was expected, it and all that follow are put
 * together elsewhere before any of them is placed: they may lie where another of them belongs. */
static unsigned take(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned n, uint64_t now_ns)
{
	struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	struct sl_udp_message *laid = b->laid;
	unsigned packets = 0, i = 0;
	size_t at = 0;

	for (; i < n; i++) {
		unsigned here = take_guessed(udp, queue, &laid[i], now_ns);

		packets += here;
		at = (size_t)here * laid[i].segment;
		if (at < laid[i].bytes)
			break;
	}
	for (unsigned k = i; k < n; k++)
		collect_rest(b, k, k == i ? at : 0);
	for (unsigned k = i; k < n; k++)
		packets += take_linear(udp, queue, k, k == i ? at : 0, now_ns);
	return packets;
}

/* What the kernel says about a datagram that arrived. */
static void arrived(struct sl_udp_queue *queue, struct sl_udp_message *message,
		    const struct msghdr *header, size_t bytes)
{
	uint32_t segment = sl_net_segment_bytes(header), together;

	message->bytes = bytes < SL_UDP_DATAGRAM_MAX ? bytes : SL_UDP_DATAGRAM_MAX;
	message->segment = segment && segment < message->bytes ? segment : (uint32_t)message->bytes;
	message->marked = (sl_net_class(header) & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
	together = bytes ? (uint32_t)((bytes + message->segment - 1) / message->segment) : 1;
	/* A running average, so that a short one at the end of a block changes nothing. */
	queue->eighths = 8 * together > queue->eighths ? 8 * together
						       : (7 * queue->eighths + 8 * together) / 8;
}

/* How many packets a datagram brings, lately. */
static unsigned usual(const struct sl_udp_queue *queue)
{
	return queue->eighths < 8 ? 1 : (queue->eighths + 4) / 8;
}

static unsigned receive_one(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t now_ns)
{
	struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	struct msghdr header = {.msg_iov = b->laid[0].iov,
				.msg_control = b->control[0],
				.msg_controllen = sizeof(b->control[0])};
	ssize_t n;

	lay_out(udp, queue, 0, SL_UDP_SEGMENTS, &b->laid[0]);
	header.msg_iovlen = b->laid[0].iovs;
	n = recvmsg(queue->fd, &header, MSG_DONTWAIT);
	if (n <= 0)
		return n == 0; /* an empty one is none of ours */
	arrived(queue, &b->laid[0], &header, (size_t)n);
	return take(udp, queue, 1, now_ns);
}

static unsigned receive_many(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned most,
			     uint64_t now_ns)
{
	struct sl_udp_buffers *b = &udp->buffers[queue->poller];
	unsigned packets, count = 0, guesses = 0;
	unsigned together = usual(queue);
	int n;

	if (most > queue->batch)
		most = queue->batch;
	for (; count < most && guesses + together <= SL_UDP_BATCH; count++) {
		unsigned i = count;

		/* A line of several packets, the last shorter, comes as one datagram. */
		lay_out(udp, queue, guesses, together, &b->laid[i]);
		guesses += b->laid[i].guesses;
		b->message[i].msg_hdr = (struct msghdr){.msg_iov = b->laid[i].iov,
							.msg_iovlen = b->laid[i].iovs,
							.msg_control = b->control[i],
							.msg_controllen = sizeof(b->control[i])};
	}
	n = recvmmsg(queue->fd, b->message, count, MSG_DONTWAIT, NULL);
	/* Guesses cost time, and most are made in vain when little comes. */
	if (n == (int)queue->batch && queue->batch < SL_UDP_BATCH)
		queue->batch *= 2;
	else if (n < (int)queue->batch / 2 && queue->batch > BATCH_MIN)
		queue->batch /= 2;
	for (int i = 0; i < n; i++)
		arrived(queue, &b->laid[i], &b->message[i].msg_hdr, b->message[i].msg_len);
	packets = n > 0 ? take(udp, queue, (unsigned)n, now_ns) : 0;
	return packets || n <= 0 ? packets : (unsigned)n;
}

unsigned sl_udp_flow_poll(struct sl_udp *udp, struct sl_udp_queue *queue, unsigned budget,
			  uint64_t now_ns)
{
	unsigned packets = 0;

	while (packets < budget) {
		unsigned n;

		queue->expected = sl_placer_expected(&queue->placer);
		sl_udp_note_reading(queue,
				    usual(queue) >= MANY ? SL_UDP_SEGMENTS : MANY * queue->batch);
		n = usual(queue) >= MANY ? receive_one(udp, queue, now_ns)
					 : receive_many(udp, queue, budget - packets, now_ns);
		if (!n)
			break;
		packets += n;
	}
	return packets;
}
