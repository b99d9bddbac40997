/* site_test.c - site files: where they are looked for, what they change, what they lock, and which
 * are refused. */
#include "experiment/site.h"

#include <errno.h>
#include <fcntl.h>
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

#include "experiment/experiment.h"
#include "experiment/parts.h"
#include "lib/capture.h"

static char folder[64], exp_path[128], site_path[128];

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	strcpy(folder, "/tmp/sluice-site-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(exp_path, sizeof(exp_path), "%s/exp.yaml", folder);
	snprintf(site_path, sizeof(site_path), "%s/site.yaml", folder);
	return setenv("SLUICE_SITE", site_path, 1);
}

static int teardown(void **state)
{
	unlink(exp_path);
	unlink(site_path);
	rmdir(folder);
	return setenv("SLUICE_SITE", "", 1);
}

#define PATTERN	  "detector: {kind: pattern, frames: 5}\n"
#define NULL_SINK "sinks: ['null']\n"
#define PLAIN	  PATTERN NULL_SINK

static struct sl_experiment *opens(const char *site, const char *text, const char *set)
{
	struct sl_experiment *e = NULL;

	write_file(site_path, site);
	write_file(exp_path, text);
	assert_int_equal(sl_experiment_open(exp_path, NULL, &set, set != NULL, &e), 0);
	return e;
}

/* What is said when it is refused. */
static const char *refuses(const char *site, const char *text, const char *set)
{
	struct sl_experiment *e = NULL;

	write_file(site_path, site);
	write_file(exp_path, text);
	capture_begin();
	assert_int_not_equal(sl_experiment_open(exp_path, NULL, &set, set != NULL, &e), 0);
	return capture_end();
}

static void says(const char *said, const char *words)
{
	if (!strstr(said, words))
		fail_msg("'%s' is not in: %s", words, said);
}

static void the_stronger_one_decides(void **state)
{
	static const char site[] = "defaults: {ring: {slots: 16}}\n";
	static const struct {
		const char *site, *text, *set;
		uint32_t slots;
	} cases[] = {
		{"{}\n", PLAIN, NULL, 32},
		{site, PLAIN, NULL, 16},
		{site, PLAIN "ring: {slots: 20}\n", NULL, 20},
		{site, PLAIN "ring: {slots: 20}\n", "ring.slots=24", 24},
		{site, PLAIN, "ring.slots=24", 24},
		{site, PLAIN "ring: {late_frames: 2}\n", NULL, 16},
		{site, PLAIN "ring:\n", NULL, 16},
		{"locked: {ring: {slots: 12}}\n", PLAIN, NULL, 12},
		{"locked: {ring: {slots: 12}}\n", PLAIN "ring: {slots: 12}\n", NULL, 12},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_experiment *e = opens(cases[i].site, cases[i].text, cases[i].set);

		assert_int_equal(e->ring.slots, cases[i].slots);
		sl_experiment_close(e);
	}
}

/* Of the program that starts this one as a child: a port, and no emulation. */
static void what_the_parent_program_sets_is_not_locked(void **state)
{
	static const char *const wrong[] = {"ring.slots=5",
					    "control.token=5",
					    "emulate=local",
					    "control.port=",
					    "port=5",
					    "control.port=x5",
					    "control.port=5\nlink.kind=shm"};
	const char *said;
	struct sl_experiment *e;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(sl_experiment_set_own(wrong[i]), -EINVAL);
	said = refuses("locked: {control: {port: 4711}}\n", PLAIN, "control.port=4712");
	says(said, "is locked to '4711'");
	said = refuses("locked: {control: {port: 4711}}\n", PLAIN, "!control.port=4712");
	says(said, "a key does not begin with '!'");
	assert_int_equal(sl_experiment_set_own("emulate=none\ncontrol.port=4712"), 0);
	e = opens("locked: {control: {port: 4711}, emulate: local}\n", PLAIN, NULL);
	assert_int_equal(e->control.port, 4712);
	assert_false(e->emulate_local);
	sl_experiment_close(e);
	assert_int_equal(sl_experiment_set_own(""), 0);
}

static void no_message_quotes_a_token(void **state)
{
	static const char site[] = "locked: {control: {token: OF_THE_SITE}}\n";
	const char *said = refuses(site, PLAIN "control: {token: OF_THE_FILE}\n", NULL);

	says(said, "control.token: is locked by");
	assert_null(strstr(said, "OF_THE"));
	said = refuses(site, PLAIN, "control.token=OF_THE_USER");
	assert_null(strstr(said, "OF_THE"));
	said = refuses("{}\n", PLAIN "control: {port: 1}\n", "control={token: OF_THE_USER}");
	says(said, "--set control: that is a section");
	assert_null(strstr(said, "OF_THE"));
	said = refuses("{}\n", PLAIN, "control={token: OF_THE_USER}");
	assert_null(strstr(said, "OF_THE"));
	said = refuses("{}\n", PLAIN, "control.token: OF_THE_USER");
	assert_null(strstr(said, "OF_THE"));
	said = refuses("{}\n", PLAIN "control: {token: [OF_THE_FILE]}\n", NULL);
	assert_null(strstr(said, "OF_THE"));
}

/* Layers know secrets by this name (sl_node_is_secret). */
static void every_secret_option_is_called_token(void **state)
{
	for (const struct sl_plain_section *s = sl_plain_sections; s->name; s++)
		for (const struct sl_option *o = s->options; o && o->name; o++)
			if (o->type == SL_OPTION_SECRET)
				assert_string_equal(o->name, "token");
}

static void the_named_file_is_the_only_one(void **state)
{
	struct sl_transfer_names names;
	struct sl_experiment *e;
	const char *said;

	write_file(exp_path, PLAIN);
	capture_begin();
	assert_int_equal(sl_experiment_open(exp_path, NULL, NULL, 0, &e), -ENOENT);
	said = capture_end();
	says(said, "site file");
	says(said, "site.yaml: cannot open");
	write_file(site_path, "defaults: {ring: {slots: 16}, transfers: {a: {}, b: {}}}\n");
	assert_int_equal(sl_experiment_transfers(exp_path, NULL, 0, &names), 0);
	assert_int_equal(names.n, 2);
	for (int i = 0; i < 2; i++) {
		setenv("SLUICE_SITE", i ? "none" : "", 1);
		assert_int_equal(sl_experiment_open(exp_path, NULL, NULL, 0, &e), 0);
		assert_int_equal(e->ring.slots, 32);
		sl_experiment_close(e);
	}
	setenv("SLUICE_SITE", site_path, 1);
}

static void the_users_own_is_found(void **state)
{
	static const char *const names[] = {"XDG_CONFIG_HOME", "HOME"};
	char *before[2], inner[160], below[192], path[256];
	struct sl_experiment *e;

	if (access(SL_SITE_SYSTEM, F_OK) == 0) {
		printf("# skip: this host has a site file of its own\n");
		skip();
	}
	write_file(exp_path, PLAIN);
	for (int i = 0; i < 2; i++) {
		before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
		unsetenv(names[i]);
	}
	unsetenv("SLUICE_SITE");
	for (int i = 0; i < 2; i++) {
		snprintf(inner, sizeof(inner), "%s%s", folder, i ? "/.config" : "/xdg");
		snprintf(below, sizeof(below), "%s/sluice", inner);
		snprintf(path, sizeof(path), "%s/site.yaml", below);
		setenv(names[i], i ? folder : inner, 1);
		mkdir(inner, 0700);
		mkdir(below, 0700);
		write_file(path, "defaults: {ring: {slots: 16}}\n");
		assert_int_equal(sl_experiment_open(exp_path, NULL, NULL, 0, &e), 0);
		assert_int_equal(e->ring.slots, 16);
		sl_experiment_close(e);
		unlink(path);
		/* None there: as if there were no such thing. */
		assert_int_equal(sl_experiment_open(exp_path, NULL, NULL, 0, &e), 0);
		assert_int_equal(e->ring.slots, 32);
		sl_experiment_close(e);
		rmdir(below);
		rmdir(inner);
		unsetenv(names[i]);
	}
	for (int i = 0; i < 2; i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		free(before[i]);
	}
	setenv("SLUICE_SITE", site_path, 1);
}

static void locked_keys_name_both_places(void **state)
{
	static const char site[] = "locked:\n  link:\n    kind: udp\n  ring: {slots: 16}\n";
	const char *said;

	said = refuses(site, PLAIN "link: {kind: shm}\nring: {slots: 8}\n", NULL);
	says(said, "exp.yaml:3: link.kind: is locked to 'udp' by ");
	says(said, "site.yaml:3;");
	says(said, "exp.yaml:4: ring.slots: is locked to '16' by ");
	says(refuses(site, PLAIN, "link.kind=shm"), "--set link.kind: is locked to 'udp'");
	/* What --set puts right was wrong in the file. */
	says(refuses(site, PLAIN "link: {kind: shm}\n", "link.kind=udp"), "exp.yaml:3: link.kind");
	/* A transfer is no way around it. */
	says(refuses(site, PLAIN "transfers:\n  a: {link: {kind: shm}}\n", NULL),
	     "exp.yaml:4: transfers.a.link.kind: is locked");
	says(refuses(site, PLAIN "transfers:\n  a: {}\n", "transfers.a.link.kind=shm"),
	     "--set transfers.a.link.kind: is locked");
	/* Nor is a former name. */
	says(refuses("locked: {feedback: {port: 5}}\n", PLAIN "answers: {port: 6}\n", NULL),
	     "answers.port: is locked to '5'");
	says(refuses("locked: {feedback: {port: 5}}\n", PLAIN, "answers.port=6"),
	     "answers.port: is locked to '5'");
}

static void defaults_are_for_the_kind_that_has_them(void **state)
{
	static const char udp[] = "defaults: {link: {kind: udp, receive_buffer: 64Ki}}\n";
	static const char any[] = "defaults: {link: {receive_buffer: 64Ki}, detector: "
				  "{photon_energy_keV: 9, rows: 64}}\n";
	struct sl_experiment *e;

	e = opens(udp, PLAIN "link: {kind: shm}\n", NULL);
	assert_string_equal(e->link->name, "shm");
	assert_null(strstr(e->text, "receive_buffer"));
	sl_experiment_close(e);
	e = opens(udp, PLAIN, "link.kind=shm");
	assert_null(strstr(e->text, "receive_buffer"));
	sl_experiment_close(e);
	e = opens(udp, PLAIN, NULL);
	assert_non_null(strstr(e->text, "receive_buffer: 64Ki"));
	sl_experiment_close(e);
	e = opens(any, PLAIN "link: {kind: shm}\n", NULL);
	assert_null(strstr(e->text, "receive_buffer"));
	assert_null(strstr(e->text, "photon_energy_keV"));
	assert_non_null(strstr(e->text, "rows: 64"));
	sl_experiment_close(e);
	e = opens("defaults: {detector: {kind: jungfrau, photon_energy_keV: 9}}\n", PLAIN, NULL);
	assert_string_equal(e->generator->name, "pattern");
	sl_experiment_close(e);
	/* What the experiment itself says of another detector stays a mistake. */
	says(refuses(any, "detector: {kind: pattern, photon_energy_keV: 5}\n" NULL_SINK, NULL),
	     "exp.yaml:1: detector.photon_energy_keV: unknown key");
}

static void add_ons_in_lists_get_theirs(void **state)
{
	static const char site[] =
		"defaults:\n  sinks:\n    verify: {max_reports: 7}\n  stages: [copy]\n"
		"locked:\n  sinks:\n    'null': {}\n    nexus: {instrument: BL1}\n";
	struct sl_experiment *e;

	e = opens(site, PATTERN "sinks: [verify]\n", NULL);
	assert_non_null(strstr(e->text, "max_reports: 7"));
	assert_int_equal(e->stages, 1);
	sl_experiment_close(e);
	e = opens(site, PATTERN "sinks: [verify: {max_reports: 2}]\nstages: []\n", NULL);
	assert_non_null(strstr(e->text, "max_reports: 2"));
	assert_int_equal(e->stages, 0);
	sl_experiment_close(e);
	e = opens(site, PLAIN, NULL);
	sl_experiment_close(e);
	says(refuses(site, PATTERN "sinks: [nexus: {path: a.nxs, instrument: BL2}]\n", NULL),
	     "sinks[0].nexus.instrument: is locked to 'BL1'");
	/* A map of options is no list of sinks. */
	says(refuses(site, PATTERN, NULL), "no sinks");
}

static void transfers_are_taken_whole(void **state)
{
	static const char site[] = "defaults: {transfers: {a: {every: 2}, b: {}}}\n";
	struct sl_transfer_names names;

	write_file(site_path, site);
	write_file(exp_path, PLAIN "transfers: {c: {}}\n");
	assert_int_equal(sl_experiment_transfers(exp_path, NULL, 0, &names), 0);
	assert_int_equal(names.n, 1);
	assert_string_equal(names.name[0], "c");
	write_file(exp_path, PLAIN "transfers:\n");
	assert_int_equal(sl_experiment_transfers(exp_path, NULL, 0, &names), 0);
	assert_int_equal(names.n, 2);
}

static void bad_site_files_are_refused(void **state)
{
	static const struct {
		const char *site, *says;
	} cases[] = {
		{"default: {}\n", "site.yaml:1: default: unknown key; did you mean 'defaults'"},
		{"defaults: [1]\n", "site.yaml:1: defaults: takes a map"},
		{"defaults:\n  rign: {}\n", "site.yaml:2: defaults.rign: unknown key; did you"},
		{"defaults: {ring: {slot: 4}}\n", "defaults.ring.slot: unknown key; did you mean"},
		{"locked: {ring: {slots: 2}}\n", "locked.ring.slots: 2 is out of range"},
		{"locked: {ring: {slots: }}\n", "locked.ring.slots: has no value"},
		{"locked: {transfers: {a: {}}}\n", "transfers cannot be locked"},
		{"defaults: {link: {recv_buffer: 1}}\n", "defaults.link.recv_buffer: unknown key"},
		{"defaults: {detector: {energy: 1}}\n", "defaults.detector.energy: unknown key"},
		{"defaults: {detector: {kind: pattern, ice: 1}}\n",
		 "defaults.detector.ice: unknown"},
		{"defaults: {unit: {kind: cp}}\n", "no unit is called 'cp'"},
		{"defaults: {stages: {polish: {}}}\n", "no stage is called 'polish'"},
		{"defaults: {sinks: {verify: {x: 1}}}\n", "defaults.sinks.verify.x: unknown key"},
		{"defaults: {sinks: [drain]}\n", "no sink is called 'drain'"},
		{"defaults: {answers: {port: 1}}\n", "defaults.answers: unknown key"},
		{"defaults: {\n", "site.yaml:2:1:"},
		{"", "is empty"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		says(refuses(cases[i].site, PLAIN, NULL), cases[i].says);
}

static void all_independent_mistakes_are_told(void **state)
{
	const char *said = refuses("{}\n",
				   "detector: {kind: pattern, frames: x}\n"
				   "ring: {slots: 8, late_frames: 7, x: 5}\n"
				   "threads: {cpus: a, source_cpus: b}\n"
				   "feroce: {enable: true}\n"
				   "frontend: {drop: 1, burst: 1, fault_modules: 9-3}\n"
				   "emulate: local\n",
				   "no value");

	says(said, "--set no: not of the form");
	says(said, ":1: detector.frames:");
	says(said, "'a' is no list of cpus");
	says(said, "'b' is no list of cpus");
	says(said, "its devices speak RC only");
	says(said, "the emulator is no FEROCE device");
	says(said, "no sinks");
	/* What may follow from another mistake is not. */
	assert_null(strstr(said, "late_frames"));
	said = refuses("{}\n",
		       PLAIN "ring: {slots: 8, late_frames: 7, x: 5}\n"
			     "frontend: {drop: 1, burst: 1, fault_modules: 9-3}\n",
		       NULL);
	says(said, "late_frames");
	says(said, "line_pitch must say");
	said = refuses("{}\n",
		       PLAIN "frontend: {drop: 1, burst: 1, fault_modules: 9-3}\n"
			     "link: {kind: shm, service: rc, operation: send, pollers: 8}\n",
		       NULL);
	says(said, "has no operation send");
	says(said, "has work for 1 thread at most");
	said = refuses("{}\n", PLAIN "frontend: {drop: 1, burst: 1, fault_modules: 9-3}\n", NULL);
	says(said, "fault_modules");
	says(said, "more than all packets");
}

/* The resolved text is the same experiment, with nothing left to default. */
static void the_resolved_text_is_the_experiment(void **state)
{
	static const char site[] = "defaults: {link: {pmtu: 1024}, control: {token: secret}}\n"
				   "locked: {ring: {slots: 16}}\n";
	static const char text[] =
		"detector: {kind: jungfrau, frames: 5}\nstages: [correct, veto: {threshold: 3}]\n"
		"transfers: {a: {every: 2, control: {token: other}}, b: {}}\nsinks: [verify]\n";
	struct sl_experiment *e, *again;
	char *with, *resolved, *second;

	write_file(site_path, site);
	write_file(exp_path, text);
	assert_int_equal(sl_experiment_open(exp_path, "b", NULL, 0, &e), 0);
	assert_null(strstr(e->text, "secret"));
	assert_null(strstr(e->text, "other"));
	with = sl_experiment_resolved(e, true);
	assert_null(strstr(with, "secret"));
	says(with, "  pmtu: 1024 ");
	says(with, "site.yaml:1\n");
	says(with, "site.yaml:2 (locked)\n");
	says(with, "threshold: 3 ");
	says(with, "port: 47911                            # default\n");
	resolved = sl_experiment_resolved(e, false);
	write_file(exp_path, with);
	write_file(site_path, "{}\n");
	assert_int_equal(sl_experiment_open(exp_path, NULL, NULL, 0, &again), 0);
	assert_true(sl_experiment_digest(e) == sl_experiment_digest(again));
	second = sl_experiment_resolved(again, false);
	assert_string_equal(second, resolved);
	free(with);
	free(resolved);
	free(second);
	sl_experiment_close(e);
	sl_experiment_close(again);
}

/* As /etc/sluice/site.yaml must be. */
static void only_root_may_write_what_all_users_read(void **state)
{
	const char *said;
	int fd;

	write_file(site_path, "{}\n");
	fd = open(site_path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	capture_begin();
	if (geteuid() == 0) {
		assert_int_equal(chown(site_path, 0, 0), 0);
		assert_int_equal(sl_site_trust(fd, site_path), 0);
		assert_int_equal(chmod(site_path, 0646), 0);
	}
	assert_int_equal(sl_site_trust(fd, site_path), -EPERM);
	said = capture_end();
	says(said, geteuid() ? "belongs to user" : "others than root can write it");
	if (geteuid() == 0) {
		assert_int_equal(chmod(site_path, 0644), 0);
		assert_int_equal(chmod(folder, 0777), 0);
		capture_begin();
		assert_int_equal(sl_site_trust(fd, site_path), -EPERM);
		says(capture_end(), "others than root can write it");
		assert_int_equal(chmod(folder, 0700), 0);
		assert_int_equal(chown(site_path, 1, 0), 0);
		capture_begin();
		assert_int_equal(sl_site_trust(fd, site_path), -EPERM);
		says(capture_end(), "belongs to user 1");
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(the_stronger_one_decides),
		CASE(what_the_parent_program_sets_is_not_locked),
		CASE(no_message_quotes_a_token),
		CASE(every_secret_option_is_called_token),
		CASE(the_named_file_is_the_only_one),
		CASE(the_users_own_is_found),
		CASE(locked_keys_name_both_places),
		CASE(defaults_are_for_the_kind_that_has_them),
		CASE(add_ons_in_lists_get_theirs),
		CASE(transfers_are_taken_whole),
		CASE(bad_site_files_are_refused),
		CASE(all_independent_mistakes_are_told),
		CASE(the_resolved_text_is_the_experiment),
		CASE(only_root_may_write_what_all_users_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
