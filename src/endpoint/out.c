/* out.c - packets leave: sealed, gathered from where their bytes lie, a batch per system call.
 *
 * A packet points into the caller's memory only while a poll lasts. What a full socket does not
 * take is copied before the poll returns, so that nobody has to wait for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "endpoint/state.h"

int sl_out_init(struct sl_endpoint *endpoint)
{
	endpoint->out_bytes = malloc((size_t)SL_OUT_BATCH * SL_PACKET_BYTES);
	if (!endpoint->out_bytes)
		return -ENOMEM;
	for (size_t i = 0; i < SL_OUT_BATCH; i++)
		endpoint->out_packet[i].copy = endpoint->out_bytes + i * SL_PACKET_BYTES;
	return 0;
}

void sl_out_fini(struct sl_endpoint *endpoint)
{
	free(endpoint->out_bytes);
}

bool sl_out_room(struct sl_endpoint *endpoint)
{
	unsigned need = endpoint->holder ? SL_FAULT_EXTRA : 1;

	if (endpoint->out_count + need > SL_OUT_BATCH)
		sl_out_flush(endpoint);
	return endpoint->out_count + need <= SL_OUT_BATCH;
}

uint8_t *sl_out_headers(struct sl_endpoint *endpoint)
{
	return endpoint->out_packet[endpoint->out_count].headers;
}

/* Payload has its place behind room for the headers: see sl_out_linear(). */
static uint8_t *body(const struct sl_out *packet)
{
	return packet->copy + SL_ROCE_HEADERS_MAX;
}

#ifdef __SANITIZE_THREAD__ /* which knows no fences: every load carries its order itself */
static void copy_shared(uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t i = 0;

	for (; i < bytes && (uintptr_t)(from + i) % 8; i++)
		to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
	for (; bytes - i >= 8; i += 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(from + i),
						__ATOMIC_ACQUIRE);

		memcpy(to + i, &word, sizeof(word));
	}
	for (; i < bytes; i++)
		to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
}

static void fence(void)
{
}
#else
/* Aligned words of 8 bytes are read whole: memcpy() of every libc that we build with does so. */
static void copy_shared(uint8_t *to, const uint8_t *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Sequentially consistent, since memcpy() may use instructions that weaker fences do not order. */
static void fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
#endif

/* A peer that READs what another thread writes (src/share) reasons with the order of its packets:
 * what an earlier one brought was read before what this one brings. */
static void copy_pieces(const struct sl_out *packet, struct sl_roce_piece *pieces, unsigned *count)
{
	uint8_t *p = body(packet);

	fence();
	for (unsigned i = 0; i < *count; i++) {
		copy_shared(p, pieces[i].data, pieces[i].bytes);
		p += pieces[i].bytes;
	}
	pieces[0] = (struct sl_roce_piece){body(packet), (size_t)(p - body(packet))};
	*count = 1;
}

/* ---- messages of several packets ---- */

/* Whether a packet goes out with those before it in one message, to be cut from it by the kernel:
 * all of one length, but the last may be shorter, and of one queue pair, whose peer can so foretell
 * their identifications. */
static bool may_join(const struct sl_endpoint *endpoint, const struct sl_packet_to *to,
		     uint32_t bytes)
{
	const struct sl_out *last;

	if (!endpoint->segments || !to->joins || endpoint->together_ended || !endpoint->out_count)
		return false;
	last = &endpoint->out_packet[endpoint->out_count - 1];
	return bytes <= endpoint->together_bytes && last->number + 1 < SL_TOGETHER_PACKETS &&
	       (last->number + 2u) * endpoint->together_bytes <= SL_TOGETHER_BYTES &&
	       to->path == endpoint->together_path;
}

static void number(struct sl_endpoint *endpoint, const struct sl_packet_to *to, uint32_t bytes)
{
	struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];

	if (may_join(endpoint, to, bytes)) {
		packet->number = (uint16_t)(packet[-1].number + 1);
		endpoint->together_ended = bytes < endpoint->together_bytes;
	} else {
		packet->number = 0;
		endpoint->together_bytes = bytes;
		endpoint->together_path = to->path;
		endpoint->together_ended = !to->joins;
	}
	packet->to = *to->address;
	packet->to_bytes = to->bytes;
}

void sl_out_commit(struct sl_endpoint *endpoint, const struct sl_packet_to *to,
		   uint32_t header_bytes, const struct sl_roce_piece *pieces, unsigned count,
		   bool copied)
{
	struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];
	struct sl_roce_path path = *to->path;
	struct sl_roce_piece payload[SL_QP_PIECES];
	size_t trailer, bytes = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		payload[i] = pieces[i];
		bytes += pieces[i].bytes;
	}
	if (copied && count)
		copy_pieces(packet, payload, &count);
	number(endpoint, to, (uint32_t)(header_bytes + (bytes + 3) / 4 * 4 + SL_ROCE_ICRC_BYTES));
	path.ip_id = packet->number; /* the kernel counts the packets of a message there */
	trailer = sl_roce_seal(&path, packet->headers, header_bytes, payload, count, sl_crc32,
			       packet->trailer);
	packet->piece[n++] = (struct iovec){packet->headers, header_bytes};
	for (unsigned i = 0; i < count; i++)
		packet->piece[n++] = (struct iovec){(void *)payload[i].data, payload[i].bytes};
	packet->piece[n++] = (struct iovec){packet->trailer, trailer};
	packet->pieces = n;
	if (copied) /* in one piece the kernel copies it faster */
		sl_out_linear(endpoint, endpoint->out_count);
	if (endpoint->holder)
		sl_fault_apply(endpoint);
	else
		endpoint->out_count++;
}

void sl_out_add(struct sl_endpoint *endpoint, const void *bytes, size_t count,
		const union sl_net_address *to, socklen_t to_bytes)
{
	struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];

	memcpy(packet->copy, bytes, count);
	packet->piece[0] = (struct iovec){packet->copy, count};
	packet->pieces = 1;
	packet->number = 0;
	packet->to = *to;
	packet->to_bytes = to_bytes;
	endpoint->together_ended = true;
	endpoint->out_count++;
}

size_t sl_out_linear(struct sl_endpoint *endpoint, unsigned index)
{
	struct sl_out *packet = &endpoint->out_packet[index];
	size_t header_bytes = packet->piece[0].iov_len;
	uint8_t *p = body(packet);

	if (packet->pieces == 1)
		return header_bytes;
	memcpy(p - header_bytes, packet->piece[0].iov_base, header_bytes);
	for (unsigned i = 1; i < packet->pieces; i++) {
		/* A copied payload is there already. */
		if (packet->piece[i].iov_base != p)
			memcpy(p, packet->piece[i].iov_base, packet->piece[i].iov_len);
		p += packet->piece[i].iov_len;
	}
	packet->piece[0].iov_base = body(packet) - header_bytes;
	packet->piece[0].iov_len = (size_t)(p - body(packet)) + header_bytes;
	packet->pieces = 1;
	return packet->piece[0].iov_len;
}

/* ---- to the kernel ---- */

static size_t length_of(const struct sl_out *packet)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < packet->pieces; i++)
		bytes += packet->piece[i].iov_len;
	return bytes;
}

/* What waits, as messages. */
static unsigned gather(struct sl_endpoint *endpoint)
{
	struct iovec *piece = endpoint->out_piece;
	unsigned messages = 0;

	for (unsigned i = endpoint->out_first; i < endpoint->out_count; i++) {
		struct sl_out *packet = &endpoint->out_packet[i];
		struct msghdr *message;

		if (!packet->number)
			endpoint->out[messages++].msg_hdr = (struct msghdr){
				.msg_name = &packet->to,
				.msg_namelen = packet->to_bytes,
				.msg_iov = piece,
			};
		message = &endpoint->out[messages - 1].msg_hdr;
		memcpy(piece, packet->piece, packet->pieces * sizeof(*piece));
		piece += packet->pieces;
		message->msg_iovlen += packet->pieces;
		if (packet->number == 1)
			sl_net_segment(message, endpoint->out_control[messages - 1],
				       (uint16_t)length_of(packet - 1));
	}
	return messages;
}

/* The first message that waits is done with. How many packets it had. */
static unsigned drop_message(struct sl_endpoint *endpoint)
{
	unsigned first = endpoint->out_first++;

	while (endpoint->out_first < endpoint->out_count &&
	       endpoint->out_packet[endpoint->out_first].number)
		endpoint->out_first++;
	return endpoint->out_first - first;
}

static void count_sent(struct sl_endpoint *endpoint, unsigned messages)
{
	for (unsigned i = 0; i < messages; i++) {
		endpoint->counters.sent_bytes += endpoint->out[i].msg_len;
		endpoint->counters.sent += drop_message(endpoint);
	}
}

/* A path that takes no messages of several packets says so with one of many errors. */
static void refused(struct sl_endpoint *endpoint, int err)
{
	unsigned packets = drop_message(endpoint);

	endpoint->counters.unsent += packets;
	endpoint->counters.send_error = err;
	if (packets > 1)
		endpoint->segments = false;
}

void sl_out_flush(struct sl_endpoint *endpoint)
{
	while (endpoint->out_first < endpoint->out_count) {
		int n = sendmmsg(endpoint->fd, endpoint->out, gather(endpoint), 0);

		if (n > 0) {
			count_sent(endpoint, (unsigned)n);
		} else if (errno == EAGAIN || errno == ENOBUFS) {
			for (unsigned i = endpoint->out_first; i < endpoint->out_count; i++)
				sl_out_linear(endpoint, i);
			return;
		} else if (errno != EINTR) {
			refused(endpoint, -errno);
		}
	}
	endpoint->out_first = endpoint->out_count = 0;
}
