/* log_test.c - what a line looks like on a file and on a terminal. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"

static int reset(void **state)
{
	sl_log_level(SL_LOG_INFO);
	sl_log_progress_shown(0);
	return 0;
}

static void each_level_has_its_prefix(void **state)
{
	const char *text;

	sl_log_level(SL_LOG_DEBUG);
	capture_begin();
	sl_error("a %d", 1);
	sl_warn("b %s", "2");
	sl_info("c");
	sl_debug("d");
	text = capture_end();
	assert_string_equal(text, "sluice: error: a 1\nsluice: warning: b 2\nsluice: c\n"
				  "sluice: debug: d\n");
}

static void info_is_the_default_level(void **state)
{
	const char *text;

	capture_begin();
	sl_debug("hidden");
	sl_info("shown");
	text = capture_end();
	assert_string_equal(text, "sluice: shown\n");
}

static void a_lower_level_silences(void **state)
{
	const char *text;

	sl_log_level(SL_LOG_ERROR);
	capture_begin();
	sl_warn("hidden");
	sl_error("shown");
	text = capture_end();
	assert_string_equal(text, "sluice: error: shown\n");
}

static void errno_is_kept_and_usable(void **state)
{
	const char *text;

	capture_begin();
	errno = ENOENT;
	sl_error("%m");
	assert_int_equal(errno, ENOENT);
	text = capture_end();
	assert_string_equal(text, "sluice: error: No such file or directory\n");
}

static void a_long_line_is_cut_and_says_so(void **state)
{
	char *longest = malloc(100001);
	const char *text;

	memset(longest, 'x', 100000);
	longest[100000] = 0;
	capture_begin();
	sl_error("%s", longest);
	text = capture_end();
	assert_in_range(strlen(text), 4000, 4096);
	assert_non_null(strstr(text, "xxx ...\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(longest);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	const char *text;

	capture_begin();
	sl_error("a\033[2Jb\rc\001d\177e\tf");
	text = capture_end();
	assert_string_equal(text, "sluice: error: a?[2Jb?c?d?e\tf\n");
}

static void a_file_gets_no_escape_codes(void **state)
{
	const char *text;

	sl_log_progress_shown(1);
	capture_begin();
	sl_info("line");
	text = capture_end();
	assert_string_equal(text, "sluice: line\n");
}

/* A pseudo-terminal in raw mode as stderr; returns its master side. */
static int terminal(int *saved)
{
	struct termios raw;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0) {
		close(master);
		return -1;
	}
	tcgetattr(slave, &raw);
	cfmakeraw(&raw);
	tcsetattr(slave, TCSANOW, &raw);
	*saved = dup(STDERR_FILENO);
	dup2(slave, STDERR_FILENO);
	close(slave);
	return master;
}

static void a_terminal_loses_its_progress_line_first(void **state)
{
	static const char wanted[] = "sluice: one\n\r\033[Ksluice: two\n";
	char text[256] = "";
	int saved = -1, master = terminal(&saved);
	size_t used = 0;
	ssize_t n;

	if (master < 0) {
		print_message("# skip: no pseudo-terminals here\n");
		skip();
	}
	sl_info("one");
	sl_log_progress_shown(1);
	sl_info("two");
	while (used < sizeof(wanted) - 1 &&
	       (n = read(master, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(master);
	assert_string_equal(text, wanted);
}

static void a_closed_stderr_is_survived(void **state)
{
	int saved = dup(STDERR_FILENO);

	close(STDERR_FILENO);
	sl_error("nobody hears this");
	dup2(saved, STDERR_FILENO);
	close(saved);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, reset, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_level_has_its_prefix),
		CASE(info_is_the_default_level),
		CASE(a_lower_level_silences),
		CASE(errno_is_kept_and_usable),
		CASE(a_long_line_is_cut_and_says_so),
		CASE(control_characters_do_not_reach_the_terminal),
		CASE(a_file_gets_no_escape_codes),
		CASE(a_terminal_loses_its_progress_line_first),
		CASE(a_closed_stderr_is_survived),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
