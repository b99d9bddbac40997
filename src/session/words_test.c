/* words_test.c - which moment {date} and {time} in the paths of outputs are: that of the run
 * folder's lock, which the receivers of one run share; without a folder, the run's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/private.h"

#define STARTED_NS UINT64_C(2000000000500000000) /* 2033-05-18 03:33:20.5 UTC */
enum { LOCKED_S = 1000000000 };			 /* 2001-09-09 01:46:40 UTC */

static const char text[] = "detector: {kind: pattern, modules: 2, frames: 20, dark_frames: 0}\n"
			   "sinks: [raw: {path: '{date}T{time}.raw', dataset: raw}]\n";

/* A session with nothing but what the paths need. */
struct world {
	struct sl_session session;
	int lock; /* an open file of that time */
};

static int setup(void **state)
{
	const struct timespec times[] = {{LOCKED_S, 500000000}, {LOCKED_S, 500000000}};
	char path[] = "/tmp/sluice-words-XXXXXX", lock[] = "/tmp/sluice-lock-XXXXXX";
	struct world *w = calloc(1, sizeof(*w));
	int fd = mkstemp(path), err;

	assert_non_null(w);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = sl_experiment_open(path, NULL, NULL, 0, &w->session.experiment);
	unlink(path);
	assert_int_equal(err, 0);
	w->lock = mkstemp(lock);
	assert_int_equal(futimens(w->lock, times), 0);
	unlink(lock);
	w->session.started_unix_ns = STARTED_NS;
	snprintf(w->session.folder.path, sizeof(w->session.folder.path), "/the/run");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	sl_experiment_close(w->session.experiment);
	close(w->lock);
	free(w);
	return 0;
}

static void expect(struct world *w, uint64_t number, int lock, const char *path)
{
	const struct sl_experiment *e = w->session.experiment;
	char placed[SL_STATUS_PATH];

	w->session.folder.number = number;
	w->session.folder.lock = lock;
	assert_int_equal(sl_session_place_outputs(&w->session), 0);
	sl_option_print(sl_option_find(e->sink[0]->options, "path"), e->sink_state[0], placed,
			sizeof(placed));
	assert_string_equal(placed, path);
}

static void outputs_in_a_run_folder_have_the_moment_of_its_lock(void **state)
{
	struct world *w = *state;

	expect(w, 7, w->lock, "/the/run/20010909T014640.raw");
}

static void without_a_run_folder_it_is_the_start_of_the_run(void **state)
{
	struct world *w = *state;

	expect(w, 0, -1, "20330518T033320.raw");
	expect(w, 0, w->lock, "20330518T033320.raw"); /* of no folder of this run */
}

static void a_lock_that_cannot_be_looked_at_gives_no_moment(void **state)
{
	expect(*state, 7, -1, "/the/run/20330518T033320.raw");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(outputs_in_a_run_folder_have_the_moment_of_its_lock),
		CASE(without_a_run_folder_it_is_the_start_of_the_run),
		CASE(a_lock_that_cannot_be_looked_at_gives_no_moment),
	};

	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
