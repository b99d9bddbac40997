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
	for (size_t i = 0; i < SL_OUT_BATCH; i++) {
		struct sl_out *packet = &endpoint->out_packet[i];

		packet->copy = endpoint->out_bytes + i * SL_PACKET_BYTES;
		endpoint->out[i].msg_hdr.msg_name = &packet->to;
		endpoint->out[i].msg_hdr.msg_iov = packet->piece;
	}
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

static void copy_pieces(const struct sl_out *packet, struct sl_roce_piece *pieces, unsigned *count)
{
	uint8_t *p = body(packet);

	for (unsigned i = 0; i < *count; i++) {
		memcpy(p, pieces[i].data, pieces[i].bytes);
		p += pieces[i].bytes;
	}
	pieces[0] = (struct sl_roce_piece){body(packet), (size_t)(p - body(packet))};
	*count = 1;
}

void sl_out_commit(struct sl_endpoint *endpoint, const struct sl_packet_to *to,
		   uint32_t header_bytes, const struct sl_roce_piece *pieces, unsigned count,
		   bool copied)
{
	struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];
	struct msghdr *message = &endpoint->out[endpoint->out_count].msg_hdr;
	struct sl_roce_piece payload[SL_QP_PIECES];
	size_t n = 0;

	for (unsigned i = 0; i < count; i++)
		payload[i] = pieces[i];
	if (copied && count)
		copy_pieces(packet, payload, &count);
	packet->piece[n++] = (struct iovec){packet->headers, header_bytes};
	for (unsigned i = 0; i < count; i++)
		packet->piece[n++] = (struct iovec){(void *)payload[i].data, payload[i].bytes};
	packet->piece[n++] = (struct iovec){
		packet->trailer, sl_roce_seal(to->path, packet->headers, header_bytes, payload,
					      count, sl_crc32, packet->trailer)};
	message->msg_iovlen = n;
	packet->to = *to->address;
	message->msg_namelen = to->bytes;
	if (endpoint->holder)
		sl_fault_apply(endpoint);
	else
		endpoint->out_count++;
}

void sl_out_add(struct sl_endpoint *endpoint, const void *bytes, size_t count,
		const union sl_net_address *to, socklen_t to_bytes)
{
	struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];
	struct msghdr *message = &endpoint->out[endpoint->out_count].msg_hdr;

	memcpy(packet->copy, bytes, count);
	packet->piece[0] = (struct iovec){packet->copy, count};
	message->msg_iovlen = 1;
	packet->to = *to;
	message->msg_namelen = to_bytes;
	endpoint->out_count++;
}

size_t sl_out_linear(struct sl_endpoint *endpoint, unsigned index)
{
	struct sl_out *packet = &endpoint->out_packet[index];
	struct msghdr *message = &endpoint->out[index].msg_hdr;
	size_t header_bytes = packet->piece[0].iov_len;
	uint8_t *p = body(packet);

	if (message->msg_iovlen == 1)
		return header_bytes;
	memcpy(p - header_bytes, packet->piece[0].iov_base, header_bytes);
	for (size_t i = 1; i < message->msg_iovlen; i++) {
		/* A copied payload is there already. */
		if (packet->piece[i].iov_base != p)
			memcpy(p, packet->piece[i].iov_base, packet->piece[i].iov_len);
		p += packet->piece[i].iov_len;
	}
	packet->piece[0].iov_base = body(packet) - header_bytes;
	packet->piece[0].iov_len = (size_t)(p - body(packet)) + header_bytes;
	message->msg_iovlen = 1;
	return packet->piece[0].iov_len;
}

static void count_sent(struct sl_endpoint *endpoint, unsigned count)
{
	endpoint->counters.sent += count;
	for (; count; count--)
		endpoint->counters.sent_bytes += endpoint->out[endpoint->out_first++].msg_len;
}

void sl_out_flush(struct sl_endpoint *endpoint)
{
	while (endpoint->out_first < endpoint->out_count) {
		int n = sendmmsg(endpoint->fd, endpoint->out + endpoint->out_first,
				 endpoint->out_count - endpoint->out_first, 0);

		if (n > 0) {
			count_sent(endpoint, (unsigned)n);
		} else if (errno == EAGAIN || errno == ENOBUFS) {
			for (unsigned i = endpoint->out_first; i < endpoint->out_count; i++)
				sl_out_linear(endpoint, i);
			return;
		} else if (errno != EINTR) {
			endpoint->counters.unsent++;
			endpoint->counters.send_error = -errno;
			endpoint->out_first++;
		}
	}
	endpoint->out_first = endpoint->out_count = 0;
}
