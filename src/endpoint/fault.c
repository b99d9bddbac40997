/* fault.c - for tests: packets are lost, repeated, damaged or held back on their way out. */
#include "endpoint/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/state.h"

enum { HELD = 4, HOLD_PACKETS = 3 };

struct held {
	unsigned after; /* so many more packets; 0: the place is free */
	size_t bytes;
	union sl_net_address to;
	socklen_t to_bytes;
	uint8_t packet[SL_PACKET_BYTES];
};

struct sl_holder {
	uint32_t damaged; /* so far; decides which bit is next */
	struct held held[HELD];
};

int sl_fault_init(struct sl_endpoint *endpoint)
{
	if (!endpoint->options.fault.decide)
		return 0;
	endpoint->holder = calloc(1, sizeof(*endpoint->holder));
	return endpoint->holder ? 0 : -ENOMEM;
}

void sl_fault_fini(struct sl_endpoint *endpoint)
{
	free(endpoint->holder);
}

static void let_go(struct sl_endpoint *endpoint, struct held *held)
{
	held->after = 0;
	sl_out_add(endpoint, held->packet, held->bytes, &held->to, held->to_bytes);
}

/* One packet has gone past those that are held. */
static void pass(struct sl_endpoint *endpoint)
{
	for (int i = 0; i < HELD; i++) {
		struct held *held = &endpoint->holder->held[i];

		if (held->after && --held->after == 0)
			let_go(endpoint, held);
	}
}

static bool hold(struct sl_endpoint *endpoint, const struct iovec *linear)
{
	const struct sl_out *packet = &endpoint->out_packet[endpoint->out_count];

	for (int i = 0; i < HELD; i++) {
		struct held *held = &endpoint->holder->held[i];

		if (held->after)
			continue;
		held->after = HOLD_PACKETS;
		held->bytes = linear->iov_len;
		held->to = packet->to;
		held->to_bytes = packet->to_bytes;
		memcpy(held->packet, linear->iov_base, linear->iov_len);
		return true;
	}
	return false;
}

/* Any bit but those of the one byte that the ICRC does not cover. */
static void damage(struct sl_holder *holder, const struct iovec *linear)
{
	const size_t uncovered = 4;
	uint32_t bit = holder->damaged++ * UINT32_C(2654435761) >> 8;
	size_t at = (bit >> 3) % linear->iov_len;

	if (at == uncovered)
		at++;
	((uint8_t *)linear->iov_base)[at] ^= (uint8_t)(1u << (bit & 7));
}

static enum sl_endpoint_fault_kind decide(const struct sl_endpoint *endpoint,
					  const struct iovec *linear)
{
	const struct sl_endpoint_fault *fault = &endpoint->options.fault;
	struct sl_roce_packet packet;

	if (sl_roce_parse(linear->iov_base, linear->iov_len, &packet))
		return SL_ENDPOINT_FAULT_NONE;
	return fault->decide(fault->arg, &packet);
}

void sl_fault_apply(struct sl_endpoint *endpoint)
{
	unsigned index = endpoint->out_count;
	const struct sl_out *packet = &endpoint->out_packet[index];
	const struct iovec *linear = packet->piece;

	sl_out_linear(endpoint, index);
	switch (decide(endpoint, linear)) {
	case SL_ENDPOINT_FAULT_LOSE:
		return;
	case SL_ENDPOINT_FAULT_HOLD:
		if (hold(endpoint, linear))
			return;
		break;
	case SL_ENDPOINT_FAULT_CORRUPT:
		damage(endpoint->holder, linear);
		break;
	case SL_ENDPOINT_FAULT_REPEAT:
		endpoint->out_count++;
		sl_out_add(endpoint, linear->iov_base, linear->iov_len, &packet->to,
			   packet->to_bytes);
		pass(endpoint);
		return;
	case SL_ENDPOINT_FAULT_NONE:
		break;
	}
	endpoint->out_count++;
	pass(endpoint);
}

bool sl_fault_holds(const struct sl_endpoint *endpoint)
{
	bool any = false;

	for (int i = 0; endpoint->holder && i < HELD; i++)
		any |= endpoint->holder->held[i].after != 0;
	return any;
}

void sl_fault_release(struct sl_endpoint *endpoint)
{
	for (int i = 0; i < HELD; i++) {
		struct held *held = &endpoint->holder->held[i];

		if (held->after && sl_out_room(endpoint))
			let_go(endpoint, held);
	}
}
