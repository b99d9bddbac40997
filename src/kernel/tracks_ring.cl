/* tracks_ring.cl - sectors of the tracker, one at a time, out of a ring of tagged buffers (docs/gpu-rings.md): 160 stubs in, a
 * chunk for each candidate out.
 *
 * A chunk has two stubs; thread t waits for chunk t + 1, and the first one for the word of the event, too. The map is cleared
 * before anything is there. A candidate's chunk: column, row, layers and stubs, a byte each; q/pT; phi. The score of the
 * record is candidates | cells << 16. */
#include "kernel/ring.clh"
#include "kernel/tracks_sector.clh"

enum { CHUNKS = SL_KERNEL_STUBS * SL_KERNEL_STUB_BYTES / SL_RING_CHUNK };

struct event {
	sl_u32 stub[SL_KERNEL_STUBS * SL_KERNEL_STUB_BYTES / 4];
	sl_u32 lapped, late;
	sl_u32x4 head;
};

#define RING SL_RING_PARAMETERS, struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan, \
	     SL_GLOBAL struct sl_kernel_track *track
#define PASS SL_RING_PASS, rules, plan, track

/* A chunk, when it is there; of the first one, when the buffer was enabled, too. */
SL_DEVICE sl_u32x4 await(SL_LOCAL struct event *event, SL_GLOBAL const sl_u32x4 *at, SL_GLOBAL const sl_u32 *enable,
			 SL_GLOBAL const sl_u32 *stop, sl_u32 backoff_ns, sl_u32 now)
{
	sl_u32x4 v;

	if (!sl_ring_wait(at, enable, now, stop, backoff_ns, &v))
		event->late = 1;
	else if (v.w != now)
		event->lapped = 1;
	return v;
}

/* Into the memory of the group; 0: nothing comes any more. Otherwise what is to be said of it. */
SL_DEVICE sl_u32 take_event(SL_LOCAL struct event *event, SL_RING_PARAMETERS, sl_u32 b, sl_u32 now)
{
	sl_u32 t = sl_thread();

	(void)meta;
	(void)result;
	(void)record;
	(void)turn;
	(void)buffers;
	(void)slot_bytes;
	data += (sl_u64)b * (buffer_bytes / 16);
	if (t < CHUNKS) {
		sl_u32x4 v = await(event, data + 1 + t, 0, stop, backoff_ns, now);

		event->stub[3 * t] = v.x;
		event->stub[3 * t + 1] = v.y;
		event->stub[3 * t + 2] = v.z;
	} else if (t == CHUNKS)
		event->head = await(event, data, enable + b, stop, backoff_ns, now);
	sl_barrier();
	if (event->late)
		return 0;
	return event->lapped ? (sl_u32)SL_RING_LAPPED : sl_ring_judge(event->head, CHUNKS * SL_RING_CHUNK, now, stop);
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
	outcome = take_event(event, SL_RING_PASS, b, now);
	if (!outcome)
		return 0;
	track += (sl_u64)sl_group(0) * rules.limit;
	find_candidates(g, 0, stub_of(event, t), outcome == SL_RING_GOOD, rules, plan, track, &found);
	if (found.candidates && outcome == SL_RING_GOOD)
		outcome |= SL_RING_KEEP;
	for (k = t; k < found.candidates && k < most; k += SL_KERNEL_STUBS) {
		sl_u32 cell = track[k].column | track[k].row << 8 | track[k].layers << 16 | track[k].stubs << 24;

		sl_chunk_store(result + (sl_u64)b * most + k, sl_u32x4_make(cell, (sl_u32)sl_float_bits(track[k].x),
									    (sl_u32)sl_float_bits(track[k].phi), now));
	}
	if (t == 0)
		sl_chunk_store(record + b,
			       sl_u32x4_make(outcome, SL_RING_CHUNK * (found.candidates < most ? found.candidates : most),
					     found.candidates | found.cells << 16, now));
	sl_barrier();
	return 1;
}

SL_KERNEL SL_GROUP(160, 1) void tracks_ring_once(RING, sl_u32 b)
{
	SL_SHARED struct group g;
	SL_SHARED struct event event;
	sl_u32 now = turn[b];

	sl_barrier();
	work(&g, &event, PASS, b, now);
	if (sl_thread() == 0)
		turn[b] = now + buffers;
}

#if !defined(__OPENCL_C_VERSION__) /* see weigh.cl */
SL_KERNEL SL_GROUP(160, 1) void tracks_ring_forever(RING)
{
	SL_SHARED struct group g;
	SL_SHARED struct event event;
	sl_u32 n;

	for (n = sl_group(0);; n += sl_groups(0))
		if (!work(&g, &event, PASS, n % buffers, n + 1))
			return;
}
#endif

/* ---- cells alone ---- */

/* Cells with enough layers are all that is wanted: six threads for each stub, who share its columns. A chunk of the result is
 * four cells in the order in which the CPU looks at them, three bytes each: column, row, layers. The score is how many cells. */
enum { SHARE = 6, CELL_THREADS = SHARE * SL_KERNEL_STUBS, CELL_BYTES = 3 };

struct cells {
	struct group g;
	struct event event;
	sl_u32 scan[CELL_THREADS];
};

/* As list_cells() of tracks_sector.clh, an entry for each thread. */
SL_DEVICE sl_u32 list_all(SL_LOCAL struct cells *s, struct sl_kernel_tracks rules)
{
	sl_u32 entries = (LAYERS - rules.min_layers) * SL_KERNEL_TRACK_CELLS, e = sl_thread(), total, n;
	sl_u32 c = e % SL_KERNEL_TRACK_CELLS, layers = LAYERS - 1 - e / SL_KERNEL_TRACK_CELLS;
	sl_u32 low = e < entries && c < rules.columns ? cells_with(&s->g, layers, c, 0) : 0;
	sl_u32 high = e < entries && c < rules.columns && rules.words > 1 ? cells_with(&s->g, layers, c, 1) : 0;

	n = sl_group_before(s->scan, (sl_u32)(sl_popcount(low) + sl_popcount(high)), &total);
	put_cells(&s->g, low, c, 0, n);
	put_cells(&s->g, high, c, 32, n + (sl_u32)sl_popcount(low));
	sl_barrier();
	return total;
}

SL_DEVICE sl_u32 layers_at(SL_LOCAL const struct group *g, sl_u32 cell)
{
	sl_u32 row = cell & 255, c = cell >> 8, layers = 0, k;

	for (k = 1; k < LAYERS; k++)
		layers |= (g->map[row / 32][k][c] >> row % 32 & 1) << k;
	return layers;
}

SL_DEVICE void put_out(SL_LOCAL const struct group *g, SL_GLOBAL sl_u32x4 *to, sl_u32 first, sl_u32 cells, sl_u32 now)
{
	sl_u32 word[3] = {0, 0, 0}, i;

	SL_UNROLL for (i = 0; i < 4; i++)
	{
		sl_u32 cell = first + i < cells ? g->list[first + i] : 0;
		sl_u32 bytes = cell >> 8 | (cell & 255) << 8 | (first + i < cells ? layers_at(g, cell) : 0) << 16;
		sl_u32 at = CELL_BYTES * i;

		word[at / 4] |= bytes << at % 4 * 8;
		if (at % 4 > 1)
			word[at / 4 + 1] |= bytes >> (4 - at % 4) * 8;
	}
	sl_chunk_store(to, sl_u32x4_make(word[0], word[1], word[2], now));
}

SL_DEVICE int work_cells(SL_LOCAL struct cells *s, RING, sl_u32 b, sl_u32 now)
{
	sl_u32 t = sl_thread(), i = t % SL_KERNEL_STUBS, most = slot_bytes / 16, outcome, cells, k, c;
	struct sl_kernel_tracks r = rules;
	struct stub stub;
	struct mine m;
	sl_i32 steep;

	(void)track;
	for (k = t; k < MAP_WORDS * LAYERS * SL_KERNEL_TRACK_CELLS; k += CELL_THREADS)
		(&s->g.map[0][0][0])[k] = 0;
	if (t == 0) {
		s->g.stubs = SL_KERNEL_STUBS;
		s->event.lapped = s->event.late = 0;
	}
	sl_barrier();
	outcome = take_event(&s->event, SL_RING_PASS, b, now);
	if (!outcome)
		return 0;
	stub = stub_of(&s->event, i);
	if (!stub.valid && t < SL_KERNEL_STUBS)
		sl_min(&s->g.stubs, i);
	m.stub = stub;
	k = stub.bend * SL_KERNEL_BEND_R + stub.r * SL_KERNEL_BEND_R / 4096;
	m.first = plan->first[k];
	m.after = plan->after[k];
	m.turned = stub.phi * r.turn;
	steep = (sl_i32)stub.r * r.reach - r.reach_at;
	m.reach = sl_tracks_reach(r.cells, steep < 0 ? -steep : steep);
	sl_barrier();
	m.is_used = outcome == SL_RING_GOOD && i < s->g.stubs && stub.layer && s->g.stubs >= r.min_layers;
	for (c = m.first + t / SL_KERNEL_STUBS; m.is_used && c <= m.first + m.after; c += SHARE) {
		struct rows rows = rows_at(m, r, plan, c);

		for (k = 0; k < r.words; k++) {
			sl_u32 bits = sl_tracks_bits(rows.low, rows.high, (sl_i32)k * 32);

			if (bits)
				sl_or(&s->g.map[k][stub.layer][c], bits);
		}
	}
	sl_barrier();
	cells = list_all(s, r);
	for (k = t; 4 * k < cells && k < most; k += CELL_THREADS)
		put_out(&s->g, result + (sl_u64)b * most + k, 4 * k, cells, now);
	if (t == 0)
		sl_chunk_store(record + b, sl_u32x4_make(outcome | (cells && outcome == SL_RING_GOOD ? SL_RING_KEEP : 0),
							 CELL_BYTES * (cells < 4 * most ? cells : 4 * most), cells, now));
	sl_barrier();
	return 1;
}

SL_KERNEL SL_GROUP(960, 1) void tracks_cells_once(RING, sl_u32 b)
{
	SL_SHARED struct cells s;
	sl_u32 now = turn[b];

	sl_barrier();
	work_cells(&s, PASS, b, now);
	if (sl_thread() == 0)
		turn[b] = now + buffers;
}

#if !defined(__OPENCL_C_VERSION__)
SL_KERNEL SL_GROUP(960, 1) void tracks_cells_forever(RING)
{
	SL_SHARED struct cells s;
	sl_u32 n;

	for (n = sl_group(0);; n += sl_groups(0))
		if (!work_cells(&s, PASS, n % buffers, n + 1))
			return;
}
#endif
