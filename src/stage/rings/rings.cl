/* rings.cl - rings of light in events of a RICH; the GPU side of the stage.
 *
 * Model: 32 threads have an event (team.clh). What was found is left beside the event; rings_list counts it, and puts it
 * into the table in the order of events.
 *
 * Cost: of memory 48 bytes are read for an event, and 4 written and 24 for each ring. */
#include "stage/rings/team.clh"

/* ---- which frames are looked at ---- */

/* A group has a frame. Before any event of it is judged. */
SL_KERNEL SL_GROUP(256, 4) void rings_look(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_verdict *verdict,
			  sl_u32 items, sl_u32 looks_at_all, SL_GLOBAL sl_u32 *look)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	sl_u32 f = sl_group(0), kept = looks_at_all, i;

	for (i = sl_thread(); i < frame[f].items; i += sl_threads())
		kept |= verdict[f * items + i].keep;
	kept = sl_group_sum(shared, kept != 0);
	if (sl_thread() == 0)
		look[f] = kept && !(frame[f].flags & SL_KERNEL_DARK);
}

SL_DEVICE SL_GLOBAL const sl_u8 *event_of(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_view *view,
					  struct sl_kernel_rings rules, sl_u32 f, sl_u32 item)
{
	sl_u32 m = f * rules.modules + item / rules.events;
	sl_u64 at = rules.is_raw ? view[m].at : (sl_u64)m * rules.events * EVENT_BYTES;

	return raw + at + (sl_u64)(item % rules.events) * EVENT_BYTES;
}

/* 32 threads have an event. Group 0: of events of a frame, 1: of frames. */
SL_KERNEL SL_GROUP(32, 32) void rings_find(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_view *view,
			  SL_GLOBAL struct sl_kernel_verdict *verdict, SL_GLOBAL const sl_u32 *look,
			  SL_GLOBAL const float *x, SL_GLOBAL const float *y, SL_GLOBAL const sl_u8 *triplet,
			  struct sl_kernel_rings rules, SL_GLOBAL sl_u32 *word, SL_GLOBAL float *ring)
{
	SL_SHARED struct team s;
	sl_u32 item = sl_group(0), f = sl_group(1), hits, all, rings, matched;
	sl_u32 e = f * rules.modules * rules.events + item;
	int alone = 0;
	int is_there = look[f] && !view[f * rules.modules + item / rules.events].missing;

	hits = load_hits(&s, event_of(raw, view, rules, f, item), x, y, &all);
	rings = find(&s, rules, is_there ? hits : 0, triplet, &alone);
	if (sl_thread() == 0) {
		matched = store(&s, rules, rings,
				ring + (sl_u64)e * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		word[e] = is_there ? rings | (alone ? ALONE : 0) | LOOKED_AT | (all - hits) << ODD : 0;
		/* Events that did not arrive are rejected, too. */
		if (look[f])
			sl_kernel_decide(&verdict[e],
					 is_there && rings >= rules.min_rings && rings <= rules.max_rings &&
						 matched >= rules.min_matches,
					 (float)rings, SL_KERNEL_RINGS);
	}
}

/* A thread has some events in a row. Group 0: of events of a frame, 1: of frames. Each group adds up what
 * the events before its own have, the last one all counts. */
SL_KERNEL SL_GROUP(256, 4) void rings_list(struct sl_kernel_rings rules, SL_GLOBAL const sl_u32 *word, SL_GLOBAL const float *ring,
			  SL_GLOBAL float *table, SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows, sl_u64 rows_at)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	SL_SHARED sl_u32 base;
	sl_u32 t = sl_thread(), f = sl_group(1), items = rules.modules * rules.events, n = 0, total, i;
	sl_u32 first = sl_group(0) * sl_threads() * SL_KERNEL_RINGS_RUN, at;
	int is_last = sl_group(0) + 1 == sl_groups(0);

	word += (sl_u64)f * items;
	ring += (sl_u64)f * items * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED;
	for (i = t; i < first; i += sl_threads())
		n += rows_of(word[i]);
	n = sl_group_sum(shared, n);
	if (t == 0)
		base = n;
	first += t * SL_KERNEL_RINGS_RUN;
	n = 0;
	for (i = first; i < first + SL_KERNEL_RINGS_RUN && i < items; i++)
		n += rows_of(word[i]);
	at = sl_group_before(shared, n, &total) + base;
	for (i = first; i < first + SL_KERNEL_RINGS_RUN && i < items; i++) {
		n = rows_of(word[i]);
		write_rows(table + (sl_u64)f * rules.rows * SL_KERNEL_RINGS_COLUMNS, rules.rows, at, n, i,
			   ring + (sl_u64)i * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		at += n;
	}
	if (!is_last)
		return;
	count_events(shared, word, items, found + f * SL_KERNEL_RINGS_COUNTS);
	total += base;
	if (t == 0)
		rows[rows_at + f] = total < rules.rows ? total : rules.rows;
}
