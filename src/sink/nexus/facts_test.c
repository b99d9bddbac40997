/* facts_test.c - metadata are where NeXus puts them, as they were last, and in the first master as
 * they were when the run began. */
#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "sink/nexus/facts.h"
#include "sink/nexus/recover.h"
#include <math.h>

#include "sink/testing.h"

extern const struct sl_sink sl_sink_nexus;

static char scratch[200], path[256];
static struct sl_metadata table;
static struct sl_env_metadata_change log_of_changes[200];
static uint64_t changed;

static void each(void *arg, void (*one)(void *to, const char *key, const char *value), void *to)
{
	for (uint32_t i = 0; i < table.n; i++)
		one(to, table.entry[i].key, table.entry[i].value);
}

static uint64_t
changes(void *arg, void (*one)(void *to, const struct sl_env_metadata_change *change), void *to)
{
	for (uint64_t i = 0; i < changed; i++)
		one(to, &log_of_changes[i]);
	return 7;
}

static struct sl_env_metadata metadata = {.each = each, .changes = changes};

static void set(const char *key, const char *value)
{
	assert_int_equal(sl_metadata_set(&table, key, value), 0);
}

static void begin(struct bench *bench, const char *files)
{
	bench_init(bench, &sl_sink_nexus);
	bench_set(bench, "path", path);
	bench_set(bench, "overwrite", "true");
	bench_set(bench, "frames_per_file", files);
	bench_set(bench, "source", "a tube");
	bench->env.metadata = &metadata;
	assert_int_equal(bench_open(bench), 0);
	for (uint64_t k = 0; k < 20; k++)
		assert_int_equal(bench_feed(bench, k, KEPT), 0);
}

static struct sl_h5 *end(struct bench *bench)
{
	struct sl_h5 *file = NULL;

	assert_int_equal(bench_close(bench), 0);
	bench_fini(bench);
	assert_int_equal(sl_h5_open(path, &file), 0);
	return file;
}

static void has_text(struct sl_h5 *file, const char *name, const char *expected)
{
	char text[SL_METADATA_VALUE];

	if (sl_h5_read_text(file, name, 0, text, sizeof(text)))
		fail_msg("no %s", name);
	assert_string_equal(text, expected);
}

static void has_number(struct sl_h5 *file, const char *name, double expected, const char *units)
{
	char text[64] = "";
	double value;

	if (sl_h5_read(file, name, SL_H5_F64, &value, sizeof(value)))
		fail_msg("no %s", name);
	assert_true(value == expected);
	assert_int_equal(sl_h5_read_attribute_text(file, name, "units", text, sizeof(text)),
			 units ? 0 : -ENOENT);
	assert_string_equal(text, units ? units : "");
}

static void has_no(struct sl_h5 *file, const char *name)
{
	struct sl_h5_shape shape;

	assert_int_equal(sl_h5_describe(file, name, &shape), -ENOENT);
}

static void set_all(void)
{
	set("title", "a title");
	set("proposal", "2026-1");
	set("users", "Ada <a@b> (X, Y), Bea");
	set("instrument", "ID30A-3");
	set("source_type", "synchrotron");
	set("sample", "salt");
	set("sample_description", "white");
	set("sample_formula", "Na Cl");
	set("sample_temperature_K", "100");
	set("exposure_s", "0.005");
	set("flux_per_s", "1e12");
	set("beam_width_m", "2e-05");
	set("beam_profile", "top-hat");
	set("polarization", "vertical");
	set("polarization_degree", "0.5");
	set("transmission", "0.1");
	set("ring_current", "199.8 mA");
	set("point", "3");
	set("comment", "after lunch");
}

static void has_all(struct sl_h5 *file)
{
	double pair[2], stokes[4];

	has_text(file, "/entry/title", "a title");
	has_text(file, "/entry/experiment_identifier", "2026-1");
	has_text(file, "/entry/user_1/name", "Ada");
	has_text(file, "/entry/user_1/email", "a@b");
	has_text(file, "/entry/user_1/affiliation", "X, Y");
	has_text(file, "/entry/user_2/name", "Bea");
	has_no(file, "/entry/user_2/email");
	has_text(file, "/entry/instrument/name", "ID30A-3");
	has_text(file, "/entry/source/name", "a tube"); /* the sink's own option */
	has_text(file, "/entry/source/type", "Synchrotron X-ray Source");
	has_text(file, "/entry/sample/name", "salt");
	has_text(file, "/entry/sample/description", "white");
	has_text(file, "/entry/sample/chemical_formula", "Na Cl");
	has_number(file, "/entry/sample/temperature", 100, "K");
	has_number(file, "/entry/instrument/detector/count_time", 0.005, "s");
	has_number(file, "/entry/instrument/beam/total_flux", 1e12, "Hz");
	assert_int_equal(sl_h5_read(file, "/entry/instrument/beam/incident_beam_size", SL_H5_F64,
				    pair, sizeof(pair)),
			 0);
	assert_true(pair[0] == 2e-5 && pair[1] == 2e-5);
	has_text(file, "/entry/instrument/beam/profile", "top-hat");
	assert_int_equal(sl_h5_read(file, "/entry/instrument/beam/incident_polarization_stokes",
				    SL_H5_F64, stokes, sizeof(stokes)),
			 0);
	assert_true(stokes[0] == 1 && stokes[1] == -0.5 && stokes[2] == 0 && stokes[3] == 0);
	has_number(file, "/entry/instrument/attenuator/attenuator_transmission", 0.1, NULL);
	has_number(file, "/entry/metadata/ring_current", 199.8, "mA");
	has_number(file, "/entry/metadata/point", 3, NULL);
	has_text(file, "/entry/metadata/comment", "after lunch");
	has_no(file, "/entry/metadata/title");
	has_text(file, "/entry/sluice/metadata/point", "3");
	has_text(file, "/entry/sluice/metadata/title", "a title");
	has_text(file, "/entry/sluice/metadata/ring_current", "199.8 mA");
}

static int setup(void **state)
{
	memset(&table, 0, sizeof(table));
	changed = 0;
	return 0;
}

static void each_is_where_nexus_puts_it(void **state)
{
	static const char *const files[] = {"1000", "0"};

	for (int i = 0; i < 2; i++) {
		struct bench bench;
		struct sl_h5 *file;

		set_all();
		begin(&bench, files[i]);
		file = end(&bench);
		has_all(file);
		has_no(file, "/entry/sluice/metadata_changes/time");
		sl_h5_close(file);
	}
}

static void a_run_that_is_killed_has_those_of_its_begin(void **state)
{
	struct sl_nexus_recovered recovered;
	struct bench bench;
	struct sl_h5 *file;
	char copy[300], command[1200];

	set_all();
	begin(&bench, "1000");
	assert_int_equal(sl_h5_open(path, &file), 0);
	has_all(file);
	sl_h5_close(file);
	/* What is there now is what a killed run leaves. */
	snprintf(copy, sizeof(copy), "%s/killed.nxs", scratch);
	snprintf(command, sizeof(command),
		 "cp %s %s && cp %s/facts_data_000001.h5 %s/killed_data_000001.h5", path, copy,
		 scratch, scratch);
	assert_int_equal(system(command), 0);
	sl_h5_close(end(&bench));
	assert_int_equal(sl_nexus_recover(copy, &recovered), 0);
	assert_false(recovered.complete);
	assert_int_equal(sl_h5_open(copy, &file), 0);
	has_all(file);
	sl_h5_close(file);
}

static void the_last_values_are_in_the_file(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	set_all();
	begin(&bench, "1000");
	set("title", "another");
	set("users", "Bea");
	set("sample", NULL);
	set("instrument", NULL);
	set("source", "ESRF");
	set("sample_temperature_K", NULL);
	set("transmission", NULL);
	set("polarization", NULL);
	set("beam_height_m", "1e-05");
	set("ring_current", "200.1 mA");
	set("comment", NULL);
	set("shutter", "open");
	file = end(&bench);
	has_text(file, "/entry/title", "another");
	has_text(file, "/entry/user/name", "Bea");
	has_no(file, "/entry/user_1/name");
	has_text(file, "/entry/sample/name", "unknown");
	has_text(file, "/entry/instrument/name", "unknown");
	has_text(file, "/entry/source/name", "ESRF");
	has_no(file, "/entry/sample/temperature");
	has_no(file, "/entry/instrument/attenuator/attenuator_transmission");
	has_no(file, "/entry/instrument/beam/incident_polarization_stokes");
	has_text(file, "/entry/sample/description", "white");
	has_number(file, "/entry/metadata/ring_current", 200.1, "mA");
	has_no(file, "/entry/metadata/comment");
	has_text(file, "/entry/metadata/shutter", "open");
	has_no(file, "/entry/sluice/metadata/sample");
	has_text(file, "/entry/sluice/metadata/shutter", "open");
	sl_h5_close(file);
}

static void free_keys_may_come_and_go(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	begin(&bench, "1000");
	set("only", "1 mm");
	file = end(&bench);
	has_number(file, "/entry/metadata/only", 1, "mm");
	sl_h5_close(file);
	begin(&bench, "1000");
	set("only", NULL);
	file = end(&bench);
	has_no(file, "/entry/metadata/only");
	sl_h5_close(file);
}

static void changes_are_listed(void **state)
{
	uint64_t left_out = 0;
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;

	begin(&bench, "1000");
	for (changed = 0; changed < 130; changed++)
		log_of_changes[changed] = (struct sl_env_metadata_change){
			UINT64_C(1763470000) * 1000000000, "sample", "salt", "sugar"};
	file = end(&bench);
	assert_int_equal(sl_h5_describe(file, "/entry/sluice/metadata_changes/time", &shape), 0);
	assert_int_equal(shape.dim[0], 128); /* what comes beyond its bound is not taken */
	has_text(file, "/entry/sluice/metadata_changes/key", "sample");
	has_text(file, "/entry/sluice/metadata_changes/from", "salt");
	has_text(file, "/entry/sluice/metadata_changes/to", "sugar");
	sl_h5_read(file, "/entry/sluice/metadata_changes/left_out", SL_H5_U64, &left_out, 8);
	assert_int_equal(left_out, 7);
	sl_h5_close(file);
}

static const double at[2][3] = {{1.5, 2.5, NAN}, {-1, -2, -3}};
static bool has_points;

static void points(void *arg, void (*all)(void *to, const struct sl_env_points *points), void *to)
{
	static const uint64_t first[] = {0, 10, 25}, frames[] = {5, 5, 6},
			      unix_ns[] = {UINT64_C(1763470000500000000), 2, 3};
	static const char *const name[] = {"angle_deg", "x"};
	static const double *const value[] = {at[0], at[1]};

	all(to, &(struct sl_env_points){.n = has_points ? 3 : 0,
					.first = first,
					.frames = frames,
					.unix_ns = unix_ns,
					.values = 2,
					.name = name,
					.value = value});
}

static void points_of_a_scan_are_in_the_file(void **state)
{
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;
	uint64_t counts[3];
	double numbers[3];

	metadata.points = points;
	for (has_points = false;; has_points = true) {
		begin(&bench, "1000");
		file = end(&bench);
		if (has_points)
			break;
		has_no(file, "/entry/sluice/points/frames");
		sl_h5_close(file);
	}
	assert_int_equal(sl_h5_describe(file, "/entry/sluice/points/frames", &shape), 0);
	assert_int_equal(shape.dim[0], 3);
	sl_h5_read(file, "/entry/sluice/points/first_sequence", SL_H5_U64, counts, sizeof(counts));
	assert_true(counts[0] == 0 && counts[1] == 10 && counts[2] == 25);
	sl_h5_read(file, "/entry/sluice/points/frames", SL_H5_U64, counts, sizeof(counts));
	assert_true(counts[2] == 6);
	sl_h5_read(file, "/entry/sluice/points/time", SL_H5_F64, numbers, sizeof(numbers));
	assert_true(numbers[0] == 1763470000.5);
	sl_h5_read(file, "/entry/sluice/points/values/angle_deg", SL_H5_F64, numbers,
		   sizeof(numbers));
	assert_true(numbers[1] == 2.5 && isnan(numbers[2]));
	sl_h5_read(file, "/entry/sluice/points/values/x", SL_H5_F64, numbers, sizeof(numbers));
	assert_true(numbers[2] == -3);
	sl_h5_close(file);
	metadata.points = NULL;
}

static void fill(char with)
{
	char text[SL_METADATA_VALUE] = "", key[SL_METADATA_KEY];

	memset(text, with, sizeof(text) - 1);
	for (int i = 0; i < SL_METADATA_KEYS; i++) {
		snprintf(key, sizeof(key), "%063d", i);
		set(key, text);
	}
}

static uint64_t size_of_file(struct bench *bench)
{
	struct stat st;

	sl_h5_close(end(bench));
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* The room that was kept for the end holds as much as there can be. */
static void the_largest_change_fits(void **state)
{
	char half[128] = "";
	uint64_t before, after;
	struct bench bench;

	memset(half, 'h', sizeof(half) - 1);
	fill('x');
	begin(&bench, "1000");
	before = size_of_file(&bench);
	begin(&bench, "1000");
	fill('y');
	for (changed = 0; changed < 128; changed++)
		log_of_changes[changed] = (struct sl_env_metadata_change){
			1, table.entry[changed % table.n].key, half, half};
	after = size_of_file(&bench);
	assert_in_range(after - before, 64 * 1024, SL_FACTS_BYTES);
}

static void fact_is_what_an_option_says(void **state)
{
	struct bench bench;

	bench_init(&bench, &sl_sink_nexus);
	assert_null(sl_sink_nexus.fact(bench.state, "sample"));
	bench_set(&bench, "sample", "salt");
	assert_string_equal(sl_sink_nexus.fact(bench.state, "sample"), "salt");
	assert_null(sl_sink_nexus.fact(bench.state, "source"));
	assert_null(sl_sink_nexus.fact(bench.state, "title"));
	bench_fini(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_where_nexus_puts_it, setup),
		cmocka_unit_test_setup(a_run_that_is_killed_has_those_of_its_begin, setup),
		cmocka_unit_test_setup(the_last_values_are_in_the_file, setup),
		cmocka_unit_test_setup(free_keys_may_come_and_go, setup),
		cmocka_unit_test_setup(changes_are_listed, setup),
		cmocka_unit_test_setup(points_of_a_scan_are_in_the_file, setup),
		cmocka_unit_test_setup(the_largest_change_fits, setup),
		cmocka_unit_test_setup(fact_is_what_an_option_says, setup),
	};
	int failures;

	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/facts.nxs", scratch);
	failures = cmocka_run_group_tests_name("facts", tests, NULL, NULL);
	scratch_remove(scratch);
	return failures;
}
