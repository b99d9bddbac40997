/* trust_test.c - files and folders that another user could write or exchange are refused; symbolic
 * links are followed, and judged by every folder on their way. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "plugin/plugin.h"

static char folder[PATH_MAX / 2];
static char why[SL_PLUGIN_WHY];

static const char *in(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* folder/a/b/file, all of it ours alone. */
static int make(void **arg)
{
	const char *place = getenv("TMPDIR");
	int fd;

	umask(022);
	snprintf(folder, sizeof(folder), "%s/trust-XXXXXX", place ? place : "/tmp");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(in("a"), 0755), 0);
	assert_int_equal(mkdir(in("a/b"), 0755), 0);
	fd = open(in("a/b/file"), O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int remove_all(void **arg)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? -1 : 0;
}

static void accepts(const char *path)
{
	int fd = sl_trust_open(path, why, sizeof(why));

	if (fd < 0)
		fail_msg("%s: refused: %s", path, why);
	close(fd);
}

static void refuses(const char *path, int err, const char *words)
{
	why[0] = 0;
	assert_int_equal(sl_trust_open(path, why, sizeof(why)), err);
	if (!strstr(why, words))
		fail_msg("'%s' is not in: %s", words, why);
}

static void test_a_file_of_ours_is_accepted(void **arg)
{
	char here[PATH_MAX];

	accepts(in("a/b/file"));
	accepts(in("a//b/./../b/file"));
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(in("a")), 0);
	accepts("b/file");
	accepts("./b/file");
	assert_int_equal(chdir(here), 0);
}

static void test_what_is_no_regular_file_is_refused(void **arg)
{
	refuses(in("a/b/none"), -ENOENT, "No such file");
	refuses(in("a/b"), -EACCES, "it is no regular file");
	refuses(in("a/b/file/"), -ENOTDIR, "is no folder");
	assert_int_equal(mkfifo(in("a/b/fifo"), 0600), 0);
	refuses(in("a/b/fifo"), -EACCES, "it is no regular file"); /* and does not wait for it */
	refuses("/dev/null", -EACCES, "it is no regular file");
	refuses("", -EACCES, "it is no regular file");
}

static void test_what_others_can_write_is_refused(void **arg)
{
	assert_int_equal(chmod(in("a/b/file"), 0664), 0);
	refuses(in("a/b/file"), -EACCES, "other users can write it (mode 0664): chmod go-w ");
	assert_int_equal(chmod(in("a/b/file"), 0646), 0);
	refuses(in("a/b/file"), -EACCES, "other users can write it");
	assert_int_equal(chmod(in("a/b/file"), 0644), 0);
	assert_int_equal(chmod(in("a/b"), 0775), 0);
	refuses(in("a/b/file"), -EACCES, "other users can write the folder ");
	assert_int_equal(chmod(in("a/b"), 0755), 0);
	assert_int_equal(chmod(in("a"), 0757), 0);
	refuses(in("a/b/file"), -EACCES, "/a (mode 0757)");
	assert_int_equal(chmod(in("a"), 0755), 0);
	accepts(in("a/b/file"));
}

static void test_a_sticky_folder_passes_on_the_way_to_a_folder(void **arg)
{
	assert_int_equal(chmod(in("a"), 01777), 0);
	accepts(in("a/b/file"));
	assert_int_equal(chmod(in("a"), 0755), 0);
	assert_int_equal(chmod(in("a/b"), 01777), 0);
	refuses(in("a/b/file"), -EACCES, "lies in a folder that other users can write");
	/* A link in it could be another user's. */
	assert_int_equal(chmod(in("a/b"), 0755), 0);
	assert_int_equal(symlink("b", in("a/link")), 0);
	assert_int_equal(chmod(in("a"), 01777), 0);
	refuses(in("a/link/file"), -EACCES, "lies in a folder that other users can write");
}

static void test_links_are_followed_and_their_folders_judged(void **arg)
{
	char target[PATH_MAX];

	assert_int_equal(mkdir(in("c"), 0755), 0);
	assert_int_equal(symlink("../a/b/file", in("c/relative")), 0);
	snprintf(target, sizeof(target), "%s", in("a/b"));
	assert_int_equal(symlink(target, in("c/absolute")), 0);
	accepts(in("c/relative"));
	accepts(in("c/absolute/file"));
	assert_int_equal(chmod(in("a"), 0777), 0);
	refuses(in("c/relative"), -EACCES, "/a (mode 0777)");
	assert_int_equal(chmod(in("a"), 0755), 0);
	assert_int_equal(chmod(in("c"), 0777), 0); /* the link's own folder */
	refuses(in("c/relative"), -EACCES, "/c (mode 0777)");
	assert_int_equal(symlink("circle", in("a/circle")), 0);
	refuses(in("a/circle"), -ELOOP, "symbolic links");
}

static void test_what_belongs_to_others_is_refused(void **arg)
{
	if (geteuid()) {
		print_message("# skip: only root can give a file away\n");
		skip();
	}
	assert_int_equal(chown(in("a/b/file"), 4711, 4711), 0);
	refuses(in("a/b/file"), -EACCES, "it belongs to user 4711");
	assert_int_equal(chown(in("a/b/file"), 0, 4711), 0); /* the group cannot write */
	accepts(in("a/b/file"));
	assert_int_equal(chown(in("a/b"), 4711, 4711), 0);
	refuses(in("a/b/file"), -EACCES, "belongs to user 4711, who could exchange the file");
	/* Not even where the sticky bit keeps others from renaming it. */
	assert_int_equal(chmod(in("a"), 01777), 0);
	refuses(in("a/b/file"), -EACCES, "belongs to user 4711");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, remove_all)
	const struct CMUnitTest tests[] = {
		TEST(test_a_file_of_ours_is_accepted),
		TEST(test_what_is_no_regular_file_is_refused),
		TEST(test_what_others_can_write_is_refused),
		TEST(test_a_sticky_folder_passes_on_the_way_to_a_folder),
		TEST(test_links_are_followed_and_their_folders_judged),
		TEST(test_what_belongs_to_others_is_refused),
	};

	return cmocka_run_group_tests_name("plugin/trust", tests, NULL, NULL);
}
