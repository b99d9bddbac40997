/* assemble.c - small events through ring and assembler on one core: blocks are put into their cells
 * as a link does it, frames are taken out as the dispatcher does it, and cells go back. Making the
 * record, which is a front end's work, is part of it; packets are not. With two detectors each has
 * half of the modules and a ring of its own, and the join puts their parts together by number. */
#include "base/bell.h"
#include "bench/peer/peer.h"
#include "receiver/assemble/assembler.h"
#include "receiver/assemble/join.h"

#define USAGE "bench_assemble sequence|frame|timestamp|joined MODULES BYTES EVENTS"

enum { SLOTS = 64, BURST = 16 }; /* frames that are under way, as when a socket gives a batch */

enum { DETECTORS = 2 };

struct bench {
	struct detector {
		struct sl_region region;
		struct sl_ring ring;
		struct sl_assembler assembler;
	} detector[DETECTORS];
	uint32_t detectors;
	struct sl_bell bell;
	struct sl_join join;
	struct sl_frame frame, part[DETECTORS];
	struct sl_view view[SL_ASSEMBLER_MODULES];
	uint8_t pixels[1 << 16];
};

static void open_detector(struct bench *b, const char *by, uint32_t first, uint32_t modules,
			  uint64_t bytes)
{
	struct detector *d = &b->detector[b->detectors++];
	bool frame = !strcmp(by, "frame") || !strcmp(by, "joined");
	struct sl_assembler_options options = {
		.late_frames = 8,
		.late_timeout_ns = UINT64_MAX,
		.dtype = SL_U8,
		.rows = 1,
		.columns = (uint32_t)bytes,
		.first_module = first,
		.align = {.by = frame			   ? SL_ALIGN_FRAME
				: !strcmp(by, "timestamp") ? SL_ALIGN_TIMESTAMP
							   : SL_ALIGN_SEQUENCE,
			  .window = !strcmp(by, "timestamp") ? 10 : 0},
	};

	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, modules, bytes),
			   &d->region) ||
	    sl_ring_init(&d->ring, &d->region, &b->bell, SLOTS, modules, bytes))
		bench_fail("ring");
	sl_assembler_init(&d->assembler, &d->ring, &options);
	sl_ring_open(&d->ring, UINT64_MAX);
	if (sl_join_add(&b->join, &d->assembler, &(struct sl_join_options){.by = SL_ALIGN_FRAME}))
		bench_fail("join");
}

static void open_bench(struct bench *b, const char *by, uint32_t modules, uint64_t bytes)
{
	b->frame.view = b->view;
	sl_join_init(&b->join, 0, false);
	if (strcmp(by, "joined")) {
		open_detector(b, by, 0, modules, bytes);
		return;
	}
	open_detector(b, by, 0, modules / 2, bytes);
	open_detector(b, by, modules / 2, modules - modules / 2, bytes);
}

/* One module-frame arrives: an event. */
static void put(struct bench *b, struct sl_ring *ring, uint64_t k, uint32_t module, uint64_t now_ns)
{
	uint64_t bytes = ring->pixel_bytes;
	uint8_t *block = sl_ring_block(ring, k, module);
	struct sl_record record = {.sequence = k,
				   .frame = k,
				   .timestamp = 1000 * k + module % 8,
				   .bytes = (uint32_t)bytes,
				   .items = 1,
				   .packets = 1,
				   .module = (uint16_t)module};

	if (sl_ring_may_place(ring, k, module) != SL_PLACE_OK)
		abort();
	memcpy(block, b->pixels, bytes);
	sl_record_seal(&record);
	memcpy(block + bytes, &record, sizeof(record));
	sl_ring_progress(ring, k, module, 1);
	sl_ring_reach(ring, k, module);
	sl_ring_raise(ring, k, module, now_ns);
}

/* Every detector's modules, burst by burst. */
static void put_all(struct bench *b, uint64_t k, uint64_t now_ns)
{
	for (uint32_t d = 0; d < b->detectors; d++) {
		struct sl_ring *ring = &b->detector[d].ring;

		sl_ring_enter(ring, 0);
		for (unsigned i = 0; i < BURST; i++)
			for (uint32_t m = 0; m < ring->modules; m++)
				put(b, ring, k + i, m, now_ns);
		sl_ring_leave(ring, 0);
	}
}

static int next(struct bench *b, uint64_t now_ns)
{
	if (b->detectors == 1)
		return sl_assembler_next(&b->detector[0].assembler, now_ns, &b->frame);
	return sl_join_next(&b->join, now_ns, &b->frame, b->part);
}

static uint64_t take(struct bench *b, uint64_t now_ns)
{
	uint64_t frames = 0;

	for (; next(b, now_ns) > 0; frames++) {
		const struct sl_view *view = b->view;

		if (!(b->frame.flags & SL_FRAME_COMPLETE))
			abort();
		for (uint32_t d = 0; d < b->detectors; d++)
			for (uint32_t m = 0; m < b->detector[d].ring.modules; m++, view++)
				sl_ring_release(&b->detector[d].ring, view->sequence, m);
	}
	for (uint32_t d = 0; d < b->detectors; d++)
		sl_ring_open(&b->detector[d].ring, UINT64_MAX);
	return frames;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	uint64_t modules, bytes, events, frames = 0, k = 0;
	double start, seconds;

	if (argc != 5)
		bench_usage(USAGE);
	modules = bench_number(argv[2], USAGE);
	bytes = bench_number(argv[3], USAGE);
	events = bench_number(argv[4], USAGE);
	if (!modules || modules > SL_ASSEMBLER_MODULES || bytes > sizeof(bench.pixels) ||
	    (!strcmp(argv[1], "joined") && modules < 2))
		bench_usage(USAGE);
	open_bench(&bench, argv[1], (uint32_t)modules, bytes);
	start = bench_now_s();
	for (; frames * modules < events; k += BURST) {
		uint64_t now_ns = bench_now_ns();

		put_all(&bench, k, now_ns);
		frames += take(&bench, now_ns);
	}
	seconds = bench_now_s() - start;
	printf("{\"events_per_s\": %.1f, \"frames_per_s\": %.1f, \"seconds\": %.6f}\n",
	       (double)(frames * modules) / seconds, (double)frames / seconds, seconds);
	return 0;
}
