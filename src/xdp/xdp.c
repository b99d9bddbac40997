/* xdp.c - AF_XDP sockets: one for each receive queue of an interface. */
#include "xdp/xdp.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "base/log.h"
#include "xdp/program.h"

enum { TRIES_MAX = 2000 }; /* two seconds for a queue to become free */

struct queue {
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	uint8_t *chunks;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons done, receive;
	uint32_t taken; /* frames that the caller has */
	uint32_t first; /* the first of them in the ring */
};

struct sl_xdp {
	unsigned interface, queues, next;
	uint32_t chunks;
	int map, program, attached, fd;
	bool generic, zero_copy;
	struct queue queue[SL_XDP_QUEUES];
};

/* ---- privilege ---- */

static bool has_capability(unsigned number)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[number / 32].effective >> (number % 32) & 1;
}

const char *sl_xdp_unavailable(void)
{
	static char why[512];
	char program[256];
	ssize_t n;

	if (has_capability(CAP_NET_RAW) && has_capability(CAP_NET_ADMIN) &&
	    (has_capability(CAP_BPF) || has_capability(CAP_SYS_ADMIN)))
		return NULL;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	snprintf(why, sizeof(why),
		 "receiving needs capabilities: sudo setcap "
		 "cap_net_raw,cap_net_admin,cap_bpf+ep %s",
		 n > 0 ? program : "sluice");
	return why;
}

/* ---- opening ---- */

/* Receive queues of the interface; 1 where it does not say. */
static unsigned queues_of(unsigned interface)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {.ifr_data = (void *)&channels};
	unsigned n = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 1;
	if (if_indextoname(interface, request.ifr_name) && !ioctl(fd, SIOCETHTOOL, &request))
		n = channels.rx_count + channels.combined_count;
	close(fd);
	return n < 1 ? 1 : n < SL_XDP_QUEUES ? n : SL_XDP_QUEUES;
}

/* The program goes when its link does, also when this process is killed. */
static int attach(struct sl_xdp *xdp, enum sl_xdp_mode mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, options);

	for (int generic = mode == SL_XDP_GENERIC; generic < 2; generic++) {
		options.flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
		xdp->attached =
			bpf_link_create(xdp->program, (int)xdp->interface, BPF_XDP, &options);
		xdp->generic = generic;
		if (xdp->attached >= 0)
			return 0;
		if (mode == SL_XDP_DRIVER || errno == EBUSY || errno == EEXIST || errno == EPERM)
			break;
	}
	return errno == EBUSY || errno == EEXIST ? -EADDRINUSE : -errno;
}

static int create(struct sl_xdp *xdp, unsigned number, const char *name)
{
	struct queue *q = &xdp->queue[number];
	const struct xsk_umem_config memory = {
		.fill_size = xdp->chunks, .comp_size = 64, .frame_size = SL_XDP_CHUNK_BYTES};
	const struct xsk_socket_config config = {
		.rx_size = xdp->chunks,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_USE_NEED_WAKEUP};
	int err = xsk_umem__create(&q->umem, q->chunks, (size_t)xdp->chunks * SL_XDP_CHUNK_BYTES,
				   &q->fill, &q->done, &memory);

	if (err)
		return err;
	err = xsk_socket__create(&q->socket, name, number, q->umem, &q->receive, NULL, &config);
	if (!err)
		return 0;
	q->socket = NULL;
	xsk_umem__delete(q->umem);
	q->umem = NULL;
	return err;
}

/* The kernel frees the queue of a socket that was closed some time after that. */
static int create_patiently(struct sl_xdp *xdp, unsigned number)
{
	char name[IF_NAMESIZE];
	int err = -ENODEV;

	if (!if_indextoname(xdp->interface, name))
		return err;
	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		err = create(xdp, number, name);
		if (err != -EBUSY)
			break;
		usleep(1000);
	}
	return err;
}

static int open_queue(struct sl_xdp *xdp, unsigned number)
{
	struct queue *q = &xdp->queue[number];
	uint32_t at;
	int err, fd;

	q->chunks = mmap(NULL, (size_t)xdp->chunks * SL_XDP_CHUNK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (q->chunks == MAP_FAILED) {
		q->chunks = NULL;
		return -ENOMEM;
	}
	err = create_patiently(xdp, number);
	if (err)
		return err;
	if (xsk_ring_prod__reserve(&q->fill, xdp->chunks, &at) != xdp->chunks)
		return -ENOBUFS;
	for (uint32_t i = 0; i < xdp->chunks; i++)
		*xsk_ring_prod__fill_addr(&q->fill, at + i) = (uint64_t)i * SL_XDP_CHUNK_BYTES;
	xsk_ring_prod__submit(&q->fill, xdp->chunks);
	fd = xsk_socket__fd(q->socket);
	if (bpf_map_update_elem(xdp->map, &number, &fd, 0) ||
	    epoll_ctl(xdp->fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN}))
		return -errno;
	return 0;
}

static bool zero_copy(const struct sl_xdp *xdp)
{
	struct xdp_options options = {0};
	socklen_t bytes = sizeof(options);

	return !getsockopt(xsk_socket__fd(xdp->queue[0].socket), SOL_XDP, XDP_OPTIONS, &options,
			   &bytes) &&
	       (options.flags & XDP_OPTIONS_ZEROCOPY);
}

static int open_all(struct sl_xdp *xdp, const uint8_t gid[16], uint16_t port, enum sl_xdp_mode mode)
{
	int err = 0;

	xdp->fd = epoll_create1(EPOLL_CLOEXEC);
	xdp->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sluice_xdp", sizeof(int), sizeof(int),
				  xdp->queues, NULL);
	if (xdp->fd < 0 || xdp->map < 0)
		return -errno;
	xdp->program = sl_xdp_program(gid, port, xdp->map);
	if (xdp->program < 0)
		return xdp->program;
	err = attach(xdp, mode);
	for (unsigned i = 0; i < xdp->queues && !err; i++)
		err = open_queue(xdp, i);
	if (!err)
		xdp->zero_copy = zero_copy(xdp);
	return err;
}

static void explain(const struct sl_xdp *xdp, int err)
{
	char name[IF_NAMESIZE] = "?";

	if_indextoname(xdp->interface, name);
	if (err == -EADDRINUSE)
		sl_error("link xdp: another XDP program is on %s; its owner ends, or: sudo ip link "
			 "set dev %s xdp off",
			 name, name);
	else
		sl_error("link xdp: no AF_XDP sockets on %s: %s", name, strerror(-err));
}

int sl_xdp_open(unsigned interface, const uint8_t gid[16], uint16_t port, enum sl_xdp_mode mode,
		uint32_t chunks, struct sl_xdp **xdp)
{
	const char *why = sl_xdp_unavailable();
	struct sl_xdp *x;
	int err;

	if (why) {
		sl_error("link xdp cannot be used: %s", why);
		return -EPERM;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->interface = interface;
	x->queues = queues_of(interface);
	x->chunks = chunks;
	x->map = x->program = x->attached = x->fd = -1;
	err = open_all(x, gid, port, mode);
	if (err) {
		explain(x, err);
		sl_xdp_close(x);
		return err;
	}
	*xdp = x;
	return 0;
}

void sl_xdp_close(struct sl_xdp *xdp)
{
	if (!xdp)
		return;
	/* First, so that nothing is given to sockets that are going. */
	if (xdp->attached >= 0)
		close(xdp->attached);
	for (unsigned i = 0; i < xdp->queues; i++) {
		struct queue *q = &xdp->queue[i];

		if (q->socket)
			xsk_socket__delete(q->socket);
		if (q->umem)
			xsk_umem__delete(q->umem);
		if (q->chunks)
			munmap(q->chunks, (size_t)xdp->chunks * SL_XDP_CHUNK_BYTES);
	}
	if (xdp->program >= 0)
		close(xdp->program);
	if (xdp->map >= 0)
		close(xdp->map);
	if (xdp->fd >= 0)
		close(xdp->fd);
	free(xdp);
}

/* ---- frames ---- */

static void give_back(struct queue *q)
{
	uint32_t at;

	if (!q->taken || xsk_ring_prod__reserve(&q->fill, q->taken, &at) != q->taken)
		return; /* never: the ring has room for every chunk there is */
	for (uint32_t i = 0; i < q->taken; i++)
		*xsk_ring_prod__fill_addr(&q->fill, at + i) =
			xsk_ring_cons__rx_desc(&q->receive, q->first + i)->addr &
			~(uint64_t)(SL_XDP_CHUNK_BYTES - 1);
	xsk_ring_prod__submit(&q->fill, q->taken);
	xsk_ring_cons__release(&q->receive, q->taken);
	q->taken = 0;
	/* A driver that ran out of chunks may sleep until it is told. */
	if (xsk_ring_prod__needs_wakeup(&q->fill))
		recvfrom(xsk_socket__fd(q->socket), NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

unsigned sl_xdp_take(struct sl_xdp *xdp, struct sl_xdp_frame *frame, unsigned most)
{
	unsigned n = 0;

	for (unsigned k = 0; k < xdp->queues; k++)
		give_back(&xdp->queue[k]);
	for (unsigned k = 0; k < xdp->queues && n < most; k++) {
		struct queue *q = &xdp->queue[xdp->next++ % xdp->queues];

		q->taken = xsk_ring_cons__peek(&q->receive, most - n, &q->first);
		for (uint32_t i = 0; i < q->taken; i++) {
			const struct xdp_desc *d =
				xsk_ring_cons__rx_desc(&q->receive, q->first + i);

			frame[n++] = (struct sl_xdp_frame){xsk_umem__get_data(q->chunks, d->addr),
							   d->len};
		}
	}
	return n;
}

uint64_t sl_xdp_lost(const struct sl_xdp *xdp)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < xdp->queues; i++) {
		struct xdp_statistics s = {0};
		socklen_t bytes = sizeof(s);

		if (!getsockopt(xsk_socket__fd(xdp->queue[i].socket), SOL_XDP, XDP_STATISTICS, &s,
				&bytes))
			lost += s.rx_dropped + s.rx_ring_full + s.rx_fill_ring_empty_descs;
	}
	return lost;
}

int sl_xdp_fd(const struct sl_xdp *xdp)
{
	return xdp->fd;
}

const char *sl_xdp_how(const struct sl_xdp *xdp)
{
	return xdp->generic	? "generic, copy"
	       : xdp->zero_copy ? "driver, zero-copy"
				: "driver, copy";
}
