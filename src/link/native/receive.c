/* receive.c - packets of a detector's port: the kernel gets the places of those that are
 * expected next, so that its copy is the only one.
 *
 * For each packet that should come next there is a list of [header, pieces of its place]. What
 * arrives is believed by its header. When it is the one that was expected, it is where it belongs.
 * When it is not (something was lost, doubled or overtaken, or comes from somebody else), it is put
 * together in a buffer, with all that came after it in the same call, and judged and placed from
 * there.
 *
 * Nothing is predicted into a cell that is not open, nor over bytes that were received: a wrong
 * guess leaves its traces only in bytes that nobody has been promised (invariant EXCLUSIVE). */
#include <string.h>

#include "base/clock.h"
#include "link/native/native.h"

enum {
	MANY = 4, /* packets in a datagram from which on one datagram per call is best */
	BATCH_MIN = 4,
};

static uint32_t packet_bytes(const struct sl_native *native, const struct sl_native_queue *queue)
{
	return native->format->header_bytes + queue->placer.shape.payload;
}

/* Guess `number` of this call: the n'th packet of the port's stream, appended to the message. */
static void guess_at(struct sl_native *native, struct sl_native_queue *queue,
		     const struct sl_native_port *port, unsigned number, uint64_t n,
		     struct sl_native_message *message)
{
	struct sl_native_buffers *b = &native->buffers[queue->poller];
	struct sl_native_guess *guess = &b->guess[number];
	struct sl_native_piece piece[SL_NATIVE_PIECES];
	struct iovec *iov = &message->iov[message->iovs];
	uint8_t *block;
	unsigned pieces = sl_native_predict(&queue->placer, port->index, n, piece, &block);

	guess->packet = n;
	guess->placed = pieces > 0;
	*iov++ = (struct iovec){guess->header, native->format->header_bytes};
	for (unsigned i = 0; i < pieces; i++)
		*iov++ = (struct iovec){block + piece[i].at, piece[i].bytes};
	if (!pieces)
		*iov++ = (struct iovec){b->scratch[number], queue->placer.shape.payload};
	message->iovs = (unsigned)(iov - message->iov);
	message->guesses++;
}

/* Room for `most` packets in one datagram, and for anything else that may come instead. */
static void lay_out(struct sl_native *native, struct sl_native_queue *queue,
		    const struct sl_native_port *port, unsigned number, unsigned most,
		    struct sl_native_message *message)
{
	struct sl_native_buffers *b = &native->buffers[queue->poller];
	unsigned room = (SL_NATIVE_IOVS - 1) / (1 + queue->placer.shape.pieces);
	unsigned fit = SL_NATIVE_DATAGRAM / packet_bytes(native, queue);

	room = room < fit ? room : fit;
	most = most < room ? most : room;
	message->first = number;
	message->iovs = message->guesses = 0;
	for (unsigned i = 0; i < most; i++)
		guess_at(native, queue, port, number + i, port->next + number + i, message);
	message->iov[message->iovs++] =
		(struct iovec){b->overflow[message - b->message], SL_NATIVE_DATAGRAM};
}

static void count(struct sl_native *native, enum sl_drop why)
{
	atomic_fetch_add_explicit(&native->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* ---- who, and which ---- */

static bool known(const struct sl_native *native, struct sl_native_port *port,
		  const union sl_net_address *peer)
{
	uint8_t gid[SL_NET_GID_BYTES];

	if (!native->n_senders || !memcmp(peer, &port->peer, sizeof(*peer)))
		return true;
	sl_net_gid(peer, gid);
	for (unsigned i = 0; i < native->n_senders; i++)
		if (!memcmp(gid, native->sender[i], sizeof(gid))) {
			port->peer = *peer;
			return true;
		}
	return false;
}

/* Whether a packet is one of this module, where headers say so. */
static bool belongs(const struct sl_native *native, const struct sl_native_queue *queue,
		    const struct sl_native_header *header)
{
	return !native->format->names_module || header->module == queue->placer.plan.module;
}

/* False: it is counted, and has no place. */
static bool find(struct sl_native *native, struct sl_native_queue *queue,
		 const struct sl_native_port *port, const uint8_t *bytes,
		 struct sl_native_where *where)
{
	struct sl_native_header header = {0};

	if (!native->format->read(native, bytes, &header)) {
		count(native, SL_DROP_MALFORMED);
		return false;
	}
	if (!belongs(native, queue, &header)) {
		count(native, SL_DROP_QUEUE);
		return false;
	}
	where->port = port->index;
	where->timestamp = header.timestamp;
	where->cell = header.cell;
	return sl_native_find(&queue->placer, header.number, header.packet, where);
}

static uint64_t stream_of(const struct sl_native_queue *queue, const struct sl_native_where *where)
{
	return where->sequence * queue->placer.shape.packets + where->packet;
}

static void advance(struct sl_native_port *port, uint64_t n)
{
	if (n >= port->next)
		port->next = n + 1;
}

/* ---- taking ---- */

/* A packet that is in one piece, wherever that is. */
static void take_linear(struct sl_native *native, struct sl_native_queue *queue,
			struct sl_native_port *port, const uint8_t *data, size_t bytes,
			uint64_t now_ns)
{
	struct sl_native_where where;

	if (bytes != packet_bytes(native, queue)) {
		count(native, SL_DROP_MALFORMED);
		return;
	}
	if (!find(native, queue, port, data, &where))
		return;
	advance(port, stream_of(queue, &where));
	sl_native_put(&queue->placer, &where, data + native->format->header_bytes, now_ns);
}

/* A packet as it was laid out. True when it is the one that was expected: then it is taken, and in
 * place. */
static bool take_guessed(struct sl_native *native, struct sl_native_queue *queue,
			 struct sl_native_port *port, unsigned number, uint64_t now_ns)
{
	const struct sl_native_guess *guess = &native->buffers[queue->poller].guess[number];
	struct sl_native_header header = {0};
	struct sl_native_where where = {.port = port->index};

	if (!guess->placed || !native->format->read(native, guess->header, &header) ||
	    !belongs(native, queue, &header) ||
	    !sl_native_expected(&queue->placer, header.number, header.packet, guess->packet,
				&where))
		return false;
	where.timestamp = header.timestamp;
	where.cell = header.cell;
	advance(port, guess->packet);
	sl_native_put(&queue->placer, &where, NULL, now_ns);
	return true;
}

/* How many packets of a datagram came as guessed; those are taken. */
static unsigned take_in_place(struct sl_native *native, struct sl_native_queue *queue,
			      struct sl_native_port *port, const struct sl_native_message *message,
			      uint64_t now_ns)
{
	uint32_t each = packet_bytes(native, queue);
	unsigned n = 0;

	if (message->segment != each || !known(native, port, &message->peer))
		return 0;
	while (n < message->guesses && (n + 1) * (size_t)each <= message->bytes &&
	       take_guessed(native, queue, port, message->first + n, now_ns))
		n++;
	return n;
}

static unsigned take_rest(struct sl_native *native, struct sl_native_queue *queue,
			  struct sl_native_port *port, unsigned number, size_t at, uint64_t now_ns)
{
	const struct sl_native_buffers *b = &native->buffers[queue->poller];
	const struct sl_native_message *message = &b->message[number];
	bool stranger = !known(native, port, &message->peer);
	unsigned n = 0;

	if (!message->bytes)
		count(native, SL_DROP_MALFORMED);
	for (; at < message->bytes; at += message->segment, n++) {
		size_t rest = message->bytes - at;

		if (stranger)
			count(native, SL_DROP_PEER);
		else
			take_linear(native, queue, port, b->linear[number] + at,
				    rest < message->segment ? rest : message->segment, now_ns);
	}
	return n ? n : 1;
}

/* Datagrams 0..n-1 of this call. When one is not what was expected, it and all that follow are put
 * together elsewhere before any of them is placed: they may lie where another of them belongs. */
static unsigned take(struct sl_native *native, struct sl_native_queue *queue,
		     struct sl_native_port *port, unsigned n, uint64_t now_ns)
{
	struct sl_native_buffers *b = &native->buffers[queue->poller];
	unsigned packets = 0, i = 0;
	size_t at = 0;

	for (; i < n; i++) {
		unsigned here = take_in_place(native, queue, port, &b->message[i], now_ns);

		packets += here;
		at = (size_t)here * b->message[i].segment;
		if (at < b->message[i].bytes || !b->message[i].bytes)
			break;
	}
	for (unsigned k = i; k < n; k++) {
		size_t from = k == i ? at : 0;

		sl_net_collect(b->message[k].iov, b->message[k].iovs, from,
			       b->message[k].bytes - from, b->linear[k] + from);
	}
	for (unsigned k = i; k < n; k++)
		packets += take_rest(native, queue, port, k, k == i ? at : 0, now_ns);
	return packets;
}

/* ---- calls ---- */

static void prepare(const struct sl_native *native, struct sl_native_buffers *b, unsigned i)
{
	struct sl_native_message *message = &b->message[i];

	b->header[i].msg_hdr = (struct msghdr){
		.msg_iov = message->iov,
		.msg_iovlen = message->iovs,
		.msg_control = b->control[i],
		.msg_controllen = sizeof(b->control[i]),
	};
	if (!native->n_senders)
		return;
	memset(&message->peer, 0, sizeof(message->peer));
	b->header[i].msg_hdr.msg_name = &message->peer;
	b->header[i].msg_hdr.msg_namelen = sizeof(message->peer);
}

/* What a call brought. */
static void arrived(struct sl_native_port *port, struct sl_native_message *message,
		    const struct msghdr *header, size_t bytes)
{
	uint32_t segment = sl_net_segment_bytes(header), together;

	message->bytes = bytes;
	message->segment = segment && segment < bytes ? segment : (uint32_t)bytes;
	together = bytes ? (uint32_t)((bytes + message->segment - 1) / message->segment) : 1;
	/* A running average, so that a short one now and then changes nothing. */
	port->eighths = 8 * together > port->eighths ? 8 * together
						     : (7 * port->eighths + 8 * together) / 8;
}

/* How many packets a datagram brings, lately. */
static unsigned usual(const struct sl_native_port *port)
{
	return port->eighths < 8 ? 1 : (port->eighths + 4) / 8;
}

static unsigned receive_one(struct sl_native *native, struct sl_native_queue *queue,
			    struct sl_native_port *port, uint64_t now_ns)
{
	struct sl_native_buffers *b = &native->buffers[queue->poller];
	ssize_t n;

	lay_out(native, queue, port, 0, SL_NATIVE_SEGMENTS, &b->message[0]);
	prepare(native, b, 0);
	n = recvmsg(port->fd, &b->header[0].msg_hdr, MSG_DONTWAIT);
	if (n < 0)
		return 0;
	arrived(port, &b->message[0], &b->header[0].msg_hdr, (size_t)n);
	return take(native, queue, port, 1, now_ns);
}

static unsigned receive_many(struct sl_native *native, struct sl_native_queue *queue,
			     struct sl_native_port *port, unsigned most, uint64_t now_ns)
{
	struct sl_native_buffers *b = &native->buffers[queue->poller];
	unsigned together = usual(port), n_messages = 0, guesses = 0;
	int n;

	most = most < port->batch ? most : port->batch;
	for (; n_messages < most && guesses + together <= SL_NATIVE_BATCH; n_messages++) {
		lay_out(native, queue, port, guesses, together, &b->message[n_messages]);
		guesses += b->message[n_messages].guesses;
		prepare(native, b, n_messages);
	}
	n = recvmmsg(port->fd, b->header, n_messages, MSG_DONTWAIT, NULL);
	/* Guesses cost time, and most are made in vain when little comes. */
	if (n == (int)port->batch && port->batch < SL_NATIVE_BATCH)
		port->batch *= 2;
	else if (n < (int)port->batch / 2 && port->batch > BATCH_MIN)
		port->batch /= 2;
	for (int i = 0; i < n; i++)
		arrived(port, &b->message[i], &b->header[i].msg_hdr, b->header[i].msg_len);
	return n > 0 ? take(native, queue, port, (unsigned)n, now_ns) : 0;
}

static unsigned poll_port(struct sl_native *native, struct sl_native_queue *queue,
			  struct sl_native_port *port, unsigned budget, uint64_t now_ns,
			  bool *drained)
{
	unsigned packets = 0;

	if (!port->batch)
		port->batch = BATCH_MIN;
	while (packets < budget) {
		unsigned n = usual(port) >= MANY
				     ? receive_one(native, queue, port, now_ns)
				     : receive_many(native, queue, port, budget - packets, now_ns);

		if (!n)
			return packets;
		packets += n;
	}
	*drained = false;
	return packets;
}

int sl_native_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_native *native = state;
	uint64_t now_ns = sl_clock_ns();
	unsigned n = 0;

	sl_ring_enter(native->env.ring, poller);
	for (uint32_t m = 0; m < native->queues; m++) {
		struct sl_native_queue *queue = &native->queue[m];
		bool drained = true;

		/* Acquire: pairs with the release in accept. */
		if (!atomic_load_explicit(&queue->active, memory_order_acquire) ||
		    queue->poller != poller)
			continue;
		for (uint32_t i = 0; i < queue->ports; i++)
			n += poll_port(native, queue, &queue->port[i], budget, now_ns, &drained);
		sl_native_reach(&queue->placer, drained);
	}
	sl_ring_leave(native->env.ring, poller);
	return (int)n;
}
