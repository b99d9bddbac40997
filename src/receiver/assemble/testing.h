/* testing.h - for tests of the assembler: a ring of two small modules, all slots open and poisoned.
 * Pixels, records and times are functions of sequence and module. */
#ifndef SL_RECEIVER_ASSEMBLE_TESTING_H
#define SL_RECEIVER_ASSEMBLE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bell.h"
#include "receiver/assemble/assembler.h"

enum {
	SLOTS = 8,
	MODULES = 2,
	ROWS = 25,
	COLUMNS = 10,
	PIXEL_BYTES = ROWS * COLUMNS * 2,
	PACKETS = 4,
	LATE = 3,
	TIMEOUT_NS = 1000,
	FIRST_FRAME = 5000,
};

struct fixture {
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_assembler a;
	struct sl_view view[MODULES];
	struct sl_frame frame;
};

static inline int setup(void **state)
{
	const struct sl_assembler_options options = {
		.late_frames = LATE,
		.late_timeout_ns = TIMEOUT_NS,
		.first_frame = FIRST_FRAME,
		.frame_step = 1,
		.dtype = SL_U16,
		.rows = ROWS,
		.columns = COLUMNS,
	};
	static struct fixture fixture;
	struct fixture *f = &fixture;

	memset(f, 0, sizeof(*f));
	f->frame.view = f->view;
	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, MODULES, PIXEL_BYTES),
			   &f->region))
		return -1;
	sl_region_poison(&f->region);
	if (sl_ring_init(&f->ring, &f->region, &f->bell, SLOTS, MODULES, PIXEL_BYTES))
		return -1;
	sl_assembler_init(&f->a, &f->ring, &options);
	sl_ring_open(&f->ring, UINT64_MAX);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	sl_ring_fini(&f->ring);
	sl_region_close(&f->region);
	return 0;
}

/* The pipeline is through with sequence k of all modules. */
static inline void release(struct fixture *f, uint64_t k)
{
	for (uint32_t m = 0; m < MODULES; m++)
		sl_ring_release(&f->ring, k, m);
}

static inline uint8_t pixel_of(uint64_t k, uint32_t module, size_t i)
{
	return (uint8_t)(k * 31 + module * 7 + i * 3);
}

static inline struct sl_record record_of(uint64_t k, uint32_t module)
{
	return (struct sl_record){
		.sequence = k,
		.frame = 100 + k,
		.timestamp = 1000 * k,
		.emit_ns = 500 + 10 * k + module,
		.bytes = PIXEL_BYTES,
		.packets = PACKETS,
		.items = 1,
		.module = (uint16_t)module,
	};
}

static inline int next(struct fixture *f, uint64_t now_ns)
{
	return sl_assembler_next(&f->a, now_ns, &f->frame);
}

#endif
