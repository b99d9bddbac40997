/* gpu.c - sluice bench gpu: what stages take on an accelerator, beside what its memory does.
 *
 *   PLATFORM/WHAT          kernels alone: a stack is there, and is worked on again and again
 *   PLATFORM/memory-copy   as many bytes as `correct` must move, copied by a kernel: the ceiling
 *   PLATFORM/up, /down     pinned host memory to the device and back, 8 MiB at a time
 *   PLATFORM/unit/WHAT     through the whole unit, from host memory and back: unit.c
 *   PLATFORM/unit/WHAT/paced/RATE   likewise, at a rate: paced.c
 *   PLATFORM/ingest/HOW    five sources, each with a ring, through the unit: ingest.c
 *
 * Stacks are of ten frames of 2164 x 2068 pixels, or of eight blocks of events; images and what is
 * found in them are compared as in `sluice bench stage`. Then one stack at a time, from the call to
 * the end: "a stack". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"
#include "core/device.h"
#include "gpu/table.h"
#include "unit/cpu/cpu.h"
#include "unit/gpu/gpu.h"

enum { THREADS = 256, COPY_BYTES = 8 << 20, SINGLES = 2000 };

/* ---- one measurement ---- */

struct bench_device {
	struct sl_device *device;
	const struct sl_platform *platform;
	struct sl_device_queue *queue;
	struct sl_device_mark *mark;
};

static int open_device(struct bench_device *d, const struct sl_platform *platform)
{
	int err;

	d->platform = platform;
	if (platform->unavailable()) {
		sl_error("%s", platform->unavailable());
		return -ENODEV;
	}
	err = platform->open(0, &d->device);
	if (!err)
		err = platform->queue_open(d->device, &d->queue);
	return err ? err : platform->mark_open(d->device, &d->mark);
}

/* All that was queued is done; it looks all the time. */
static int finish(struct bench_device *d, struct sl_device_queue *queue)
{
	int err = d->platform->mark(queue, d->mark), done;

	if (!err)
		err = d->platform->flush(queue);
	while (!err && !(done = d->platform->reached(d->mark)))
		;
	return err ? err : done < 0 ? done : 0;
}

/* Something that is queued again and again. */
struct again {
	struct bench_device *device;
	struct sl_device_queue *queue;
	int (*once)(struct again *a);
	struct sl_device_memory from, to;
	struct sl_device_kernel *kernel;
	struct sl_batch_slots *slots;
};

static int copy_once(struct again *a)
{
	uint64_t n = a->to.bytes / 16;
	const struct sl_device_argument argument[] = {SL_ARG_MEMORY(&a->from),
						      SL_ARG_MEMORY(&a->to), SL_ARG(n)};
	struct sl_device_range range = {{sl_device_groups(n, THREADS)}, THREADS};

	return a->device->platform->launch(a->queue, a->kernel, &range, argument, 3);
}

static int up_once(struct again *a)
{
	return a->device->platform->write(a->queue, &a->to, 0, a->from.host, COPY_BYTES, 1,
					  COPY_BYTES);
}

static int down_once(struct again *a)
{
	return a->device->platform->read(a->queue, a->from.host, &a->to, 0, COPY_BYTES);
}

static int kernels_once(struct again *a)
{
	return sl_batch_slot_again(a->slots, 0);
}

/* As often as it takes; *n: how often that was. */
static int repeat(struct again *a, uint64_t ns, uint64_t *took_ns, uint64_t *n)
{
	uint64_t times = 1, start;
	int err = 0;

	for (;; times *= 2) {
		start = sl_clock_ns();
		for (uint64_t i = 0; i < times && !err; i++)
			err = a->once(a);
		if (!err)
			err = finish(a->device, a->queue);
		*took_ns = sl_clock_ns() - start;
		*n = times;
		if (err || *took_ns >= ns / 2 || times >= 1 << 20)
			return err;
	}
}

static int one_by_one(struct again *a, uint64_t most_ns, struct sl_bench_sample *sample)
{
	uint64_t begun = sl_clock_ns();
	uint32_t *ns = calloc(SINGLES, sizeof(*ns));
	size_t n = 0;
	int err = ns ? 0 : -ENOMEM;

	while (!err && n < SINGLES && (n < 5 || sl_clock_ns() - begun < most_ns)) {
		uint64_t start = sl_clock_ns();

		err = a->once(a);
		if (!err)
			err = finish(a->device, a->queue);
		ns[n++] = (uint32_t)(sl_clock_ns() - start);
	}
	if (!err)
		sl_bench_quantiles(ns, n, sample->quantile_us);
	free(ns);
	return err;
}

static int measure(const struct sl_bench *bench, struct again *a, uint64_t bytes,
		   struct sl_bench_sample *sample)
{
	uint64_t ns = (uint64_t)(1e9 * bench->o.seconds), took, n;
	int err = repeat(a, ns / 10, &took, &n); /* clocks rise, caches fill */

	if (!err)
		err = repeat(a, ns, &took, &n);
	if (err)
		return err;
	sample->bytes = n * bytes;
	sample->GB_per_s = (double)sample->bytes / (double)took;
	return one_by_one(a, ns, sample);
}

/* Read and written: what `correct` must, pixels once per frame and tables once per stack. */
static uint64_t ceiling_bytes(const struct sl_bench_scene *scene)
{
	return scene->pixels * (SL_BENCH_GPU_STACK * 4 + 8);
}

static int measure_memory(const struct sl_bench *bench, const struct sl_bench_row *row,
			  struct bench_device *d, struct sl_bench_sample *sample)
{
	static const char *const name[] = {"bench_copy"};
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	uint64_t bytes = row->gpu->way == SL_BENCH_GPU_COPY ? ceiling_bytes(scene) : COPY_BYTES;
	uint64_t half = row->gpu->way == SL_BENCH_GPU_COPY ? bytes / 2 / 16 * 16 : bytes;
	struct again a = {.device = d, .queue = d->queue};
	struct sl_device_program *program;
	int err = d->platform->memory_open(d->device, half, &a.to);

	if (!err && row->gpu->way == SL_BENCH_GPU_COPY)
		err = d->platform->memory_open(d->device, half, &a.from);
	else if (!err)
		err = d->platform->pinned_open(d->device, half, &a.from);
	if (!err)
		err = sl_device_kernels(d->device, &sl_kernels_copy, name, 1, &program, &a.kernel);
	if (err)
		return err;
	a.once = row->gpu->way == SL_BENCH_GPU_COPY ? copy_once
		 : row->gpu->way == SL_BENCH_GPU_UP ? up_once
						    : down_once;
	sample->frame_bytes = row->gpu->way == SL_BENCH_GPU_COPY ? bytes / SL_BENCH_GPU_STACK
								 : bytes;
	return measure(bench, &a, bytes, sample);
}

/* Photons that are there already. */
static int give_images(struct bench_device *d, struct sl_batch_slots *slots,
		       const struct sl_bench_subject *s)
{
	uint64_t bytes = s->scene->pixels * sizeof(int16_t);
	int err = 0;

	for (uint32_t f = 0; f < s->row->stack && !err; f++)
		err = d->platform->write(slots->in, &slots->slot[0].result[0], f * bytes,
					 s->line[f]->result[0].host, bytes, 1, bytes);
	return err ? err : finish(d, slots->in);
}

static int measure_kernels(const struct sl_bench *bench, const struct sl_bench_row *row,
			   struct bench_device *d, struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	struct sl_bench_subject *s = calloc(1, sizeof(*s));
	struct sl_batch_slots *slots = calloc(1, sizeof(*slots));
	struct again a = {.device = d, .once = kernels_once, .slots = slots};
	int err = s && slots ? sl_bench_subject_open(s, row, scene) : -ENOMEM;

	if (err)
		return err;
	for (unsigned i = 0; i < s->build.chain.stages; i++)
		if (!s->build.chain.stage[i].ops->gpu) {
			sl_error("stage '%s' runs on the CPU only",
				 s->build.chain.stage[i].ops->name);
			return -ENODEV;
		}
	slots->device = d->device;
	slots->chain = &s->build.chain;
	err = sl_batch_slots_open(slots, 1, false);
	if (err)
		return err;
	a.queue = slots->work[0];
	sl_verdicts_reset(&s->batch[0]);
	s->batch[0].frames = row->stack;
	if (!strncmp(row->work->chain, "image ", 6))
		err = give_images(d, slots, s);
	if (!err)
		err = sl_batch_slot_begin(slots, 0, &s->batch[0]);
	if (!err)
		err = finish(d, slots->slot[0].out);
	sample->frame_bytes = scene->geometry.modules * scene->geometry.module_bytes;
	sample->frame_items = scene->items ? scene->items : 1;
	sample->item_parts = scene->parts;
	if (!err)
		err = measure(bench, &a, row->stack * sample->frame_bytes, sample);
	if (!err)
		err = sl_batch_slot_judged(slots, 0);
	if (!err)
		err = finish(d, slots->slot[0].out);
	if (err || scene->items)
		return err;
	return sl_bench_subject_check(s, row->stack, bench->stages, sample);
}

static int measure_way(const struct sl_bench *bench, const struct sl_bench_row *row,
		       struct bench_device *d, struct sl_bench_sample *sample)
{
	switch (row->gpu->way) {
	case SL_BENCH_GPU_KERNELS:
		return measure_kernels(bench, row, d, sample);
	case SL_BENCH_GPU_UNIT:
		return sl_bench_gpu_unit(bench, row, sample);
	case SL_BENCH_GPU_RING:
		return sl_bench_gpu_ring(bench, row, d->device, sample);
	case SL_BENCH_GPU_RESIDENT:
	case SL_BENCH_GPU_WRITTEN:
		return sl_bench_gpu_ingest(bench, row, d->device, sample);
	case SL_BENCH_GPU_PACED:
		return sl_bench_gpu_paced(bench, row, d->device, sample);
	default:
		return measure_memory(bench, row, d, sample);
	}
}

/* Everything is the process's own, which ends after this: nothing is given back. */
int sl_bench_gpu(const struct sl_bench *bench, const struct sl_bench_row *row,
		 struct sl_bench_sample *sample)
{
	struct bench_device d = {0};
	struct sl_device_info info;
	int err = open_device(&d, row->platform);

	if (err)
		return err;
	d.platform->describe(d.device, &info);
	snprintf(sample->device, sizeof(sample->device), "%.80s, %.110s", info.name, info.driver);
	err = measure_way(bench, row, &d, sample);
	if (err && err != -ENODEV && err != -EBADMSG && *d.platform->problem(d.device))
		sl_error("%s", d.platform->problem(d.device));
	return err;
}
