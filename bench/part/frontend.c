/* frontend.c - what a front end computes: descriptors alone, then packets with headers, then with
 * their ICRC. Pixels are in the cache and are not copied; bytes are those that are described, so
 * that the rates stand beside those of links. */
#include "base/crc.h"
#include "bench/peer/peer.h"
#include "frontend/sender.h"

#define USAGE "bench_frontend packet|line|roi|module|headers|isal|portable PACKETS"

enum { ROWS = 512, COLUMNS = 1024, PIXEL = 2, PMTU = 4096, WRITES = 1024 };

static uint8_t pixels[ROWS * COLUMNS * PIXEL];
static struct sl_write writes[WRITES];

/* A checksum that is not computed: an FPGA has a circuit for it. */
static uint32_t no_crc(uint32_t crc, const void *data, size_t bytes)
{
	(void)data;
	(void)bytes;
	return crc;
}

struct task {
	const char *mode;
	struct sl_transfer transfer;
	uint16_t message;
	uint64_t pitch;
	bool packets;
	sl_roce_crc32 *crc32;
};

static struct sl_plan plan_for(const struct task *task)
{
	struct sl_offer offer;
	struct sl_plan plan = {
		.version = SL_PLAN_VERSION,
		.service = SL_SERVICE_UC,
		.operation = SL_OPERATION_WRITE,
		.message = task->message,
		.pmtu = PMTU,
		.qpn = 0x1234,
		.rkey = 0x5678,
		.first_psn = 0x9abcde,
		.slots = 31,
		.base = UINT64_C(0x123400000000),
		.stride = 1 << 21,
		.line_pitch = task->pitch,
		.source = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = 50000},
		.dest = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 2}, .port = SL_ROCE_UDP_PORT},
	};

	sl_transfer_describe(&task->transfer, &offer);
	plan.block_bytes = offer.block_bytes;
	plan.lines = offer.lines;
	plan.line_bytes = offer.line_bytes;
	plan.record_at = offer.lines * task->pitch;
	plan.packets = sl_plan_packets(&plan);
	return plan;
}

struct done {
	uint64_t packets, descriptors, bytes, sum; /* sum: so that nothing is left out as unused */
};

/* Not inlined, and with names: callgrind counts in these two. */
void bench_describe(const struct sl_plan *plan, const struct sl_transfer *transfer, uint64_t blocks,
		    struct done *done);
void bench_packets(struct sl_sender *sender, uint64_t blocks, struct done *done);

__attribute__((noinline)) void bench_describe(const struct sl_plan *plan,
					      const struct sl_transfer *transfer, uint64_t blocks,
					      struct done *done)
{
	static struct sl_record record;
	uint32_t count = sl_descriptor_count(plan);

	for (uint64_t k = 0; k < blocks; k++) {
		const void *frame = pixels;
		struct sl_from source;

		sl_transfer_source(transfer, &frame, &frame, &record, &source);
		sl_descriptor_fill(plan, k, &source, writes);
		done->sum += writes[count - 1].va;
	}
	done->descriptors = blocks * count;
	done->packets = blocks * plan->packets;
	done->bytes = blocks * plan->block_bytes;
}

__attribute__((noinline)) void bench_packets(struct sl_sender *sender, uint64_t blocks,
					     struct done *done)
{
	const struct sl_frame_stamp stamp = {0};
	struct sl_sender_packet packet;

	for (uint64_t k = 0; k < blocks; k++) {
		if (sl_sender_frame(sender, k, pixels, &stamp) != 1)
			abort();
		while (sl_sender_next(sender, &packet)) {
			done->packets++;
			done->sum += packet.header[11] + packet.trailer[0];
		}
	}
	done->descriptors = blocks * sl_descriptor_count(&sender->plan);
	done->bytes = blocks * sender->plan.block_bytes;
}

static const struct sl_transfer whole = {
	.every = 1,
	.stack = 1,
	.part = SL_PART_PIXELS | SL_PART_RECORD,
	.rectangle = {0, COLUMNS *PIXEL, ROWS, COLUMNS *PIXEL},
};

static const struct sl_transfer roi = {
	/* half as wide and high, from the middle */
	.every = 1,
	.stack = 1,
	.part = SL_PART_PIXELS | SL_PART_RECORD,
	.rectangle = {ROWS / 4 * COLUMNS * PIXEL + COLUMNS / 4 * PIXEL, COLUMNS *PIXEL, ROWS / 2,
		      COLUMNS / 2 * PIXEL},
};

int main(int argc, char **argv)
{
	const struct task tasks[] = {
		{"packet", whole, SL_MESSAGE_PACKET, 0, false, NULL},
		{"line", whole, SL_MESSAGE_LINE, 4096, false, NULL},
		{"roi", roi, SL_MESSAGE_PACKET, 0, false, NULL},
		{"module", whole, SL_MESSAGE_MODULE, 0, false, NULL},
		{"headers", whole, SL_MESSAGE_PACKET, 0, true, no_crc},
		{"isal", whole, SL_MESSAGE_PACKET, 0, true, sl_crc32},
		{"portable", whole, SL_MESSAGE_PACKET, 0, true, NULL},
	};
	const struct task *task = NULL;
	static struct sl_sender sender;
	struct done done = {0};
	struct sl_plan plan;
	uint64_t blocks;
	double start, seconds;

	for (size_t i = 0; argc == 3 && i < sizeof(tasks) / sizeof(*tasks); i++)
		if (!strcmp(argv[1], tasks[i].mode))
			task = &tasks[i];
	if (!task)
		bench_usage(USAGE);
	memset(pixels, 0x5a, sizeof(pixels));
	plan = plan_for(task);
	blocks = (bench_number(argv[2], USAGE) + plan.packets - 1) / plan.packets;
	if (task->packets &&
	    sl_sender_init(&sender, &task->transfer, &plan, task->crc32, sl_crc32c))
		bench_fail("sl_sender_init");
	start = bench_now_s();
	if (task->packets)
		bench_packets(&sender, blocks, &done);
	else
		bench_describe(&plan, &task->transfer, blocks, &done);
	seconds = bench_now_s() - start;
	printf("{\"GB_per_s\": %.6f, \"packets_per_s\": %.1f, \"descriptors_per_s\": %.1f, "
	       "\"packets\": %llu, \"descriptors\": %llu, \"seconds\": %.6f, \"sum\": %llu}\n",
	       1e-9 * (double)done.bytes / seconds, (double)done.packets / seconds,
	       (double)done.descriptors / seconds, (unsigned long long)done.packets,
	       (unsigned long long)done.descriptors, seconds, (unsigned long long)done.sum);
	return 0;
}
