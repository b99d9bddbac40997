/* packet_fuzz.c - any bytes as a run of packets for one queue.
 *
 * The input is records: two bytes (bits 0..12: length, bit 15: aim it at our queue and key), then
 * that many bytes of UDP payload. What parses must encode to the same headers; what the responder
 * accepts must lie inside the registered memory, whose ends the sanitizer guards; what it drops
 * must not move the expected PSN. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "roce/responder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QPN = 0x11, RKEY = 0x4242, PMTU = 256, MEMORY_BYTES = 1500, RECEIVE_BYTES = 700 };
#define BASE UINT64_C(0x10000)

struct target {
	struct sl_roce_responder queue;
	struct sl_roce_key key;
	uint8_t *memory, *receive;
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
	target->memory = malloc(MEMORY_BYTES);
	target->receive = malloc(RECEIVE_BYTES);
	require(target->memory && target->receive);
	require(sl_roce_responder_init(&target->queue) == SL_ROCE_OK);
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

static void accept(struct target *target, const struct sl_roce_packet *packet,
		   const struct sl_roce_action *action)
{
	require(action->bytes == packet->payload_bytes && action->bytes <= PMTU);
	require(target->queue.open == !action->last);
	require(target->queue.expected_psn == ((packet->psn + 1) & 0xffffff));
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
	require(!action->last || action->message_bytes == action->offset + action->bytes);
	require(!action->immediate || action->complete);
}

static void one_packet(struct target *target, const uint8_t *bytes, size_t n, bool aimed)
{
	struct sl_roce_packet packet, head;
	struct sl_roce_action action;
	uint32_t psn = target->queue.expected_psn, receives = target->queue.receives;
	enum sl_roce_drop drop;

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
	}
	drop = sl_roce_responder_receive(&target->queue, NULL, &packet, lookup, &target->key,
					 &action);
	if (drop) {
		require(target->queue.expected_psn == psn && target->queue.receives == receives);
		return;
	}
	require(receives - target->queue.receives == action.receive);
	accept(target, &packet, &action);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target target;

	target_init(&target);
	while (size >= 2) {
		size_t n = (size_t)(data[0] | data[1] << 8) & 0x1fff;
		bool aimed = data[1] & 0x80;
		uint8_t *exact; /* so that a byte too far is seen */

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		exact = malloc(n ? n : 1);
		require(exact != NULL);
		memcpy(exact, data, n);
		one_packet(&target, exact, n, aimed);
		free(exact);
		data += n;
		size -= n;
	}
	free(target.memory);
	free(target.receive);
	return 0;
}
