/* group.c - heads that belong together, by number or time; those that have none are put where they
 * hurt nobody. */
#include <string.h>

#include <sluice/record.h>

#include "receiver/assemble/group.h"

bool sl_group_key(struct sl_assembler *a, uint32_t module, uint64_t sequence, uint64_t *key)
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

/* The lowest key that a head without one can have: of a frame that was given out, perhaps, where
 * its module was not waited for. False: it may be any. */
static bool earliest(const struct sl_assembler *a, uint32_t module, uint64_t *key)
{
	const struct sl_align *align = &a->options.align;
	const struct sl_head *head = &a->head[module];

	if (!head->follows)
		return false;
	*key = head->key_before +
	       (align->by == SL_ALIGN_FRAME
			? (head->sequence - head->sequence_before) * a->options.frame_step
			: align->window + 1);
	return true;
}

/* The highest one: less than that of the next cell of its stream. One further on would not do: what
 * lies between may still come. */
static bool latest(struct sl_assembler *a, uint32_t module, uint64_t *key)
{
	uint64_t after = a->head[module].sequence + 1, ns;

	if (!sl_ring_event(a->ring, after, module, &ns) || !sl_group_key(a, module, after, key))
		return false;
	/* Triggers of one module are further apart than the window. */
	*key -= a->options.align.by == SL_ALIGN_FRAME ? a->options.frame_step
						      : a->options.align.window + 1;
	return true;
}

/* A head without a key goes to the frame with this one if it can, else to the nearest it can. While
 * nothing is known of what follows it, only the lowest is safe: with any other, what follows might
 * find its own frame given out. But what may be as near as the window is of one frame. */
static uint64_t guess(struct sl_assembler *a, uint32_t module, uint64_t key)
{
	uint64_t low, high;
	bool from = earliest(a, module, &low), to = latest(a, module, &high);

	if (!from && !to) /* it may be of any frame: this one is left to what follows it */
		return key - a->options.align.window - 1;
	if (to && sl_align_after(key, high) > 0)
		key = high;
	else if (!to && from && sl_align_after(key, low) > (int64_t)a->options.align.window)
		key = low;
	return from && sl_align_after(low, key) > 0 ? low : key;
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

static uint64_t guess_blind(struct sl_assembler *a, uint64_t key, uint64_t *lowest)
{
	uint64_t blind = 0;

	for (uint32_t m = 0; m < a->ring->modules; m++) {
		if (a->head[m].state != SL_HEAD_BLIND)
			continue;
		a->head[m].key = guess(a, m, key);
		if (!blind || sl_align_after(*lowest, a->head[m].key) > 0)
			*lowest = a->head[m].key;
		blind |= UINT64_C(1) << m;
	}
	return blind;
}

/* Those without a key that can only be of an earlier frame than all that have one are a frame of
 * their own: what was guessed is no reason to set the time of others, or to cut their window. */
bool sl_group_find(struct sl_assembler *a, struct sl_group *group)
{
	const int64_t window = (int64_t)a->options.align.window;
	uint64_t key = a->key_last + 1, guessed = 0, blind;
	bool alone;

	*group = (struct sl_group){.known = lowest(a, &key)};
	blind = guess_blind(a, key, &guessed);
	if (!group->known && !blind)
		return false;
	alone = blind && (!group->known || sl_align_after(key, guessed) > 0);
	group->key = alone ? guessed : key;
	group->late = !alone && a->passed && sl_align_after(key, a->key_last) <= window;
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		const struct sl_head *head = &a->head[m];
		bool in = blind >> m & 1
				  ? !alone || !group->known || sl_align_after(key, head->key) > 0
				  : !alone && head->state == SL_HEAD_KNOWN;

		/* Who is late takes nobody along that is not. */
		in = in && sl_align_after(head->key, group->key) <= window &&
		     (!group->late || sl_align_after(head->key, a->key_last) <= window);
		group->members |= in ? UINT64_C(1) << m : 0;
	}
	group->known = group->members & ~blind;
	return true;
}

bool sl_group_may_have(const struct sl_assembler *a, uint32_t module, const struct sl_group *group)
{
	uint64_t key;

	return !earliest(a, module, &key) ||
	       sl_align_after(key, group->key) <= (int64_t)a->options.align.window;
}
