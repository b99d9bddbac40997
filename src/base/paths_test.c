/* paths_test.c - lists of files from one text. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/paths.h"

static char why[256];

static char folder[256];

static int enter(void **state)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/sluice-paths-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return chdir("/") || system(command);
}

static void touch(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0666);

	assert_true(fd >= 0);
	close(fd);
}

static void expect(const char *text, const char *wanted)
{
	struct sl_paths paths;
	char joined[1024] = "";

	assert_int_equal(sl_paths_expand(text, &paths, why, sizeof(why)), 0);
	for (size_t i = 0; i < paths.n; i++) {
		strcat(joined, i ? "|" : "");
		strcat(joined, paths.path[i]);
	}
	assert_string_equal(joined, wanted);
	sl_paths_free(&paths);
}

static void refuse(const char *text, int err, const char *says)
{
	struct sl_paths paths = {0};

	assert_int_equal(sl_paths_expand(text, &paths, why, sizeof(why)), err);
	assert_non_null(strstr(why, says));
	assert_int_equal(paths.n, 0);
}

static void test_a_plain_name_is_taken_over(void **state)
{
	expect("missing.h5", "missing.h5");
	expect("a.h5, b.h5,c.h5", "a.h5|b.h5|c.h5");
}

static void test_a_file_of_that_very_name_comes_first(void **state)
{
	touch("odd, *%d.h5");
	expect("odd, *%d.h5", "odd, *%d.h5");
}

static void test_patterns_go_by_the_numbers_in_names(void **state)
{
	touch("run_10.bin");
	touch("run_9.bin");
	touch("run_1.bin");
	expect("run_*.bin", "run_1.bin|run_9.bin|run_10.bin");
	refuse("walk_*.bin", -ENOENT, "walk_*");
}

static void test_numbered_names_begin_with_0_or_1_and_have_no_holes(void **state)
{
	touch("f_001.raw");
	touch("f_002.raw");
	expect("f_%03d.raw", "f_001.raw|f_002.raw");
	touch("f_000.raw");
	expect("f_%03u.raw", "f_000.raw|f_001.raw|f_002.raw");
	touch("f_004.raw");
	refuse("f_%03d.raw", -ENOENT, "number 3");
	refuse("g_%d.raw", -ENOENT, "g_%d.raw");
}

static void test_the_text_is_no_format(void **state)
{
	char name[16];

	assert_int_equal(sl_paths_number("a%s", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("a%n", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("a%d%d", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("a", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("a%", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("a%99999999999d", 1, name, sizeof(name)), -EINVAL);
	assert_int_equal(sl_paths_number("0123456789abc%04d", 1, name, sizeof(name)),
			 -ENAMETOOLONG);
	assert_int_equal(sl_paths_number("5%%_%06u", 7, name, sizeof(name)), 0);
	assert_string_equal(name, "5%_000007");
	refuse("a%s", -EINVAL, "one number");
}

static void test_nothing_is_refused(void **state)
{
	refuse("", -EINVAL, "no file");
	refuse(" , ", -EINVAL, "no file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plain_name_is_taken_over),
		cmocka_unit_test(test_a_file_of_that_very_name_comes_first),
		cmocka_unit_test(test_patterns_go_by_the_numbers_in_names),
		cmocka_unit_test(test_numbered_names_begin_with_0_or_1_and_have_no_holes),
		cmocka_unit_test(test_the_text_is_no_format),
		cmocka_unit_test(test_nothing_is_refused),
	};

	return cmocka_run_group_tests_name("paths", tests, enter, leave);
}
