/* net.h - UDP sockets as RoCEv2 needs them, over IPv4 and IPv6.
 *
 * Model:     addresses are GIDs: an IPv6 address, or ::ffff:a.b.c.d for IPv4. A socket is bound to
 *            one address and never connected, and it never fragments: then the kernel sends IPv4
 *            identification 0, which the ICRC covers. Packets that arrive bring their traffic
 *            class along, since its last two bits say whether the path is congested.
 * Threads:   no state but the sockets.
 * Errors:    0 or more, or -errno; sl_net_open() and sl_net_parse() log what is wrong and what to
 *            do. */
#ifndef SL_NET_NET_H
#define SL_NET_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
	SL_NET_GID_BYTES = 16,
	SL_NET_TEXT_BYTES = INET6_ADDRSTRLEN,
	SL_NET_CONTROL_BYTES = 64, /* room for the control data of one packet */
};

enum sl_net_ecn { /* the low two bits of the traffic class */
		  SL_NET_ECN_NOT = 0,
		  SL_NET_ECT0 = 2,   /* may be marked instead of dropped */
		  SL_NET_ECN_CE = 3, /* was marked: there is congestion on the path */
		  SL_NET_ECN_MASK = 3,
};

/* Bytes from..from+bytes of a datagram, out of where they were scattered to. */
void sl_net_collect(const struct iovec *iov, unsigned iovs, size_t from, size_t bytes, void *to);

union sl_net_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* `what` names the option in the message. Wildcards and link-local addresses are refused: the
 * ICRC covers the address of one interface, and a GID has no room for a scope. */
int sl_net_parse(const char *what, const char *text, uint8_t gid[SL_NET_GID_BYTES]);
void sl_net_format(const uint8_t gid[SL_NET_GID_BYTES], char text[SL_NET_TEXT_BYTES]);

/* Any numeric address, wildcards too, as for listening on TCP. 0 bytes: it is none. */
socklen_t sl_net_numeric(const char *text, uint16_t port, union sl_net_address *address);
bool sl_net_same_host(const union sl_net_address *address); /* 127.0.0.0/8 or ::1 */

/* To and from what the socket calls take; ports in host order. */
socklen_t sl_net_address(const uint8_t gid[SL_NET_GID_BYTES], uint16_t port,
			 union sl_net_address *address);
uint16_t sl_net_gid(const union sl_net_address *address, uint8_t gid[SL_NET_GID_BYTES]);

/* A non-blocking socket; port 0: any free one. */
int sl_net_open(const uint8_t gid[SL_NET_GID_BYTES], uint16_t port);
uint16_t sl_net_port(int fd);

/* Another socket on the address and port of `shared`, for what comes from one peer and port
 * only. It takes several packets of equal length in one call where the kernel has put them
 * together (sl_net_segment_bytes). To be received from, not sent on: a connected socket sends
 * identifications that nobody can predict. */
int sl_net_open_flow(int shared, const uint8_t gid[SL_NET_GID_BYTES], uint16_t port,
		     const uint8_t peer[SL_NET_GID_BYTES], uint16_t peer_port);

/* From now on this socket, too, takes several packets of equal length in one call. */
void sl_net_merge(int fd);

/* Length of each packet in what arrived with this control data, but for the last, which may be
 * shorter; 0: it is one packet. */
uint32_t sl_net_segment_bytes(const struct msghdr *message);

/* Have the kernel cut a message into packets of so many bytes; control has room for
 * SL_NET_CONTROL_BYTES. */
void sl_net_segment(struct msghdr *message, void *control, uint16_t packet_bytes);

/* Whether it can. */
bool sl_net_segments(int fd);

/* What is sent on it from now on has 0 for its UDP checksum. 0 or -errno. */
int sl_net_leave_checksum(int fd);

/* What waits in this socket's receive buffer, in bytes as the kernel counts them, and how many
 * packets it has thrown away so far, most of them because the buffer was full; the count has 32
 * bits and wraps around. False: the kernel does not say. */
bool sl_net_memory(int fd, uint32_t *waiting_bytes, uint32_t *dropped);

/* Traffic class of what this socket sends: DSCP in the upper six bits, ECN in the lower two. */
int sl_net_set_class(int fd, uint8_t traffic_class);

/* Send one message with a traffic class of its own. As sendmsg(); the message has no control data.
 */
int sl_net_send(int fd, const struct msghdr *message, uint8_t traffic_class);

/* Traffic class of what arrived with this control data; 0 when there was none. */
uint8_t sl_net_class(const struct msghdr *message);

#endif
