/* selftest.c - the core of a front end on a bare processor: an ROI with line messages and a pitch,
 * and whole frames by packets; the digest of all packets must be the one that the build host got
 * (DIGEST, from the same program). Without DIGEST it prints it. */
#include "frontend/sender.h"

#include <string.h>

#ifdef DIGEST
void *memcpy(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
}

void *memset(void *to, int value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = (uint8_t)value;
	return to;
}
#endif

enum { ROWS = 16, COLUMNS = 64, BLOCKS = 3 };

static uint8_t pixels[ROWS * COLUMNS * 2];
static struct sl_frontend frontend;

static struct sl_plan plan_for(const struct sl_transfer *t, uint16_t message, uint64_t pitch)
{
	struct sl_plan plan = {
		.version = SL_PLAN_VERSION,
		.service = SL_SERVICE_UC,
		.operation = SL_OPERATION_WRITE,
		.message = message,
		.pmtu = 256,
		.crc = 1,
		.qpn = 0x1234,
		.rkey = 0x56789abc,
		.first_psn = 0xfffff0,
		.slots = 5,
		.base = UINT64_C(0x123400000000),
		.stride = 0x9000,
		.line_pitch = pitch,
		.source = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = 50000},
		.dest = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 2}, .port = SL_ROCE_UDP_PORT},
	};
	struct sl_offer offer;

	sl_transfer_describe(t, &offer);
	plan.block_bytes = offer.block_bytes;
	plan.lines = offer.lines;
	plan.line_bytes = offer.line_bytes;
	plan.record_at = offer.lines * pitch;
	plan.packets = sl_plan_packets(&plan);
	return plan;
}

static uint32_t add(uint32_t digest, const struct sl_sender_packet *p)
{
	digest = sl_roce_crc32_portable(digest, p->header, p->header_bytes);
	for (uint32_t i = 0; i < p->pieces; i++)
		digest = sl_roce_crc32_portable(digest, p->piece[i].data, p->piece[i].bytes);
	return sl_roce_crc32_portable(digest, p->trailer, p->trailer_bytes);
}

static uint32_t run(void)
{
	static const struct sl_frame_stamp stamp = {7, 8, 9, 1, 0, 0};
	static struct sl_sender_packet packet;
	struct sl_transfer t = {.every = 1, .stack = 1, .part = SL_PART_PIXELS | SL_PART_RECORD};
	struct sl_plan plan;
	uint32_t digest = 0;

	for (uint32_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 7 + i / 256);
	t.rectangle = sl_rectangle_of(0, 0, ROWS, COLUMNS, COLUMNS, 2);
	plan = plan_for(&t, SL_MESSAGE_PACKET, 0);
	if (sl_sender_init(&frontend.sender[0], &t, &plan, NULL, NULL))
		return 1;
	t.every = 2;
	t.phase = 1;
	t.rectangle = sl_rectangle_of(3, 5, 8, 30, COLUMNS, 2);
	plan = plan_for(&t, SL_MESSAGE_LINE, 128);
	if (sl_sender_init(&frontend.sender[1], &t, &plan, NULL, NULL))
		return 2;
	frontend.senders = 2;
	for (uint64_t k = 0; k < BLOCKS; k++) {
		if (sl_frontend_frame(&frontend, k, pixels, &stamp))
			return 3;
		while (sl_frontend_next(&frontend, &packet))
			digest = add(digest, &packet);
	}
	return digest;
}

#ifdef DIGEST
static void leave(int status)
{
#ifdef __riscv
	register long number __asm__("a7") = 93, a0 __asm__("a0") = status;

	__asm__ volatile("ecall" : : "r"(number), "r"(a0));
#else
	register long number __asm__("r7") = 1, r0 __asm__("r0") = status;

	__asm__ volatile("svc 0" : : "r"(number), "r"(r0));
#endif
	for (;;)
		;
}

void _start(void)
{
	leave(run() != DIGEST);
}
#else
#include <stdio.h>

int main(void)
{
	printf("0x%08x\n", run());
	return 0;
}
#endif
