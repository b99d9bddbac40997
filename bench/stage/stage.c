/* stage.c - one measurement of ours: stack after stack through the unit for as long as it is
 * told, on one pinned core or two. The first worker is also who submits and takes back, as the
 * dispatcher of a run is where there are few cores. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/stage/stage.h"

struct course {
	struct sl_bench_subject *s;
	uint64_t submitted, reaped; /* batches */
	uint64_t frames;	    /* that came back */
	_Atomic bool stop;
	struct sl_thread helper;
};

/* It spins, as it has a core to itself. */
static void *help(void *arg)
{
	struct course *c = arg;

	while (!atomic_load_explicit(&c->stop, memory_order_relaxed))
		c->s->unit->work(c->s->unit_state, 1);
	return NULL;
}

static int start_helper(struct course *c, int core)
{
	cpu_set_t set;

	if (c->s->row->cores < 2)
		return 0;
	CPU_ZERO(&set);
	if (core >= 0)
		CPU_SET((size_t)core, &set);
	return sl_thread_start(&c->helper, "bench-worker", core >= 0 ? &set : NULL, help, c);
}

static int submit(struct course *c, uint32_t frames)
{
	struct sl_batch *batch = &c->s->batch[c->submitted % c->s->batches];
	int err;

	batch->frames = frames;
	err = c->s->unit->submit(c->s->unit_state, batch);
	c->submitted += !err;
	return err;
}

static int step(struct course *c)
{
	struct sl_batch *back;

	c->s->unit->work(c->s->unit_state, 0);
	while (c->s->unit->reap(c->s->unit_state, &back)) {
		c->reaped++;
		c->frames += back->frames;
		if (back->status)
			return back->status;
	}
	return 0;
}

/* Batches of so many frames until the time is over, at least one; all of them come back. With two
 * workers the next batch lies ready when one is done. */
static int work_for(struct course *c, uint32_t frames, uint64_t ns, uint64_t *took_ns)
{
	uint64_t start = sl_clock_ns(), ahead = c->s->row->cores;
	int err = submit(c, frames);

	while (!err && c->reaped < c->submitted) {
		if (c->submitted - c->reaped < ahead && sl_clock_ns() - start < ns)
			err = submit(c, frames);
		if (!err)
			err = step(c);
		if (!err && c->reaped == c->submitted && sl_clock_ns() - start < ns)
			err = submit(c, frames);
	}
	*took_ns = sl_clock_ns() - start;
	return err;
}

/* A frame first: where that takes long, caches and pages have seen enough. */
static int warm(struct course *c, uint64_t ns)
{
	uint32_t stack = c->s->row->stack;
	uint64_t took;
	int err = work_for(c, 1, 0, &took);

	if (!err && took * stack < ns)
		err = work_for(c, stack, ns / 4, &took);
	return err;
}

static int measure(const struct sl_bench *bench, struct course *c, struct sl_bench_sample *sample)
{
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds), took;
	const struct sl_geometry *g = &c->s->scene->geometry;
	uint32_t stack = c->s->row->stack;
	int err = warm(c, ns);

	c->submitted = c->reaped = c->frames = 0; /* batches begin anew: 0 and on are checked */
	if (!err)
		err = work_for(c, stack, ns, &took);
	if (err)
		return err;
	sample->frame_bytes = g->modules * g->module_bytes;
	sample->frame_items = c->s->scene->items ? c->s->scene->items : 1;
	sample->item_parts = c->s->scene->parts;
	sample->bytes = c->frames * sample->frame_bytes;
	sample->GB_per_s = (double)sample->bytes / (double)took;
	return 0;
}

/* Everything is the process's own, which ends after this: nothing is given back. */
int sl_bench_stage(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	struct sl_bench_subject *s = calloc(1, sizeof(*s));
	struct course *c = calloc(1, sizeof(*c));
	uint64_t seen;
	int err;

	if (!s || !c)
		return -ENOMEM;
	if (row->cores > 1 && bench->core[1] < 0) {
		sl_error("there is one core");
		return -ENODEV;
	}
	sl_bench_take_side(bench, row, 0);
	err = sl_bench_subject_open(s, row, scene);
	if (err)
		return err;
	c->s = s;
	err = start_helper(c, bench->core[1]);
	if (!err)
		err = measure(bench, c, sample);
	atomic_store(&c->stop, true);
	sl_thread_join(&c->helper);
	seen = c->frames < scene->frames ? c->frames : scene->frames;
	if (!err && row->trigger)
		return sl_bench_trigger_check(s, (uint32_t)seen);
	return err ? err : sl_bench_subject_check(s, (uint32_t)seen, bench->stages, sample);
}
