/* child_test.c - which descriptors a child gets, and how it ended. A shell takes the place of the
 * program, and says which descriptors it has. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lib/capture.h"
#include "session/child.h"

enum { FIRST = 40, DESCRIPTORS = 6 }; /* FIRST to FIRST + 5 are opened here, and LOWEST */
enum { LOWEST = STDERR_FILENO + 1 };

/* The numbers of those that are open. "$$": no text that the parent could take for a descriptor. */
static char list[] = "for n in 3 40 41 42 43 44 45; do [ ! -e /proc/$$/fd/$n ] || echo $n; done";

static char output[64];

static int setup(void **state)
{
	int fd;

	snprintf(output, sizeof(output), "/tmp/sluice-child-XXXXXX");
	fd = mkstemp(output);
	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < DESCRIPTORS; i++) {
		/* Every other one is closed by exec anyhow. */
		fd = memfd_create("test", 0);
		assert_int_equal(fcntl(fd, i % 2 ? F_DUPFD_CLOEXEC : F_DUPFD, FIRST + i),
				 FIRST + i);
		close(fd);
	}
	if (fcntl(LOWEST, F_GETFD) < 0) /* else whoever started this program has left it open */
		assert_int_equal(dup2(FIRST, LOWEST), LOWEST);
	assert_int_equal(fcntl(LOWEST, F_SETFD, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		close(FIRST + i);
	return unlink(output);
}

static int wait_for(pid_t child)
{
	int status = -1000;

	while (sl_child_alive(&child, &status))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(child, 0);
	return status;
}

static void gets(int keep_fd, const char *uses, char *argument, const char *expected)
{
	const struct sl_child_options options = {.program = "/bin/sh",
						 .output = output,
						 .errors_fd = -1,
						 .keep_fd = keep_fd,
						 .uses = uses};
	char *argv[] = {(char *)"sh", (char *)"-c", list, (char *)"sh", argument, NULL};
	char text[256];
	FILE *file;
	pid_t child;
	size_t n;

	assert_int_equal(sl_child_start(&options, argv, &child), 0);
	assert_int_equal(wait_for(child), 0);
	file = fopen(output, "r");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
	assert_string_equal(text, expected);
}

/* The highest, the lowest, one between, and several; whether exec closes them or not. */
static void a_child_gets_the_descriptors_that_are_named_and_no_other(void **state)
{
	char none[] = "", one[] = "a=/dev/fd/42", two[] = "x=/proc/self/fd/41,y=/dev/fd/45";
	char absent[] = "/dev/fd/99";

	gets(-1, NULL, none, "");
	gets(45, NULL, none, "45\n");
	gets(44, NULL, none, "44\n");
	gets(40, NULL, none, "40\n");
	gets(43, "/dev/fd/41", none, "41\n43\n");
	gets(-1, NULL, one, "42\n");
	gets(40, "/dev/fd/43", two, "40\n41\n43\n45\n");
	gets(44, NULL, absent, "44\n");
	gets(LOWEST, NULL, none, "3\n");
	assert_int_equal(fcntl(LOWEST, F_SETFD, FD_CLOEXEC), 0);
	gets(LOWEST, NULL, none, "3\n");
	gets(44, "/dev/fd/3", none, "3\n44\n");
	gets(44, NULL, none, "44\n");
}

static void the_end_of_a_child_is_known(void **state)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = {{"exit 0", 0},
		     {"exit 37", 37},
		     {"kill -KILL $$", -SIGKILL},
		     {"kill -SEGV $$", -SIGSEGV}};
	const struct sl_child_options options = {
		.program = "sh", .output = output, .errors_fd = -1, .keep_fd = -1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)"sh", (char *)"-c", (char *)cases[i].script, NULL};
		pid_t child;

		assert_int_equal(sl_child_start(&options, argv, &child), 0);
		assert_int_equal(wait_for(child), cases[i].status);
	}
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	const struct sl_child_options options = {
		.program = "/nowhere/sluice", .output = output, .errors_fd = -1, .keep_fd = -1};
	char *argv[] = {(char *)"sluice", (char *)"emulate", NULL};
	const char *said;
	pid_t child = 7;
	int err;

	capture_begin();
	err = sl_child_start(&options, argv, &child);
	said = capture_end();
	assert_int_equal(err, -ENOENT);
	assert_int_equal(child, 0);
	assert_non_null(strstr(said, "cannot start '/nowhere/sluice emulate': "));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_child_gets_the_descriptors_that_are_named_and_no_other),
		CASE(the_end_of_a_child_is_known),
		CASE(a_program_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
