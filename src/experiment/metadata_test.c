/* metadata_test.c - the section `metadata`: what it takes, what it refuses and why, with site files
 * and sinks that say the same. */
#include <errno.h>
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

#define BASE "detector: {kind: pattern, frames: 5, frame_rate_Hz: 100}\nsinks: ['null']\n"

static char folder[64], path[128], site[128];

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	strcpy(folder, "/tmp/sluice-metadata-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/exp.yaml", folder);
	snprintf(site, sizeof(site), "%s/site.yaml", folder);
	return setenv("SLUICE_SITE", "", 1);
}

static int teardown(void **state)
{
	unlink(path);
	unlink(site);
	rmdir(folder);
	return setenv("SLUICE_SITE", "", 1);
}

static struct sl_experiment *opens(const char *text, const char *set)
{
	struct sl_experiment *e = NULL;

	write_file(path, text);
	assert_int_equal(sl_experiment_open(path, NULL, &set, set != NULL, &e), 0);
	return e;
}

static void refuses(const char *text, const char *set, const char *words)
{
	struct sl_experiment *e = NULL;
	const char *said;
	int err;

	write_file(path, text);
	capture_begin();
	err = sl_experiment_open(path, NULL, &set, set != NULL, &e);
	said = capture_end();
	assert_int_not_equal(err, 0);
	if (!strstr(said, words))
		fail_msg("'%s' is not in: %s", words, said);
}

static void has(const struct sl_experiment *e, const char *key, const char *value)
{
	const char *found = sl_metadata_get(&e->said.table, key);

	assert_non_null(found);
	assert_string_equal(found, value);
}

static void all_of_it_arrives(void **state)
{
	struct sl_experiment *e = opens(BASE
					"metadata:\n"
					"  title: Lysozyme, room temperature\n"
					"  sample: lysozyme 3\n"
					"  sample_temperature_K: 295 K\n"
					"  users: [Ada Lovelace <ada@b.org>, 'Bea (X, Y)']\n"
					"  proposal: 20260042\n"
					"  exposure_s: 0.01\n"
					"  keys: {ring_current: 199.8 mA, comment: after lunch}\n",
					NULL);

	assert_int_equal(e->said.table.n, 8);
	has(e, "title", "Lysozyme, room temperature");
	has(e, "sample_temperature_K", "295");
	has(e, "users", "Ada Lovelace <ada@b.org>, Bea (X, Y)");
	has(e, "proposal", "20260042");
	has(e, "ring_current", "199.8 mA");
	has(e, "comment", "after lunch");
	assert_true(e->known.exposure_s == 0.01);
	assert_true(e->said.frame_rate_Hz == 100 && e->said.locked == 0);
	sl_experiment_close(e);
}

static void it_may_be_absent_or_empty(void **state)
{
	static const char *const texts[] = {BASE, BASE "metadata:\n", BASE "metadata: {}\n",
					    BASE "metadata: {keys: }\n",
					    BASE "metadata: {users: []}\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sl_experiment *e = opens(texts[i], NULL);
		char sample[SL_METADATA_VALUE];

		assert_int_equal(e->said.table.n, 0);
		sl_experiment_sample(e, sample, sizeof(sample));
		assert_string_equal(sample, "");
		sl_experiment_close(e);
	}
}

static void mistakes_are_told_with_their_place(void **state)
{
	refuses(BASE "metadata: {smaple: x}\n", NULL,
		"exp.yaml:3: metadata.smaple: unknown key; did you mean 'sample'?");
	refuses(BASE "metadata: {exposure: 1}\n", NULL, "did you mean 'exposure_s'?");
	refuses(BASE "metadata: {exposure_s: 5 ms}\n", NULL,
		"metadata.exposure_s: takes a number in s, not 'ms'");
	refuses(BASE "metadata: {exposure_s: soon}\n", NULL, "'soon' is not a number");
	refuses(BASE "metadata: {flux_per_s: -1}\n", NULL, "out of range");
	refuses(BASE "metadata: {source_type: sun}\n", NULL, "synchrotron");
	refuses(BASE "metadata: {wavelength: 1}\n", NULL, "is detector.photon_energy_keV");
	refuses(BASE "metadata: {keys: {distance_m: 1}}\n", NULL, "is geometry.distance_m");
	refuses(BASE "metadata: {keys: {sample: x}}\n", NULL, "without 'keys'");
	refuses(BASE "metadata: {keys: {'a b': x}}\n", NULL, "A-Z");
	refuses(BASE "metadata: {keys: {a: [1]}}\n", NULL, "takes a text");
	refuses(BASE "metadata: {keys: {a: }}\n", NULL, "takes a text");
	refuses(BASE "metadata: {keys: x}\n", NULL, "takes a map");
	refuses(BASE "metadata: [x]\n", NULL, "takes a map");
	refuses(BASE "metadata: {users: [a, [b]]}\n", NULL, "Name <email>");
	refuses(BASE "metadata: {users: ['a, b']}\n", NULL, "one user");
	refuses(BASE "metadata: {users: '<a@b>'}\n", NULL, "is no user");
	refuses(BASE "metadata: {polarization_degree: 0.9}\n", NULL, "of which polarization?");
	refuses(BASE "metadata: {title: \"a\\tb\"}\n", NULL, "one line");
}

static void what_is_too_much_is_refused(void **state)
{
	static char text[1 << 14];
	size_t used = (size_t)snprintf(text, sizeof(text), BASE "metadata: {sample: s, keys: {");

	for (int i = 0; i < SL_METADATA_KEYS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "k%d: 1, ", i);
	snprintf(text + used, sizeof(text) - used, "}}\n");
	refuses(text, NULL, "more than 64");
	used = (size_t)snprintf(text, sizeof(text), BASE "metadata: {sample: ");
	memset(text + used, 'x', SL_METADATA_NAME);
	snprintf(text + used + SL_METADATA_NAME, 8, "}\n");
	refuses(text, NULL, "is too long");
	used = (size_t)snprintf(text, sizeof(text), BASE "metadata: {users: [");
	for (int i = 0; i < 12; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%0100d, ", i);
	snprintf(text + used, sizeof(text) - used, "]}\n");
	refuses(text, NULL, "at most 1023 bytes");
}

static void the_exposure_must_fit_the_detector(void **state)
{
	refuses(BASE "metadata: {exposure_s: 0.02}\n", NULL,
		"metadata.exposure_s: 0.02 s is longer than the 0.01 s");
	refuses(BASE, "metadata.exposure_s=0.02", "--set metadata.exposure_s: 0.02 s is longer");
	sl_experiment_close(
		opens(BASE "metadata: {exposure_s: 0.02}\n", "detector.frame_rate_Hz=0"));
}

static void sites_set_and_lock_keys(void **state)
{
	struct sl_experiment *e;
	char *text;

	setenv("SLUICE_SITE", site, 1);
	write_file(site, "defaults: {metadata: {source: ESRF, keys: {hutch: 1}}}\n"
			 "locked: {metadata: {instrument: ID30A-3}}\n");
	e = opens(BASE "metadata: {sample: salt, keys: {hutch: 2}}\n", NULL);
	has(e, "source", "ESRF");
	has(e, "instrument", "ID30A-3");
	has(e, "hutch", "2");
	for (uint32_t i = 0; i < e->said.table.n; i++)
		assert_int_equal(e->said.locked >> i & 1,
				 !strcmp(e->said.table.entry[i].key, "instrument"));
	text = sl_experiment_resolved(e, true);
	assert_non_null(strstr(text, "site.yaml:2 (locked)"));
	assert_non_null(strstr(text, "keys:"));
	free(text);
	sl_experiment_close(e);
	refuses(BASE "metadata: {instrument: mine}\n", NULL, "locked");
	write_file(site, "defaults: {metadata: {sampel: x}}\n");
	refuses(BASE, NULL, "did you mean 'sample'?");
}

/* What `sluice check` prints is the same experiment. */
static void the_resolved_text_is_the_same(void **state)
{
	struct sl_experiment *e = opens(BASE "metadata: {users: [Ada, Bea], exposure_s: 5e-3 s, "
					     "keys: {a: 1 mm, b: '#'}}\n",
					NULL);
	char *text = sl_experiment_resolved(e, true), copy[1 << 14];
	struct sl_experiment *again;

	snprintf(copy, sizeof(copy), "%s", text);
	again = opens(copy, NULL);
	assert_int_equal(again->said.table.n, 4);
	assert_memory_equal(&again->said.table, &e->said.table, sizeof(e->said.table));
	free(text);
	sl_experiment_close(e);
	sl_experiment_close(again);
}

/* ---- sinks ---- */

#define NEXUS(options) \
	"detector: {kind: pattern, frames: 5}\nstages: [copy]\nsinks: [nexus: {" options "}]\n"

static void a_sink_may_not_contradict(void **state)
{
	struct sl_experiment *e;
	char sample[SL_METADATA_VALUE];

	if (!sl_sink_find("nexus"))
		skip();
	refuses(NEXUS("sample: salt") "metadata: {sample: sugar}\n", NULL,
		"metadata.sample: is 'sugar', and sink nexus says sample: 'salt'");
	e = opens(NEXUS("sample: salt") "metadata: {sample: salt, source: ESRF}\n", NULL);
	sl_experiment_close(e);
	e = opens(NEXUS("sample: salt"), NULL);
	sl_experiment_sample(e, sample, sizeof(sample));
	assert_string_equal(sample, "salt");
	sl_experiment_close(e);
}

static void each(void *arg, void (*one)(void *to, const char *key, const char *value), void *to)
{
	one(to, "title", "x");
	one(to, "sample", arg);
}

static void the_sample_is_that_of_the_session(void **state)
{
	struct sl_experiment *e = opens(BASE "metadata: {sample: salt}\n", NULL);
	const struct sl_env_metadata metadata = {.each = each, .arg = "sugar"};
	char sample[SL_METADATA_VALUE];

	sl_experiment_sample(e, sample, sizeof(sample));
	assert_string_equal(sample, "salt");
	e->metadata = &metadata;
	sl_experiment_sample(e, sample, sizeof(sample));
	assert_string_equal(sample, "sugar");
	sl_experiment_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_it_arrives, setup, teardown),
		cmocka_unit_test_setup_teardown(it_may_be_absent_or_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_told_with_their_place, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_too_much_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_exposure_must_fit_the_detector, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sites_set_and_lock_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(the_resolved_text_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sink_may_not_contradict, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sample_is_that_of_the_session, setup, teardown),
	};

	return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
