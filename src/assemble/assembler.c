/* assembler.c - finds the heads that make the next frame; gives up on what will not come. */
#include <errno.h>
#include <string.h>

#include <sluice/record.h>

#include "assemble/assembler.h"

void sl_assembler_init(struct sl_assembler *assembler, struct sl_ring *ring,
		       const struct sl_assembler_options *options)
{
	*assembler = (struct sl_assembler){.ring = ring, .options = *options};
	if (!assembler->options.frame_step)
		assembler->options.frame_step = 1;
	if (!assembler->options.align.wrap_bits)
		assembler->options.align.wrap_bits = 64;
	for (unsigned m = 0; m < SL_ASSEMBLER_MODULES; m++)
		assembler->end[m] = UINT64_MAX;
}

void sl_assembler_begin(struct sl_assembler *assembler, uint32_t module, uint64_t sequence,
			uint64_t first_frame)
{
	struct sl_assembler *a = assembler;
	struct sl_head *head = &a->head[module];

	a->end[module] = UINT64_MAX;
	if (head->state == SL_HEAD_ENDED)
		head->state = SL_HEAD_WAITING;
	if (a->options.align.by != SL_ALIGN_FRAME) {
		head->follows = false; /* its clock may have been set */
		return;
	}
	if (!a->aligned) {
		a->aligned = true;
		a->key_last = first_frame - (uint64_t)a->options.align.offset[module];
	}
	head->follows = true;
	head->sequence_before = sequence - 1;
	head->key_before = sl_align_key(&a->options.align, module, first_frame, a->key_last) -
			   a->options.frame_step;
}

void sl_assembler_skip(struct sl_assembler *assembler, uint32_t module, uint64_t sequence)
{
	assembler->head[module].sequence = sequence;
	if (sequence > assembler->next)
		assembler->next = sequence;
}

void sl_assembler_end(struct sl_assembler *assembler, uint32_t module, uint64_t end)
{
	struct sl_head *head = &assembler->head[module];

	assembler->end[module] = end;
	/* It may have been seen before, and what comes after the end has no outcome. */
	if (head->sequence >= end && head->state != SL_HEAD_CLOSING)
		head->state = SL_HEAD_ENDED;
}

static bool ended(const struct sl_assembler *a, uint32_t module)
{
	return a->end[module] != UINT64_MAX;
}

static bool all_done(const struct sl_assembler *a)
{
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (!ended(a, m) || a->head[m].sequence < a->end[m])
			return false;
	return true;
}

/* The key of a cell whose event is there. False when its record is not to be believed. */
static bool key_of(struct sl_assembler *a, uint32_t module, uint64_t sequence, uint64_t *key)
{
	const struct sl_align *align = &a->options.align;
	struct sl_record record;
	uint64_t raw;

	memcpy(&record, sl_ring_record(a->ring, sequence, module), sizeof(record));
	if (!sl_record_valid(&record) || record.sequence != sequence || record.module != module)
		return false;
	raw = sl_align_raw(align, &record);
	if (!a->aligned) { /* the first of all: the others are near to it */
		a->aligned = true;
		a->key_last = sl_align_key(align, module, raw, 0);
		if (align->wrap_bits < 64)
			a->key_last &= (UINT64_C(1) << align->wrap_bits) - 1;
	}
	*key = sl_align_key(align, module, raw, a->key_last);
	return true;
}

static void know(struct sl_assembler *a, uint32_t module)
{
	struct sl_head *head = &a->head[module];

	head->state = SL_HEAD_KNOWN;
	if (a->options.align.by != SL_ALIGN_SEQUENCE &&
	    !key_of(a, module, head->sequence, &head->key))
		head->state = SL_HEAD_BLIND;
}

/* Is there news of a head that was waited for? */
static enum sl_head_state look(struct sl_assembler *a, uint32_t module)
{
	struct sl_head *head = &a->head[module];
	uint64_t ns;

	if (head->state != SL_HEAD_WAITING)
		return head->state;
	if (head->sequence >= a->end[module])
		head->state = SL_HEAD_ENDED;
	else if (sl_ring_event(a->ring, head->sequence, module, &ns))
		know(a, module);
	return head->state;
}

/* ---- giving up ---- */

/* Nothing more of it will come: so says the order of its own stream, or its source. */
static bool hopeless(const struct sl_assembler *a, uint32_t module)
{
	return ended(a, module) ||
	       sl_ring_reached(a->ring, module) > a->head[module].sequence + a->options.late_frames;
}

/* A cell not yet open cannot be given up; the pipeline opens it when frames come back. */
static bool is_open(const struct sl_assembler *a, uint32_t module)
{
	return a->head[module].sequence < sl_ring_opened(a->ring, module);
}

/* The next frame is due once anything of it or of a later one has arrived. */
static bool due(const struct sl_assembler *a)
{
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (sl_ring_reached(a->ring, m) > a->head[m].sequence)
			return true;
	return false;
}

/* A module that was waited for in vain, and of which nothing has come since, is not waited for
 * again: its silence would cost every frame of the others a time-out. */
static bool silent(const struct sl_assembler *a, uint32_t module)
{
	return a->silent_at[module] == 1 + sl_ring_reached(a->ring, module);
}

static bool timed_out(struct sl_assembler *a, uint64_t now_ns)
{
	bool all_silent = true;

	if (!a->waiting_ns && !due(a))
		return false;
	if (!a->waiting_ns)
		a->waiting_ns = now_ns;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		all_silent &= a->head[m].state != SL_HEAD_WAITING || silent(a, m);
	if (all_silent)
		return true;
	if (now_ns - a->waiting_ns <= a->options.late_timeout_ns)
		return false;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (a->head[m].state == SL_HEAD_WAITING &&
		    sl_ring_reached(a->ring, m) <= a->head[m].sequence)
			a->silent_at[m] = 1 + sl_ring_reached(a->ring, m);
	return true;
}

static void close_heads(struct sl_assembler *a, uint64_t modules)
{
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (!(modules >> m & 1))
			continue;
		sl_ring_close(a->ring, a->head[m].sequence, m);
		a->head[m].state = SL_HEAD_CLOSING;
	}
	sl_ring_grace(a->ring, &a->grace);
	a->closing = true;
}

/* After closing: a poller that was inside may still finish the cell, and then it is whole after
 * all. False while that is open: nothing is judged or released before (invariants EXCLUSIVE,
 * NAMED). */
static bool closed(struct sl_assembler *a)
{
	bool quiet = sl_ring_quiet(a->ring, &a->grace);
	uint64_t ns;

	for (uint32_t m = 0; m < a->ring->modules && !quiet; m++)
		if (a->head[m].state == SL_HEAD_CLOSING &&
		    !sl_ring_event(a->ring, a->head[m].sequence, m, &ns))
			return false;
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (a->head[m].state != SL_HEAD_CLOSING)
			continue;
		a->head[m].state = SL_HEAD_BLIND;
		if (sl_ring_event(a->ring, a->head[m].sequence, m, &ns))
			know(a, m);
	}
	a->closing = false;
	return true;
}

/* ---- which heads ---- */

static uint64_t all_of(const struct sl_assembler *a)
{
	uint64_t members = 0;

	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (a->head[m].state == SL_HEAD_KNOWN || a->head[m].state == SL_HEAD_BLIND)
			members |= UINT64_C(1) << m;
	return members;
}

/* By sequence: heads are level. True when all are known, or may be given up together; *waiting are
 * those that are. */
static bool ready_by_sequence(struct sl_assembler *a, uint64_t now_ns, uint64_t *waiting)
{
	bool passed = true;

	*waiting = 0;
	while (a->looked < a->ring->modules && look(a, a->looked) != SL_HEAD_WAITING)
		a->looked++;
	for (uint32_t m = a->looked; m < a->ring->modules; m++) {
		if (look(a, m) != SL_HEAD_WAITING)
			continue;
		if (!is_open(a, m))
			return false;
		*waiting |= UINT64_C(1) << m;
		passed &= hopeless(a, m);
		if (!passed && !timed_out(a, now_ns))
			return false;
	}
	return true;
}

/* The lowest key that a head without one can have. */
static bool earliest(const struct sl_assembler *a, uint32_t module, uint64_t *key)
{
	const struct sl_align *align = &a->options.align;
	const struct sl_head *head = &a->head[module];
	uint64_t after_last = a->key_last + align->window + 1;

	if (!head->follows && !a->passed)
		return false;
	*key = after_last;
	if (head->follows)
		*key = head->key_before +
		       (align->by == SL_ALIGN_FRAME
				? (head->sequence - head->sequence_before) * a->options.frame_step
				: align->window + 1);
	if (a->passed && sl_align_after(after_last, *key) > 0)
		*key = after_last;
	return true;
}

/* The highest one: less than that of the next cell of its stream. One further on would not do: what
 * lies between may still come. */
static bool latest(struct sl_assembler *a, uint32_t module, uint64_t *key)
{
	uint64_t after = a->head[module].sequence + 1, ns;

	if (!sl_ring_event(a->ring, after, module, &ns) || !key_of(a, module, after, key))
		return false;
	*key -= a->options.align.by == SL_ALIGN_FRAME ? a->options.frame_step : 1;
	return true;
}

/* A head without a key goes to the frame with this one if it can, else to the nearest it can. While
 * nothing is known of what follows it, only the lowest is safe: with any other, what follows might
 * find its own frame given out. */
static uint64_t guess(struct sl_assembler *a, uint32_t module, uint64_t key)
{
	uint64_t low, high;
	bool from = earliest(a, module, &low), to = latest(a, module, &high);

	if (to && sl_align_after(key, high) > 0)
		key = high;
	if (from && (!to || sl_align_after(low, key) > 0))
		key = low;
	return key;
}

/* The lowest key of heads that are known. */
static bool lowest(const struct sl_assembler *a, uint64_t *key)
{
	bool any = false;

	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (a->head[m].state != SL_HEAD_KNOWN)
			continue;
		if (!any || sl_align_after(*key, a->head[m].key) > 0)
			*key = a->head[m].key;
		any = true;
	}
	return any;
}

struct group { /* heads that belong together */
	uint64_t members, key;
	bool known; /* one of them at least has a key of its own */
	bool late;  /* its trigger was given out before */
};

static bool find_group(struct sl_assembler *a, struct group *group)
{
	const uint64_t window = a->options.align.window;
	uint64_t blind = 0;

	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (a->head[m].state == SL_HEAD_BLIND)
			blind |= UINT64_C(1) << m;
	*group = (struct group){.key = a->key_last + 1};
	group->known = lowest(a, &group->key);
	if (!group->known && !blind)
		return false;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (blind >> m & 1)
			a->head[m].key = guess(a, m, group->key);
	/* Where none is known, the guess to begin with was nobody's. */
	if (!group->known)
		group->key = a->head[__builtin_ctzll(blind)].key;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if ((blind >> m & 1) && sl_align_after(group->key, a->head[m].key) > 0)
			group->key = a->head[m].key;
	group->late = group->known && a->passed &&
		      sl_align_after(group->key, a->key_last) <= (int64_t)window;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if ((a->head[m].state == SL_HEAD_KNOWN || (blind >> m & 1)) &&
		    sl_align_after(a->head[m].key, group->key) <= (int64_t)window)
			group->members |= UINT64_C(1) << m;
	group->known = group->members & ~blind;
	return true;
}

/* Could what is waited for belong to this group? */
static bool could_belong(const struct sl_assembler *a, uint32_t module, const struct group *group)
{
	uint64_t key;

	return !earliest(a, module, &key) ||
	       sl_align_after(key, group->key) <= (int64_t)a->options.align.window;
}

/* By key: heads that are hopeless are given up one by one (*waiting). True when there is a group
 * and nothing is waited for that could belong to it. */
static bool ready_by_key(struct sl_assembler *a, uint64_t now_ns, struct group *group,
			 uint64_t *waiting)
{
	bool blocked = false, shut = false;

	*waiting = 0;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (look(a, m) == SL_HEAD_WAITING && is_open(a, m) && hopeless(a, m))
			*waiting |= UINT64_C(1) << m;
	if (*waiting)
		return true;
	if (!find_group(a, group))
		return false;
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (a->head[m].state != SL_HEAD_WAITING || !could_belong(a, m, group))
			continue;
		blocked = true;
		shut |= !is_open(a, m);
	}
	return !blocked || group->late || (!shut && timed_out(a, now_ns));
}

/* ---- giving out ---- */

static void advance(struct sl_assembler *a, const struct group *group)
{
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		struct sl_head *head = &a->head[m];

		if (!(group->members >> m & 1))
			continue;
		if (head->state == SL_HEAD_KNOWN && !group->late) {
			head->follows = true;
			head->key_before = head->key;
			head->sequence_before = head->sequence;
		}
		head->sequence++;
		head->state = SL_HEAD_WAITING;
	}
	if (group->known && !group->late) {
		a->key_last = group->key;
		a->passed = true;
	}
	a->looked = 0;
	a->waiting_ns = 0;
	a->next++;
}

int sl_assembler_next(struct sl_assembler *assembler, uint64_t now_ns, struct sl_frame *frame)
{
	struct sl_assembler *a = assembler;
	bool by_sequence = a->options.align.by == SL_ALIGN_SEQUENCE;
	struct group group = {0};
	uint64_t waiting;

	if (all_done(a))
		return -ENODATA;
	do {
		if (a->closing && !closed(a))
			return 0;
		if (by_sequence ? !ready_by_sequence(a, now_ns, &waiting)
				: !ready_by_key(a, now_ns, &group, &waiting))
			return 0;
		if (waiting)
			close_heads(a, waiting);
	} while (a->closing);
	if (by_sequence)
		group.members = all_of(a);
	sl_assembler_describe(a, group.members, group.key, group.late, now_ns, frame);
	advance(a, &group);
	return 1;
}
