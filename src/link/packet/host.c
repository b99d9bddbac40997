/* host.c - what links that see whole packets share: the interface of an address, the port
 * that must not seem closed, and packets on their way to the udp link's judgement. */
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "link/packet/packet.h"

static bool has_address(const struct ifaddrs *i, const uint8_t gid[SL_ROCE_GID_BYTES])
{
	uint8_t own[SL_ROCE_GID_BYTES];
	union sl_net_address address;

	if (!i->ifa_addr ||
	    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
		return false;
	memcpy(&address, i->ifa_addr,
	       i->ifa_addr->sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
	sl_net_gid(&address, own);
	return !memcmp(own, gid, sizeof(own));
}

unsigned sl_packet_interface(const uint8_t gid[SL_ROCE_GID_BYTES])
{
	struct ifaddrs *all, *i;
	unsigned index = 0;

	if (getifaddrs(&all))
		return 0;
	for (i = all; i && !index; i = i->ifa_next)
		if (has_address(i, gid))
			index = if_nametoindex(i->ifa_name);
	freeifaddrs(all);
	return index;
}

int sl_packet_guard(const uint8_t gid[SL_ROCE_GID_BYTES], uint16_t port)
{
	struct sock_filter nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
	struct sock_fprog program = {1, nothing};
	union sl_net_address at;
	socklen_t bytes = sl_net_address(gid, port, &at);
	int fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) &&
	    !bind(fd, &at.any, bytes))
		return fd;
	close(fd);
	return -1;
}

/* ---- packets ---- */

struct cursor { /* in the pieces of a frame */
	const struct sl_roce_piece *piece;
	unsigned left;
	size_t at; /* in the first */
};

/* The next so many bytes of it, in how many pieces. */
static unsigned cut_off(struct cursor *c, size_t bytes, struct sl_roce_piece *out)
{
	unsigned n = 0;

	while (bytes && c->left) {
		size_t rest = c->piece->bytes - c->at, take = rest < bytes ? rest : bytes;

		if (take)
			out[n++] = (struct sl_roce_piece){(const uint8_t *)c->piece->data + c->at,
							  take};
		bytes -= take;
		c->at += take;
		if (c->at == c->piece->bytes) {
			c->piece++;
			c->left--;
			c->at = 0;
		}
	}
	return n;
}

/* Of each datagram in it but the last, which may be shorter. */
static size_t segment_of(struct sl_udp *udp, unsigned poller, const struct sl_packet_frame *frame,
			 const uint8_t *data, size_t here, size_t bytes)
{
	size_t segment = frame->segment;

	if (frame->uncut)
		segment = sl_udp_packet_bytes(udp, poller, data, here);
	return segment && segment < bytes ? segment : bytes;
}

/* Those that the kernel did not cut have consecutive identifications, as if it had. */
unsigned sl_packet_receive(struct sl_udp *udp, unsigned poller, const struct sl_packet_frame *frame,
			   uint64_t now_ns)
{
	struct sl_roce_piece out[SL_PACKET_PIECES_MAX];
	struct cursor cursor = {frame->piece, frame->pieces, 0};
	size_t bytes = 0, here = frame->piece[0].bytes, segment;
	const uint8_t *data;
	struct sl_roce_path path;
	unsigned n = 0;
	bool marked;

	for (unsigned i = 0; i < frame->pieces; i++)
		bytes += frame->piece[i].bytes;
	if (frame->cut || frame->pieces > SL_PACKET_PIECES_MAX ||
	    !sl_packet_parse(frame->piece[0].data, here, bytes, &path, &data, &bytes)) {
		sl_udp_count(udp, SL_DROP_MALFORMED);
		return 1;
	}
	cursor.at = (size_t)(data - (const uint8_t *)frame->piece[0].data);
	here -= cursor.at;
	if (udp->backend->follow && !sl_udp_claim(udp, poller, data, here, &path))
		return 0;
	marked = (path.tos & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
	segment = segment_of(udp, poller, frame, data, here, bytes);
	do {
		size_t take = bytes < segment ? bytes : segment;

		sl_udp_receive_pieces(udp, poller, out, cut_off(&cursor, take, out), &path, marked,
				      now_ns);
		bytes -= take;
		path.ip_id++;
	} while (++n < SL_PACKET_SEGMENTS_MAX && bytes);
	return n;
}
