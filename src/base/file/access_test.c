/* access_test.c - group and mode as options say them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <grp.h>

#include <cmocka.h>

#include "base/file/access.h"
#include "lib/capture.h"

static void refuses(const char *group, const char *mode, int error, const char *what)
{
	struct sl_file_access access = {.group = 77};
	const char *said;

	capture_begin();
	assert_int_equal(sl_file_access_read("sink", group, mode, &access), error);
	said = capture_end();
	if (!strstr(said, what))
		fail_msg("'%s' is not in '%s'", what, said);
	assert_int_equal(access.group, 77);
}

static void nothing_is_asked_for(void **state)
{
	struct sl_file_access access = {.has_mode = true};

	assert_int_equal(sl_file_access_read("sink", "", "", &access), 0);
	assert_false(access.has_mode || access.has_group);
}

static void modes_are_octal(void **state)
{
	static const char *const wrong[] = {"640x", "0o640", "rw-r-----", "0840", "0440", "0200",
					    "0750", "01640", "00640",	  "64",	  "-640", " 640"};
	struct sl_file_access access;

	assert_int_equal(sl_file_access_read("sink", "", "0640", &access), 0);
	assert_true(access.has_mode && access.mode == 0640);
	assert_int_equal(sl_file_access_read("sink", "", "664", &access), 0);
	assert_true(access.has_mode && access.mode == 0664);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refuses("", wrong[i], -EINVAL, "sink.mode");
}

static void groups_are_those_of_the_user(void **state)
{
	struct sl_file_access access;
	char number[16];
	int status;
	pid_t child;

	refuses("no-such-group", "", -EINVAL, "this host has no group 'no-such-group'");
	snprintf(number, sizeof(number), "%u", (unsigned)getegid());
	assert_int_equal(sl_file_access_read("sink", number, "", &access), 0);
	assert_true(access.has_group && access.group == getegid());
	if (geteuid())
		return; /* the rest gives up root's rights */
	child = fork();
	if (!child) {
		if (setgroups(0, NULL) || setgid(4321) || setuid(4321))
			_exit(0);
		_exit(sl_file_access_read("sink", "root", "", &access) == -EPERM &&
				      !sl_file_access_read("sink", "4321", "", &access)
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void files_get_them(void **state)
{
	struct sl_file_access access, found;
	char path[] = "/tmp/sluice-access-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(sl_file_access_read("sink", "", "0664", &access), 0);
	assert_int_equal(sl_file_access_set(fd, path, &access), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0664);
	sl_file_access_of(path, &found);
	assert_true(found.has_mode && found.mode == 0664);
	close(fd);
	unlink(path);
	sl_file_access_of(path, &found);
	assert_false(found.has_mode || found.has_group);
}

struct watcher {
	const char *path;
	atomic_bool over;
	unsigned wide, seen; /* looks at which the mode was wider than asked for; looks in all */
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct stat st;

	while (!atomic_load(&w->over)) {
		if (stat(w->path, &st))
			continue;
		w->seen++;
		w->wide += (st.st_mode & 0777 & ~0640) != 0;
	}
	return NULL;
}

/* HDF5 asks for it. */
static bool has_name(int fd, const char *path)
{
	char self[40], target[64] = "";

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return readlink(self, target, sizeof(target) - 1) > 0 && !strcmp(target, path);
}

/* Another program that opens a file in the moment between its creation and its mode keeps a
 * descriptor that reads all that comes later. */
static void new_files_are_never_open_to_others(void **state)
{
	struct sl_file_access access;
	char folder[] = "/tmp/sluice-access-XXXXXX", path[64];
	struct watcher w = {.path = path};
	pthread_t thread;
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/new", folder);
	assert_int_equal(sl_file_access_read("sink", "", "0640", &access), 0);
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	for (unsigned i = 0; i < 2000; i++) {
		int fd = sl_file_create(path, &access);

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_nlink, 1);
		assert_true(has_name(fd, path));
		assert_int_equal(sl_file_create(path, &access), -EEXIST);
		assert_int_equal(sl_file_create(path, NULL), -EEXIST);
		assert_int_equal(write(fd, "x", 1), 1);
		close(fd);
		unlink(path);
	}
	atomic_store(&w.over, true);
	pthread_join(thread, NULL);
	rmdir(folder);
	assert_int_equal(w.wide, 0);
}

static void what_cannot_be_created_is_told(void **state)
{
	const struct sl_file_access access = {.has_mode = true, .mode = 0640};
	const char *said;

	capture_begin();
	assert_int_equal(sl_file_create("/tmp/no-such-folder/new", &access), -ENOENT);
	said = capture_end();
	assert_non_null(strstr(said, "/tmp/no-such-folder/new: cannot create"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_asked_for),
		cmocka_unit_test(modes_are_octal),
		cmocka_unit_test(groups_are_those_of_the_user),
		cmocka_unit_test(files_get_them),
		cmocka_unit_test(new_files_are_never_open_to_others),
		cmocka_unit_test(what_cannot_be_created_is_told),
	};

	return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
