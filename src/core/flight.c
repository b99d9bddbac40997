/* flight.c - rings of sampled packets. */
#include "core/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sequence.h"

enum { LEAST = 64 }; /* samples of a tap, however many there are */

static uint32_t room_of(unsigned taps)
{
	uint32_t room = SL_FLIGHT_PACKETS;

	while (room > LEAST && room > SL_FLIGHT_PACKETS / taps)
		room /= 2;
	return room;
}

int sl_flight_open(unsigned taps, struct sl_flight_tap **tap)
{
	uint32_t room = room_of(taps);
	struct sl_flight_sample *sample = calloc((size_t)taps * room, sizeof(*sample));
	struct sl_flight_tap *t = aligned_alloc(64, taps * sizeof(*t));

	if (!sample || !t) {
		free(sample);
		free(t);
		return -ENOMEM;
	}
	memset(t, 0, taps * sizeof(*t));
	for (unsigned i = 0; i < taps; i++) {
		t[i].sample = sample + (size_t)i * room;
		t[i].mask = room - 1;
		t[i].left = SL_FLIGHT_BURST;
		t[i].interval_ns = SL_FLIGHT_SECONDS * UINT64_C(1000000000) / room *
				   SL_FLIGHT_BURST;
	}
	*tap = t;
	return 0;
}

void sl_flight_close(struct sl_flight_tap *tap)
{
	if (tap)
		free(tap[0].sample);
	free(tap);
}

void sl_flight_clear(struct sl_flight_tap *tap, unsigned taps)
{
	for (unsigned i = 0; tap && i < taps; i++) {
		tap[i].next_ns = 0;
		tap[i].left = SL_FLIGHT_BURST;
		atomic_store(&tap[i].taken, 0);
	}
}

void sl_flight_take(struct sl_flight_tap *tap, const struct sl_flight_packet *packet)
{
	uint64_t n = atomic_load_explicit(&tap->taken, memory_order_relaxed);
	struct sl_flight_sample *sample = &tap->sample[n & tap->mask];
	uint64_t word[SL_FLIGHT_WORDS];

	memcpy(word, packet, sizeof(word));
	sl_sequence_begin(&sample->sequence);
	sl_sequence_store(&sample->number, n);
	for (size_t i = 0; i < SL_FLIGHT_WORDS; i++)
		sl_sequence_store(&sample->word[i], word[i]);
	sl_sequence_end(&sample->sequence);
	/* Release: pairs with the acquire in sl_flight_read(). */
	atomic_store_explicit(&tap->taken, n + 1, memory_order_release);
	if (--tap->left)
		return;
	tap->left = SL_FLIGHT_BURST;
	tap->next_ns = packet->at_ns + tap->interval_ns;
}

void sl_flight_keep(struct sl_flight_packet *packet, const void *data, size_t here, size_t bytes)
{
	size_t kept = here < bytes ? here : bytes;

	packet->bytes = (uint32_t)bytes;
	packet->kept = (uint8_t)(kept < SL_FLIGHT_HEADER ? kept : SL_FLIGHT_HEADER);
	memcpy(packet->payload, data, packet->kept);
}

/* False: the link thread has replaced it, or is about to. */
static bool copy_sample(const struct sl_flight_sample *sample, uint64_t number,
			struct sl_flight_packet *packet)
{
	uint32_t before = atomic_load_explicit(&sample->sequence, memory_order_acquire);
	uint64_t is = sl_sequence_load(&sample->number), word[SL_FLIGHT_WORDS];

	for (size_t i = 0; i < SL_FLIGHT_WORDS; i++)
		word[i] = sl_sequence_load(&sample->word[i]);
	if (before & 1 || is != number || !sl_sequence_same(&sample->sequence, before))
		return false;
	memcpy(packet, word, sizeof(*packet));
	return true;
}

size_t sl_flight_read(const struct sl_flight_tap *tap, struct sl_flight_packet *packet, size_t most)
{
	uint64_t taken = atomic_load_explicit(&tap->taken, memory_order_acquire);
	uint64_t room = (uint64_t)tap->mask + 1, have = taken < room ? taken : room;
	size_t n = 0;

	have = have < most ? have : most;
	for (uint64_t i = taken - have; i < taken; i++)
		n += copy_sample(&tap->sample[i & tap->mask], i, &packet[n]);
	return n;
}
