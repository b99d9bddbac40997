/* xdp.c - RoCEv2 through AF_XDP sockets: packets from the driver, past the network stack. Queues,
 * plans, credits and checks are the udp link's (udp.h), and so is sending. */
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "link/packet.h"
#include "xdp/xdp.h"

enum {
	ETHERNET = 14,
	PMTU_MAX = 2048, /* the largest that fits a chunk of one page with its headers */
	BATCH = 64,
};

struct sl_xdp_link {
	struct sl_udp udp; /* first: its options and its calls take a pointer to the whole */
	/* options */
	char interface[IF_NAMESIZE];
	uint32_t mode, chunks;
	/* state */
	bool opened;
	int guard;
	struct sl_xdp *xdp;
};

static const struct sl_option options[] = {
	SL_UDP_OPTIONS_ENDS,
	SL_STRING(struct sl_xdp_link, interface, "",
		  "receiver: take packets from this interface; empty: the one that has the "
		  "address"),
	SL_CHOICE(struct sl_xdp_link, mode, auto, "auto|driver|generic",
		  "receiver: in the driver, or above it, which any interface can; auto: the first "
		  "that works. Zero-copy where the driver has it"),
	SL_U32(struct sl_xdp_link, chunks, 2048, 64, 65536, "packets",
	       "receiver: room for so many packets of each receive queue; rounded up to a power "
	       "of two"),
	SL_UDP_OPTIONS_FLOW,
	SL_OPTION_END,
};

static unsigned choose_interface(const struct sl_xdp_link *link)
{
	const char *name = link->interface;
	unsigned index = name[0] ? if_nametoindex(name) : sl_packet_interface(link->udp.local);

	if (!index && !name[0])
		return if_nametoindex("lo"); /* 127.0.0.0/8, listed or not */
	if (!index)
		sl_error("link.interface: there is no interface '%s'; see: ip link", name);
	return index;
}

static int open_receiver(struct sl_xdp_link *link)
{
	unsigned interface = choose_interface(link);
	uint32_t chunks = 64;
	int err;

	if (!interface)
		return -ENODEV;
	while (chunks < link->chunks)
		chunks *= 2;
	link->chunks = chunks;
	if (link->udp.env.pmtu > PMTU_MAX) {
		link->udp.env.pmtu = PMTU_MAX;
		sl_info("link xdp: packets of %d bytes, since larger ones do not fit a page with "
			"their headers",
			PMTU_MAX);
	}
	err = sl_xdp_open(interface, link->udp.local, (uint16_t)link->udp.port,
			  (enum sl_xdp_mode)link->mode, chunks, &link->xdp);
	if (err)
		return err;
	sl_info("link xdp: %s", sl_xdp_how(link->xdp));
	link->guard = sl_packet_guard(link->udp.local, (uint16_t)link->udp.port);
	link->udp.in_fd = sl_xdp_fd(link->xdp);
	return 0;
}

/* All packets may come to one receive queue; half of its chunks stay free. */
static uint64_t safe_window(const struct sl_udp *udp, const struct sl_plan *plan)
{
	const struct sl_xdp_link *link = (const void *)udp;

	return link->chunks / 2 * (plan->block_bytes / plan->packets);
}

static int xdp_open(void *state, const struct sl_link_env *env)
{
	static const struct sl_udp_way way = {.window = safe_window};
	struct sl_xdp_link *link = state;
	int err;

	link->guard = -1;
	link->xdp = NULL;
	link->opened = true;
	link->udp.way = &way;
	/* What is not cut before it gets to the interface does not fit a chunk: on lo, or where
	 * generic mode is used on a virtual interface. */
	link->udp.segment = false;
	err = sl_udp_open(state, env);
	return err || !env->ring ? err : open_receiver(link);
}

static void xdp_close(void *state)
{
	struct sl_xdp_link *link = state;

	if (link->opened) {
		uint64_t lost = link->xdp ? sl_xdp_lost(link->xdp) : 0;

		if (lost)
			sl_warn("link xdp: %llu packets found no room, or were too long; make "
				"link.chunks larger, or set segment: false at a front end on this "
				"host",
				(unsigned long long)lost);
		sl_xdp_close(link->xdp);
		link->xdp = NULL;
		if (link->guard >= 0)
			close(link->guard);
		link->opened = false;
	}
	sl_udp_close(state);
}

static int xdp_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_xdp_link *link = state;
	struct sl_udp *udp = &link->udp;
	uint64_t now_ns = sl_clock_ns();
	struct sl_xdp_frame frame[BATCH];
	unsigned n = sl_xdp_take(link->xdp, frame, budget < BATCH ? budget : BATCH);

	sl_ring_enter(udp->env.ring, poller);
	for (unsigned i = 0; i < n; i++) {
		/* The program on the interface has seen to it that there is more. */
		const struct sl_packet_frame packet = {.ip = frame[i].data + ETHERNET,
						       .bytes = frame[i].bytes - ETHERNET};

		sl_packet_receive(udp, &packet, now_ns);
	}
	sl_ring_leave(udp->env.ring, poller);
	sl_udp_return_all(udp, poller, n == 0, now_ns);
	return (int)n;
}

const struct sl_link sl_link_xdp = {
	.name = "xdp",
	.doc = "RoCEv2 (UC, RC) in user space through AF_XDP: packets from the driver, past the "
	       "network stack; PMTU up to 2048",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_xdp_link),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_PACKET,
	.proof = sl_udp_proof,
	.guards = SL_GUARD_ENFORCED | SL_GUARD_CREDITED,
	.pollers = 1,
	.places = SL_REGION_HOST,
	.unavailable = sl_xdp_unavailable,
	.open = xdp_open,
	.close = xdp_close,
	.bare = true,
	.accept = sl_udp_accept,
	.meet = sl_udp_meet,
	.poll = xdp_poll,
	.wait = sl_udp_wait,
	.serve = sl_udp_serve,
	.reported = sl_udp_reported,
	.drop = sl_udp_drop,
	.offer = sl_udp_offer,
	.connect = sl_udp_connect,
	.post = sl_udp_post,
	.reap = sl_udp_reap,
};
