/* part_file_test.c - result files against everything that other programs can do to their names. */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file/part_file.h"
#include "base/log.h"

static char folder[64], path[96], part[96];

static void ignore(void *arg, enum sl_log_level level, const char *line)
{
}

static const struct sl_log_target quiet = {ignore, NULL}; /* what is refused is in the results */

static int setup(void **state)
{
	strcpy(folder, "/tmp/part-file-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/run.nxs", folder);
	snprintf(part, sizeof(part), "%s/run.nxs.part", folder);
	sl_log_set_target(&quiet);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	sl_log_set_target(NULL);
	return system(command);
}

static void put(const char *at, const char *text)
{
	FILE *file = fopen(at, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void has(const char *at, const char *text)
{
	char got[64] = "";
	FILE *file = fopen(at, "r");

	assert_non_null(file);
	if (!fgets(got, sizeof(got), file))
		got[0] = '\0';
	fclose(file);
	assert_string_equal(got, text);
}

static void is_absent(const char *at)
{
	struct stat st;

	assert_true(lstat(at, &st) && errno == ENOENT);
}

static struct sl_part_file begun(const char *text)
{
	struct sl_part_file file;

	assert_int_equal(sl_part_file_open(path, &file), 0);
	assert_int_equal(write(file.fd, text, strlen(text)), strlen(text));
	return file;
}

static void a_file_gets_its_name_in_the_end(void **state)
{
	struct sl_part_file file = begun("data");

	is_absent(path);
	has(part, "data");
	assert_int_equal(sl_part_file_publish(&file), 0);
	has(path, "data");
	is_absent(part);
}

static void a_file_that_was_there_is_replaced(void **state)
{
	struct sl_part_file file;

	put(path, "old");
	file = begun("new");
	has(path, "old");
	assert_int_equal(sl_part_file_publish(&file), 0);
	has(path, "new");
	is_absent(part);
}

static void a_file_that_appears_meanwhile_stays(void **state)
{
	struct sl_part_file file = begun("mine");

	put(path, "theirs");
	assert_int_equal(sl_part_file_publish(&file), -EEXIST);
	has(path, "theirs");
	has(part, "mine");
}

static void so_does_one_that_took_the_place_of_the_old_one(void **state)
{
	struct sl_part_file file;
	char other[96];

	put(path, "old");
	file = begun("mine");
	snprintf(other, sizeof(other), "%s/other", folder);
	put(other, "theirs");
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(sl_part_file_publish(&file), -EEXIST);
	has(path, "theirs");
	has(part, "mine");
}

static void an_old_one_that_was_removed_is_no_hindrance(void **state)
{
	struct sl_part_file file;

	put(path, "old");
	file = begun("new");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(sl_part_file_publish(&file), 0);
	has(path, "new");
}

static void a_part_that_was_removed_is_an_error(void **state)
{
	struct sl_part_file file = begun("lost");

	assert_int_equal(unlink(part), 0);
	assert_int_equal(sl_part_file_publish(&file), -ESTALE);
	is_absent(path);
}

static void another_file_in_its_place_is_not_published(void **state)
{
	struct sl_part_file file = begun("mine");

	assert_int_equal(unlink(part), 0);
	put(part, "planted");
	assert_int_equal(sl_part_file_publish(&file), -ESTALE);
	is_absent(path);
	has(part, "planted");
}

static void nor_is_it_removed_when_the_file_is_discarded(void **state)
{
	struct sl_part_file file = begun("mine");

	assert_int_equal(unlink(part), 0);
	put(part, "planted");
	sl_part_file_discard(&file);
	has(part, "planted");
}

static void a_discarded_file_leaves_nothing(void **state)
{
	struct sl_part_file file = begun("mine");

	sl_part_file_discard(&file);
	is_absent(part);
	is_absent(path);
}

static void links_are_not_followed(void **state)
{
	struct sl_part_file file;
	char victim[96];

	snprintf(victim, sizeof(victim), "%s/victim", folder);
	put(victim, "precious");
	assert_int_equal(symlink(victim, part), 0);
	assert_int_equal(sl_part_file_open(path, &file), -ELOOP);
	assert_int_equal(unlink(part), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(sl_part_file_open(path, &file), -ELOOP);
	is_absent(part);
	assert_int_equal(sl_output_open(path), -ELOOP);
	has(victim, "precious");
	assert_int_equal(unlink(path), 0);
	/* Nor a second name of the same file. */
	assert_int_equal(link(victim, part), 0);
	assert_int_equal(sl_part_file_open(path, &file), -EEXIST);
	has(victim, "precious");
}

static void what_is_no_file_is_refused(void **state)
{
	struct sl_part_file file;

	assert_int_equal(mkfifo(part, 0600), 0);
	assert_int_equal(sl_part_file_open(path, &file), -EEXIST);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(sl_part_file_open(path, &file), -EISDIR);
	assert_true(sl_output_open(path) < 0);
	assert_true(sl_output_open(part) < 0); /* and does not wait for a reader */
	assert_int_equal(sl_part_file_open("", &file), -EINVAL);
}

/* Before, the next run emptied it without a word. */
static void what_a_killed_run_left_is_kept(void **state)
{
	struct sl_part_file file;
	char kept[3][128];

	for (int i = 0; i < 3; i++)
		snprintf(kept[i], sizeof(kept[i]), "%s.%d", part, i + 1);
	put(kept[1], "of another run");
	for (int i = 0; i < 2; i++) {
		put(part, i ? "data of run 2" : "data of run 1");
		assert_int_equal(sl_part_file_open(path, &file), 0);
		assert_int_equal(lseek(file.fd, 0, SEEK_END), 0);
		assert_int_equal(write(file.fd, "new", 3), 3);
		assert_int_equal(sl_part_file_publish(&file), 0);
		has(path, "new");
		is_absent(part);
	}
	has(kept[0], "data of run 1");
	has(kept[1], "of another run");
	has(kept[2], "data of run 2");
}

static void an_empty_one_is_used(void **state)
{
	struct sl_part_file file;
	char kept[128];

	snprintf(kept, sizeof(kept), "%s.1", part);
	put(part, "");
	assert_int_equal(sl_part_file_open(path, &file), 0);
	is_absent(kept);
	sl_part_file_discard(&file);
	is_absent(part);
}

static void a_leftover_that_cannot_be_ours_stays(void **state)
{
	struct sl_part_file file;
	char other[128];

	put(part, "data");
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(link(part, other), 0);
	assert_int_equal(sl_part_file_open(path, &file), -EEXIST);
	has(part, "data");
}

/* A journal: new, then as it was left, and one process at a time has it. */
static void an_own_file_is_gone_on_with(void **state)
{
	long long bytes = 7;
	int fd = sl_own_file_open(path, &bytes);

	assert_true(fd >= 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(write(fd, "data", 4), 4);
	assert_int_equal(sl_own_file_open(path, &bytes), -EBUSY);
	close(fd);
	fd = sl_own_file_open(path, &bytes);
	assert_true(fd >= 0);
	assert_int_equal(bytes, 4);
	has(path, "data");
	sl_own_file_remove(fd, path);
	is_absent(path);
	put(path, "another");
	sl_own_file_remove(fd, path);
	has(path, "another");
	close(fd);
}

static void a_file_that_is_not_our_own_is_not_used(void **state)
{
	long long bytes;

	put(part, "data");
	assert_int_equal(link(part, path), 0);
	assert_int_equal(sl_own_file_open(path, &bytes), -EEXIST);
	has(part, "data");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(part, path), 0);
	assert_int_equal(sl_own_file_open(path, &bytes), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sl_own_file_open(path, &bytes), -EEXIST);
	assert_int_equal(unlink(path), 0);
	put(path, "");
	if (!chown(path, 1, (gid_t)-1)) /* as root */
		assert_int_equal(sl_own_file_open(path, &bytes), -EEXIST);
}

static void an_output_has_one_writer(void **state)
{
	int fd = sl_output_open(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one", 3), 3);
	assert_int_equal(sl_output_open(path), -EBUSY);
	has(path, "one");
	assert_int_equal(sl_output_check(fd, path, 3), 0);
	close(fd);
}

static void an_output_that_others_change_is_noticed(void **state)
{
	int fd = sl_output_open(path);
	char away[128];

	snprintf(away, sizeof(away), "%s/away", folder);
	assert_int_equal(write(fd, "one", 3), 3);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(sl_output_check(fd, path, 3), -ESTALE);
	put(path, "one");
	assert_int_equal(sl_output_check(fd, path, 3), -ESTALE);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(sl_output_check(fd, path, 3), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sl_output_check(fd, path, 3), -ESTALE);
	/* What is written later does not hide it. */
	assert_int_equal(write(fd, "two", 3), 3);
	has(path, "two");
	assert_int_equal(sl_output_check(fd, path, 6), -ESTALE);
	close(fd);
}

static void two_writers_never_share_a_file(void **state)
{
	struct sl_part_file first = begun("first"), second;

	assert_int_equal(sl_part_file_open(path, &second), -EBUSY);
	has(part, "first");
	assert_int_equal(sl_part_file_publish(&first), 0);
	has(path, "first");
}

/* Many start at once: the process that gets the file publishes it, the others are told. */
static void starts_at_the_same_time_have_one_winner_each(void **state)
{
	enum { STARTS = 8, ROUNDS = 40 };
	unsigned won = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		pid_t child[STARTS];
		unsigned late = 0;
		int go[2];

		assert_int_equal(pipe(go), 0);
		for (unsigned i = 0; i < STARTS; i++) {
			child[i] = fork();
			if (child[i])
				continue;
			struct sl_part_file file;
			char text[16], byte;

			close(go[1]);
			if (read(go[0], &byte, 1))
				_exit(9);
			if (sl_part_file_open(path, &file))
				_exit(1);
			snprintf(text, sizeof(text), "%d", getpid());
			if (write(file.fd, text, strlen(text)) < 0)
				_exit(9);
			usleep(200);
			if (sl_part_file_publish(&file))
				_exit(2);
			_exit(0);
		}
		close(go[0]);
		close(go[1]);
		for (unsigned i = 0; i < STARTS; i++) {
			int status;

			assert_int_equal(waitpid(child[i], &status, 0), child[i]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 9);
			won += WEXITSTATUS(status) == 0;
			late += WEXITSTATUS(status) == 2;
		}
		/* Another file came first: that was said, and the data are kept. */
		if (!late)
			is_absent(part);
		assert_int_equal(access(path, R_OK), 0);
	}
	assert_true(won >= ROUNDS);
}

static void folders_are_made(void **state)
{
	struct sl_part_file file;
	char deep[128];

	snprintf(deep, sizeof(deep), "%s/a/b/c.nxs", folder);
	assert_int_equal(sl_part_file_open(deep, &file), 0);
	assert_int_equal(sl_part_file_publish(&file), 0);
	assert_int_equal(access(deep, R_OK), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_file_gets_its_name_in_the_end),
		CASE(a_file_that_was_there_is_replaced),
		CASE(a_file_that_appears_meanwhile_stays),
		CASE(so_does_one_that_took_the_place_of_the_old_one),
		CASE(an_old_one_that_was_removed_is_no_hindrance),
		CASE(a_part_that_was_removed_is_an_error),
		CASE(another_file_in_its_place_is_not_published),
		CASE(nor_is_it_removed_when_the_file_is_discarded),
		CASE(a_discarded_file_leaves_nothing),
		CASE(links_are_not_followed),
		CASE(what_is_no_file_is_refused),
		CASE(what_a_killed_run_left_is_kept),
		CASE(an_empty_one_is_used),
		CASE(a_leftover_that_cannot_be_ours_stays),
		CASE(an_own_file_is_gone_on_with),
		CASE(a_file_that_is_not_our_own_is_not_used),
		CASE(an_output_has_one_writer),
		CASE(an_output_that_others_change_is_noticed),
		CASE(two_writers_never_share_a_file),
		CASE(starts_at_the_same_time_have_one_winner_each),
		CASE(folders_are_made),
	};

	return cmocka_run_group_tests_name("part_file", tests, NULL, NULL);
}
