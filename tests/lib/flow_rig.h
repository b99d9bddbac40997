/* flow_rig.h - both sides of a small experiment in one process, without the control protocol. */
#ifndef TESTS_LIB_FLOW_RIG_H
#define TESTS_LIB_FLOW_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "emulator/emulator.h"
#include "lib/ledger_sums.h"
#include "receiver/private.h"

enum { FRAMES = 200, DARKS = 10, MODULES = 2 };

struct flow {
	struct sl_experiment *here, *there;
	struct sl_receiver *receiver;
	struct sl_emulator *emulator;
};

static bool with_nexus; /* the next experiment has a file too */
static bool together;	/* experiments have one data thread on the receiving side */
static void (*before_start)(struct sl_receiver *receiver); /* NULL: nothing is changed */
static uint64_t overwritten; /* a sequence of module 0 that its source announces too early */

static inline struct sl_experiment *open_experiment(const char *const *more, size_t n)
{
	char path[] = "/tmp/sluice-flow-XXXXXX", listen[64], source[64];
	const char *sets[16] = {listen, source};
	unsigned pid = (unsigned)getpid();
	struct sl_experiment *e = NULL;
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fprintf(file,
		"detector: {kind: pattern, modules: %d, frames: %d, dark_frames: %d, rows: 32, "
		"columns: 64}\n"
		"link: {kind: udp, pmtu: 512}\n"
		"ring: {slots: 12, poison: true, late_frames: 4, late_timeout_ms: 20000}\n"
		"%s",
		MODULES, FRAMES, DARKS,
		with_nexus ? "stages: [copy]\nsinks: [nexus: {dataset: raw}, verify]\n"
			   : "sinks: ['null', verify]\n");
	fclose(file);
	snprintf(listen, sizeof(listen), "link.listen=127.%u.%u.%u", 101 + pid / 62500 % 100,
		 1 + pid / 250 % 250, (pid % 125) * 2 + 1);
	snprintf(source, sizeof(source), "link.source=127.%u.%u.%u", 101 + pid / 62500 % 100,
		 1 + pid / 250 % 250, (pid % 125) * 2 + 2);
	for (size_t i = 0; i < n; i++)
		sets[2 + i] = more[i];
	if (together)
		sets[2 + n++] = "threads.together=true";
	assert_int_equal(sl_experiment_open(path, NULL, sets, 2 + n, &e), 0);
	unlink(path);
	return e;
}

static inline int all_together(void **state)
{
	(void)state;
	together = true;
	return 0;
}

/* The same tests twice: a thread for each part of the receiving side, and one for all of them. */
#define RUN_APART_AND_TOGETHER(name, tests)                     \
	(cmocka_run_group_tests_name(name, tests, NULL, NULL) + \
	 cmocka_run_group_tests_name(name " together", tests, all_together, NULL))

static inline void open_flow(struct flow *f, const char *const *more, size_t n)
{
	char why[128];

	if (!f->here)
		f->here = open_experiment(more, n);
	f->there = open_experiment(more, n);
	assert_int_equal(sl_receiver_open(f->here, NULL, &f->receiver), 0);
	assert_int_equal(sl_emulator_open(f->there, 0, UINT32_MAX, &f->emulator), 0);
	assert_int_equal(sl_emulator_plan_begin(f->emulator), 0);
	for (uint32_t m = 0; m < MODULES; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		assert_int_equal(sl_emulator_offer(f->emulator, m, &offer), 0);
		assert_int_equal(
			sl_receiver_accept(f->receiver, &offer, true, &plan, why, sizeof(why)), 0);
		assert_int_equal(sl_emulator_connect(f->emulator, &plan), 0);
	}
	if (overwritten)
		sl_ring_turn_away(&f->receiver->feed[0].ring, overwritten, 0);
	if (before_start)
		before_start(f->receiver);
	assert_int_equal(sl_receiver_start(f->receiver), 0);
	assert_int_equal(sl_emulator_start(f->emulator), 0);
}

static inline void pass_counts(struct flow *f, bool final)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		struct sl_emulator_module *module = &f->emulator->module[m];
		uint64_t position = atomic_load(&module->position);
		uint64_t sent = atomic_load(&module->sent), next = atomic_load(&module->next);
		char why[128];

		assert_int_equal(sl_receiver_count(f->receiver, m, next, sent, position, final, why,
						   sizeof(why)),
				 0);
	}
}

static inline void run_flow(struct flow *f)
{
	while (!sl_emulator_finished(f->emulator)) {
		pass_counts(f, false);
		sl_emulator_log_faults(f->emulator);
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
	pass_counts(f, true);
	while (!sl_receiver_done(f->receiver))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(sl_emulator_plan_end(f->emulator), 0);
	assert_int_equal(sl_receiver_finish(f->receiver), 0);
}

static inline void close_flow(struct flow *f)
{
	sl_emulator_close(f->emulator);
	sl_receiver_close(f->receiver);
	sl_experiment_close(f->here);
	sl_experiment_close(f->there);
}

static inline void figure(void *arg, const char *name, uint64_t value, int failed)
{
	uint64_t *wrong = arg;

	*wrong += failed ? value : 0;
}

static inline uint64_t wrong_pixels(const struct flow *f)
{
	uint64_t wrong = 0;

	f->here->sink[1]->figures(f->here->sink_state[1], figure, &wrong);
	return wrong;
}

#endif
