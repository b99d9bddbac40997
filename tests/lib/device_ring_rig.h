/* device_ring_rig.h - a ring on a device, and events for it that can be told from each other.
 * Kernels are those of gpu/ring/weigh.cl. Include after cmocka. */
#ifndef SL_TESTS_DEVICE_RING_RIG_H
#define SL_TESTS_DEVICE_RING_RIG_H

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "gpu/dialect/kernels.h"
#include "gpu/ring/ring.h"

enum { BUFFERS = 8, EVENT = 600, RESULT = 48, EVENTS = 400, THRESHOLD = 1u << 31 };

static const uint32_t threshold = THRESHOLD;

enum place { PINNED, ON_DEVICE, TAGGED, PLACES };

static inline struct sl_device_ring_terms terms_of(enum place place)
{
	return (struct sl_device_ring_terms){
		.buffers = BUFFERS,
		.event_bytes = EVENT,
		.result_bytes = RESULT,
		.tagged = place == TAGGED,
		.on_device = place == ON_DEVICE,
		.groups = 3,
		.threads = 64,
		.timeout_ns = 20000000000u,
	};
}

static inline struct sl_device_ring_work weigh(enum place place)
{
	return (struct sl_device_ring_work){
		.kernels = &sl_kernels_weigh,
		.kernel = place == TAGGED ? "weigh_tagged_forever" : "weigh_forever",
		.argument = {SL_ARG(threshold)},
		.arguments = 1,
	};
}

/* ---- events that can be told from each other ---- */

static inline uint32_t word_of(uint64_t n, uint32_t i)
{
	uint64_t x = (n * 1000003 + i + 1) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(x >> 29);
}

/* Whole words of 16 bytes. */
static inline uint32_t bytes_of(uint64_t n)
{
	return 16 + word_of(n, 77) % (EVENT / 16) * 16;
}

static inline void make_event(uint64_t n, uint32_t *event)
{
	for (uint32_t i = 0; i < EVENT / 4; i++)
		event[i] = i < bytes_of(n) / 4 ? word_of(n, i) : 0;
}

static inline uint32_t sum_of(uint64_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < bytes_of(n) / 4; i++)
		sum += word_of(n, i);
	return sum;
}

struct rig {
	struct sl_device *device;
	struct sl_device_ring ring;
	uint32_t (*event)[EVENT / 4]; /* [EVENTS + BUFFERS] */
};

static inline void rig_open(struct rig *rig, const struct sl_platform *platform,
			    const struct sl_device_ring_terms *terms,
			    const struct sl_device_ring_work *work)
{
	assert_int_equal(platform->open(0, &rig->device), 0);
	rig->device->platform = platform; /* it may be one that is made of another */
	assert_int_equal(sl_device_ring_open(&rig->ring, rig->device, terms, work), 0);
	rig->event = calloc(EVENTS + BUFFERS, sizeof(*rig->event));
	assert_non_null(rig->event);
	for (uint64_t n = 0; n < EVENTS + BUFFERS; n++)
		make_event(n, rig->event[n]);
}

static inline void rig_close(struct rig *rig)
{
	sl_device_ring_close(&rig->ring);
	rig->device->platform->close(rig->device);
	free(rig->event);
}

static inline void publish(struct rig *rig, uint64_t n)
{
	assert_int_equal(sl_device_ring_publish(&rig->ring, n, rig->event[n], bytes_of(n)), 0);
}

/* Waits for it. */
static inline struct sl_device_ring_completion take(struct rig *rig)
{
	struct sl_device_ring_completion completion;
	int got;

	while (!(got = sl_device_ring_take(&rig->ring, &completion)))
		sched_yield();
	assert_int_equal(got, 1);
	return completion;
}

static inline void check_good(struct rig *rig, const struct sl_device_ring_completion *completion,
			      uint64_t n)
{
	uint32_t result[RESULT / 4];

	assert_int_equal(completion->event, n);
	assert_int_equal(completion->outcome, SL_DEVICE_RING_GOOD);
	assert_int_equal(completion->score, sum_of(n));
	assert_int_equal(completion->keep, word_of(n, 0) >= THRESHOLD);
	if (completion->keep) {
		uint32_t bytes = bytes_of(n) < RESULT ? bytes_of(n) : RESULT;

		assert_int_equal(completion->bytes, bytes);
		assert_int_equal(sl_device_ring_result(&rig->ring, completion, result, RESULT),
				 bytes);
		assert_memory_equal(result, rig->event[n], bytes);
	} else
		assert_int_equal(sl_device_ring_result(&rig->ring, completion, result, RESULT),
				 -ENODATA);
}

/* The next completion is that of event n, good, and its buffer may be written again. */
static inline void take_good(struct rig *rig, uint64_t n)
{
	struct sl_device_ring_completion completion = take(rig);

	check_good(rig, &completion, n);
	assert_int_equal(sl_device_ring_release(&rig->ring), 0);
}

static inline void assert_closes(struct rig *rig, uint64_t published)
{
	struct sl_device_ring_ledger l = sl_device_ring_ledger(&rig->ring);

	assert_int_equal(l.published, published);
	assert_int_equal(l.published, l.good + l.lapped + l.wrong + l.unanswered);
}

#endif
