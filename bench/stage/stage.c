/* stage.c - one measurement of ours: stack after stack through the unit for as long as it is
 * told, on one pinned core or several. The first worker also submits and takes back, as the
 * dispatcher of a run does where there are few cores. */
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
	struct helper {
		struct course *course;
		struct sl_thread thread;
		unsigned worker;
	} helper[SL_BENCH_CORES];
};

/* It spins, as it has a core to itself. */
static void *help(void *arg)
{
	const struct helper *h = arg;
	const struct course *c = h->course;

	while (!atomic_load_explicit(&c->stop, memory_order_relaxed))
		c->s->unit->work(c->s->unit_state, h->worker);
	return NULL;
}

static int start_helpers(struct course *c, const struct sl_bench *bench)
{
	int err = 0;

	for (unsigned i = 1; i < c->s->row->cores && !err; i++) {
		cpu_set_t set;

		c->helper[i].course = c;
		c->helper[i].worker = i;
		CPU_ZERO(&set);
		CPU_SET((size_t)bench->core[i], &set);
		err = sl_thread_start(&c->helper[i].thread, "bench-worker", &set, help,
				      &c->helper[i]);
	}
	return err;
}

static void stop_helpers(struct course *c)
{
	atomic_store(&c->stop, true);
	for (unsigned i = 1; i < c->s->row->cores; i++)
		sl_thread_join(&c->helper[i].thread);
}

static int submit(struct course *c, uint32_t frames)
{
	struct sl_batch *batch = &c->s->batch[c->submitted % c->s->batches];
	int err;

	batch->frames = frames;
	err = sl_bench_submit(c->s, batch);
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

/* Batches of so many frames until the time is over, at least one; all of them come back. The unit
 * has as many inside as a run would give it. */
static int work_for(struct course *c, uint32_t frames, uint64_t ns, uint64_t *took_ns)
{
	uint64_t start = sl_clock_ns(), ahead = c->s->unit->batches(c->s->unit_state, frames);
	int err = submit(c, frames);

	if (ahead > c->s->batches)
		ahead = c->s->batches;
	while (!err && c->reaped < c->submitted) {
		while (!err && c->submitted - c->reaped < ahead && sl_clock_ns() - start < ns)
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
	sl_bench_take_side(bench, row, 0);
	err = sl_bench_subject_open(s, row, scene);
	if (err)
		return err;
	c->s = s;
	err = start_helpers(c, bench);
	if (!err)
		err = measure(bench, c, sample);
	stop_helpers(c);
	seen = c->frames < scene->frames ? c->frames : scene->frames;
	if (!err && row->trigger)
		return sl_bench_trigger_check(s, (uint32_t)seen);
	return err ? err : sl_bench_subject_check(s, (uint32_t)seen, bench->stages, sample);
}
