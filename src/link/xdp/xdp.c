/* xdp.c - RoCEv2 through AF_XDP sockets: packets from the driver, past the network stack. Queues,
 * plans, credits and checks are the udp link's (link/udp/udp.h), and so is sending.
 *
 * The NIC chooses a receive queue for each source, each receive queue has a socket, and each socket
 * a poller: so the queue pairs follow their packets from one poller to another (sl_udp_claim). */
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "link/packet/packet.h"
#include "net/xdp/xdp.h"

enum {
	ETHERNET = 14,
	HEADERS = ETHERNET + 40 + 8 + SL_ROCE_HEADERS_MAX + SL_ROCE_ICRC_BYTES,
	BATCH = SL_PACKET_PIECES_MAX,
};

struct sl_xdp_link {
	struct sl_udp udp; /* first: its options and its calls take a pointer to the whole */
	/* options */
	char interface[IF_NAMESIZE];
	uint32_t mode, chunks;
	/* state */
	bool opened, generic;
	int guard;
	struct sl_xdp *xdp;
	uint64_t lost; /* packets that found no room, as counted so far */
	struct sl_look look[SL_POLLERS];
	/* Up to when each poller has taken everything from its sockets. */
	_Atomic uint64_t looked_ns[SL_POLLERS];
};

static const struct sl_option options[] = {
	SL_UDP_OPTIONS_ENDS,
	SL_STRING(struct sl_xdp_link, interface, "",
		  "receiver: take packets from this interface; empty: the one that has the "
		  "address"),
	SL_CHOICE(struct sl_xdp_link, mode, auto, "auto|zerocopy|native|generic",
		  "receiver: the NIC writes packets to our memory; or the driver's packets are "
		  "copied; or those above the driver, which any interface has. auto: the first "
		  "that works"),
	SL_U32(struct sl_xdp_link, chunks, 2048, 64, 65536, "pages",
	       "receiver: memory of each receive queue; rounded up to a power of two. A packet "
	       "takes one, or two where pmtu is 4096"),
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

/* What was found, and what it means. */
static void tell(struct sl_xdp_link *link)
{
	unsigned sockets = sl_xdp_sockets(link->xdp);

	sl_info("link xdp: %s, receive queues: %u", sl_xdp_how(link->xdp), sockets);
	if (sockets < link->udp.env.pollers)
		sl_info("link xdp: only %u of %u pollers have something to do; more receive "
			"queues: ethtool -L INTERFACE",
			sockets, link->udp.env.pollers);
	if (link->udp.env.pmtu > SL_XDP_PMTU_SMALL && sl_xdp_limit(link->xdp)) {
		link->udp.env.pmtu = SL_XDP_PMTU_SMALL;
		sl_info("link xdp: packets of %d bytes, since larger ones do not fit a page with "
			"their headers, and %s",
			SL_XDP_PMTU_SMALL, sl_xdp_limit(link->xdp));
	}
}

static int open_receiver(struct sl_xdp_link *link)
{
	struct sl_xdp_want want = {.interface = choose_interface(link),
				   .gid = link->udp.local,
				   .port = (uint16_t)link->udp.port,
				   .mode = (enum sl_xdp_mode)link->mode,
				   .large = link->udp.env.pmtu > SL_XDP_PMTU_SMALL,
				   .chunks = 64,
				   .pollers = link->udp.env.pollers};
	int err;

	if (!want.interface)
		return -ENODEV;
	while (want.chunks < link->chunks)
		want.chunks *= 2;
	link->chunks = want.chunks;
	err = sl_xdp_open(&want, &link->xdp);
	if (err)
		return err;
	tell(link);
	link->generic = sl_xdp_generic(link->xdp);
	link->guard = sl_packet_guard(link->udp.local, (uint16_t)link->udp.port);
	for (unsigned i = 0; i < want.pollers; i++)
		link->udp.in_fd[i] = sl_xdp_fd(link->xdp, i);
	return 0;
}

/* All packets may come to one receive queue; half of its chunks stay free. */
static uint64_t safe_window(const struct sl_udp *udp, const struct sl_plan *plan)
{
	const struct sl_xdp_link *link = (const void *)udp;
	uint32_t pieces = (plan->pmtu + HEADERS + SL_XDP_FRAME_MAX - 1) / SL_XDP_FRAME_MAX;

	return link->chunks / pieces / 2 * (plan->block_bytes / plan->packets);
}

static int xdp_open(void *state, const struct sl_link_env *env)
{
	static const struct sl_udp_backend backend = {.window = safe_window, .follow = true};
	struct sl_xdp_link *link = state;
	int err;

	link->guard = -1;
	link->xdp = NULL;
	link->lost = 0;
	link->opened = true;
	link->udp.backend = &backend;
	/* What is not cut before it gets to the interface has to come in several buffers: on lo,
	 * or where generic mode is used on a virtual interface; both have this kernel. */
	if (sl_xdp_kernel_limit(NULL))
		link->udp.segment = false;
	err = sl_udp_open(state, env);
	return err || !env->ring ? err : open_receiver(link);
}

static void count_lost(struct sl_xdp_link *link)
{
	uint64_t lost = link->xdp ? sl_xdp_lost(link->xdp) : link->lost;

	if (link->udp.env.counters)
		atomic_fetch_add(&link->udp.env.counters->dropped[SL_DROP_FULL], lost - link->lost);
	link->lost = lost;
}

static int xdp_serve(void *state)
{
	count_lost(state);
	return sl_udp_serve(state);
}

static void xdp_close(void *state)
{
	struct sl_xdp_link *link = state;

	if (link->opened) {
		count_lost(link);
		if (link->lost)
			sl_warn("link xdp: %llu packets found no room, or were too long; make "
				"link.chunks larger, or set segment: false at a front end on this "
				"host",
				(unsigned long long)link->lost);
		sl_xdp_close(link->xdp);
		link->xdp = NULL;
		if (link->guard >= 0)
			close(link->guard);
		link->opened = false;
	}
	sl_udp_close(state);
}

/* ---- receiving ---- */

/* Pieces of the first frame; 0: its end is not there. */
static unsigned frame_of(const struct sl_xdp_piece *piece, unsigned n, struct sl_roce_piece *out)
{
	for (unsigned i = 0; i < n; i++) {
		/* The program on the interface has seen to it that the first has headers. */
		unsigned skip = i ? 0 : ETHERNET;

		out[i] = (struct sl_roce_piece){piece[i].data + skip, piece[i].bytes - skip};
		if (!piece[i].more)
			return i + 1;
	}
	return 0;
}

/* Packets of one socket. What belongs to another thread stays, with all that follows it, until
 * that one has handed the queue over. */
static unsigned take(struct sl_xdp_link *link, unsigned poller, unsigned socket, unsigned budget,
		     uint64_t now_ns, bool *emptied)
{
	struct sl_xdp_piece piece[BATCH];
	struct sl_roce_piece ip[BATCH];
	unsigned n = sl_xdp_peek(link->xdp, socket, piece, BATCH), done = 0, packets = 0;

	*emptied = n == 0;
	while (done < n && packets < budget) {
		struct sl_packet_frame frame = {.piece = ip, .uncut = link->generic};
		unsigned here;

		frame.pieces = frame_of(piece + done, n - done, ip);
		if (!frame.pieces && (done || n < BATCH))
			break;		   /* the rest of it comes with the next call */
		frame.cut = !frame.pieces; /* longer than any packet */
		if (frame.cut)
			frame.pieces = n;
		here = sl_packet_receive(&link->udp, poller, &frame, now_ns);
		if (!here)
			break;
		packets += here;
		done += frame.pieces;
	}
	sl_xdp_release(link->xdp, socket, done);
	return packets;
}

/* A module's packets may come to any socket before its queue has followed them there: so what all
 * pollers have taken counts, not what its own has. */
static void note_look(struct sl_xdp_link *link, unsigned poller, uint64_t looked_ns)
{
	unsigned pollers = link->udp.env.pollers;

	if (!looked_ns)
		return;
	/* Release: pairs with the acquire of the other pollers, which publish it. */
	atomic_store_explicit(&link->looked_ns[poller], looked_ns, memory_order_release);
	for (unsigned i = 0; i < pollers; i++) {
		uint64_t theirs = atomic_load_explicit(&link->looked_ns[i], memory_order_acquire);

		looked_ns = theirs < looked_ns ? theirs : looked_ns;
	}
	sl_udp_looked(&link->udp, poller, looked_ns);
}

static int xdp_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_xdp_link *link = state;
	struct sl_udp *udp = &link->udp;
	unsigned sockets = sl_xdp_sockets(link->xdp), n = 0;
	uint64_t now_ns = sl_clock_ns();
	bool emptied = true;

	sl_ring_enter(udp->env.ring, poller);
	for (unsigned i = poller; i < sockets; i += udp->env.pollers) {
		unsigned all = 0, here;
		bool empty;

		do {
			here = take(link, poller, i, budget - all, now_ns, &empty);
			all += here;
		} while (here && all < budget);
		n += all;
		emptied &= empty;
	}
	note_look(link, poller, sl_look_pass(&link->look[poller], now_ns, n, emptied));
	sl_ring_leave(udp->env.ring, poller);
	sl_udp_return_all(udp, poller, n == 0, now_ns);
	return (int)n;
}

static const struct sl_link_receiving receiving = {
	.accept = sl_udp_accept,
	.set_queue = sl_udp_set_queue,
	.poll = xdp_poll,
	.wait = sl_udp_wait,
	.serve = xdp_serve,
	.reported = sl_udp_reported,
	.drop = sl_udp_drop,
	.failed = sl_udp_has_failed,
};

const struct sl_link sl_link_xdp = {
	.name = "xdp",
	.doc = "RoCEv2 (UC, RC) in user space through AF_XDP: packets from the driver, past the "
	       "network stack; PMTU 4096 needs Linux 6.6, else 2048",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_xdp_link),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_PACKET,
	.proof = sl_udp_proof,
	.guards = SL_GUARD_ENFORCED | SL_GUARD_CREDITED,
	.pollers = SL_POLLERS,
	.places = SL_REGION_HOST,
	.unavailable = sl_xdp_unavailable,
	.facts = sl_udp_facts,
	.open = xdp_open,
	.close = xdp_close,
	.bare = true,
	.packet_faults = SL_UDP_PACKET_FAULTS,
	.receiving = &receiving,
	.sending = &sl_udp_sending,
	.no_handover = "packets wait in memory of this process; use link udp",
};
