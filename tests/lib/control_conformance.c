/* control_conformance.c - the cases. */
#include "lib/control_conformance.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { STEP_MS = 10, PART = 5 };

/* ---- the world ---- */

static unsigned open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static struct sl_experiment *read_experiment(const struct control_world *w, const char *more)
{
	char path[] = "/tmp/sluice-control-XXXXXX";
	const char *const sets[] = {more};
	struct sl_experiment *e = NULL;
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fprintf(file, w->rig->experiment, w->address);
	fputs("sinks: ['null']\n", file);
	fclose(file);
	assert_int_equal(sl_experiment_open(path, NULL, sets, more ? 1 : 0, &e), 0);
	unlink(path);
	e->emulate_local = w->rig->emulated;
	assert_int_equal(e->run.modules, RECORDER_MODULES);
	assert_int_equal(e->run.dark_frames + e->run.frames, RECORDER_FRAMES);
	return e;
}

/* A driver with this state is not open yet. */
static struct control_world *make(const struct control_rig *rig, const char *more)
{
	struct control_world *w = calloc(1, sizeof(*w));
	unsigned pid = (unsigned)getpid();

	assert_non_null(w);
	w->rig = rig;
	w->now_ns = 1000 * MS;
	snprintf(w->address, sizeof(w->address), "127.%u.%u.%u", 101 + pid / 62500 % 100,
		 1 + pid / 250 % 250, 1 + pid % 250);
	recorder_init(&w->recorder);
	w->experiment = read_experiment(w, more);
	w->geometry =
		(struct sl_geometry){.modules = RECORDER_MODULES, .rows = 4, .module_bytes = 512};
	w->state = calloc(1, rig->driver->state_bytes);
	w->sources = calloc(1, rig->source_bytes ? rig->source_bytes : 1);
	for (uint32_t m = 0; rig->resumed && m < RECORDER_MODULES; m++)
		w->recorder.module[m].planned = true;
	return w;
}

static struct sl_control_env env_of(struct control_world *w)
{
	return (struct sl_control_env){
		.experiment = w->experiment,
		.file = "conformance.yaml",
		.modules = RECORDER_MODULES,
		.block_bytes = 576,
		.pixel_bytes = 512,
		.geometry = &w->geometry,
		.ops = &recorder_ops,
		.arg = &w->recorder,
	};
}

static int open_driver(struct control_world *w)
{
	const struct sl_control_env env = env_of(w);

	assert_int_equal(w->rig->driver->modules(w->experiment, w->rig->resumed), RECORDER_MODULES);
	return w->rig->driver->open(w->state, &env);
}

static struct control_world *opened(const struct control_rig *rig)
{
	struct control_world *w = make(rig, NULL);

	assert_int_equal(open_driver(w), 0);
	return w;
}

static void close_world(struct control_world *w)
{
	w->rig->driver->close(w->state);
	if (w->rig->quit)
		w->rig->quit(w);
	sl_experiment_close(w->experiment);
	free(w->state);
	free(w->sources);
	free(w);
}

void control_pass(struct control_world *w, uint64_t ms)
{
	const struct sl_control *d = w->rig->driver;

	for (uint64_t i = 0; i < ms; i += STEP_MS) {
		struct pollfd fds[128];
		unsigned n = d->fds ? d->fds(w->state, fds, 128) : 0;

		w->now_ns += STEP_MS * MS;
		for (uint32_t m = 0; m < RECORDER_MODULES && !w->blind; m++)
			w->recorder.module[m].progress.idle++;
		if (n)
			poll(fds, n, 0);
		d->poll(w->state, w->now_ns);
	}
}

static struct control_world *all_planned(const struct control_rig *rig)
{
	struct control_world *w = opened(rig);

	for (uint32_t m = 0; rig->come && m < RECORDER_MODULES; m++)
		rig->come(w, m);
	control_pass(w, STEP_MS);
	return w;
}

static struct control_world *running(const struct control_rig *rig)
{
	struct control_world *w = all_planned(rig);

	w->recorder.running = true;
	rig->driver->start(w->state, w->now_ns);
	control_pass(w, STEP_MS);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		recorder_arrive(&w->recorder, m, PART);
	control_pass(w, STEP_MS);
	return w;
}

static unsigned overs(const struct control_world *w)
{
	unsigned sum = 0;

	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		sum += recorder_over(&w->recorder, m);
	return sum;
}

static unsigned losses(const struct control_world *w)
{
	unsigned sum = 0;

	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		sum += w->recorder.module[m].losses;
	return sum;
}

/* ---- cases ---- */

/* cmocka's skip() takes no reason: it is a line before it. */
#define skip_case(why)                              \
	do {                                        \
		print_message("# skip: %s\n", why); \
		skip();                             \
	} while (0)

static void opens_and_closes_without_a_source(const struct control_rig *rig)
{
	unsigned before = open_descriptors();
	struct control_world *w = opened(rig);

	control_pass(w, 100);
	assert_int_equal(rig->driver->planned(w->state),
			 rig->offers_itself || rig->resumed ? RECORDER_MODULES : 0);
	assert_int_equal(overs(w), 0);
	close_world(w);
	assert_int_equal(open_descriptors(), before);
}

static void closes_after_an_open_that_failed(const struct control_rig *rig)
{
	unsigned before = open_descriptors();
	struct control_world *w;

	if (!rig->bad_override && !rig->offers_itself)
		skip_case("nothing can fail");
	w = make(rig, rig->bad_override);
	w->recorder.accept_error = rig->offers_itself ? -EINVAL : 0;
	assert_true(open_driver(w) < 0);
	close_world(w);
	assert_int_equal(open_descriptors(), before);
}

static void plans_every_module_once(const struct control_rig *rig)
{
	struct control_world *w = opened(rig);

	for (uint32_t m = 0; rig->come && m < RECORDER_MODULES; m++) {
		assert_int_equal(rig->driver->planned(w->state), m);
		assert_false(rig->driver->ready(w->state));
		rig->come(w, m);
	}
	control_pass(w, STEP_MS);
	assert_int_equal(rig->driver->planned(w->state), RECORDER_MODULES);
	assert_true(rig->driver->ready(w->state));
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_int_equal(w->recorder.module[m].accepts, !rig->resumed);
	assert_int_equal(w->recorder.limit, rig->limits ? RECORDER_FRAMES : UINT64_MAX);
	close_world(w);
}

static void sources_may_wait_for_the_start(const struct control_rig *rig)
{
	struct control_world *w = all_planned(rig);

	control_pass(w, 20 * CONTROL_SILENCE_S * 1000);
	assert_int_equal(rig->driver->planned(w->state), RECORDER_MODULES);
	assert_true(rig->driver->ready(w->state));
	w->recorder.running = true;
	rig->driver->start(w->state, w->now_ns);
	control_pass(w, CONTROL_SILENCE_S * 1000 - 200); /* silence counts from now on */
	assert_int_equal(overs(w), 0);
	close_world(w);
}

static void a_refused_offer_is_no_plan(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->ask)
		skip_case("its sources do not ask");
	w = opened(rig);
	w->recorder.accept_error = -EINVAL;
	rig->ask(w, 0);
	control_pass(w, 100);
	assert_int_equal(rig->driver->planned(w->state), 0);
	w->recorder.accept_error = 0;
	rig->come(w, 0);
	assert_int_equal(rig->driver->planned(w->state), 1);
	close_world(w);
}

static void a_source_may_leave_before_the_start(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->leave)
		skip_case("its sources cannot say so");
	w = all_planned(rig);
	rig->leave(w, 0);
	control_pass(w, 100);
	assert_int_equal(w->recorder.module[0].cancelled_plans, 1);
	assert_int_equal(rig->driver->planned(w->state), RECORDER_MODULES - 1);
	assert_false(rig->driver->ready(w->state));
	rig->come(w, 0);
	control_pass(w, STEP_MS);
	assert_true(rig->driver->ready(w->state));
	assert_int_equal(w->recorder.module[0].accepts, 2);
	close_world(w);
}

static void the_last_frame_is_the_end(const struct control_rig *rig)
{
	struct control_world *w = running(rig);

	assert_int_equal(overs(w), 0);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++) {
		recorder_arrive(&w->recorder, m, RECORDER_FRAMES);
		if (rig->finish)
			rig->finish(w, m);
	}
	control_pass(w, 1000);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_int_equal(recorder_over(&w->recorder, m), 1);
	assert_int_equal(losses(w), 0);
	control_pass(w, 20000); /* and stays one */
	assert_int_equal(overs(w), RECORDER_MODULES);
	close_world(w);
}

static void bye_comes_when_it_is_said(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->heard_bye)
		skip_case("nothing goes back to its sources");
	w = running(rig);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++) {
		recorder_arrive(&w->recorder, m, RECORDER_FRAMES);
		if (rig->finish)
			rig->finish(w, m);
	}
	control_pass(w, 1000);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_false(rig->heard_bye(w, m));
	rig->driver->bye(w->state, false);
	control_pass(w, 100);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_true(rig->heard_bye(w, m));
	rig->driver->bye(w->state, false); /* twice is no harm */
	control_pass(w, 2000);
	assert_false(rig->driver->leaving && rig->driver->leaving(w->state));
	close_world(w);
}

static void finish_all(struct control_world *w)
{
	for (uint32_t m = 0; m < RECORDER_MODULES; m++) {
		recorder_arrive(&w->recorder, m, RECORDER_FRAMES);
		if (w->rig->finish)
			w->rig->finish(w, m);
	}
	control_pass(w, 1000);
}

/* Plans of the run before are no longer known; sources get new ones, and end once. */
static void another_run_begins_with_new_plans(const struct control_rig *rig)
{
	struct control_world *w;
	struct sl_control_env env;

	if (!rig->driver->again)
		skip_case("it is closed and opened");
	w = running(rig);
	finish_all(w);
	rig->driver->bye(w->state, true);
	control_pass(w, 100);
	assert_false(rig->driver->leaving && rig->driver->leaving(w->state));
	recorder_init(&w->recorder);
	env = env_of(w);
	assert_int_equal(rig->driver->again(w->state, &env), 0);
	assert_int_equal(rig->driver->planned(w->state), 0);
	assert_false(rig->driver->ready(w->state));
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		rig->come(w, m);
	control_pass(w, STEP_MS);
	assert_true(rig->driver->ready(w->state));
	w->recorder.running = true;
	rig->driver->start(w->state, w->now_ns);
	control_pass(w, STEP_MS);
	finish_all(w);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_int_equal(recorder_over(&w->recorder, m), 1);
	assert_int_equal(losses(w), 0);
	close_world(w);
}

static void a_stop_ends_every_source_once(const struct control_rig *rig)
{
	struct control_world *w = running(rig);

	rig->driver->stop(w->state);
	rig->driver->stop(w->state);
	for (uint32_t m = 0; rig->obey && m < RECORDER_MODULES; m++)
		rig->obey(w, m);
	control_pass(w, 1000);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_int_equal(recorder_over(&w->recorder, m), 1);
	assert_int_equal(losses(w), 0);
	rig->driver->abandon(w->state);
	control_pass(w, 20000);
	assert_int_equal(overs(w), RECORDER_MODULES);
	close_world(w);
}

/* Sources that cannot be told find no slot beyond those that are open at the first stop. */
static void a_stop_opens_no_more_slots(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->holds)
		skip_case("its sources are told, or not listened to");
	w = running(rig);
	rig->driver->stop(w->state);
	assert_int_equal(w->recorder.limit, PART + RECORDER_SLOTS);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++) { /* they are filled */
		recorder_arrive(&w->recorder, m, PART + RECORDER_SLOTS);
		w->recorder.module[m].progress.opened = PART + RECORDER_SLOTS;
	}
	control_pass(w, 2 * STEP_MS); /* at once, not after 200 ms */
	assert_int_equal(overs(w), RECORDER_MODULES);
	assert_int_equal(losses(w), 0);
	close_world(w);
}

static void a_second_stop_changes_nothing(const struct control_rig *rig)
{
	struct control_world *w = running(rig);
	uint64_t limit;

	rig->driver->stop(w->state);
	limit = w->recorder.limit;
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		w->recorder.module[m].progress.opened += 5;
	rig->driver->stop(w->state);
	assert_int_equal(w->recorder.limit, limit);
	close_world(w);
}

static void abandon_loses_what_still_runs(const struct control_rig *rig)
{
	struct control_world *w = running(rig);

	rig->driver->abandon(w->state);
	rig->driver->abandon(w->state);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		assert_int_equal(recorder_over(&w->recorder, m), 1);
	control_pass(w, 20000);
	assert_int_equal(overs(w), RECORDER_MODULES);
	close_world(w);
}

static void silence_is_noticed_once(const struct control_rig *rig)
{
	struct control_world *w = running(rig);

	control_pass(w, CONTROL_SILENCE_S * 1000 - 200);
	assert_int_equal(overs(w), 0);
	control_pass(w, 400);
	assert_int_equal(losses(w), RECORDER_MODULES);
	control_pass(w, 20000);
	assert_int_equal(overs(w), RECORDER_MODULES);
	close_world(w);
}

static void a_link_that_did_not_look_proves_no_silence(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->looks)
		skip_case("its modules are watched one by one: core/watch.h");
	w = running(rig);
	w->blind = true;
	control_pass(w, 10 * CONTROL_SILENCE_S * 1000);
	assert_int_equal(overs(w), 0);
	w->blind = false;
	control_pass(w, 100);
	assert_int_equal(losses(w), RECORDER_MODULES);
	close_world(w);
}

/* Sources are watched together: one whose link did not look speaks for all. */
static void silence_is_proven_as_far_as_every_link_has_looked(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->looks)
		skip_case("its modules are watched one by one: core/watch.h");
	for (uint32_t late = 0; late < RECORDER_MODULES; late++) {
		w = running(rig);
		for (uint32_t m = 0; m < RECORDER_MODULES; m++)
			w->recorder.module[m].progress.looked_ns = w->now_ns;
		for (unsigned ms = 0; ms < 3 * CONTROL_SILENCE_S * 1000; ms += STEP_MS) {
			for (uint32_t m = 0; m < RECORDER_MODULES; m++)
				if (m != late)
					w->recorder.module[m].progress.looked_ns = w->now_ns;
			control_pass(w, STEP_MS);
		}
		assert_int_equal(overs(w), 0);
		w->recorder.module[late].progress.looked_ns = w->now_ns;
		control_pass(w, STEP_MS);
		assert_int_equal(losses(w), RECORDER_MODULES);
		close_world(w);
	}
}

static void data_are_a_sign_of_life(const struct control_rig *rig)
{
	struct control_world *w = running(rig);

	for (uint64_t k = PART + 1; k < RECORDER_FRAMES; k++) {
		for (uint32_t m = 0; m < RECORDER_MODULES; m++)
			recorder_arrive(&w->recorder, m, k);
		control_pass(w, CONTROL_SILENCE_S * 1000 / 2);
	}
	assert_int_equal(overs(w), 0);
	close_world(w);
}

static void a_source_that_waits_for_a_slot_is_not_silent(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->resumed && rig->finish)
		skip_case("its sources speak while they wait");
	if (rig->driver->starts_alone)
		skip_case("its sources do not wait");
	w = running(rig);
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		w->recorder.module[m].progress.opened = PART;
	control_pass(w, 10 * CONTROL_SILENCE_S * 1000);
	assert_int_equal(overs(w), 0);
	close_world(w);
}

static void a_front_end_that_failed_is_not_waited_for(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->driver->hurry)
		skip_case("it shows on the connection");
	w = running(rig);
	rig->driver->hurry(w->state);
	control_pass(w, 900);
	assert_int_equal(overs(w), 0);
	control_pass(w, 200);
	assert_int_equal(losses(w), RECORDER_MODULES);
	close_world(w);
}

static void strangers_change_nothing(const struct control_rig *rig)
{
	struct control_world *w;
	unsigned calls;

	if (!rig->stranger)
		skip_case("it listens to nothing");
	w = opened(rig);
	calls = w->recorder.calls;
	rig->stranger(w);
	control_pass(w, 100);
	assert_int_equal(w->recorder.calls, calls);
	close_world(w);
	w = running(rig);
	calls = w->recorder.calls;
	rig->stranger(w);
	control_pass(w, 100);
	assert_int_equal(w->recorder.calls, calls);
	assert_int_equal(overs(w), 0);
	close_world(w);
}

static void a_source_that_hangs_up_is_over_once(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->leave)
		skip_case("its sources cannot say so");
	w = running(rig);
	rig->leave(w, 1);
	control_pass(w, 100);
	assert_int_equal(recorder_over(&w->recorder, 0), 0);
	assert_int_equal(recorder_over(&w->recorder, 1), 1);
	rig->driver->abandon(w->state);
	control_pass(w, 100);
	assert_int_equal(recorder_over(&w->recorder, 0), 1);
	assert_int_equal(recorder_over(&w->recorder, 1), 1);
	close_world(w);
}

/* The receiver says -EAGAIN until what the one before sent is accounted for. */
static void another_source_takes_its_place(const struct control_rig *rig)
{
	struct control_world *w;

	if (!rig->leave)
		skip_case("its sources cannot say that they leave");
	w = running(rig);
	rig->leave(w, 1);
	control_pass(w, 100);
	w->recorder.accept_error = -EAGAIN;
	rig->ask(w, 1);
	control_pass(w, 100);
	assert_int_equal(w->recorder.module[1].accepts, 1);
	w->recorder.accept_error = 0;
	control_pass(w, 100);
	assert_int_equal(w->recorder.module[1].accepts, rig->returns ? 2 : 1);
	if (rig->returns) {
		rig->leave(w, 1);
		control_pass(w, 100);
		assert_int_equal(recorder_over(&w->recorder, 1), 2);
		w->recorder.accept_error = -EAGAIN;
		rig->ask(w, 1);
		control_pass(w, 100);
		rig->leave(w, 1); /* before there was an answer */
		control_pass(w, 100);
		assert_int_equal(w->recorder.module[1].cancelled_offers, 1);
	}
	assert_int_equal(recorder_over(&w->recorder, 0), 0);
	close_world(w);
}

static void a_count_that_is_not_believed_loses_the_source(const struct control_rig *rig)
{
	struct control_world *w;

	if (rig->resumed)
		skip_case("it never counts");
	w = running(rig);
	w->recorder.count_error = -EPROTO;
	for (uint32_t m = 0; m < RECORDER_MODULES; m++) {
		recorder_arrive(&w->recorder, m, RECORDER_FRAMES);
		if (rig->finish)
			rig->finish(w, m);
	}
	control_pass(w, 100);
	assert_int_equal(losses(w), RECORDER_MODULES);
	assert_int_equal(overs(w), RECORDER_MODULES);
	close_world(w);
}

static void closes_while_sources_run(const struct control_rig *rig)
{
	unsigned before = open_descriptors();
	struct control_world *w = running(rig);

	close_world(w);
	assert_int_equal(open_descriptors(), before);
}

/* ---- the suite ---- */

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct {
	const char *name;
	void (*run)(const struct control_rig *rig);
} cases[] = {
	CASE(opens_and_closes_without_a_source),
	CASE(closes_after_an_open_that_failed),
	CASE(plans_every_module_once),
	CASE(sources_may_wait_for_the_start),
	CASE(a_refused_offer_is_no_plan),
	CASE(a_source_may_leave_before_the_start),
	CASE(the_last_frame_is_the_end),
	CASE(bye_comes_when_it_is_said),
	CASE(another_run_begins_with_new_plans),
	CASE(a_stop_ends_every_source_once),
	CASE(a_stop_opens_no_more_slots),
	CASE(a_second_stop_changes_nothing),
	CASE(abandon_loses_what_still_runs),
	CASE(silence_is_noticed_once),
	CASE(a_link_that_did_not_look_proves_no_silence),
	CASE(silence_is_proven_as_far_as_every_link_has_looked),
	CASE(data_are_a_sign_of_life),
	CASE(a_source_that_waits_for_a_slot_is_not_silent),
	CASE(a_front_end_that_failed_is_not_waited_for),
	CASE(strangers_change_nothing),
	CASE(a_source_that_hangs_up_is_over_once),
	CASE(another_source_takes_its_place),
	CASE(a_count_that_is_not_believed_loses_the_source),
	CASE(closes_while_sources_run),
};

enum { CASES = sizeof(cases) / sizeof(cases[0]), RIGS_MOST = 8 };

struct one {
	unsigned number;
	const struct control_rig *rig;
	char name[96];
};

static void run_one(void **state)
{
	const struct one *one = *state;

	cases[one->number].run(one->rig);
}

int control_conform(const struct control_rig *rigs, size_t n)
{
	static struct one ones[CASES * RIGS_MOST];
	static struct CMUnitTest tests[CASES * RIGS_MOST];
	size_t count = 0;

	assert_true(n <= RIGS_MOST);
	for (size_t r = 0; r < n; r++)
		for (unsigned c = 0; c < CASES; c++, count++) {
			ones[count].number = c;
			ones[count].rig = &rigs[r];
			snprintf(ones[count].name, sizeof(ones[count].name), "%s: %s",
				 rigs[r].driver->name, cases[c].name);
			tests[count] = (struct CMUnitTest){
				.name = ones[count].name,
				.test_func = run_one,
				.initial_state = &ones[count],
			};
		}
	return _cmocka_run_group_tests("control", tests, count, NULL, NULL);
}
