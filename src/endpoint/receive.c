/* receive.c - packets arrive: off the socket, whose they are, whether they are intact, and what
 * their queue pair does with them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "endpoint/state.h"

enum {
	ZERO_IDS = 16,	/* with none from SEGMENTS on between them: a peer is held to these */
	OTHER_IDS = 3,	/* in a row, and it is not any more */
	SEGMENTS = 128, /* UDP_MAX_SEGMENTS: a kernel makes no more packets of a message */
};

int sl_receive_queue_init(struct sl_endpoint *endpoint)
{
	endpoint->in_bytes = malloc((size_t)SL_RECEIVE_BATCH * SL_DATAGRAM_BYTES);
	if (!endpoint->in_bytes)
		return -ENOMEM;
	for (size_t i = 0; i < SL_RECEIVE_BATCH; i++) {
		struct msghdr *message = &endpoint->in[i].msg_hdr;

		endpoint->in_piece[i] = (struct iovec){endpoint->in_bytes + i * SL_DATAGRAM_BYTES,
						       SL_DATAGRAM_BYTES};
		message->msg_name = &endpoint->in_from[i];
		message->msg_iov = &endpoint->in_piece[i];
		message->msg_iovlen = 1;
		message->msg_control = endpoint->in_control[i];
	}
	return 0;
}

void sl_receive_queue_fini(struct sl_endpoint *endpoint)
{
	free(endpoint->in_bytes);
}

/* ---- what a packet does ---- */

static void place(struct sl_qp *qp, const struct sl_roce_packet *packet,
		  const struct sl_roce_action *action)
{
	switch (action->place) {
	case SL_ROCE_PLACE_MEMORY:
		memcpy(sl_memory_at(action->key, action->va), packet->payload, action->bytes);
		break;
	case SL_ROCE_PLACE_RECEIVE:
		sl_pieces_scatter(sl_works_next_receive(qp)->piece, action->offset, packet->payload,
				  action->bytes);
		break;
	case SL_ROCE_PLACE_NOWHERE:
		break;
	}
}

static void execute(struct sl_qp *qp, const struct sl_roce_packet *packet,
		    const struct sl_roce_action *action)
{
	bool write = sl_roce_opcode(packet->opcode)->kind == SL_ROCE_KIND_WRITE;
	const struct sl_completion done = {
		.kind = write ? SL_COMPLETION_RECEIVE_WRITE : SL_COMPLETION_RECEIVE,
		.immediate = action->immediate,
		.solicited = action->solicited,
		.imm = action->imm,
		.bytes = action->message_bytes,
	};

	place(qp, packet, action);
	if (action->receive)
		sl_works_received(qp, &done);
}

static void count_response(struct sl_qp_counters *counters, const struct sl_roce_packet *packet)
{
	if (!(packet->has & SL_ROCE_HAS_AETH))
		return;
	switch (packet->aeth.syndrome & SL_ROCE_SYNDROME_TYPE) {
	case SL_ROCE_ACK:
		counters->acks_received++;
		break;
	case SL_ROCE_RNR_NAK:
		counters->rnr_naks_received++;
		break;
	default:
		counters->naks_received++;
	}
}

/* The data of a READ: the part that it answers says where it goes. */
static void place_read(struct sl_qp *qp, const struct sl_roce_packet *packet,
		       const struct sl_roce_read *read)
{
	const struct sl_send *send = &qp->sends.slot[read->id >> 32];

	sl_pieces_scatter(send->work.piece, (uint32_t)read->id + read->offset, packet->payload,
			  read->bytes);
}

static unsigned rc_receive(struct sl_qp *qp, const struct sl_roce_path *path,
			   const struct sl_roce_packet *packet, uint64_t now)
{
	bool request = sl_roce_opcode(packet->opcode)->kind != SL_ROCE_KIND_RESPONSE;
	struct sl_roce_outcome outcome;
	enum sl_roce_drop drop;

	if (request && !sl_reply_room(qp))
		return SL_ENDPOINT_DROP_BUSY;
	drop = sl_roce_rc_queue_receive(&qp->rc, path, packet, now, sl_memory_lookup, qp->endpoint,
					&outcome);
	if (!drop && outcome.request)
		execute(qp, packet, &outcome.action);
	if (!drop && !outcome.request) {
		count_response(&qp->counters, packet);
		if (outcome.read.bytes)
			place_read(qp, packet, &outcome.read);
	}
	if (outcome.reply.pending)
		sl_reply_put(qp, &outcome.reply);
	sl_works_collect(qp);
	if (qp->rc.state == SL_ROCE_ERROR)
		sl_qp_failed(qp, drop == SL_ROCE_DROP_RECEIVE ? SL_STATUS_LOCAL_LENGTH : 0);
	return drop;
}

static unsigned uc_receive(struct sl_qp *qp, const struct sl_roce_path *path,
			   const struct sl_roce_packet *packet)
{
	struct sl_roce_action action;
	enum sl_roce_drop drop = sl_roce_responder_receive(&qp->uc, path, packet, sl_memory_lookup,
							   qp->endpoint, &action);

	if (!drop)
		execute(qp, packet, &action);
	return drop;
}

static unsigned ud_receive(struct sl_qp *qp, const struct sl_roce_path *path,
			   const struct sl_roce_packet *packet, size_t udp_bytes)
{
	uint8_t header[SL_ROCE_UD_HEADER_BYTES];
	struct sl_roce_ud_arrival arrival;
	const struct sl_piece *pieces;
	struct sl_completion done;
	enum sl_roce_drop drop = sl_roce_ud_receive(&qp->ud, path, packet, &arrival);

	if (drop)
		return drop;
	pieces = sl_works_next_receive(qp)->piece;
	sl_roce_ud_header(path, (uint32_t)udp_bytes, header);
	sl_pieces_scatter(pieces, 0, header, sizeof(header));
	sl_pieces_scatter(pieces, arrival.offset, packet->payload, arrival.bytes);
	done = (struct sl_completion){
		.kind = SL_COMPLETION_RECEIVE,
		.immediate = arrival.immediate,
		.solicited = arrival.solicited,
		.imm = arrival.imm,
		.bytes = arrival.receive_bytes,
		.from = {.port = path->source_port, .qpn = arrival.source_qpn},
	};
	memcpy(done.from.address, path->source, sizeof(done.from.address));
	sl_works_received(qp, &done);
	return drop;
}

/* ---- whether it is intact ---- */

/* Over IPv4 the ICRC covers an identification that a socket does not show. A kernel gives 0 to a
 * packet that may not be divided, and counts up from 0 where it cuts packets from a longer message.
 * Any identification is accepted until the peer has begun at 0 for a while: then it must go on so,
 * and the check is nearly as strong as it can be. Identifications that only count up prove nothing:
 * Soft-RoCE's do, and jump when the peer has paused. A peer that changes its mind is believed after
 * a few packets. */
static bool right_id(struct sl_qp *qp, uint16_t id)
{
	bool expected = id < SEGMENTS;

	if (!expected && qp->zero_ids == ZERO_IDS && ++qp->other_ids < OTHER_IDS)
		return false;
	/* After 0 comes 1 in a longer message, and 0 again where each packet is its own. */
	qp->next_id = id == 0 && qp->next_id <= 1 ? 0 : (uint16_t)(id + 1);
	if (!expected)
		qp->zero_ids = 0;
	else if (id == 0)
		qp->zero_ids += qp->zero_ids < ZERO_IDS;
	qp->other_ids = 0;
	return true;
}

static bool intact(struct sl_qp *qp, struct sl_roce_path *path, const uint8_t *bytes, size_t count)
{
	path->ip_id = qp->next_id;
	if (!sl_roce_icrc_check(path, bytes, count, sl_crc32) &&
	    !sl_roce_icrc_check_any_id(path, bytes, count, sl_crc32, &path->ip_id))
		return false;
	/* Others may make the CNPs of a peer: their identifications say nothing about its. */
	return qp->options.transport == SL_ROCE_UD || bytes[0] == SL_ROCE_OPCODE_CNP ||
	       right_id(qp, path->ip_id);
}

static bool from_peer(const struct sl_qp *qp, const struct sl_roce_path *path)
{
	return qp->options.transport == SL_ROCE_UD ||
	       memcmp(path->source, qp->path.dest, sizeof(path->source)) == 0;
}

/* ---- whose it is ---- */

static unsigned deliver(struct sl_qp *qp, struct sl_roce_path *path,
			const struct sl_roce_packet *packet, const uint8_t *bytes, size_t count,
			uint64_t now)
{
	enum sl_roce_state state = sl_qp_state(qp);

	if (state != SL_ROCE_RTR && state != SL_ROCE_RTS)
		return SL_ROCE_DROP_STATE;
	if (!from_peer(qp, path))
		return SL_ROCE_DROP_PEER;
	if (!intact(qp, path, bytes, count))
		return SL_ENDPOINT_DROP_ICRC;
	if ((path->tos & SL_NET_ECN_MASK) == SL_NET_ECN_CE)
		sl_congestion_marked(qp, now);
	if (packet->opcode == SL_ROCE_OPCODE_CNP && qp->options.transport != SL_ROCE_UD)
		return sl_congestion_notified(qp, path, packet, now);
	switch (qp->options.transport) {
	case SL_ROCE_RC:
		return rc_receive(qp, path, packet, now);
	case SL_ROCE_UC:
		return uc_receive(qp, path, packet);
	default:
		return ud_receive(qp, path, packet, count);
	}
}

void sl_endpoint_datagram(struct sl_endpoint *endpoint, const union sl_net_address *from,
			  uint8_t traffic_class, const uint8_t *bytes, size_t count, uint64_t now)
{
	struct sl_roce_path path = {
		.dest_port = endpoint->port, .dont_fragment = true, .tos = traffic_class};
	unsigned drop = SL_ENDPOINT_DROP_MALFORMED;
	struct sl_roce_packet packet;
	struct sl_qp *qp;

	endpoint->counters.received++;
	endpoint->counters.received_bytes += count;
	if ((traffic_class & SL_NET_ECN_MASK) == SL_NET_ECN_CE)
		endpoint->counters.congested++;
	if (count <= SL_PACKET_BYTES && sl_roce_parse(bytes, count, &packet) == SL_ROCE_OK) {
		path.source_port = sl_net_gid(from, path.source);
		memcpy(path.dest, endpoint->options.address, sizeof(path.dest));
		qp = sl_table_find(&endpoint->numbers, packet.qpn);
		drop = qp ? deliver(qp, &path, &packet, bytes, count, now) : SL_ROCE_DROP_QUEUE;
		if (qp) {
			qp->counters.received++;
			qp->counters.dropped += drop != SL_ROCE_ACCEPTED;
		}
	}
	endpoint->counters.dropped[drop]++;
}

/* A datagram may be several packets of one length that the kernel has put together. Returns how
 * many there are. */
static unsigned take_datagram(struct sl_endpoint *endpoint, unsigned i, uint64_t now)
{
	const struct msghdr *message = &endpoint->in[i].msg_hdr;
	const uint8_t *bytes = endpoint->in_piece[i].iov_base;
	size_t count = endpoint->in[i].msg_len, each = sl_net_segment_bytes(message);
	uint8_t traffic_class = sl_net_class(message);
	unsigned packets = 0;

	if (message->msg_flags & MSG_TRUNC)
		count = 0;
	do {
		size_t n = each && each < count ? each : count;

		sl_endpoint_datagram(endpoint, &endpoint->in_from[i], traffic_class, bytes, n, now);
		bytes += n;
		count -= n;
		packets++;
	} while (count);
	return packets;
}

/* Returns how many datagrams there were; their packets are added to *packets. */
static int receive_batch(struct sl_endpoint *endpoint, uint64_t now, unsigned most,
			 unsigned *packets)
{
	int n;

	for (unsigned i = 0; i < most; i++) {
		endpoint->in[i].msg_hdr.msg_namelen = sizeof(endpoint->in_from[i]);
		endpoint->in[i].msg_hdr.msg_controllen = sizeof(endpoint->in_control[i]);
	}
	n = recvmmsg(endpoint->fd, endpoint->in, most, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		*packets += take_datagram(endpoint, (unsigned)i, now);
	return n;
}

unsigned sl_endpoint_receive_packets(struct sl_endpoint *endpoint, uint64_t now, unsigned budget)
{
	unsigned received = 0;

	while (received < budget) {
		unsigned most = budget - received;
		int n;

		most = most < SL_RECEIVE_BATCH ? most : SL_RECEIVE_BATCH;
		n = receive_batch(endpoint, now, most, &received);
		if (n < (int)most)
			break;
	}
	return received;
}
