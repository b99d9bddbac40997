/* xdp.c - AF_XDP sockets for all receive queues of an interface, in the best way that it has. */
#include "net/xdp/xdp.h"

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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "net/xdp/program.h"
#include "net/xdp/socket.h"

enum { POLLERS_MAX = SL_XDP_SOCKETS };

/* From the best to the one that every interface has. */
static const struct way {
	bool generic, zero_copy, large;
	const char *how;
} ways[] = {
	{false, true, true, "native, zero-copy"}, {false, true, false, "native, zero-copy"},
	{false, false, true, "native, copy"},	  {false, false, false, "native, copy"},
	{true, false, true, "generic, copy"},	  {true, false, false, "generic, copy"},
};

struct sl_xdp {
	struct sl_xdp_want want;
	char name[IF_NAMESIZE];
	unsigned sockets;
	int map, program, attached;
	bool generic;	       /* how it is attached */
	const struct way *way; /* that was taken */
	int fd[POLLERS_MAX];
	struct sl_xdp_socket socket[SL_XDP_SOCKETS];
};

/* ---- what this process and this kernel can ---- */

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

const char *sl_xdp_kernel_limit(const char *release)
{
	struct utsname name;
	unsigned major, minor;

	if (!release)
		release = uname(&name) < 0 ? "" : name.release;
	if (sscanf(release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	    (major == 6 && minor >= 6))
		return NULL;
	return "this kernel has no AF_XDP packets of several buffers; Linux 6.6 has";
}

/* ---- opening ---- */

/* Receive queues of the interface; 1 where it does not say. */
static unsigned queues_of(const char *name)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {.ifr_data = (void *)&channels};
	unsigned n = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!ioctl(fd, SIOCETHTOOL, &request))
		n = channels.rx_count + channels.combined_count;
	close(fd);
	return n < 1 ? 1 : n < SL_XDP_SOCKETS ? n : SL_XDP_SOCKETS;
}

static void detach(struct sl_xdp *xdp)
{
	if (xdp->attached >= 0)
		close(xdp->attached);
	xdp->attached = -1;
}

/* The program goes when its link does, also when this process is killed. */
static int attach(struct sl_xdp *xdp, bool generic)
{
	LIBBPF_OPTS(bpf_link_create_opts, options);

	if (xdp->attached >= 0 && xdp->generic == generic)
		return 0;
	detach(xdp);
	options.flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	xdp->attached = bpf_link_create(xdp->program, (int)xdp->want.interface, BPF_XDP, &options);
	xdp->generic = generic;
	if (xdp->attached >= 0)
		return 0;
	return errno == EBUSY || errno == EEXIST ? -EADDRINUSE : -errno;
}

static void close_sockets(struct sl_xdp *xdp)
{
	for (unsigned i = 0; i < xdp->sockets; i++)
		sl_xdp_socket_close(&xdp->socket[i]);
}

static int open_sockets(struct sl_xdp *xdp, const struct way *way)
{
	uint16_t flags = (uint16_t)(XDP_USE_NEED_WAKEUP |
				    (way->zero_copy ? XDP_ZEROCOPY : XDP_COPY) |
				    (way->large ? XDP_USE_SG : 0));
	int err = 0;

	for (unsigned i = 0; i < xdp->sockets && !err; i++)
		err = sl_xdp_socket_open(&xdp->socket[i], xdp->name, i, xdp->want.chunks, flags);
	if (err)
		close_sockets(xdp);
	return err;
}

/* Packets come to the sockets from now on. */
static int connect_sockets(struct sl_xdp *xdp)
{
	for (unsigned i = 0; i < xdp->sockets; i++) {
		int fd = xsk_socket__fd(xdp->socket[i].socket);
		int *group = &xdp->fd[i % xdp->want.pollers];

		if (*group < 0)
			*group = epoll_create1(EPOLL_CLOEXEC);
		if (*group < 0 || bpf_map_update_elem(xdp->map, &i, &fd, 0) ||
		    epoll_ctl(*group, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN}))
			return -errno;
	}
	return 0;
}

static bool may(const struct sl_xdp *xdp, const struct way *way)
{
	switch (xdp->want.mode) {
	case SL_XDP_ZEROCOPY:
		return way->zero_copy;
	case SL_XDP_NATIVE:
		return !way->generic && !way->zero_copy;
	case SL_XDP_GENERIC:
		return way->generic;
	default:
		return true;
	}
}

/* The first that works, of those for large frames or of all. */
static int open_some_way(struct sl_xdp *xdp, bool large)
{
	int err = -EOPNOTSUPP;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const struct way *way = &ways[i];

		if (!may(xdp, way) || (large && !way->large))
			continue;
		err = attach(xdp, way->generic);
		if (!err)
			err = open_sockets(xdp, way);
		if (!err) {
			xdp->way = way;
			return 0;
		}
		if (err == -EADDRINUSE || err == -EPERM || err == -ENOMEM)
			break;
	}
	return err;
}

static int open_all(struct sl_xdp *xdp)
{
	int err;

	xdp->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sluice_xdp", sizeof(int), sizeof(int),
				  xdp->sockets, NULL);
	if (xdp->map < 0)
		return -errno;
	xdp->program = sl_xdp_program(xdp->want.gid, xdp->want.port, xdp->map);
	if (xdp->program < 0)
		return xdp->program;
	err = open_some_way(xdp, xdp->want.large);
	if (err && xdp->want.large && err != -EADDRINUSE && err != -EPERM && err != -ENOMEM)
		err = open_some_way(xdp, false);
	return err ? err : connect_sockets(xdp);
}

static void explain(const struct sl_xdp *xdp, int err)
{
	static const char *const modes[] = {"", "zero-copy ", "native ", "generic "};

	if (err == -EADDRINUSE)
		sl_error("link xdp: another XDP program is on %s; its owner ends, or: sudo ip link "
			 "set dev %s xdp off",
			 xdp->name, xdp->name);
	else
		sl_error("link xdp: no %sAF_XDP sockets on %s: %s%s", modes[xdp->want.mode],
			 xdp->name, strerror(-err),
			 xdp->want.mode == SL_XDP_AUTO ? "" : "; try link.mode: auto");
}

int sl_xdp_open(const struct sl_xdp_want *want, struct sl_xdp **xdp)
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
	x->want = *want;
	x->map = x->program = x->attached = -1;
	for (unsigned i = 0; i < POLLERS_MAX; i++)
		x->fd[i] = -1;
	if (if_indextoname(want->interface, x->name)) {
		x->sockets = queues_of(x->name);
		err = open_all(x);
	} else {
		err = -ENODEV;
	}
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
	detach(xdp);
	close_sockets(xdp);
	for (unsigned i = 0; i < POLLERS_MAX; i++)
		if (xdp->fd[i] >= 0)
			close(xdp->fd[i]);
	if (xdp->program >= 0)
		close(xdp->program);
	if (xdp->map >= 0)
		close(xdp->map);
	free(xdp);
}

/* ---- what came of it ---- */

unsigned sl_xdp_sockets(const struct sl_xdp *xdp)
{
	return xdp->sockets;
}

int sl_xdp_fd(const struct sl_xdp *xdp, unsigned poller)
{
	return poller < POLLERS_MAX ? xdp->fd[poller] : -1;
}

const char *sl_xdp_how(const struct sl_xdp *xdp)
{
	return xdp->way->how;
}

bool sl_xdp_generic(const struct sl_xdp *xdp)
{
	return xdp->way->generic;
}

const char *sl_xdp_limit(const struct sl_xdp *xdp)
{
	if (xdp->way->large)
		return NULL;
	if (sl_xdp_kernel_limit(NULL))
		return sl_xdp_kernel_limit(NULL);
	return xdp->want.mode == SL_XDP_ZEROCOPY ? "the driver has no zero-copy packets of several "
						   "buffers; link.mode: native "
						   "may have"
						 : "the driver has no packets of several buffers";
}

unsigned sl_xdp_peek(struct sl_xdp *xdp, unsigned socket, struct sl_xdp_piece *piece, unsigned most)
{
	return sl_xdp_socket_peek(&xdp->socket[socket], piece, most);
}

void sl_xdp_release(struct sl_xdp *xdp, unsigned socket, unsigned pieces)
{
	sl_xdp_socket_release(&xdp->socket[socket], pieces);
}

uint64_t sl_xdp_lost(const struct sl_xdp *xdp)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < xdp->sockets; i++)
		lost += sl_xdp_socket_lost(&xdp->socket[i]);
	return lost;
}
