/* rejoin_test.c - a front end that goes away and comes back in a run, beside one that stays: when
 * it is taken, what it counts, what its log says; and causes that no policy takes the place of. */
#include <errno.h>
#include <string.h>

#include "lib/flow_rig.h"

static struct sl_unit held; /* the experiment's unit, which gives nothing back for now */
static int (*true_reap)(void *, struct sl_batch **);
static _Atomic unsigned looks; /* turns of the dispatcher */
static _Atomic bool closed;

enum { MOST = 3 };

struct pair { /* a front end for each module */
	struct flow f;
	uint32_t modules; /* two, unless a test says otherwise */
	struct sl_experiment *there[MOST];
	struct sl_emulator *emulator[MOST];
	struct sl_offer offer[MOST];
	char log[MOST][64];
};

static int reap_when_open(void *state, struct sl_batch **batch)
{
	atomic_fetch_add(&looks, 1);
	return atomic_load(&closed) ? 0 : true_reap(state, batch);
}

static int take(struct pair *p, uint32_t m, struct sl_plan *plan)
{
	char why[160];

	return sl_receiver_accept(p->f.receiver, &p->offer[m], true, plan, why, sizeof(why));
}

static void nap(void)
{
	sl_clock_sleep_until(sl_clock_ns() + 1000000);
}

/* All front ends but the first have these faults, and all of them all else. */
static void open_pair(struct pair *p, const char *const *more, size_t n, const char *const *faults,
		      size_t n_faults)
{
	const char *sets[12];
	char log[96];

	p->modules = p->modules ? p->modules : MODULES;
	memcpy(sets, more, n * sizeof(*sets));
	memcpy(sets + n, faults, n_faults * sizeof(*sets));
	sets[n + n_faults] = log;
	p->f.here = open_experiment(more, n);
	held = *p->f.here->unit;
	true_reap = held.reap;
	held.reap = reap_when_open;
	p->f.here->unit = &held;
	assert_int_equal(sl_receiver_open(p->f.here, NULL, &p->f.receiver), 0);
	for (uint32_t m = 0; m < p->modules; m++) {
		struct sl_plan plan;

		snprintf(p->log[m], sizeof(p->log[m]), "/tmp/sluice-rejoin-%d-%u.txt",
			 (int)getpid(), m);
		snprintf(log, sizeof(log), "frontend.fault_log=%s", p->log[m]);
		p->there[m] = open_experiment(sets, m ? n + n_faults + 1 : n);
		assert_int_equal(sl_emulator_open(p->there[m], m, m, &p->emulator[m]), 0);
		assert_int_equal(sl_emulator_plan_begin(p->emulator[m]), 0);
		assert_int_equal(sl_emulator_offer(p->emulator[m], m, &p->offer[m]), 0);
		assert_int_equal(take(p, m, &plan), 0);
		assert_int_equal(sl_emulator_connect(p->emulator[m], &plan), 0);
	}
	assert_int_equal(sl_receiver_start(p->f.receiver), 0);
}

static void say(struct pair *p, uint32_t m, bool final)
{
	const struct sl_emulator_module *module = &p->emulator[m]->module[m];
	uint64_t position = atomic_load(&module->position), sent = atomic_load(&module->sent);
	char why[160];

	assert_int_equal(sl_receiver_count(p->f.receiver, m, atomic_load(&module->next), sent,
					   position, final, why, sizeof(why)),
			 0);
}

/* Until it has sent what it had. */
static void send_all(struct pair *p, uint32_t m, int how_it_ends)
{
	while (!sl_emulator_finished(p->emulator[m])) {
		say(p, m, false);
		sl_emulator_log_faults(p->emulator[m]);
		nap();
	}
	say(p, m, true);
	assert_int_equal(sl_emulator_plan_end(p->emulator[m]), how_it_ends);
}

static void close_pair(struct pair *p)
{
	while (!sl_receiver_done(p->f.receiver))
		nap();
	assert_int_equal(sl_receiver_finish(p->f.receiver), 0);
	assert_true(ledger_closed(&p->f.receiver->ledger));
	assert_int_equal(wrong_pixels(&p->f), 0);
	sl_receiver_close(p->f.receiver);
	for (uint32_t m = 0; m < p->modules; m++) {
		sl_emulator_close(p->emulator[m]);
		sl_experiment_close(p->there[m]);
		unlink(p->log[m]);
	}
	sl_experiment_close(p->f.here);
}

/* All that it sent is here, and waits for the other module: its frames are not to be taken for
 * those that it will begin with. */
static void who_comes_back_is_taken_when_all_before_it_was_given_out(void **state)
{
	static const char *const more[] = {"ring.align=frame", "detector.dark_frames=0",
					   "detector.frames=40"};
	static const char *const faults[] = {"frontend.restart_after=10",
					     "frontend.fault_modules=1"};
	struct pair p = {0};
	struct sl_plan plan;
	int err;

	open_pair(&p, more, 3, faults, 2);
	assert_int_equal(sl_emulator_start(p.emulator[1]), 0);
	send_all(&p, 1, -ERESTART);
	while (!atomic_load(&p.f.receiver->source[1].settled))
		nap();
	assert_int_equal(sl_emulator_rejoin(p.emulator[1]), 0);
	assert_int_equal(sl_emulator_plan_begin(p.emulator[1]), 0);
	assert_int_equal(sl_emulator_offer(p.emulator[1], 1, &p.offer[1]), 0);
	for (int i = 0; i < 100; i++, nap())
		assert_int_equal(take(&p, 1, &plan), -EAGAIN);
	/* No further than the module that is away has come, so that it finds its place again. */
	sl_receiver_limit(p.f.receiver, 12);
	assert_int_equal(sl_emulator_start(p.emulator[0]), 0);
	while ((err = take(&p, 1, &plan)) == -EAGAIN) {
		say(&p, 0, false);
		nap();
	}
	assert_int_equal(err, 0);
	assert_int_equal(plan.first_sequence, 10);
	assert_int_equal(sl_emulator_connect(p.emulator[1], &plan), 0);
	say(&p, 1, false); /* before anything was sent: nothing is taken back */
	assert_int_equal(sl_emulator_start(p.emulator[1]), 0);
	sl_receiver_limit(p.f.receiver, UINT64_MAX);
	send_all(&p, 0, 0);
	send_all(&p, 1, 0);
	while (!sl_receiver_done(p.f.receiver))
		nap();
	/* It missed ten frames, and was late for none. */
	assert_int_equal(p.f.receiver->ledger.tally[1].cause[SL_CAUSE_LATE], 0);
	assert_int_equal(p.f.receiver->ledger.tally[0].cause[SL_CAUSE_PARTNER], 10);
	close_pair(&p);
}

/* The two are one front end, for all that the receiver knows: it waits for nothing of the one that
 * is back while there is something of the other, which would wait for that in turn. */
static void who_comes_back_waits_for_what_others_left(void **state)
{
	static const char *const more[] = {"ring.align=timestamp", "detector.dark_frames=0",
					   "unit.batch=1", "detector.frames=2"};
	static const char *const longer[] = {"detector.frames=3"};
	struct pair p = {0};
	struct sl_plan plan;
	int err;

	atomic_store(&closed, true); /* two frames are in the unit, and there is no third batch */
	open_pair(&p, more, 4, longer, 1);
	for (uint32_t m = 0; m < MODULES; m++)
		assert_int_equal(sl_emulator_start(p.emulator[m]), 0);
	for (uint32_t m = 0; m < MODULES; m++)
		send_all(&p, m, 0);
	for (uint32_t m = 0; m < MODULES; m++)
		while (!atomic_load(&p.f.receiver->source[m].settled))
			nap();
	for (int i = 0; i < 100; i++, nap())
		assert_int_equal(take(&p, 0, &plan), -EAGAIN);
	atomic_store(&closed, false);
	while ((err = take(&p, 0, &plan)) == -EAGAIN)
		nap();
	/* That was the last frame; or it was taken just before, and is gone again. */
	assert_true(err == 0 || err == -EBUSY);
	if (!err)
		sl_receiver_source_lost(p.f.receiver, 0);
	close_pair(&p);
}

/* Gone, and back with an offer. */
static void go_and_return(struct pair *p, uint32_t m)
{
	send_all(p, m, -ERESTART);
	while (!atomic_load(&p->f.receiver->source[m].settled))
		nap();
	assert_int_equal(sl_emulator_rejoin(p->emulator[m]), 0);
	assert_int_equal(sl_emulator_plan_begin(p->emulator[m]), 0);
	assert_int_equal(sl_emulator_offer(p->emulator[m], m, &p->offer[m]), 0);
}

/* Modules 1 and 2 are as one front end that is back: neither sends before both have plans. What
 * module 0 left meanwhile waits for them, and so they do not wait for it. */
static void who_comes_back_does_not_wait_for_who_waits_for_it(void **state)
{
	static const char *const more[] = {"ring.align=frame", "detector.dark_frames=0",
					   "detector.frames=30", "detector.modules=3"};
	static const char *const faults[] = {"frontend.restart_after=10",
					     "frontend.fault_modules=1-2"};
	struct pair p = {.modules = 3};
	struct sl_plan plan;

	open_pair(&p, more, 4, faults, 2);
	sl_receiver_limit(p.f.receiver, 12);
	for (uint32_t m = 0; m < 3; m++)
		assert_int_equal(sl_emulator_start(p.emulator[m]), 0);
	for (uint32_t m = 1; m < 3; m++)
		go_and_return(&p, m);
	for (uint32_t m = 1; m < 3; m++) {
		int err = -EAGAIN;

		for (int i = 0; i < 5000 && err == -EAGAIN; i++, nap())
			err = take(&p, m, &plan);
		assert_int_equal(err, 0);
		assert_int_equal(sl_emulator_connect(p.emulator[m], &plan), 0);
		if (m > 1)
			continue;
		sl_receiver_limit(p.f.receiver, UINT64_MAX);
		send_all(&p, 0, 0);
		while (!atomic_load(&p.f.receiver->source[0].settled))
			nap();
	}
	for (uint32_t m = 1; m < 3; m++)
		assert_int_equal(sl_emulator_start(p.emulator[m]), 0);
	for (uint32_t m = 1; m < 3; m++)
		send_all(&p, m, 0);
	while (!sl_receiver_done(p.f.receiver))
		nap();
	/* They missed ten frames, and were late for none. */
	assert_int_equal(p.f.receiver->ledger.tally[0].cause[SL_CAUSE_PARTNER], 10);
	for (uint32_t m = 1; m < 3; m++)
		assert_int_equal(p.f.receiver->ledger.tally[m].cause[SL_CAUSE_LATE], 0);
	close_pair(&p);
}

static void nobody_is_taken_when_the_last_frame_was_given_out(void **state)
{
	/* One frame is one batch: nothing waits for the unit to be given out. */
	static const char *const more[] = {"ring.align=frame", "detector.dark_frames=0",
					   "detector.frames=1"};
	struct pair p = {0};
	struct sl_plan plan;
	unsigned then;
	int err;

	atomic_store(&closed, true);
	open_pair(&p, more, 3, more, 0);
	for (uint32_t m = 0; m < MODULES; m++)
		assert_int_equal(sl_emulator_start(p.emulator[m]), 0);
	for (uint32_t m = 0; m < MODULES; m++)
		send_all(&p, m, 0);
	for (uint32_t m = 0; m < MODULES; m++)
		while (!atomic_load(&p.f.receiver->source[m].settled))
			nap();
	for (then = atomic_load(&looks); atomic_load(&looks) - then < 3;)
		nap();
	for (int i = 0; i < 100; i++, nap())
		assert_int_equal(take(&p, 0, &plan), -EAGAIN);
	atomic_store(&closed, false);
	while ((err = take(&p, 0, &plan)) == -EAGAIN)
		nap();
	assert_int_equal(err, -EBUSY);
	close_pair(&p);
}

static void a_restart_is_logged_behind_what_was_delayed(void **state)
{
	static const char *const more[] = {"ring.align=frame", "detector.frames=40"};
	static const char *const faults[] = {"frontend.restart_after=10",
					     "frontend.fault_modules=1", "frontend.delay=1",
					     "frontend.delay_frames=3"};
	struct pair p = {0};
	char line[64], last[64] = "";
	FILE *file;

	open_pair(&p, more, 2, faults, 4);
	for (uint32_t m = 0; m < MODULES; m++)
		assert_int_equal(sl_emulator_start(p.emulator[m]), 0);
	send_all(&p, 1, -ERESTART);
	file = fopen(p.log[1], "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		memcpy(last, line, sizeof(last));
	fclose(file);
	assert_string_equal(last, "1 10 0 restart\n");
	send_all(&p, 0, 0);
	close_pair(&p);
}

/* ---- ring.overrun drop_oldest ---- */

static int put_when_open(void *state, struct sl_frame *frame)
{
	while (atomic_load(&closed))
		nap();
	return 0;
}

static void what_would_not_go_on_anyway_keeps_its_cause(void **state)
{
	static const char *const more[] = {"ring.overrun=drop_oldest", "unit.batch=1",
					   "detector.frames=500", "frontend.drop=1",
					   "frontend.fault_modules=1"};
	struct flow f = {.here = open_experiment(more, 5)};
	struct sl_sink slow = *f.here->sink[0];

	slow.put = put_when_open;
	slow.wants |= SL_WANT_BROKEN;
	slow.figures = NULL;
	f.here->sink[0] = &slow;
	atomic_store(&closed, true);
	open_flow(&f, more, 5);
	while (!sl_emulator_finished(f.emulator)) {
		pass_counts(&f, false);
		sl_emulator_log_faults(f.emulator);
		nap();
	}
	atomic_store(&closed, false);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(f.receiver->ledger.tally[0].cause[SL_CAUSE_PARTNER], 500 + DARKS);
	assert_int_equal(f.receiver->ledger.tally[1].cause[SL_CAUSE_NO_ARRIVAL], 500 + DARKS);
	close_flow(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_comes_back_is_taken_when_all_before_it_was_given_out),
		cmocka_unit_test(who_comes_back_waits_for_what_others_left),
		cmocka_unit_test(who_comes_back_does_not_wait_for_who_waits_for_it),
		cmocka_unit_test(nobody_is_taken_when_the_last_frame_was_given_out),
		cmocka_unit_test(a_restart_is_logged_behind_what_was_delayed),
		cmocka_unit_test(what_would_not_go_on_anyway_keeps_its_cause),
	};

	return RUN_APART_AND_TOGETHER("rejoin", tests);
}
