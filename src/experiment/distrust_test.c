/* distrust_test.c - experiments of other hosts: which paths and which code are taken, by whom they
 * were set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "experiment/experiment.h"

static char root[64], said[4096];
static const char *roots[1] = {root};

static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	if (level == SL_LOG_ERROR && strlen(said) + strlen(line) + 2 < sizeof(said))
		strcat(strcat(said, line), "\n");
}

static int open_text(const char *text, const char *const *set, size_t n)
{
	static const struct sl_log_target target = {take_line, NULL};
	char path[] = "/tmp/distrust-XXXXXX";
	int fd = mkstemp(path), err;
	struct sl_experiment *e = NULL;

	assert_true(fd >= 0);
	dprintf(fd, "detector: {kind: pattern}\n%s", text);
	close(fd);
	said[0] = 0;
	sl_log_set_target(&target);
	err = sl_experiment_open(path, NULL, set, n, &e);
	sl_log_set_target(NULL);
	unlink(path);
	if (!err)
		sl_experiment_close(e);
	return err;
}

static void sink_with(const char *path, bool taken)
{
	char text[300];

	snprintf(text, sizeof(text), "sinks: [raw: {path: '%s'}]\n", path);
	if (!open_text(text, NULL, 0) != taken)
		fail_msg("%s is %staken: %s", path, taken ? "not " : "", said);
	if (!taken)
		assert_true(strstr(said, "outside of the folders") ||
			    strstr(said, "'..' is not taken"));
}

static void paths_stay_under_the_roots(void **state)
{
	char path[200];

	sl_experiment_distrust(roots, 1, true);
	sink_with("run.raw", true);
	sink_with("sub/run.raw", true);
	sink_with("..x/run.raw", true);
	snprintf(path, sizeof(path), "%s/run.raw", root);
	sink_with(path, true);
	snprintf(path, sizeof(path), "%s/not/there/{run}.raw", root);
	sink_with(path, true);
	snprintf(path, sizeof(path), "%s/way_out/run.raw", root);
	sink_with(path, false);
	snprintf(path, sizeof(path), "%s/way_out/not/there/run.raw", root);
	sink_with(path, false);
	snprintf(path, sizeof(path), "%s-more/run.raw", root);
	sink_with(path, false);
	snprintf(path, sizeof(path), "%s/../run.raw", root);
	sink_with(path, false);
	sink_with("../run.raw", false);
	sink_with("a/../../run.raw", false);
	sink_with("a/..", false);
	sink_with("/run.raw", false);
	sink_with("/", false);
	sink_with("~/run.raw", false);
	sink_with("~root/run.raw", false);
	sink_with("here, /etc/x", false);
}

static void any_option_may_be_a_path(void **state)
{
	sl_experiment_distrust(roots, 1, true);
	assert_int_equal(
		open_text("sinks: ['null']\ncontrol: {token_file: /etc/shadow}\n", NULL, 0),
		-EACCES);
	assert_null(strstr(said, "root:")); /* and not read */
	assert_int_equal(
		open_text("sinks: ['null']\nfrontend: {fault_log: /etc/faults}\n", NULL, 0),
		-EACCES);
	assert_int_equal(
		open_text("sinks: ['null']\ngeometry: {mask: '/etc/passwd:/mask'}\n", NULL, 0),
		-EACCES);
	assert_int_equal(
		open_text("sinks: ['null']\nstages: [integrate: {dark: /etc/dark}]\n", NULL, 0),
		-EACCES);
	/* With other mistakes in the file, too. */
	assert_int_equal(open_text("sinks: [nul]\ncontrol: {token_file: /etc/shadow}\n", NULL, 0),
			 -EACCES);
	assert_non_null(strstr(said, "nul"));
	assert_non_null(strstr(said, "/etc/shadow"));
	/* Neither are texts for people, nor paths inside of files. */
	assert_int_equal(
		open_text("sinks: ['null']\nmetadata: {title: /etc, keys: {a: ../b}}\n", NULL, 0),
		0);
	assert_int_equal(open_text("sinks: [raw: {dataset: /entry/data}]\n", NULL, 0), 0);
}

static void code_lies_where_this_user_cannot_write(void **state)
{
	char text[300];

	sl_experiment_distrust(roots, 1, true);
	snprintf(text, sizeof(text), "sinks: ['null']\nstages: [python: {script: '%s/judge.py'}]\n",
		 root);
	assert_int_equal(open_text(text, NULL, 0), -EACCES);
	assert_non_null(strstr(said, "is code"));
	assert_int_equal(
		open_text(
			"sinks: ['null']\nstages: [python: {script: /usr/lib/x.py, python: sh}]\n",
			NULL, 0),
		-EACCES);
	assert_non_null(strstr(said, "'sh' is code"));
	snprintf(text, sizeof(text), "sinks: ['null']\nplugins: ['%s/x.so']\n", root);
	assert_int_equal(open_text(text, NULL, 0), -EACCES);
	assert_non_null(strstr(said, "is code"));
	if (geteuid() == 0) /* root could write anything */
		assert_int_equal(
			open_text("sinks: ['null']\nplugins: [/usr/lib/os-release]\n", NULL, 0),
			-EACCES);
}

static void what_is_installed_is_trusted_and_overrides_are_not(void **state)
{
	static const char *const set[] = {"sinks[+].raw.path=/etc/x.raw"},
				 *const good[] = {"sinks[+].raw.path=x.raw"},
				 *const plugin[] = {"plugins[+]=/tmp/x.so"};
	char text[300];

	sl_experiment_distrust(roots, 1, false);
	snprintf(text, sizeof(text), "sinks: [raw: {path: '%s-more/run.raw'}]\n", root);
	assert_int_equal(open_text(text, NULL, 0), 0);
	assert_int_equal(open_text(text, set, 1), -EACCES);
	assert_int_equal(open_text("sinks: ['null']\n", good, 1), 0);
	assert_int_equal(open_text("sinks: ['null']\n", plugin, 1), -EACCES);
	assert_non_null(strstr(said, "--set plugins[0]"));
}

static int set_up(void **state)
{
	char link[80];

	strcpy(root, "/tmp/roots-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(link, sizeof(link), "%s/way_out", root);
	return symlink("/var", link);
}

static int tear_down(void **state)
{
	char link[80];

	snprintf(link, sizeof(link), "%s/way_out", root);
	unlink(link);
	return rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_stay_under_the_roots),
		cmocka_unit_test(any_option_may_be_a_path),
		cmocka_unit_test(code_lies_where_this_user_cannot_write),
		cmocka_unit_test(what_is_installed_is_trusted_and_overrides_are_not),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
