/* ring.c - sluice bench gpu: how long an event takes from the host's memory to the device
 * and its result back, one event at a time, by a kernel that polls.
 *
 *   PLATFORM/ring-4096/persistent           4 KiB in tagged chunks
 *   PLATFORM/ring-4096/persistent/2         the same in two buffers, which stay in caches
 *   PLATFORM/ring-4096/persistent/next      the same, each as soon as the one before is through;
 *                                           the others come at random moments
 *   PLATFORM/ring-4096/persistent/plain     data, then a word, in pinned memory
 *   PLATFORM/ring-4096/persistent/device    the same in the device's memory, by copies
 *   PLATFORM/ring-cells/CELLS/persistent    160 stubs of a sector: cells with enough layers
 *   PLATFORM/ring-tracks/CELLS/persistent   the same, and duplicates taken out; compared with the
 *                                           scalar program of `sluice bench trigger`
 *   PLATFORM/ring-cells/CELLS/alone         without a ring: what the kernel takes (alone.c)
 *
 * Everything is the process's own, which ends after this: not all is given back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"
#include "core/device.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/tracks/kernel.h"
#include "stage/tracks/maths.h"
#include "stage/tracks/stage.h"

/* CELL_THREADS: what the kernels of cells are made for. */
enum {
	CELL_BYTES = 3,
	RESULT_CHUNKS = 16,
	CELLS = RESULT_CHUNKS * SL_DEVICE_RING_CHUNK / CELL_BYTES
};
enum { EVENTS = 20000, WARM = 500, FEW = 20, BUFFERS = 16, RESULT_MOST = 1024, CELL_THREADS = 672 };
enum { STRANGE = 18, STUB_IS_VALID = 1 }; /* a bit of the first byte of a stub */
enum { LONGEST_PAUSE_NS = 8000 };	  /* some looks */
#define SHORT_NS 200000000u /* to see that it works, not how fast: few events will do */

/* What is done, and how it is known to be right. */
struct work {
	struct sl_device_ring *ring;
	uint32_t bytes, result_bytes;
	/* The event for turn n; what must come back. */
	const void *(*event)(struct work *w, uint64_t n);
	bool (*is_right)(const struct work *w, uint64_t n,
			 const struct sl_device_ring_completion *completion, const void *result);
	uint32_t *words; /* of `weigh` */
	const struct sl_bench_scene *scene;
	struct sl_scalar_sector *found;	     /* of `tracks`: what the scalar program finds */
	uint8_t (*cells)[CELLS][CELL_BYTES]; /* of `cells`, the same */
	uint64_t sectors;
	uint8_t strange[STRANGE][SL_STUBS * SL_STUB_BYTES];
};

static const void *weigh_event(struct work *w, uint64_t n)
{
	w->words[0] = UINT32_MAX - (uint32_t)n; /* all are kept */
	return w->words;
}

static bool weigh_is_right(const struct work *w, uint64_t n,
			   const struct sl_device_ring_completion *completion, const void *result)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < w->bytes / 4; i++)
		sum += w->words[i];
	return completion->keep && completion->score == sum &&
	       memcmp(result, w->words, w->result_bytes) == 0;
}

/* The first events are strange ones, then come those of the scene. Out of a ring these are not
 * timed; alone they are some of thousands. */
static uint64_t sector_of(const struct work *w, uint64_t n)
{
	return n < STRANGE ? w->sectors + n : n % w->sectors;
}

static const void *tracks_event(struct work *w, uint64_t n)
{
	return n < STRANGE ? w->strange[n] : sl_bench_item(w->scene, n % w->sectors);
}

static uint32_t tracks_score(const struct work *w, uint64_t n)
{
	const struct sl_scalar_sector *found = &w->found[sector_of(w, n)];

	return found->tracks | found->cells << 16;
}

static uint32_t cells_score(const struct work *w, uint64_t n)
{
	return w->found[sector_of(w, n)].cells;
}

static bool tracks_are_right(const struct work *w, uint64_t n,
			     const struct sl_device_ring_completion *completion, const void *result)
{
	return completion->score == tracks_score(w, n);
}

static bool cells_are_right(const struct work *w, uint64_t n,
			    const struct sl_device_ring_completion *completion, const void *result)
{
	uint32_t came = completion->score < CELLS ? completion->score : CELLS;

	return completion->score == cells_score(w, n) && completion->bytes == CELL_BYTES * came &&
	       memcmp(result, w->cells[sector_of(w, n)], completion->bytes) == 0;
}

/* A source has what it is about to write at hand. */
static void touch(const void *event, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 64)
		(void)*((const volatile char *)event + i);
}

/* Events come when they like. One that came as soon as the one before was through would find the
 * device at the same point of its looks each time. */
static void pause_for_a_while(uint64_t *random)
{
	uint64_t until;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	until = sl_clock_ns() + (*random >> 33) % LONGEST_PAUSE_NS;
	while (sl_clock_ns() < until)
		;
}

/* One event there and back; ns, or -errno. */
static int64_t round_trip(struct work *w, uint64_t n)
{
	struct sl_device_ring_completion completion;
	const void *event = w->event(w, n);
	char result[RESULT_MOST];
	uint64_t start;
	int got, err;

	touch(event, w->bytes);
	start = sl_clock_ns();
	err = sl_device_ring_publish(w->ring, n, event, w->bytes);
	if (err)
		return err;
	while (!(got = sl_device_ring_take(w->ring, &completion)))
		;
	if (got < 0)
		return got;
	if (completion.keep) {
		got = sl_device_ring_result(w->ring, &completion, result, sizeof(result));
		if (got < 0)
			return got;
	}
	start = sl_clock_ns() - start;
	if (completion.outcome != SL_DEVICE_RING_GOOD || !w->is_right(w, n, &completion, result)) {
		sl_error("event %llu came back as something else: outcome %d, %u bytes, score %u",
			 (unsigned long long)n, completion.outcome, completion.bytes,
			 completion.score);
		return -EBADMSG;
	}
	err = sl_device_ring_release(w->ring);
	return err ? err : (int64_t)start;
}

static int measure(struct work *w, uint64_t most_ns, bool at_once, struct sl_bench_sample *sample)
{
	uint32_t *ns = calloc(EVENTS, sizeof(*ns));
	uint64_t begun = sl_clock_ns(), warm = most_ns < SHORT_NS ? FEW : WARM, random = 1, sum = 0;
	int64_t took = ns ? 0 : -ENOMEM;
	size_t kept = 0;

	for (uint64_t n = 0; took >= 0 && kept < EVENTS; n++) {
		if (!at_once)
			pause_for_a_while(&random);
		took = round_trip(w, n);
		if (n >= warm && took >= 0) {
			ns[kept++] = (uint32_t)took;
			sum += (uint64_t)took;
		}
		if (kept > FEW && sl_clock_ns() - begun > most_ns)
			break;
	}
	if (took >= 0) {
		sl_bench_quantiles(ns, kept, sample->quantile_us);
		sample->count = kept;
		sample->bytes = kept * w->bytes;
		sample->frame_bytes = w->bytes;
		sample->GB_per_s = (double)sample->bytes / (double)sum;
	}
	free(ns);
	return took < 0 ? (int)took : 0;
}

static int run(const struct sl_bench *bench, struct sl_device *device, const struct sl_bench_gpu *g,
	       struct work *w, const struct sl_device_ring_work *work, uint32_t threads,
	       struct sl_bench_sample *sample)
{
	const struct sl_device_ring_terms terms = {
		.buffers = g->buffers ? g->buffers : BUFFERS,
		.event_bytes = w->bytes,
		.result_bytes = w->result_bytes,
		.tagged = g->tagged,
		.on_device = g->on_device,
		.groups = 1,
		.threads = threads,
		.timeout_ns = 30000000000u, /* an emulated device on a busy host takes its time */
	};
	struct sl_device_ring *ring = calloc(1, sizeof(*ring));
	int err = ring ? sl_device_ring_open(ring, device, &terms, work) : -ENOMEM, ended;

	w->ring = ring;
	if (!err)
		err = measure(w, (uint64_t)(4e9 * bench->o.seconds), g->at_once, sample);
	if (!ring)
		return err;
	ended = sl_device_ring_end(ring);
	sl_device_ring_close(ring);
	free(ring);
	return err ? err : ended;
}

static int run_weigh(const struct sl_bench *bench, const struct sl_bench_gpu *g,
		     struct sl_device *device, struct sl_bench_sample *sample)
{
	static const uint32_t threshold = 1;
	const struct sl_device_ring_work work = {
		.kernels = &sl_kernels_weigh,
		.kernel = g->tagged ? "weigh_tagged_forever" : "weigh_forever",
		.argument = {SL_ARG(threshold)},
		.arguments = 1,
	};
	struct work w = {.bytes = g->event_bytes,
			 .result_bytes = 48,
			 .event = weigh_event,
			 .is_right = weigh_is_right};

	w.words = aligned_alloc(64, (w.bytes + 63) / 64 * 64);
	if (!w.words)
		return -ENOMEM;
	for (uint32_t i = 0; i < w.bytes / 4; i++)
		w.words[i] = i * 2654435761u;
	/* A thread has a chunk. */
	return run(bench, device, g, &w, &work, (w.bytes / SL_DEVICE_RING_CHUNK + 33) / 32 * 32,
		   sample);
}

static const void *alone_event(void *arg, uint64_t n)
{
	return tracks_event(arg, n);
}

static bool alone_is_right(void *arg, uint64_t n,
			   const struct sl_device_ring_completion *completion, const void *result)
{
	const struct work *w = arg;

	return w->is_right(w, n, completion, result);
}

static int run_alone(const struct sl_bench *bench, struct sl_device *device,
		     const struct sl_bench_gpu *g, struct work *w,
		     const struct sl_device_ring_work *work, struct sl_bench_sample *sample)
{
	const struct sl_bench_alone terms = {
		.work = work,
		.threads = g->cells ? CELL_THREADS : SL_STUBS,
		.bytes = w->bytes,
		.result_bytes = w->result_bytes,
		.events = w->sectors,
		.arg = w,
		.event = alone_event,
		.is_right = alone_is_right,
	};

	return sl_bench_gpu_alone(device, &terms, (uint64_t)(4e9 * bench->o.seconds), sample);
}

/* What a front end may send: nothing; anything; stubs behind one that is none. */
static void make_strange(struct work *w)
{
	/* Of sectors that have one: where words of bits, and chunks, begin and end. */
	static const uint8_t hole[] = {0, 1, 31, 62, 63, 64, 126, 127, 158, 159};
	const uint32_t holes = sizeof(hole) / sizeof(hole[0]);
	uint64_t random = 1;

	for (uint32_t k = 1; k < STRANGE; k++) {
		uint8_t *stub = w->strange[k];

		if (k <= holes) {
			memcpy(stub, sl_bench_item(w->scene, k % w->sectors), w->bytes);
			stub[hole[k - 1] * SL_STUB_BYTES] &= (uint8_t)~STUB_IS_VALID;
			continue;
		}
		for (uint32_t i = 0; i < w->bytes; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			stub[i] = (uint8_t)(random >> 56);
		}
		for (uint32_t i = 0; k % 2 && i < SL_STUBS; i++)
			stub[i * SL_STUB_BYTES] |= STUB_IS_VALID;
	}
}

static int run_tracks(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_device *device, struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];
	const struct sl_bench_gpu *g = row->gpu;
	struct sl_device_ring_work work;
	struct sl_tracks *stage = calloc(1, sizeof(*stage));
	struct sl_kernel_tracks_plan *plan = calloc(1, sizeof(*plan));
	struct sl_kernel_tracks rules;
	struct sl_device_memory plan_table, track;
	struct sl_device_queue *queue;
	struct work w = {.bytes = SL_STUBS * SL_STUB_BYTES,
			 .result_bytes = RESULT_CHUNKS * SL_DEVICE_RING_CHUNK,
			 .event = tracks_event,
			 .is_right = g->cells ? cells_are_right : tracks_are_right,
			 .scene = scene};
	int err;

	w.sectors = (uint64_t)scene->frames * scene->geometry.modules * scene->geometry.rows;
	w.found = calloc(w.sectors + STRANGE, sizeof(*w.found));
	w.cells = calloc(w.sectors + STRANGE, sizeof(*w.cells));
	if (!stage || !plan || !w.found || !w.cells)
		return -ENOMEM;
	stage->events = stage->sectors = stage->modules = 1;
	sl_bench_tracks_plan(g->tracks, &stage->plan);
	sl_tracks_for_kernels(stage, &rules, plan);
	make_strange(&w);
	for (uint64_t i = 0; i < w.sectors + STRANGE; i++) {
		const uint8_t *sector = i < w.sectors ? sl_bench_item(scene, i)
						      : w.strange[i - w.sectors];

		w.found[i] = sl_scalar_sector(&stage->plan, sector);
		sl_scalar_cells(&stage->plan, sector, w.cells[i], CELLS);
	}
	err = device->platform->queue_open(device, &queue);
	if (!err)
		err = sl_device_table(device, queue, plan, sizeof(*plan), &plan_table);
	if (!err)
		err = device->platform->memory_open(
			device, rules.limit * sizeof(struct sl_kernel_track), &track);
	if (!err)
		err = sl_device_finish(device, queue);
	if (err)
		return err;
	work = (struct sl_device_ring_work){
		.kernels = &sl_kernels_tracks_ring,
		.kernel = g->cells ? "tracks_cells_forever" : "tracks_ring_forever",
		.argument = {SL_ARG(rules), SL_ARG_MEMORY(&plan_table), SL_ARG_MEMORY(&track)},
		.arguments = 3};
	return g->alone ? run_alone(bench, device, g, &w, &work, sample)
			: run(bench, device, g, &w, &work, g->cells ? CELL_THREADS : SL_STUBS,
			      sample);
}

int sl_bench_gpu_ring(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_device *device, struct sl_bench_sample *sample)
{
	return row->gpu->tracks ? run_tracks(bench, row, device, sample)
				: run_weigh(bench, row->gpu, device, sample);
}
