/* trigger.c - one measurement of a trigger: stages by bench/stage/stage.c, and here what runs
 * beside them on the same events, the scalar programs and the oracles, one event or sector after
 * the other on a pinned core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/trigger/trigger.h"

enum { LOOKS = 64 }; /* scalar programs: events between two looks at the clock */

struct plain {
	const struct sl_bench_trigger *trigger;
	const struct sl_bench_scene *scene;
	bool rings;
	struct sl_rings_settings set;
	struct sl_tracks_plan plan;
	uint64_t done, sum; /* sum: so that nothing is left out */
};

static void run_one(struct plain *p, uint64_t i)
{
	const uint8_t *item = sl_bench_item(p->scene, i);

	if (p->rings && p->trigger->way == SL_BENCH_SCALAR) {
		struct sl_rings_event found;

		sl_scalar_rings(&p->set, item, &found);
		p->sum += found.rings;
	} else if (p->rings) {
		p->sum += sl_bench_oracle_rings(&p->set, item);
	} else if (p->trigger->way == SL_BENCH_SCALAR) {
		p->sum += sl_scalar_sector(&p->plan, item).tracks;
	} else {
		p->sum += sl_bench_oracle_sector(p->trigger, item).tracks;
	}
}

static uint64_t run_for(struct plain *p, uint64_t ns)
{
	uint64_t all = (uint64_t)p->scene->frames * p->scene->items, start = sl_clock_ns(), took;
	uint32_t looks = p->trigger->way == SL_BENCH_SCALAR ? LOOKS : 1;

	p->done = 0;
	do {
		for (uint32_t k = 0; k < looks; k++)
			run_one(p, p->done++ % all);
		took = sl_clock_ns() - start;
	} while (took < ns);
	return took;
}

/* ---- does the oracle find what the scalar program finds? ---- */

/* Which triplets are tried decides between rings that explain as much: some differ. */
static bool agree_on_rings(const struct plain *p, uint64_t n)
{
	uint64_t same = 0;

	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *event = sl_bench_item(p->scene, i);
		struct sl_rings_event found;
		uint32_t rings = sl_bench_oracle_rings(&p->set, event);

		sl_scalar_rings(&p->set, event, &found);
		same += rings == (found.rings < SL_RINGS ? found.rings : SL_RINGS);
	}
	return (double)same >= 0.94 * (double)n;
}

/* Where rounding decides about a cell, they may differ. */
static bool agree_on_tracks(const struct plain *p, uint64_t n)
{
	bool same = true;

	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *row = sl_bench_item(p->scene, i);
		struct sl_scalar_sector a = sl_bench_oracle_sector(p->trigger, row);
		struct sl_scalar_sector b = sl_scalar_sector(&p->plan, row);

		same &= a.tracks == UINT32_MAX || (a.tracks == b.tracks && a.cells == b.cells);
	}
	return same;
}

static int check(const struct plain *p)
{
	enum { FEW = 20, MANY = 200 };
	uint64_t n = p->done < (p->rings ? MANY : FEW) ? p->done : p->rings ? MANY : FEW;

	if (p->trigger->way != SL_BENCH_ORACLE)
		return 0; /* stages are compared with it */
	if (p->rings ? agree_on_rings(p, n) : agree_on_tracks(p, n))
		return 0;
	sl_error("the oracle does not find what the scalar program finds: its time says nothing");
	return -EBADMSG;
}

static int measure_plain(const struct sl_bench *bench, const struct sl_bench_row *row,
			 struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	const struct sl_geometry *g = &scene->geometry;
	struct plain *p = calloc(1, sizeof(*p));
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds), took;

	if (!p)
		return -ENOMEM;
	p->trigger = row->trigger;
	p->scene = scene;
	p->rings = g->columns == SL_RICH_EVENT_BYTES;
	if (p->rings)
		sl_bench_rings_settings(p->trigger, &p->set);
	else
		sl_bench_tracks_plan(p->trigger, &p->plan);
	run_for(p, ns / 4);
	took = run_for(p, ns);
	sample->frame_bytes = g->modules * g->module_bytes;
	sample->frame_items = scene->items;
	sample->item_parts = scene->parts;
	sample->bytes = p->done * (sample->frame_bytes / scene->items);
	sample->GB_per_s = (double)sample->bytes / (double)took;
	return check(p);
}

/* Everything is the process's own, which ends after this: nothing is given back. */
int sl_bench_trigger(const struct sl_bench *bench, const struct sl_bench_row *row,
		     struct sl_bench_sample *sample)
{
	switch (row->trigger->way) {
	case SL_BENCH_UNIT:
		return sl_bench_stage(bench, row, sample);
	case SL_BENCH_OPEN:
		sl_bench_take_side(bench, row, 0);
		return sl_bench_open_loop(bench, row, sample);
	case SL_BENCH_UDP:
		return sl_bench_udp(bench, row, sample);
	case SL_BENCH_JITTER:
		return sl_bench_jitter(bench, row, sample);
	default:
		sl_bench_take_side(bench, row, 0);
		return measure_plain(bench, row, sample);
	}
}
