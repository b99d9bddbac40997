/* packet_fuzz.c - any bytes as a run of packets for a UC, an RC and a UD queue.
 *
 * The input is records: two bytes (bits 0..12: length, bit 14: PSN near the one that RC waits for,
 * bit 15: aim it at our queue and key), then that many bytes of UDP payload. What parses must
 * encode to the same headers; CNPs go to a rate controller; what a responder accepts must lie
 * inside the registered memory, and what a requester accepts inside its READ, whose ends the
 * sanitizer guards; what is dropped must not move the expected PSN; what RC answers from memory
 * must lie inside it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/cnp.h"
#include "roce/icrc.h"
#include "roce/psn.h"
#include "roce/rate.h"
#include "roce/rc_queue.h"
#include "roce/ud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QPN = 0x11, RKEY = 0x4242, PMTU = 256, MEMORY_BYTES = 1500, RECEIVE_BYTES = 700 };
enum { QKEY = 0x1111, READ_BYTES = 601, WORKS = 4, PSN = 0xfffff0 };
#define BASE UINT64_C(0x10000)

struct target {
	struct sl_roce_responder queue;
	struct sl_roce_key key;
	uint8_t *memory, *receive, *read;
	struct sl_roce_rc_queue rc;
	struct sl_roce_work works[WORKS];
	struct sl_roce_ud_receiver ud;
	struct sl_roce_rate rate;
	struct sl_roce_cnp cnp;
	uint64_t now;
};

static void require(int good)
{
	if (!good)
		abort();
}

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	const struct sl_roce_key *key = arg;

	return key->rkey == rkey ? key : NULL;
}

static void rc_connect(struct target *target)
{
	struct sl_roce_rc_queue *rc = &target->rc;

	memset(rc, 0, sizeof(*rc));
	rc->responder.queue = target->queue;
	rc->responder.queue.transport = SL_ROCE_RC;
	rc->responder.queue.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ;
	rc->responder.queue.expected_psn = PSN;
	rc->responder.queue.receives = 3;
	rc->requester.psn = PSN;
	rc->requester.window = 8;
	rc->requester.ack_every = 4;
	rc->requester.reads = 2;
	rc->requester.timeout_ns = 7;
	rc->requester.retries = 7;
	rc->requester.rnr_retries = 7;
	rc->requester.works = target->works;
	rc->requester.capacity = WORKS;
	require(sl_roce_rc_queue_modify(rc, SL_ROCE_INIT) == SL_ROCE_OK);
	require(sl_roce_rc_queue_modify(rc, SL_ROCE_RTR) == SL_ROCE_OK);
	require(sl_roce_rc_queue_modify(rc, SL_ROCE_RTS) == SL_ROCE_OK);
}

static void target_init(struct target *target)
{
	memset(target, 0, sizeof(*target));
	target->queue.transport = SL_ROCE_UC;
	target->queue.pkey = SL_ROCE_PKEY_DEFAULT;
	target->queue.qpn = QPN;
	target->queue.pmtu = PMTU;
	target->queue.access = SL_ROCE_REMOTE_WRITE;
	target->queue.receives = 3;
	target->queue.receive_bytes = RECEIVE_BYTES;
	target->key = (struct sl_roce_key){RKEY, SL_ROCE_REMOTE_WRITE, 0, BASE, MEMORY_BYTES};
	target->key.access |= SL_ROCE_REMOTE_READ;
	target->memory = malloc(MEMORY_BYTES);
	target->receive = malloc(RECEIVE_BYTES);
	target->read = malloc(READ_BYTES);
	require(target->memory && target->receive && target->read);
	memset(target->memory, 0, MEMORY_BYTES);
	require(sl_roce_responder_init(&target->queue) == SL_ROCE_OK);
	target->ud = (struct sl_roce_ud_receiver){.pkey = SL_ROCE_PKEY_DEFAULT,
						  .qpn = QPN,
						  .qkey = QKEY,
						  .pmtu = PMTU,
						  .receives = 3,
						  .receive_bytes = RECEIVE_BYTES};
	require(sl_roce_rate_init(&target->rate) == SL_ROCE_OK);
	rc_connect(target);
}

static void check_encoding(const struct sl_roce_packet *packet, const uint8_t *bytes)
{
	uint8_t again[SL_ROCE_HEADERS_MAX], original[SL_ROCE_HEADERS_MAX];
	int n = sl_roce_encode_headers(packet, again);

	require(n == packet->header_bytes);
	memcpy(original, bytes, (size_t)n);
	if (packet->has & SL_ROCE_HAS_DETH)
		original[SL_ROCE_BTH_BYTES + 4] = 0; /* reserved: read as anything, sent as 0 */
	if (packet->has & SL_ROCE_HAS_CNP)
		memset(original + SL_ROCE_BTH_BYTES, 0, 16);
	require(memcmp(again, original, (size_t)n) == 0);
}

static void check_icrc(const struct sl_roce_packet *packet, const uint8_t *bytes, size_t n)
{
	struct sl_roce_path path = {.source = {[10] = 0xff, 0xff, 1},
				    .dest = {[10] = 0xff, 0xff, 2},
				    .dest_port = SL_ROCE_UDP_PORT};
	struct sl_roce_piece piece = {packet->payload, packet->payload_bytes + packet->pad};
	uint32_t icrc = sl_roce_icrc(&path, bytes, packet->header_bytes, &piece, 1, 0, NULL);
	bool good = sl_roce_icrc_check(&path, bytes, n, NULL);
	uint16_t id;

	require(good == (icrc == packet->icrc));
	if (sl_roce_icrc_check_any_id(&path, bytes, n, NULL, &id)) {
		path.ip_id = id;
		require(sl_roce_icrc_check(&path, bytes, n, NULL));
	}
}

static void place(struct target *target, const struct sl_roce_packet *packet,
		  const struct sl_roce_action *action)
{
	require(action->bytes == packet->payload_bytes && action->bytes <= PMTU);
	switch (action->place) {
	case SL_ROCE_PLACE_MEMORY:
		require(action->key == &target->key);
		require(action->va >= BASE && action->va - BASE <= MEMORY_BYTES - action->bytes);
		memcpy(target->memory + (action->va - BASE), packet->payload, action->bytes);
		break;
	case SL_ROCE_PLACE_RECEIVE:
		require(action->offset <= RECEIVE_BYTES - action->bytes);
		memcpy(target->receive + action->offset, packet->payload, action->bytes);
		break;
	case SL_ROCE_PLACE_NOWHERE:
		require(action->bytes == 0);
	}
	require(!action->immediate || action->complete);
}

static void uc_packet(struct target *target, const struct sl_roce_packet *packet)
{
	struct sl_roce_responder *queue = &target->queue;
	uint32_t psn = queue->expected_psn, receives = queue->receives;
	struct sl_roce_action action;

	if (sl_roce_responder_receive(queue, NULL, packet, lookup, &target->key, &action)) {
		require(queue->expected_psn == psn && queue->receives == receives);
		return;
	}
	require(receives - queue->receives == action.receive);
	require(queue->open == !action.last);
	require(queue->expected_psn == sl_roce_psn_add(packet->psn, 1));
	require(!action.last || action.message_bytes == action.offset + action.bytes);
	place(target, packet, &action);
}

/* All packets of a reply, their payload read where it says. */
static void rc_reply(const struct target *target, struct sl_roce_reply *reply)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX], payload[PMTU];
	struct sl_roce_fragment fragment;
	struct sl_roce_packet again;
	uint32_t left = reply->bytes;

	require(!reply->read || !reply->bytes || reply->key == &target->key);
	while (sl_roce_reply_next(reply, headers, &fragment)) {
		require(fragment.bytes <= PMTU && fragment.bytes <= left);
		left -= fragment.bytes;
		if (fragment.bytes)
			memcpy(payload, target->memory + (reply->va - BASE) + fragment.offset,
			       fragment.bytes);
		require(sl_roce_parse_headers(headers, fragment.header_bytes,
					      fragment.header_bytes + fragment.bytes +
						      fragment.pad + 4u,
					      &again) == SL_ROCE_OK);
	}
	require(left == 0);
}

/* Keep the send queue busy; whatever it sends lies inside its work. */
static void rc_send(struct target *target)
{
	static const struct sl_roce_work plan[] = {
		{.kind = SL_ROCE_KIND_READ, .bytes = READ_BYTES},
		{.kind = SL_ROCE_KIND_WRITE, .bytes = 700, .immediate = true},
		{.kind = SL_ROCE_KIND_SEND},
	};
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_completion done;
	struct sl_roce_request request;

	while (sl_roce_rc_queue_complete(&target->rc, &done))
		require(done.status == SL_ROCE_SUCCESS || target->rc.state == SL_ROCE_ERROR);
	if (target->rc.state == SL_ROCE_ERROR)
		rc_connect(target);
	while (sl_roce_rc_queue_post(&target->rc, &plan[target->rc.requester.posted % 3]) == 0)
		;
	for (int i = 0; sl_roce_rc_queue_next(&target->rc, target->now, headers, &request); i++) {
		require(i < 8); /* the window */
		require(request.fragment.offset + request.fragment.bytes <= 700);
	}
	target->now++;
}

static void rc_aim(const struct target *target, struct sl_roce_packet *packet)
{
	static const int8_t steps[8] = {0, 0, 0, 0, 1, 2, -1, -3};
	const struct sl_roce_rc_requester *requester = &target->rc.requester;
	uint32_t psn = target->rc.responder.queue.expected_psn;

	if (sl_roce_opcode(packet->opcode)->kind == SL_ROCE_KIND_RESPONSE)
		psn = sl_roce_psn_add(requester->psn,
				      (uint32_t)requester->oldest & SL_ROCE_PSN_MASK);
	packet->psn = sl_roce_psn_add(psn, (uint32_t)steps[packet->psn & 7] & SL_ROCE_PSN_MASK);
}

static void rc_packet(struct target *target, struct sl_roce_packet packet, bool near)
{
	const struct sl_roce_rc_responder *responder = &target->rc.responder;
	uint32_t expected, receives;
	struct sl_roce_outcome outcome;
	enum sl_roce_drop drop;

	rc_send(target);
	if (near)
		rc_aim(target, &packet);
	expected = responder->queue.expected_psn;
	receives = responder->queue.receives;
	drop = sl_roce_rc_queue_receive(&target->rc, NULL, &packet, target->now, lookup,
					&target->key, &outcome);
	if (drop || !outcome.request) {
		require(responder->queue.expected_psn == expected);
		require(responder->queue.receives == receives);
	} else {
		require(packet.psn == expected && expected != responder->queue.expected_psn);
		place(target, &packet, &outcome.action);
	}
	if (!drop && !outcome.request && outcome.read.bytes) {
		require(outcome.read.bytes == packet.payload_bytes);
		memcpy(target->read + outcome.read.offset, packet.payload, outcome.read.bytes);
	}
	require(target->rc.state == SL_ROCE_ERROR || !responder->failed);
	rc_reply(target, &outcome.reply);
}

static void ud_packet(struct target *target, const struct sl_roce_packet *packet)
{
	struct sl_roce_path path = {.tos = packet->pkey & 0xff, .ip_id = packet->pkey};
	struct sl_roce_ud_arrival arrival;
	uint32_t receives = target->ud.receives;

	if (sl_roce_ud_receive(&target->ud, NULL, packet, &arrival)) {
		require(target->ud.receives == receives);
		return;
	}
	require(target->ud.receives == receives - 1);
	require(arrival.bytes == packet->payload_bytes);
	sl_roce_ud_header(&path, packet->header_bytes + arrival.bytes, target->receive);
	memcpy(target->receive + arrival.offset, packet->payload, arrival.bytes);
}

/* A CNP slows down; anything else is sent on, and whatever is marked may ask for a CNP. */
static void congestion(struct target *target, const struct sl_roce_packet *packet)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	bool is_cnp = !sl_roce_cnp_receive(QPN, NULL, NULL, NULL, packet);

	require(!is_cnp || (packet->has == SL_ROCE_HAS_CNP && packet->qpn == QPN));
	if (is_cnp)
		sl_roce_rate_on_cnp(&target->rate, target->now * 1000);
	else
		sl_roce_rate_allow(&target->rate, target->now * 1000, packet->payload_bytes);
	if (sl_roce_cnp_due(&target->cnp, target->now * 1000))
		require(sl_roce_cnp_encode(packet->deth.source_qpn, headers) == SL_ROCE_OK);
}

static void one_packet(struct target *target, const uint8_t *bytes, size_t n, bool aimed, bool near)
{
	struct sl_roce_packet packet, head;

	if (sl_roce_parse(bytes, n, &packet))
		return;
	require(packet.payload_bytes + packet.pad + packet.header_bytes + 4u == n);
	require(sl_roce_parse_headers(bytes, packet.header_bytes, n, &head) == SL_ROCE_OK);
	check_encoding(&packet, bytes);
	check_icrc(&packet, bytes, n);
	if (aimed) {
		packet.qpn = QPN;
		packet.pkey = SL_ROCE_PKEY_DEFAULT;
		packet.reth.rkey = RKEY;
		packet.deth.qkey = QKEY;
	}
	uc_packet(target, &packet);
	rc_packet(target, packet, near);
	ud_packet(target, &packet);
	congestion(target, &packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target target;

	target_init(&target);
	while (size >= 2) {
		size_t n = (size_t)(data[0] | data[1] << 8) & 0x1fff;
		bool aimed = data[1] & 0x80, near = data[1] & 0x40;
		uint8_t *exact; /* so that a byte too far is seen */

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		exact = malloc(n ? n : 1);
		require(exact != NULL);
		memcpy(exact, data, n);
		one_packet(&target, exact, n, aimed, near);
		free(exact);
		data += n;
		size -= n;
	}
	free(target.memory);
	free(target.receive);
	free(target.read);
	return 0;
}
