/* net.c - UDP sockets as RoCEv2 needs them. */
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101 /* linux/udp.h */
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102 /* linux/udp.h */
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const uint8_t gid[SL_NET_GID_BYTES])
{
	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static bool of_one_interface(const uint8_t gid[SL_NET_GID_BYTES])
{
	const struct in6_addr *v6 = (const struct in6_addr *)(const void *)gid;

	if (is_v4(gid))
		return (gid[12] | gid[13] | gid[14] | gid[15]) != 0 && gid[12] < 224;
	return !IN6_IS_ADDR_UNSPECIFIED(v6) && !IN6_IS_ADDR_LINKLOCAL(v6) &&
	       !IN6_IS_ADDR_MULTICAST(v6);
}

int sl_net_parse(const char *what, const char *text, uint8_t gid[SL_NET_GID_BYTES])
{
	uint8_t parsed[SL_NET_GID_BYTES];

	memcpy(parsed, mapped, sizeof(mapped));
	if ((inet_pton(AF_INET, text, parsed + sizeof(mapped)) == 1 ||
	     inet_pton(AF_INET6, text, parsed) == 1) &&
	    of_one_interface(parsed)) {
		memcpy(gid, parsed, sizeof(parsed));
		return 0;
	}
	sl_error("%s: '%s' is not the IPv4 or IPv6 address of one interface; the checksum of every "
		 "packet covers it, so names, 0.0.0.0, multicast and link-local addresses will not "
		 "do",
		 what, text);
	return -EINVAL;
}

void sl_net_format(const uint8_t gid[SL_NET_GID_BYTES], char text[SL_NET_TEXT_BYTES])
{
	if (is_v4(gid))
		inet_ntop(AF_INET, gid + sizeof(mapped), text, SL_NET_TEXT_BYTES);
	else
		inet_ntop(AF_INET6, gid, text, SL_NET_TEXT_BYTES);
}

socklen_t sl_net_address(const uint8_t gid[SL_NET_GID_BYTES], uint16_t port,
			 union sl_net_address *address)
{
	memset(address, 0, sizeof(*address));
	if (is_v4(gid)) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(port);
		memcpy(&address->v4.sin_addr, gid + sizeof(mapped), 4);
		return sizeof(address->v4);
	}
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = htons(port);
	memcpy(&address->v6.sin6_addr, gid, SL_NET_GID_BYTES);
	return sizeof(address->v6);
}

uint16_t sl_net_gid(const union sl_net_address *address, uint8_t gid[SL_NET_GID_BYTES])
{
	if (address->any.sa_family == AF_INET6) {
		memcpy(gid, &address->v6.sin6_addr, SL_NET_GID_BYTES);
		return ntohs(address->v6.sin6_port);
	}
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &address->v4.sin_addr, 4);
	return ntohs(address->v4.sin_port);
}

socklen_t sl_net_numeric(const char *text, uint16_t port, union sl_net_address *address)
{
	uint8_t gid[SL_NET_GID_BYTES];

	memcpy(gid, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, text, gid + sizeof(mapped)) != 1 &&
	    inet_pton(AF_INET6, text, gid) != 1)
		return 0;
	return sl_net_address(gid, port, address);
}

bool sl_net_same_host(const union sl_net_address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int prepare(int fd, bool v4)
{
	int err;

	if (v4) {
		err = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
		return err ? err : set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	}
	err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err)
		err = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
	if (!err)
		err = set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	/* RoCE devices leave the UDP checksum 0 over IPv6 too; the ICRC does its work. */
	return err ? err : set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

int sl_net_open(const uint8_t gid[SL_NET_GID_BYTES], uint16_t port)
{
	bool v4 = is_v4(gid);
	union sl_net_address at;
	socklen_t bytes = sl_net_address(gid, port, &at);
	int err, fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char text[SL_NET_TEXT_BYTES];

	if (fd < 0) {
		err = -errno;
		sl_error("cannot open a UDP socket: %s (ulimit -n?)", strerror(-err));
		return err;
	}
	err = prepare(fd, v4);
	if (!err && bind(fd, &at.any, bytes) < 0)
		err = -errno;
	if (!err)
		return fd;
	sl_net_format(gid, text);
	if (err == -EADDRINUSE)
		sl_error("%s port %u is in use: another receiver runs there, or the kernel's "
			 "Soft-RoCE (rdma_rxe) owns the port; stop it, or take another address",
			 text, port);
	else
		sl_error("cannot bind UDP %s port %u: %s", text, port, strerror(-err));
	close(fd);
	return err;
}

int sl_net_open_flow(int shared, const uint8_t gid[SL_NET_GID_BYTES], uint16_t port,
		     const uint8_t peer[SL_NET_GID_BYTES], uint16_t peer_port)
{
	bool v4 = is_v4(gid);
	union sl_net_address at, from;
	socklen_t bytes = sl_net_address(gid, port, &at);
	socklen_t from_bytes = sl_net_address(peer, peer_port, &from);
	int err, fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char stray;

	if (fd < 0)
		return -errno;
	/* The shared socket was bound alone, so nobody else has the port; from now on it allows us
	 * beside it, who ask for it before bind(). */
	err = set(shared, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err)
		err = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err)
		err = prepare(fd, v4);
	if (!err && (bind(fd, &at.any, bytes) < 0 || connect(fd, &from.any, from_bytes) < 0))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	sl_net_merge(fd);
	/* Between bind and connect anyone's packets may have come here. */
	while (recv(fd, &stray, sizeof(stray), MSG_DONTWAIT) >= 0)
		continue;
	return fd;
}

void sl_net_merge(int fd)
{
	set(fd, IPPROTO_UDP, UDP_GRO, 1); /* kernels before 5.0 give packet by packet */
}

uint32_t sl_net_segment_bytes(const struct msghdr *message)
{
	struct msghdr *m = (struct msghdr *)message; /* the macros only read it */
	int value;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			return value > 0 ? (uint32_t)value : 0;
		}
	return 0;
}

void sl_net_segment(struct msghdr *message, void *control, uint16_t packet_bytes)
{
	struct cmsghdr *c = control;

	memset(control, 0, CMSG_SPACE(sizeof(packet_bytes)));
	c->cmsg_len = CMSG_LEN(sizeof(packet_bytes));
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	memcpy(CMSG_DATA(c), &packet_bytes, sizeof(packet_bytes));
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(sizeof(packet_bytes));
}

bool sl_net_segments(int fd)
{
	int bytes;
	socklen_t size = sizeof(bytes);

	return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, &size) == 0;
}

int sl_net_leave_checksum(int fd)
{
	int domain;
	socklen_t bytes = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) < 0)
		return -errno;
	return domain == AF_INET ? set(fd, SOL_SOCKET, SO_NO_CHECK, 1)
				 : set(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
}

uint16_t sl_net_port(int fd)
{
	uint8_t gid[SL_NET_GID_BYTES];
	union sl_net_address at;
	socklen_t bytes = sizeof(at);

	return getsockname(fd, &at.any, &bytes) < 0 ? 0 : sl_net_gid(&at, gid);
}

int sl_net_set_class(int fd, uint8_t traffic_class)
{
	int domain;
	socklen_t bytes = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) < 0)
		return -errno;
	return domain == AF_INET ? set(fd, IPPROTO_IP, IP_TOS, traffic_class)
				 : set(fd, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
}

int sl_net_send(int fd, const struct msghdr *message, uint8_t traffic_class)
{
	const union sl_net_address *to = message->msg_name;
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr m = *message;
	int value = traffic_class;

	control.header.cmsg_len = CMSG_LEN(sizeof(value));
	control.header.cmsg_level = to->any.sa_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	control.header.cmsg_type = to->any.sa_family == AF_INET ? IP_TOS : IPV6_TCLASS;
	memcpy(CMSG_DATA(&control.header), &value, sizeof(value));
	m.msg_control = &control;
	m.msg_controllen = sizeof(control);
	return sendmsg(fd, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

bool sl_net_memory(int fd, uint32_t *waiting_bytes, uint32_t *dropped)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t bytes = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &bytes) < 0)
		return false;
	*waiting_bytes = info[SK_MEMINFO_RMEM_ALLOC];
	*dropped = info[SK_MEMINFO_DROPS];
	return true;
}

uint8_t sl_net_class(const struct msghdr *message)
{
	struct msghdr *m = (struct msghdr *)message; /* the macros only read it */

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int value;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			return *CMSG_DATA(c);
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			return (uint8_t)value;
		}
	}
	return 0;
}

void sl_net_collect(const struct iovec *iov, unsigned iovs, size_t from, size_t bytes, void *to)
{
	uint8_t *at = to;

	for (unsigned i = 0; i < iovs && bytes; i++) {
		size_t length = iov[i].iov_len, take;

		if (from >= length) {
			from -= length;
			continue;
		}
		take = length - from < bytes ? length - from : bytes;
		memcpy(at, (const uint8_t *)iov[i].iov_base + from, take);
		at += take;
		bytes -= take;
		from = 0;
	}
}
