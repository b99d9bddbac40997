/* xdp.h - AF_XDP sockets through libxdp and libbpf: frames from the driver, before the network
 * stack. The one place with <xdp/xsk.h> and <bpf/bpf.h>.
 *
 * Model:     a small program on the interface gives UDP packets for one address and port to one
 *            socket per receive queue; everything else goes on to the network stack. Frames lie in
 *            chunks of one page; a longer one is not delivered.
 * Threads:   open and close on one, all else on one other.
 * Ownership: a frame is the caller's until the next call of sl_xdp_take().
 * Errors:    0 or -errno; sl_xdp_open() logs what is wrong and what to do.
 * Cost:      copy mode: one copy by the kernel into the chunk. Zero-copy: the NIC writes it. */
#ifndef SL_XDP_XDP_H
#define SL_XDP_XDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_XDP_CHUNK_BYTES = 4096,
	/* The kernel keeps 256 bytes of a chunk for itself. */
	SL_XDP_FRAME_MAX = SL_XDP_CHUNK_BYTES - 256,
	SL_XDP_QUEUES = 64,
};

enum sl_xdp_mode { SL_XDP_AUTO, SL_XDP_DRIVER, SL_XDP_GENERIC };

struct sl_xdp;

struct sl_xdp_frame {
	const uint8_t *data; /* from the Ethernet header on */
	uint32_t bytes;
};

/* gid: an IPv6 address, or ::ffff:a.b.c.d. chunks: of each receive queue, a power of two. */
int sl_xdp_open(unsigned interface, const uint8_t gid[16], uint16_t port, enum sl_xdp_mode mode,
		uint32_t chunks, struct sl_xdp **xdp);
void sl_xdp_close(struct sl_xdp *xdp);

/* Becomes readable when there are frames. */
int sl_xdp_fd(const struct sl_xdp *xdp);

/* "driver, zero-copy", "driver, copy" or "generic, copy". */
const char *sl_xdp_how(const struct sl_xdp *xdp);

/* Up to `most` frames; those of the call before are given back. */
unsigned sl_xdp_take(struct sl_xdp *xdp, struct sl_xdp_frame *frame, unsigned most);

/* Frames that found no room. */
uint64_t sl_xdp_lost(const struct sl_xdp *xdp);

/* Why this process cannot use it, and what to do; NULL: it can. */
const char *sl_xdp_unavailable(void);

#endif
