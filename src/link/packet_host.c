/* packet_host.c - what links that see whole packets share: the interface of an address, the port
 * that must not seem closed, and packets on their way to the udp link's judgement. */
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "link/packet.h"

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

static void count_malformed(struct sl_udp *udp)
{
	atomic_fetch_add_explicit(&udp->env.counters->dropped[SL_DROP_MALFORMED], 1,
				  memory_order_relaxed);
}

/* How many packets were in it. Those that the kernel did not cut have consecutive identifications,
 * as if it had. */
unsigned sl_packet_receive(struct sl_udp *udp, const struct sl_packet_frame *frame, uint64_t now_ns)
{
	struct sl_roce_path path;
	const uint8_t *data;
	size_t bytes, segment;
	unsigned n = 0;
	bool marked;

	if (frame->cut || !sl_packet_parse(frame->ip, frame->bytes, &path, &data, &bytes)) {
		count_malformed(udp);
		return 1;
	}
	marked = (path.tos & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
	segment = frame->segment && frame->segment < bytes ? frame->segment : bytes;
	do {
		size_t here = bytes < segment ? bytes : segment;

		sl_udp_receive(udp, data, here, &path, marked, now_ns);
		data += here;
		bytes -= here;
		path.ip_id++;
	} while (++n < SL_PACKET_SEGMENTS_MAX && bytes);
	return n;
}
