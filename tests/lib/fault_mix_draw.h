/* fault_mix_draw.h - draws a mix: link, ring, policies, front ends, faults.
 *
 * What is drawn is bounded so that time decides nothing but what fault_verdict.h says it may. A
 * front end that has several modules sends them in step: while the slots of one are full, all wait.
 * So its modules must not need to be further apart than the ring has slots: none is delayed by more
 * than that, and where frames are not told apart by sequence, modules that miss triggers, or lose
 * blocks whose time nobody knows then, have front ends of their own. */
#ifndef TESTS_LIB_FAULT_MIX_DRAW_H
#define TESTS_LIB_FAULT_MIX_DRAW_H

#include "core/registry.h"
#include "lib/fault_mix_align.h"

/* Within what the receiver waits for: the oracle knows no time. Frames that are left out, and leave
 * a gap, would make the way longer. */
static inline void mix_draw_hold(struct mix *mix, double *room, double packets)
{
	uint32_t most = (mix->late - 1) * mix->packets;
	double share = mix_share(mix, packets, *room);

	if (!mix_one_in(mix, 3))
		return;
	*room -= share;
	mix->hold = mix_range(mix, 1, most < 64 ? most : 64);
	mix_say(mix, ", reorder: %.9f, reorder_packets: %u", share * 0.999999, mix->hold);
}

static inline void mix_draw_packet_faults(struct mix *mix, uint32_t one_in)
{
	double packets = (double)mix->frames * mix->packets, room = 1, share;

	/* A NIC cannot be told to hurt what it sends; its wire can. */
	if (mix->link == MIX_VERBS) {
		if (!mix->rc && mix_one_in(mix, one_in))
			mix->drop_on_wire = mix_share(mix, packets, 1);
		return;
	}
#define PACKETS(name)                                               \
	if (mix_one_in(mix, one_in)) {                              \
		share = mix_share(mix, packets, room);              \
		room -= share;                                      \
		mix_say(mix, ", %s: %.9f", name, share * 0.999999); \
	}
	PACKETS("drop");
	PACKETS("corrupt");
	if (mix->link == MIX_UDP) {
		PACKETS("duplicate");
		if (mix->late > 1)
			mix_draw_hold(mix, &room, packets);
	}
#undef PACKETS
	if (mix_one_in(mix, one_in))
		mix_say(mix, ", burst: %.9f, burst_packets: %u",
			room * mix_share(mix, packets * 4, 0.1),
			mix_range(mix, 1, 3 * mix->packets + 3));
}

static inline void mix_draw_block_faults(struct mix *mix, uint32_t one_in)
{
	/* A reliable connection does not survive a wrong key. */
	if (!mix->rc && !mix->send && mix_one_in(mix, one_in))
		mix_say(mix, ", wrong_key: %.9f",
			mix_share(mix, (double)mix->frames * mix->packets / mix->message_packets,
				  1));
	if (mix->crc && mix_one_in(mix, one_in))
		mix_say(mix, ", spoil: %.9f", mix_share(mix, mix->frames, 1));
}

/* A gap needs a service that has gaps; and a NIC knows of none in its PSNs. */
static inline void mix_draw_skips(struct mix *mix, uint32_t one_in)
{
	bool may = mix->align == MIX_SEQUENCE ? !mix->rc && !mix->hold && !mix->drop_on_wire
					      : mix->fronts == mix->modules;

	mix->skips = may && mix_one_in(mix, one_in);
	if (mix->skips)
		mix_say(mix, ", skip: %.9f", mix_share(mix, mix->frames, 1));
}

static inline void mix_draw_faults(struct mix *mix)
{
	/* Where each fault is as likely as not, hardly any comes alone. */
	uint32_t one_in = mix_range(mix, 2, 8), slack = mix->slots - 2 - mix->late;

	mix->fault_seed = mix_range(mix, 1, 1u << 30);
	mix->fault_module = -1;
	if (mix->modules > 1 && !mix->restarts && mix_one_in(mix, 6))
		mix->fault_module = (int)mix_range(mix, 0, mix->modules - 1);
	mix_say(mix, "fault_seed: %llu", (unsigned long long)mix->fault_seed);
	if (mix->fault_module >= 0)
		mix_say(mix, ", fault_modules: '%d'", mix->fault_module);
	if (mix->align != MIX_TIMESTAMP || mix->fronts == mix->modules) {
		size_t before = mix->faults_bytes;

		mix_draw_packet_faults(mix, one_in);
		mix_draw_block_faults(mix, one_in);
		mix->loses = mix->faults_bytes > before || mix->drop_on_wire;
	}
	if (slack && mix_one_in(mix, one_in)) {
		mix->delay = mix_range(mix, 1, slack);
		mix_say(mix, ", delay: %.9f, delay_frames: %u", mix_share(mix, mix->frames, 1),
			mix->delay);
	}
	mix_draw_align(mix);
	mix_draw_skips(mix, one_in);
	mix->limit += mix->delay; /* in step with one that waits */
	/* Who is held back sends nothing that would end the wait for what was lost when nobody
	 * knows; and by timestamp who comes back waits for those that are done, too. */
	if ((mix->loses && mix->skips) || mix->align == MIX_TIMESTAMP)
		mix->limit = UINT32_MAX;
}

static inline void mix_draw_message(struct mix *mix)
{
	static const char *const messages[] = {"packet", "line", "module"};
	uint32_t lines = mix->rows * mix->stack, line_bytes = mix->columns * 2, cut;

	mix->message = mix->send ? "module"
				 : messages[mix_range(mix, mix->link == MIX_SHM ? 1 : 0, 2)];
	if (mix->message[0] != 'm' && mix_one_in(mix, 4))
		mix->pitch = (line_bytes + 63) / 64 * 64 + 64 * mix_range(mix, 0, 2);
	cut = (line_bytes + mix->pmtu - 1) / mix->pmtu;
	/* Where lines are of any account, packets end with them, and the record has its own. */
	if (mix->message[0] == 'l' || mix->pitch)
		mix->packets = lines * cut + 1;
	else
		mix->packets = (lines * line_bytes + 64 + mix->pmtu - 1) / mix->pmtu;
	mix->record_packet = mix->message[0] == 'l' || mix->pitch ? mix->packets - 1
								  : lines * line_bytes / mix->pmtu;
	mix->message_packets = mix->message[0] == 'p'	? 1
			       : mix->message[0] == 'l' ? cut
							: mix->packets;
}

/* What may be asked of a source depends on whether it can be made to wait. */
static inline void mix_draw_overrun(struct mix *mix)
{
	static const enum mix_overrun waits[] = {MIX_STOP, MIX_STOP, MIX_OLDEST, MIX_PAUSE};
	static const enum mix_overrun does_not[] = {MIX_STOP, MIX_NEWEST, MIX_OLDEST};

	mix->overrun = mix_is_loose(mix) ? does_not[mix_range(mix, 0, 2)]
					 : waits[mix_range(mix, 0, 3)];
	mix->nap_us = mix_one_in(mix, mix_is_loose(mix) || mix->overrun == MIX_OLDEST ? 2 : 8)
			      ? mix_range(mix, 50, 500)
			      : 0;
}

static inline void mix_draw_link(struct mix *mix)
{
	mix->link = mix_one_in(mix, 4)				  ? MIX_SHM
		    : mix_one_in(mix, 4) && sl_link_find("verbs") ? MIX_VERBS
								  : MIX_UDP;
	mix->rc = mix->link != MIX_SHM && mix_one_in(mix, 4);
	mix->send = mix->link != MIX_SHM && mix_one_in(mix, 10);
	/* Over UC a lost block would shift a NIC's posted receives. */
	mix->rc |= mix->send && mix->link == MIX_VERBS;
	/* Shared memory has its credits in the memory: no source can do without. Sends on a NIC go
	 * where the receiver says. */
	mix->open_loop = mix->link != MIX_SHM && mix_one_in(mix, 6) &&
			 !(mix->link == MIX_VERBS && (mix->send || !MIX_MAY_RACE));
	mix->crc = mix_one_in(mix, 2);
	mix->pmtu = 256u << mix_range(mix, 0, 4);
	mix->pollers = mix->link == MIX_UDP ? mix_range(mix, 1, 2) : 1;
}

static inline void mix_draw_restart(struct mix *mix)
{
	uint32_t rest;

	if (mix->fronts < 2 || mix->align == MIX_SEQUENCE || mix_is_loose(mix) ||
	    mix_one_in(mix, 3))
		return;
	/* Some of them, and not all. */
	mix->restarts = mix_range(mix, 1, (1u << mix->fronts) - 2);
	mix->restart_after = mix_range(mix, 1, mix->frames - 2);
	rest = mix->frames - mix->restart_after;
	/* Now and then beyond the end: then it does not come back. */
	mix->restart_frames = mix_range(mix, 0, rest / 2);
	if (mix_one_in(mix, 5))
		mix->restart_frames = rest + mix_range(mix, 0, 4);
	/* As far as the others must come so that all before it is gone is settled, and more. */
	mix->limit = mix->restart_after + mix->late + 1 + mix_range(mix, 0, rest);
	if (mix_one_in(mix, 3))
		mix->limit = mix->restart_after + mix->late + 1;
}

/* One for all modules, two, or one for each; and whether some go away for a while. */
static inline void mix_draw_fronts(struct mix *mix)
{
	bool each = mix_one_in(mix, 4);

	if (mix->align != MIX_SEQUENCE)
		each = !mix_one_in(mix, mix->align == MIX_FRAME ? 2 : 4);
	mix->fronts = each ? mix->modules : mix->modules > 1 && mix_one_in(mix, 4) ? 2 : 1;
	for (uint32_t f = 0; f <= mix->fronts; f++)
		mix->front_at[f] = f;
	if (mix->fronts == 2)
		mix->front_at[1] = mix_range(mix, 1, mix->modules - 1);
	mix->front_at[mix->fronts] = mix->modules;
	mix_draw_restart(mix);
}

/* On a link that cannot refuse: a block that is announced a lap too early. */
static inline void mix_draw_trespasses(struct mix *mix)
{
	if (mix->link == MIX_UDP || mix->open_loop || mix->restarts || !mix_one_in(mix, 3))
		return;
	mix->trespasses = mix_range(mix, 1, MIX_TRESPASSES);
	for (uint32_t i = 0; i < mix->trespasses; i++) {
		mix->trespass_module[i] = mix_range(mix, 0, mix->modules - 1);
		mix->trespass[i] = mix_range(mix, mix->slots, mix->frames + mix->slots);
	}
}

/* A part of each module, into a part of the ring's lines. Packets are as they would be without. */
static inline void mix_draw_rectangle(struct mix *mix)
{
	if (mix->stacked && mix_one_in(mix, 2)) {
		mix->left = mix_range(mix, 0, 9);
		mix->right = mix_range(mix, 0, 9);
		mix->above = mix_range(mix, 0, 3);
		mix->below = mix_range(mix, 0, 3);
	}
	if (mix->pitch && mix_one_in(mix, 2)) {
		mix->ring_x = mix_range(mix, 0, mix->pitch / 2 - mix->columns);
		mix->ring_y = mix_range(mix, 0, 5);
	}
}

/* Where modules count from different triggers, one would be dark for one and bright for another;
 * and a stack must not be both. */
static inline void mix_draw_chopper(struct mix *mix)
{
	uint32_t chop = mix_range(mix, 2, 5);

	if (mix->apart || !mix_one_in(mix, 4))
		return;
	if (mix->stack > 1)
		chop = mix->every;
	mix->chop = chop > 1 ? chop : 0;
}

static inline void mix_draw(struct mix *mix, uint64_t seed)
{
	*mix = (struct mix){.seed = seed, .state = seed * UINT64_C(0xd1342543de82ef95) + 1};
	mix_draw_link(mix);
	mix->align = (enum mix_align)mix_range(mix, 0, 2);
	mix->modules = mix_range(mix, 1, MIX_MODULES);
	mix->rows = mix_range(mix, 1, 24);
	mix->columns = mix_range(mix, 1, 96) * 2;
	mix->slots = mix_range(mix, 4, 20);
	mix->late = mix_range(mix, 1, mix->slots - 2);
	mix->workers = mix_range(mix, 1, 2);
	mix->together = mix->workers == 1 && mix->pollers == 1 && seed % 3;
	mix->batch = mix_range(mix, 1, 8);
	mix->frames = mix_range(mix, 20, 100);
	mix->darks = mix_one_in(mix, 3) ? mix_range(mix, 1, 5) : 0;
	mix->stacked = mix_one_in(mix, 4);
	mix->every = mix->stacked ? mix_range(mix, 1, 3) : 1;
	mix->stack = mix->stacked ? mix_range(mix, 1, 3) : 1;
	mix->phase = (uint32_t)(seed / 5 % mix->every);
	mix->keep = mix_one_in(mix, 3);
	mix_draw_message(mix);
	/* The only proof that there is. */
	if (mix->link == MIX_VERBS && !mix->rc && mix->message[0] != 'm')
		mix->crc = true;
	if (mix->link == MIX_VERBS && mix->open_loop)
		mix->crc = true;
	mix_draw_overrun(mix);
	mix_draw_fronts(mix);
	mix_draw_faults(mix);
	mix_draw_trespasses(mix);
	mix_draw_rectangle(mix);
	mix_draw_chopper(mix);
	mix->senders = mix_range(mix, 1, 3); /* of each front end; no more than it has modules */
}

#endif
