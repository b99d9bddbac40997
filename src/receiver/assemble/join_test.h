/* join_test.h - for tests of events: three detectors, each with a small ring, all slots open and
 * poisoned. `image` has two modules and defines events, `camera` and `counter` have one. */
#ifndef SL_RECEIVER_ASSEMBLE_JOIN_TEST_H
#define SL_RECEIVER_ASSEMBLE_JOIN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bell.h"
#include "receiver/assemble/join.h"

enum { IMAGE, CAMERA, COUNTER, DETECTORS };
enum { SLOTS = 16, MODULES = 4, PACKETS = 4, LATE = 3, TIMEOUT_NS = 1000 };

struct shape {
	uint32_t first, modules, columns; /* of 16 bits, in one row */
};
static const struct shape shapes[DETECTORS] = {
	[IMAGE] = {0, 2, 200}, [CAMERA] = {2, 1, 333}, [COUNTER] = {3, 1, 7}};

static inline uint64_t pixel_bytes(unsigned d)
{
	return shapes[d].columns * UINT64_C(2);
}

struct rig {
	struct sl_bell bell;
	struct one {
		struct sl_region region;
		struct sl_ring ring;
		struct sl_assembler a;
	} of[DETECTORS];
	struct sl_join join;
	struct sl_view view[MODULES];
	struct sl_frame frame, part[DETECTORS];
};

static inline int open_one(struct rig *rig, unsigned d)
{
	struct one *one = &rig->of[d];
	const struct sl_assembler_options options = {
		.late_frames = LATE,
		.late_timeout_ns = TIMEOUT_NS,
		.first_frame = 100,
		.frame_step = 1,
		.dtype = SL_U16,
		.rows = 1,
		.columns = shapes[d].columns,
		.first_module = shapes[d].first,
	};
	uint32_t modules = shapes[d].modules;

	if (sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, modules, pixel_bytes(d)),
			   &one->region))
		return -1;
	sl_region_poison(&one->region);
	if (sl_ring_init(&one->ring, &one->region, &rig->bell, SLOTS, modules, pixel_bytes(d)))
		return -1;
	sl_assembler_init(&one->a, &one->ring, &options);
	sl_ring_open(&one->ring, UINT64_MAX);
	return 0;
}

/* Detectors that are not added have no part in it. */
static inline int setup_rig(void **state)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	rig.frame.view = rig.view;
	for (unsigned d = 0; d < DETECTORS; d++)
		if (open_one(&rig, d))
			return -1;
	sl_join_init(&rig.join, IMAGE, false);
	*state = &rig;
	return sl_join_add(&rig.join, &rig.of[IMAGE].a, &(struct sl_join_options){0});
}

static inline int teardown_rig(void **state)
{
	struct rig *rig = *state;

	for (unsigned d = 0; d < DETECTORS; d++) {
		sl_ring_fini(&rig->of[d].ring);
		sl_region_close(&rig->of[d].region);
	}
	return 0;
}

static inline void add(struct rig *rig, unsigned d, struct sl_join_options options)
{
	assert_int_equal(rig->join.detectors, d);
	assert_int_equal(sl_join_add(&rig->join, &rig->of[d].a, &options), 0);
}

static inline uint8_t pixel_of(unsigned d, uint64_t k, uint32_t module, size_t i)
{
	return (uint8_t)(d * 101 + k * 31 + module * 7 + i * 3);
}

/* Pixels and record of sequence k, as they travel. */
static inline void make_block(unsigned d, uint32_t module, uint64_t k, uint64_t number,
			      uint64_t time, uint8_t *block)
{
	struct sl_record record = {
		.sequence = k,
		.frame = number,
		.timestamp = time,
		.emit_ns = 500 + 10 * k + d,
		.bytes = (uint32_t)pixel_bytes(d),
		.packets = PACKETS,
		.items = 1,
		.module = (uint16_t)module,
	};

	sl_record_seal(&record);
	for (size_t i = 0; i < pixel_bytes(d); i++)
		block[i] = pixel_of(d, k, module, i);
	memcpy(block + pixel_bytes(d), &record, sizeof(record));
}

static inline bool pixels_are(unsigned d, const struct sl_view *view)
{
	for (size_t i = 0; i < pixel_bytes(d); i++)
		if (((const uint8_t *)view->pixels.host)[i] !=
		    pixel_of(d, view->sequence, view->module - shapes[d].first, i))
			return false;
	return true;
}

static inline int next_event(struct rig *rig, uint64_t now_ns)
{
	return sl_join_next(&rig->join, now_ns, &rig->frame, rig->part);
}

/* The unit gives the frame back. */
static inline void give_back(struct rig *rig)
{
	for (unsigned d = 0; d < rig->join.detectors; d++) {
		for (uint32_t m = 0; m < shapes[d].modules; m++)
			if (rig->view[shapes[d].first + m].held)
				sl_ring_release(&rig->of[d].ring,
						rig->view[shapes[d].first + m].sequence, m);
		sl_ring_open(&rig->of[d].ring, UINT64_MAX);
	}
}

#endif
