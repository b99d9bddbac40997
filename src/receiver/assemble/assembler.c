/* assembler.c - finds the heads that make the next frame; gives up on what will not come. */
#include <errno.h>
#include <string.h>

#include <sluice/record.h>

#include "receiver/assemble/assembler.h"
#include "receiver/assemble/group.h"

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

static void know(struct sl_assembler *a, uint32_t module)
{
	struct sl_head *head = &a->head[module];

	head->state = SL_HEAD_KNOWN;
	if (a->options.align.by != SL_ALIGN_SEQUENCE &&
	    !sl_group_key(a, module, head->sequence, &head->key))
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

/* What came of module by this time has been taken from the buffers of this host, and placed. What
 * waits there is not late: the link thread is, for want of a cpu. */
static bool looked(const struct sl_assembler *a, uint32_t module, uint64_t by_ns)
{
	uint64_t at = sl_ring_looked_at(a->ring, module);

	return !at || at >= by_ns;
}

/* Modules that are waited for are silent, as far as the link has looked lately. */
static bool all_silent(const struct sl_assembler *a, uint64_t now_ns)
{
	uint64_t timeout_ns = a->options.late_timeout_ns;
	uint64_t lately = now_ns > timeout_ns ? now_ns - timeout_ns : 0;

	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (a->head[m].state == SL_HEAD_WAITING && (!silent(a, m) || !looked(a, m, lately)))
			return false;
	return true;
}

static bool timed_out(struct sl_assembler *a, uint64_t now_ns)
{
	if (!a->waiting_ns && !due(a))
		return false;
	if (!a->waiting_ns || a->patient)
		a->waiting_ns = now_ns;
	if (a->patient)
		return false;
	if (all_silent(a, now_ns))
		return true;
	if (now_ns - a->waiting_ns <= a->options.late_timeout_ns)
		return false;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (a->head[m].state == SL_HEAD_WAITING &&
		    !looked(a, m, a->waiting_ns + a->options.late_timeout_ns))
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

/* Whether the event of a head has come while timed_out() asked how far the link has looked: then
 * the heads are looked at anew, with the next call. */
static bool news(struct sl_assembler *a)
{
	bool any = false;

	for (uint32_t m = 0; m < a->ring->modules; m++)
		any |= a->head[m].state == SL_HEAD_WAITING && look(a, m) != SL_HEAD_WAITING;
	return any;
}

/* By key: heads that are hopeless are given up one by one (*waiting). True when there is a group
 * and nothing is waited for that could belong to it. */
static bool ready_by_key(struct sl_assembler *a, uint64_t now_ns, struct sl_group *group,
			 uint64_t *waiting)
{
	bool blocked = false, shut = false;

	*waiting = 0;
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (look(a, m) == SL_HEAD_WAITING && is_open(a, m) && hopeless(a, m))
			*waiting |= UINT64_C(1) << m;
	if (*waiting)
		return true;
	if (!sl_group_find(a, group))
		return false;
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (a->head[m].state != SL_HEAD_WAITING || !sl_group_may_have(a, m, group))
			continue;
		blocked = true;
		shut |= !is_open(a, m);
	}
	if (!blocked || group->late)
		return true;
	return !shut && timed_out(a, now_ns) && !news(a);
}

/* ---- giving out ---- */

static void advance(struct sl_assembler *a, const struct sl_group *group)
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

int sl_assembler_find(struct sl_assembler *assembler, uint64_t now_ns, struct sl_group *group)
{
	struct sl_assembler *a = assembler;
	bool by_sequence = a->options.align.by == SL_ALIGN_SEQUENCE;
	uint64_t waiting;

	*group = (struct sl_group){0};
	if (all_done(a))
		return -ENODATA;
	do {
		if (a->closing && !closed(a))
			return 0;
		if (by_sequence ? !ready_by_sequence(a, now_ns, &waiting)
				: !ready_by_key(a, now_ns, group, &waiting))
			return 0;
		if (waiting)
			close_heads(a, waiting);
	} while (a->closing);
	if (by_sequence)
		group->members = all_of(a);
	return 1;
}

void sl_assembler_take(struct sl_assembler *assembler, const struct sl_group *group,
		       uint64_t now_ns, struct sl_frame *frame)
{
	sl_assembler_describe(assembler, group->members, group->key, group->late, now_ns, frame);
	advance(assembler, group);
}

int sl_assembler_next(struct sl_assembler *assembler, uint64_t now_ns, struct sl_frame *frame)
{
	struct sl_group group;
	int got = sl_assembler_find(assembler, now_ns, &group);

	if (got > 0)
		sl_assembler_take(assembler, &group, now_ns, frame);
	return got;
}

/* ---- for events of several detectors ---- */

bool sl_assembler_due(const struct sl_assembler *assembler)
{
	return due(assembler);
}

bool sl_assembler_looked(const struct sl_assembler *assembler, uint64_t by_ns)
{
	for (uint32_t m = 0; m < assembler->ring->modules; m++)
		if (assembler->head[m].state == SL_HEAD_WAITING && !looked(assembler, m, by_ns))
			return false;
	return true;
}

bool sl_assembler_shut(const struct sl_assembler *assembler)
{
	for (uint32_t m = 0; m < assembler->ring->modules; m++)
		if (assembler->head[m].state == SL_HEAD_WAITING && !is_open(assembler, m))
			return true;
	return false;
}

uint64_t sl_assembler_reached(const struct sl_assembler *assembler)
{
	uint64_t reached = 0;

	for (uint32_t m = 0; m < assembler->ring->modules; m++)
		reached += sl_ring_reached(assembler->ring, m);
	return reached;
}
