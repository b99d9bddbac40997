/* answer.c - what comes back to a source: credits, acknowledgements, word of congestion. */
#include <errno.h>
#include <string.h>

#include "link/udp/udp.h"

enum {
	ANSWER_MAX = 256, /* headers and 8 bytes; a longer one is not ours */
	/* Taken at once: a flood of packets must not keep the thread from sending. */
	ANSWERS = 64,
};

/* A grant is believed as any other RDMA write would be: ICRC, queue, peer, key and range. It
 * never goes back. */
static void take_grant(struct sl_udp_source *source, const struct sl_roce_packet *packet,
		       const struct sl_roce_action *action)
{
	uint64_t grant;

	if (action->place != SL_ROCE_PLACE_MEMORY || action->bytes != sizeof(grant))
		return;
	memcpy(&grant, packet->payload, sizeof(grant)); /* little-endian on the wire and here */
	if (grant > source->granted)
		source->granted = grant;
}

static void take_uc(struct sl_udp_source *source, const struct sl_roce_path *path,
		    const struct sl_roce_packet *packet)
{
	struct sl_roce_action action;

	if (sl_roce_responder_receive(&source->uc, path, packet, sl_udp_key_of, &source->key,
				      &action) != SL_ROCE_ACCEPTED)
		return;
	source->answer_port = path->source_port;
	take_grant(source, packet, &action);
}

static void take_rc(struct sl_udp_source *source, const struct sl_roce_path *path,
		    const struct sl_roce_packet *packet, uint64_t now_ns)
{
	struct sl_roce_outcome outcome;
	uint8_t header[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;

	if (sl_roce_rc_queue_receive(&source->rc, path, packet, now_ns, sl_udp_key_of, &source->key,
				     &outcome) == SL_ROCE_ACCEPTED) {
		source->answer_port = path->source_port;
		if (outcome.request)
			take_grant(source, packet, &outcome.action);
	}
	/* Credits are few: each is acknowledged at once, and one lost acknowledgement is asked for
	 * again. */
	while (sl_roce_reply_next(&outcome.reply, header, &fragment))
		sl_udp_send_one(source->fd, &source->out, header, fragment.header_bytes, NULL, 0);
}

/* A CNP proves less than a credit or an acknowledgement, which knows a key or a PSN. So it must
 * come from where those come from: our own receivers answer from one port, which no other program
 * on their host has. RDMA NICs (reply_port) send CNPs from any port, 0 among them. */
static void take_cnp(struct sl_udp *udp, struct sl_udp_source *source,
		     const struct sl_roce_path *path, uint64_t now_ns)
{
	struct sl_link_counters *counters = udp->env.counters;
	bool known = udp->reply_port || !source->answer_port ||
		     source->answer_port == path->source_port;

	if (known)
		sl_roce_rate_on_cnp(&source->rate, now_ns);
	if (counters)
		atomic_fetch_add_explicit(known ? &counters->slowed
						: &counters->dropped[SL_DROP_PEER],
					  1, memory_order_relaxed);
}

static void take(struct sl_udp *udp, struct sl_udp_source *source, const uint8_t *data,
		 size_t bytes, const union sl_net_address *from, uint64_t now_ns)
{
	struct sl_roce_packet packet;
	struct sl_roce_path path;

	if (sl_roce_parse(data, bytes, &packet))
		return;
	for (uint32_t i = 0; !source && i < udp->sources; i++)
		if (udp->send[i].offer.credit_qpn == packet.qpn && udp->send[i].plan.version)
			source = &udp->send[i];
	if (!source)
		return;
	path = source->back;
	path.source_port = sl_net_gid(from, path.source);
	/* Which identification the receiver's host sends was not agreed. */
	if (!sl_udp_icrc_good(&path, data, bytes, SL_IP_ID_ANY))
		return;
	if (sl_roce_cnp_receive(source->offer.credit_qpn, source->back.source, source->back.dest,
				&path, &packet) == SL_ROCE_ACCEPTED) {
		take_cnp(udp, source, &path, now_ns);
		return;
	}
	if (source->plan.service == SL_SERVICE_RC)
		take_rc(source, &path, &packet, now_ns);
	else
		take_uc(source, &path, &packet);
}

static void take_all(struct sl_udp *udp, int fd, struct sl_udp_source *source, uint64_t now_ns)
{
	uint8_t data[ANSWER_MAX];

	for (unsigned i = 0; i < ANSWERS; i++) {
		union sl_net_address from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, &from.any, &size);

		if (n < 0)
			return;
		take(udp, source, data, (size_t)n, &from, now_ns);
	}
}

void sl_udp_take_answers(struct sl_udp *udp, struct sl_udp_source *source, uint64_t now_ns)
{
	take_all(udp, source->fd, source, now_ns);
	if (udp->fd >= 0)
		take_all(udp, udp->fd, NULL, now_ns);
}
