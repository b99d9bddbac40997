/* secret_file_test.c - who else can read the file, what is in it, and descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/secret_file.h"

static char folder[] = "/tmp/sluice-secret-XXXXXX", path[64], why[256];

static int setup(void **state)
{
	(void)state;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/token", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void put(const void *text, size_t bytes, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void expect(const char *at, const char *secret)
{
	char got[32] = "untouched";

	assert_int_equal(sl_secret_file_read(at, got, sizeof(got), why, sizeof(why)), 0);
	assert_string_equal(got, secret);
}

static void expect_refusal(const char *at, int err, const char *reason)
{
	char got[32] = "untouched";

	assert_int_equal(sl_secret_file_read(at, got, sizeof(got), why, sizeof(why)), err);
	assert_string_equal(got, "untouched");
	if (!strstr(why, reason))
		fail_msg("'%s' does not say '%s'", why, reason);
}

static void the_first_line_is_the_secret(void **state)
{
	(void)state;
	put("open sesame\nwhatever\n", 21, 0600);
	expect(path, "open sesame");
	put("open sesame\r\n", 13, 0400);
	expect(path, "open sesame");
	put("no line end", 11, 0640);
	expect(path, "no line end");
	put("0123456789012345678901234567890\n", 32, 0600);
	expect(path, "0123456789012345678901234567890");
}

static void a_file_that_others_can_read_is_refused(void **state)
{
	static const mode_t wrong[] = {0644, 0604, 0602, 0620, 0660, 0601};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put("open sesame\n", 12, wrong[i]);
		expect_refusal(path, -EPERM, "chmod 600");
		assert_null(strstr(why, "sesame"));
	}
	if (geteuid() != 0)
		return; /* the rest needs a file of another user */
	put("open sesame\n", 12, 0600);
	assert_int_equal(chown(path, 12345, 12345), 0);
	expect_refusal(path, -EPERM, "another user");
}

static void what_is_no_secret_is_refused_and_not_quoted(void **state)
{
	char line[5000];

	(void)state;
	put("", 0, 0600);
	expect_refusal(path, -EINVAL, "empty");
	put("\nsecond\n", 8, 0600);
	expect_refusal(path, -EINVAL, "empty");
	put("01234567890123456789012345678901", 32, 0600);
	expect_refusal(path, -EINVAL, "more than 31 bytes");
	assert_null(strstr(why, "0123"));
	memset(line, 'x', sizeof(line));
	put(line, sizeof(line), 0600);
	expect_refusal(path, -EINVAL, "more than 31 bytes");
	put("a\tb\n", 4, 0600);
	expect_refusal(path, -EINVAL, "not text");
	put("a\0b\n", 4, 0600);
	expect_refusal(path, -EINVAL, "not text");
	unlink(path);
	expect_refusal(path, -ENOENT, "cannot be opened");
	expect_refusal(folder, -EISDIR, "cannot be read");
}

static void a_descriptor_can_be_read_again(void **state)
{
	char name[32];
	int fd;

	(void)state;
	put("open sesame\n", 12, 0600);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	expect(name, "open sesame");
	expect(name, "open sesame");
	close(fd);
	put("open sesame\n", 12, 0644);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	expect_refusal(name, -EPERM, "chmod 600");
	close(fd);
}

static void a_pipe_can_be_read_again(void **state)
{
	char name[32], after[16] = "";
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "open ses", 8), 8);
	assert_int_equal(write(fd[1], "ame\n", 4), 4);
	close(fd[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd[0]);
	expect(name, "open sesame");
	expect(name, "open sesame");
	/* Child processes find it, too: it is not closed by exec, as the pipe was not. */
	assert_int_equal(fcntl(fd[0], F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(pread(fd[0], after, sizeof(after), 0), 12);
	close(fd[0]);
}

static void a_whole_file_is_read(void **state)
{
	char text[32];

	(void)state;
	put("two\nlines\n", 10, 0600);
	assert_int_equal(sl_secret_file_text(path, text, sizeof(text), why, sizeof(why)), 0);
	assert_string_equal(text, "two\nlines\n");
	assert_int_equal(sl_secret_file_text(path, text, 11, why, sizeof(why)), 0);
	assert_int_equal(sl_secret_file_text(path, text, 10, why, sizeof(why)), -E2BIG);
	assert_string_equal(text, "");
	put("", 0, 0600);
	assert_int_equal(sl_secret_file_text(path, text, sizeof(text), why, sizeof(why)), 0);
	assert_string_equal(text, "");
	put("a\0b\n", 4, 0600);
	assert_int_equal(sl_secret_file_text(path, text, sizeof(text), why, sizeof(why)), -EINVAL);
	put("two\n", 4, 0604);
	assert_int_equal(sl_secret_file_text(path, text, sizeof(text), why, sizeof(why)), -EPERM);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_line_is_the_secret, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_others_can_read_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_secret_is_refused_and_not_quoted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_descriptor_can_be_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_whole_file_is_read, setup, teardown),
		cmocka_unit_test(a_pipe_can_be_read_again),
	};

	return cmocka_run_group_tests_name("secret_file", tests, NULL, NULL);
}
