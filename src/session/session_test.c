/* session_test.c - sessions: states, wrong calls, errors, logs; runs with the emulator as a child,
 * where this build has the program. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/sluice.h>

#include "base/clock.h"
#include "session/session.h"

enum { PATIENCE_MS = 60000, OVER = 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT };

#define EXPERIMENT                                                                  \
	"detector: {kind: pattern, modules: 2, rows: 32, columns: 64, frames: 60, " \
	"dark_frames: 0}\nring: {slots: 12, late_timeout_ms: 60000}\nsinks: ['null', verify]\n"

struct lines {
	unsigned n, errors, from_front_end;
	char last_error[512];
};

/* Any thread of a session may log. */
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_line(void *arg, enum sl_log_level level, const char *line)
{
	struct lines *lines = arg;

	pthread_mutex_lock(&lines_lock);
	lines->n++;
	lines->from_front_end += !strncmp(line, "front end: ", 11);
	lines->errors += level == SL_LOG_ERROR;
	if (level == SL_LOG_ERROR)
		snprintf(lines->last_error, sizeof(lines->last_error), "%s", line);
	pthread_mutex_unlock(&lines_lock);
}

static unsigned count_of(const struct lines *lines)
{
	unsigned n;

	pthread_mutex_lock(&lines_lock);
	n = lines->n;
	pthread_mutex_unlock(&lines_lock);
	return n;
}

static char own_listen[64], own_source[64], own_control[64];

/* This process's own addresses, so that tests can run side by side. */
static int setup(void **state)
{
	unsigned pid = (unsigned)getpid(), a = 101 + pid / 62500 % 100, b = 1 + pid / 250 % 250;

	snprintf(own_listen, sizeof(own_listen), "link.listen=127.%u.%u.%u", a, b,
		 (pid % 125) * 2 + 1);
	snprintf(own_source, sizeof(own_source), "link.source=127.%u.%u.%u", a, b,
		 (pid % 125) * 2 + 2);
	snprintf(own_control, sizeof(own_control), "control.address=127.%u.%u.%u", a, b,
		 (pid % 125) * 2 + 1);
	return 0;
}

/* build/sluice, beside build/src/session_test; NULL: it was not built. */
static const char *program(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	if (n <= 0)
		return NULL;
	path[n] = 0;
	for (unsigned i = 0; i < 2 && (slash = strrchr(path, '/')); i++)
		*slash = 0;
	strcat(path, "/sluice");
	return access(path, X_OK) == 0 ? path : NULL;
}

static int open_more(const char *text, int emulate, struct lines *lines, const char *more,
		     struct sl_session **session, struct sl_error *error)
{
	const char *const set[] = {own_listen, own_source, own_control, more};
	const struct sl_session_options options = {
		.bytes = sizeof(options),
		.text = text,
		.set = set,
		.sets = more ? 4 : 3,
		.emulate = emulate,
		.program = program(),
		.log = note_line,
		.log_arg = lines,
	};

	return sl_session_open(&options, session, error);
}

static struct sl_session *opened(int emulate, struct lines *lines, const char *more)
{
	struct sl_session *session = NULL;
	struct sl_error error;

	if (open_more(EXPERIMENT, emulate, lines, more, &session, &error))
		fail_msg("%s", error.message);
	return session;
}

static struct sl_status *status_of(struct sl_session *session)
{
	static struct sl_status status;

	assert_int_equal(sl_session_status(session, &status, sizeof(status)), 0);
	return &status;
}

/* From any thread. */
static void status_size(struct sl_session *session)
{
	struct sl_status *status = malloc(sizeof(*status));

	assert_non_null(status);
	assert_int_equal(sl_session_status(session, status, sizeof(*status)), 0);
	assert_int_equal(status->bytes, sizeof(*status));
	free(status);
}

static bool is_emulator(int pid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = 0;
	fclose(file);
	return !strncmp(name, "sluice", 6);
}

static struct sl_error error_of(struct sl_session *session)
{
	struct sl_error error;

	sl_session_error(session, &error);
	return error;
}

/* ---- without sources ---- */

static void open_touches_nothing(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, NULL);

	assert_int_equal(status_of(session)->state, SL_STATE_CONFIGURED);
	assert_int_equal(status_of(session)->result, -1);
	assert_int_equal(lines.n, 0);
	sl_session_close(session);
	sl_session_close(NULL);
}

static void a_wrong_experiment_says_what_and_where(void **state)
{
	struct sl_session *session;
	struct lines lines = {0};
	struct sl_error error = {0};

	assert_true(open_more("detector: {kind: nothing}\nsinks: ['null']\n", 0, &lines, NULL,
			      &session, &error) < 0);
	assert_int_equal(error.code, SL_ERROR_EXPERIMENT);
	assert_non_null(strstr(error.message, "no detector is called 'nothing'"));
	assert_string_equal(error.where, "text:1");
	assert_non_null(strstr(error.hint, "pattern"));
	assert_true(lines.errors > 0);
}

static void neither_a_path_nor_a_text_is_an_error(void **state)
{
	const struct sl_session_options options = {
		.bytes = sizeof(options), .log = note_line, .log_arg = &(struct lines){0}};
	struct sl_session *session;
	struct sl_error error;

	assert_int_equal(sl_session_open(&options, &session, &error), -EINVAL);
}

/* A program that was built with an older header has fewer members. */
static void shorter_options_are_understood(void **state)
{
	struct lines lines = {0};
	struct sl_session_options options = {.text = EXPERIMENT, .summary = "/nowhere/at/all"};
	struct sl_session *session;

	options.bytes = offsetof(struct sl_session_options, transfer);
	assert_int_equal(sl_session_open(&options, &session, NULL), 0);
	sl_session_close(session);
	assert_int_equal(lines.n, 0);
}

static void calls_that_the_state_forbids_are_refused(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, NULL);

	assert_int_equal(sl_session_pause(session), -EPROTO);
	assert_int_equal(sl_session_resume(session), -EPROTO);
	assert_int_equal(error_of(session).code, SL_ERROR_NONE);
	assert_int_equal(sl_session_arm(session), 0);
	for (unsigned i = 0; i < 50; i++) { /* also while it is being armed */
		assert_int_equal(sl_session_arm(session), -EPROTO);
		assert_int_equal(sl_session_configure(session, NULL, 0), -EPROTO);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	sl_session_close(session);
}

static void a_stop_before_the_start_ends_the_run(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, "control.port=0");

	assert_int_equal(sl_session_wait(session, OVER, 10), -ETIMEDOUT);
	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, 50), -ETIMEDOUT); /* no source comes */
	sl_session_stop(session, "test");
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
	assert_int_equal(error_of(session).code, SL_ERROR_STOPPED);
	assert_int_equal(status_of(session)->result, SL_RESULT_ERROR);
	sl_session_close(session);
}

static void sources_that_do_not_come_are_an_error(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, "control.wait_s=0.1");

	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	assert_int_equal(error_of(session).code, SL_ERROR_SOURCES);
	assert_string_equal(error_of(session).message, lines.last_error);
	assert_int_equal(sl_session_start(session), -EPROTO); /* configure leaves fault */
	assert_int_equal(sl_session_configure(session, NULL, 0), 0);
	assert_int_equal(error_of(session).code, SL_ERROR_NONE);
	assert_int_equal(status_of(session)->state, SL_STATE_CONFIGURED);
	sl_session_close(session);
}

static void a_port_in_use_has_its_code(void **state)
{
	struct lines lines = {0};
	struct sl_session *first = opened(0, &lines, NULL), *second = opened(0, &lines, NULL);

	assert_int_equal(sl_session_arm(first), 0);
	while (!count_of(&lines)) /* "waiting for front ends" */
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(sl_session_arm(second), 0);
	assert_int_equal(sl_session_wait(second, OVER, PATIENCE_MS), SL_STATE_FAULT);
	assert_int_equal(error_of(second).code, SL_ERROR_ADDRESS);
	assert_int_equal(sl_session_wait(first, OVER, 0), -ETIMEDOUT); /* the other goes on */
	sl_session_close(second);
	sl_session_close(first);
}

static void a_wrong_configuration_is_a_fault_that_another_leaves(void **state)
{
	const char *const wrong[] = {"ring.slots=many"}, *const right[] = {"ring.slots=16"};
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, NULL);

	assert_true(sl_session_configure(session, wrong, 1) < 0);
	assert_int_equal(status_of(session)->state, SL_STATE_FAULT);
	assert_int_equal(error_of(session).code, SL_ERROR_EXPERIMENT);
	assert_int_equal(sl_session_configure(session, right, 1), 0);
	assert_int_equal(status_of(session)->state, SL_STATE_CONFIGURED);
	sl_session_close(session);
}

/* ---- with the emulator as a child ---- */

static struct sl_session *emulated(struct lines *lines, const char *more)
{
	if (!program()) {
		print_message("# skip: this build has no program sluice\n");
		skip();
	}
	return opened(1, lines, more);
}

static void ends_intact(struct sl_session *session)
{
	const struct sl_status *status;

	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
	status = status_of(session);
	assert_int_equal(status->result, SL_RESULT_INTACT);
	assert_int_equal(status->frames, 60);
	assert_true(sl_status_closed(status));
	assert_true(status->ended_unix_ns >= status->started_unix_ns);
	assert_int_equal(error_of(session).code, SL_ERROR_NONE);
}

static void runs_follow_each_other(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_session_start(session), 0);
		ends_intact(session);
	}
	assert_int_equal(lines.errors, 0);
	sl_session_close(session);
}

/* The process of the detector side; 0: there is none. */
static int emulator_pid(void)
{
	char command[64];
	int pid, found = 0;
	FILE *list;

	snprintf(command, sizeof(command), "cat /proc/%d/task/*/children", getpid());
	list = popen(command, "r");
	assert_non_null(list);
	while (fscanf(list, "%d", &pid) == 1)
		if (is_emulator(pid))
			found = pid;
	pclose(list);
	return found;
}

static unsigned open_files(void)
{
	unsigned n = 0;
	DIR *folder = opendir("/proc/self/fd");

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static void runs_keep_memory_and_front_end(struct sl_session *session, unsigned runs)
{
	unsigned files = 0;
	int pid = 0;

	for (unsigned i = 0; i < runs; i++) {
		assert_int_equal(sl_session_start(session), 0);
		ends_intact(session);
		if (i == 1) {
			files = open_files();
			pid = emulator_pid();
			assert_true(pid > 0);
		}
	}
	assert_int_equal(emulator_pid(), pid);
	assert_int_equal(open_files(), files);
}

static void many_runs_have_one_front_end_and_leak_nothing(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	runs_keep_memory_and_front_end(session, 12);
	assert_int_equal(lines.errors, 0);
	sl_session_close(session);
	assert_int_equal(emulator_pid(), 0);
}

static void every_link_takes_run_after_run(void **state)
{
	static const char *const links[] = {"link.kind=shm", "link.service=rc",
					    "link.operation=send", "link.crc=true"};

	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct lines lines = {0};
		struct sl_session *session = emulated(&lines, links[i]);

		runs_keep_memory_and_front_end(session, 3);
		assert_int_equal(lines.errors, 0);
		sl_session_close(session);
	}
}

/* Modules end at different frames; the next run begins with all of them at 0. */
static void a_run_after_one_that_was_stopped_is_whole(void **state)
{
	const char *const slow[] = {"detector.frame_rate_Hz=200"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	assert_int_equal(sl_session_configure(session, slow, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_session_start(session), 0);
		while (status_of(session)->frames < 5)
			sl_clock_sleep_until(sl_clock_ns() + 1000000);
		sl_session_stop(session, "test");
		assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
		assert_int_equal(status_of(session)->result, SL_RESULT_INTACT);
		assert_in_range(status_of(session)->frames, 5, 59);
	}
	assert_int_equal(sl_session_start(session), 0);
	ends_intact(session);
	assert_string_equal(status_of(session)->stopped_by, "");
	sl_session_close(session);
}

static void a_front_end_that_dies_between_runs_is_replaced(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_session_start(session), 0);
		ends_intact(session);
		assert_int_equal(kill(emulator_pid(), SIGKILL), 0);
	}
	sl_session_close(session);
}

/* What was kept is of another experiment then. */
static void another_configuration_between_runs_is_taken(void **state)
{
	const char *const more[] = {"detector.modules=3", "ring.slots=20"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(sl_session_configure(session, more, i % 2 ? 2 : 0), 0);
		assert_int_equal(sl_session_start(session), 0);
		ends_intact(session);
		assert_int_equal(status_of(session)->modules, i % 2 ? 3 : 2);
		assert_int_equal(status_of(session)->slots.of, i % 2 ? 20 : 12);
	}
	sl_session_close(session);
}

/* The port of the link is taken by another session between two runs. */
static void a_run_that_cannot_begin_leaves_the_next_one_whole(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);
	struct lines other_lines = {0};
	struct sl_session *other;

	assert_int_equal(sl_session_start(session), 0);
	ends_intact(session);
	other = opened(0, &other_lines, "control.port=0"); /* takes the link's port */
	assert_int_equal(sl_session_arm(other), 0);
	while (!count_of(&other_lines))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	assert_int_equal(error_of(session).code, SL_ERROR_ADDRESS);
	sl_session_close(other);
	assert_int_equal(sl_session_configure(session, NULL, 0), 0);
	assert_int_equal(sl_session_start(session), 0);
	ends_intact(session);
	sl_session_close(session);
}

static void an_armed_session_waits_for_the_start(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	assert_int_equal(sl_session_arm(session), 0);
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_ARMED, PATIENCE_MS),
			 SL_STATE_ARMED);
	assert_int_equal(status_of(session)->source[1].state, SL_SOURCE_PLANNED);
	assert_int_equal(status_of(session)->frames, 0);
	assert_int_equal(sl_session_start(session), 0);
	ends_intact(session);
	sl_session_close(session);
}

static void two_sessions_run_at_once(void **state)
{
	struct lines lines[2] = {{0}};
	struct sl_session *one = emulated(&lines[0], "link.port=4792"),
			  *two = emulated(&lines[1], "link.port=4793");

	assert_int_equal(sl_session_start(one), 0);
	assert_int_equal(sl_session_start(two), 0);
	ends_intact(one);
	ends_intact(two);
	sl_session_close(one);
	sl_session_close(two);
}

static void lines_of_the_front_end_are_in_the_log(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, "link.source=192.0.2.1");

	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	assert_int_equal(error_of(session).code, SL_ERROR_FRONT_END);
	assert_true(lines.from_front_end > 0);
	sl_session_close(session);
}

static void a_stop_ends_a_run_with_what_was_sent(void **state)
{
	const char *const slow[] = {"detector.frame_rate_Hz=20"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	assert_int_equal(sl_session_configure(session, slow, 1), 0);
	assert_int_equal(sl_session_start(session), 0);
	while (status_of(session)->frames < 3)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_session_stop(session, "test");
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
	assert_int_equal(status_of(session)->result, SL_RESULT_INTACT);
	assert_string_equal(status_of(session)->stopped_by, "test");
	assert_in_range(status_of(session)->frames, 3, 59);
	sl_session_close(session);
}

static void threads_come_round(struct sl_session *session)
{
	uint64_t since = sl_clock_ns(), end = since + UINT64_C(1000000) * PATIENCE_MS;
	bool all = false;

	while (!all && sl_clock_ns() < end) {
		const struct sl_status *status = status_of(session);

		all = status->progress_threads >= 4;
		for (uint32_t i = 0; i < status->progress_threads; i++) {
			assert_true(status->progress[i].name[0]);
			assert_true(status->progress[i].at_ns <= status->taken_ns);
			all &= status->progress[i].at_ns > since;
		}
	}
	assert_true(all);
}

static void a_pause_stops_frames_until_it_is_resumed(void **state)
{
	const char *const slow[] = {"detector.frame_rate_Hz=50"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);
	uint64_t frames;

	assert_int_equal(sl_session_configure(session, slow, 1), 0);
	assert_int_equal(sl_session_start(session), 0);
	while (status_of(session)->frames < 3)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(sl_session_pause(session), 0);
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_PAUSED, PATIENCE_MS),
			 SL_STATE_PAUSED);
	while (!status_of(session)->drained)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	threads_come_round(session); /* also those that have nothing to do */
	frames = status_of(session)->frames;
	assert_in_range(frames, 3, 59);
	sl_clock_sleep_until(sl_clock_ns() + 300000000);
	assert_int_equal(status_of(session)->frames, frames);
	assert_int_equal(sl_session_resume(session), 0);
	ends_intact(session);
	sl_session_close(session);
}

static void takes(struct sl_session *session, uint64_t settled)
{
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_PAUSED, PATIENCE_MS),
			 SL_STATE_PAUSED);
	assert_true(status_of(session)->drained);
	assert_int_equal(status_of(session)->frames, settled);
}

static void a_session_takes_exactly_as_many_frames_as_asked(void **state)
{
	const char *const none[] = {"detector.frame_rate_Hz=500"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	assert_int_equal(sl_session_configure(session, none, 1), 0);
	assert_int_equal(sl_session_start_for(session, 5), -EAGAIN); /* not armed */
	assert_int_equal(sl_session_arm(session), 0);
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_ARMED, PATIENCE_MS),
			 SL_STATE_ARMED);
	assert_int_equal(sl_session_resume_for(session, 5), -EAGAIN); /* not paused */
	assert_int_equal(sl_session_start_for(session, 5), 0);
	takes(session, 5);
	assert_int_equal(sl_session_resume_for(session, 1), 0);
	takes(session, 6);
	assert_int_equal(sl_session_resume_for(session, 20), 0); /* more than the ring has slots */
	takes(session, 26);
	/* A pause comes sooner than frames that take too long. */
	assert_int_equal(sl_session_resume_for(session, 1000000), 0);
	while (status_of(session)->frames < 28)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(sl_session_pause(session), 0);
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_PAUSED, PATIENCE_MS),
			 SL_STATE_PAUSED);
	assert_int_equal(sl_session_resume(session), 0);
	ends_intact(session);
	sl_session_close(session);
}

/* The kernel may leave a child out of this list while others come and go. */
static unsigned kill_emulators(void)
{
	char children[64], command[128];
	unsigned killed = 0;
	FILE *list;

	snprintf(command, sizeof(command), "cat /proc/%d/task/*/children", getpid());
	list = popen(command, "r");
	assert_non_null(list);
	while (fscanf(list, "%63s", children) == 1)
		if (atoi(children) > 0 && is_emulator(atoi(children)))
			killed += kill(atoi(children), SIGKILL) == 0;
	pclose(list);
	return killed;
}

/* A source that leaves an armed session is waited for again, and the run ends. */
static void a_source_that_leaves_an_armed_session_is_noticed(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);
	unsigned killed = 0;

	assert_int_equal(sl_session_arm(session), 0);
	assert_int_equal(sl_session_wait(session, 1 << SL_STATE_ARMED, PATIENCE_MS),
			 SL_STATE_ARMED);
	for (unsigned i = 0; i < 100 && !killed; i++)
		killed = kill_emulators();
	assert_int_equal(killed, 1);
	sl_session_start(session);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	assert_int_equal(error_of(session).code, SL_ERROR_FRONT_END);
	assert_int_equal(sl_session_exit(session), 1);
	sl_session_close(session);
}

struct racer {
	pthread_t thread;
	struct sl_session *session;
	_Atomic bool *stop;
	unsigned what;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	while (!atomic_load(r->stop)) {
		const char *const set[] = {r->what % 2 ? "ring.slots=16" : "ring.slots=20"};

		if (r->what < 2)
			sl_session_configure(r->session, set, 1);
		else if (r->what == 2)
			sl_session_arm(r->session);
		else
			sl_session_abort(r->session, "race");
		status_size(r->session);
	}
	return NULL;
}

static void calls_of_many_threads_do_no_harm(void **state)
{
	struct lines lines = {0};
	struct sl_session *session = opened(0, &lines, "control.port=0");
	_Atomic bool stop = false;
	struct racer racer[4];

	for (unsigned i = 0; i < 4; i++) {
		racer[i] = (struct racer){.session = session, .stop = &stop, .what = i};
		assert_int_equal(pthread_create(&racer[i].thread, NULL, race, &racer[i]), 0);
	}
	sl_clock_sleep_until(sl_clock_ns() + 500000000);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_join(racer[i].thread, NULL), 0);
	sl_session_close(session);
}

static void close_ends_what_runs(void **state)
{
	const char *const slow[] = {"detector.frame_rate_Hz=20"};
	struct lines lines = {0};
	struct sl_session *session = emulated(&lines, NULL);

	assert_int_equal(sl_session_configure(session, slow, 1), 0);
	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER | 1 << SL_STATE_RUNNING, PATIENCE_MS),
			 SL_STATE_RUNNING);
	sl_session_close(session);
	assert_int_equal(lines.errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_touches_nothing),
		cmocka_unit_test(a_wrong_experiment_says_what_and_where),
		cmocka_unit_test(neither_a_path_nor_a_text_is_an_error),
		cmocka_unit_test(shorter_options_are_understood),
		cmocka_unit_test(calls_that_the_state_forbids_are_refused),
		cmocka_unit_test(a_stop_before_the_start_ends_the_run),
		cmocka_unit_test(sources_that_do_not_come_are_an_error),
		cmocka_unit_test(a_port_in_use_has_its_code),
		cmocka_unit_test(a_wrong_configuration_is_a_fault_that_another_leaves),
		cmocka_unit_test(runs_follow_each_other),
		cmocka_unit_test(many_runs_have_one_front_end_and_leak_nothing),
		cmocka_unit_test(every_link_takes_run_after_run),
		cmocka_unit_test(a_run_after_one_that_was_stopped_is_whole),
		cmocka_unit_test(a_front_end_that_dies_between_runs_is_replaced),
		cmocka_unit_test(another_configuration_between_runs_is_taken),
		cmocka_unit_test(a_run_that_cannot_begin_leaves_the_next_one_whole),
		cmocka_unit_test(an_armed_session_waits_for_the_start),
		cmocka_unit_test(two_sessions_run_at_once),
		cmocka_unit_test(lines_of_the_front_end_are_in_the_log),
		cmocka_unit_test(a_stop_ends_a_run_with_what_was_sent),
		cmocka_unit_test(a_pause_stops_frames_until_it_is_resumed),
		cmocka_unit_test(a_session_takes_exactly_as_many_frames_as_asked),
		cmocka_unit_test(a_source_that_leaves_an_armed_session_is_noticed),
		cmocka_unit_test(calls_of_many_threads_do_no_harm),
		cmocka_unit_test(close_ends_what_runs),
	};

	return cmocka_run_group_tests_name("session", tests, setup, NULL);
}
