/* assemble.c - small events through ring and assembler on one core: blocks are put into their cells
 * as a link does it, frames are taken out as the dispatcher does it, and cells go back. Making the
 * record, which is a front end's work, is part of it; packets are not. */
#include "base/bell.h"
#include "bench/peer/peer.h"
#include "receiver/assemble/assembler.h"

#define USAGE "bench_assemble sequence|frame|timestamp MODULES BYTES EVENTS"

enum { SLOTS = 64, BURST = 16 }; /* frames that are under way, as when a socket gives a batch */

struct bench {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_assembler assembler;
	struct sl_frame frame;
	struct sl_view view[SL_ASSEMBLER_MODULES];
	uint8_t pixels[1 << 16];
};

static void open_bench(struct bench *b, const char *by, uint32_t modules, uint64_t bytes)
{
	struct sl_assembler_options options = {
		.late_frames = 8,
		.late_timeout_ns = UINT64_MAX,
		.dtype = SL_U8,
		.rows = 1,
		.columns = (uint32_t)bytes,
		.align = {.by = !strcmp(by, "frame")	   ? SL_ALIGN_FRAME
				: !strcmp(by, "timestamp") ? SL_ALIGN_TIMESTAMP
							   : SL_ALIGN_SEQUENCE,
			  .window = !strcmp(by, "timestamp") ? 10 : 0},
	};

	b->frame.view = b->view;
	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, modules, bytes),
			   &b->region) ||
	    sl_ring_init(&b->ring, &b->region, &b->bell, SLOTS, modules, bytes))
		bench_fail("ring");
	sl_assembler_init(&b->assembler, &b->ring, &options);
	sl_ring_open(&b->ring, UINT64_MAX);
}

/* One module-frame arrives: an event. */
static void put(struct bench *b, uint64_t k, uint32_t module, uint64_t now_ns)
{
	uint64_t bytes = b->ring.pixel_bytes;
	uint8_t *block = sl_ring_block(&b->ring, k, module);
	struct sl_record record = {.sequence = k,
				   .frame = k,
				   .timestamp = 1000 * k + module % 8,
				   .bytes = (uint32_t)bytes,
				   .items = 1,
				   .packets = 1,
				   .module = (uint16_t)module};

	if (sl_ring_may_place(&b->ring, k, module) != SL_PLACE_OK)
		abort();
	memcpy(block, b->pixels, bytes);
	sl_record_seal(&record);
	memcpy(block + bytes, &record, sizeof(record));
	sl_ring_progress(&b->ring, k, module, 1);
	sl_ring_reach(&b->ring, k, module);
	sl_ring_raise(&b->ring, k, module, now_ns);
}

static uint64_t take(struct bench *b, uint64_t now_ns)
{
	uint64_t frames = 0;

	for (; sl_assembler_next(&b->assembler, now_ns, &b->frame) > 0; frames++) {
		if (!(b->frame.flags & SL_FRAME_COMPLETE))
			abort();
		for (uint32_t m = 0; m < b->frame.views; m++)
			sl_ring_release(&b->ring, b->view[m].sequence, m);
	}
	sl_ring_open(&b->ring, UINT64_MAX);
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
	if (modules > SL_ASSEMBLER_MODULES || bytes > sizeof(bench.pixels))
		bench_usage(USAGE);
	open_bench(&bench, argv[1], (uint32_t)modules, bytes);
	start = bench_now_s();
	while (frames * modules < events) {
		uint64_t now_ns = bench_now_ns();

		sl_ring_enter(&bench.ring, 0);
		for (unsigned i = 0; i < BURST; i++, k++)
			for (uint32_t m = 0; m < modules; m++)
				put(&bench, k, m, now_ns);
		sl_ring_leave(&bench.ring, 0);
		frames += take(&bench, now_ns);
	}
	seconds = bench_now_s() - start;
	printf("{\"events_per_s\": %.1f, \"frames_per_s\": %.1f, \"seconds\": %.6f}\n",
	       (double)(frames * modules) / seconds, (double)frames / seconds, seconds);
	return 0;
}
