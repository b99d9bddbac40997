/* xdp.h - AF_XDP sockets through libxdp and libbpf: frames from the driver, before the network
 * stack. The one place with <xdp/xsk.h> and <bpf/bpf.h>.
 *
 * Model:     a small program on the interface gives UDP packets for one address and port to one
 *            socket per receive queue; everything else goes on to the network stack. Frames lie in
 *            chunks of one page; a longer one lies in several (Linux 6.6), or is not delivered.
 * Threads:   open and close on one; each socket on one other, not always the same.
 * Ownership: what sl_xdp_peek() shows is the caller's until sl_xdp_release().
 * Errors:    0 or -errno; sl_xdp_open() logs what is wrong and what to do.
 * Cost:      copy: one copy by the kernel into the chunk. Zero-copy: the NIC writes it. */
#ifndef SL_NET_XDP_XDP_H
#define SL_NET_XDP_XDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_XDP_CHUNK_BYTES = 4096,
	/* The kernel keeps 256 bytes of a chunk for itself. */
	SL_XDP_FRAME_MAX = SL_XDP_CHUNK_BYTES - 256,
	/* The largest path MTU of RoCE that fits such a frame with its headers. */
	SL_XDP_PMTU_SMALL = 2048,
	SL_XDP_SOCKETS = 64,
};

enum sl_xdp_mode { SL_XDP_AUTO, SL_XDP_ZEROCOPY, SL_XDP_NATIVE, SL_XDP_GENERIC };

struct sl_xdp;

struct sl_xdp_want {
	unsigned interface;
	const uint8_t *gid; /* an IPv6 address, or ::ffff:a.b.c.d */
	uint16_t port;
	enum sl_xdp_mode mode;
	bool large;	 /* frames of several chunks are more important than how they come */
	uint32_t chunks; /* of each socket, a power of two */
	unsigned pollers;
};

struct sl_xdp_piece {	     /* of a frame, in one chunk */
	const uint8_t *data; /* the first one: from the Ethernet header on */
	uint32_t bytes;
	bool more; /* the frame goes on in the next one */
};

int sl_xdp_open(const struct sl_xdp_want *want, struct sl_xdp **xdp);
void sl_xdp_close(struct sl_xdp *xdp);

/* One for each receive queue. Socket i is poller `i % pollers`'s. */
unsigned sl_xdp_sockets(const struct sl_xdp *xdp);

/* Becomes readable when there are frames for this poller; -1: there never are. */
int sl_xdp_fd(const struct sl_xdp *xdp, unsigned poller);

/* "native, zero-copy", "native, copy" or "generic, copy". */
const char *sl_xdp_how(const struct sl_xdp *xdp);

/* Above the driver: what was not cut before it got to the interface comes as one frame. */
bool sl_xdp_generic(const struct sl_xdp *xdp);

/* Why frames are limited to SL_XDP_FRAME_MAX; NULL: they are not. */
const char *sl_xdp_limit(const struct sl_xdp *xdp);

/* The pieces that are there, at most so many; then the first `pieces` of them go back. */
unsigned sl_xdp_peek(struct sl_xdp *xdp, unsigned socket, struct sl_xdp_piece *piece,
		     unsigned most);
void sl_xdp_release(struct sl_xdp *xdp, unsigned socket, unsigned pieces);

/* Frames that found no room. */
uint64_t sl_xdp_lost(const struct sl_xdp *xdp);

/* Why this process cannot use it, and what to do; NULL: it can. */
const char *sl_xdp_unavailable(void);

/* Why frames of several chunks cannot be had from a kernel of this release (uname -r; NULL: the one
 * that runs); NULL: they can. */
const char *sl_xdp_kernel_limit(const char *release);

#endif
