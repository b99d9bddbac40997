/* folder_test.c - run folders: numbers, locks, results, races, symbolic links, full disks; runs
 * that have crashed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "lib/open_files.h"
#include "session/folder/folder.h"

enum { ROOM = 16 << 10, RACERS = 4, RACES = 50 };

static char root[PATH_MAX];
static struct lines {
	unsigned warnings, errors;
	char last[2000];
} lines;

static void note_line(void *arg, enum sl_log_level level, const char *line)
{
	lines.warnings += level == SL_LOG_WARN;
	lines.errors += level == SL_LOG_ERROR;
	snprintf(lines.last, sizeof(lines.last), "%s", line);
}

static const struct sl_log_target target = {note_line, NULL};
static unsigned files_before;

static int setup(void **state)
{
	const char *place = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/sluice-root-XXXXXX", place ? place : "/tmp");
	memset(&lines, 0, sizeof(lines));
	sl_log_set_target(&target);
	signal(SIGXFSZ, SIG_IGN);
	files_before = open_files();
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 32];

	sl_log_set_target(NULL);
	assert_int_equal(open_files(), files_before);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static char *path_of(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(path_of(name), &st);
}

static void read_text(const char *name, char *text, size_t bytes)
{
	FILE *file = fopen(path_of(name), "r");
	size_t n;

	assert_non_null(file);
	n = fread(text, 1, bytes - 1, file);
	text[n] = 0;
	fclose(file);
}

static enum sl_run_state state_of(uint64_t number)
{
	int at = open(root, O_RDONLY | O_DIRECTORY);
	enum sl_run_state state = sl_run_folder_state(at, number);

	close(at);
	return state;
}

/* A run from its beginning to its result; its number. */
static uint64_t whole_run(struct sl_run_folder *f)
{
	uint64_t number;

	assert_int_equal(sl_run_folder_make(f, root, ROOM), 0);
	number = f->number;
	assert_int_equal(sl_run_folder_write_result(f, "{}\n"), 0);
	sl_run_folder_close(f);
	return number;
}

static void numbers_follow_the_highest(void **state)
{
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	assert_int_equal(whole_run(&f), 1);
	assert_int_equal(whole_run(&f), 2);
	assert_int_equal(mkdir(path_of("000041"), 0777), 0);
	assert_int_equal(mkdir(path_of("0000099"), 0777), 0); /* seven digits that begin with 0 */
	assert_int_equal(mkdir(path_of("12345"), 0777), 0);
	assert_int_equal(mkdir(path_of("000050x"), 0777), 0);
	assert_int_equal(whole_run(&f), 42);
	assert_int_equal(mkdir(path_of("999999"), 0777), 0);
	assert_int_equal(whole_run(&f), 1000000);
	assert_true(is_there("1000000/result.json"));
	sl_run_folder_fini(&f);
}

static void a_number_is_not_used_twice_in_a_session(void **state)
{
	char elsewhere[2 * PATH_MAX];
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	assert_int_equal(whole_run(&f), 1);
	snprintf(elsewhere, sizeof(elsewhere), "%s", path_of("archive"));
	assert_int_equal(rename(path_of("000001"), elsewhere), 0);
	assert_int_equal(whole_run(&f), 2);
	sl_run_folder_fini(&f);
}

static void a_file_with_the_next_number_is_passed_over(void **state)
{
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	assert_int_equal(whole_run(&f), 1);
	assert_int_equal(symlink("/tmp", path_of("000002")), 0);
	assert_int_equal(whole_run(&f), 3);
	sl_run_folder_fini(&f);
}

static void a_missing_root_is_made(void **state)
{
	struct sl_run_folder f;
	char deep[2 * PATH_MAX];

	sl_run_folder_init(&f);
	snprintf(deep, sizeof(deep), "%s", path_of("new/"));
	assert_int_equal(sl_run_folder_make(&f, deep, ROOM), 0);
	assert_string_equal(f.path, path_of("new/000001"));
	sl_run_folder_close(&f);
	snprintf(deep, sizeof(deep), "%s", path_of("no/such"));
	assert_int_equal(sl_run_folder_make(&f, deep, ROOM), -ENOENT);
	assert_non_null(strstr(lines.last, "no/such"));
	sl_run_folder_fini(&f);
}

static void a_long_root_is_refused(void **state)
{
	struct sl_run_folder f;
	char deep[SL_STATUS_PATH];

	memset(deep, '/', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	sl_run_folder_init(&f);
	assert_int_equal(sl_run_folder_make(&f, deep, ROOM), -ENAMETOOLONG);
	assert_int_equal(lines.errors, 1);
	sl_run_folder_fini(&f);
}

static void only_names_of_ours_are_numbers(void **state)
{
	static const struct {
		const char *name;
		uint64_t number;
	} cases[] = {{"000001", 1},
		     {"000012", 12},
		     {"999999", 999999},
		     {"1000000", 1000000},
		     {"123456789012345678", UINT64_C(123456789012345678)},
		     {"1234567890123456789", 0},
		     {"0000012", 0},
		     {"0100000", 0},
		     {"00012", 0},
		     {"00001a", 0},
		     {"000001.tmp", 0},
		     {"-00001", 0},
		     {" 00001", 0},
		     {"", 0}};
	char name[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(sl_run_folder_number(cases[i].name) == cases[i].number);
		if (!cases[i].number)
			continue;
		sl_run_folder_digits(cases[i].number, name, sizeof(name));
		assert_string_equal(name, cases[i].name);
	}
}

static void states_of_a_run(void **state)
{
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	assert_int_equal(state_of(1), SL_RUN_NONE);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	assert_int_equal(state_of(1), SL_RUN_LIVES);
	assert_int_equal(sl_run_folder_write_result(&f, "{}\n"), 0);
	assert_int_equal(state_of(1), SL_RUN_LIVES);
	sl_run_folder_close(&f);
	assert_int_equal(state_of(1), SL_RUN_ENDED);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	sl_run_folder_close(&f); /* without a result, as a killed process leaves it */
	assert_int_equal(state_of(2), SL_RUN_CRASHED);
	sl_run_folder_fini(&f);
}

static void the_result_is_whole_and_replaces_nothing(void **state)
{
	struct sl_run_folder f;
	char text[64];

	sl_run_folder_init(&f);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	assert_true(is_there("000001/result.json.part"));
	assert_int_equal(sl_run_folder_write_result(&f, "{\"run\": 1}\n"), 0);
	assert_false(is_there("000001/result.json.part"));
	read_text("000001/result.json", text, sizeof(text));
	assert_string_equal(text, "{\"run\": 1}\n");
	sl_run_folder_close(&f);

	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	assert_int_equal(symlink("/dev/null", path_of("000002/result.json")), 0);
	assert_true(sl_run_folder_write_result(&f, "{}\n") < 0);
	sl_run_folder_fini(&f);
}

static void links_are_not_followed(void **state)
{
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	assert_int_equal(symlink("../stolen", path_of("000001/experiment.yaml")), 0);
	assert_int_equal(sl_run_folder_write(&f, "experiment.yaml", "text"), -EEXIST);
	assert_false(is_there("stolen"));
	sl_run_folder_fini(&f);
}

/* Its files stay where the folder went, and a link in its place is not written through. */
static void a_folder_that_is_moved_keeps_its_files(void **state)
{
	struct sl_run_folder f;
	char moved[2 * PATH_MAX];

	sl_run_folder_init(&f);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	assert_int_equal(mkdir(path_of("other"), 0777), 0);
	snprintf(moved, sizeof(moved), "%s", path_of("moved"));
	assert_int_equal(rename(path_of("000001"), moved), 0);
	assert_int_equal(symlink("other", path_of("000001")), 0);
	assert_int_equal(sl_run_folder_write(&f, "experiment.yaml", "text"), 0);
	assert_int_equal(sl_run_folder_write_result(&f, "{}\n"), 0);
	assert_true(is_there("moved/experiment.yaml") && is_there("moved/result.json"));
	assert_false(is_there("other/experiment.yaml") || is_there("other/result.json"));
	sl_run_folder_fini(&f);
}

/* ---- the log ---- */

static void lines_have_time_and_level(void **state)
{
	struct sl_run_folder f;
	char text[1000];
	int at = 0;

	sl_run_folder_init(&f);
	sl_run_log_line(&f.log, SL_LOG_INFO, "before the run");
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	sl_run_log_line(&f.log, SL_LOG_WARN, "two\nlines");
	sl_run_log_line(&f.log, SL_LOG_ERROR, "broken");
	sl_run_folder_close(&f);
	sl_run_log_line(&f.log, SL_LOG_INFO, "after the run");
	read_text("000001/run.log", text, sizeof(text));
	sscanf(text, "%*4u-%*2u-%*2uT%*2u:%*2u:%*2u.%*3uZ warning two lines\n%n", &at);
	assert_true(at > 0);
	assert_non_null(strstr(text + at, "Z error   broken\n"));
	assert_null(strstr(text, "before"));
	assert_null(strstr(text, "after"));
	sl_run_folder_fini(&f);
}

/* No file of this process may grow beyond this. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_loses_lines_and_nothing_else(void **state)
{
	struct sl_run_folder f;
	char text[ROOM + 1], line[200], *end;
	int err;

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	sl_run_folder_init(&f);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	limit_files(ROOM);
	for (unsigned i = 0; i < 200; i++)
		sl_run_log_line(&f.log, SL_LOG_INFO, line);
	assert_in_range(sl_run_log_lost(&f.log, &err), 100, 199);
	assert_true(err == -EFBIG || err == -ENOSPC);
	assert_int_equal(sl_run_folder_write_result(&f, "{}\n"), 0); /* its space was reserved */
	limit_files(RLIM_INFINITY);
	sl_run_folder_close(&f);
	read_text("000001/run.log", text, sizeof(text));
	for (char *at = text; *at; at = end + 1) { /* no part of a line is left */
		end = strchr(at, '\n');
		assert_non_null(end);
		assert_int_equal(end - at,
				 sizeof("2024-01-31T12:34:56.789Z info    ") - 1 + strlen(line));
	}
	sl_run_folder_fini(&f);
}

static void a_disk_that_is_full_at_the_beginning_leaves_nothing(void **state)
{
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	limit_files(ROOM / 2);
	assert_true(sl_run_folder_make(&f, root, ROOM) < 0);
	limit_files(RLIM_INFINITY);
	assert_int_equal(lines.errors, 1);
	assert_non_null(strstr(lines.last, "result.json"));
	assert_false(is_there("000001"));
	assert_int_equal(whole_run(&f), 1); /* space came back */
	sl_run_folder_fini(&f);
}

static void a_root_that_cannot_be_written_is_an_error(void **state)
{
	struct sl_run_folder f;

	if (!geteuid()) {
		print_message("# skip: root may write everywhere\n");
		skip();
	}
	sl_run_folder_init(&f);
	assert_int_equal(chmod(root, 0555), 0);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), -EACCES);
	assert_int_equal(chmod(root, 0755), 0);
	assert_int_equal(whole_run(&f), 1);
	sl_run_folder_fini(&f);
}

/* ---- several at once ---- */

static void *race(void *arg)
{
	uint64_t *number = arg;
	struct sl_run_folder f;

	sl_run_folder_init(&f);
	for (unsigned i = 0; i < RACES; i++)
		number[i] = whole_run(&f);
	sl_run_folder_fini(&f);
	return NULL;
}

static void sessions_at_one_root_never_share_a_folder(void **state)
{
	static uint64_t number[RACERS][RACES];
	static bool seen[RACERS * RACES + 1];
	pthread_t thread[RACERS];

	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, race, number[i]), 0);
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < RACERS; i++)
		for (unsigned k = 0; k < RACES; k++) {
			assert_in_range(number[i][k], 1, RACERS * RACES);
			assert_false(seen[number[i][k]]);
			seen[number[i][k]] = true;
		}
}

static void a_killed_process_leaves_a_crash(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct sl_run_folder f;

		sl_run_folder_init(&f);
		if (sl_run_folder_make(&f, root, ROOM))
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(state_of(1), SL_RUN_CRASHED);
	assert_int_equal(sl_run_folder_warn_of_crashes(root), 1);
	assert_non_null(strstr(lines.last, "run 1 did not end"));
	assert_non_null(strstr(lines.last, "run.log (0 bytes)"));
}

static void crashes_are_told_until_a_run_has_a_result(void **state)
{
	struct sl_run_folder f, lives;

	sl_run_folder_init(&f);
	sl_run_folder_init(&lives);
	assert_int_equal(sl_run_folder_warn_of_crashes(path_of("nowhere")), 0);
	assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
	sl_run_folder_close(&f);
	whole_run(&f);
	assert_int_equal(sl_run_folder_warn_of_crashes(root), 0); /* 1 is older than a result */
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(sl_run_folder_make(&f, root, ROOM), 0);
		sl_run_folder_close(&f);
	}
	assert_int_equal(sl_run_folder_make(&lives, root, ROOM), 0); /* of another session */
	assert_int_equal(mkdir(path_of("000099"), 0777), 0);	     /* none of ours */
	assert_int_equal(sl_run_folder_warn_of_crashes(root), 7);
	assert_int_equal(lines.warnings, 6);
	sl_run_folder_close(&lives);
	sl_run_folder_fini(&lives);
	sl_run_folder_fini(&f);
}

/* ---- the receivers of one run ---- */

static void receivers_share_a_folder(void **state)
{
	struct sl_run_folder parent, child;
	char given[SL_STATUS_PATH + 16], text[32];

	sl_run_folder_init(&parent);
	sl_run_folder_init(&child);
	assert_int_equal(sl_run_folder_make(&parent, root, ROOM), 0);
	snprintf(given, sizeof(given), "%d:%s", dup(parent.lock), parent.path);
	assert_int_equal(sl_run_folder_join(&child, given, "live", ROOM), 0);
	assert_int_equal(child.number, 1);
	sl_run_folder_close(&parent);
	assert_int_equal(state_of(1), SL_RUN_LIVES); /* as long as one of them lives */
	assert_int_equal(sl_run_folder_write_result(&child, "{}\n"), 0);
	sl_run_folder_close(&child);
	assert_int_equal(state_of(1), SL_RUN_CRASHED);
	read_text("000001/result.live.json", text, sizeof(text));
	assert_true(is_there("000001/run.live.log"));
	sl_run_folder_fini(&child);
	sl_run_folder_fini(&parent);
}

static void only_the_folder_of_the_lock_is_joined(void **state)
{
	static const char *const wrong[] = {"", "x", "999:/tmp", "1:/tmp", ":", "3"};
	struct sl_run_folder one, two, child;
	char given[SL_STATUS_PATH + 16];
	int lock;

	sl_run_folder_init(&one);
	sl_run_folder_init(&two);
	sl_run_folder_init(&child);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sl_run_folder_join(&child, wrong[i], "live", ROOM), -EINVAL);
	assert_int_equal(sl_run_folder_make(&one, root, ROOM), 0);
	assert_int_equal(sl_run_folder_make(&two, root, ROOM), 0);
	lock = dup(one.lock);
	snprintf(given, sizeof(given), "%d:%s", lock, two.path);
	assert_int_equal(sl_run_folder_join(&child, given, "live", ROOM), -ESTALE);
	assert_int_equal(close(lock), 0); /* it was not the child's to close */
	sl_run_folder_fini(&child);
	sl_run_folder_fini(&two);
	sl_run_folder_fini(&one);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(numbers_follow_the_highest),
		CASE(a_number_is_not_used_twice_in_a_session),
		CASE(a_file_with_the_next_number_is_passed_over),
		CASE(a_missing_root_is_made),
		CASE(a_long_root_is_refused),
		CASE(only_names_of_ours_are_numbers),
		CASE(states_of_a_run),
		CASE(the_result_is_whole_and_replaces_nothing),
		CASE(links_are_not_followed),
		CASE(a_folder_that_is_moved_keeps_its_files),
		CASE(lines_have_time_and_level),
		CASE(a_full_disk_loses_lines_and_nothing_else),
		CASE(a_disk_that_is_full_at_the_beginning_leaves_nothing),
		CASE(a_root_that_cannot_be_written_is_an_error),
		CASE(sessions_at_one_root_never_share_a_folder),
		CASE(a_killed_process_leaves_a_crash),
		CASE(crashes_are_told_until_a_run_has_a_result),
		CASE(receivers_share_a_folder),
		CASE(only_the_folder_of_the_lock_is_joined),
	};

	return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
