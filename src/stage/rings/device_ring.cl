/* device_ring.cl - rings of light out of a ring of plain buffers (docs/reference/device-rings.md): one kernel that polls until the end.
 *
 * Model: an event of the ring is a block: struct sl_kernel_frame, then the events of its modules, 48 bytes each. Groups are in
 * crews of slot.share, which take blocks in turns; a crew shares the events of its block, each 32 threads have one at a time
 * (team.clh). So a block takes as long as its slowest event where a crew is large enough, and crews do not wait for each
 * other. The last group of a crew that is through puts the answer together, in the device's memory, and then copies it to the
 * host's, line by line: a verdict for each event, then how many rows the table has, the table, the counts (struct sl_kernel_slot
 * says where). Words that cross the bus one by one would take as long as the work. Of a block whose events are all rejected only
 * the verdicts and the counts go out, unless somebody looks at it all the same.
 *
 * State: `passed`, a word for each buffer: groups that are through; above, those of them that keep something. Behind them notes,
 * two words for each buffer: the turn that is there, and what is to be said of it; behind those a word for each crew (there are
 * no more of them than buffers): its first group has left. Scratch (`word`,
 * `ring`, `draft`) is a buffer's, not a group's: while the last group of a crew is at a block, others of it are at the next
 * (invariant EXCLUSIVE). tests/model/device_crew.pml is a model of crews, notes and counts.
 *
 * OpenCL has one team in a group, for its barriers are the group's. */
#include "gpu/ring/ring.clh"
#include "stage/rings/team.clh"

enum {
	HEAD = 16,	 /* bytes of struct sl_kernel_frame */
	KEPT = 0x10000, /* in `passed` */
	NOTE_NS = 200,	/* between two looks at a note */
};

struct shared {
	struct team team[SL_KERNEL_RINGS_TEAMS];
	sl_u32 sums[32];	   /* as many as threads (OpenCL), or as teams (CUDA) */
	sl_u32 outcome, kept, seen; /* seen: of `passed`, before this group was */
	struct sl_kernel_frame frame;
};

#define RING                                                                                                                  \
	SL_DEVICE_RING_PARAMETERS, SL_GLOBAL const float *x, SL_GLOBAL const float *y, SL_GLOBAL const sl_u8 *triplet,               \
		struct sl_kernel_rings rules, SL_GLOBAL sl_u32 *word, SL_GLOBAL float *ring, SL_GLOBAL sl_u32 *passed,   \
		SL_GLOBAL sl_u32x4 *draft, struct sl_kernel_slot slot
#define PASS SL_DEVICE_RING_PASS, x, y, triplet, rules, word, ring, passed, draft, slot

/* By the first thread of a crew: what is to be said of the block of this turn, when it is there; 0: there will be none. */
SL_DEVICE sl_u32 look_for_block(SL_GLOBAL const sl_u32x4 *meta, SL_GLOBAL const sl_u32 *enable, sl_u32 buffer_bytes, sl_u32 now,
				SL_GLOBAL const sl_u32 *stop, sl_u32 backoff_ns)
{
	sl_u32x4 head;
	sl_u32 outcome = sl_device_ring_wait(meta, enable, now, stop, backoff_ns, &head) ? sl_device_ring_judge(head, buffer_bytes, now, stop) : 0;

	sl_fence_system(); /* data is as new as the word */
	return outcome;
}

/* Wait for the block of this turn. The first group of a crew looks across the bus, and tells the others: if all did, their looks
 * would be in the way of the events. note: of the buffer, two words, the turn and what is to be said of it. Who has found the
 * turn sees data of that turn (invariant PROVEN). ended: of the crew. The end is not said by a note: when blocks are under way
 * the first group may be a whole ring ahead of another, which has not read what the note says yet (invariant WOKEN). */
SL_DEVICE sl_u32 await_block(SL_LOCAL struct shared *s, SL_DEVICE_RING_PARAMETERS, SL_GLOBAL sl_u32 *note, SL_GLOBAL sl_u32 *ended,
			     sl_u32 is_first, sl_u32 b, sl_u32 now)
{
	sl_u32 is_over = 0, is_told;

	(void)result;
	(void)completion;
	(void)buffers;
	(void)slot_bytes;
	if (sl_thread() == 0) {
		if (is_first) {
			s->outcome = look_for_block(meta + b, enable + b, buffer_bytes, now, stop, backoff_ns);
			if (s->outcome) {
				sl_word_store(note + 1, s->outcome);
				sl_fence_device();
				sl_word_store(note, now);
			} else {
				sl_word_store(ended, 1); /* its notes are before the fence in look_for_block */
			}
		} else {
			while (!(is_told = sl_word_load(note) == now) && !is_over) {
				is_over = sl_word_load(ended);
				if (is_over)
					sl_fence_device(); /* the last look comes after it */
				else
					sl_pause(NOTE_NS);
			}
			sl_fence_device();
			s->outcome = is_told ? sl_word_load(note + 1) : 0;
		}
		s->kept = 0;
		if (s->outcome == SL_DEVICE_RING_GOOD)
			s->frame = *(SL_GLOBAL const struct sl_kernel_frame *)(data + (sl_u64)b * (buffer_bytes / 16));
	}
	sl_barrier();
	return s->outcome;
}

/* Event `item`, by 32 threads. */
SL_DEVICE void do_event(SL_LOCAL struct shared *s, SL_GLOBAL const sl_u8 *events, SL_GLOBAL const float *x, SL_GLOBAL const float *y,
			SL_GLOBAL const sl_u8 *triplet, struct sl_kernel_rings rules, sl_u32 item, SL_GLOBAL sl_u32 *word,
			SL_GLOBAL float *ring, SL_GLOBAL struct sl_kernel_verdict *verdict)
{
	SL_LOCAL struct team *team = &s->team[sl_thread() / SL_TEAM];
	int alone = 0, looked = !(s->frame.flags & SL_KERNEL_DARK);
	int is_there = looked && !(s->frame.missing >> item / rules.events & 1);
	sl_u32 all, hits = load_hits(team, events + (sl_u64)item * EVENT_BYTES, x, y, &all), rings, matched;

	rings = find(team, rules, is_there ? hits : 0, triplet, &alone);
	if (sl_team_thread() == 0) {
		struct sl_kernel_verdict v = {0, 1, 0};

		matched = store(team, rules, rings, ring + (sl_u64)item * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		word[item] = is_there ? rings | (alone ? ALONE : 0) | LOOKED_AT | (all - hits) << ODD : 0;
		if (looked) {
			v.keep = is_there && rings >= rules.min_rings && rings <= rules.max_rings &&
				 matched >= rules.min_matches;
			v.score = (float)rings;
			v.reason = SL_KERNEL_RINGS;
		}
		verdict[item] = v;
		if (v.keep)
			sl_or(&s->kept, 1);
	}
	sl_team_barrier();
}

/* The table in the order of events, and how many rows it has. */
SL_DEVICE void list_rings(SL_LOCAL struct shared *s, struct sl_kernel_rings rules, SL_GLOBAL const sl_u32 *word,
			  SL_GLOBAL const float *ring, SL_GLOBAL float *table, SL_GLOBAL sl_u32 *rows)
{
	sl_u32 items = rules.modules * rules.events, t = sl_thread(), base = 0, first, total, at, n, i;

	for (first = 0; first < items; first += sl_threads()) {
		i = first + t;
		n = i < items ? rows_of(word[i]) : 0;
		at = base + sl_group_before(s->sums, n, &total);
		if (i < items)
			write_rows(table, rules.rows, at, n, i,
				   ring + (sl_u64)i * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		base += total;
	}
	if (t == 0)
		*rows = base < rules.rows ? base : rules.rows;
}

/* This group is through; is it the last? Then what all have done is seen by it (invariant WHOLE). */
SL_DEVICE int is_last(SL_LOCAL struct shared *s, SL_GLOBAL sl_u32 *passed, sl_u32 share)
{
	sl_barrier();
	if (sl_thread() == 0) {
		/* What the group has written, before it counts; one fence after the barrier does for all its threads, and a
		 * fence of each would take as long as hundreds of events. */
		sl_fence_device();
		s->seen = sl_add(passed, 1u | (s->kept ? KEPT : 0));
		sl_fence_device();
	}
	sl_barrier();
	return (s->seen & (KEPT - 1)) == share - 1;
}

/* Bytes of the draft from `at` on, a multiple of 16, and what follows them up to the next. */
SL_DEVICE void copy_out(SL_GLOBAL sl_u32x4 *answer, SL_GLOBAL const sl_u32x4 *draft, sl_u32 at, sl_u32 bytes)
{
	sl_u32 i;

	for (i = sl_thread(); i < (bytes + 15) / 16; i += sl_threads())
		answer[at / 16 + i] = draft[at / 16 + i];
}

SL_DEVICE int work(SL_LOCAL struct shared *s, RING, sl_u32 b, sl_u32 now)
{
	SL_GLOBAL const sl_u8 *block = (SL_GLOBAL const sl_u8 *)(data + (sl_u64)b * (buffer_bytes / 16));
	SL_GLOBAL sl_u8 *answer;
	sl_u32 items = rules.modules * rules.events, teams = sl_threads() / SL_TEAM, i;
	sl_u32 outcome = await_block(s, SL_DEVICE_RING_PASS, passed + buffers + 2 * b, passed + 3 * buffers + sl_group(0) / slot.share,
				     sl_group(0) % slot.share == 0, b, now);

	if (!outcome)
		return 0;
	draft += (sl_u64)b * (slot_bytes / 16);
	result += (sl_u64)b * (slot_bytes / 16);
	answer = (SL_GLOBAL sl_u8 *)draft;
	word += (sl_u64)b * items;
	ring += (sl_u64)b * items * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED;
	if (outcome == SL_DEVICE_RING_GOOD)
		for (i = sl_group(0) % slot.share + sl_thread() / SL_TEAM * slot.share; i < items; i += teams * slot.share)
			do_event(s, block + HEAD, x, y, triplet, rules, i, word, ring,
				 (SL_GLOBAL struct sl_kernel_verdict *)answer);
	if (!is_last(s, passed + b, slot.share))
		return 1;
	if (outcome == SL_DEVICE_RING_GOOD) {
		sl_u32 is_listed = s->seen >= KEPT || s->kept || s->frame.flags & SL_KERNEL_SEEN;

		if (is_listed)
			list_rings(s, rules, word, ring, (SL_GLOBAL float *)(answer + slot.result[0]),
				   (SL_GLOBAL sl_u32 *)(answer + slot.rows));
		count_events(s->sums, word, items, (SL_GLOBAL sl_u32 *)(answer + slot.result[1]));
		sl_barrier_all();
		copy_out(result, draft, 0, items * (sl_u32)sizeof(struct sl_kernel_verdict));
		copy_out(result, draft, slot.result[1], SL_KERNEL_RINGS_COUNTS * 4);
		if (is_listed) {
			copy_out(result, draft, slot.rows, 16);
			copy_out(result, draft, slot.result[0],
				 *(SL_GLOBAL sl_u32 *)(answer + slot.rows) * SL_KERNEL_RINGS_COLUMNS * 4);
		}
	}
	sl_barrier_all();
	if (sl_thread() == 0) {
		passed[b] = 0;
		sl_fence_system(); /* data before the second look; all before the completion */
		if (outcome == SL_DEVICE_RING_GOOD && sl_chunk_load(meta + b).w != now)
			outcome = SL_DEVICE_RING_LAPPED;
		if (outcome == SL_DEVICE_RING_GOOD)
			outcome |= SL_DEVICE_RING_KEEP;
		sl_chunk_store(completion + b, sl_u32x4_make(outcome, outcome & SL_DEVICE_RING_KEEP ? slot_bytes : 0, s->seen >= KEPT || s->kept, now));
	}
	sl_barrier();
	return 1;
}

SL_KERNEL SL_GROUP(SL_KERNEL_RINGS_TEAMS * 32, 1) void rings_ring_forever(RING)
{
	SL_SHARED struct shared s;
	sl_u32 n;

	for (n = sl_group(0) / slot.share; work(&s, PASS, n % buffers, n + 1); n += sl_groups(0) / slot.share)
		;
	sl_end();
}
