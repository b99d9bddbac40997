/* bench_gpu.c - sluice bench gpu: what stages take on an accelerator, beside what its memory does.
 *
 *   PLATFORM/WHAT          kernels alone: a stack is there, and is worked on again and again
 *   PLATFORM/memory-copy   as many bytes as `correct` must move, copied by a kernel: the ceiling
 *   PLATFORM/up, /down     pinned host memory to the device and back, 8 MiB at a time
 *   PLATFORM/unit/WHAT     through the whole unit, from host memory and back: bench_gpu_unit.c
 *
 * Stacks are of ten frames of 2164 x 2068 pixels, or of eight blocks of events; images and what is
 * found in them are compared as in `sluice bench stage`. Then one stack at a time, from the call to
 * the end: "a stack". */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/device.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/bench_gpu.h"
#include "device/table.h"
#include "kernel/kernels.h"
#include "maths/tracks.h"
#include "unit/cpu/cpu.h"
#include "unit/device/device.h"

enum { STACK = 10, BLOCKS = 8, THREADS = 256, COPY_BYTES = 8 << 20, SINGLES = 2000 };

#define VETO   "veto:threshold=10,min_pixels=1"
#define SPARSE "sparse:method=threshold,threshold=10"
#define IMAGES(row, stages, us)                                                              \
	{                                                                                    \
		.work = {.name = row, .chain = stages}, .size = SL_BENCH_4M, .stack = STACK, \
		.most_us = us                                                                \
	}
#define EVENTS(row, stages, events, us)                                                  \
	{                                                                                \
		.work = {.name = row, .chain = stages}, .size = events, .stack = BLOCKS, \
		.most_us = us                                                            \
	}

#define UNIT(row, stages, events, n)                                                              \
	{                                                                                         \
		.work = {.name = row, .chain = stages, .unread = true}, .way = SL_BENCH_GPU_UNIT, \
		.size = events, .stack = n                                                        \
	}

#define RING(row, bytes, how, is_tagged, is_on_device, us)                              \
	{                                                                               \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_500K, \
		.stack = 1, .most_us = us, .trigger = how, .event_bytes = bytes,        \
		.tagged = is_tagged, .on_device = is_on_device                          \
	}

#define SECTOR(row, kind, how, us, only_cells)                                             \
	{                                                                                  \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_SECTORS, \
		.stack = 1, .most_us = us, .trigger = how, .tagged = true, .tracks = kind, \
		.cells = only_cells                                                        \
	}
#define TRACKS(row, kind, how, us) SECTOR(row, kind, how, us, false)
#define CELLS(row, kind, how, us)  SECTOR(row, kind, how, us, true)

static const struct sl_bench_trigger rectangles = {.cells = SL_TRACKS_RECTANGLES},
				     hexagons = {.cells = SL_TRACKS_HEXAGONS},
				     bent = {.cells = SL_TRACKS_HEXAGONS, .bend = 3};

static const struct sl_bench_gpu rows[] = {
	{.work = {.name = "memory-copy"},
	 .way = SL_BENCH_GPU_COPY,
	 .size = SL_BENCH_4M,
	 .stack = STACK},
	{.work = {.name = "up"}, .way = SL_BENCH_GPU_UP, .size = SL_BENCH_4M, .stack = 1},
	{.work = {.name = "down"}, .way = SL_BENCH_GPU_DOWN, .size = SL_BENCH_4M, .stack = 1},
	IMAGES("correct", "correct:output=photons_i16", 6.5),
	IMAGES("correct+veto", "correct:output=photons_i16 " VETO, 7),
	IMAGES("correct+veto+sparse", "correct:output=photons_i16 " VETO " " SPARSE, 18),
	IMAGES("correct/f32", "correct:output=kev_f32", 0),
	IMAGES("integrate", "image integrate:bins=1000,unit=q_nm,high=HIGH", 20),
	IMAGES("integrate-bbox", "image integrate:split=bbox,bins=1000,unit=q_nm,high=HIGH", 0),
	IMAGES("peaks", "image peaks", 250),
	IMAGES("spots", "image spots", 0),
	IMAGES("sparse", "image " SPARSE, 0),
	IMAGES("sparse-radial", "image sparse:method=radial,bins=800", 0),
	IMAGES("reduce", "image reduce", 0),
	EVENTS("rings", "rings:look=all", SL_BENCH_RICH_1024, 0.05),
	{.work = {.name = "rings/4096", .chain = "rings:look=all"},
	 .size = SL_BENCH_RICH_1024,
	 .stack = 4,
	 .most_us = 0.05},
	EVENTS("tracks/rectangles", "tracks:look=all,cells=rectangles,bend=0", SL_BENCH_TRACKER_140,
	       0),
	EVENTS("tracks/hexagons", "tracks:look=all,cells=hexagons,bend=0", SL_BENCH_TRACKER_140, 0),
	EVENTS("tracks/rectangles/full", "tracks:look=all,cells=rectangles,bend=0",
	       SL_BENCH_SECTORS, 0),
	EVENTS("tracks/hexagons/full", "tracks:look=all,cells=hexagons,bend=0", SL_BENCH_SECTORS,
	       0),
	EVENTS("tracks/hexagons/fit", "tracks:look=all,cells=hexagons,fit=true",
	       SL_BENCH_TRACKER_140, 0),
	UNIT("unit/correct+veto+sparse", "correct:output=photons_i16 " VETO " " SPARSE, SL_BENCH_4M,
	     4),
	UNIT("unit/rings", "rings:look=all", SL_BENCH_RICH_1024, BLOCKS),
	RING("ring-48/persistent", 48, SL_TRIGGER_PERSISTENT, true, false, 0),
	RING("ring-960/persistent", 960, SL_TRIGGER_PERSISTENT, true, false, 0),
	RING("ring-4096/persistent", 4096, SL_TRIGGER_PERSISTENT, true, false, 3),
	{.work = {.name = "ring-4096/persistent/2"},
	 .way = SL_BENCH_GPU_RING,
	 .size = SL_BENCH_500K,
	 .stack = 1,
	 .trigger = SL_TRIGGER_PERSISTENT,
	 .event_bytes = 4096,
	 .buffers = 2,
	 .tagged = true},
	RING("ring-4096/persistent/plain", 4096, SL_TRIGGER_PERSISTENT, false, false, 0),
	RING("ring-4096/persistent/device", 4096, SL_TRIGGER_PERSISTENT, false, true, 0),
	RING("ring-4096/wait", 4096, SL_TRIGGER_WAIT, true, false, 0),
	RING("ring-4096/wait/device", 4096, SL_TRIGGER_WAIT, false, true, 0),
	RING("ring-4096/graph", 4096, SL_TRIGGER_GRAPH, true, false, 0),
	RING("ring-4096/launch", 4096, SL_TRIGGER_LAUNCH, true, false, 0),
	RING("ring-4096/launch/device", 4096, SL_TRIGGER_LAUNCH, false, true, 0),
	CELLS("ring-cells/rectangles/persistent", &rectangles, SL_TRIGGER_PERSISTENT, 4.5),
	CELLS("ring-cells/hexagons/persistent", &hexagons, SL_TRIGGER_PERSISTENT, 4.5),
	CELLS("ring-cells/hexagons-bend/persistent", &bent, SL_TRIGGER_PERSISTENT, 0),
	CELLS("ring-cells/hexagons/wait", &hexagons, SL_TRIGGER_WAIT, 0),
	CELLS("ring-cells/hexagons/graph", &hexagons, SL_TRIGGER_GRAPH, 0),
	CELLS("ring-cells/hexagons/launch", &hexagons, SL_TRIGGER_LAUNCH, 0),
	TRACKS("ring-tracks/rectangles/persistent", &rectangles, SL_TRIGGER_PERSISTENT, 4.5),
	TRACKS("ring-tracks/hexagons/persistent", &hexagons, SL_TRIGGER_PERSISTENT, 4.5),
	TRACKS("ring-tracks/hexagons-bend/persistent", &bent, SL_TRIGGER_PERSISTENT, 0),
	TRACKS("ring-tracks/hexagons/wait", &hexagons, SL_TRIGGER_WAIT, 0),
	TRACKS("ring-tracks/hexagons/graph", &hexagons, SL_TRIGGER_GRAPH, 0),
	TRACKS("ring-tracks/hexagons/launch", &hexagons, SL_TRIGGER_LAUNCH, 0),
};

static const struct sl_platform *const platforms[] = {&sl_platform_cuda, &sl_platform_opencl,
						      &sl_platform_threads};

/* Threads stand in for a device where a ring is looked at; OpenCL has none. */
static bool has(const struct sl_platform *platform, const struct sl_bench_gpu *row)
{
	if (row->way == SL_BENCH_GPU_RING)
		return platform == &sl_platform_cuda ||
		       (platform == &sl_platform_threads && !row->tracks);
	return platform != &sl_platform_threads;
}

/* ---- rows ---- */

/* Whether a platform can be used is found out by the process that measures: a driver that was
 * started in this one would not be of use to that one. */
int sl_bench_gpu_rows(struct sl_bench *bench)
{
	const size_t n = sizeof(rows) / sizeof(rows[0]),
		     m = sizeof(platforms) / sizeof(platforms[0]);

	bench->stages = calloc(1, sizeof(*bench->stages));
	bench->row = calloc(n * m, sizeof(*bench->row));
	if (!bench->stages || !bench->row)
		return -ENOMEM;
	for (size_t p = 0; p < m; p++)
		for (size_t i = 0; i < n; i++) {
			struct sl_bench_row row = {.work = &rows[i].work,
						   .gpu = &rows[i],
						   .platform = platforms[p],
						   .stack = rows[i].stack,
						   .cores = 1,
						   .size = rows[i].size};

			snprintf(row.name, sizeof(row.name), "%s/%s", platforms[p]->name,
				 rows[i].work.name);
			row.latency = rows[i].way == SL_BENCH_GPU_RING;
			if (has(platforms[p], &rows[i]) &&
			    (!bench->o.only[0] || fnmatch(bench->o.only, row.name, 0) == 0))
				bench->row[bench->rows++] = row;
		}
	return 0;
}

int sl_bench_gpu_prepare(struct sl_bench *bench)
{
	for (unsigned i = 0; i < bench->rows; i++) {
		struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_scene *scene = &bench->stages->scene[row->size];
		int err = 0;

		if (!scene->frames && (row->gpu->way != SL_BENCH_GPU_RING || row->gpu->tracks))
			err = row->size <= SL_BENCH_500K ? sl_bench_scene_make(scene, row->size)
							 : sl_bench_events_make(scene, row->size);
		if (err)
			return err;
	}
	return 0;
}

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
	struct sl_device_lanes *lanes;
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
	return sl_device_lane_again(a->lanes, 0);
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
	return scene->pixels * (STACK * 4 + 8);
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
		err = sl_device_kernels(d->device, &sl_kernels_bench, name, 1, &program, &a.kernel);
	if (err)
		return err;
	a.once = row->gpu->way == SL_BENCH_GPU_COPY ? copy_once
		 : row->gpu->way == SL_BENCH_GPU_UP ? up_once
						    : down_once;
	sample->frame_bytes = row->gpu->way == SL_BENCH_GPU_COPY ? bytes / STACK : bytes;
	return measure(bench, &a, bytes, sample);
}

/* Photons that are there already. */
static int give_images(struct bench_device *d, struct sl_device_lanes *lanes,
		       const struct sl_bench_subject *s)
{
	uint64_t bytes = s->scene->pixels * sizeof(int16_t);
	int err = 0;

	for (uint32_t f = 0; f < s->row->stack && !err; f++)
		err = d->platform->write(lanes->in, &lanes->lane[0].result[0], f * bytes,
					 s->line[f]->result[0].host, bytes, 1, bytes);
	return err ? err : finish(d, lanes->in);
}

static int measure_kernels(const struct sl_bench *bench, const struct sl_bench_row *row,
			   struct bench_device *d, struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	struct sl_bench_subject *s = calloc(1, sizeof(*s));
	struct sl_device_lanes *lanes = calloc(1, sizeof(*lanes));
	struct again a = {.device = d, .once = kernels_once, .lanes = lanes};
	int err = s && lanes ? sl_bench_subject_open(s, row, scene) : -ENOMEM;

	if (err)
		return err;
	for (unsigned i = 0; i < s->build.chain.stages; i++)
		if (!s->build.chain.stage[i].ops->twin) {
			sl_error("stage '%s' runs on the CPU only",
				 s->build.chain.stage[i].ops->name);
			return -ENODEV;
		}
	lanes->device = d->device;
	lanes->chain = &s->build.chain;
	err = sl_device_lanes_open(lanes, 1, false);
	if (err)
		return err;
	a.queue = lanes->work[0];
	sl_verdicts_reset(&s->batch[0]);
	s->batch[0].frames = row->stack;
	if (!strncmp(row->work->chain, "image ", 6))
		err = give_images(d, lanes, s);
	if (!err)
		err = sl_device_lane_begin(lanes, 0, &s->batch[0]);
	if (!err)
		err = finish(d, lanes->lane[0].out);
	sample->frame_bytes = scene->geometry.modules * scene->geometry.module_bytes;
	sample->frame_items = scene->items ? scene->items : 1;
	sample->item_parts = scene->parts;
	if (!err)
		err = measure(bench, &a, row->stack * sample->frame_bytes, sample);
	if (!err)
		err = sl_device_lane_judged(lanes, 0);
	if (!err)
		err = finish(d, lanes->lane[0].out);
	if (err || scene->items)
		return err;
	return sl_bench_subject_check(s, row->stack, bench->stages, sample);
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
	err = row->gpu->way == SL_BENCH_GPU_KERNELS ? measure_kernels(bench, row, &d, sample)
	      : row->gpu->way == SL_BENCH_GPU_UNIT  ? sl_bench_gpu_unit(bench, row, sample)
	      : row->gpu->way == SL_BENCH_GPU_RING ? sl_bench_gpu_ring(bench, row, d.device, sample)
						   : measure_memory(bench, row, &d, sample);
	if (err && err != -ENODEV && err != -EBADMSG)
		sl_error("%s", d.platform->problem(d.device));
	return err;
}
