/* predict.h - packets of one UDP stream, received where they belong: the receiver that the links
 * `udp`, `sls` and `nanet` share.
 *
 * Model:     packets of a stream come in order, as a rule. The kernel gets the places of those that
 *            should come next, as a list of [header, final place, trailer] for each: its copy is
 *            the only one. A datagram may bring several packets of one length (GRO); how many it
 *            brought lately decides how many are expected in the next.
 *            Each packet that arrives is compared with the expected one. The first that differs
 *            (a packet was lost, doubled or overtaken, or another sender's came) and all later ones
 *            of the same system call are put together in a buffer before any of them is placed:
 *            they may lie where another of them belongs. Then they are taken one by one.
 *            Nothing is predicted into a slot that is not open, nor over bytes that were received:
 *            lay_out() gives scratch memory then. A wrong guess leaves its traces only in bytes
 *            that no reader has been promised (invariant EXCLUSIVE).
 * Threads:   a stream and a batch belong to one link thread, between sl_ring_enter and
 *            sl_ring_leave.
 * Ownership: all memory and the socket are the caller's. Buffers are touched only when needed.
 * Cost:      one system call for a batch of datagrams, no allocation. Every function is inlined
 *            into the caller of sl_predict_poll(); `ops` must be the address of a `static const`
 *            table, so that its operations are inlined, too: no call through a pointer per packet.
 */
#ifndef SL_LINK_PREDICT_H
#define SL_LINK_PREDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "net/net.h"

#define SL_PREDICT_FN static inline __attribute__((always_inline))

enum {
	SL_PREDICT_BATCH = 64, /* datagrams, and expected packets, of one system call */
	SL_PREDICT_BATCH_MIN = 4,
	SL_PREDICT_MANY = 4,	       /* packets in a datagram: with more, one datagram per call */
	SL_PREDICT_DATAGRAM = 1 << 16, /* bytes; no UDP datagram has more */
	SL_PREDICT_PIECES = 33,	       /* of memory that one packet is laid out in, at most */
	SL_PREDICT_IOVS = 1024,	       /* of one datagram: IOV_MAX */
};

struct sl_predict_stream {
	uint32_t eighths;	    /* of packets that a datagram brought: running average */
	uint32_t batch;		    /* datagrams to make room for in one call */
	bool peers;		    /* arrived() wants to know the sender's address */
	uint64_t guessed, repaired; /* packets taken in place, and out of a buffer */
};

struct sl_predict_datagram {
	unsigned first, guesses; /* which packets are expected in it */
	unsigned iovs;
	struct iovec *iov;
	size_t bytes;	  /* that came */
	uint32_t segment; /* bytes of each packet in it; the last may be shorter */
	bool marked;	  /* by a switch: there is congestion */
	bool foreign;	  /* not from this stream's sender: nothing of it is taken in place */
};

struct sl_predict_batch { /* of one system call */
	struct mmsghdr header[SL_PREDICT_BATCH];
	struct sl_predict_datagram datagram[SL_PREDICT_BATCH];
	union sl_net_address peer[SL_PREDICT_BATCH];
	_Alignas(8) uint8_t control[SL_PREDICT_BATCH][SL_NET_CONTROL_BYTES];
	uint32_t packet_bytes[SL_PREDICT_BATCH]; /* of each expected packet */
	struct iovec iov[SL_PREDICT_BATCH * (SL_PREDICT_PIECES + 1)];
	uint8_t overflow[SL_PREDICT_BATCH][SL_PREDICT_DATAGRAM]; /* behind what is expected */
	uint8_t linear[SL_PREDICT_BATCH][SL_PREDICT_DATAGRAM]; /* where the rest is put together */
};

/* What a format knows. `flow` is what sl_predict_poll() was given. */
struct sl_predict_ops {
	/* Before a system call that is expected to bring at most `most` packets. Returns which
	 * packet of the stream should come next. */
	uint64_t (*next)(void *flow, unsigned most);

	/* Expect the n'th packet of the stream, as guess `number` of this call: the memory for its
	 * header, payload and trailer, in `*iovs` entries. Returns the bytes of the packet. */
	uint32_t (*lay_out)(void *flow, unsigned number, uint64_t n, struct iovec *iov,
			    unsigned *iovs);

	/* A datagram came with this message header: set `marked` and `foreign`; both are false. */
	void (*arrived)(void *flow, struct sl_predict_datagram *datagram,
			const struct msghdr *header);

	/* A packet of the expected length came as guess `number`. False if it is another packet
	 * than the expected one; true: it was taken. */
	bool (*take_guessed)(void *flow, const struct sl_predict_datagram *datagram,
			     unsigned number);

	/* Any other packet, in one piece. An empty datagram is a packet of 0 bytes. */
	void (*take_other)(void *flow, const struct sl_predict_datagram *datagram,
			   const uint8_t *data, size_t bytes);
};

/* Packets that a datagram brings, lately. */
SL_PREDICT_FN unsigned sl_predict_usual(const struct sl_predict_stream *stream)
{
	return stream->eighths < 8 ? 1 : (stream->eighths + 4) / 8;
}

/* Room for at most `most` packets in datagram d, guess `number` and on, and behind them for any
 * other datagram that may come instead. */
SL_PREDICT_FN void sl_predict_lay_out(const struct sl_predict_ops *ops, void *flow,
				      struct sl_predict_batch *b, unsigned d, unsigned number,
				      unsigned most, uint64_t next)
{
	struct sl_predict_datagram *datagram = &b->datagram[d];
	uint32_t *bytes = &b->packet_bytes[number];
	unsigned n = 0, iovs = 0, pieces;
	size_t all = 0;

	for (; n < most && all < SL_PREDICT_DATAGRAM && iovs + SL_PREDICT_PIECES < SL_PREDICT_IOVS;
	     n++) {
		bytes[n] = ops->lay_out(flow, number + n, next + number + n, datagram->iov + iovs,
					&pieces);
		/* The kernel puts packets of one length together; only the last may be shorter. */
		if (n && (bytes[n] > bytes[0] || bytes[n - 1] < bytes[0]))
			break;
		iovs += pieces;
		all += bytes[n];
	}
	datagram->first = number;
	datagram->guesses = n;
	datagram->iov[iovs++] = (struct iovec){b->overflow[d], SL_PREDICT_DATAGRAM};
	datagram->iovs = iovs;
}

/* Returns for how many datagrams there is room, each with `together` expected packets. */
SL_PREDICT_FN unsigned sl_predict_prepare(const struct sl_predict_ops *ops, void *flow,
					  const struct sl_predict_stream *stream,
					  struct sl_predict_batch *b, unsigned datagrams,
					  unsigned together, uint64_t next)
{
	struct iovec *iov = b->iov;
	unsigned d = 0, guesses = 0;

	for (; d < datagrams && guesses + together <= SL_PREDICT_BATCH; d++) {
		struct sl_predict_datagram *datagram = &b->datagram[d];
		struct msghdr *header = &b->header[d].msg_hdr;

		datagram->iov = iov;
		sl_predict_lay_out(ops, flow, b, d, guesses, together, next);
		guesses += datagram->guesses;
		iov += datagram->iovs;
		*header = (struct msghdr){.msg_iov = datagram->iov,
					  .msg_iovlen = datagram->iovs,
					  .msg_control = b->control[d],
					  .msg_controllen = sizeof(b->control[d])};
		if (stream->peers) {
			memset(&b->peer[d], 0, sizeof(b->peer[d]));
			header->msg_name = &b->peer[d];
			header->msg_namelen = sizeof(b->peer[d]);
		}
	}
	return d;
}

SL_PREDICT_FN void sl_predict_arrived(const struct sl_predict_ops *ops, void *flow,
				      struct sl_predict_stream *stream, struct sl_predict_batch *b,
				      unsigned d)
{
	struct sl_predict_datagram *datagram = &b->datagram[d];
	const struct msghdr *header = &b->header[d].msg_hdr;
	uint32_t bytes = b->header[d].msg_len, segment = sl_net_segment_bytes(header), together;

	bytes = bytes < SL_PREDICT_DATAGRAM ? bytes : SL_PREDICT_DATAGRAM;
	segment = segment && segment < bytes ? segment : bytes;
	together = bytes ? (bytes + segment - 1) / segment : 1;
	/* A running average: one short datagram, at the end of a block, changes little. */
	stream->eighths = 8 * together > stream->eighths ? 8 * together
							 : (7 * stream->eighths + 8 * together) / 8;
	datagram->bytes = bytes;
	datagram->segment = segment;
	datagram->marked = datagram->foreign = false;
	ops->arrived(flow, datagram, header);
}

/* The packet at byte `at` of a datagram: its length. */
SL_PREDICT_FN size_t sl_predict_length(const struct sl_predict_datagram *datagram, size_t at)
{
	size_t rest = datagram->bytes - at;

	return rest < datagram->segment ? rest : datagram->segment;
}

/* Takes the packets of a datagram that came as expected, up to the first that did not. Returns
 * their number. */
SL_PREDICT_FN unsigned sl_predict_take_guessed(const struct sl_predict_ops *ops, void *flow,
					       const struct sl_predict_batch *b,
					       const struct sl_predict_datagram *datagram)
{
	unsigned n = 0;

	if (datagram->foreign)
		return 0;
	/* A packet is in place only if each before it has the expected length. */
	for (size_t at = 0; at < datagram->bytes && n < datagram->guesses;
	     at += datagram->segment, n++)
		if (sl_predict_length(datagram, at) != b->packet_bytes[datagram->first + n] ||
		    !ops->take_guessed(flow, datagram, datagram->first + n))
			break;
	return n;
}

/* Takes datagrams 0..n-1 of this call. Returns the number of packets. */
SL_PREDICT_FN unsigned sl_predict_take(const struct sl_predict_ops *ops, void *flow,
				       struct sl_predict_stream *stream, struct sl_predict_batch *b,
				       unsigned n)
{
	unsigned guessed = 0, repaired = 0, d = 0;
	size_t at = 0;

	for (; d < n; d++) {
		unsigned here = sl_predict_take_guessed(ops, flow, b, &b->datagram[d]);

		guessed += here;
		at = (size_t)here * b->datagram[d].segment;
		if (at < b->datagram[d].bytes || !b->datagram[d].bytes)
			break;
	}
	for (unsigned k = d; k < n; k++) {
		const struct sl_predict_datagram *it = &b->datagram[k];
		size_t from = k == d ? at : 0;

		sl_net_collect(it->iov, it->iovs, from, it->bytes - from, b->linear[k] + from);
	}
	for (; d < n; d++, at = 0)
		do {
			ops->take_other(flow, &b->datagram[d], b->linear[d] + at,
					sl_predict_length(&b->datagram[d], at));
			at += b->datagram[d].segment;
			repaired++;
		} while (at < b->datagram[d].bytes);
	stream->guessed += guessed;
	stream->repaired += repaired;
	return guessed + repaired;
}

/* One system call. Returns the number of datagrams; 0 or less: the socket has none. */
SL_PREDICT_FN int sl_predict_call(int fd, struct sl_predict_stream *stream,
				  struct sl_predict_batch *b, bool one, unsigned datagrams)
{
	int n;

	if (one) {
		ssize_t bytes = recvmsg(fd, &b->header[0].msg_hdr, MSG_DONTWAIT);

		b->header[0].msg_len = bytes < 0 ? 0 : (unsigned)bytes;
		return bytes < 0 ? 0 : 1;
	}
	n = recvmmsg(fd, b->header, datagrams, MSG_DONTWAIT, NULL);
	/* Guesses cost time, and most are made in vain when little comes. */
	if (n == (int)stream->batch && stream->batch < SL_PREDICT_BATCH)
		stream->batch *= 2;
	else if (n < (int)stream->batch / 2 && stream->batch > SL_PREDICT_BATCH_MIN)
		stream->batch /= 2;
	return n;
}

/* Takes packets from the socket until it is empty or `budget` packets were taken. Returns their
 * number; less than budget: the socket was found empty. */
SL_PREDICT_FN unsigned sl_predict_poll(const struct sl_predict_ops *ops, void *flow, int fd,
				       struct sl_predict_stream *stream, struct sl_predict_batch *b,
				       unsigned budget)
{
	unsigned packets = 0;

	while (packets < budget) {
		bool one = sl_predict_usual(stream) >= SL_PREDICT_MANY;
		unsigned most = budget - packets < stream->batch ? budget - packets : stream->batch;
		uint64_t next =
			ops->next(flow, one ? SL_PREDICT_BATCH : SL_PREDICT_MANY * stream->batch);
		unsigned room =
			sl_predict_prepare(ops, flow, stream, b, one ? 1 : most,
					   one ? SL_PREDICT_BATCH : sl_predict_usual(stream), next);
		int n = sl_predict_call(fd, stream, b, one, room);

		if (n <= 0)
			break;
		for (int i = 0; i < n; i++)
			sl_predict_arrived(ops, flow, stream, b, (unsigned)i);
		packets += sl_predict_take(ops, flow, stream, b, (unsigned)n);
	}
	return packets;
}

#endif
