/* place.c - numbers to packets, packets to places, and the mask that lets each packet in
 * once. */
#include "link/native/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/native/pack.h"

int sl_native_placer_init(struct sl_native_placer *placer, struct sl_ring *ring,
			  struct sl_link_counters *counters, const struct sl_plan *plan,
			  const struct sl_native_shape *shape,
			  const struct sl_native_numbers *numbers)
{
	*placer = (struct sl_native_placer){.ring = ring,
					    .counters = counters,
					    .plan = *plan,
					    .shape = *shape,
					    .numbers = *numbers};
	placer->words = (plan->packets + 63) / 64;
	placer->track = calloc(ring->slots, sizeof(*placer->track));
	placer->bits = calloc((size_t)ring->slots * placer->words, sizeof(*placer->bits));
	if (!placer->track || !placer->bits) {
		sl_native_placer_fini(placer);
		return -ENOMEM;
	}
	return 0;
}

void sl_native_placer_fini(struct sl_native_placer *placer)
{
	free(placer->track);
	free(placer->bits);
	placer->track = NULL;
	placer->bits = NULL;
}

static bool refuse(struct sl_native_placer *p, enum sl_drop why)
{
	atomic_fetch_add_explicit(&p->counters->dropped[why], 1, memory_order_relaxed);
	return false;
}

/* ---- numbers ---- */

/* The number of sequence 0. Where it is not known, the first that comes is, if it begins a frame,
 * else the next one: of a detector that is running already the rest of a frame is of no use. */
static uint64_t first_of(const struct sl_native_placer *p, uint64_t number, uint32_t packet)
{
	_Atomic uint64_t *first_plus = p->numbers.first_plus;
	uint64_t first = atomic_load_explicit(first_plus, memory_order_relaxed);

	if (first)
		return first - 1;
	if (packet)
		number += p->numbers.step;
	/* Another module's poller may be doing the same: who comes first decides for all. */
	return atomic_compare_exchange_strong(first_plus, &first, number + 1) ? number : first - 1;
}

/* How far it is behind the first one, negative when before: the nearest to the newest that has
 * these bits. */
static int64_t distance(const struct sl_native_placer *p, uint64_t number, uint64_t first)
{
	unsigned spare = 64 - p->numbers.bits;
	uint64_t apart = (number - first - p->newest) << spare;
	int64_t at;

	/* Nobody is that far ahead. */
	return __builtin_add_overflow((int64_t)p->newest, (int64_t)apart >> spare, &at) ? -1 : at;
}

/* Whether the stream can have gone on to this sequence. */
static bool believed(struct sl_native_placer *p, uint64_t sequence)
{
	uint64_t opened = sl_ring_opened(p->ring, p->plan.module), slots = p->ring->slots;
	bool near = p->jumped && sequence + slots > p->jumped_to && sequence < p->jumped_to + slots;

	if (sequence < opened + slots)
		return true;
	p->jumped = true;
	p->jumped_to = sequence;
	return near;
}

bool sl_native_find(struct sl_native_placer *placer, uint64_t number, uint32_t packet,
		    struct sl_native_where *where)
{
	struct sl_native_placer *p = placer;
	const struct sl_native_shape *s = &p->shape;
	int64_t at = distance(p, number, first_of(p, number, packet));
	uint64_t sequence, rest;

	if (at < 0)
		return refuse(p, SL_DROP_RANGE);
	sequence = (uint64_t)at / p->numbers.step;
	rest = (uint64_t)at % p->numbers.step;
	if (s->packet_numbers) {
		packet = (uint32_t)(rest / s->packet_numbers);
		if (rest >= s->block_numbers || rest % s->packet_numbers)
			return refuse(p, SL_DROP_RANGE);
	} else if (rest) {
		return refuse(p, SL_DROP_RANGE);
	}
	if (packet >= s->packets || (p->numbers.frames && sequence >= p->numbers.frames) ||
	    sequence > sl_ring_opened(p->ring, p->plan.module) + SL_RING_AWAY / 2)
		return refuse(p, SL_DROP_RANGE);
	if (!believed(p, sequence))
		return refuse(p, SL_DROP_AHEAD);
	if ((uint64_t)at > p->newest)
		p->newest = (uint64_t)at;
	where->sequence = sequence;
	where->packet = packet;
	return true;
}

bool sl_native_expected(struct sl_native_placer *placer, uint64_t number, uint32_t packet,
			uint64_t n, struct sl_native_where *where)
{
	struct sl_native_placer *p = placer;
	uint64_t first = atomic_load_explicit(p->numbers.first_plus, memory_order_relaxed);
	uint64_t sequence = n / p->shape.packets;
	uint32_t index = (uint32_t)(n % p->shape.packets);
	uint64_t at = sequence * p->numbers.step + index * p->shape.packet_numbers;

	if (!first || (first - 1 + at - number) << (64 - p->numbers.bits) ||
	    (!p->shape.packet_numbers && packet != index) ||
	    (p->numbers.frames && sequence >= p->numbers.frames))
		return false;
	if (at > p->newest)
		p->newest = at;
	where->sequence = sequence;
	where->packet = index;
	return true;
}

/* ---- places ---- */

/* True when the packet is new; its bit is then set. */
static bool mark(struct sl_native_placer *p, const struct sl_native_where *where, uint64_t now_ns)
{
	uint32_t slot = (uint32_t)(where->sequence % p->ring->slots);
	uint32_t index = where->port * p->shape.packets + where->packet;
	struct sl_native_track *track = &p->track[slot];
	uint64_t *bits = &p->bits[(size_t)slot * p->words];
	uint64_t bit = UINT64_C(1) << index % 64;

	if (track->sequence_plus_1 != where->sequence + 1) {
		memset(bits, 0, p->words * sizeof(*bits));
		*track = (struct sl_native_track){.sequence_plus_1 = where->sequence + 1,
						  .cell = where->cell,
						  .timestamp = where->timestamp,
						  .first_ns = now_ns};
	}
	if (bits[index / 64] & bit)
		return false;
	bits[index / 64] |= bit;
	track->packets++;
	return true;
}

static bool marked(const struct sl_native_placer *p, uint64_t sequence, uint32_t index)
{
	uint32_t slot = (uint32_t)(sequence % p->ring->slots);

	return p->track[slot].sequence_plus_1 == sequence + 1 &&
	       p->bits[(size_t)slot * p->words + index / 64] >> index % 64 & 1;
}

unsigned sl_native_predict(const struct sl_native_placer *placer, uint32_t port, uint64_t n,
			   struct sl_native_piece piece[SL_NATIVE_PIECES], uint8_t **block)
{
	const struct sl_native_placer *p = placer;
	uint64_t sequence = n / p->shape.packets;
	uint32_t packet = (uint32_t)(n % p->shape.packets);

	if (sl_ring_may_place(p->ring, sequence, p->plan.module) != SL_PLACE_OK ||
	    marked(p, sequence, port * p->shape.packets + packet))
		return 0;
	*block = sl_ring_block(p->ring, sequence, p->plan.module);
	if (p->shape.packed)
		return 1;
	return sl_native_pieces(&p->shape, port, packet, piece);
}

/* What its headers say of a block, in the form that all else knows. */
static void write_record(const struct sl_native_placer *p, const struct sl_native_track *track)
{
	const struct sl_native_numbers *numbers = &p->numbers;
	uint64_t sequence = track->sequence_plus_1 - 1;
	struct sl_record record = {
		.sequence = sequence,
		.timestamp = track->timestamp,
		.emit_ns = track->first_ns,
		.bytes = (uint32_t)p->ring->pixel_bytes,
		.items = p->shape.items,
		.packets = p->plan.packets,
		.module = p->plan.module,
		.cell = track->cell,
		.flags = (uint16_t)(SL_RECORD_BARE |
				    (sl_darks_has(&p->plan.darks, sequence) ? SL_RECORD_DARK : 0)),
	};

	record.frame = numbers->first_frame + sequence * numbers->frame_step;
	if (numbers->frame_is_number) { /* as the wire has it, also where it wraps */
		record.frame = atomic_load_explicit(numbers->first_plus, memory_order_relaxed) - 1 +
			       sequence * numbers->frame_step;
		record.frame &= UINT64_MAX >> (64 - numbers->bits);
	}
	sl_record_seal(&record);
	memcpy(sl_ring_record(p->ring, sequence, p->plan.module), &record, sizeof(record));
}

static void copy(const struct sl_native_placer *p, const struct sl_native_where *where,
		 const uint8_t *payload)
{
	uint8_t *block = sl_ring_block(p->ring, where->sequence, p->plan.module);
	struct sl_native_piece piece[SL_NATIVE_PIECES];
	unsigned n;

	if (p->shape.packed) {
		sl_native_unpack(&p->shape, where->port, where->packet, payload, block);
		return;
	}
	n = sl_native_pieces(&p->shape, where->port, where->packet, piece);
	for (unsigned i = 0; i < n; i++) {
		memcpy(block + piece[i].at, payload, piece[i].bytes);
		payload += piece[i].bytes;
	}
}

static void note_reach(struct sl_native_placer *p, const struct sl_native_where *where)
{
	if (where->sequence >= p->reached[where->port])
		p->reached[where->port] = where->sequence + 1;
}

void sl_native_reach(struct sl_native_placer *placer, bool drained)
{
	struct sl_native_placer *p = placer;
	uint64_t least = p->reached[0], most = least;

	for (uint32_t i = 1; i < p->shape.ports; i++) {
		least = p->reached[i] < least ? p->reached[i] : least;
		most = p->reached[i] > most ? p->reached[i] : most;
	}
	if (drained && p->newest_reached > least)
		least = p->newest_reached;
	p->newest_reached = most;
	if (least)
		sl_ring_reach(p->ring, least - 1, p->plan.module);
}

void sl_native_put(struct sl_native_placer *placer, const struct sl_native_where *where,
		   const uint8_t *payload, uint64_t now_ns)
{
	struct sl_native_placer *p = placer;
	const struct sl_native_track *track = &p->track[where->sequence % p->ring->slots];
	uint32_t module = p->plan.module;

	switch (sl_ring_may_place(p->ring, where->sequence, module)) {
	case SL_PLACE_LATE:
		refuse(p, SL_DROP_LATE);
		return;
	case SL_PLACE_AHEAD:
		sl_ring_turn_away(p->ring, where->sequence, module);
		note_reach(p, where);
		refuse(p, SL_DROP_AHEAD);
		return;
	case SL_PLACE_OK:
		break;
	}
	if (!mark(p, where, now_ns)) {
		refuse(p, SL_DROP_DUPLICATE);
		return;
	}
	if (payload)
		copy(p, where, payload);
	sl_link_count(p->counters, p->plan.transfer, 1, p->shape.payload);
	sl_ring_progress(p->ring, where->sequence, module, track->packets);
	note_reach(p, where);
	if (track->packets != p->plan.packets)
		return;
	write_record(p, track);
	sl_ring_raise(p->ring, where->sequence, module, now_ns);
}
