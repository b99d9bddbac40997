/* plugins_test.c - a shared object becomes add-ons of the registry, once; what is refused leaves
 * nothing there. */
#include <errno.h>
#include <libgen.h>
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

#include "core/registry.h"
#include "experiment/experiment.h"
#include "lib/capture.h"
#include "plugin/plugin.h"

static char folder[PATH_MAX / 2];
static char why[SL_PLUGIN_WHY + PATH_MAX];

static const char *in(const char *name)
{
	static char path[2][PATH_MAX];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void copy(const char *from, const char *to)
{
	char buffer[1 << 16];
	FILE *in_file = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	assert_non_null(in_file);
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof(buffer), in_file)))
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	fclose(in_file);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(to, 0644), 0);
}

/* The objects of tests/lib, in a folder of our own. */
static int make(void **arg)
{
	static const char *const names[] = {"libplugin_good.so", "libplugin_none.so"};
	const char *place = getenv("TMPDIR");
	char self[PATH_MAX], from[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = 0;
	dirname(self);
	umask(022);
	snprintf(folder, sizeof(folder), "%s/load-XXXXXX", place ? place : "/tmp");
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof(from), "%s/../tests/lib/%s", self, names[i]);
		copy(from, in(names[i] + 3));
	}
	return 0;
}

static int remove_all(void **arg)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? -1 : 0;
}

static void refuses(const char *path, int err, const char *words)
{
	why[0] = 0;
	assert_int_equal(sl_plugin_open(path, why, sizeof(why)), err);
	if (!strstr(why, words) || strncmp(why, "plug-in ", 8) != 0 || strstr(why, "/proc/self"))
		fail_msg("'%s' is not in: %s", words, why);
	assert_null(sl_stage_find("fixture"));
}

static void test_what_is_no_plug_in_is_refused(void **arg)
{
	FILE *text = fopen(in("text.so"), "w");

	fputs("no shared object\n", text);
	fclose(text);
	refuses(in("text.so"), -ENOEXEC, "it cannot be loaded: ");
	refuses(in("plugin_none.so"), -ENOEXEC, "it has no symbol sl_plugin");
	refuses(in("none.so"), -ENOENT, "No such file");
	assert_int_equal(chmod(in("plugin_good.so"), 0666), 0);
	refuses(in("plugin_good.so"), -EACCES, "other users can write it");
	assert_int_equal(chmod(in("plugin_good.so"), 0644), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	refuses(in("plugin_good.so"), -EACCES, "other users can write the folder");
	assert_int_equal(chmod(folder, 0755), 0);
}

static void write_experiment(const char *path, const char *plugins)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file,
		"detector: {kind: pattern}\nplugins:\n%s\nstages: [fixture]\nsinks: [verify]\n",
		plugins);
	fclose(file);
}

static void expect_refused(const char *plugins, const char *words)
{
	struct sl_experiment *e;
	const char *said;

	write_experiment(in("experiment.yaml"), plugins);
	capture_begin();
	assert_true(sl_experiment_open(in("experiment.yaml"), NULL, NULL, 0, &e) < 0);
	said = capture_end();
	if (!strstr(said, words))
		fail_msg("'%s' is not in: %s", words, said);
}

static void test_an_experiment_that_names_it_wrongly_says_the_line(void **arg)
{
	expect_refused("  - none.so", "experiment.yaml:3: plugins[0]: plug-in none.so: ");
	expect_refused("  - {a: b}", "experiment.yaml:3: plugins[0]: takes the path");
	expect_refused("  one.so", "takes a list of paths");
}

/* From here on the plug-in is loaded: there is no way back in a process. */
static void test_an_experiment_loads_what_it_names(void **arg)
{
	const char *path = NULL;
	struct sl_experiment *e;
	char list[PATH_MAX + 8], *resolved;

	snprintf(list, sizeof(list), "  - %s", in("plugin_good.so"));
	write_experiment(in("experiment.yaml"), list);
	for (int i = 0; i < 2; i++) { /* the second time it is there already */
		assert_int_equal(sl_experiment_open(in("experiment.yaml"), NULL, NULL, 0, &e), 0);
		assert_ptr_equal(e->stage[0], sl_stage_find("fixture"));
		assert_int_equal(*(uint32_t *)e->stage_state[0], 3); /* its option's default */
		resolved = sl_experiment_resolved(e, false);
		assert_non_null(resolved);
		assert_non_null(strstr(resolved, in("plugin_good.so")));
		free(resolved);
		sl_experiment_close(e);
	}
	assert_non_null(sl_sink_find("fixture"));
	assert_string_equal(sl_plugin_of(sl_sink_find("fixture"), &path)->version, "1.2");
	assert_non_null(strstr(path, "/plugin_good.so"));
	assert_null(sl_plugin_of(sl_sink_find("verify"), &path));
	assert_null(sl_plugin_of(NULL, &path));
}

static void test_the_same_file_is_loaded_once_and_another_is_refused(void **arg)
{
	assert_int_equal(sl_plugin_load(in("plugin_good.so")), 0);
	assert_int_equal(symlink("plugin_good.so", in("link.so")), 0);
	assert_int_equal(sl_plugin_load(in("link.so")), 0);
	copy(in("plugin_good.so"), in("copy.so"));
	assert_int_equal(sl_plugin_open(in("copy.so"), why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, "there is a stage 'fixture' already, of the plug-in "));
}

static void test_folders_load_all_that_is_in_them(void **arg)
{
	static const char *const others[] = {"empty/readme.txt", "empty/.hidden.so", "empty/.so",
					     "empty/a.so.1"};
	char list[PATH_MAX + 8];

	assert_int_equal(mkdir(in("empty"), 0700), 0);
	assert_int_equal(sl_plugin_load_folder(in("empty")), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		FILE *file = fopen(in(others[i]), "w");

		assert_non_null(file);
		fclose(file);
	}
	assert_int_equal(sl_plugin_load_folder(in("empty")), 0); /* none of them is looked at */
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(unlink(in(others[i])), 0);
	assert_int_equal(rmdir(in("empty")), 0);
	capture_begin();
	assert_int_equal(sl_plugin_load_folder(in("empty")), -ENOENT);
	assert_non_null(strstr(capture_end(), "cannot read the folder of plug-ins"));

	capture_begin();
	assert_int_equal(sl_plugin_load_folder(folder), -EEXIST); /* copy.so is the first */
	assert_non_null(strstr(capture_end(), "copy.so"));
	assert_int_equal(unlink(in("copy.so")), 0);
	assert_int_equal(unlink(in("text.so")), 0);
	assert_int_equal(unlink(in("plugin_none.so")), 0);
	assert_int_equal(sl_plugin_load_folder(folder), 0);
	snprintf(list, sizeof(list), ":%s::", folder);
	assert_int_equal(sl_plugin_load_folders(list), 0);
	assert_int_equal(sl_plugin_load_folders(NULL), 0);
	capture_begin();
	assert_int_equal(sl_plugin_load_folders(in("none")), -ENOENT);
	assert_non_null(strstr(capture_end(), "cannot read the folder of plug-ins"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_plug_in_is_refused),
		cmocka_unit_test(test_an_experiment_that_names_it_wrongly_says_the_line),
		cmocka_unit_test(test_an_experiment_loads_what_it_names),
		cmocka_unit_test(test_the_same_file_is_loaded_once_and_another_is_refused),
		cmocka_unit_test(test_folders_load_all_that_is_in_them),
	};

	return cmocka_run_group_tests_name("experiment/plugins", tests, make, remove_all);
}
