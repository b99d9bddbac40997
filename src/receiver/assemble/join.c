/* join.c - takes the parts that are of one event; those that are of none go by themselves. */
#include <errno.h>
#include <string.h>

#include "receiver/assemble/group.h"
#include "receiver/assemble/join.h"
#include "receiver/assemble/join_key.h"

/* The next part of a detector, before it is taken. */
struct head {
	int found; /* as sl_assembler_find() says */
	struct sl_join_moment at;
	bool keyed; /* it can be compared with events: */
	uint64_t key;
	struct sl_group group;
};

struct look {
	struct head head[SL_JOIN_DETECTORS];
};

void sl_join_init(struct sl_join *join, uint32_t definer, bool keep)
{
	*join = (struct sl_join){.definer = definer, .keep = keep};
}

int sl_join_add(struct sl_join *join, struct sl_assembler *assembler,
		const struct sl_join_options *options)
{
	struct sl_join_detector *d = &join->detector[join->detectors];

	if (join->detectors == SL_JOIN_DETECTORS)
		return -ENOSPC;
	*d = (struct sl_join_detector){.assembler = assembler, .options = *options};
	if (!d->options.divider)
		d->options.divider = 1;
	if (!d->options.wrap_bits)
		d->options.wrap_bits = 64;
	join->detectors++;
	return 0;
}

static void look(struct sl_join *join, uint32_t index, uint64_t now_ns, struct head *head)
{
	struct sl_join_detector *d = &join->detector[index];

	d->assembler->patient = join->patient;
	head->keyed = false;
	head->found = sl_assembler_find(d->assembler, now_ns, &head->group);
	if (head->found <= 0)
		return;
	head->at = sl_join_moment_of(join, index, &head->group);
}

/* ---- which detectors are waited for ---- */

/* Nothing has come of it since it was waited for in vain. */
static bool silent(const struct sl_join_detector *d)
{
	return d->silent_at == 1 + sl_assembler_reached(d->assembler);
}

/* This detector has been waited for long enough. */
static bool waited(struct sl_join *join, struct sl_join_detector *d, uint64_t now_ns)
{
	const struct sl_assembler *a = d->assembler;
	uint64_t wait_ns = d->options.missing == SL_JOIN_REQUIRE ? a->options.late_timeout_ns
			   : d->options.missing == SL_JOIN_WAIT	 ? d->options.wait_ns
								 : 0;

	if (!join->since_ns || join->patient)
		join->since_ns = now_ns;
	if (join->patient || sl_assembler_shut(a))
		return false;
	/* A part of it has come: its assembler has a clock of its own. */
	if (d->options.missing == SL_JOIN_REQUIRE && sl_assembler_due(a))
		return false;
	if (silent(d))
		return sl_assembler_looked(a, now_ns > wait_ns ? now_ns - wait_ns : 0);
	if (wait_ns && now_ns - join->since_ns <= wait_ns)
		return false;
	if (!sl_assembler_looked(a, join->since_ns + wait_ns))
		return false;
	if (!sl_assembler_due(a))
		d->silent_at = 1 + sl_assembler_reached(a);
	return true;
}

static void note_gone(struct sl_join_detector *d, uint64_t key)
{
	d->gone[d->gones++ % SL_JOIN_GONE] = key;
}

/* An event with this key went on without waiting for it. */
static bool was_gone(const struct sl_join_detector *d, uint64_t key)
{
	uint64_t n = d->gones < SL_JOIN_GONE ? d->gones : SL_JOIN_GONE;
	int64_t window = sl_join_window(d);

	for (uint64_t i = 0; i < n; i++) {
		int64_t apart = (int64_t)(key - d->gone[i]);

		if (apart <= window && -apart <= window)
			return true;
	}
	return false;
}

/* ---- giving out ---- */

static void add_times(struct sl_frame *frame, const struct sl_frame *part)
{
	uint64_t emit = part->hop_ns[SL_HOP_EMIT], event = part->hop_ns[SL_HOP_EVENT];

	if (emit && (!frame->hop_ns[SL_HOP_EMIT] || emit < frame->hop_ns[SL_HOP_EMIT]))
		frame->hop_ns[SL_HOP_EMIT] = emit;
	if (event > frame->hop_ns[SL_HOP_EVENT])
		frame->hop_ns[SL_HOP_EVENT] = event;
}

/* Take the parts of these detectors, a bit each; the others have nothing in this frame. */
static void take(struct sl_join *join, struct look *l, uint32_t with, uint64_t now_ns,
		 struct sl_frame *frame, struct sl_frame *part)
{
	memset(frame->hop_ns, 0, sizeof(frame->hop_ns));
	frame->hop_ns[SL_HOP_ASSEMBLED] = now_ns;
	frame->sequence = join->next++;
	frame->flags = 0;
	frame->missing = 0;
	frame->others = 0;
	for (uint32_t i = 0; i < join->detectors; i++) {
		struct sl_assembler *a = join->detector[i].assembler;
		uint32_t first = a->options.first_module;

		part[i].view = frame->view + first;
		if (with >> i & 1)
			sl_assembler_take(a, &l->head[i].group, now_ns, &part[i]);
		else
			sl_assembler_describe(a, 0, 0, false, now_ns, &part[i]);
		frame->missing |= part[i].missing << first;
		if (i == join->definer)
			frame->views = a->ring->modules;
		else
			frame->others += a->ring->modules;
		if (with >> i & 1)
			add_times(frame, &part[i]);
	}
	join->since_ns = 0;
}

/* While the next event is not known: a part that is not behind the last one may be of it. */
static bool is_behind(const struct sl_join *join, struct sl_join_detector *d, struct head *head)
{
	enum sl_align_by by = d->options.by;
	uint64_t key;

	if (!join->any || !sl_join_has(&join->last, by) || !sl_join_has(&head->at, by))
		return false;
	key = sl_join_event_key(join, &join->last, by);
	head->key = sl_join_part_key(d, &head->at, key);
	head->keyed = true;
	return (int64_t)(head->key - key) < -sl_join_window(d) || was_gone(d, head->key);
}

/* It is of no event: what of it is whole is late, or unmatched. */
static void give_alone(struct sl_join *join, struct look *l, uint32_t index, uint64_t now_ns,
		       struct sl_frame *frame, struct sl_frame *part)
{
	struct sl_join_detector *d = &join->detector[index];
	bool late = l->head[index].keyed && was_gone(d, l->head[index].key);
	uint64_t since_ns = join->since_ns;

	take(join, l, UINT32_C(1) << index, now_ns, frame, part);
	join->since_ns = since_ns; /* the event that waits goes on waiting */
	frame->number = part[index].number;
	frame->timestamp = part[index].timestamp;
	if (sl_frame_goes_on(&part[index]))
		sl_assembler_discard(d->assembler, &part[index],
				     late ? SL_INCOMPLETE : SL_UNMATCHED,
				     late ? SL_CAUSE_LATE : SL_CAUSE_NO_EVENT);
}

/* Whether the event is whole: what it needs of each detector is there. */
static bool whole(const struct sl_join *join, const struct sl_join_moment *event, uint32_t with,
		  const struct sl_frame *part)
{
	for (uint32_t i = 0; i < join->detectors; i++) {
		const struct sl_join_detector *d = &join->detector[i];
		bool needed = i == join->definer ||
			      (d->options.missing == SL_JOIN_REQUIRE &&
			       (with >> i & 1 || sl_join_expects(join, d, event)));

		if (needed ? !(part[i].flags & SL_FRAME_COMPLETE)
			   : part[i].flags & SL_FRAME_PARTIAL)
			return false;
	}
	return true;
}

static void give_event(struct sl_join *join, struct look *l, uint32_t with, uint64_t now_ns,
		       struct sl_frame *frame, struct sl_frame *part)
{
	struct sl_join_moment event = l->head[join->definer].at;
	struct sl_frame *own = &part[join->definer];

	take(join, l, with, now_ns, frame, part);
	join->last = event;
	join->any = true;
	frame->number = own->number;
	frame->timestamp = own->timestamp;
	frame->flags = own->flags & SL_FRAME_DARK;
	if (whole(join, &event, with, part)) {
		frame->flags |= SL_FRAME_COMPLETE;
		return;
	}
	if (join->keep && sl_frame_goes_on(own)) {
		frame->flags |= SL_FRAME_PARTIAL;
		return;
	}
	for (uint32_t i = 0; i < join->detectors; i++)
		if (sl_frame_goes_on(&part[i]))
			sl_assembler_discard(join->detector[i].assembler, &part[i], SL_INCOMPLETE,
					     SL_CAUSE_PARTNER);
}

/* ---- the next one ---- */

/* The part of a detector that belongs to no event that is still to come; -1: there is none. */
static int find_alone(struct sl_join *join, struct look *l)
{
	const struct head *event = &l->head[join->definer];
	uint64_t key;

	if (event->found > 0 && event->group.late)
		return (int)join->definer;
	for (uint32_t i = 0; i < join->detectors; i++) {
		struct sl_join_detector *d = &join->detector[i];
		struct head *head = &l->head[i];

		if (i == join->definer || head->found <= 0)
			continue;
		if (event->found <= 0 && is_behind(join, d, head))
			return (int)i;
		if (head->group.late || !sl_join_has(&head->at, d->options.by) || event->found < 0)
			return (int)i;
		if (!event->found || !sl_join_has(&event->at, d->options.by))
			continue;
		key = sl_join_event_key(join, &event->at, d->options.by);
		head->key = sl_join_part_key(d, &head->at, key);
		head->keyed = true;
		if ((int64_t)(head->key - key) < -sl_join_window(d))
			return (int)i;
	}
	return -1;
}

/* The definer has sent nothing for long while parts of another detector wait: they are given out
 * by themselves, before their ring is full. The index of one; -1: none. */
static int find_left(struct sl_join *join, struct look *l, uint64_t now_ns)
{
	const struct sl_assembler *a = join->detector[join->definer].assembler;
	int held = -1;

	for (uint32_t i = 0; i < join->detectors && held < 0; i++)
		if (i != join->definer && l->head[i].found > 0)
			held = (int)i;
	if (held < 0) {
		join->left_ns = 0;
		return -1;
	}
	if (!join->left_ns || join->patient)
		join->left_ns = now_ns;
	if (join->patient || sl_assembler_due(a) || sl_assembler_shut(a) ||
	    now_ns - join->left_ns <= a->options.late_timeout_ns ||
	    !sl_assembler_looked(a, join->left_ns + a->options.late_timeout_ns))
		return -1;
	return held;
}

/* The parts that are of this event, a bit for each detector. False: one may still come. */
static bool members(struct sl_join *join, struct look *l, uint64_t now_ns, uint32_t *with)
{
	const struct sl_join_moment *event = &l->head[join->definer].at;
	uint32_t gone = 0;

	*with = UINT32_C(1) << join->definer;
	for (uint32_t i = 0; i < join->detectors; i++) {
		struct sl_join_detector *d = &join->detector[i];
		const struct head *head = &l->head[i];

		if (i == join->definer || head->found < 0 || !sl_join_has(event, d->options.by))
			continue;
		if (head->found > 0) {
			uint64_t key = sl_join_event_key(join, event, d->options.by);

			if ((int64_t)(head->key - key) <= sl_join_window(d))
				*with |= UINT32_C(1) << i;
		} else if (sl_join_expects(join, d, event)) {
			if (!waited(join, d, now_ns))
				return false;
			gone |= UINT32_C(1) << i;
		}
	}
	for (uint32_t i = 0; i < join->detectors; i++) {
		struct sl_join_detector *d = &join->detector[i];

		if (gone >> i & 1)
			note_gone(d, sl_join_event_key(join, event, d->options.by));
		if (*with >> i & 1 && i != join->definer) {
			d->matched = true;
			d->matched_trigger = sl_join_trigger(join, d, event);
		}
	}
	return true;
}

int sl_join_next(struct sl_join *join, uint64_t now_ns, struct sl_frame *frame,
		 struct sl_frame *part)
{
	bool more = false;
	struct look l;
	uint32_t with;
	int alone;

	for (uint32_t i = 0; i < join->detectors; i++) {
		look(join, i, now_ns, &l.head[i]);
		more |= l.head[i].found >= 0;
	}
	if (!more)
		return -ENODATA;
	alone = find_alone(join, &l);
	if (alone < 0 && !l.head[join->definer].found)
		alone = find_left(join, &l, now_ns);
	if (alone >= 0) {
		give_alone(join, &l, (uint32_t)alone, now_ns, frame, part);
		return 1;
	}
	if (l.head[join->definer].found <= 0)
		return 0;
	join->left_ns = 0;
	if (!members(join, &l, now_ns, &with))
		return 0;
	give_event(join, &l, with, now_ns, frame, part);
	return 1;
}
