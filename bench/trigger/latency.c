/* latency.c - how long a decision takes: events come when they are due, at a share of
 * the rate that one core can do, whether or not those before them are done. So waiting in line
 * counts, and a stall of the machine counts for every event that came meanwhile.
 *
 * Events fill a block one after the other. With its last event a block is there; all that are there
 * go to the cpu unit as a batch, `stack` of them at most; they are decided when the unit gives the
 * batch back. One thread submits, works and takes back, as in bench/stage/stage.c. What one core
 * can do is measured right before, by the same process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/trigger/trigger.h"

enum { MOST_SAMPLES = 1 << 22 };

struct loop {
	struct sl_bench_subject *s;
	uint32_t items;	 /* of a frame */
	double event_ns; /* from one to the next */
	uint64_t start_ns;
	uint64_t *done_ns; /* [frames] */
	uint64_t frames;   /* that are to come */
};

/* `frames` frames from the k-th on, around and around. */
static int process(struct sl_bench_subject *s, uint64_t k, uint32_t frames)
{
	struct sl_batch batch = {.frame = s->line + k % s->scene->frames,
				 .frames = frames,
				 .capacity = s->row->stack};
	struct sl_batch *back;
	int err = s->unit->submit(s->unit_state, &batch);

	if (err)
		return err;
	while (!s->unit->reap(s->unit_state, &back))
		s->unit->work(s->unit_state, 0);
	return back->status;
}

/* The most that fit into a batch and do not go around. */
static uint32_t batch_from(const struct sl_bench_subject *s, uint64_t k, uint64_t there)
{
	uint64_t most = s->scene->frames - k % s->scene->frames;

	if (most > there)
		most = there;
	return (uint32_t)(most < s->row->stack ? most : s->row->stack);
}

/* Nanoseconds for a frame, as fast as it can. */
static int measure_capacity(struct sl_bench_subject *s, uint64_t ns, double *frame_ns)
{
	uint64_t start = sl_clock_ns(), done = 0, took;
	int err;

	do {
		uint32_t n = batch_from(s, done, UINT64_MAX);

		err = process(s, done, n);
		done += n;
		took = sl_clock_ns() - start;
	} while (!err && took < ns);
	*frame_ns = (double)took / (double)done;
	return err;
}

static uint64_t due_ns(const struct loop *l, uint64_t event)
{
	return l->start_ns + (uint64_t)((double)(event + 1) * l->event_ns);
}

static int run(struct loop *l)
{
	uint64_t next = 0, there = 0, now;
	int err = 0;

	l->start_ns = sl_clock_ns();
	while (next < l->frames && !err) {
		uint32_t n;

		now = sl_clock_ns();
		while (there < l->frames && due_ns(l, (there + 1) * l->items - 1) <= now)
			there++;
		if (there == next)
			continue;
		n = batch_from(l->s, next, there - next);
		err = process(l->s, next, n);
		now = sl_clock_ns();
		for (uint32_t i = 0; i < n; i++)
			l->done_ns[next++] = now;
	}
	return err;
}

/* Of all events, or of every n-th where they are very many. */
static int conclude(const struct loop *l, struct sl_bench_sample *sample)
{
	uint64_t events = l->frames * l->items, step = 1 + events / MOST_SAMPLES, n = 0;
	uint32_t *ns = malloc((events / step + 1) * sizeof(*ns));

	if (!ns)
		return -ENOMEM;
	for (uint64_t e = 0; e < events; e += step) {
		uint64_t took = l->done_ns[e / l->items] - due_ns(l, e);

		ns[n++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
	}
	sl_bench_quantiles(ns, n, sample->quantile_us);
	sample->count = n;
	sample->per_s = (double)events * 1e9 / (double)(l->done_ns[l->frames - 1] - l->start_ns);
	free(ns);
	return 0;
}

int sl_bench_open_loop(const struct sl_bench *bench, const struct sl_bench_row *row,
		       struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	struct sl_bench_subject *s = calloc(1, sizeof(*s));
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds);
	struct loop l = {.s = s, .items = scene->items};
	double frame_ns;
	int err = s ? sl_bench_subject_open(s, row, scene) : -ENOMEM;

	if (!err)
		err = measure_capacity(s, ns / 4, &frame_ns); /* which also warms */
	if (!err)
		err = measure_capacity(s, ns / 2, &frame_ns);
	if (err)
		return err;
	frame_ns *= 100. / row->trigger->percent;
	l.event_ns = frame_ns / l.items;
	l.frames = 1 + (uint64_t)((double)ns / frame_ns);
	l.done_ns = calloc(l.frames, sizeof(*l.done_ns));
	if (!l.done_ns)
		return -ENOMEM;
	memset(l.done_ns, 1, l.frames * sizeof(*l.done_ns)); /* its pages are there */
	err = run(&l);
	if (!err)
		err = conclude(&l, sample);
	sample->item_parts = scene->parts;
	return err ? err
		   : sl_bench_trigger_check(s, l.frames < scene->frames ? (uint32_t)l.frames
									: scene->frames);
}
