/* blocks.c - a packet socket and the memory that it shares with the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "link/packet/packet.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* linux/virtio_net.h, since Linux 6.2 */
#endif

enum {
	/* A sender on this host may hand over 64 KiB at once, to be cut later: on loopback and
	 * between virtual interfaces nobody cuts them but we. */
	FRAME_BYTES = 68 << 10,
	FRAME_BLOCK_BYTES = 1 << 20, /* what the kernel gets in one piece; holds 15 frames */
	BLOCK_BYTES = 128 << 10,
	BLOCK_MS = 1, /* a block that does not get full is given to us after this */
};

const char *sl_packet_unavailable(void)
{
	static char why[512];
	char program[256];
	ssize_t n;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (errno != EPERM && errno != EACCES) {
		snprintf(why, sizeof(why), "no packet sockets: %s", strerror(errno));
		return why;
	}
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	snprintf(why, sizeof(why),
		 "receiving needs the capability CAP_NET_RAW: sudo setcap cap_net_raw+ep %s",
		 n > 0 ? program : "sluice");
	return why;
}

static int set(int fd, int name, const void *value, socklen_t bytes)
{
	return setsockopt(fd, SOL_PACKET, name, value, bytes) < 0 ? -errno : 0;
}

/* As many whole blocks as fit. */
static void choose_shape(struct sl_packet_blocks *area, uint64_t bytes)
{
	uint32_t block = area->blocks ? BLOCK_BYTES : FRAME_BLOCK_BYTES;

	area->shape = (struct tpacket_req3){
		.tp_block_size = block,
		.tp_block_nr = (unsigned)(bytes / block),
		.tp_frame_size = area->blocks ? BLOCK_BYTES : FRAME_BYTES,
		.tp_retire_blk_tov = area->blocks ? BLOCK_MS : 0,
	};
	area->shape.tp_frame_nr = block / area->shape.tp_frame_size * area->shape.tp_block_nr;
	area->map_bytes = (size_t)block * area->shape.tp_block_nr;
}

int sl_packet_blocks_listen(struct sl_packet_blocks *area, const struct sl_packet_filter *filter)
{
	struct sock_fprog program = {(unsigned short)filter->n, (struct sock_filter *)filter->code};

	return setsockopt(area->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

/* Bound, and deaf. */
static int set_up(struct sl_packet_blocks *area, bool v4)
{
	static const struct sl_packet_filter nothing = {{{BPF_RET | BPF_K, 0, 0, 0}}, 1};
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(v4 ? ETH_P_IP : ETH_P_IPV6)};
	int version = area->blocks ? TPACKET_V3 : TPACKET_V2, one = 1;
	int err = sl_packet_blocks_listen(area, &nothing);

	if (!err)
		err = set(area->fd, PACKET_VERSION, &version, sizeof(version));
	/* With it comes how a frame of several datagrams is to be cut. */
	if (!err)
		err = set(area->fd, PACKET_VNET_HDR, &one, sizeof(one));
	if (!err)
		err = set(area->fd, PACKET_RX_RING, &area->shape,
			  area->blocks ? sizeof(struct tpacket_req3) : sizeof(struct tpacket_req));
	if (err)
		return err;
	area->map = mmap(NULL, area->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
	if (area->map == MAP_FAILED) {
		area->map = NULL;
		return -errno;
	}
	return bind(area->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
}

int sl_packet_blocks_open(struct sl_packet_blocks *area, uint64_t bytes, bool blocks, bool v4)
{
	const char *why = sl_packet_unavailable();
	int err;

	*area = (struct sl_packet_blocks){.fd = -1, .blocks = blocks};
	if (why) {
		sl_error("link packet cannot be used: %s", why);
		return -EPERM;
	}
	/* No protocol yet: nothing is to come before the filter is there. */
	area->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (area->fd < 0)
		return -errno;
	choose_shape(area, bytes);
	err = set_up(area, v4);
	if (err) {
		sl_error("link packet: no %zu bytes of packet blocks: %s%s", area->map_bytes,
			 strerror(-err), err == -ENOMEM ? "; make link.ring_bytes smaller" : "");
		sl_packet_blocks_close(area);
	}
	return err;
}

/* The kernel numbers the rings of a group as they join, and so a program that gives the number of
 * a poller gives packets to its area. */
int sl_packet_blocks_group(struct sl_packet_blocks *area, unsigned rings,
			   const struct sl_packet_filter *spread)
{
	struct sock_fprog program = {(unsigned short)spread->n, (struct sock_filter *)spread->code};
	uint32_t group = (PACKET_FANOUT_CBPF | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	socklen_t bytes = sizeof(group);
	int err = set(area[0].fd, PACKET_FANOUT, &group, sizeof(group));

	if (!err)
		err = set(area[0].fd, PACKET_FANOUT_DATA, &program, sizeof(program));
	if (!err && getsockopt(area[0].fd, SOL_PACKET, PACKET_FANOUT, &group, &bytes) < 0)
		err = -errno;
	for (unsigned i = 1; i < rings && !err; i++)
		err = set(area[i].fd, PACKET_FANOUT, &group, sizeof(group));
	if (err)
		sl_error("link packet: packets cannot be spread over %u threads: %s; set "
			 "link.pollers: 1",
			 rings, strerror(-err));
	return err;
}

void sl_packet_blocks_close(struct sl_packet_blocks *area)
{
	if (area->map)
		munmap(area->map, area->map_bytes);
	if (area->fd >= 0)
		close(area->fd);
	*area = (struct sl_packet_blocks){.fd = -1};
}

/* A block is given up by the clock when frames come slowly, and then may hold only one. */
unsigned sl_packet_blocks_frames(const struct sl_packet_blocks *area)
{
	return area->blocks ? area->shape.tp_block_nr - 2 : area->shape.tp_frame_nr - 2;
}

static void describe(const uint8_t *header, uint32_t mac, uint32_t net, uint32_t here,
		     uint32_t whole, struct sl_packet_frame *frame, struct sl_roce_piece *piece)
{
	struct virtio_net_hdr hint;

	/* The hint lies directly before the link layer's header. */
	memcpy(&hint, header + mac - sizeof(hint), sizeof(hint));
	*piece = (struct sl_roce_piece){header + net, net - mac < here ? here - (net - mac) : 0};
	*frame = (struct sl_packet_frame){
		.piece = piece,
		.pieces = 1,
		.cut = here < whole,
		.segment = (hint.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_UDP_L4
				   ? hint.gso_size
				   : 0,
	};
}

static uint8_t *frame_at(const struct sl_packet_blocks *area, unsigned number)
{
	unsigned per_block = area->shape.tp_block_size / area->shape.tp_frame_size;

	return area->map + (size_t)(number / per_block) * area->shape.tp_block_size +
	       (size_t)(number % per_block) * area->shape.tp_frame_size;
}

static struct tpacket_block_desc *block_at(const struct sl_packet_blocks *area, unsigned number)
{
	return (void *)(area->map + (size_t)number * area->shape.tp_block_size);
}

static bool next_frame(struct sl_packet_blocks *area, struct sl_packet_frame *frame,
		       struct sl_roce_piece *piece)
{
	const struct tpacket2_hdr *h = (void *)frame_at(area, area->at);

	/* Acquire: pairs with the kernel's barrier before it hands a frame over. */
	if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return false;
	describe((const uint8_t *)h, h->tp_mac, h->tp_net, h->tp_snaplen, h->tp_len, frame, piece);
	return true;
}

static bool next_in_block(struct sl_packet_blocks *area, struct sl_packet_frame *frame,
			  struct sl_roce_piece *piece)
{
	struct tpacket_block_desc *block = block_at(area, area->at);
	const struct tpacket3_hdr *h;

	if (!area->next) {
		/* Acquire: as above, for a block. */
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
		      TP_STATUS_USER))
			return false;
		area->left = block->hdr.bh1.num_pkts;
		area->next = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
	}
	h = (void *)area->next;
	describe(area->next, h->tp_mac, h->tp_net, h->tp_snaplen, h->tp_len, frame, piece);
	return true;
}

bool sl_packet_blocks_next(struct sl_packet_blocks *area, struct sl_packet_frame *frame,
			   struct sl_roce_piece *piece)
{
	return area->blocks ? next_in_block(area, frame, piece) : next_frame(area, frame, piece);
}

static void release_frame(struct sl_packet_blocks *area)
{
	struct tpacket2_hdr *h = (void *)frame_at(area, area->at);

	/* Release: what was read of it was read before the kernel writes it again. */
	__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	area->at = (area->at + 1) % area->shape.tp_frame_nr;
}

static void release_in_block(struct sl_packet_blocks *area)
{
	struct tpacket_block_desc *block = block_at(area, area->at);

	area->next += ((struct tpacket3_hdr *)(void *)area->next)->tp_next_offset;
	if (--area->left)
		return;
	__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	area->next = NULL;
	area->at = (area->at + 1) % area->shape.tp_block_nr;
}

void sl_packet_blocks_release(struct sl_packet_blocks *area)
{
	if (area->blocks)
		release_in_block(area);
	else
		release_frame(area);
}

unsigned sl_packet_blocks_lost(struct sl_packet_blocks *area)
{
	struct tpacket_stats_v3 stats = {0};
	socklen_t bytes = area->blocks ? sizeof(struct tpacket_stats_v3)
				       : sizeof(struct tpacket_stats);

	if (getsockopt(area->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes) < 0)
		return 0;
	return stats.tp_drops;
}
