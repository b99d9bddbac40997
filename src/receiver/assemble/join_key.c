/* join_key.c - what a part is known by, and on the scale of events. */
#include <string.h>

#include <sluice/record.h>

#include "receiver/assemble/join_key.h"

/* The record of a module that has one: the assembler believes no other. */
static bool record_of(const struct sl_assembler *a, const struct sl_group *group,
		      struct sl_record *record)
{
	for (uint32_t m = 0; m < a->ring->modules; m++) {
		const struct sl_head *head = &a->head[m];

		if (!(group->members >> m & 1) || head->state != SL_HEAD_KNOWN)
			continue;
		memcpy(record, sl_ring_record(a->ring, head->sequence, m), sizeof(*record));
		if (sl_record_valid(record) && record->sequence == head->sequence &&
		    record->module == m)
			return true;
	}
	return false;
}

/* Sequences of modules that are aligned by them are equal. */
static uint64_t sequence_of(const struct sl_assembler *a, const struct sl_group *group)
{
	return group->members ? a->head[__builtin_ctzll(group->members)].sequence : 0;
}

/* A part of which nothing arrived has the number that follows from its place in the stream. */
static uint64_t number_by_place(const struct sl_join_detector *d, uint64_t sequence)
{
	const struct sl_assembler_options *o = &d->assembler->options;

	return d->numbered ? d->number_known + (sequence - d->sequence_known) * o->frame_step
			   : o->first_frame + sequence * o->frame_step;
}

/* The number with these low bits that is nearest to another one. */
static uint64_t near(uint64_t raw, uint64_t reference, uint32_t bits)
{
	unsigned unused = 64 - bits;

	if (!unused)
		return raw;
	return reference + (uint64_t)((int64_t)((raw - reference) << unused) >> unused);
}

/* The counter by which the detector that defines events is known goes on where it wraps. */
static void unwrap(const struct sl_join *join, struct sl_join_moment *at)
{
	const struct sl_join_options *o = &join->detector[join->definer].options;

	if (!join->any || o->wrap_bits == 64)
		return;
	if (o->by == SL_ALIGN_FRAME)
		at->number = near(at->number, join->last.number, o->wrap_bits);
	if (o->by == SL_ALIGN_TIMESTAMP && at->timed)
		at->time = near(at->time, join->last.time, o->wrap_bits);
}

struct sl_join_moment sl_join_moment_of(struct sl_join *join, uint32_t index,
					const struct sl_group *group)
{
	struct sl_join_detector *d = &join->detector[index];
	const struct sl_assembler *a = d->assembler;
	enum sl_align_by by = a->options.align.by;
	struct sl_record record;
	bool any = record_of(a, group, &record);
	bool number_key = by == SL_ALIGN_FRAME && group->known;
	bool time_key = by == SL_ALIGN_TIMESTAMP && group->known;
	struct sl_join_moment at = {
		.numbered = any || number_key || by == SL_ALIGN_SEQUENCE,
		.timed = any || time_key,
		.sequence = sequence_of(a, group),
	};

	at.number = number_key ? group->key : any ? record.frame : number_by_place(d, at.sequence);
	at.time = time_key ? group->key : any ? record.timestamp : 0;
	if (any && by == SL_ALIGN_SEQUENCE) {
		d->numbered = true;
		d->sequence_known = at.sequence;
		d->number_known = record.frame;
	}
	if (index == join->definer)
		unwrap(join, &at);
	return at;
}

bool sl_join_has(const struct sl_join_moment *at, enum sl_align_by by)
{
	return by == SL_ALIGN_SEQUENCE || (by == SL_ALIGN_FRAME ? at->numbered : at->timed);
}

static uint64_t raw_of(const struct sl_join_moment *at, enum sl_align_by by)
{
	return by == SL_ALIGN_SEQUENCE ? at->sequence
	       : by == SL_ALIGN_FRAME  ? at->number
				       : at->time;
}

/* On the scale of the detector that defines events, whose divider is in its triggers. */
uint64_t sl_join_event_key(const struct sl_join *join, const struct sl_join_moment *event,
			   enum sl_align_by by)
{
	uint64_t raw = raw_of(event, by);

	return by == SL_ALIGN_TIMESTAMP ? raw : raw * join->detector[join->definer].options.divider;
}

/* key: of the event that is next, to which the first counter is near. */
uint64_t sl_join_part_key(struct sl_join_detector *d, const struct sl_join_moment *at, uint64_t key)
{
	const struct sl_join_options *o = &d->options;
	bool time = o->by == SL_ALIGN_TIMESTAMP;
	uint64_t reference = d->counted ? d->raw_last
					: (time ? key : key / o->divider) + (uint64_t)o->offset;
	uint64_t raw = near(raw_of(at, o->by), reference, o->wrap_bits);

	if (!d->counted)
		d->raw_first = raw;
	d->counted = true;
	d->raw_last = raw;
	if (!time)
		return (raw - (uint64_t)o->offset) * o->divider;
	return raw - (uint64_t)o->offset -
	       (uint64_t)(int64_t)((double)(int64_t)(raw - d->raw_first) * o->drift);
}

int64_t sl_join_window(const struct sl_join_detector *d)
{
	return d->options.by == SL_ALIGN_TIMESTAMP ? (int64_t)d->options.window : 0;
}

/* Events count triggers by their number, or their sequence where that is the key. */
uint64_t sl_join_trigger(const struct sl_join *join, const struct sl_join_detector *d,
			 const struct sl_join_moment *event)
{
	return sl_join_event_key(join, event,
				 d->options.by == SL_ALIGN_SEQUENCE ? SL_ALIGN_SEQUENCE
								    : SL_ALIGN_FRAME);
}

/* False: by its divider the detector has no part in this event. By times the first event with a
 * part says from which one on to count; until then it is trigger 0. */
bool sl_join_expects(const struct sl_join *join, const struct sl_join_detector *d,
		     const struct sl_join_moment *event)
{
	uint64_t divider = d->options.divider, trigger;

	if (divider == 1)
		return true;
	trigger = sl_join_trigger(join, d, event);
	if (d->options.by != SL_ALIGN_TIMESTAMP || !d->matched)
		return trigger % divider == 0;
	return (int64_t)(trigger - d->matched_trigger) % (int64_t)divider == 0;
}
