/* packet.h - what the files of the packet link share.
 *
 * Model:     receiving: a packet socket shows this link every RoCEv2 packet for its address with
 *            all headers, whoever owns the UDP port. All else is the udp link's (link/udp/udp.h):
 *            queues, plans, credits, checks; what is sent back leaves from an ordinary UDP socket
 *            with a port of its own. Sending is the udp link's entirely.
 * Files:     packet.c options, open, close, poll; block.c the socket and the ring that the
 *            kernel fills; filter.c which packets it gets; parse.c headers;
 *            host.c what the xdp link has in common with it.
 * Threads:   each poller has a socket and a ring of its own; the kernel gives each packet to the
 *            ring of its queue pair's poller.
 * Cost:      the kernel copies a packet into the ring, we copy its payload to its place. */
#ifndef SL_LINK_PACKET_PACKET_H
#define SL_LINK_PACKET_PACKET_H

#include <linux/filter.h>
#include <linux/if_packet.h>

#include "link/udp/udp.h"

enum {
	SL_PACKET_FILTER_MAX = 48,
	SL_PACKET_SEGMENTS_MAX = 1024, /* in one frame, whatever it says of itself */
	SL_PACKET_PIECES_MAX = 64,     /* of one frame */
	/* The kernel gives us a block that does not get full after two ticks at most: of 10 ms
	 * where they are longest. */
	SL_PACKET_BLOCK_NS = 20 * 1000 * 1000,
};

/* ---- headers ---- */

/* The UDP datagram in an IP packet of so many bytes, of which the first `here` are at `ip`, and its
 * path. Options, extension headers and fragments are refused, and lengths that contradict each
 * other. False: it is none of ours. */
bool sl_packet_parse(const uint8_t *ip, size_t here, size_t bytes, struct sl_roce_path *path,
		     const uint8_t **data, size_t *data_bytes);

/* ---- which packets ---- */

struct sl_packet_filter {
	struct sock_filter code[SL_PACKET_FILTER_MAX];
	unsigned n;
};

/* UDP to this address and port, that came to this host on either of two interfaces. Fragments
 * and packets with options are let through where the port can be seen, to be counted. */
void sl_packet_filter_init(struct sl_packet_filter *filter, const uint8_t gid[SL_ROCE_GID_BYTES],
			   uint16_t port, const unsigned interface[2]);

/* Which of several rings a packet goes to: that of the poller of its queue pair. */
void sl_packet_filter_spread(struct sl_packet_filter *filter, bool v4, uint32_t qpn_base,
			     unsigned pollers);

/* ---- the ring ---- */

/* The kernel gives frames one by one (TPACKET_V2) or in blocks (TPACKET_V3). */
struct sl_packet_blocks {
	int fd;
	bool blocks;
	uint8_t *map;
	size_t map_bytes;
	struct tpacket_req3 shape;
	unsigned at;   /* block or frame that is next */
	uint8_t *next; /* in the block that is being read; NULL: none is */
	uint32_t left; /* frames there */
};

struct sl_packet_frame {
	const struct sl_roce_piece *piece; /* from the IP header on */
	unsigned pieces;
	bool cut;	  /* there was no room for all of it */
	bool uncut;	  /* it may be several datagrams, and nobody said of what length */
	uint32_t segment; /* it is several datagrams of so many bytes; 0: it is one */
};

/* Logs what is wrong. Nothing comes before it listens. */
int sl_packet_blocks_open(struct sl_packet_blocks *ring, uint64_t bytes, bool blocks, bool v4);

/* Several rings share what comes: the i-th gets that for which the program says i. Logs, too. */
int sl_packet_blocks_group(struct sl_packet_blocks *ring, unsigned rings,
			   const struct sl_packet_filter *spread);

int sl_packet_blocks_listen(struct sl_packet_blocks *ring, const struct sl_packet_filter *filter);
void sl_packet_blocks_close(struct sl_packet_blocks *ring);

/* Frames that are sure to find room when none is taken out, however slowly they come. */
unsigned sl_packet_blocks_frames(const struct sl_packet_blocks *ring);

/* The next frame, in one piece, which stays until it is released; false: there is none now. */
bool sl_packet_blocks_next(struct sl_packet_blocks *ring, struct sl_packet_frame *frame,
			   struct sl_roce_piece *piece);
void sl_packet_blocks_release(struct sl_packet_blocks *ring);

/* Frames that found no room since the last call. */
unsigned sl_packet_blocks_lost(struct sl_packet_blocks *ring);

/* ---- the host ---- */

/* Number of the interface whose address it is; 0: none has it. */
unsigned sl_packet_interface(const uint8_t gid[SL_ROCE_GID_BYTES]);

/* Where nobody owns the port, the kernel would tell the source of every packet that it is
 * unreachable. So we own it: a socket that lets nothing in costs no memory. Taken by rdma_rxe or
 * somebody else is as good, and -1. */
int sl_packet_guard(const uint8_t gid[SL_ROCE_GID_BYTES], uint16_t port);

/* Parse, cut and judge what is in a frame; how many packets that were. 0: its queue is another
 * thread's, which was asked for it; come again with the same frame. */
unsigned sl_packet_receive(struct sl_udp *udp, unsigned poller, const struct sl_packet_frame *frame,
			   uint64_t now_ns);

/* Why packet sockets cannot be used by this process, and what to do; NULL: they can. */
const char *sl_packet_unavailable(void);

#endif
