/* raw_test.c - the sink raw: what every sink must do, whose images are stored, what is refused, and
 * what is left behind. What comes out is compared in src/convert and by the system tests. */
#include "sink/conformance.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/capture.h"
#include "raw/raw.h"

extern const struct sl_sink sl_sink_raw;

static char folder[] = "/tmp/sink_raw.XXXXXX", path[64];

static unsigned files_there(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int make_folder(void **state)
{
	snprintf(path, sizeof(path), "%s/run.raw", mkdtemp(folder));
	return 0;
}

static int empty_folder(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	return 0;
}

static int remove_folder(void **state)
{
	empty_folder(state);
	return rmdir(folder);
}

static void over(struct bench *bench)
{
	bench->shape[0].image = bench->shape[1].image = 1;
	bench_set(bench, "path", path);
	bench_set(bench, "overwrite", "true");
}

/* Images of a frame of every kind, by the options. */
static uint64_t images_of(const char *dataset, const char *frames, const char *keep_s)
{
	struct bench bench;
	uint64_t images;

	bench_init(&bench, &sl_sink_raw);
	over(&bench);
	bench_set(&bench, "dataset", dataset);
	bench_set(&bench, "frames", frames);
	bench_set(&bench, "keep_s", keep_s);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < KINDS; k++)
		assert_int_equal(bench_feed(&bench, k, (enum kind)k), 0);
	assert_int_equal(bench_close(&bench), 0);
	images = bench_figure(&bench, "frames");
	assert_int_equal(bench_figure(&bench, "rows_durable"), KINDS);
	bench_fini(&bench);
	return images;
}

static void images_are_those_of_the_options(void **state)
{
	assert_int_equal(images_of("image", "auto", "0"), 1);  /* kept */
	assert_int_equal(images_of("image", "auto", "60"), 2); /* and vetoed */
	assert_int_equal(images_of("image", "all", "0"), 2);
	assert_int_equal(images_of("image", "kept", "60"), 1);
	assert_int_equal(images_of("raw", "all", "0"), 3); /* and dark */
	assert_int_equal(images_of("none", "all", "0"), 0);
}

static void what_it_asks_for(void **state)
{
	struct bench bench;

	bench_init(&bench, &sl_sink_raw);
	assert_false(sl_sink_wants(&sl_sink_raw, bench.state) & SL_WANT_RAW);
	assert_true(sl_sink_wants(&sl_sink_raw, bench.state) & SL_WANT_REJECTED_RESULTS);
	assert_true(sl_sink_raw.reads(bench.state, "image"));
	assert_false(sl_sink_raw.reads(bench.state, "raw"));
	bench_set(&bench, "dataset", "raw");
	assert_true(sl_sink_wants(&sl_sink_raw, bench.state) & SL_WANT_RAW);
	bench_fini(&bench);
}

/* Opens with these options and wants this to be said. */
static void is_refused(const char *option, const char *value, const char *says)
{
	struct bench bench;
	const char *log;

	bench_init(&bench, &sl_sink_raw);
	bench_set(&bench, "path", path);
	bench_set(&bench, option, value);
	capture_begin();
	assert_true(bench_open(&bench) < 0);
	log = capture_end();
	if (!strstr(log, says))
		fail_msg("'%s' does not say '%s'", log, says);
	assert_int_equal(sl_sink_raw.close(bench.state, NULL), 0);
	bench_fini(&bench);
}

static void what_makes_no_sense_is_refused(void **state)
{
	is_refused("dataset", "colour", "set dataset to what there is: raw, image");
	is_refused("keep_bytes", "2", "a buffer has room for at least 10");
	is_refused("on_slow", "drop", "drop is for a rolling buffer");
	is_refused("folders", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16");
	assert_int_equal(files_there(), 0);
	images_of("image", "auto", "0");
	is_refused("dataset", "image", "run.raw exists");
	assert_int_equal(files_there(), 2);
}

/* No run waits for a rolling buffer, unless the user asks for it. */
static void a_rolling_buffer_drops_what_it_has_no_time_for(void **state)
{
	static const struct {
		const char *keep_s, *on_slow;
		enum sl_on_slow is;
	} cases[] = {{"0", "auto", SL_ON_SLOW_WAIT},	     {"60", "auto", SL_ON_SLOW_DROP},
		     {"60", "wait", SL_ON_SLOW_WAIT},	     {"60", "stop", SL_ON_SLOW_STOP},
		     {"0", "prescale", SL_ON_SLOW_PRESCALE}, {"60", "drop", SL_ON_SLOW_DROP}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench bench;

		bench_init(&bench, &sl_sink_raw);
		bench_set(&bench, "keep_s", cases[i].keep_s);
		bench_set(&bench, "on_slow", cases[i].on_slow);
		assert_int_equal(sl_sink_raw.on_slow(bench.state), cases[i].is);
		bench_fini(&bench);
	}
}

/* Without rows to show for it, a run leaves nothing. */
static void a_run_that_never_began_leaves_nothing(void **state)
{
	struct bench bench;

	bench_init(&bench, &sl_sink_raw);
	over(&bench);
	assert_int_equal(bench_open(&bench), 0);
	assert_true(files_there() >= 2);
	assert_int_equal(sl_sink_raw.close(bench.state, NULL), 0);
	assert_int_equal(files_there(), 0);
	bench_fini(&bench);
}

/* Only a raw run is replaced, and none that is being written. */
static void overwriting_has_limits(void **state)
{
	struct bench bench;
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs("somebody's notes\n", file);
	fclose(file);
	is_refused("overwrite", "true", "run.raw");
	assert_int_equal(unlink(path), 0);
	bench_init(&bench, &sl_sink_raw);
	over(&bench);
	assert_int_equal(bench_open(&bench), 0);
	is_refused("overwrite", "true", "is being written by another run");
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void copy_file(const char *from, const char *to)
{
	char command[256];

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* A run of one frame, or what its opening says. */
static int run_at(const char *to, const char *folders)
{
	struct bench bench;
	int r;

	bench_init(&bench, &sl_sink_raw);
	bench_set(&bench, "path", to);
	bench_set(&bench, "dataset", "raw");
	bench_set(&bench, "folders", folders);
	bench_set(&bench, "overwrite", "true");
	r = bench_open(&bench);
	if (r)
		sl_sink_raw.close(bench.state, NULL);
	if (!r)
		assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	if (!r)
		assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
	return r;
}

static uint64_t chunks_of(const char *run)
{
	struct sl_raw_reader *reader;
	struct sl_raw_facts facts;

	assert_int_equal(sl_raw_open(run, 0, &reader), 0);
	sl_raw_facts(reader, &facts);
	sl_raw_close(reader);
	return facts.chunks;
}

/* A copy of the run file alone sees the data files of the original, which stay. */
static void a_copy_does_not_take_the_data_files_of_the_original(void **state)
{
	char other[96], beside[96], disk[96], moved[96];
	const char *said;

	snprintf(other, sizeof(other), "%s/other", folder);
	snprintf(moved, sizeof(moved), "%s/moved", folder);
	snprintf(disk, sizeof(disk), "%s/disk", folder);
	assert_int_equal(mkdir(other, 0755), 0);
	assert_int_equal(run_at(path, disk), 0);
	snprintf(other, sizeof(other), "%s/other/run.raw", folder);
	snprintf(beside, sizeof(beside), "%s/run.copy", folder);
	copy_file(path, other);
	copy_file(path, beside);
	for (int i = 0; i < 2; i++) {
		capture_begin();
		assert_int_equal(run_at(i ? beside : other, disk), -EEXIST);
		said = capture_end();
		assert_non_null(strstr(said, "is a copy or was moved"));
		assert_int_equal(chunks_of(path), 1);
	}
	assert_int_equal(run_at(path, disk), 0); /* at its own path it gives way */
	/* A run that was moved with its data files does, too. */
	assert_int_equal(unlink(other), 0);
	assert_int_equal(run_at(other, ""), 0);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(rename(other, moved), 0);
	snprintf(moved, sizeof(moved), "%s/moved/run.raw", folder);
	assert_int_equal(run_at(moved, ""), 0);
	assert_int_equal(chunks_of(moved), 1);
	snprintf(other, sizeof(other), "rm -r %s/*", folder);
	assert_int_equal(system(other), 0);
}

#define CASE(name) cmocka_unit_test_teardown(name, empty_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		CASE(images_are_those_of_the_options),
		CASE(what_it_asks_for),
		CASE(what_makes_no_sense_is_refused),
		CASE(a_rolling_buffer_drops_what_it_has_no_time_for),
		CASE(a_run_that_never_began_leaves_nothing),
		CASE(overwriting_has_limits),
		CASE(a_copy_does_not_take_the_data_files_of_the_original),
	};

	conforming = &sl_sink_raw;
	prepare = over;
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
