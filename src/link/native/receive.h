/* receive.h - packets from a detector's ports, received where they belong (link/predict.h).
 *
 * Model:     a packet is taken by its header, which the format reads: it says which packet of its
 *            port's stream it is. When that is the expected one, it is where it belongs; otherwise
 *            it is placed from a buffer. What has no place is counted by cause.
 * Threads:   the module's link thread.
 * Ownership: none; all memory is the link's.
 * Cost:      each link of the family includes this header and calls sl_native_receive() with its
 *            own constant format, so that read() is inlined. */
#ifndef SL_LINK_NATIVE_RECEIVE_H
#define SL_LINK_NATIVE_RECEIVE_H

#include <string.h>

#include "base/clock.h"
#include "link/native/native.h"
#include "link/predict.h"

_Static_assert(SL_PREDICT_PIECES >= 1 + SL_NATIVE_PIECES, "header and payload fit");

struct sl_native_flow { /* one poll of a port */
	const struct sl_native_format *format;
	struct sl_native *native;
	struct sl_native_queue *queue;
	struct sl_native_port *port;
	struct sl_native_buffers *b;
	uint64_t now_ns;
	struct sl_flight_tap *tap; /* NULL: no packet is sampled */
};

SL_PREDICT_FN void sl_native_count(struct sl_native *native, enum sl_drop why)
{
	atomic_fetch_add_explicit(&native->env.counters->dropped[why], 1, memory_order_relaxed);
}

SL_PREDICT_FN uint64_t sl_native_next(void *flow, unsigned most)
{
	const struct sl_native_flow *f = flow;

	(void)most;
	return f->port->next;
}

SL_PREDICT_FN void sl_native_advance(struct sl_native_port *port, uint64_t n)
{
	if (n >= port->next)
		port->next = n + 1;
}

SL_PREDICT_FN uint32_t sl_native_packet_bytes(const struct sl_native_flow *f)
{
	return f->format->header_bytes + f->queue->placer.shape.payload;
}

SL_PREDICT_FN uint32_t sl_native_lay_out(void *flow, unsigned number, uint64_t n, struct iovec *iov,
					 unsigned *iovs)
{
	struct sl_native_flow *f = flow;
	struct sl_native_guess *guess = &f->b->guess[number];
	struct sl_native_piece piece[SL_NATIVE_PIECES];
	uint8_t *block;
	unsigned pieces = sl_native_predict(&f->queue->placer, f->port->index, n, piece, &block);

	guess->packet = n;
	guess->placed = pieces > 0;
	if (f->queue->placer.shape.packed) /* unpacked into the block when it was recognised */
		pieces = 0;
	iov[0] = (struct iovec){guess->header, f->format->header_bytes};
	for (unsigned i = 0; i < pieces; i++)
		iov[1 + i] = (struct iovec){block + piece[i].at, piece[i].bytes};
	if (!pieces)
		iov[1] = (struct iovec){f->b->scratch[number], f->queue->placer.shape.payload};
	*iovs = 1 + (pieces ? pieces : 1);
	return sl_native_packet_bytes(f);
}

/* Whether packets of this sender are believed. */
SL_PREDICT_FN bool sl_native_known(const struct sl_native *native, struct sl_native_port *port,
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

SL_PREDICT_FN void sl_native_arrived(void *flow, struct sl_predict_datagram *datagram,
				     const struct msghdr *header)
{
	struct sl_native_flow *f = flow;

	datagram->foreign = !sl_native_known(f->native, f->port, header->msg_name);
	if (sl_flight_due(f->tap, f->now_ns))
		sl_native_sample(f->native, f->queue, f->port, f->tap, header,
				 f->b->guess[datagram->first].header, datagram->segment, f->now_ns);
}

/* Whether a packet comes from the part of the detector that this port takes, where headers say
 * so. */
SL_PREDICT_FN bool sl_native_belongs(const struct sl_native_flow *f,
				     const struct sl_native_header *header)
{
	return !((header->place ^ f->port->place) & f->native->place_mask);
}

/* The first one that does not is remembered for the control thread (stray.c). */
SL_PREDICT_FN void sl_native_count_stray(struct sl_native_flow *f,
					 const struct sl_native_header *header)
{
	if (!atomic_load_explicit(&f->port->stray, memory_order_relaxed))
		atomic_store_explicit(&f->port->stray, SL_NATIVE_STRAY | header->place,
				      memory_order_relaxed);
	sl_native_count(f->native, SL_DROP_QUEUE);
}

SL_PREDICT_FN bool sl_native_take_guessed(void *flow, const struct sl_predict_datagram *datagram,
					  unsigned number)
{
	struct sl_native_flow *f = flow;
	const struct sl_native_guess *guess = &f->b->guess[number];
	struct sl_native_header header = {0};
	struct sl_native_where where = {.port = f->port->index};
	const struct sl_native_shape *shape = &f->queue->placer.shape;

	(void)datagram;
	if (!guess->placed || !f->format->read(f->native, guess->header, &header) ||
	    !sl_native_belongs(f, &header) ||
	    !sl_native_expected(&f->queue->placer, header.number,
				header.packet - shape->first_packet[where.port], guess->packet,
				&where))
		return false;
	where.timestamp = header.timestamp;
	where.cell = header.cell;
	sl_native_advance(f->port, guess->packet);
	sl_native_put(&f->queue->placer, &where, shape->packed ? f->b->scratch[number] : NULL,
		      f->now_ns);
	return true;
}

SL_PREDICT_FN void sl_native_take_other(void *flow, const struct sl_predict_datagram *datagram,
					const uint8_t *data, size_t bytes)
{
	struct sl_native_flow *f = flow;
	struct sl_native_placer *placer = &f->queue->placer;
	struct sl_native_header header = {0};
	struct sl_native_where where = {.port = f->port->index};

	if (datagram->foreign && bytes) {
		sl_native_count(f->native, SL_DROP_PEER);
	} else if (bytes != sl_native_packet_bytes(f) ||
		   !f->format->read(f->native, data, &header)) {
		sl_native_count(f->native, SL_DROP_MALFORMED);
	} else if (!sl_native_belongs(f, &header)) {
		sl_native_count_stray(f, &header);
	} else if (sl_native_find(placer, header.number,
				  header.packet - placer->shape.first_packet[where.port], &where)) {
		where.timestamp = header.timestamp;
		where.cell = header.cell;
		sl_native_advance(f->port, where.sequence * placer->shape.packets + where.packet);
		sl_native_put(placer, &where, data + f->format->header_bytes, f->now_ns);
	}
}

static const struct sl_predict_ops sl_native_predict_ops = {
	.next = sl_native_next,
	.lay_out = sl_native_lay_out,
	.arrived = sl_native_arrived,
	.take_guessed = sl_native_take_guessed,
	.take_other = sl_native_take_other,
};

/* poll() of a link (core/link.h). */
SL_PREDICT_FN int sl_native_receive(const struct sl_native_format *format, struct sl_native *native,
				    unsigned poller, unsigned budget)
{
	struct sl_native_flow f = {.format = format,
				   .native = native,
				   .b = &native->buffers[poller],
				   .now_ns = sl_clock_ns(),
				   .tap = native->env.flight ? &native->env.flight[poller] : NULL};
	unsigned packets = 0;

	sl_ring_enter(native->env.ring, poller);
	for (uint32_t m = 0; m < native->queues; m++) {
		unsigned before = packets;
		bool drained = true;

		f.queue = &native->queue[m];
		/* Acquire: pairs with the release in accept. */
		if (!atomic_load_explicit(&f.queue->active, memory_order_acquire) ||
		    f.queue->poller != poller)
			continue;
		for (uint32_t i = 0; i < f.queue->ports; i++) {
			unsigned n;

			f.port = &f.queue->port[i];
			n = sl_predict_poll(&sl_native_predict_ops, &f, f.port->fd, &f.port->stream,
					    &f.b->predict, budget);
			drained = drained && n < budget;
			packets += n;
		}
		sl_native_reach(&f.queue->placer, drained);
		sl_ring_looked(native->env.ring, f.queue->placer.plan.module,
			       sl_look_pass(&f.queue->look, f.now_ns, packets - before, drained));
	}
	sl_ring_leave(native->env.ring, poller);
	return (int)packets;
}

#endif
