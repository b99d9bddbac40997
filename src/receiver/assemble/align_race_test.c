/* align_race_test.c - a link thread against an assembler that puts frames together by number, for
 * ThreadSanitizer too: modules miss triggers and fall behind each other without end, packets are
 * lost, and the last packet of many a block arrives just when it is given up. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "receiver/assemble/testing.h"

enum { TRIGGERS = 20000, PIECE = (PIXEL_BYTES + SL_RECORD_BYTES + PACKETS - 1) / PACKETS };

enum fault { WHOLE, HURT, GONE, TARDY };

struct lane { /* what a module sent: sequence by sequence */
	uint64_t sent;
	uint32_t trigger[TRIGGERS];
	uint8_t fault[TRIGGERS];
	uint64_t held; /* 1 + the sequence whose last packet is held back; 0: none */
};

struct race {
	struct fixture *f;
	struct lane lane[MODULES];
	_Atomic int over;
};

static uint32_t random_of(uint64_t trigger, uint32_t module)
{
	uint64_t x = (trigger * MODULES + module + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

/* The first packets of a block, if its cell is open. The link is inside. */
static enum sl_ring_place place(struct race *race, uint64_t k, uint32_t module, uint32_t from,
				uint32_t to)
{
	struct fixture *f = race->f;
	uint32_t trigger = race->lane[module].trigger[k];
	uint8_t block[PIXEL_BYTES + SL_RECORD_BYTES];
	struct sl_record record = record_of(k, module);
	enum sl_ring_place where = sl_ring_may_place(&f->ring, k, module);
	size_t at = (size_t)from * PIECE, end = (size_t)to * PIECE;

	if (where == SL_PLACE_AHEAD)
		return where;
	sl_ring_reach(&f->ring, k, module);
	if (where == SL_PLACE_LATE)
		return where;
	record.frame = 100 + trigger;
	sl_record_seal(&record);
	for (size_t i = 0; i < PIXEL_BYTES; i++)
		block[i] = pixel_of(trigger, module, i);
	memcpy(block + PIXEL_BYTES, &record, sizeof(record));
	end = end < sizeof(block) ? end : sizeof(block);
	memcpy(sl_ring_block(&f->ring, k, module) + at, block + at, end - at);
	sl_ring_progress(&f->ring, k, module, to);
	return where;
}

/* The packet that was held back, when the lane is about to be given up there. */
static void release_held(struct race *race, uint64_t k, uint32_t module)
{
	struct lane *lane = &race->lane[module];
	uint64_t held = lane->held - 1;

	if (!lane->held || k < held + LATE)
		return;
	lane->held = 0;
	if (place(race, held, module, PACKETS - 1, PACKETS) == SL_PLACE_OK) {
		sl_ring_raise(&race->f->ring, held, module, 1);
		lane->fault[held] = WHOLE; /* whoever gave up must have waited for it */
	} else {
		lane->fault[held] = HURT;
	}
}

/* Send one module-frame; true once it is done with. */
static bool send_one(struct race *race, uint64_t trigger, uint32_t module)
{
	struct lane *lane = &race->lane[module];
	uint32_t x = random_of(trigger, module) % 20;
	enum fault fault = x < 1 ? GONE : x < 3 ? HURT : x < 6 ? TARDY : WHOLE;
	uint32_t packets = fault == WHOLE ? PACKETS : fault == GONE ? 0 : PACKETS - 1;
	enum sl_ring_place where = SL_PLACE_OK;
	uint64_t k = lane->sent;

	if (fault == TARDY && (lane->held || trigger + 100 > TRIGGERS))
		fault = HURT;
	lane->trigger[k] = (uint32_t)trigger;
	sl_ring_enter(&race->f->ring, 0);
	if (packets)
		where = place(race, k, module, 0, packets);
	if (where != SL_PLACE_AHEAD) {
		if (fault == WHOLE)
			sl_ring_raise(&race->f->ring, k, module, 1);
		if (fault == TARDY)
			lane->held = k + 1;
		lane->fault[k] = (uint8_t)fault;
		release_held(race, k, module);
		lane->sent++;
	}
	sl_ring_leave(&race->f->ring, 0);
	return where != SL_PLACE_AHEAD;
}

/* Modules send on their own: one that has no room does not hold up another. */
static void *link_thread(void *arg)
{
	struct race *race = arg;
	uint64_t at[MODULES] = {0};
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t m = 0; m < MODULES; m++) {
			bool missed = !(random_of(at[m], m) >> 8 & 7);

			if (at[m] == TRIGGERS)
				continue;
			more = true;
			if (missed || send_one(race, at[m], m))
				at[m]++;
			else
				sched_yield(); /* one core is enough for this test */
		}
	}
	atomic_store(&race->over, 1);
	return NULL;
}

struct seen {
	uint64_t next[MODULES]; /* each module's sequences come in order, each once */
	uint8_t outcome[MODULES][TRIGGERS], cause[MODULES][TRIGGERS];
	unsigned complete, wrong, apart, backwards;
	uint64_t last;
};

static void take(struct fixture *f, struct seen *s)
{
	bool complete = f->frame.flags & SL_FRAME_COMPLETE;

	s->backwards += f->frame.number <= s->last && f->frame.sequence;
	s->last = f->frame.number;
	s->complete += complete;
	s->apart += complete && f->view[0].sequence != f->view[1].sequence;
	for (uint32_t m = 0; m < MODULES; m++) {
		const struct sl_view *view = &f->view[m];
		uint64_t trigger = f->frame.number - 100;

		if (!complete && view->outcome == SL_NO_OUTCOME)
			continue; /* it has nothing in this frame */
		assert_int_equal(view->sequence, s->next[m]++);
		s->outcome[m][view->sequence] = view->outcome;
		s->cause[m][view->sequence] = view->cause;
		for (size_t i = 0; complete && i < PIXEL_BYTES; i++)
			s->wrong += ((uint8_t *)view->pixels.host)[i] != pixel_of(trigger, m, i);
		if (view->held) {
			memset(view->pixels.host, 0xee, f->ring.block_bytes);
			sl_ring_release(&f->ring, view->sequence, m);
		}
	}
}

static bool fits(enum fault fault, enum sl_outcome outcome, enum sl_cause cause)
{
	if (fault == WHOLE)
		return outcome == SL_NO_OUTCOME || cause == SL_CAUSE_PARTNER;
	if (fault == HURT)
		return outcome == SL_INCOMPLETE && cause == SL_CAUSE_DAMAGED;
	return fault == GONE && outcome == SL_LOST;
}

static void every_module_frame_comes_out_once_and_no_complete_frame_is_wrong(void **state)
{
	static struct race race;
	static struct seen seen;
	struct fixture *f = *state;
	pthread_t thread;
	int got;

	memset(&race, 0, sizeof(race));
	memset(&seen, 0, sizeof(seen));
	race.f = f;
	f->a.options.align.by = SL_ALIGN_FRAME;
	f->a.options.late_timeout_ns = UINT64_MAX; /* only the order of packets decides */
	for (uint32_t m = 0; m < MODULES; m++)
		sl_assembler_begin(&f->a, m, 0, 100);
	assert_int_equal(pthread_create(&thread, NULL, link_thread, &race), 0);
	while ((got = next(f, 1)) != -ENODATA) {
		if (got)
			take(f, &seen);
		sl_ring_open(&f->ring, UINT64_MAX);
		if (!got && atomic_load(&race.over))
			for (uint32_t m = 0; m < MODULES; m++)
				sl_assembler_end(&f->a, m, race.lane[m].sent);
		if (!got)
			sched_yield();
	}
	pthread_join(thread, NULL);
	for (uint32_t m = 0; m < MODULES; m++) {
		assert_int_equal(seen.next[m], race.lane[m].sent);
		for (uint64_t k = 0; k < race.lane[m].sent; k++)
			if (!fits(race.lane[m].fault[k], seen.outcome[m][k], seen.cause[m][k]))
				fail_msg("sequence %llu module %u: fault %d but %s, %s",
					 (unsigned long long)k, m, race.lane[m].fault[k],
					 sl_outcome_name(seen.outcome[m][k]),
					 sl_cause_name(seen.cause[m][k]));
	}
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.backwards, 0);
	assert_in_range(seen.complete, TRIGGERS / 4, TRIGGERS);
	assert_true(seen.apart > 1000); /* most are not at the same place of their streams */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_module_frame_comes_out_once_and_no_complete_frame_is_wrong, setup,
			teardown),
	};

	return cmocka_run_group_tests_name("align_race", tests, NULL, NULL);
}
