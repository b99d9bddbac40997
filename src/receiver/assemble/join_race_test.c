/* join_race_test.c - three link threads, one for each detector, against a join, for
 * ThreadSanitizer too: parts are damaged and lost, triggers are missed, a detector has a divider,
 * another one has parts between events, and last packets arrive just when their part is given up.
 * Only the order of parts decides, so each outcome follows from what was sent. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "receiver/assemble/join_test.h"

enum { TRIGGERS = 10000, PERIOD_NS = 1000, WINDOW_NS = 100, CAMERA_DIVIDER = 2 };
enum { OFFSET_NUMBER = 17, OFFSET_TIME = -12345 };

enum fault { WHOLE, HURT, GONE, TARDY };

struct lane { /* one module */
	struct race *race;
	unsigned d;
	uint32_t module;
	uint64_t sent;
	uint32_t trigger[2 * TRIGGERS]; /* of its sequences; odd numbers of COUNTER are between */
	uint8_t fault[2 * TRIGGERS];
	uint64_t held; /* 1 + the sequence whose last packet is held back; 0: none */
	_Atomic int over;
};

struct race {
	struct rig *rig;
	struct lane lane[MODULES];
	int64_t at[DETECTORS][2 * TRIGGERS]; /* sequence of a trigger; -1: it has no part of it */
};

static uint32_t random_of(uint64_t trigger, uint32_t lane)
{
	uint64_t x = (trigger * MODULES + lane + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

/* Number and time of a trigger, as the detector counts them. COUNTER counts halves. */
static uint64_t number_of(unsigned d, uint64_t trigger)
{
	return d == CAMERA ? trigger / CAMERA_DIVIDER + OFFSET_NUMBER : trigger;
}

static uint64_t time_of(unsigned d, uint64_t trigger)
{
	uint64_t jitter = random_of(trigger, 77) % (2 * WINDOW_NS + 1);

	if (d == COUNTER)
		return 1000000 + trigger * PERIOD_NS / 2 + (uint64_t)OFFSET_TIME + jitter -
		       WINDOW_NS;
	return 1000000 + trigger * PERIOD_NS;
}

/* The packets from..to of a block, if its cell is open. The link is inside. */
static enum sl_ring_place place(struct lane *lane, uint64_t k, uint32_t from, uint32_t to)
{
	unsigned d = lane->d;
	struct sl_ring *ring = &lane->race->rig->of[d].ring;
	uint8_t block[1024];
	size_t bytes = pixel_bytes(d) + SL_RECORD_BYTES, piece = (bytes + PACKETS - 1) / PACKETS;
	enum sl_ring_place where = sl_ring_may_place(ring, k, lane->module);
	size_t at = from * piece, end = to * piece;

	if (where == SL_PLACE_AHEAD)
		return where;
	sl_ring_reach(ring, k, lane->module);
	if (where == SL_PLACE_LATE)
		return where;
	make_block(d, lane->module, k, number_of(d, lane->trigger[k]), time_of(d, lane->trigger[k]),
		   block);
	end = end < bytes ? end : bytes;
	memcpy(sl_ring_block(ring, k, lane->module) + at, block + at, end - at);
	sl_ring_progress(ring, k, lane->module, to);
	return where;
}

/* The packet that was held back, when the lane is about to be given up there. */
static void release_held(struct lane *lane, uint64_t k)
{
	uint64_t held = lane->held - 1;

	if (!lane->held || k < held + LATE)
		return;
	lane->held = 0;
	if (place(lane, held, PACKETS - 1, PACKETS) == SL_PLACE_OK) {
		sl_ring_raise(&lane->race->rig->of[lane->d].ring, held, lane->module, 1);
		lane->fault[held] = WHOLE; /* the assembler must have waited for it */
	} else {
		lane->fault[held] = HURT;
	}
}

static bool send_one(struct lane *lane, uint64_t trigger)
{
	uint32_t x = random_of(trigger, shapes[lane->d].first + lane->module) % 20;
	enum fault fault = x < 1 ? GONE : x < 3 ? HURT : x < 6 ? TARDY : WHOLE;
	enum sl_ring_place where = SL_PLACE_OK;
	struct sl_ring *ring = &lane->race->rig->of[lane->d].ring;
	uint64_t k = lane->sent;
	uint32_t packets;

	if (fault == TARDY && (lane->held || trigger + 100 > TRIGGERS))
		fault = HURT;
	packets = fault == WHOLE ? PACKETS : fault == GONE ? 0 : PACKETS - 1;
	lane->trigger[k] = (uint32_t)trigger;
	sl_ring_enter(ring, lane->module);
	if (packets)
		where = place(lane, k, 0, packets);
	if (where != SL_PLACE_AHEAD) {
		if (fault == WHOLE)
			sl_ring_raise(ring, k, lane->module, 1);
		if (fault == TARDY)
			lane->held = k + 1;
		lane->fault[k] = (uint8_t)fault;
		release_held(lane, k);
		lane->sent++;
	}
	sl_ring_leave(ring, lane->module);
	return where != SL_PLACE_AHEAD;
}

/* Which triggers a detector has a part of: COUNTER's are half triggers. */
static bool takes_part(unsigned d, uint64_t trigger)
{
	if (d == IMAGE)
		return true;
	if (d == CAMERA)
		return trigger % CAMERA_DIVIDER == 0 && random_of(trigger, 50) % 8;
	return trigger % 2 ? random_of(trigger, 51) % 4 == 0 : random_of(trigger, 52) % 8 != 0;
}

static uint64_t triggers_of(unsigned d)
{
	return d == COUNTER ? 2 * TRIGGERS : TRIGGERS;
}

static void *link_thread(void *arg)
{
	struct lane *lane = arg;
	uint64_t trigger = 0;

	while (trigger < triggers_of(lane->d)) {
		if (!takes_part(lane->d, trigger) || send_one(lane, trigger))
			trigger++;
		else
			sched_yield(); /* one core is enough for this test */
	}
	atomic_store(&lane->over, 1);
	return NULL;
}

/* ---- what must come out ---- */

struct seen {
	uint64_t next[MODULES]; /* each module's sequences come in order, each once */
	uint8_t outcome[MODULES][2 * TRIGGERS], cause[MODULES][2 * TRIGGERS];
	unsigned complete, wrong;
};

static void take(struct rig *rig, struct seen *s)
{
	bool complete = rig->frame.flags & SL_FRAME_COMPLETE;

	s->complete += complete;
	for (unsigned d = 0; d < DETECTORS; d++)
		for (uint32_t m = 0; m < shapes[d].modules; m++) {
			uint32_t v = shapes[d].first + m;
			const struct sl_view *view = &rig->view[v];
			bool here = complete && !sl_frame_misses(&rig->frame, v);

			if (view->outcome == SL_NO_OUTCOME && !here)
				continue; /* it has nothing in this frame */
			assert_int_equal(view->sequence, s->next[v]++);
			s->outcome[v][view->sequence] = view->outcome;
			s->cause[v][view->sequence] = view->cause;
			s->wrong += here && !pixels_are(d, view);
			if (view->held)
				memset(view->pixels.host, 0xee, pixel_bytes(d) + SL_RECORD_BYTES);
		}
	give_back(rig);
}

static enum fault fault_at(const struct race *race, unsigned d, uint32_t module, uint64_t trigger)
{
	int64_t k = race->at[d][trigger];

	return k < 0 ? GONE : race->lane[shapes[d].first + module].fault[k];
}

/* The event has what it needs: both modules, and of the camera what its divider says. */
static bool is_whole(const struct race *race, uint64_t trigger)
{
	for (uint32_t m = 0; m < shapes[IMAGE].modules; m++)
		if (fault_at(race, IMAGE, m, trigger) != WHOLE)
			return false;
	return trigger % CAMERA_DIVIDER || fault_at(race, CAMERA, 0, trigger) == WHOLE;
}

/* Parts that are matched by time find an event if a record of it says its time. */
static bool is_found(const struct race *race, unsigned d, uint64_t trigger)
{
	if (d != COUNTER)
		return true;
	if (trigger % 2)
		return false;
	return fault_at(race, IMAGE, 0, trigger / 2) == WHOLE ||
	       fault_at(race, IMAGE, 1, trigger / 2) == WHOLE;
}

static void check(const struct race *race, const struct seen *s, unsigned d, uint32_t m, uint64_t k)
{
	uint32_t v = shapes[d].first + m;
	const struct lane *lane = &race->lane[v];
	uint64_t trigger = lane->trigger[k], event = d == COUNTER ? trigger / 2 : trigger;
	enum sl_outcome outcome = SL_NO_OUTCOME;
	enum sl_cause cause = SL_CAUSE_NONE;

	if (lane->fault[k] == GONE) {
		outcome = SL_LOST;
		cause = SL_CAUSE_NO_ARRIVAL;
	} else if (lane->fault[k] == HURT) {
		outcome = SL_INCOMPLETE;
		cause = SL_CAUSE_DAMAGED;
	} else if (!is_found(race, d, trigger)) {
		outcome = SL_UNMATCHED;
		cause = SL_CAUSE_NO_EVENT;
	} else if (!is_whole(race, event)) {
		outcome = SL_INCOMPLETE;
		cause = SL_CAUSE_PARTNER;
	}
	if (s->outcome[v][k] != outcome || s->cause[v][k] != cause)
		fail_msg("detector %u module %u sequence %llu trigger %llu: %s, %s instead of %s, "
			 "%s",
			 d, m, (unsigned long long)k, (unsigned long long)trigger,
			 sl_outcome_name(s->outcome[v][k]), sl_cause_name(s->cause[v][k]),
			 sl_outcome_name(outcome), sl_cause_name(cause));
}

static void tell_ends(struct race *race)
{
	for (unsigned d = 0; d < DETECTORS; d++)
		for (uint32_t m = 0; m < shapes[d].modules; m++) {
			struct lane *lane = &race->lane[shapes[d].first + m];

			if (atomic_load(&lane->over))
				sl_assembler_end(&race->rig->of[d].a, m, lane->sent);
		}
}

static void number_the_triggers(struct race *race)
{
	for (unsigned d = 0; d < DETECTORS; d++) {
		int64_t k = 0;

		for (uint64_t t = 0; t < triggers_of(d); t++)
			race->at[d][t] = takes_part(d, t) ? k++ : -1;
	}
}

static void begin(struct race *race, struct rig *rig)
{
	memset(race, 0, sizeof(*race));
	race->rig = rig;
	add(rig, CAMERA,
	    (struct sl_join_options){
		    .by = SL_ALIGN_FRAME, .offset = OFFSET_NUMBER, .divider = CAMERA_DIVIDER});
	add(rig, COUNTER,
	    (struct sl_join_options){.by = SL_ALIGN_TIMESTAMP,
				     .offset = OFFSET_TIME,
				     .window = WINDOW_NS,
				     .missing = SL_JOIN_WAIT,
				     .wait_ns = UINT64_MAX});
	for (unsigned d = 0; d < DETECTORS; d++) {
		rig->of[d].a.options.late_timeout_ns = UINT64_MAX; /* only the order decides */
		rig->of[d].a.options.first_frame = 0;
		for (uint32_t m = 0; m < shapes[d].modules; m++) {
			race->lane[shapes[d].first + m].race = race;
			race->lane[shapes[d].first + m].d = d;
			race->lane[shapes[d].first + m].module = m;
		}
	}
	rig->of[CAMERA].a.options.align.by = SL_ALIGN_FRAME;
	number_the_triggers(race);
}

static void every_outcome_follows_from_what_was_sent(void **state)
{
	static struct race race;
	static struct seen seen;
	struct rig *rig = *state;
	pthread_t thread[MODULES];
	int got;

	memset(&seen, 0, sizeof(seen));
	begin(&race, rig);
	for (unsigned v = 0; v < MODULES; v++)
		assert_int_equal(pthread_create(&thread[v], NULL, link_thread, &race.lane[v]), 0);
	while ((got = next_event(rig, 1)) != -ENODATA) {
		if (got)
			take(rig, &seen);
		else
			tell_ends(&race);
		if (!got)
			sched_yield();
	}
	for (unsigned v = 0; v < MODULES; v++)
		pthread_join(thread[v], NULL);
	for (unsigned d = 0; d < DETECTORS; d++)
		for (uint32_t m = 0; m < shapes[d].modules; m++) {
			uint32_t v = shapes[d].first + m;

			assert_int_equal(seen.next[v], race.lane[v].sent);
			for (uint64_t k = 0; k < race.lane[v].sent; k++)
				check(&race, &seen, d, m, k);
		}
	assert_int_equal(seen.wrong, 0);
	assert_in_range(seen.complete, TRIGGERS / 3, TRIGGERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_outcome_follows_from_what_was_sent, setup_rig,
						teardown_rig),
	};

	return cmocka_run_group_tests_name("join_race", tests, NULL, NULL);
}
