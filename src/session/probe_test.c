/* probe_test.c - when a session starts the program that tries its plug-ins, and what it makes of
 * the end of that program. A script takes the program's place, and counts. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
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

#include <sluice/sluice.h>

#include "session/session.h"

enum { PATIENCE_MS = 60000, OVER = 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT };

#define EXPERIMENT                                                                  \
	"detector: {kind: pattern, modules: 2, rows: 4, columns: 64, frames: 60}\n" \
	"link: {kind: shm}\ncontrol: {port: 0}\n"

static char folder[PATH_MAX / 2];

static const char *in(const char *name)
{
	static char path[2][PATH_MAX];
	static unsigned turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void write_text(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* The plug-in of tests/lib, and the script, in a folder that nobody else can write. */
static int make(void **state)
{
	const char *place = getenv("TMPDIR");
	char self[PATH_MAX], command[3 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = 0;
	dirname(self);
	umask(022);
	snprintf(folder, sizeof(folder), "%s/probe-XXXXXX", place && *place ? place : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "cp '%s/../tests/lib/libplugin_good.so' '%s'", self,
		 in("good.so"));
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(in("good.so"), 0644), 0);
	snprintf(command, sizeof(command),
		 "#!/bin/sh\necho \"$1 $2\" >>'%s'\n[ ! -e '%s' ] || { echo 'fixture /a/b.so' >&2; "
		 "kill -SEGV $$; }\n",
		 in("calls"), in("crash"));
	write_text(in("program"), command, 0755);
	return 0;
}

static int clean(void **state)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? -1 : 0;
}

static int begin(void **state)
{
	unlink(in("calls"));
	unlink(in("crash"));
	return 0;
}

/* How often the program was started to try the plug-ins; any other start fails the test. */
static unsigned probes(void)
{
	FILE *file = fopen(in("calls"), "r");
	char line[64];
	unsigned n = 0;

	while (file && fgets(line, sizeof(line), file)) {
		assert_string_equal(line, "run --probe\n");
		n++;
	}
	if (file)
		fclose(file);
	return n;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned waits; /* runs that came as far as to wait for their sources */

static void note_line(void *arg, enum sl_log_level level, const char *line)
{
	pthread_mutex_lock(&lock);
	waits += strstr(line, "waiting for front ends") != NULL;
	pthread_mutex_unlock(&lock);
}

static unsigned waited(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = waits;
	pthread_mutex_unlock(&lock);
	return n;
}

/* sink: of the plug-in, or not. */
static struct sl_session *opened(bool probe, const char *sink)
{
	const struct sl_session_hooks hooks = {.probe = probe};
	struct sl_session_options options = {
		.bytes = sizeof(options), .log = note_line, .program = in("program")};
	struct sl_session *session = NULL;
	struct sl_error error;
	char text[3 * PATH_MAX];

	snprintf(text, sizeof(text), EXPERIMENT "plugins: ['%s']\nsinks: ['%s']\n", in("good.so"),
		 sink);
	options.text = text;
	if (sl_session_open_with(&options, &hooks, &session, &error))
		fail_msg("%s", error.message);
	return session;
}

/* A run that is stopped when it waits for its sources: plug-ins were tried before that. */
static void stopped_run(struct sl_session *session)
{
	unsigned before = waited();

	assert_int_equal(sl_session_start(session), 0);
	while (waited() == before)
		assert_int_equal(sl_session_wait(session, OVER, 1), -ETIMEDOUT);
	sl_session_stop(session, "test");
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
}

static void plug_ins_are_tried_once_for_each_configuration(void **state)
{
	struct sl_session *session = opened(true, "fixture");

	stopped_run(session);
	assert_int_equal(probes(), 1);
	stopped_run(session);
	assert_int_equal(probes(), 1);
	assert_int_equal(sl_session_configure(session, NULL, 0), 0);
	stopped_run(session);
	assert_int_equal(probes(), 2);
	sl_session_close(session);
}

/* The plug-in is loaded, and the experiment uses nothing of it. */
static void an_experiment_without_plug_ins_is_not_tried(void **state)
{
	struct sl_session *session = opened(true, "null");

	stopped_run(session);
	stopped_run(session);
	assert_int_equal(probes(), 0);
	sl_session_close(session);
}

static void plug_ins_are_tried_only_where_that_is_asked_for(void **state)
{
	struct sl_session *session = opened(false, "fixture");

	stopped_run(session);
	assert_int_equal(probes(), 0);
	sl_session_close(session);
}

/* The run fails, the session lives; without the crash the next run tries again. */
static void a_plug_in_that_crashes_is_named(void **state)
{
	struct sl_session *session = opened(true, "fixture");
	struct sl_error error;

	write_text(in("crash"), "", 0644);
	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	sl_session_error(session, &error);
	assert_int_equal(error.code, SL_ERROR_SYSTEM);
	assert_string_equal(error.message, "plug-in fixture (/a/b.so) crashes in open: SIGSEGV");
	assert_int_equal(unlink(in("crash")), 0);
	assert_int_equal(sl_session_configure(session, NULL, 0), 0);
	stopped_run(session);
	assert_int_equal(probes(), 2);
	sl_session_close(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plug_ins_are_tried_once_for_each_configuration, begin),
		cmocka_unit_test_setup(an_experiment_without_plug_ins_is_not_tried, begin),
		cmocka_unit_test_setup(plug_ins_are_tried_only_where_that_is_asked_for, begin),
		cmocka_unit_test_setup(a_plug_in_that_crashes_is_named, begin),
	};

	return cmocka_run_group_tests_name("probe", tests, make, clean);
}
