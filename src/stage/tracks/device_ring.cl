/* device_ring.cl - sectors of the tracker, one at a time, out of a ring of tagged buffers (docs/reference/device-rings.md): 160 stubs in, a
 * chunk for each candidate out.
 *
 * A chunk has two stubs; thread t waits for chunk t + 1, and the first one for the word of the event, too. The map is cleared
 * before anything is there. A candidate's chunk: column, row, layers and stubs, a byte each; q/pT; phi. The score of the
 * completion is candidates | cells << 16. */
#if defined(POCL_DEVICE_ADDRESS_BITS)
#pragma clang optimize off /* PoCL 3.1 takes loops around barriers apart in a way that changes results */
#endif
#include "gpu/ring/ring.clh"
#include "stage/tracks/cells.clh"
#include "stage/tracks/sector.clh"

struct event {
	sl_u32 stub[SL_KERNEL_STUBS * SL_KERNEL_STUB_BYTES / 4];
	sl_u32 lapped, late;
	sl_u32 judged; /* what its first chunk says of it, by one thread for all */
};

#define RING SL_DEVICE_RING_PARAMETERS, struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan, \
	     SL_GLOBAL struct sl_kernel_track *track
#define PASS SL_DEVICE_RING_PASS, rules, plan, track

/* A chunk, when it is there; of the first one, when the buffer was enabled, too. */
SL_DEVICE sl_u32x4 await(SL_LOCAL struct event *event, SL_GLOBAL const sl_u32x4 *at, SL_GLOBAL const sl_u32 *enable,
			 SL_GLOBAL const sl_u32 *stop, sl_u32 backoff_ns, sl_u32 now)
{
	sl_u32x4 v;

	if (!sl_device_ring_wait(at, enable, now, stop, backoff_ns, &v))
		event->late = 1;
	else if (v.w != now)
		event->lapped = 1;
	return v;
}

/* Into the memory of the group; 0: nothing comes any more. Otherwise what is to be said of it. */
SL_DEVICE sl_u32 take_event(SL_LOCAL struct event *event, SL_DEVICE_RING_PARAMETERS, sl_u32 b, sl_u32 now)
{
	sl_u32 t = sl_thread();

	(void)meta;
	(void)result;
	(void)completion;
	(void)buffers;
	(void)slot_bytes;
	data += (sl_u64)b * (buffer_bytes / 16);
	if (t < STUB_CHUNKS) {
		sl_u32x4 v = await(event, data + 1 + t, 0, stop, backoff_ns, now);

		event->stub[3 * t] = v.x;
		event->stub[3 * t + 1] = v.y;
		event->stub[3 * t + 2] = v.z;
	} else if (t == STUB_CHUNKS)
		event->judged = sl_device_ring_judge(await(event, data, enable + b, stop, backoff_ns, now),
					      STUB_CHUNKS * SL_DEVICE_RING_CHUNK, now, stop);
	sl_barrier();
	if (event->late)
		return 0;
	return event->lapped ? (sl_u32)SL_DEVICE_RING_LAPPED : event->judged;
}

/* The i-th of its stubs. */
SL_DEVICE struct stub stub_of(SL_LOCAL const struct event *event, sl_u32 i)
{
	sl_u32 k = 3 * (i / 2);

	return i & 1 ? unpack_stub(event->stub[k + 1] >> 16 | event->stub[k + 2] << 16, event->stub[k + 2] >> 16)
		     : unpack_stub(event->stub[k], event->stub[k + 1] & 0xffff);
}

SL_DEVICE int work(SL_LOCAL struct group *g, SL_LOCAL struct event *event, RING, sl_u32 b, sl_u32 now)
{
	struct sl_kernel_sector found = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	sl_u32 t = sl_thread(), most = slot_bytes / 16, outcome, k;

	clear_group(g);
	if (t == 0)
		event->lapped = event->late = 0;
	sl_barrier();
	outcome = take_event(event, SL_DEVICE_RING_PASS, b, now);
	if (!outcome)
		return 0;
	track += (sl_u64)sl_group(0) * rules.limit;
	find_candidates(g, 0, stub_of(event, t), outcome == SL_DEVICE_RING_GOOD, 0, rules, plan, track, &found);
	if (found.candidates && outcome == SL_DEVICE_RING_GOOD)
		outcome |= SL_DEVICE_RING_KEEP;
	for (k = t; k < found.candidates && k < most; k += SL_KERNEL_STUBS) {
		sl_u32 cell = track[k].column | track[k].row << 8 | track[k].layers << 16 | track[k].stubs << 24;

		sl_chunk_store(result + (sl_u64)b * most + k, sl_u32x4_make(cell, (sl_u32)sl_float_bits(track[k].x),
									    (sl_u32)sl_float_bits(track[k].phi), now));
	}
	if (t == 0)
		sl_chunk_store(completion + b,
			       sl_u32x4_make(outcome, SL_DEVICE_RING_CHUNK * (found.candidates < most ? found.candidates : most),
					     found.candidates | found.cells << 16, now));
	sl_barrier();
	return 1;
}

SL_KERNEL SL_GROUP(160, 1) void tracks_ring_forever(RING)
{
	SL_SHARED struct group g;
	SL_SHARED struct event event;
	sl_u32 n;

	for (n = sl_group(0); work(&g, &event, PASS, n & (buffers - 1), n + 1); n += sl_groups(0))
		;
	sl_end();
}

/* ---- cells alone ---- */

/* Cells with enough layers are all that is wanted. A chunk of the result is four cells in the order in which the CPU looks at
 * them, three bytes each: column, row, layers. The score is how many cells. */
SL_DEVICE int work_cells(SL_LOCAL struct cells *s, RING, const struct column *mine, const struct level *level, sl_u32 b, sl_u32 now,
			 sl_u32 odd, const sl_u32 form)
{
	sl_u32 t = sl_thread(), most = slot_bytes / 16 < STUB_CHUNKS ? slot_bytes / 16 : STUB_CHUNKS, outcome, cells;
	struct part part[PARTS];
	sl_u32x4 arrival;

	(void)meta;
	(void)buffers;
	(void)plan;
	(void)track;
	take_lines(s, odd, data + (sl_u64)b * (buffer_bytes / 16), enable + b, stop, backoff_ns, rules, now, form);
	sl_barrier();
	fill(s, odd, rules, mine, form);
	look_over(s, odd, stop, now);
	sl_barrier();
	sl_teams_if (level->is_one)
		take_parts(s, odd, part, form);
	arrival = s->arrival[odd];
	outcome = outcome_of(arrival);
	if (arrival.x) { /* for all threads */
		fill_again(s, odd, rules, mine, form);
		take_parts(s, odd, part, form);
	}
	sl_teams_if (level->is_one)
	{
		cells = count_parts(s, *level, part, form);
		cells = outcome == SL_DEVICE_RING_GOOD ? cells : 0;
		if (t == 0) {
			sl_u32 listed = cells < 4 * most ? cells : 4 * most;

			s->found = listed;
			if (outcome) /* the host hears of the result while that is made */
				sl_chunk_store(completion + b, sl_u32x4_make(outcome | (cells ? SL_DEVICE_RING_KEEP : 0), CELL_BYTES * listed,
									 cells, now));
		}
		if (level->is_one)
			list_parts(s, part, 4 * most, form);
	}
	if (t >= CLEANERS)
		clear_arrival(s, odd ^ 1, CLEANERS);
	sl_barrier();
	cells = s->found;
	sl_teams_if (t / SL_TEAM * SL_TEAM < 4 * most)
	{
		sl_u32 cell = cell_at(s, odd, t, form); /* sooner done than asked whether there is one */
		sl_u32x4 four = sl_team_four(s->cell, t < cells ? cell : 0);

		if (t % 4 == 0 && t < cells)
			sl_chunk_store(result + (sl_u64)b * (slot_bytes / 16) + t / 4, chunk_of_cells(four, now));
	}
	if (t >= CLEANERS) /* until the barrier of the next event */
		clear_map(s, odd ^ 1, CLEANERS, form);
	return outcome != 0;
}

#define DO_CELLS(FORM)                                                                                                        \
	do {                                                                                                                  \
		take_columns(plan, mine, FORM);                                                                               \
		level = level_of(rules, FORM);                                                                                \
		for (; work_cells(&s, PASS, mine, &level, n & (buffers - 1), n + 1, odd, FORM); n += sl_groups(0))                   \
			odd ^= 1;                                                                                             \
	} while (0)

SL_KERNEL SL_GROUP(672, 1) void tracks_cells_forever(RING)
{
	SL_SHARED struct cells s;
	struct column mine[COLUMNS_MOST];
	sl_u32 n = sl_group(0), odd = 0;
	struct level level;

	open_cells(&s, rules, plan);
	if (form_of(&s, rules) == NARROW)
		DO_CELLS(NARROW);
	else if (form_of(&s, rules) == BENT)
		DO_CELLS(BENT);
	else
		DO_CELLS(WIDE);
	sl_end();
}
