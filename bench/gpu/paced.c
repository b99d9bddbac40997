/* paced.c - sluice bench gpu: events of the RICH through the unit at a rate, whether or
 * not those before them are done.
 *
 *   PLATFORM/unit/rings/paced/RATE           1 M, 10 M or 20 M events a second
 *   PLATFORM/unit/rings/paced/RATE/TRIGGER   with another trigger of the unit
 *
 * Events fill blocks. A block is due when its last event is; all blocks that are due go to the unit
 * as one batch, `stack` of them at most, as soon as a batch slot may be free. An event's latency
 * is from when its block was due until its verdict and results are here: waiting in line counts,
 * and a stall of the machine counts for every event that was due meanwhile. Every event's number
 * of rings is compared with that of the scalar program of `sluice bench trigger`.
 *
 * Who cannot keep pace is stopped after a while. Blocks that were due by then and were not begun
 * count with the time that they have waited. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/idle.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"

enum { BATCH_SLOTS = 4, MOST_BLOCKS = 1 << 22 };
#define BATCH_SLOTS_TEXT "4"
#define PROCESSORS	 "128" /* of a kernel that polls: four crews; an H200 has 132 */
#define TIMEOUT_NS	 20000000000ull
#define GRACE_NS	 2000000000ull

struct pace {
	struct sl_bench_subject *s;
	struct sl_bench_worker worker;
	struct sl_device *device;
	uint32_t items; /* of a block */
	double block_ns;
	uint64_t blocks, start_ns;	       /* that are to come */
	uint64_t submitted, back, given, done; /* blocks; batches */
	uint64_t answered;		       /* events */
	uint64_t last_ns;		       /* when the last block came back */
	uint32_t *ns;			       /* [blocks] */
	uint8_t *rings;			       /* [frames][items]: in each event */
	uint32_t *rows;			       /* [frames]: of the table */
	struct sl_batch *batch;		       /* [BATCH_SLOTS + 1] */
};

/* ---- what must come back ---- */

static int find_rings(struct pace *p)
{
	static const struct sl_bench_trigger plain;
	const struct sl_bench_scene *scene = p->s->scene;
	struct sl_rings_settings *set = malloc(sizeof(*set));

	p->rings = calloc(scene->frames, p->items);
	p->rows = calloc(scene->frames, sizeof(*p->rows));
	if (!set || !p->rings || !p->rows) {
		free(set);
		return -ENOMEM;
	}
	sl_bench_rings_settings(&plain, set);
	for (uint64_t i = 0; i < (uint64_t)scene->frames * p->items; i++) {
		struct sl_rings_event found;

		sl_scalar_rings(set, sl_bench_item(scene, i), &found);
		p->rings[i] = (uint8_t)found.rings;
		p->rows[i / p->items] += found.rings < SL_RINGS ? found.rings : SL_RINGS;
	}
	free(set);
	return 0;
}

static int check(const struct pace *p, const struct sl_frame *frame, uint64_t block)
{
	uint64_t f = block % p->s->scene->frames;
	const uint8_t *rings = p->rings + f * p->items;
	bool right = frame->items == p->items && frame->result[0].rows == p->rows[f];

	for (uint32_t i = 0; right && i < p->items; i++)
		right = frame->verdict[i].score == (float)rings[i];
	if (right)
		return 0;
	sl_error("the rings of block %" PRIu64 " are not those that the scalar program finds",
		 block);
	return -EBADMSG;
}

/* ---- blocks come and go ---- */

static uint64_t due_ns(const struct pace *p, uint64_t block)
{
	return p->start_ns + (uint64_t)((double)(block + 1) * p->block_ns);
}

/* How many are due; without the division that would be rounded. */
static uint64_t due(const struct pace *p, uint64_t there, uint64_t now)
{
	while (there < p->blocks && due_ns(p, there) <= now)
		there++;
	return there;
}

static int submit(struct pace *p, uint64_t there)
{
	uint32_t frames = p->s->scene->frames, first = (uint32_t)(p->submitted % frames);
	struct sl_batch *batch = &p->batch[p->given % (BATCH_SLOTS + 1)];
	uint64_t n = there - p->submitted;
	int err;

	if (!n || p->given - p->done >= BATCH_SLOTS)
		return 0;
	n = n < p->s->row->stack ? n : p->s->row->stack;
	n = n < frames - first ? n : frames - first;
	*batch = (struct sl_batch){
		.frame = p->s->line + first, .frames = (uint32_t)n, .capacity = p->s->row->stack};
	err = p->s->unit->submit(p->s->unit_state, batch);
	if (err)
		return err == -EAGAIN ? 0 : err;
	p->submitted += n;
	p->given++;
	return 1;
}

static int reap(struct pace *p)
{
	struct sl_batch *batch;
	int n = 0;

	for (; p->s->unit->reap(p->s->unit_state, &batch); n++) {
		uint64_t now = sl_clock_ns();

		if (batch->status) {
			sl_error("the unit did not work on block %" PRIu64 ": %s", p->back,
				 strerror(-batch->status));
			return batch->status;
		}
		p->done++;
		p->last_ns = now;
		for (uint32_t f = 0; f < batch->frames; f++, p->back++) {
			uint64_t ns = now - due_ns(p, p->back);
			int err = check(p, batch->frame[f], p->back);

			if (err)
				return err;
			p->ns[p->back] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
			p->answered += batch->frame[f]->items;
		}
	}
	return n;
}

/* Until all blocks are back, or it is clear that it will take too long. */
static int run(struct pace *p, uint64_t ns)
{
	uint64_t there = 0, now, moved, until;
	struct sl_idle idle;
	bool late = false;
	int did = 0;

	sl_idle_init(&idle, SL_POLLING_LATENCY, 0, true);
	p->submitted = p->back = p->answered = 0;
	p->start_ns = moved = sl_clock_ns();
	until = p->start_ns + 3 * ns + GRACE_NS;
	while (p->back < (late ? p->submitted : p->blocks)) {
		now = sl_clock_ns();
		late = late || now > until;
		there = due(p, there, now);
		did = late ? 0 : submit(p, there);
		if (did >= 0) {
			int more = reap(p);

			did = more < 0 ? more : did + more;
		}
		if (did < 0)
			return did;
		if (did || p->back == there) {
			moved = now;
		} else if (now - moved > TIMEOUT_NS) {
			sl_error("the unit has not given back block %" PRIu64 " for %g s", p->back,
				 1e-9 * TIMEOUT_NS);
			return -ETIMEDOUT;
		}
		if (!did)
			sl_idle_sleep(&idle);
	}
	return 0;
}

/* ---- all of it ---- */

/* Events in memory that copies leave at full speed. */
static int pin(struct pace *p)
{
	const struct sl_bench_scene *scene = p->s->scene;
	uint64_t block = scene->geometry.modules * scene->geometry.module_bytes;
	struct sl_device_memory memory;
	int err = p->device->platform->pinned_open(p->device, scene->frames * block, &memory);

	if (err)
		return err;
	memcpy(memory.host, scene->events, scene->frames * block);
	for (uint32_t f = 0; f < scene->frames; f++)
		for (uint32_t m = 0; m < scene->geometry.modules; m++)
			p->s->line[f]->view[m].pixels.host = (char *)memory.host + f * block +
							     m * scene->geometry.module_bytes;
	return 0;
}

static int open_pace(struct pace *p, const struct sl_bench_row *row,
		     const struct sl_bench_scene *scene, uint64_t ns)
{
	const char *const option[][2] = {
		{"batch_slots", BATCH_SLOTS_TEXT},
		{row->gpu->unit_trigger ? "trigger" : NULL, row->gpu->unit_trigger},
		{"processors", PROCESSORS}};
	int err = sl_bench_subject_open(p->s, row, scene);

	p->items = scene->items;
	p->block_ns = 1e3 * scene->items / row->gpu->M_per_s;
	p->blocks = 1 + (uint64_t)((double)ns / p->block_ns);
	if (p->blocks > MOST_BLOCKS)
		p->blocks = MOST_BLOCKS;
	p->batch = calloc(BATCH_SLOTS + 1, sizeof(*p->batch));
	p->ns = malloc(p->blocks * sizeof(*p->ns));
	if (!p->batch || !p->ns)
		return -ENOMEM;
	memset(p->ns, 0, p->blocks * sizeof(*p->ns)); /* its pages are there */
	/* Memory first: a kernel that polls may hold whoever wants some later. */
	if (!err)
		err = pin(p);
	if (!err)
		err = sl_bench_unit_open(p->s, row->platform->name, option, 3);
	if (err)
		return err;
	p->s->unit->know(p->s->unit_state, p->s->pool.results.base, p->s->pool.results.bytes);
	return find_rings(p);
}

/* Blocks that were never begun have waited all the same. */
static void conclude(struct pace *p, struct sl_bench_sample *sample)
{
	uint64_t now = sl_clock_ns(), there = due(p, p->back, now);

	for (uint64_t k = p->back; k < there; k++) {
		uint64_t ns = now - due_ns(p, k);

		p->ns[k] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
	}
	sl_bench_quantiles(p->ns, there, sample->quantile_us);
	sample->count = p->answered;
	sample->late = (there - p->back) * p->items;
	sample->per_s = 1e9 * (double)p->answered / (double)(p->last_ns - p->start_ns);
}

/* First for a while to warm up: clocks rise, all pages are there. */
int sl_bench_gpu_paced(const struct sl_bench *bench, const struct sl_bench_row *row,
		       struct sl_device *device, struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds), blocks;
	struct pace *p = calloc(1, sizeof(*p));
	int err;

	if (!p || !(p->s = calloc(1, sizeof(*p->s))))
		return -ENOMEM;
	p->device = device;
	err = open_pace(p, row, scene, ns);
	if (!err)
		err = sl_bench_worker_start(&p->worker, p->s);
	if (err)
		return err;
	blocks = p->blocks;
	p->blocks = 1 + blocks / 10;
	err = run(p, ns / 10);
	p->blocks = blocks;
	if (!err)
		err = run(p, ns);
	sl_bench_worker_stop(&p->worker);
	if (!err && p->answered != p->submitted * p->items) {
		sl_error("of %" PRIu64 " events %" PRIu64 " were answered", p->submitted * p->items,
			 p->answered);
		err = -EBADMSG;
	}
	if (err)
		return err;
	conclude(p, sample);
	sample->frame_bytes = scene->geometry.modules * scene->geometry.module_bytes;
	sample->frame_items = scene->items;
	sample->item_parts = scene->parts;
	sample->fill_us = 1e-3 * p->block_ns;
	return 0;
}
