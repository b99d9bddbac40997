/* registry_test.c - names of sessions: one owner each, what a crash leaves, which folders are
 * refused. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/client.h>

#include "client/registry.h"
#include "lib/open_files.h"

static char base[200], place[300], why[1400];

static unsigned files_before;

/* The folder of sockets has a long path: a socket's own may have 107 characters. */
static int setup(void **state)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(base, sizeof(base), "%s/registry-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(base))
		return -1;
	snprintf(place, sizeof(place), "%s/%0100d", base, 7);
	setenv("SLUICE_RUN_DIR", place, 1);
	files_before = open_files();
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	assert_int_equal(open_files(), files_before);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command) ? -1 : 0;
}

static int folder(void)
{
	int fd = -1;

	if (sl_registry_open(true, &fd, why, sizeof(why)))
		fail_msg("%s", why);
	return fd;
}

static bool is_there(int fd, const char *file)
{
	return faccessat(fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void names_are_checked(void **state)
{
	static const char *const good[] = {"a", "run-2", "a.b_C", "0", "_", "a-"},
				 *const bad[] = {"",   ".a",	   "a/b", "a b",
						 "..", "\xc3\xa4", "-x",  "--"};
	char longest[66];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(sl_registry_name_is_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(sl_registry_name_is_valid(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[64] = 0;
	assert_false(sl_registry_name_is_valid(longest));
	longest[63] = 0;
	assert_true(sl_registry_name_is_valid(longest));
}

static void one_session_has_a_name(void **state)
{
	struct sl_registry_facts facts = {.name = "one", .pid = 7, .experiment = "a\n\"b\".yaml"};
	struct sl_registry_facts seen;
	struct sl_claim first, second;
	int fd = folder(), listener, client;
	bool alive;

	assert_int_equal(sl_registry_claim(fd, "one", &first, why, sizeof(why)), 0);
	assert_false(first.crashed);
	assert_int_equal(sl_registry_look(fd, "one", &seen, &alive), -ENOENT);
	assert_int_equal(sl_registry_publish(&first, &facts), 0);
	assert_int_equal(sl_registry_claim(fd, "one", &second, why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, "'one' is running"));
	assert_int_equal(sl_registry_claim(fd, ".one", &second, why, sizeof(why)), -EINVAL);
	assert_int_equal(sl_registry_look(fd, "one", &seen, &alive), 0);
	assert_true(alive);
	assert_string_equal(seen.experiment, facts.experiment);
	listener = sl_registry_listen(&first);
	assert_true(listener >= 0);
	client = sl_registry_connect(fd, "one");
	assert_true(client >= 0);
	close(client);
	close(listener);
	sl_registry_release(&first);
	assert_false(is_there(fd, "one.lock") || is_there(fd, "one.json") ||
		     is_there(fd, "one.sock"));
	assert_int_equal(sl_registry_claim(fd, "one", &second, why, sizeof(why)), 0);
	assert_false(second.crashed);
	sl_registry_release(&second);
	close(fd);
}

/* In a child, which is killed. */
static void crash(const char *name)
{
	const struct sl_registry_facts facts = {.pid = 1234, .run = 3, .folder = "/data/000003"};
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct sl_claim claim;
		int fd;

		if (!sl_registry_open(true, &fd, why, sizeof(why)) &&
		    !sl_registry_claim(fd, name, &claim, why, sizeof(why)) &&
		    !sl_registry_publish(&claim, &facts) && sl_registry_listen(&claim) >= 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void a_crash_is_seen_and_its_name_can_be_had(void **state)
{
	struct sl_registry_facts seen;
	struct sl_claim claim;
	int fd = folder(), listener;
	bool alive;

	crash("two");
	assert_int_equal(sl_registry_look(fd, "two", &seen, &alive), 0);
	assert_false(alive);
	assert_string_equal(seen.folder, "/data/000003");
	assert_int_equal(sl_registry_connect(fd, "two"), -ECONNREFUSED);
	assert_int_equal(sl_registry_claim(fd, "two", &claim, why, sizeof(why)), 0);
	assert_true(claim.crashed);
	assert_int_equal(claim.left.run, 3);
	listener = sl_registry_listen(&claim);
	assert_true(listener >= 0);
	close(listener);
	sl_registry_release(&claim);
	assert_int_equal(sl_registry_look(fd, "two", &seen, &alive), -ENOENT);
	close(fd);
}

static void clients_list_and_forget(void **state)
{
	struct sl_registry_facts facts = {.name = "living", .pid = 7};
	struct sl_remote_error error;
	struct sl_remote_info *list;
	struct sl_remote *remote;
	struct sl_claim claim;
	int fd = folder(), listener;
	char *json;
	size_t n;

	crash("crashed");
	assert_int_equal(sl_registry_claim(fd, "living", &claim, why, sizeof(why)), 0);
	assert_int_equal(sl_registry_publish(&claim, &facts), 0);
	assert_int_equal(sl_remote_list(&list, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(list[0].name, "crashed");
	assert_false(list[0].alive);
	assert_true(list[1].alive);
	sl_remote_free(list);
	assert_int_equal(sl_remote_list_json(100, &json), 0);
	assert_non_null(strstr(json, "\"living\""));
	sl_remote_free(json);
	listener = sl_registry_listen(&claim); /* which is not listened to */
	assert_true(listener >= 0);
	assert_int_equal(sl_remote_open("living", 50, &remote, &error), 0);
	assert_int_equal(sl_remote_call(remote, "stop", NULL, 50, NULL, &error), -ETIMEDOUT);
	assert_string_equal(error.code, "timeout");
	close(listener);
	assert_int_equal(sl_remote_call(remote, "stop", NULL, 50, NULL, NULL), -EPIPE);
	sl_remote_close(remote);
	assert_int_equal(sl_remote_open("crashed", 100, &remote, &error), -ECONNREFUSED);
	assert_string_equal(error.code, "crashed");
	assert_int_equal(sl_remote_open("none", 100, &remote, &error), -ENOENT);
	assert_int_equal(sl_remote_open("../x", 100, &remote, &error), -ENOENT);
	assert_string_equal(error.code, "absent");
	assert_int_equal(sl_remote_forget_crashed(), 1);
	assert_int_equal(sl_remote_list(&list, &n), 0);
	assert_int_equal(n, 1);
	sl_remote_free(list);
	sl_registry_release(&claim);
	close(fd);
}

static void files_of_others_do_no_harm(void **state)
{
	static const char *const rubbish[] = {"x.json", "y.lock", ".hidden.json", "z z.json",
					      "readme"};
	struct sl_remote_info *list;
	struct sl_claim claim;
	int fd = folder();
	size_t n;

	for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++)
		close(openat(fd, rubbish[i], O_WRONLY | O_CREAT, 0600));
	assert_int_equal(mkdirat(fd, "folder.json", 0700), 0);
	assert_int_equal(symlinkat("/etc/passwd", fd, "link.lock"), 0);
	assert_int_equal(sl_remote_list(&list, &n), 0);
	assert_int_equal(n, 2); /* x and folder: crashed, of which nothing is known */
	sl_remote_free(list);
	assert_int_equal(sl_registry_claim(fd, "link", &claim, why, sizeof(why)), -ELOOP);
	close(fd);
}

static void folders_that_others_could_enter_are_refused(void **state)
{
	int fd = folder();
	char other[340];

	close(fd);
	assert_int_equal(chmod(place, 0750), 0);
	assert_int_equal(sl_registry_open(true, &fd, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "chmod 700"));
	assert_int_equal(chmod(place, 0700), 0);
	snprintf(other, sizeof(other), "%s/link", base);
	assert_int_equal(symlink(place, other), 0);
	setenv("SLUICE_RUN_DIR", other, 1);
	assert_true(sl_registry_open(true, &fd, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "symbolic link"));
	if (geteuid() == 0) {
		assert_int_equal(chown(place, 65534, 65534), 0);
		setenv("SLUICE_RUN_DIR", place, 1);
		assert_int_equal(sl_registry_open(true, &fd, why, sizeof(why)), -EPERM);
		assert_non_null(strstr(why, "another user"));
	}
	snprintf(other, sizeof(other), "%s/none/none", base);
	setenv("SLUICE_RUN_DIR", other, 1);
	assert_int_equal(sl_registry_open(true, &fd, why, sizeof(why)), -ENOENT);
}

static void the_folder_follows_the_environment(void **state)
{
	char path[SL_REGISTRY_PATH], expected[340];

	unsetenv("SLUICE_RUN_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	assert_int_equal(sl_registry_path(path, sizeof(path)), 0);
	snprintf(expected, sizeof(expected), "%s/sluice", base);
	assert_string_equal(path, expected);
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	assert_int_equal(sl_registry_path(path, sizeof(path)), 0);
	snprintf(expected, sizeof(expected), "/tmp/sluice-%u", (unsigned)geteuid());
	assert_string_equal(path, expected);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(sl_registry_path(path, sizeof(path)), 0);
	assert_string_equal(path, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(one_session_has_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crash_is_seen_and_its_name_can_be_had, setup,
						teardown),
		cmocka_unit_test_setup_teardown(clients_list_and_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(files_of_others_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(folders_that_others_could_enter_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_folder_follows_the_environment, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
