/* packet.c - RoCEv2 through a packet socket: the receiver sees packets with all their headers,
 * beside whoever owns port 4791. Options, opening, closing, polling. */
#include "link/packet/packet.h"

#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

struct sl_packet {
	struct sl_udp udp; /* first: its options and its calls take a pointer to the whole */
	/* options */
	char interface[IF_NAMESIZE];
	uint64_t ring_bytes;
	uint32_t delivery;
	/* state */
	bool opened;
	int claim, guard;
	uint64_t lost; /* packets that found no room, as counted so far */
	struct sl_packet_blocks ring[SL_POLLERS];
	struct sl_look look[SL_POLLERS];
};

enum { DELIVER_PACKETS, DELIVER_BLOCKS };

static const struct sl_option options[] = {
	SL_UDP_OPTIONS_ENDS,
	SL_STRING(struct sl_packet, interface, "",
		  "receiver: take packets from this interface; empty: the one that has the "
		  "address. What this host sends itself comes over lo and is taken, too"),
	SL_U64(struct sl_packet, ring_bytes, 33554432, 2097152, 1073741824, "bytes",
	       "receiver: memory that the kernel puts packets into, for each of link.pollers"),
	SL_CHOICE(struct sl_packet, delivery, packets, "packets|blocks",
		  "receiver: the kernel shows packets one by one, or in blocks (TPACKET_V3): "
		  "fewer hand-overs, but a packet may wait for some milliseconds"),
	SL_UDP_OPTIONS_FLOW,
	SL_OPTION_END,
};

/* ---- opening ---- */

/* The one of the address, and loopback: what this host sends to any address of its own travels
 * there. All of 127.0.0.0/8 is loopback's, listed or not. */
static int choose_interfaces(const struct sl_packet *packet, unsigned interface[2])
{
	const char *name = packet->interface;

	interface[1] = if_nametoindex("lo");
	interface[0] = name[0] ? if_nametoindex(name) : sl_packet_interface(packet->udp.local);
	if (!interface[0] && !name[0])
		interface[0] = interface[1];
	if (interface[0])
		return 0;
	sl_error("link.interface: there is no interface '%s'; see: ip link", name);
	return -ENODEV;
}

/* Two receivers at one address would each count the other's packets as strange. The kernel forgets
 * such a name when its owner ends. */
static int claim_address(struct sl_packet *packet)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char text[SL_NET_TEXT_BYTES];
	int n;

	sl_net_format(packet->udp.local, text);
	n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sluice-packet-%s-%u", text,
		     packet->udp.port);
	packet->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (packet->claim < 0)
		return -errno;
	if (!bind(packet->claim, (struct sockaddr *)&name,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		return 0;
	if (errno == EADDRINUSE)
		sl_error("another receiver takes packets for %s port %u; take another address",
			 text, packet->udp.port);
	return -errno;
}

/* One for each poller. They listen when all are there, so that nothing comes to two of them. */
static int open_rings(struct sl_packet *packet, const struct sl_packet_filter *filter)
{
	unsigned pollers = packet->udp.env.pollers;
	struct sl_packet_filter spread;
	union sl_net_address at;
	bool v4;
	int err = 0;

	sl_net_address(packet->udp.local, 0, &at);
	v4 = at.any.sa_family == AF_INET;
	for (unsigned i = 0; i < pollers && !err; i++) {
		err = sl_packet_blocks_open(&packet->ring[i], packet->ring_bytes,
					    packet->delivery == DELIVER_BLOCKS, v4);
		packet->udp.in_fd[i] = packet->ring[i].fd;
	}
	if (!err && pollers > 1) {
		sl_packet_filter_spread(&spread, v4, packet->udp.qpn_base, pollers);
		err = sl_packet_blocks_group(packet->ring, pollers, &spread);
	}
	for (unsigned i = 0; i < pollers && !err; i++)
		err = sl_packet_blocks_listen(&packet->ring[i], filter);
	return err;
}

static int open_receiver(struct sl_packet *packet)
{
	struct sl_packet_filter filter;
	unsigned interface[2];
	int err = choose_interfaces(packet, interface);

	if (!err)
		err = claim_address(packet);
	if (err)
		return err;
	sl_packet_filter_init(&filter, packet->udp.local, (uint16_t)packet->udp.port, interface);
	err = open_rings(packet, &filter);
	if (err)
		return err;
	packet->guard = sl_packet_guard(packet->udp.local, (uint16_t)packet->udp.port);
	return 0;
}

/* Over all modules, as if they shared one ring. A frame holds one packet at least, and half of
 * them stay free. */
static uint64_t safe_window(const struct sl_udp *udp, const struct sl_plan *plan)
{
	const struct sl_packet *packet = (const void *)udp;
	uint32_t modules = udp->env.ring->modules;
	uint32_t of_one_ring = (modules + udp->env.pollers - 1) / udp->env.pollers;

	return sl_packet_blocks_frames(&packet->ring[0]) / 2 * (plan->block_bytes / plan->packets) *
	       modules / of_one_ring;
}

static int packet_open(void *state, const struct sl_link_env *env)
{
	static const struct sl_udp_backend backend = {.window = safe_window};
	struct sl_packet *packet = state;
	int err;

	packet->claim = packet->guard = -1;
	packet->lost = 0;
	for (unsigned i = 0; i < SL_POLLERS; i++)
		packet->ring[i] = (struct sl_packet_blocks){.fd = -1};
	packet->opened = true;
	packet->udp.backend = &backend;
	err = sl_udp_open(state, env);
	return err || !env->ring ? err : open_receiver(packet);
}

static void count_lost(struct sl_packet *packet)
{
	struct sl_link_counters *counters = packet->udp.env.counters;
	unsigned lost = 0;

	for (unsigned i = 0; i < SL_POLLERS; i++)
		lost += packet->ring[i].map ? sl_packet_blocks_lost(&packet->ring[i]) : 0;
	packet->lost += lost;
	if (counters)
		atomic_fetch_add(&counters->dropped[SL_DROP_FULL], lost);
}

static int packet_serve(void *state)
{
	count_lost(state);
	return sl_udp_serve(state);
}

static void packet_close(void *state)
{
	struct sl_packet *packet = state;

	if (packet->opened) {
		count_lost(packet);
		for (unsigned i = 0; i < SL_POLLERS; i++)
			sl_packet_blocks_close(&packet->ring[i]);
		if (packet->lost)
			sl_warn("link packet: %llu packets found no room in the ring; make "
				"link.ring_bytes larger",
				(unsigned long long)packet->lost);
		if (packet->guard >= 0)
			close(packet->guard);
		if (packet->claim >= 0)
			close(packet->claim);
		packet->opened = false;
	}
	sl_udp_close(state);
}

/* ---- receiving ---- */

static int packet_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_packet *packet = state;
	struct sl_packet_blocks *ring = &packet->ring[poller];
	struct sl_udp *udp = &packet->udp;
	uint64_t now_ns = sl_clock_ns();
	struct sl_packet_frame frame;
	struct sl_roce_piece piece;
	uint64_t looked_ns;
	unsigned n = 0;

	sl_ring_enter(udp->env.ring, poller);
	while (n < budget && sl_packet_blocks_next(ring, &frame, &piece)) {
		n += sl_packet_receive(udp, poller, &frame, now_ns);
		sl_packet_blocks_release(ring);
	}
	looked_ns = sl_look_pass(&packet->look[poller], now_ns, n, n < budget);
	/* A block of packets comes when it is full or old: what is younger may still be in it. */
	if (looked_ns && ring->blocks)
		looked_ns -= SL_PACKET_BLOCK_NS;
	sl_udp_looked(udp, poller, looked_ns);
	sl_ring_leave(udp->env.ring, poller);
	sl_udp_return_all(udp, poller, n == 0, now_ns);
	return (int)n;
}

static const struct sl_link_receiving receiving = {
	.accept = sl_udp_accept,
	.set_queue = sl_udp_set_queue,
	.poll = packet_poll,
	.wait = sl_udp_wait,
	.serve = packet_serve,
	.reported = sl_udp_reported,
	.drop = sl_udp_drop,
	.failed = sl_udp_has_failed,
};

const struct sl_link sl_link_packet = {
	.name = "packet",
	.doc = "RoCEv2 (UC, RC) in user space, received through a packet socket: works beside who "
	       "owns port 4791; needs CAP_NET_RAW",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_packet),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_PACKET,
	.proof = sl_udp_proof,
	.guards = SL_GUARD_ENFORCED | SL_GUARD_CREDITED,
	.pollers = SL_POLLERS,
	.places = SL_REGION_HOST,
	.unavailable = sl_packet_unavailable,
	.facts = sl_udp_facts,
	.open = packet_open,
	.close = packet_close,
	.bare = true,
	.packet_faults = SL_UDP_PACKET_FAULTS,
	.receiving = &receiving,
	.sending = &sl_udp_sending,
	.no_handover = "packets wait in a ring of this process; use link udp",
};
