/* testing.h - for tests of endpoints: two of them, `left` and `right`, on one loopback address,
 * each with a queue pair and registered memory, and a clock that moves only when nothing else does.
 *
 * Model:     rig_open() opens, rig_connect() makes and connects queue pairs of a transport,
 *            rig_run() polls both sides until a condition holds. When nothing has happened for a
 *            moment the simulated clock jumps to the next timer, so that time-outs cost no time. */
#ifndef SL_ENDPOINT_TESTING_H
#define SL_ENDPOINT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoint/state.h"

enum { SIDES = 2, LEFT = 0, RIGHT = 1, DOMAIN = 5, MEMORY_BYTES = 3 << 20, FENCE = 4096 };
enum { REAPED = 512 };
#define PATIENCE_NS UINT64_C(20000000000)

struct side {
	struct sl_endpoint *endpoint;
	struct sl_qp *qp;
	struct sl_endpoint_fault fault;
	struct sl_endpoint_options options;
	uint8_t *memory; /* registered; a fence of canaries before and behind it */
	uint32_t rkey;
	struct sl_completion done[REAPED]; /* what was reaped */
	unsigned count;
};

struct rig {
	struct side side[SIDES];
	uint64_t now;
	struct sl_qp_attributes attributes[SIDES];
	struct sl_qp_options options;
	bool v6;
	int quiet_ms; /* how long nothing must happen before the clock moves */
};

static struct rig rig;

static inline uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)((i * 2654435761u >> 16) ^ (i >> 3) ^ seed * 37);
}

static inline void fill(void *at, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)at)[i] = pattern(seed, i);
}

static inline void check_filled(const void *at, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++) {
		if (((const uint8_t *)at)[i] != pattern(seed, i))
			fail_msg("byte %u of %u is %02x, not %02x", i, bytes,
				 ((const uint8_t *)at)[i], pattern(seed, i));
	}
}

static inline void rig_open_side(struct side *side)
{
	const char *loopback = rig.v6 ? "::1" : "127.0.0.1";
	struct sl_endpoint_memory memory = {.bytes = MEMORY_BYTES,
					    .access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
					    .domain = DOMAIN};

	side->options.fault = side->fault;
	assert_int_equal(sl_net_parse("test", loopback, side->options.address), 0);
	assert_int_equal(sl_endpoint_open(&side->options, &side->endpoint), 0);
	side->memory = malloc(MEMORY_BYTES + 2 * FENCE);
	assert_non_null(side->memory);
	memset(side->memory, 0xc5, MEMORY_BYTES + 2 * FENCE);
	side->memory += FENCE;
	memset(side->memory, 0, MEMORY_BYTES);
	memory.at = side->memory;
	assert_int_equal(sl_endpoint_register(side->endpoint, &memory, &side->rkey), 0);
}

/* Faults and options of the sides may have been set before. */
static inline void rig_open(void)
{
	rig.now = 1000000;
	rig.quiet_ms = 20;
	for (int i = 0; i < SIDES; i++) {
		rig_open_side(&rig.side[i]);
		sl_qp_attributes_init(&rig.attributes[i]);
	}
	rig.options = (struct sl_qp_options){
		.transport = SL_ROCE_RC,
		.domain = DOMAIN,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
	};
}

static inline int rig_setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig_open();
	return 0;
}

static inline int rig_setup_v6(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.v6 = true;
	rig_open();
	return 0;
}

/* Fences whole, everything freed. */
static inline int rig_teardown(void **state)
{
	for (int i = 0; i < SIDES; i++) {
		uint8_t *memory = rig.side[i].memory;

		for (int k = 0; k < FENCE; k++) {
			assert_int_equal(memory[-1 - k], 0xc5);
			assert_int_equal(memory[MEMORY_BYTES + k], 0xc5);
		}
		sl_endpoint_close(rig.side[i].endpoint);
		free(memory - FENCE);
	}
	return 0;
}

/* Queue pairs as rig.options say, and what each must know of the other; still in RESET. */
static inline void rig_create(enum sl_roce_transport transport)
{
	rig.options.transport = (uint8_t)transport;
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(sl_qp_create(rig.side[i].endpoint, &rig.options, &rig.side[i].qp),
				 0);
	for (int i = 0; i < SIDES; i++) {
		struct sl_qp_attributes *a = &rig.attributes[i];
		const struct side *peer = &rig.side[1 - i];

		memcpy(a->peer, sl_endpoint_address(peer->endpoint), sizeof(a->peer));
		a->peer_port = sl_endpoint_port(peer->endpoint);
		a->peer_qpn = sl_qp_number(peer->qp);
		a->send_psn = i ? 0xfffff0 : 0x123; /* one of them wraps soon */
		a->receive_psn = i ? 0x123 : 0xfffff0;
		a->qkey = 0x1111;
	}
}

static inline void rig_connect(enum sl_roce_transport transport)
{
	rig_create(transport);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(sl_qp_connect(rig.side[i].qp, &rig.attributes[i]), 0);
}

static inline void rig_disconnect(void)
{
	for (int i = 0; i < SIDES; i++) {
		sl_qp_destroy(rig.side[i].qp);
		rig.side[i].qp = NULL;
		rig.side[i].count = 0;
	}
}

static inline void rig_reap(struct side *side)
{
	side->count += sl_endpoint_reap(side->endpoint, NULL, side->done + side->count,
					REAPED - side->count);
}

/* Poll both once. false: nothing happened, and the clock has moved. */
static inline bool rig_step(void)
{
	struct pollfd fds[SIDES];
	uint64_t wake = UINT64_MAX;
	int busy = 0;

	for (int i = 0; i < SIDES; i++) {
		busy += sl_endpoint_poll(rig.side[i].endpoint, rig.now, 32);
		rig_reap(&rig.side[i]);
	}
	if (busy)
		return true;
	for (int i = 0; i < SIDES; i++) {
		uint64_t at = sl_endpoint_wake(rig.side[i].endpoint);

		fds[i] = (struct pollfd){.fd = sl_endpoint_fd(rig.side[i].endpoint),
					 .events = sl_endpoint_events(rig.side[i].endpoint)};
		wake = at < wake ? at : wake;
	}
	if (wake <= rig.now || poll(fds, SIDES, rig.quiet_ms) > 0)
		return true;
	if (wake != UINT64_MAX)
		rig.now = wake;
	return false;
}

/* Until both sides have reaped so many; fails when they do not. */
static inline void rig_run(unsigned left, unsigned right)
{
	uint64_t limit = sl_clock_ns() + PATIENCE_NS;

	while (rig.side[LEFT].count < left || rig.side[RIGHT].count < right) {
		rig_step();
		if (sl_clock_ns() > limit)
			fail_msg("only %u of %u and %u of %u completions", rig.side[LEFT].count,
				 left, rig.side[RIGHT].count, right);
	}
	assert_int_equal(rig.side[LEFT].count, left);
	assert_int_equal(rig.side[RIGHT].count, right);
}

/* Until nothing happens any more; timers are left alone. */
static inline void rig_settle(void)
{
	uint64_t before;

	do
		before = rig.now;
	while (rig_step());
	rig.now = before;
}

static inline struct sl_work rig_work(uint8_t kind, void *at, uint32_t bytes, uint64_t offset)
{
	struct sl_work work = {
		.id = 77,
		.kind = kind,
		.piece = {{at, bytes}},
		.rkey = rig.side[RIGHT].rkey,
		.va = (uint64_t)(uintptr_t)rig.side[RIGHT].memory + offset,
	};

	memcpy(work.to.address, sl_endpoint_address(rig.side[RIGHT].endpoint),
	       sizeof(work.to.address));
	work.to.port = sl_endpoint_port(rig.side[RIGHT].endpoint);
	work.to.qpn = sl_qp_number(rig.side[RIGHT].qp);
	work.to.qkey = 0x1111;
	return work;
}

static inline void rig_send(const struct sl_work *work)
{
	assert_int_equal(sl_qp_send(rig.side[LEFT].qp, work), 0);
}

static inline void rig_receive(uint64_t id, void *at, uint32_t bytes)
{
	const struct sl_piece pieces[SL_QP_PIECES] = {{at, bytes}};

	assert_int_equal(sl_qp_receive(rig.side[RIGHT].qp, id, pieces), 0);
}

static inline uint64_t dropped(int side, unsigned why)
{
	struct sl_endpoint_counters counters;

	sl_endpoint_count(rig.side[side].endpoint, &counters);
	return counters.dropped[why];
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define TEST_V6(name) cmocka_unit_test_setup_teardown(name, rig_setup_v6, rig_teardown)

#endif
