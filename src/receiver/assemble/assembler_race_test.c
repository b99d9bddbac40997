/* assembler_race_test.c - a link thread against the assembler, for ThreadSanitizer too: packets are
 * lost, come late and come too early, and the last packet of many a frame arrives just when the
 * frame is given up. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "receiver/assemble/testing.h"

enum { FRAMES = 20000, PIECE = (PIXEL_BYTES + SL_RECORD_BYTES + PACKETS - 1) / PACKETS };

enum fault {
	WHOLE,	/* all packets in time */
	HURT,	/* some packets never come */
	GONE,	/* no packet comes */
	TARDY,	/* the last packet comes just when the frame is given up; becomes WHOLE or HURT */
	TURNED, /* came before its slot was open, and was turned away */
};

struct race {
	struct fixture *f;
	uint64_t held[MODULES]; /* 1 + the sequence whose last packet is held back; 0: none */
	uint8_t fault[FRAMES][MODULES];
	_Atomic int over;
};

static uint32_t random_of(uint64_t k, uint32_t module)
{
	uint64_t x = (k * MODULES + module + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

static enum fault fault_of(uint64_t k, uint32_t module)
{
	uint32_t x = random_of(k, module) % 20;

	return x < 1 ? GONE : x < 3 ? HURT : x < 6 ? TARDY : WHOLE;
}

/* Packet `i` of the block, if its slot is open. The link is inside. */
static enum sl_ring_place place(struct fixture *f, uint64_t k, uint32_t module, uint32_t i)
{
	uint8_t block[PIXEL_BYTES + SL_RECORD_BYTES];
	struct sl_record record = record_of(k, module);
	size_t at = (size_t)i * PIECE;
	size_t bytes = sizeof(block) - at < PIECE ? sizeof(block) - at : PIECE;
	enum sl_ring_place where = sl_ring_may_place(&f->ring, k, module);

	if (where == SL_PLACE_AHEAD)
		return where;
	sl_ring_reach(&f->ring, k, module);
	if (where == SL_PLACE_LATE)
		return where;
	if (i == PACKETS - 1 && random_of(k, module) & 0x200)
		sched_yield(); /* loses its core between asking and placing */
	for (size_t b = 0; b < PIXEL_BYTES; b++)
		block[b] = pixel_of(k, module, b);
	sl_record_seal(&record);
	memcpy(block + PIXEL_BYTES, &record, sizeof(record));
	memcpy(sl_ring_block(&f->ring, k, module) + at, block + at, bytes);
	sl_ring_progress(&f->ring, k, module, i + 1);
	return where;
}

/* The packet that was held back, within the section that moves the lane far enough to give it up,
 * or in one of its own: the race between giving up and finishing. */
static void release_held(struct race *race, uint64_t k, uint32_t module)
{
	uint64_t held = race->held[module] - 1;

	if (!race->held[module] || k < held + LATE)
		return;
	race->held[module] = 0;
	if (random_of(held, module) & 0x100) {
		sl_ring_leave(&race->f->ring, 0);
		sl_ring_enter(&race->f->ring, 0);
	}
	if (place(race->f, held, module, PACKETS - 1) == SL_PLACE_OK) {
		sl_ring_raise(&race->f->ring, held, module, 1);
		race->fault[held][module] = WHOLE; /* whoever gave up must have waited for it */
	} else {
		race->fault[held][module] = HURT;
	}
}

/* Send one module-frame; true once it is done with. */
static bool send_one(struct race *race, uint64_t k, uint32_t module)
{
	struct sl_ring *ring = &race->f->ring;
	enum fault fault = fault_of(k, module);
	uint32_t packets = fault == WHOLE ? PACKETS : fault == GONE ? 0 : PACKETS - 1;
	enum sl_ring_place where = SL_PLACE_OK;

	if (fault == TARDY && (race->held[module] || k + LATE >= FRAMES))
		fault = HURT;
	sl_ring_enter(ring, 0);
	for (uint32_t i = 0; i < packets && where != SL_PLACE_AHEAD; i++)
		where = place(race->f, k, module, i);
	if (where == SL_PLACE_AHEAD && random_of(k, module) % 64 == 0) {
		fault = TURNED;
		sl_ring_turn_away(ring, k, module);
		sl_ring_reach(ring, k, module);
		where = SL_PLACE_OK;
	}
	if (where != SL_PLACE_AHEAD) {
		if (fault == WHOLE)
			sl_ring_raise(ring, k, module, 1);
		if (fault == TARDY)
			race->held[module] = k + 1;
		race->fault[k][module] = (uint8_t)fault;
		release_held(race, k, module);
	}
	sl_ring_leave(ring, 0);
	return where != SL_PLACE_AHEAD;
}

static void *link_thread(void *arg)
{
	struct race *race = arg;

	for (uint64_t k = 0; k < FRAMES; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			while (!send_one(race, k, m))
				sched_yield(); /* one core is enough for this test */
	atomic_store(&race->over, 1);
	return NULL;
}

struct verdict {
	uint8_t seen, complete, wrong, outcome[MODULES], cause[MODULES];
};

/* Nothing but the frame's own bytes? Then they are overwritten, so that a late writer shows. */
static bool read_pixels(struct fixture *f)
{
	bool right = true;

	for (uint32_t m = 0; m < MODULES; m++) {
		uint8_t *pixels = f->view[m].pixels.host;

		for (size_t i = 0; i < PIXEL_BYTES; i++)
			right &= pixels[i] == pixel_of(f->frame.sequence, m, i);
		memset(pixels, 0xee, f->ring.block_bytes);
	}
	return right;
}

static void take(struct fixture *f, struct verdict *verdict)
{
	struct verdict *v = &verdict[f->frame.sequence];

	v->seen++;
	v->complete = !!(f->frame.flags & SL_FRAME_COMPLETE);
	for (uint32_t m = 0; m < MODULES; m++) {
		v->outcome[m] = f->view[m].outcome;
		v->cause[m] = f->view[m].cause;
	}
	if (!v->complete)
		return;
	v->wrong = !read_pixels(f);
	release(f, f->frame.sequence);
}

static bool fits(enum fault fault, enum sl_outcome outcome, enum sl_cause cause)
{
	bool whole = outcome == SL_NO_OUTCOME ||
		     (outcome == SL_INCOMPLETE && cause == SL_CAUSE_PARTNER);
	bool damaged = outcome == SL_INCOMPLETE && cause == SL_CAUSE_DAMAGED;

	switch (fault) {
	case WHOLE:
		return whole;
	case HURT:
		return damaged;
	case GONE:
		return outcome == SL_LOST;
	case TURNED:
		return outcome == SL_OVERRUN;
	case TARDY:
		break;
	}
	return false;
}

static void every_sequence_comes_out_once_and_no_complete_one_is_wrong(void **state)
{
	static struct race race;
	static struct verdict verdict[FRAMES];
	struct fixture *f = *state;
	unsigned complete = 0;
	pthread_t thread;
	int got;

	memset(&race, 0, sizeof(race));
	memset(verdict, 0, sizeof(verdict));
	race.f = f;
	f->a.options.late_timeout_ns = UINT64_MAX; /* only the order of packets decides */
	assert_int_equal(pthread_create(&thread, NULL, link_thread, &race), 0);
	while ((got = next(f, 1)) != -ENODATA) {
		if (got)
			take(f, verdict);
		sl_ring_open(&f->ring, UINT64_MAX);
		if (!got && atomic_load(&race.over))
			for (uint32_t m = 0; m < MODULES; m++)
				sl_assembler_end(&f->a, m, FRAMES);
		if (!got)
			sched_yield();
	}
	pthread_join(thread, NULL);
	for (uint64_t k = 0; k < FRAMES; k++) {
		assert_int_equal(verdict[k].seen, 1);
		if (verdict[k].wrong)
			fail_msg("frame %llu has a wrong byte", (unsigned long long)k);
		for (uint32_t m = 0; m < MODULES; m++)
			if (!fits(race.fault[k][m], verdict[k].outcome[m], verdict[k].cause[m]))
				fail_msg("frame %llu module %u: fault %d but %s, %s",
					 (unsigned long long)k, m, race.fault[k][m],
					 sl_outcome_name(verdict[k].outcome[m]),
					 sl_cause_name(verdict[k].cause[m]));
		complete += verdict[k].complete;
	}
	assert_in_range(complete, FRAMES / 4, FRAMES - FRAMES / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_sequence_comes_out_once_and_no_complete_one_is_wrong, setup,
			teardown),
	};

	return cmocka_run_group_tests_name("assembler_race", tests, NULL, NULL);
}
