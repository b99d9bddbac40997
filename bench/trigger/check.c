/* check.c - whether a row found what others find: its time says nothing otherwise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/trigger/trigger.h"

enum { CHECKED = 32, RING_COLUMNS = 7 }; /* frames, at most */

void sl_bench_rings_settings(const struct sl_bench_trigger *trigger, struct sl_rings_settings *set)
{
	*set = (struct sl_rings_settings){
		.radius_min = 45,
		.radius_max = 215,
		.reach = 200,
		.window = 15,
		.rms = 15 * 0.6f,
		.min_hits = 6,
		.min_own = 4,
		.triplets = trigger->triplets ? trigger->triplets : 64,
	};
	sl_rings_settings_init(set);
}

void sl_bench_tracks_plan(const struct sl_bench_trigger *trigger, struct sl_tracks_plan *plan)
{
	sl_tracks_plan(plan, &(struct sl_tracks_settings){
				     .min_pt_GeV = 3,
				     .columns = 32,
				     .rows = 32,
				     .min_layers = 5,
				     .cells = trigger->cells,
				     .bend = trigger->bend,
				     .common = 3,
				     .sector_tracks = 32,
			     });
}

static int wrong(const char *what, uint32_t frame)
{
	sl_error("%s of frame %u are not those that the scalar program finds", what, frame);
	return -EBADMSG;
}

/* ---- rings ---- */

/* Bit for bit. */
static bool is_ring(const float *row, uint32_t event, const struct sl_rings_ring *ring)
{
	const float want[] = {(float)event,	   ring->x,    ring->y,
			      sqrtf(ring->square), ring->hits, sqrtf(ring->spread)};

	return memcmp(row, want, sizeof(want)) == 0;
}

static int check_rings(const struct sl_bench_subject *s, const struct sl_rings_settings *set,
		       uint32_t f)
{
	const struct sl_array *table = sl_frame_result(s->line[f], "rings");
	uint32_t at = 0;

	for (uint32_t i = 0; table && i < s->scene->items; i++) {
		struct sl_rings_event found;
		const uint8_t *event = sl_bench_item(s->scene, (uint64_t)f * s->scene->items + i);

		sl_scalar_rings(set, event, &found);
		for (uint32_t k = 0; k < found.rings && k < SL_RINGS; k++, at++)
			if (at >= table->rows ||
			    !is_ring((float *)table->host + (size_t)at * RING_COLUMNS, i,
				     &found.ring[k]))
				return wrong("the rings", f);
		if (s->line[f]->verdict[i].score != (float)found.rings)
			return wrong("the scores", f);
	}
	return table && at == table->rows ? 0 : wrong("the rings", f);
}

/* ---- tracks ---- */

/* Cells, and tracks where nothing is done with them but what the scalar program does. */
static int check_tracks(const struct sl_bench_subject *s, const struct sl_tracks_plan *plan,
			uint32_t f)
{
	const struct sl_bench_trigger *trigger = s->row->trigger;
	const struct sl_array *result = sl_frame_result(s->line[f], "tracks_found");
	const struct sl_tracks_found *found = result ? result->host : NULL;
	const struct sl_geometry *g = &s->scene->geometry;
	uint32_t rows = g->modules * g->rows, cells = 0, tracks = 0;

	for (uint32_t i = 0; i < rows; i++) {
		const uint8_t *row = sl_bench_item(s->scene, (uint64_t)f * rows + i);
		struct sl_scalar_sector sector = sl_scalar_sector(plan, row);

		cells += sector.cells;
		tracks += sector.tracks;
	}
	if (!found || found->cells != cells)
		return wrong("the cells", f);
	if (!trigger->between && !strstr(trigger->work.chain, "fit=true") &&
	    found->tracks != tracks)
		return wrong("the tracks", f);
	return 0;
}

int sl_bench_trigger_check(const struct sl_bench_subject *s, uint32_t frames)
{
	struct sl_rings_settings *set = malloc(sizeof(*set));
	struct sl_tracks_plan *plan = malloc(sizeof(*plan));
	bool rings = !strncmp(s->row->work->chain, "rings", 5);
	int err = set && plan ? 0 : -ENOMEM;

	if (!err) {
		sl_bench_rings_settings(s->row->trigger, set);
		sl_bench_tracks_plan(s->row->trigger, plan);
	}
	for (uint32_t f = 0; f < frames && f < CHECKED && !err; f++)
		err = rings ? check_rings(s, set, f) : check_tracks(s, plan, f);
	free(set);
	free(plan);
	return err;
}
