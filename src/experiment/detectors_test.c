/* detectors_test.c - a list of detectors: the first one's sections laid over those of the file, the
 * others opened and attached; every mistake told with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "experiment/experiment.h"
#include "lib/capture.h"

static const char *said; /* what was logged */

static const char two[] = "detectors:\n"
			  "  - large:\n"
			  "      kind: pattern\n"
			  "      modules: 2\n"
			  "      frame_rate_Hz: 1000\n"
			  "      link: {listen: 127.0.0.1}\n"
			  "  - camera:\n"
			  "      kind: pattern\n"
			  "      modules: 1\n"
			  "      rows: 20\n"
			  "      columns: 100\n"
			  "      frame_rate_Hz: 100\n"
			  "      link: {listen: 127.0.0.3}\n"
			  "      ring: {slots: 16}\n"
			  "      key: {by: timestamp, divider: 10, drift_ppm: 5, offset: -70.5}\n"
			  "      missing: wait\n"
			  "      wait_us: 2000\n"
			  "link: {kind: udp, pmtu: 1024}\n"
			  "ring: {slots: 64}\n"
			  "control: {port: 5000}\n"
			  "sinks: ['null']\n";

static void make(const char *text, char *path, size_t bytes)
{
	int fd = memfd_create("experiment", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, bytes, "/proc/self/fd/%d", fd);
}

static void forget(const char *path)
{
	close(atoi(strrchr(path, '/') + 1));
}

static int open_set(const char *text, const char *const *set, size_t sets, struct sl_experiment **e)
{
	char path[64];
	int err;

	make(text, path, sizeof(path));
	capture_begin();
	err = sl_experiment_open(path, NULL, set, sets, e);
	said = capture_end();
	forget(path);
	return err;
}

static struct sl_experiment *good(const char *text)
{
	struct sl_experiment *e = NULL;

	if (open_set(text, NULL, 0, &e))
		fail_msg("refused: %s", said);
	assert_string_equal(said, "");
	return e;
}

static void the_first_defines_events_and_the_others_attach(void **state)
{
	struct sl_experiment *e = good(two);
	const struct sl_experiment_other *o = &e->other[0];

	assert_int_equal(e->others, 1);
	assert_string_equal(e->detector_name, "large");
	assert_int_equal(e->run.modules, 2);
	assert_int_equal(e->ring.slots, 64);
	assert_int_equal(e->sinks, 1);
	assert_string_equal(o->name, "camera");
	assert_int_equal(o->experiment->run.modules, 1);
	assert_int_equal(o->experiment->ring.slots, 16);
	assert_int_equal(sl_experiment_pmtu(o->experiment), 1024); /* shared */
	assert_int_equal(o->experiment->sinks, 0);
	assert_int_equal(sl_experiment_modules(e), 3);
	assert_int_equal(o->join.by, SL_ALIGN_TIMESTAMP);
	assert_int_equal(o->join.divider, 10);
	assert_int_equal(o->join.offset, -70);
	assert_true(o->join.drift > 4.9e-6 && o->join.drift < 5.1e-6);
	assert_int_equal(o->join.window, 1000);
	assert_int_equal(o->join.missing, SL_JOIN_WAIT);
	assert_int_equal(o->join.wait_ns, 2000000);
	sl_experiment_close(e);
}

static void ports_follow_each_other(void **state)
{
	struct sl_experiment *e = good(two);

	assert_int_equal(e->control.port, 5000);
	assert_int_equal(e->other[0].experiment->control.port, 5001);
	sl_experiment_close(e);
}

static void overrides_name_the_detector(void **state)
{
	static const char *const set[] = {"detectors.camera.frame_rate_Hz=50",
					  "detectors.large.modules=3", "link.pmtu=512",
					  "detectors.camera.control.port=6000"};
	struct sl_experiment *e = NULL;

	assert_int_equal(open_set(two, set, 4, &e), 0);
	assert_true(e->other[0].experiment->run.frame_rate_Hz == 50);
	assert_int_equal(e->run.modules, 3);
	assert_int_equal(sl_experiment_pmtu(e->other[0].experiment), 512);
	assert_int_equal(e->other[0].experiment->control.port, 6000);
	sl_experiment_close(e);
}

/* The text that a run stores, and the resolved one, are the same experiment. */
static void check_again(const char *text)
{
	struct sl_experiment *e = good(text);
	const struct sl_experiment *o = e->other[0].experiment;

	assert_int_equal(e->others, 1);
	assert_string_equal(e->detector_name, "large");
	assert_int_equal(e->ring.slots, 64);
	assert_int_equal(o->ring.slots, 16);
	assert_int_equal(o->control.port, 5001);
	assert_int_equal(e->other[0].join.divider, 10);
	assert_int_equal(e->other[0].join.wait_ns, 2000000);
	assert_int_equal(sl_experiment_pmtu(o), 1024);
	sl_experiment_close(e);
}

static void its_texts_are_the_same_experiment(void **state)
{
	struct sl_experiment *e = good(two);
	char *resolved = sl_experiment_resolved(e, false);

	assert_non_null(resolved);
	check_again(e->text);
	check_again(resolved);
	free(resolved);
	sl_experiment_close(e);
}

static void a_token_is_in_no_text(void **state)
{
	static const char word[] = "verysecretword-verysecretword-xy";
	static const char token[] = "      control: {token: verysecretword-verysecretword-xy}\n";
	const char *at = strstr(two, "      missing:");
	char text[sizeof(two) + sizeof(token)], *resolved;
	struct sl_experiment *e;

	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - two), two, token, at);
	e = good(text);
	resolved = sl_experiment_resolved(e, true);
	assert_null(strstr(e->text, word));
	assert_null(strstr(resolved, word));
	assert_string_equal(e->other[0].experiment->control.token, word);
	free(resolved);
	sl_experiment_close(e);
}

static void one_is_opened_alone_for_its_front_end(void **state)
{
	struct sl_experiment *e, *all = good(two);
	char path[64];

	make(two, path, sizeof(path));
	assert_int_equal(sl_experiment_open_one(path, "camera", NULL, 0, &e), 0);
	assert_string_equal(e->detector_name, "camera");
	assert_int_equal(e->others, 0);
	assert_true(sl_experiment_digest(e) == sl_experiment_digest(all->other[0].experiment));
	sl_experiment_close(e);
	capture_begin();
	assert_int_equal(sl_experiment_open_one(path, "nobody", NULL, 0, &e), -EINVAL);
	assert_non_null(strstr(capture_end(), "there are: large, camera"));
	forget(path);
	sl_experiment_close(all);
}

static void names_are_listed(void **state)
{
	struct sl_detector_names names;
	char path[64];

	make(two, path, sizeof(path));
	assert_int_equal(sl_experiment_detectors(path, NULL, 0, &names), 0);
	assert_int_equal(names.n, 2);
	assert_string_equal(names.name[1], "camera");
	forget(path);
	make("detector: {kind: pattern}\nsinks: ['null']\n", path, sizeof(path));
	assert_int_equal(sl_experiment_detectors(path, NULL, 0, &names), 0);
	assert_int_equal(names.n, 0);
	forget(path);
}

/* ---- mistakes ---- */

static void bad(const char *text, const char *const *set, size_t sets, const char *words)
{
	struct sl_experiment *e = NULL;

	if (open_set(text, set, sets, &e) != -EINVAL)
		fail_msg("not refused, for '%s'", words);
	if (!strstr(said, words))
		fail_msg("no '%s' in: %s", words, said);
}

static void bad_set(const char *one, const char *words)
{
	bad(two, &one, 1, words);
}

static void mistakes_are_told_with_their_place(void **state)
{
	bad_set("detector.frames=5", "detectors.NAME.OPTION");
	bad_set("detectors.large.missing=wait", "the first detector defines events");
	bad_set("detectors.camera.missing=perhaps", "detectors[1].camera.missing");
	bad_set("detectors.camera.key.by=colour", "detectors[1].camera.key.by");
	bad_set("detectors.camera.key.bye=frame", "detectors[1].camera.key.bye");
	bad_set("detectors.camera.colour=red", "detectors[1].camera.colour");
	bad_set("detectors.camera.link.listn=1", "detectors[1].camera.link.listn");
	bad_set("detectors.camera.key.by=frame", "drift_ppm is of clocks");
	bad_set("detectors.camera.modules=63", "64 is the most of all detectors");
	bad_set("control.keeper=k", "control.keeper is for one detector");
	bad_set("threads.together=true", "threads.together is for one detector");
	bad_set("transfers.full.every=2", "leave one of the two sections out");
	bad("detectors: {a: {kind: pattern}}\nsinks: ['null']\n", NULL, 0, "takes a list");
	bad("detectors: [a]\nsinks: ['null']\n", NULL, 0, "takes a name and its options");
	bad("detectors: []\nsinks: ['null']\n", NULL, 0, "takes a list");
	bad("detectors: [a: {kind: pattern}, a: {kind: pattern}]\nsinks: ['null']\n", NULL, 0,
	    "is there twice");
	bad("detectors: [a.b: {kind: pattern}]\nsinks: ['null']\n", NULL, 0,
	    "letters, digits, - and _");
	bad("detectors: [image: {kind: pattern}]\nsinks: ['null']\n", NULL, 0, "another name");
}

static void a_ring_that_is_too_small_for_the_wait_is_refused(void **state)
{
	static const char *const longer[] = {"detectors.camera.wait_us=62000"};
	static const char *const too_long[] = {"detectors.camera.wait_us=63000"};
	struct sl_experiment *e = NULL;

	assert_int_equal(open_set(two, longer, 1, &e), 0); /* 62 frames, and 64 slots */
	sl_experiment_close(e);
	bad(two, too_long, 1, "takes 63 frames, and its ring has 64 slots");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_defines_events_and_the_others_attach),
		cmocka_unit_test(ports_follow_each_other),
		cmocka_unit_test(overrides_name_the_detector),
		cmocka_unit_test(its_texts_are_the_same_experiment),
		cmocka_unit_test(a_token_is_in_no_text),
		cmocka_unit_test(one_is_opened_alone_for_its_front_end),
		cmocka_unit_test(names_are_listed),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(a_ring_that_is_too_small_for_the_wait_is_refused),
	};

	return cmocka_run_group_tests_name("detectors", tests, NULL, NULL);
}
