/* roce_channel.h - for tests: a network between two queues that loses, repeats and reorders packets
 * as a seed decides. Time is simulated. */
#ifndef TESTS_LIB_ROCE_CHANNEL_H
#define TESTS_LIB_ROCE_CHANNEL_H

#include "roce/requester.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNEL_SLOTS = 512, CHANNEL_BYTES = SL_ROCE_HEADERS_MAX + SL_ROCE_PMTU_MAX + 4 };

struct random {
	uint64_t state;
};

static inline uint32_t random_next(struct random *random)
{
	random->state = random->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(random->state >> 33);
}

/* 0 .. below - 1 */
static inline uint32_t random_below(struct random *random, uint32_t below)
{
	return random_next(random) % below;
}

struct channel_packet {
	uint64_t due;	/* 0: the slot is free */
	unsigned order; /* among those due at the same time */
	size_t bytes;
	uint8_t data[CHANNEL_BYTES];
};

struct channel {
	struct random *random;
	unsigned lose, repeat; /* of 1000 */
	unsigned jitter;       /* up to so much later than others */
	unsigned delay;
	unsigned carried, lost, repeated;
	int used; /* slots, at most so far */
	struct channel_packet slot[CHANNEL_SLOTS];
};

/* Empty. A channel that was never used is all zero. */
static inline void channel_init(struct channel *channel, struct random *random, unsigned lose,
				unsigned repeat, unsigned jitter, unsigned delay)
{
	for (int i = 0; i < channel->used; i++)
		channel->slot[i].due = 0;
	channel->random = random;
	channel->lose = lose;
	channel->repeat = repeat;
	channel->jitter = jitter;
	channel->delay = delay;
	channel->carried = channel->lost = channel->repeated = 0;
}

static inline void channel_carry(struct channel *channel, uint64_t now, const void *headers,
				 size_t header_bytes, const void *payload, size_t bytes,
				 unsigned pad)
{
	for (int i = 0; i < CHANNEL_SLOTS; i++) {
		struct channel_packet *packet = &channel->slot[i];

		if (packet->due)
			continue;
		channel->used = i < channel->used ? channel->used : i + 1;
		memcpy(packet->data, headers, header_bytes);
		if (bytes)
			memcpy(packet->data + header_bytes, payload, bytes);
		memset(packet->data + header_bytes + bytes, 0, pad + 4);
		packet->bytes = header_bytes + bytes + pad + 4;
		packet->due = now + channel->delay +
			      random_below(channel->random, channel->jitter + 1);
		packet->order = channel->carried++;
		return;
	}
	channel->lost++; /* a full network drops */
}

static inline void channel_send(struct channel *channel, uint64_t now, const void *headers,
				const struct sl_roce_fragment *fragment, const void *payload)
{
	unsigned copies = 1;

	if (random_below(channel->random, 1000) < channel->lose) {
		channel->lost++;
		copies--;
	}
	if (random_below(channel->random, 1000) < channel->repeat) {
		channel->repeated++;
		copies++;
	}
	while (copies--)
		channel_carry(channel, now, headers, fragment->header_bytes, payload,
			      fragment->bytes, fragment->pad);
}

/* The packet that arrives next, or NULL. */
static inline struct channel_packet *channel_first(struct channel *channel)
{
	struct channel_packet *first = NULL;

	for (int i = 0; i < channel->used; i++) {
		struct channel_packet *packet = &channel->slot[i];

		if (packet->due && (!first || packet->due < first->due ||
				    (packet->due == first->due && packet->order < first->order)))
			first = packet;
	}
	return first;
}

#endif
