/* unit.c - sluice bench gpu: frames through the whole unit, as in a run: from the ring's
 * memory to the device, through its kernels, verdicts and what is kept back, batches overlapping.
 *
 *   PLATFORM/unit/WHAT   frames lie in pinned memory, and the same ones come again and again */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"
#include "core/device.h"
#include "core/registry.h"

static int open_unit(struct sl_bench_subject *s, const struct sl_bench_row *row)
{
	unsigned workers;
	int err;

	s->unit = sl_unit_find(row->platform->name);
	s->unit_state = s->unit ? calloc(1, s->unit->state_bytes) : NULL;
	if (!s->unit_state)
		return -ENOMEM;
	sl_options_defaults(s->unit->options, s->unit_state);
	err = s->unit->open(s->unit_state, &s->build.chain, &s->todo, &s->done, &workers);
	if (err)
		return err;
	s->unit->know(s->unit_state, s->scene->memory.base, s->scene->memory.bytes);
	s->unit->know(s->unit_state, s->pool.results.base, s->pool.results.bytes);
	return 0;
}

/* Every batch that comes back goes in again, until the time is over; then all come back. */
static int turn(struct sl_bench_subject *s, uint64_t ns, uint64_t *took_ns, uint64_t *batches)
{
	uint64_t begun = sl_clock_ns(), given = 0, back = 0;
	unsigned most = s->unit->batches(s->unit_state, s->row->stack) + 1;
	bool goes_on = true;

	most = most < s->batches ? most : s->batches;
	while (goes_on || back < given) {
		struct sl_batch *done;

		goes_on = goes_on && sl_clock_ns() - begun < ns;
		while (goes_on && given - back < most &&
		       !s->unit->submit(s->unit_state, &s->batch[given % s->batches]))
			given++;
		s->unit->work(s->unit_state, 0);
		while (s->unit->reap(s->unit_state, &done)) {
			if (done->status)
				return done->status;
			back++;
		}
	}
	*took_ns = sl_clock_ns() - begun;
	*batches = back;
	return 0;
}

int sl_bench_gpu_unit(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	struct sl_bench_subject *s = calloc(1, sizeof(*s));
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds), took, n;
	int err = s ? sl_bench_subject_open(s, row, scene) : -ENOMEM;

	if (!err)
		err = open_unit(s, row);
	if (!err)
		err = turn(s, ns / 10, &took, &n); /* clocks rise, all pages are there */
	if (!err)
		err = turn(s, ns, &took, &n);
	if (err)
		return err;
	sample->frame_bytes = scene->geometry.modules * scene->geometry.module_bytes;
	sample->frame_items = scene->items ? scene->items : 1;
	sample->item_parts = scene->parts;
	sample->bytes = n * row->stack * sample->frame_bytes;
	sample->GB_per_s = (double)sample->bytes / (double)took;
	return scene->items
		       ? 0
		       : sl_bench_subject_check(s, s->batches * row->stack, bench->stages, sample);
}
