/* several_test.c - two detectors in one receiver, over UDP: each has its ring, its link and its
 * emulator; the camera has a part of every second event. Outcomes are compared one by one with the
 * fault logs of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/emulator.h"
#include "receiver/private.h"

enum { IMAGE, CAMERA, DETECTORS };
enum { EVENTS = 400, DIVIDER = 2, MODULES = 3 };

static const struct {
	uint32_t first, modules, frames;
	const char *shape;
} detector[DETECTORS] = {
	[IMAGE] = {0, 2, EVENTS, "rows: 32, columns: 64"},
	[CAMERA] = {2, 1, EVENTS / DIVIDER, "rows: 20, columns: 100"},
};

struct several {
	struct sl_experiment *here, *there[DETECTORS];
	struct sl_receiver *receiver;
	struct sl_emulator *emulator[DETECTORS];
	char faults[DETECTORS][40], outcomes[40];
};

static void write_file(unsigned d, char *path)
{
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fprintf(file,
		"detector: {kind: pattern, modules: %u, frames: %u, dark_frames: 0, %s}\n"
		"link: {kind: udp, pmtu: 256}\n"
		"ring: {slots: 16, poison: true, late_frames: 4, late_timeout_ms: 20000}\n"
		"sinks: ['null']\n",
		detector[d].modules, detector[d].frames, detector[d].shape);
	fclose(file);
}

static struct sl_experiment *open_one(unsigned d, const char *fault, const char *log)
{
	char path[] = "/tmp/sluice-several-XXXXXX", listen[64], source[64], to[80];
	const char *sets[] = {listen, source, fault, to};
	unsigned pid = (unsigned)getpid();
	struct sl_experiment *e = NULL;

	write_file(d, path);
	snprintf(listen, sizeof(listen), "link.listen=127.%u.%u.%u", 101 + pid / 60000 % 100,
		 1 + pid / 60 % 250, (pid % 60) * 4 + 2 * d + 1);
	snprintf(source, sizeof(source), "link.source=127.%u.%u.%u", 101 + pid / 60000 % 100,
		 1 + pid / 60 % 250, (pid % 60) * 4 + 2 * d + 2);
	snprintf(to, sizeof(to), "frontend.fault_log=%s", log);
	assert_int_equal(sl_experiment_open(path, NULL, sets, log[0] ? 4 : 2, &e), 0);
	unlink(path);
	return e;
}

static void temporary(char *path, size_t bytes)
{
	int fd;

	snprintf(path, bytes, "/tmp/sluice-several-log-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static void plan(struct several *s, unsigned d)
{
	char why[160];

	assert_int_equal(sl_emulator_open(s->there[d], 0, UINT32_MAX, &s->emulator[d]), 0);
	assert_int_equal(sl_emulator_plan_begin(s->emulator[d]), 0);
	for (uint32_t m = 0; m < detector[d].modules; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		assert_int_equal(sl_emulator_offer(s->emulator[d], m, &offer), 0);
		assert_int_equal(sl_feed_accept(&s->receiver->feed[d], &offer, true, &plan, why,
						sizeof(why)),
				 0);
		assert_int_equal(sl_emulator_connect(s->emulator[d], &plan), 0);
	}
}

static void open_several(struct several *s, const char *fault, struct sl_join_options join)
{
	for (unsigned d = 0; d < DETECTORS; d++) {
		temporary(s->faults[d], sizeof(s->faults[d]));
		s->there[d] = open_one(d, fault, s->faults[d]);
	}
	temporary(s->outcomes, sizeof(s->outcomes));
	unlink(s->outcomes);
	s->here = open_one(IMAGE, fault, "");
	assert_int_equal(
		sl_experiment_attach(s->here, "camera", open_one(CAMERA, fault, ""), &join), 0);
	assert_int_equal(sl_receiver_open(s->here, s->outcomes, &s->receiver), 0);
	for (unsigned d = 0; d < DETECTORS; d++)
		plan(s, d);
	assert_int_equal(sl_receiver_start(s->receiver), 0);
	for (unsigned d = 0; d < DETECTORS; d++)
		assert_int_equal(sl_emulator_start(s->emulator[d]), 0);
}

static void pass_counts(struct several *s, unsigned d, bool final)
{
	for (uint32_t m = 0; m < detector[d].modules; m++) {
		struct sl_emulator_module *module = &s->emulator[d]->module[m];
		uint64_t position = atomic_load(&module->position);
		uint64_t sent = atomic_load(&module->sent), next = atomic_load(&module->next);
		char why[128];

		assert_int_equal(sl_receiver_count(s->receiver, detector[d].first + m, next, sent,
						   position, final, why, sizeof(why)),
				 0);
	}
}

static void run(struct several *s)
{
	bool over[DETECTORS] = {false};

	while (!over[IMAGE] || !over[CAMERA]) {
		for (unsigned d = 0; d < DETECTORS; d++) {
			if (over[d])
				continue;
			sl_emulator_log_faults(s->emulator[d]);
			over[d] = sl_emulator_finished(s->emulator[d]);
			pass_counts(s, d, over[d]);
		}
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
	while (!sl_receiver_done(s->receiver))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	for (unsigned d = 0; d < DETECTORS; d++)
		assert_int_equal(sl_emulator_plan_end(s->emulator[d]), 0);
	assert_int_equal(sl_receiver_finish(s->receiver), 0);
}

static void close_several(struct several *s)
{
	for (unsigned d = 0; d < DETECTORS; d++)
		sl_emulator_close(s->emulator[d]);
	sl_receiver_close(s->receiver);
	sl_experiment_close(s->here);
	for (unsigned d = 0; d < DETECTORS; d++) {
		sl_experiment_close(s->there[d]);
		unlink(s->faults[d]);
	}
	unlink(s->outcomes);
}

/* ---- what must come out ---- */

struct expected {
	unsigned dropped[MODULES][EVENTS]; /* packets of a module-frame that were not sent */
	unsigned packets[MODULES];	   /* of a block */
};

static void read_faults(const struct several *s, struct expected *x)
{
	for (unsigned d = 0; d < DETECTORS; d++) {
		FILE *log = fopen(s->faults[d], "r");
		unsigned module, packet;
		unsigned long long k;
		char kind[32];

		assert_non_null(log);
		while (fscanf(log, "%u %llu %u %31s", &module, &k, &packet, kind) == 4) {
			assert_string_equal(kind, "drop");
			x->dropped[detector[d].first + module][k]++;
		}
		fclose(log);
	}
	for (uint32_t m = 0; m < MODULES; m++)
		x->packets[m] = s->receiver->source[m].plan.packets;
}

static bool has_camera(uint64_t event)
{
	return event % DIVIDER == 0;
}

/* The event has all that it needs. */
static bool is_whole(const struct expected *x, uint64_t event, bool required)
{
	return !x->dropped[0][event] && !x->dropped[1][event] &&
	       (!required || !has_camera(event) || !x->dropped[2][event / DIVIDER]);
}

static const char *cause_of(const struct expected *x, uint32_t m, uint64_t k, bool required)
{
	uint64_t event = m == 2 ? k * DIVIDER : k;

	if (x->dropped[m][k] == x->packets[m])
		return "no_arrival";
	if (x->dropped[m][k])
		return "damaged";
	return is_whole(x, event, required) ? "none" : "partner";
}

static uint64_t check_outcomes(const struct several *s, const struct expected *x, bool required)
{
	FILE *log = fopen(s->outcomes, "r");
	uint64_t lines = 0, whole = 0;
	unsigned module;
	unsigned long long k;
	char outcome[32], cause[32];

	assert_non_null(log);
	while (fscanf(log, "%llu %u %31s %31s", &k, &module, outcome, cause) == 4) {
		assert_string_equal(cause, cause_of(x, module, k, required));
		if (!strcmp(cause, "none"))
			assert_string_equal(outcome, "stored");
		whole += !strcmp(cause, "none");
		lines++;
	}
	fclose(log);
	assert_int_equal(lines, 2 * EVENTS + EVENTS / DIVIDER);
	return whole;
}

static void flow(const char *fault, struct sl_join_options join, uint64_t *whole)
{
	static struct expected x;
	struct several s = {0};
	struct sl_status status;

	memset(&x, 0, sizeof(x));
	open_several(&s, fault, join);
	run(&s);
	sl_receiver_status(s.receiver, &status);
	assert_true(sl_status_closed(&status));
	assert_int_equal(status.modules, MODULES);
	read_faults(&s, &x);
	*whole = check_outcomes(&s, &x, join.missing == SL_JOIN_REQUIRE);
	close_several(&s);
}

static void two_detectors_are_stored_whole(void **state)
{
	uint64_t whole;

	flow("frontend.drop=0",
	     (struct sl_join_options){.by = SL_ALIGN_SEQUENCE, .divider = DIVIDER}, &whole);
	assert_int_equal(whole, 2 * EVENTS + EVENTS / DIVIDER);
}

static void outcomes_are_those_of_the_fault_logs(void **state)
{
	uint64_t whole;

	flow("frontend.drop=0.01",
	     (struct sl_join_options){.by = SL_ALIGN_SEQUENCE, .divider = DIVIDER}, &whole);
	assert_in_range(whole, EVENTS / 2, 2 * EVENTS);
}

static void an_event_does_not_need_a_part_that_may_be_missing(void **state)
{
	uint64_t whole;

	flow("frontend.drop=0.01",
	     (struct sl_join_options){.by = SL_ALIGN_SEQUENCE,
				      .divider = DIVIDER,
				      .missing = SL_JOIN_WAIT,
				      .wait_ns = UINT64_C(60000000000)},
	     &whole);
	assert_in_range(whole, EVENTS / 2, 2 * EVENTS);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct sl_experiment *here = open_one(IMAGE, "", ""), *other = open_one(CAMERA, "", "");
	struct sl_join_options join = {.by = SL_ALIGN_SEQUENCE};

	other->ring.align = SL_ALIGN_FRAME;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), -EINVAL);
	other->ring.align = SL_ALIGN_SEQUENCE;
	other->run.modules = 63;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), -EINVAL);
	other->run.modules = 62;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), 0);
	assert_int_equal(sl_experiment_modules(here), 64);
	sl_experiment_close(here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_detectors_are_stored_whole),
		cmocka_unit_test(outcomes_are_those_of_the_fault_logs),
		cmocka_unit_test(an_event_does_not_need_a_part_that_may_be_missing),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}
