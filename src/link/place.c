/* place.c - PSN to packet, packet to place, and the bitmap that lets each byte be written once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/place.h"
#include "roce/psn.h"

/* Bytes of a block as it lies in the ring. */
static uint64_t span(const struct sl_plan *plan)
{
	uint64_t record = plan->block_bytes - sl_plan_pixel_bytes(plan);

	return plan->line_pitch ? plan->record_at + record : plan->block_bytes;
}

int sl_placer_init(struct sl_placer *placer, struct sl_ring *ring,
		   struct sl_link_counters *counters, const struct sl_plan *plan, uint64_t frames)
{
	*placer = (struct sl_placer){.ring = ring, .counters = counters, .plan = *plan};
	placer->end = frames && frames < UINT64_MAX - plan->first_sequence
			      ? plan->first_sequence + frames
			      : UINT64_MAX;
	placer->span = span(plan);
	placer->words = (plan->packets + 63) / 64;
	placer->track = calloc(ring->slots, sizeof(*placer->track));
	placer->bits = calloc((size_t)ring->slots * placer->words, sizeof(*placer->bits));
	if (!placer->track || !placer->bits) {
		sl_placer_fini(placer);
		return -ENOMEM;
	}
	return 0;
}

void sl_placer_fini(struct sl_placer *placer)
{
	free(placer->track);
	free(placer->bits);
	placer->track = NULL;
	placer->bits = NULL;
}

static void drop(struct sl_placer *p, enum sl_drop why)
{
	atomic_fetch_add_explicit(&p->counters->dropped[why], 1, memory_order_relaxed);
}

/* The packet's number in the stream: the one nearest to the newest that has this PSN. */
static int64_t packet_number(const struct sl_placer *p, uint32_t psn)
{
	uint32_t newest = sl_roce_psn_add(p->plan.first_psn, (uint32_t)p->last_packet & 0xffffff);

	return (int64_t)p->last_packet + sl_roce_psn_diff(psn, newest);
}

static void advance(struct sl_placer *p, uint64_t packet, uint64_t position)
{
	if (packet > p->last_packet)
		p->last_packet = packet;
	if (packet >= p->next)
		p->next = packet + 1;
	if (position > p->seen)
		p->seen = position;
}

/* True when the packet is new; its bit is then set. */
static bool mark(struct sl_placer *p, uint64_t sequence, uint32_t index)
{
	uint32_t slot = (uint32_t)(sequence % p->ring->slots);
	struct sl_place_track *track = &p->track[slot];
	uint64_t *bits = &p->bits[(size_t)slot * p->words];
	uint64_t bit = UINT64_C(1) << index % 64;

	if (track->sequence_plus_1 != sequence + 1) {
		memset(bits, 0, p->words * sizeof(*bits));
		*track = (struct sl_place_track){.sequence_plus_1 = sequence + 1};
	}
	if (bits[index / 64] & bit)
		return false;
	bits[index / 64] |= bit;
	track->packets++;
	return true;
}

/* What is known here of a block that came without a word of its own. */
static void write_record(const struct sl_placer *p, uint64_t sequence, uint64_t now_ns)
{
	const struct sl_plan *plan = &p->plan;
	struct sl_record record = {
		.sequence = sequence,
		.frame = sequence - plan->first_sequence,
		.timestamp = now_ns,
		.emit_ns = now_ns,
		.bytes = (uint32_t)p->ring->pixel_bytes,
		.items = 1,
		.packets = plan->packets,
		.module = plan->module,
		.flags = (uint16_t)(SL_RECORD_BARE |
				    (sl_darks_has(&plan->darks, sequence) ? SL_RECORD_DARK : 0)),
		.first_psn = sl_plan_psn(plan, sequence, 0),
	};

	sl_record_seal(&record);
	memcpy(sl_ring_record(p->ring, sequence, plan->module), &record, sizeof(record));
}

static void place(struct sl_placer *p, uint64_t sequence, uint32_t index,
		  const struct sl_plan_packet *packet, const void *data, uint64_t now_ns)
{
	struct sl_ring *ring = p->ring;
	uint32_t module = p->plan.module, packets;
	uint8_t *to;

	switch (sl_ring_may_place(ring, sequence, module)) {
	case SL_PLACE_LATE:
		drop(p, SL_DROP_LATE);
		return;
	case SL_PLACE_AHEAD:
		sl_ring_turn_away(ring, sequence, module);
		sl_ring_reach(ring, sequence, module);
		drop(p, SL_DROP_AHEAD);
		return;
	case SL_PLACE_OK:
		break;
	}
	if (!mark(p, sequence, index)) {
		drop(p, SL_DROP_DUPLICATE);
		return;
	}
	to = sl_ring_block(ring, sequence, module) + packet->place;
	if (to != data) /* otherwise it was predicted, and the kernel put it there */
		memcpy(to, data, packet->bytes);
	sl_link_count(p->counters, p->plan.transfer, 1, packet->bytes);

	packets = p->track[sequence % ring->slots].packets;
	sl_ring_progress(ring, sequence, module, packets);
	sl_ring_reach(ring, sequence, module);
	if (packets != p->plan.packets)
		return;
	if (p->plan.bare)
		write_record(p, sequence, now_ns);
	sl_ring_raise(ring, sequence, module, now_ns);
}

/* va: where the source wants it; NULL when it leaves that to us. */
static bool put(struct sl_placer *p, uint32_t psn, const uint64_t *va, const void *data,
		uint32_t bytes, uint32_t rest, uint64_t now_ns)
{
	const struct sl_plan *plan = &p->plan;
	int64_t number = packet_number(p, psn);
	struct sl_plan_packet packet;
	uint64_t sequence;
	uint32_t index;

	if (number < 0) {
		drop(p, SL_DROP_RANGE);
		return false;
	}
	sequence = plan->first_sequence + (uint64_t)number / plan->packets;
	index = (uint32_t)((uint64_t)number % plan->packets);
	sl_plan_packet(plan, index, &packet);
	if (bytes != packet.bytes || sequence >= p->end || packet.place + rest > p->span ||
	    (va && *va != sl_plan_address(plan, sequence, 0) + packet.place)) {
		drop(p, SL_DROP_RANGE);
		return false;
	}
	/* No honest source sends without credit: one packet of another must not move the stream. */
	if (plan->credit_va && sequence >= sl_ring_opened(p->ring, plan->module)) {
		drop(p, SL_DROP_AHEAD);
		return true;
	}
	advance(p, (uint64_t)number, sl_plan_position(plan, sequence, packet.offset + bytes));
	place(p, sequence, index, &packet, data, now_ns);
	return true;
}

bool sl_placer_put(struct sl_placer *placer, uint32_t psn, uint64_t va, const void *data,
		   uint32_t bytes, uint32_t rest, uint64_t now_ns)
{
	return put(placer, psn, &va, data, bytes, rest, now_ns);
}

bool sl_placer_put_next(struct sl_placer *placer, uint32_t psn, const void *data, uint32_t bytes,
			uint64_t now_ns)
{
	return put(placer, psn, NULL, data, bytes, 0, now_ns);
}

static bool marked(const struct sl_placer *p, uint64_t sequence, uint32_t index)
{
	uint32_t slot = (uint32_t)(sequence % p->ring->slots);

	return p->track[slot].sequence_plus_1 == sequence + 1 &&
	       p->bits[(size_t)slot * p->words + index / 64] >> index % 64 & 1;
}

uint64_t sl_placer_expected(const struct sl_placer *placer)
{
	return placer->next;
}

void sl_placer_predict(const struct sl_placer *placer, uint64_t packet, struct sl_place *place)
{
	const struct sl_plan *plan = &placer->plan;
	uint64_t sequence = plan->first_sequence + packet / plan->packets;
	uint32_t index = (uint32_t)(packet % plan->packets);
	struct sl_plan_packet it;

	sl_plan_packet(plan, index, &it);
	place->psn = sl_roce_psn_add(plan->first_psn, (uint32_t)packet & SL_ROCE_PSN_MASK);
	place->bytes = it.bytes;
	place->first = it.first;
	place->last = index == plan->packets - 1;
	place->to = NULL;
	/* Guesses begin behind the newest packet, where nothing was received: looking is cheap, and
	 * the promise does not rest on where they begin. */
	if (sl_ring_may_place(placer->ring, sequence, plan->module) == SL_PLACE_OK &&
	    !marked(placer, sequence, index))
		place->to = sl_ring_block(placer->ring, sequence, plan->module) + it.place;
}

bool sl_placer_locate(const struct sl_placer *placer, uint32_t psn, struct sl_place *place)
{
	int64_t packet = packet_number(placer, psn);

	if (packet < 0)
		return false;
	sl_placer_predict(placer, (uint64_t)packet, place);
	return true;
}

enum sl_ring_place sl_placer_may_put(const struct sl_placer *placer, uint32_t psn)
{
	int64_t packet = packet_number(placer, psn);

	if (packet < 0)
		return SL_PLACE_LATE;
	return sl_ring_may_place(
		placer->ring, placer->plan.first_sequence + (uint64_t)packet / placer->plan.packets,
		placer->plan.module);
}

void sl_placer_begin(struct sl_placer *placer, uint64_t packets)
{
	const struct sl_plan *plan = &placer->plan;
	struct sl_plan_packet next;

	sl_plan_packet(plan, (uint32_t)(packets % plan->packets), &next);
	placer->last_packet = packets ? packets - 1 : 0;
	placer->next = packets;
	placer->seen = packets / plan->packets * plan->block_bytes + next.offset;
}

void sl_placer_catch_up(struct sl_placer *placer, uint64_t position)
{
	struct sl_placer *p = placer;
	uint64_t frames = position / p->plan.block_bytes, rest = position % p->plan.block_bytes;
	uint64_t packets = frames * p->plan.packets + sl_plan_packet_of(&p->plan, rest);

	if (position <= p->seen)
		return;
	p->seen = position;
	if (packets && packets - 1 > p->last_packet)
		p->last_packet = packets - 1;
	if (packets > p->next)
		p->next = packets;
	/* The frame that ends there, or is under way there, has been reached. */
	sl_ring_reach(p->ring, p->plan.first_sequence + frames - (rest == 0), p->plan.module);
}
