/* fault_oracle.h - what was sent and what must have arrived of it, from the front ends' fault logs
 * alone.
 *
 * It knows nothing of rings, assemblers or links: it lays out each module's packets in the order in
 * which the log says they went onto the wire, hands them to the rule of the service, and reads off
 * which blocks are whole. So it shares no code with what it judges, and is short enough to be
 * believed. It holds where nothing but the faults hurts: no source runs out of slots, none is given
 * up by the clock, and nothing is held back for longer than ring.late_frames. What becomes of whole
 * blocks is in fault_verdict.h. */
#ifndef TESTS_LIB_FAULT_ORACLE_H
#define TESTS_LIB_FAULT_ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MEMORY: shared; NIC: it shows events, and no packets. */
enum oracle_way { ORACLE_UC, ORACLE_RC, ORACLE_MEMORY, ORACLE_NIC };

enum oracle_fault { SENT, GONE, TWICE, BAD_ICRC, HELD, BAD_KEY = 1 << 4 };
enum oracle_block { SPOILT = 1 << 0, SPOILT_RECORD = 1 << 1, SKIPPED = 1 << 2 };

struct oracle_stream {	    /* a module's */
	uint64_t sequences; /* that it had in all */
	uint64_t skipped, faults;
	bool restarted;
	uint64_t plan_at;     /* the sequence with which its second plan began */
	uint64_t next, frame; /* while the log is read: how far it is known */
};

struct oracle {
	enum oracle_way way;
	uint32_t message; /* packets of one: 1, those of a line, or of the whole block */
	bool crc;
	bool gaps;		   /* a frame that is skipped leaves one in the sequences */
	uint32_t modules, packets; /* packets of a block */
	uint32_t record_packet;	   /* the first of them that has bytes of the record */
	uint32_t hold;		   /* packets that overtake one that is held back */
	uint64_t frames;
	/* A front end goes away after so many frames, and comes back so many later. */
	uint64_t restart_after, restart_frames;

	uint8_t *fault;	 /* [modules][frames][packets], enum oracle_fault */
	uint8_t *block;	 /* [modules][frames], set of enum oracle_block */
	uint32_t *here;	 /* [modules][frames]: different packets that were placed */
	uint64_t *frame; /* [modules][frames]: which frame a sequence is of */
	struct oracle_stream stream[64];
};

static inline void oracle_init(struct oracle *o)
{
	size_t blocks = (size_t)o->modules * o->frames;

	o->fault = calloc(blocks * o->packets, 1);
	o->block = calloc(blocks, 1);
	o->here = calloc(blocks, sizeof(*o->here));
	o->frame = calloc(blocks, sizeof(*o->frame));
	if (!o->fault || !o->block || !o->here || !o->frame)
		abort();
}

static inline void oracle_fini(struct oracle *o)
{
	free(o->fault);
	free(o->block);
	free(o->here);
	free(o->frame);
}

static inline size_t oracle_at(const struct oracle *o, uint32_t module, uint64_t sequence)
{
	return (size_t)module * o->frames + sequence;
}

/* ---- the log ---- */

/* Sequences below this one are of consecutive frames. */
static inline bool oracle_count_to(struct oracle *o, uint32_t module, uint64_t sequence)
{
	struct oracle_stream *s = &o->stream[module];

	for (; s->next < sequence; s->next++, s->frame++) {
		if (s->frame >= o->frames)
			return false;
		o->frame[oracle_at(o, module, s->next)] = s->frame;
	}
	return s->next == sequence;
}

static inline bool oracle_skip(struct oracle *o, uint32_t module, uint64_t sequence)
{
	struct oracle_stream *s = &o->stream[module];

	s->skipped++;
	if (o->gaps) {
		o->block[oracle_at(o, module, sequence)] |= SKIPPED;
		return true;
	}
	if (!oracle_count_to(o, module, sequence))
		return false;
	s->frame++;
	return true;
}

/* It has sent all that it had, and is gone; what it misses, it misses. */
static inline bool oracle_restart(struct oracle *o, uint32_t module, uint64_t sequence)
{
	struct oracle_stream *s = &o->stream[module];

	if (!o->restart_after || s->restarted || !oracle_count_to(o, module, sequence) ||
	    s->frame != o->restart_after)
		return false;
	s->restarted = true;
	s->plan_at = sequence;
	s->frame += o->restart_frames;
	return true;
}

/* One line of the log. False: it cannot be true. */
static inline bool oracle_fault(struct oracle *o, uint32_t module, uint64_t sequence,
				uint32_t packet, const char *kind)
{
	static const struct {
		const char *kind;
		uint8_t fault, block;
	} known[] = {
		{"drop", GONE, 0},	 {"burst", GONE, 0},
		{"duplicate", TWICE, 0}, {"corrupt", BAD_ICRC, 0},
		{"reorder", HELD, 0},	 {"wrong_key", BAD_KEY, 0},
		{"spoil", 0, SPOILT},	 {"spoil_record", 0, SPOILT_RECORD},
		{"delay", 0, 0}, /* it comes later, and that is all */
	};
	uint8_t *fault;

	if (module >= o->modules || sequence > o->frames || packet >= o->packets)
		return false;
	o->stream[module].faults++;
	if (!strcmp(kind, "restart"))
		return oracle_restart(o, module, sequence);
	if (!strcmp(kind, "skip"))
		return oracle_skip(o, module, sequence);
	if (!strcmp(kind, "drift"))
		return true; /* from here on; which is from the beginning */
	if (sequence == o->frames)
		return !strcmp(kind, "delay"); /* of one that was skipped then */
	fault = &o->fault[oracle_at(o, module, sequence) * o->packets + packet];
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].kind, kind) != 0)
			continue;
		/* A packet goes onto the wire once: two packet_faults contradict each other. */
		if (known[i].fault && known[i].fault != BAD_KEY && (*fault & ~BAD_KEY))
			return false;
		*fault |= known[i].fault;
		o->block[oracle_at(o, module, sequence)] |= known[i].block;
		return true;
	}
	return false;
}

static inline bool oracle_read(struct oracle *o, const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long sequence;
	unsigned module, packet;
	char kind[32];
	bool good = file != NULL;

	while (good && fscanf(file, "%u %llu %u %31s", &module, &sequence, &packet, kind) == 4)
		good = oracle_fault(o, module, sequence, packet, kind);
	good = good && feof(file);
	if (file)
		fclose(file);
	return good;
}

/* ---- one module's packets arrive, in order ---- */

struct oracle_wire {
	struct oracle *o;
	uint32_t module;
	uint8_t *placed;     /* [frames][packets] */
	bool open;	     /* in the middle of a message, */
	uint64_t frame_next; /* which goes on with this packet */
	uint32_t packet_next;
};

static inline void oracle_place(struct oracle_wire *w, uint64_t frame, uint32_t packet)
{
	uint8_t *placed = &w->placed[frame * w->o->packets + packet];

	w->o->here[oracle_at(w->o, w->module, frame)] += !*placed;
	*placed = 1;
}

/* An unreliable connection: a message that is not continued by its very next packet is over; the
 * first packet of a message begins one whatever came before. A wrong ICRC is as good as nothing. */
static inline void oracle_arrive(struct oracle_wire *w, uint64_t frame, uint32_t packet)
{
	const struct oracle *o = w->o;
	uint8_t fault = o->fault[oracle_at(o, w->module, frame) * o->packets + packet];
	bool first = packet % o->message == 0;

	if ((fault & ~BAD_KEY) == BAD_ICRC)
		return;
	if (!first && !(w->open && frame == w->frame_next && packet == w->packet_next)) {
		w->open = false;
		return;
	}
	/* The key is in the first packet of a message. */
	if (first && (fault & BAD_KEY)) {
		w->open = false;
		return;
	}
	oracle_place(w, frame, packet);
	w->open = packet + 1 < o->packets && (packet + 1) % o->message;
	w->frame_next = frame;
	w->packet_next = packet + 1;
}

/* As many as `count` packets had their turn: who waited for that goes now. */
static inline void oracle_release(struct oracle_wire *w, const uint64_t *held, uint64_t *first,
				  uint64_t last, uint64_t turns, const uint64_t *turn_of)
{
	while (*first < last && turn_of[*first] + w->o->hold < turns) {
		uint64_t packet = held[(*first)++];

		oracle_arrive(w, packet / w->o->packets, (uint32_t)(packet % w->o->packets));
	}
}

/* One plan's sequences, first..end-1: a queue of its own, and all that was held back goes out when
 * it ends. */
static inline void oracle_plan(struct oracle_wire *w, uint64_t first_sequence, uint64_t end,
			       uint64_t *held, uint64_t *turn_of)
{
	const struct oracle *o = w->o;
	uint64_t first = 0, last = 0, turns = 0;

	w->open = false;
	for (uint64_t k = first_sequence; k < end; k++)
		for (uint32_t p = 0; p < o->packets; p++) {
			size_t at = oracle_at(o, w->module, k);
			uint8_t fault = o->fault[at * o->packets + p] & (uint8_t)~BAD_KEY;
			int copies = fault == TWICE ? 2 : fault == GONE || fault == HELD ? 0 : 1;

			if (o->block[at] & SKIPPED)
				continue;
			if (fault == HELD) {
				turn_of[last] = turns;
				held[last++] = k * o->packets + p;
			}
			for (; copies > 0; copies--)
				oracle_arrive(w, k, p);
			oracle_release(w, held, &first, last, ++turns, turn_of);
		}
	oracle_release(w, held, &first, last, UINT64_MAX, turn_of);
}

static inline void oracle_wire(struct oracle *o, uint32_t module)
{
	const struct oracle_stream *s = &o->stream[module];
	uint64_t all = o->frames * o->packets;
	uint64_t *held = calloc(all, sizeof(*held)), *turn_of = calloc(all, sizeof(*turn_of));
	struct oracle_wire w = {.o = o, .module = module, .placed = calloc(all, 1)};

	if (!held || !turn_of || !w.placed)
		abort();
	oracle_plan(&w, 0, s->restarted ? s->plan_at : s->sequences, held, turn_of);
	if (s->restarted)
		oracle_plan(&w, s->plan_at, s->sequences, held, turn_of);
	free(w.placed);
	free(held);
	free(turn_of);
}

/* Shared memory has no packets on the way: a block is announced, or it is not. */
static inline void oracle_memory(struct oracle *o, uint32_t module)
{
	for (uint64_t k = 0; k < o->stream[module].sequences; k++) {
		size_t at = oracle_at(o, module, k);
		bool whole = !(o->block[at] & SKIPPED);

		for (uint32_t p = 0; p < o->packets; p++)
			whole &= o->fault[at * o->packets + p] == SENT;
		o->here[at] = whole ? o->packets : 0;
	}
}

/* A NIC raises an event with the last message; what was lost of others, the record or its checksum
 * shows. */
static inline void oracle_nic(struct oracle *o, uint32_t module)
{
	uint32_t last = (o->packets - 1) / o->message * o->message;

	for (uint64_t k = 0; k < o->stream[module].sequences; k++) {
		size_t at = oracle_at(o, module, k);
		bool event = !(o->block[at] & SKIPPED);

		for (uint32_t p = 0; p < o->packets; p++) {
			bool lost = o->fault[at * o->packets + p] != SENT;

			event &= p < last || !lost;
			if (lost && p < last)
				o->block[at] |= p < o->record_packet ? SPOILT : SPOILT_RECORD;
		}
		o->here[at] = event ? o->packets : 0;
	}
}

/* ---- what became of it ---- */

/* The log was read. A stream that was told to stop earlier had so many sequences; UINT64_MAX: it
 * was not. */
static inline bool oracle_end(struct oracle *o, uint32_t module, uint64_t sequences)
{
	struct oracle_stream *s = &o->stream[module];
	uint64_t left = s->frame < o->frames ? o->frames - s->frame : 0;

	if (sequences == UINT64_MAX)
		sequences = s->next + left;
	if (sequences < s->next || sequences > s->next + left)
		return false;
	s->sequences = sequences;
	return oracle_count_to(o, module, sequences);
}

static inline void oracle_run(struct oracle *o)
{
	for (uint32_t m = 0; m < o->modules; m++)
		if (o->way == ORACLE_MEMORY)
			oracle_memory(o, m);
		else if (o->way == ORACLE_NIC)
			oracle_nic(o, m);
		else if (o->way == ORACLE_UC)
			oracle_wire(o, m);
		else /* what is lost comes again */
			for (uint64_t k = 0; k < o->stream[m].sequences; k++)
				o->here[oracle_at(o, m, k)] = o->packets;
}

/* What is wrong with this block by itself; NULL: nothing. */
static inline const char *oracle_hurt(const struct oracle *o, uint32_t module, uint64_t sequence)
{
	size_t at = oracle_at(o, module, sequence);

	if (o->here[at] == 0)
		return "lost no_arrival";
	if (o->here[at] < o->packets)
		return "incomplete damaged";
	if (o->block[at] & SPOILT_RECORD)
		return "incomplete record";
	if ((o->block[at] & SPOILT) && o->crc)
		return "incomplete checksum";
	return NULL;
}

#endif
