/* experiment_test.c - a good file becomes add-ons with their options; every mistake in a file is
 * told with its place, before anything is opened. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/idle.h"
#include "base/log.h"
#include "experiment/experiment.h"
#include "lib/capture.h"

static char file[64];	 /* the name of the last file */
static const char *said; /* what was logged about it */

/* Open this text as an experiment file. */
static int open_set(const char *text, const char *const *set, size_t sets, struct sl_experiment **e)
{
	int fd = memfd_create("experiment", MFD_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	capture_begin();
	err = sl_experiment_open(file, NULL, set, sets, e);
	said = capture_end();
	close(fd);
	return err;
}

static struct sl_experiment *good(const char *text)
{
	struct sl_experiment *e = NULL;

	if (open_set(text, NULL, 0, &e))
		fail_msg("refused: %s", said);
	assert_string_equal(said, "");
	return e;
}

/* One of the messages names this line of the file and says these words. */
static void expect_said(unsigned line, const char *words)
{
	char place[80];

	snprintf(place, sizeof(place), "text:%u: ", line); /* it came without a file */
	for (const char *at = said; (at = strstr(at, place)); at++) {
		const char *hit = strstr(at, words);

		if (hit && hit < strchr(at, '\n'))
			return;
	}
	fail_msg("no '%s' with '%s' in: %s", place, words, said);
}

/* The text is refused, and the message names file, line and reason. */
static void bad(const char *text, unsigned line, const char *words)
{
	struct sl_experiment *untouched = (struct sl_experiment *)file, *e = untouched;

	if (open_set(text, NULL, 0, &e) != -EINVAL)
		fail_msg("not refused: %s", text);
	assert_ptr_equal(e, untouched);
	expect_said(line, words);
}

static const char minimal[] = "detector: {kind: pattern}\n"
			      "sinks: ['null']\n";

static const char full[] = "detector:\n"
			   "  kind: jungfrau\n"
			   "  modules: 4\n"
			   "  frames: 2k\n"
			   "  dark_frames: 128\n"
			   "  frame_rate_Hz: 1000\n"
			   "  seed: 7\n"
			   "  hit_fraction: 0.5\n"
			   "link: {kind: shm, pmtu: 1024, message: module, crc: true}\n"
			   "ring: {slots: 64, late_frames: 9, late_timeout_ms: 50, poison: true}\n"
			   "unit: {kind: cpu, batch: 16, workers: 3}\n"
			   "stages:\n"
			   "  - correct: {output: kev_f32}\n"
			   "  - veto:\n"
			   "      threshold: 12\n"
			   "sinks:\n"
			   "  - 'null'\n"
			   "  - verify: {max_reports: 2}\n"
			   "frontend: {drop: 0.25, fault_seed: 3, fault_log: faults.txt}\n"
			   "control: {address: 127.0.0.2, port: 1234, token: s, wait_s: 0.5}\n"
			   "emulate: local\n";

static void a_missing_file_is_an_error(void **state)
{
	struct sl_experiment *e;
	const char *text;

	capture_begin();
	assert_int_equal(sl_experiment_open("no-such-file.yaml", NULL, NULL, 0, &e), -ENOENT);
	text = capture_end();
	assert_non_null(strstr(text, "no-such-file.yaml"));
}

static void everything_in_a_file_arrives(void **state)
{
	struct sl_experiment *e = good(full);

	assert_string_equal(e->detector->name, "jungfrau");
	assert_int_equal(e->run.modules, 4);
	assert_int_equal(e->run.frames, 2000);
	assert_int_equal(e->run.dark_frames, 128);
	assert_true(e->run.frame_rate_Hz == 1000);
	assert_int_equal(e->run.seed, 7);
	assert_string_equal(e->link->name, "shm");
	assert_int_equal(sl_experiment_pmtu(e), 1024);
	assert_int_equal(sl_experiment_message(e), SL_MESSAGE_MODULE);
	assert_true(e->link_options.crc);
	assert_int_equal(e->ring.slots, 64);
	assert_int_equal(e->ring.late_frames, 9);
	assert_int_equal(e->ring.late_timeout_ms, 50);
	assert_true(e->ring.poison);
	assert_string_equal(e->unit->name, "cpu");
	assert_int_equal(e->unit_options.batch, 16);
	assert_true(e->faults.drop == 0.25);
	assert_int_equal(e->faults.fault_seed, 3);
	assert_string_equal(e->faults.fault_log, "faults.txt");
	assert_string_equal(e->control.address, "127.0.0.2");
	assert_int_equal(e->control.port, 1234);
	assert_string_equal(e->control.token, "s");
	assert_true(e->control.wait_s == 0.5);
	assert_true(e->emulate_local);
	sl_experiment_close(e);
}

/* An option of an add-on, as one would write it. */
static const char *printed(const struct sl_option *options, const void *base, const char *name)
{
	static char text[128];

	sl_option_print(sl_option_find(options, name), base, text, sizeof(text));
	return text;
}

static void stages_and_sinks_come_in_order_with_their_own_options(void **state)
{
	struct sl_experiment *e = good(full);

	assert_int_equal(e->stages, 2);
	assert_string_equal(e->stage[0]->name, "correct");
	assert_string_equal(printed(e->stage[0]->options, e->stage_state[0], "output"), "kev_f32");
	assert_string_equal(e->stage[1]->name, "veto");
	assert_string_equal(printed(e->stage[1]->options, e->stage_state[1], "threshold"), "12");
	assert_string_equal(printed(e->stage[1]->options, e->stage_state[1], "min_pixels"), "20");
	assert_int_equal(e->sinks, 2);
	assert_string_equal(e->sink[0]->name, "null");
	assert_string_equal(e->sink[1]->name, "verify");
	assert_string_equal(printed(e->sink[1]->options, e->sink_state[1], "max_reports"), "2");
	assert_string_equal(printed(e->unit->options, e->unit_state, "workers"), "3");
	assert_string_equal(printed(e->detector->options, e->detector_state, "hit_fraction"),
			    "0.5");
	sl_experiment_close(e);
}

static void the_rest_has_defaults(void **state)
{
	struct sl_experiment *e = good(minimal);

	assert_int_equal(e->run.modules, 1);
	assert_int_equal(e->run.frames, 1000);
	assert_string_equal(e->link->name, "udp");
	assert_string_equal(printed(e->link->options, e->link_state, "port"), "4791");
	assert_int_equal(sl_experiment_pmtu(e), 4096);
	assert_int_equal(sl_experiment_message(e), SL_MESSAGE_PACKET);
	assert_false(e->link_options.crc);
	assert_int_equal(e->ring.slots, 32);
	assert_int_equal(e->ring.late_frames, 8);
	assert_string_equal(e->unit->name, "cpu");
	assert_int_equal(e->unit_options.batch, 8);
	assert_int_equal(e->stages, 0);
	assert_true(e->faults.drop == 0);
	assert_string_equal(e->control.address, "127.0.0.1");
	assert_int_equal(e->control.port, 47910);
	assert_string_equal(e->control.token, "");
	assert_false(e->emulate_local);
	sl_experiment_close(e);
}

/* The struct holds what the section's table says. */
static void expect_defaults(const char *section, const void *base, size_t bytes)
{
	const struct sl_section *s = sl_sections;
	_Alignas(16) uint8_t fresh[1024] = {0};

	while (strcmp(s->name, section) != 0)
		s++;
	assert_true(bytes <= sizeof(fresh));
	sl_options_defaults(s->options, fresh);
	assert_memory_equal(base, fresh, bytes);
}

static void every_default_is_the_tables(void **state)
{
	struct sl_experiment *e = good(minimal);

	expect_defaults("detector", &e->run, sizeof(e->run));
	expect_defaults("link", &e->link_options, sizeof(e->link_options));
	expect_defaults("ring", &e->ring, sizeof(e->ring));
	expect_defaults("unit", &e->unit_options, sizeof(e->unit_options));
	expect_defaults("control", &e->control, sizeof(e->control));
	expect_defaults("frontend", &e->faults, sizeof(e->faults));
	expect_defaults("feedback", &e->feedback, sizeof(e->feedback));
	sl_experiment_close(e);
}

static void every_pmtu_is_its_own(void **state)
{
	for (unsigned pmtu = 256; pmtu <= 4096; pmtu *= 2) {
		char text[128];
		struct sl_experiment *e;

		snprintf(text, sizeof(text), "%slink: {pmtu: %u}\n", minimal, pmtu);
		e = good(text);
		assert_int_equal(sl_experiment_pmtu(e), pmtu);
		sl_experiment_close(e);
	}
}

static void a_section_without_a_value_has_defaults(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern}\n"
				       "link:\n"
				       "ring: ~\n"
				       "unit: null\n"
				       "frontend:\n"
				       "control:\n"
				       "stages:\n"
				       "sinks:\n"
				       "  - 'null':\n"
				       "  - verify: ~\n");

	assert_string_equal(e->link->name, "udp");
	assert_int_equal(e->ring.slots, 32);
	assert_int_equal(e->unit_options.batch, 8);
	assert_int_equal(e->control.port, 47910);
	assert_int_equal(e->stages, 0);
	assert_int_equal(e->sinks, 2);
	assert_string_equal(printed(e->sink[1]->options, e->sink_state[1], "max_reports"), "5");
	sl_experiment_close(e);
}

static void options_of_the_other_links_may_stay_in_the_file(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern}\nsinks: ['null']\n"
				       "link: {kind: udp, name: for-shm, port: 5000}\n");

	assert_string_equal(printed(e->link->options, e->link_state, "port"), "5000");
	sl_experiment_close(e);
}

static void the_text_is_kept_for_the_file(void **state)
{
	const char *const set[] = {"detector.frames=77"};
	struct sl_experiment *e;

	assert_int_equal(open_set(minimal, set, 1, &e), 0);
	assert_non_null(strstr(e->text, "pattern"));
	assert_non_null(strstr(e->text, "frames: 77"));
	sl_experiment_close(e);
}

/* ---- mistakes ---- */

static void unknown_keys_are_refused(void **state)
{
	bad("detector: {kind: pattern}\nsinks: ['null']\nrign: {slots: 8}\n", 3,
	    "did you mean 'ring'");
	bad("detector:\n  kind: pattern\n  frmaes: 5\nsinks: ['null']\n", 3, "detector.frmaes");
	bad("detector: {kind: pattern}\nsinks: ['null']\nlink: {kind: udp, nome: x}\n", 3,
	    "link.nome");
	bad("detector: {kind: pattern, hit_fraction: 1}\nsinks: ['null']\n", 1,
	    "detector.hit_fraction");
	bad("detector: {kind: pattern}\nsinks: ['null']\nring: {kind: big}\n", 3, "ring.kind");
	bad("detector: {kind: pattern}\nsinks: ['null']\nunit: {threads: 1}\n", 3, "unit.threads");
	bad("detector: {kind: pattern}\nsinks: ['null']\nfrontend: {drops: 1}\n", 3,
	    "did you mean 'drop'");
	bad("detector: {kind: pattern}\nsinks: ['null']\ncontrol: {adress: x}\n", 3,
	    "did you mean 'address'");
	bad("detector: {kind: pattern}\nstages:\n  - veto:\n      treshold: 1\nsinks: ['null']\n",
	    4, "did you mean 'threshold'");
	bad("detector: {kind: pattern}\nsinks:\n  - 'null': {path: x}\n", 3, "path");
}

static void add_ons_that_do_not_exist_are_refused_with_those_that_do(void **state)
{
	bad("detector:\n  kind: pilatus\nsinks: ['null']\n", 2,
	    "no detector is called 'pilatus'; there are: ");
	bad("detector: {kind: pattern}\nlink: {kind: pigeon}\nsinks: ['null']\n", 2,
	    "no link is called 'pigeon'; there are: udp");
	bad("detector: {kind: pattern}\nunit: {kind: abacus}\nsinks: ['null']\n", 2,
	    "no unit is called 'abacus'; there are: cpu");
	bad("detector: {kind: pattern}\nstages:\n  - copy\n  - polish\nsinks: ['null']\n", 4,
	    "no stage is called 'polish'; there are: copy");
	bad("detector: {kind: pattern}\nsinks:\n  - drain: {}\n", 3, "no sink is called 'drain'");
}

static void a_detector_is_needed_and_its_kind(void **state)
{
	bad("sinks: ['null']\n", 1, "detector needs a kind");
	bad("detector:\nsinks: ['null']\n", 1, "detector needs a kind");
	bad("sinks: ['null']\ndetector: {modules: 1}\n", 2, "detector needs a kind");
	bad("detector:\n  kind:\nsinks: ['null']\n", 2, "no detector is called ''");
}

static void a_list_is_no_map_and_a_map_no_list(void **state)
{
	bad("sinks: ['null']\ndetector: [pattern]\n", 2, "takes a map");
	bad("sinks: ['null']\ndetector: pattern\n", 2, "takes a map");
	bad("detector: {kind: pattern}\nsinks: ['null']\nlink: udp\n", 3, "takes a map");
	bad("detector: {kind: pattern}\nsinks: ['null']\nunit: [cpu]\n", 3, "takes a map");
	bad("detector: {kind: pattern}\nsinks: ['null']\nring: [8]\n", 3, "takes a map");
	bad("detector: {kind: pattern}\nsinks: ['null']\ncontrol: here\n", 3, "takes a map");
	bad("detector: {kind: pattern}\nsinks: ['null']\nfrontend: [0.1]\n", 3, "takes a map");
	bad("detector: {kind: pattern}\nsinks: {'null': {}}\n", 2, "takes a list");
	bad("detector: {kind: pattern}\nsinks: ['null']\nstages: veto\n", 3, "takes a list");
	bad("detector: {kind: pattern}\nsinks:\n  - verify: [5]\n", 3, "takes a map of options");
	bad("detector: {kind: pattern}\nsinks:\n  - verify: fast\n", 3, "takes a map of options");
	bad("detector: {kind: pattern}\nsinks:\n  - verify: ''\n", 3, "takes a map of options");
}

static void a_kind_is_one_name(void **state)
{
	bad("detector: {kind: pattern}\nsinks: ['null']\nlink:\n  kind: [udp, shm]\n", 4,
	    "link.kind: takes one name");
	bad("detector: {kind: {pattern: {}}}\nsinks: ['null']\n", 1,
	    "detector.kind: takes one name");
}

static void a_list_item_is_one_name(void **state)
{
	bad("detector: {kind: pattern}\nsinks: ['null']\n"
	    "stages:\n  - correct: {}\n    veto: {}\n",
	    4, "takes one name");
	bad("detector: {kind: pattern}\nsinks: ['null']\nstages: [[copy]]\n", 3, "takes one name");
	bad("detector: {kind: pattern}\nsinks: [{}]\n", 2, "takes one name");
}

static void values_out_of_range_are_refused(void **state)
{
	bad("detector: {kind: pattern, modules: 65}\nsinks: ['null']\n", 1, "1..64");
	bad("detector: {kind: pattern}\nsinks: ['null']\nring: {slots: 3}\n", 3, "4..1024");
	bad("detector: {kind: pattern}\nsinks: ['null']\nlink: {pmtu: 1500}\n", 3, "link.pmtu");
	bad("detector: {kind: pattern}\nsinks: ['null']\nunit: {batch: 0}\n", 3, "1..256");
	bad("detector: {kind: pattern}\nsinks: ['null']\ncontrol: {port: 65536}\n", 3, "0..65535");
	bad("detector: {kind: pattern}\nsinks: ['null']\nfrontend: {drop: 1.5}\n", 3, "0..1");
	bad("detector: {kind: pattern}\nstages: [veto: {threshold: 0}]\nsinks: ['null']\n", 2,
	    "threshold");
}

static void a_late_module_must_not_stop_the_ring(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern}\nsinks: ['null']\n"
				       "ring: {slots: 10, late_frames: 8}\n");

	sl_experiment_close(e);
	bad("detector: {kind: pattern}\nsinks: ['null']\nring: {slots: 10, late_frames: 9}\n", 3,
	    "late_frames (9) must be at most slots - 2 (8)");
	bad("detector: {kind: pattern}\nsinks: ['null']\nring: {slots: 4}\n", 3, "late_frames (8)");
}

static void a_pool_that_fits_the_ring_too_well_is_refused(void **state)
{
	bad("detector: {kind: jungfrau}\nsinks: ['null']\nring: {slots: 62}\n", 3,
	    "detector.pool (31) and ring.slots (62) have the factor 31 in common");
	bad("detector: {kind: jungfrau, pool: 30}\nsinks: ['null']\nring: {slots: 32}\n", 3,
	    "have the factor 2 in common");
	sl_experiment_close(good("detector: {kind: jungfrau, pool: 31}\nsinks: ['null']\n"));
}

static void the_token_is_not_stored_with_the_run(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern}\nsinks: ['null']\n"
				       "control: {token: open sesame}\n");

	assert_string_equal(e->control.token, "open sesame");
	assert_null(strstr(e->text, "sesame"));
	sl_experiment_close(e);
}

/* A file with this text, which must be removed; its name in `path`. */
static void make_file(char *path, const char *text, mode_t mode)
{
	int fd;

	strcpy(path, "/tmp/sluice-token-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

#define SHORT "detector: {kind: pattern}\nsinks: ['null']\n"

static void the_token_may_lie_in_a_file_of_its_own(void **state)
{
	char path[40], text[200];
	const char *set;
	struct sl_experiment *e;
	char *resolved;

	make_file(path, "open sesame\n", 0600);
	snprintf(text, sizeof(text), SHORT "control: {token_file: %s}\n", path);
	e = good(text);
	assert_string_equal(e->control.token, "open sesame");
	resolved = sl_experiment_resolved(e, true);
	assert_null(strstr(resolved, "sesame"));
	assert_non_null(strstr(resolved, path));
	free(resolved);
	sl_experiment_close(e);

	snprintf(text, sizeof(text), "control.token_file=%s", path);
	set = text;
	assert_int_equal(open_set(SHORT, &set, 1, &e), 0);
	assert_string_equal(e->control.token, "open sesame");
	sl_experiment_close(e);

	snprintf(text, sizeof(text), SHORT "control: {token_file: %s, token: other}\n", path);
	bad(text, 3, "leave one of them out");
	assert_int_equal(chmod(path, 0644), 0);
	snprintf(text, sizeof(text), SHORT "control: {token_file: %s}\n", path);
	bad(text, 3, "chmod 600");
	unlink(path);
	bad(text, 3, "cannot be opened");
}

static void a_token_on_the_command_line_is_refused_and_not_quoted(void **state)
{
	static const char *const sets[] = {"control.token=open sesame",
					   "transfers.a.control.token=open sesame"};
	static const char *const texts[] = {SHORT, SHORT "transfers: {a: {}}\n"};
	struct sl_experiment *e;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_set(texts[i], &sets[i], 1, &e), -EINVAL);
		assert_non_null(strstr(said, "control.token_file=FILE"));
		assert_null(strstr(said, "sesame"));
	}
}

static void a_token_that_is_too_long_is_not_quoted(void **state)
{
	char text[400] = SHORT "control: {token: ";

	memset(text + strlen(text), 'x', 130);
	strcat(text, "}\n");
	bad(text, 3, "text of at most 127 bytes");
	assert_null(strstr(said, "xxx"));
}

static void a_token_in_a_file_that_all_users_can_read_is_told(void **state)
{
	char path[40];
	struct sl_experiment *e;

	for (int i = 0; i < 2; i++) {
		make_file(path, SHORT "control: {token: open sesame}\n", i ? 0644 : 0640);
		capture_begin();
		assert_int_equal(sl_experiment_open(path, NULL, NULL, 0, &e), 0);
		said = capture_end();
		unlink(path);
		if (i)
			assert_non_null(strstr(said, "every user of this host can read"));
		else
			assert_string_equal(said, "");
		assert_null(strstr(said, "sesame"));
		sl_experiment_close(e);
	}
}

/* What a run stores can be run again; the placeholder is not taken for a token. */
static void a_token_that_was_not_stored_is_none(void **state)
{
	struct sl_experiment *e;

	assert_int_equal(open_set(SHORT "control: {token: \"(not stored)\"}\n", NULL, 0, &e), 0);
	assert_string_equal(e->control.token, "");
	expect_said(3, "was not stored with the run");
	sl_experiment_close(e);
}

static void frames_must_go_somewhere(void **state)
{
	bad("detector: {kind: pattern}\n", 1, "no sinks");
	bad("detector: {kind: pattern}\nsinks: []\n", 1, "no sinks");
}

static void emulate_is_local_or_none(void **state)
{
	struct sl_experiment *e =
		good("detector: {kind: pattern}\nsinks: ['null']\nemulate: none\n");

	assert_false(e->emulate_local);
	sl_experiment_close(e);
	bad("detector: {kind: pattern}\nsinks: ['null']\nemulate: maybe\n", 3, "takes local");
	bad("detector: {kind: pattern}\nsinks: ['null']\nemulate: [local]\n", 3, "takes local");
	bad("detector: {kind: pattern}\nsinks: ['null']\nemulate:\n", 3, "takes local");
}

static void too_many_stages_and_sinks_are_refused(void **state)
{
	char text[512] = "detector: {kind: pattern}\nsinks: ['null']\nstages: [copy";

	for (int i = 1; i < SL_EXPERIMENT_STAGES; i++)
		strcat(text, ", copy");
	strcat(text, "]\n");
	sl_experiment_close(good(text));
	strcpy(strrchr(text, ']'), ", copy]\n");
	bad(text, 3, "more than 15 stages");

	strcpy(text, "detector: {kind: pattern}\nsinks: ['null'");
	for (int i = 1; i < SL_EXPERIMENT_SINKS; i++)
		strcat(text, ", verify");
	strcat(text, "]\n");
	sl_experiment_close(good(text));
	strcpy(strrchr(text, ']'), ", verify]\n");
	bad(text, 2, "more than 8 sinks");
}

static void all_mistakes_are_told_at_once(void **state)
{
	bad("detector: {kind: pattern, modules: 0}\n"
	    "link: {kind: pigeon}\n"
	    "ring: {slots: many}\n"
	    "unit: {batch: 8, colour: red}\n"
	    "stages:\n"
	    "  - polish\n"
	    "  - veto: {threshold: 0}\n"
	    "sinks: [drain]\n"
	    "control: 5\n"
	    "emulate: maybe\n"
	    "extra: 1\n",
	    1, "detector.modules");
	expect_said(2, "pigeon");
	expect_said(3, "ring.slots");
	expect_said(4, "unit.colour");
	expect_said(6, "polish");
	expect_said(7, "threshold");
	expect_said(8, "drain");
	expect_said(9, "control");
	expect_said(10, "emulate");
	expect_said(11, "extra");
}

/* ---- overrides ---- */

static void overrides_win_over_the_file(void **state)
{
	const char *const set[] = {"detector.modules=3",       "link.kind=shm", "ring.slots=128",
				   "stages.veto.threshold=99", "emulate=none",	"control.port=0"};
	struct sl_experiment *e;

	assert_int_equal(open_set(full, set, 6, &e), 0);
	assert_int_equal(e->run.modules, 3);
	assert_int_equal(e->run.frames, 2000); /* the rest stays */
	assert_string_equal(e->link->name, "shm");
	assert_int_equal(e->ring.slots, 128);
	assert_string_equal(printed(e->stage[1]->options, e->stage_state[1], "threshold"), "99");
	assert_false(e->emulate_local);
	assert_int_equal(e->control.port, 0);
	sl_experiment_close(e);
}

static void overrides_make_sections_that_are_not_there(void **state)
{
	const char *const set[] = {"unit.batch=3"};
	struct sl_experiment *e;

	assert_int_equal(open_set(minimal, set, 1, &e), 0);
	assert_int_equal(e->unit_options.batch, 3);
	sl_experiment_close(e);
}

static void overrides_are_checked_like_the_file(void **state)
{
	static const char *const wrong[] = {"detector.modules=65", "detector.framse=5",
					    "link.kind=pigeon", "nothing", "ring.slots=4"};
	struct sl_experiment *e;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(open_set(minimal, &wrong[i], 1, &e), -EINVAL);
		assert_non_null(strstr(said, "--set"));
	}
}

/* ---- the digest ---- */

static uint64_t digest_with(const char *set)
{
	struct sl_experiment *e;
	uint64_t digest;

	assert_int_equal(open_set(full, &set, set ? 1 : 0, &e), 0);
	digest = sl_experiment_digest(e);
	sl_experiment_close(e);
	return digest;
}

static void the_digest_changes_with_the_detector_section(void **state)
{
	static const char *const changes[] = {"detector.modules=5",
					      "detector.frames=2001",
					      "detector.dark_frames=129",
					      "detector.seed=8",
					      "detector.frame_rate_Hz=1001",
					      "detector.hit_fraction=0.51",
					      "detector.noise_ADU=23.8",
					      "detector.photon_energy_keV=12.40001",
					      "detector.pool=29"};
	enum { N = sizeof(changes) / sizeof(*changes) };
	uint64_t digest[N];

	for (size_t i = 0; i < N; i++) { /* all differ from each other as well */
		digest[i] = digest_with(changes[i]);
		assert_int_not_equal(digest[i], digest_with(NULL));
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(digest[i], digest[j]);
	}
}

static void the_digest_changes_with_nothing_else(void **state)
{
	static const char *const changes[] = {"detector.pool=31", /* that is its default */
					      "link.kind=udp",	  "link.pmtu=256",
					      "ring.slots=65",	  "unit.workers=1",
					      "unit.batch=1",	  "stages.veto.threshold=1",
					      "frontend.drop=1",  "control.port=1",
					      "control.wait_s=1", "emulate=none"};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		assert_int_equal(digest_with(changes[i]), digest_with(NULL));
}

static void the_digest_does_not_depend_on_the_order_in_the_file(void **state)
{
	struct sl_experiment *a =
		good("detector: {kind: pattern, rows: 5, seed: 9}\nsinks: ['null']\n");
	struct sl_experiment *b =
		good("sinks: [verify]\ndetector: {seed: 0x9, rows: 5, kind: pattern}\n");

	assert_int_equal(sl_experiment_digest(a), sl_experiment_digest(b));
	sl_experiment_close(a);
	sl_experiment_close(b);
}

static void the_sections_have_tables_for_help(void **state)
{
	unsigned n = 0;

	for (const struct sl_section *s = sl_sections; s->name; s++, n++) {
		assert_non_null(s->doc);
		assert_non_null(s->options[0].name);
	}
	assert_int_equal(n, 18);
}

static void threads_are_placed_and_wait_as_told(void **state)
{
	struct sl_experiment *e = good(minimal);

	assert_true(e->threads.pin && e->threads.numa);
	assert_int_equal(e->threads.polling, SL_POLLING_ADAPTIVE);
	assert_string_equal(e->threads.cpus, "");
	sl_experiment_close(e);
	e = good("detector: {kind: pattern}\nsinks: ['null']\n"
		 "threads: {pin: false, numa: false, polling: cores, spin_us: 7, cpus: 2-5 8,\n"
		 "          source_cpus: '1,3'}\n");
	assert_false(e->threads.pin || e->threads.numa);
	assert_int_equal(e->threads.polling, SL_POLLING_CORES);
	assert_int_equal(e->threads.spin_us, 7);
	assert_string_equal(e->threads.cpus, "2-5 8");
	assert_string_equal(e->threads.source_cpus, "1,3");
	sl_experiment_close(e);
	e = good("detector: {kind: pattern}\nsinks: ['null']\nthreads: {polling: latency}\n");
	assert_int_equal(e->threads.polling, SL_POLLING_LATENCY);
	sl_experiment_close(e);
	bad("detector: {kind: pattern}\nsinks: ['null']\nthreads:\n  cpus: 5-2\n", 4,
	    "no list of cpus");
	bad("detector: {kind: pattern}\nsinks: ['null']\nthreads:\n  source_cpus: all\n", 4,
	    "no list of cpus");
	bad("detector: {kind: pattern}\nsinks: ['null']\nthreads: {polling: always}\n", 3,
	    "adaptive, latency or cores");
}

/* What needs more than one thread is refused, all of it at once. */
static void one_thread_for_all_has_no_second(void **state)
{
#define MINIMAL "detector: {kind: pattern}\nsinks: ['null']\n"
	struct sl_experiment *e = good(MINIMAL);

	assert_false(e->threads.together);
	sl_experiment_close(e);
	e = good(MINIMAL "threads: {together: true}\n");
	assert_true(e->threads.together);
	sl_experiment_close(e);
	e = good(MINIMAL "link: {pollers: 2}\nunit: {workers: 2}\nthreads: {together: false}\n");
	sl_experiment_close(e);
	bad(MINIMAL "threads: {together: true}\nlink: {pollers: 3}\n", 3, "link.pollers to 1");
	bad(MINIMAL "threads: {together: true}\nunit: {workers: 2}\n", 3, "unit.workers to 1");
	bad(MINIMAL "threads: {together: true}\nunit: {kind: cuda}\n", 3, "unit.kind to cpu");
	bad(MINIMAL "threads: {together: true}\nstages: [python]\n", 3, "stage 'python' waits");
#undef MINIMAL
}

struct named {
	char text[512];
};

static void name_file(void *arg, enum sl_file_use use, const char *path)
{
	struct named *named = arg;
	size_t used = strlen(named->text);

	snprintf(named->text + used, sizeof(named->text) - used, "%s%s ",
		 use == SL_FILE_WRITE ? ">" : "", path);
}

static void files_of_add_ons_are_named(void **state)
{
	struct sl_experiment *e =
		good("detector: {kind: replay, file: 'a.raw,b.raw', darks: c.raw,\n"
		     "           rows: 4, columns: 4, frames: 1}\n"
		     "stages: [{integrate: {flat: 'f.h5:/entry/flat'}}]\n"
		     "sinks: [{nexus: {path: x.nxs}}, 'null']\n");
	struct named named = {""};

	sl_experiment_files(e, name_file, &named);
	assert_string_equal(named.text, "a.raw b.raw c.raw  f.h5 >x.nxs ");
	sl_experiment_close(e);
}

static unsigned warnings;

static void count_warnings(void *arg, enum sl_log_level level, const char *line)
{
	warnings += level == SL_LOG_WARN && strstr(line, "is in no run folder");
}

static void outputs_begin_in_the_folder_of_a_run(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern, dark_frames: 9}\nstages: [copy]\n"
				       "sinks: [{nexus: {path: a/x.nxs, dataset: raw}},\n"
				       "        {nexus: {path: /abs.nxs, dataset: raw}}, 'null',\n"
				       "        {calibration: {path: c.h5, base: b.h5}}]\n");
	const struct sl_run_words words = {.run = 1};
	struct named named = {""};
	char *text, deep[1100];

	for (unsigned i = 0; i < 2; i++) {
		named.text[0] = 0;
		assert_int_equal(sl_experiment_place(e, i ? "/r/2" : "/r/1", &words), 0);
		sl_experiment_files(e, name_file, &named);
		assert_string_equal(named.text, i ? ">/r/2/a/x.nxs >/abs.nxs >/r/2/c.h5 "
						  : ">/r/1/a/x.nxs >/abs.nxs >/r/1/c.h5 ");
	}
	memset(deep, 'd', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	sl_log_set_target(&(struct sl_log_target){count_warnings, NULL});
	assert_int_equal(sl_experiment_place(e, deep, &words), -ENAMETOOLONG);
	sl_log_set_target(NULL);
	assert_int_equal(sl_experiment_place(e, NULL, NULL), 0);
	text = sl_experiment_resolved(e, false);
	assert_non_null(strstr(text, "path: a/x.nxs\n"));
	assert_non_null(strstr(text, "base: b.h5\n"));
	free(text);
	sl_experiment_close(e);
}

static void paths_of_outputs_have_words(void **state)
{
	struct sl_experiment *e =
		good("detector: {kind: pattern}\n"
		     "sinks: [{nexus: {path: 'a/{sample}/{run}_{date}T{time}.nxs', dataset: raw, "
		     "sample: a/b}}, {nexus: {path: '{{x}}.nxs', dataset: raw}}]\n");
	/* 2026-11-18 15:04:05 UTC */
	struct sl_run_words words = {.run = 12, .unix_ns = UINT64_C(1795014245999999999)};
	struct named named = {""};
	char sample[64], *text;

	sl_experiment_sample(e, sample, sizeof(sample));
	assert_string_equal(sample, "a/b");
	words.sample = sample;
	assert_int_equal(sl_experiment_place(e, "/r/12", &words), 0);
	sl_experiment_files(e, name_file, &named);
	assert_string_equal(named.text, ">/r/12/a/a_b/000012_20261118T150405.nxs >/r/12/{x}.nxs ");
	words.run = 0; /* no run folder, no number */
	sl_log_set_target(&(struct sl_log_target){count_warnings, NULL});
	assert_int_equal(sl_experiment_place(e, NULL, &words), -ENODATA);
	sl_log_set_target(NULL);
	assert_int_equal(sl_experiment_place(e, NULL, NULL), 0);
	text = sl_experiment_resolved(e, false);
	assert_non_null(strstr(text, "a/{sample}/{run}_{date}T{time}.nxs"));
	free(text);
	sl_experiment_close(e);
}

static void folders_of_outputs_have_words(void **state)
{
	struct sl_experiment *e =
		good("detector: {kind: pattern}\nsinks:\n"
		     "  - raw: {dataset: raw, folders: '/x/{run}, b/{sample}'}\n");
	struct sl_run_words words = {.run = 12, .sample = "a,b"};
	const struct sl_option *folders = sl_option_find(e->sink[0]->options, "folders");
	char text[256];

	assert_int_equal(sl_experiment_place(e, "/r/12", &words), 0);
	sl_option_print(folders, e->sink_state[0], text, sizeof(text));
	assert_string_equal(text, "/x/000012,/r/12/b/a_b");
	words.run = 0;
	sl_log_set_target(&(struct sl_log_target){count_warnings, NULL});
	assert_int_equal(sl_experiment_place(e, NULL, &words), -ENODATA);
	sl_log_set_target(NULL);
	assert_int_equal(sl_experiment_place(e, NULL, NULL), 0);
	sl_option_print(folders, e->sink_state[0], text, sizeof(text));
	assert_string_equal(text, "/x/{run}, b/{sample}");
	sl_experiment_close(e);
}

static void words_that_are_not_there_are_errors(void **state)
{
	bad("detector: {kind: pattern}\nsinks:\n"
	    "  - raw: {dataset: raw, folders: 'a, b_{rum}'}\n",
	    3, "sinks[0].raw.folders: '{rum}' is no word");
	bad("detector: {kind: pattern}\nsinks:\n"
	    "  - nexus: {dataset: raw, path: 'a_{rum}.nxs'}\n",
	    3,
	    "sinks[0].nexus.path: '{rum}' is no word; there are: {run}, {date}, {time}, "
	    "{transfer}, {sample}");
	bad("detector: {kind: pattern}\nsinks:\n"
	    "  - nexus: {dataset: raw, path: '{transfer}.nxs'}\n",
	    3, "{transfer}: the experiment has no transfers");
	bad("detector: {kind: pattern}\nsinks:\n"
	    "  - nexus: {dataset: raw, path: '{run.nxs'}\n",
	    3, "has no '}'");
}

#define TURNING "detector: {kind: pattern}\nsinks: ['null']\ngoniometer:\n"

static void a_goniometer_is_a_list_of_axes(void **state)
{
	struct sl_experiment *e = good(TURNING "  - omega: {increment_deg: 0.1, start_deg: 30}\n"
					       "  - chi: {x: 0, z: -2, start_deg: 54.7}\n"
					       "  - phi\n");
	char *text = sl_experiment_resolved(e, false);

	assert_int_equal(e->goniometer.axes, 3);
	assert_string_equal(e->goniometer.axis[0].name, "omega");
	assert_true(e->goniometer.axis[0].x == -1 && e->goniometer.axis[0].increment_deg == 0.1);
	assert_true(e->goniometer.axis[1].x == 0 && e->goniometer.axis[1].z == -1);
	assert_true(sl_axis_angle_deg(&e->goniometer, 0, 10) == 31);
	assert_non_null(strstr(text, "goniometer:"));
	assert_non_null(strstr(text, "start_deg: 54.7"));
	free(text);
	sl_experiment_close(e);
	bad(TURNING "  omega: {}\n", 3, "takes a list of axes");
	bad(TURNING "  - omega: {speed: 3}\n", 4, "speed");
	bad(TURNING "  - omega: {x: 0}\n", 4, "no direction");
	bad(TURNING "  - omega\n  - omega\n", 5, "twice");
	bad(TURNING "  - omega/a\n", 4, "letters");
	bad(TURNING "  - a: {increment_deg: 1}\n  - b: {increment_deg: 1}\n", 5, "one axis turns");
	bad(TURNING "  - a\n  - b\n  - c\n  - d\n  - e\n  - f\n  - g\n", 10, "at most 6");
}

static void outputs_outside_of_run_folders_are_told(void **state)
{
	static const struct sl_log_target target = {count_warnings, NULL};
	static const struct {
		const char *path;
		unsigned warnings;
	} cases[] = {{"x.nxs", 0},    {"a/b/x.nxs", 0}, {"..x/y..", 0}, {"/x.nxs", 1},
		     {"../x.nxs", 1}, {"a/../x", 1},	{"a//..", 1},	{"a/...", 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[200];
		struct sl_experiment *e;

		snprintf(text, sizeof(text),
			 "detector: {kind: pattern}\nstages: [copy]\n"
			 "sinks: [{nexus: {path: %s, dataset: raw}}]\n",
			 cases[i].path);
		e = good(text);
		warnings = 0;
		sl_log_set_target(&target);
		sl_experiment_warn_of_shared_outputs(e);
		sl_log_set_target(NULL);
		assert_int_equal(warnings, cases[i].warnings);
		sl_experiment_close(e);
	}
}

#define RC	 "detector: {kind: pattern}\nsinks: ['null']\nlink: {service: rc}\n"
#define WITH_CRC "detector: {kind: pattern}\nsinks: ['null']\nlink: {service: rc, crc: true}\n"

#define BACK(sink, ear, emulate)                                       \
	"detector: {kind: pattern}\nsinks: [{feedback: {" sink "}}]\n" \
	"feedback: {address: 127.0.0.1, " ear "}\nemulate: " emulate "\n"

static void answers_that_would_never_come_are_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{BACK("by: write", "by: udp", "local"),
		 "feedback.by and by of the sink feedback differ"},
		{BACK("by: udp", "by: write", "local"),
		 "feedback.by and by of the sink feedback differ"},
		{BACK("port: 5", "port: 6", "local"),
		 "feedback.port and port of the sink feedback differ"},
		{BACK("by: write, service: rc", "by: write", "local"), "feedback.service and"},
		{BACK("by: write, link: shm", "by: write", "local"), "feedback.link and"},
		{"detector: {kind: pattern}\nsinks: ['null']\nfeedback: {address: 127.0.0.1}\n"
		 "emulate: local\n",
		 "there is no sink feedback"},
		{BACK("by: udp", "service: rc", "none"), "service rc is for by: write"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		bad(cases[i].text, 3, cases[i].words);
	bad(BACK("service: rc", "port: 47920", "none"), 2, "service rc and qpn are for by: write");
	bad(BACK("qpn: 5", "port: 47920", "none"), 2, "service rc and qpn are for by: write");
	/* The other end may be in another file. */
	sl_experiment_close(good(BACK("by: write", "by: udp", "none")));
	sl_experiment_close(good(BACK("by: write, link: udp", "by: write", "local")));
	sl_experiment_close(good(BACK("by: udp, link: shm", "by: udp", "local")));
	/* One of several is enough. */
	sl_experiment_close(good("detector: {kind: pattern}\n"
				 "sinks: [{feedback: {port: 5}}, {feedback: {port: 6}}]\n"
				 "feedback: {address: 127.0.0.1, port: 6}\nemulate: local\n"));
}

static void expect_option(const struct sl_option *options, const void *state, const char *name,
			  const char *value)
{
	char text[64];

	sl_option_print(sl_option_find(options, name), state, text, sizeof(text));
	assert_string_equal(text, value);
}

/* What was renamed is taken by its former name, with a warning. */
static void former_names_still_work(void **state)
{
	struct sl_experiment *e = NULL;

	(void)state;
	assert_int_equal(open_set("detector: {kind: pattern}\nsinks: ['null']\n"
				  "answers: {address: 127.0.0.1, port: 6}\n"
				  "unit: {kind: opencl, lanes: 2}\n",
				  NULL, 0, &e),
			 0);
	assert_int_equal(e->feedback.port, 6);
	assert_non_null(strstr(said, ":3: answers: is called 'feedback' now"));
	assert_non_null(strstr(said, ":4: unit.lanes: is called 'batch_slots' now"));
	sl_experiment_close(e);
	/* What --set says wins, by either name. */
	for (unsigned i = 0; i < 2; i++) {
		static const char *const section[] = {"feedback: {port: 6, wait_s: 3}\n",
						      "answers: {port: 6, wait_s: 3}\n"};
		static const char *const set[][2] = {{"answers.port=7", "unit.lanes=2"},
						     {"feedback.port=7", "unit.batch_slots=2"}};
		char text[256];

		snprintf(text, sizeof(text),
			 "detector: {kind: pattern}\nsinks: ['null']\n%sunit: {kind: opencl, %s}\n",
			 section[i], i ? "lanes: 4" : "batch_slots: 4");
		assert_int_equal(open_set(text, set[i], 2, &e), 0);
		assert_int_equal(e->feedback.port, 7);
		assert_true(e->feedback.wait_s == 3);
		expect_option(e->unit->options, e->unit_state, "batch_slots", "2");
		sl_experiment_close(e);
	}
	assert_int_not_equal(open_set("detector: {kind: pattern}\nsinks: ['null']\n"
				      "feedback: {port: 6}\n",
				      (const char *const[]){"answers=5"}, 1, &e),
			     0);
	assert_non_null(strstr(said, "takes a map of options"));
	bad("detector: {kind: pattern}\nsinks: ['null']\n"
	    "answers: {port: 6}\nfeedback: {port: 7}\n",
	    3, "is the former name of 'feedback', which is there, too");
	bad("detector: {kind: pattern}\nsinks: ['null']\n"
	    "unit: {kind: opencl, lanes: 2, batch_slots: 3}\n",
	    3, "is the former name of 'batch_slots', which is set, too");
}

static void devices_of_feroce_are_off_unless_asked_for(void **state)
{
	struct sl_experiment *e = good("detector: {kind: pattern}\nsinks: ['null']\n");

	assert_false(e->feroce.enable);
	sl_experiment_close(e);
	e = good(RC "feroce: {enable: true, allow: 10.0.0.0/24, silence_s: 5}\n");
	assert_true(e->feroce.enable);
	assert_true(e->feroce.silence_s == 5 && e->feroce.first_s == 0);
	assert_string_equal(e->feroce.allow, "10.0.0.0/24");
	assert_false(e->feroce.record);
	assert_int_equal(e->feroce.port, 0);
	sl_experiment_close(e);
	sl_experiment_close(good(WITH_CRC "feroce: {enable: true, record: true}\n"));
	sl_experiment_close(good(RC "feroce: {enable: true, open: 10.0.0.5}\n"));
}

static void what_devices_of_feroce_cannot_do_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} is[] = {
		{"detector: {kind: pattern}\nsinks: ['null']\n\nferoce: {enable: true}\n",
		 "link.service: rc"},
		{"detector: {kind: pattern}\nsinks: ['null']\nlink: {kind: shm}\n"
		 "feroce: {enable: true}\n",
		 "link.kind: udp"},
		{RC "feroce: {enable: true}\nemulate: local\n", "emulate: none"},
		{WITH_CRC "feroce: {enable: true}\n", "link.crc"},
	};

	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		struct sl_experiment *e;

		assert_int_equal(open_set(is[i].text, NULL, 0, &e), -EINVAL);
		expect_said(4, is[i].says);
	}
}

static struct sl_experiment *live(const char *text)
{
	int fd = memfd_create("experiment", MFD_CLOEXEC);
	struct sl_experiment *e = NULL;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	capture_begin();
	if (sl_experiment_open_live(file, NULL, NULL, 0, &e))
		fail_msg("refused: %s", capture_end());
	said = capture_end();
	close(fd);
	return e;
}

static void a_share_for_viewers_is_added_unless_there_is_one(void **state)
{
	static const char eight[] =
		"detector: {kind: pattern}\n"
		"sinks: ['null','null','null','null','null','null','null','null']\n";
	struct sl_experiment *e = live(minimal);
	char *text = sl_experiment_resolved(e, true);

	assert_int_equal(e->sinks, 2);
	assert_string_equal(e->sink[1]->name, "share");
	assert_non_null(strstr(text, "latest_Hz: 10"));
	assert_non_null(strstr(text, "# this program"));
	assert_non_null(strstr(e->text, "may_lack: true"));
	free(text);
	sl_experiment_close(e);
	e = live("detector: {kind: pattern}\nsinks: ['null', share: {every: 7}]\n");
	assert_int_equal(e->sinks, 2);
	text = sl_experiment_resolved(e, false);
	assert_non_null(strstr(text, "every: 7"));
	assert_non_null(strstr(text, "may_lack: false"));
	free(text);
	sl_experiment_close(e);
	e = live("detector: {kind: pattern}\nsinks: [share]\n");
	assert_int_equal(e->sinks, 1);
	sl_experiment_close(e);
	e = live(eight);
	assert_int_equal(e->sinks, 8);
	assert_non_null(strstr(said, "cannot be followed"));
	sl_experiment_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_for_viewers_is_added_unless_there_is_one),
		cmocka_unit_test(a_missing_file_is_an_error),
		cmocka_unit_test(everything_in_a_file_arrives),
		cmocka_unit_test(stages_and_sinks_come_in_order_with_their_own_options),
		cmocka_unit_test(the_rest_has_defaults),
		cmocka_unit_test(every_default_is_the_tables),
		cmocka_unit_test(every_pmtu_is_its_own),
		cmocka_unit_test(a_section_without_a_value_has_defaults),
		cmocka_unit_test(options_of_the_other_links_may_stay_in_the_file),
		cmocka_unit_test(the_text_is_kept_for_the_file),
		cmocka_unit_test(unknown_keys_are_refused),
		cmocka_unit_test(add_ons_that_do_not_exist_are_refused_with_those_that_do),
		cmocka_unit_test(a_detector_is_needed_and_its_kind),
		cmocka_unit_test(a_list_is_no_map_and_a_map_no_list),
		cmocka_unit_test(a_kind_is_one_name),
		cmocka_unit_test(a_list_item_is_one_name),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(a_late_module_must_not_stop_the_ring),
		cmocka_unit_test(a_pool_that_fits_the_ring_too_well_is_refused),
		cmocka_unit_test(the_token_is_not_stored_with_the_run),
		cmocka_unit_test(the_token_may_lie_in_a_file_of_its_own),
		cmocka_unit_test(a_token_on_the_command_line_is_refused_and_not_quoted),
		cmocka_unit_test(a_token_that_is_too_long_is_not_quoted),
		cmocka_unit_test(a_token_in_a_file_that_all_users_can_read_is_told),
		cmocka_unit_test(a_token_that_was_not_stored_is_none),
		cmocka_unit_test(frames_must_go_somewhere),
		cmocka_unit_test(emulate_is_local_or_none),
		cmocka_unit_test(too_many_stages_and_sinks_are_refused),
		cmocka_unit_test(all_mistakes_are_told_at_once),
		cmocka_unit_test(overrides_win_over_the_file),
		cmocka_unit_test(overrides_make_sections_that_are_not_there),
		cmocka_unit_test(overrides_are_checked_like_the_file),
		cmocka_unit_test(the_digest_changes_with_the_detector_section),
		cmocka_unit_test(the_digest_changes_with_nothing_else),
		cmocka_unit_test(the_digest_does_not_depend_on_the_order_in_the_file),
		cmocka_unit_test(the_sections_have_tables_for_help),
		cmocka_unit_test(threads_are_placed_and_wait_as_told),
		cmocka_unit_test(one_thread_for_all_has_no_second),
		cmocka_unit_test(files_of_add_ons_are_named),
		cmocka_unit_test(outputs_begin_in_the_folder_of_a_run),
		cmocka_unit_test(paths_of_outputs_have_words),
		cmocka_unit_test(folders_of_outputs_have_words),
		cmocka_unit_test(words_that_are_not_there_are_errors),
		cmocka_unit_test(a_goniometer_is_a_list_of_axes),
		cmocka_unit_test(outputs_outside_of_run_folders_are_told),
		cmocka_unit_test(answers_that_would_never_come_are_refused),
		cmocka_unit_test(former_names_still_work),
		cmocka_unit_test(devices_of_feroce_are_off_unless_asked_for),
		cmocka_unit_test(what_devices_of_feroce_cannot_do_is_refused),
	};

	return cmocka_run_group_tests_name("experiment", tests, NULL, NULL);
}
