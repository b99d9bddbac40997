/* rolled_test.c - a master over data files: rows go on from file to file, readers follow, and the
 * master shows all of them as one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "codec/pack.h"
#include "hdf5/handle.h"
#include "hdf5/rolled/data_files.h"
#include "hdf5/rolled/old_files.h"
#include "hdf5/rolled/recover.h"
#include "hdf5/rolled/rolled.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE };

static char scratch[256];

static const char *in(const char *name)
{
	static char path[4][512];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", scratch, name);
	return path[turn];
}

struct rows {
	struct sl_h5 *file;
	struct sl_h5_series *image, *number, *table;
	struct sl_packer packer;
	uint64_t n;
};

static uint16_t pixel(uint64_t row, uint32_t i)
{
	return (uint16_t)(row * 7 + i % 5);
}

static void open_rows_over(struct rows *r, const char *path, bool overwrite)
{
	const struct sl_h5_shape image = {SL_H5_U16, 2, {SIDE, SIDE}}, number = {.type = SL_H5_U64};

	*r = (struct rows){.n = 0};
	assert_int_equal(sl_packer_init(&r->packer, SL_VECTORS_AUTO), 0);
	assert_int_equal(sl_h5_create_rolled(path, overwrite, &r->file), 0);
	sl_h5_group(r->file, "/entry", "NXentry");
	sl_h5_group(r->file, "/entry/data", "NXdata");
	sl_h5_group(r->file, "/entry/deep", "NXcollection");
	sl_h5_series_open_packed(r->file, "/entry/data/data", &image, SL_CODEC_BSLZ4, 1, &r->image);
	sl_h5_series_open(r->file, "/entry/data/number", &number, 8, &r->number);
	sl_h5_attribute_text(r->file, "/entry/data/number", "long_name", "counts");
	sl_h5_series_open(r->file, "/entry/deep/table", &number, 512, &r->table);
	sl_h5_link(r->file, "/entry/soft", "/entry/data/number");
	assert_int_equal(sl_h5_rows_begin(r->file), 0);
}

static void open_rows(struct rows *r, const char *path)
{
	open_rows_over(r, path, false);
}

static void append(struct rows *r, unsigned n)
{
	uint8_t packed[4 * PIXELS];
	uint16_t image[PIXELS];

	while (n--) {
		int64_t bytes;

		for (uint32_t i = 0; i < PIXELS; i++)
			image[i] = pixel(r->n, i);
		bytes = sl_pack(&r->packer, SL_CODEC_BSLZ4, image, sizeof(image), 2, packed,
				sizeof(packed));
		assert_true(bytes > 0);
		assert_int_equal(sl_h5_series_append_packed(r->image, packed, (size_t)bytes), 0);
		assert_int_equal(sl_h5_series_append(r->number, &r->n), 0);
		if (r->n % 3 == 0)
			sl_h5_series_append(r->table, &r->n);
		r->n++;
	}
}

static void check_rows(struct sl_h5 *file, uint64_t n)
{
	struct sl_h5_shape shape;
	uint16_t image[PIXELS];
	uint64_t number;

	sl_h5_filters();
	assert_int_equal(sl_h5_describe(file, "/entry/data/data", &shape), 0);
	assert_int_equal(shape.dim[0], n);
	for (uint64_t k = 0; k < n; k++) {
		assert_int_equal(sl_h5_read_row(file, "/entry/data/data", k, SL_H5_U16, image,
						sizeof(image)),
				 0);
		for (uint32_t i = 0; i < PIXELS; i++)
			assert_int_equal(image[i], pixel(k, i));
		assert_int_equal(sl_h5_read_row(file, "/entry/data/number", k, SL_H5_U64, &number,
						sizeof(number)),
				 0);
		assert_int_equal(number, k);
	}
}

static void rows_go_on_from_file_to_file(void **state)
{
	struct sl_h5 *file;
	struct sl_h5_shape shape;
	char text[64];
	struct rows r;

	open_rows(&r, in("run_master.h5"));
	append(&r, 10);
	assert_int_equal(sl_h5_roll(r.file), 0);
	append(&r, 5);
	assert_int_equal(sl_h5_roll(r.file), 0); /* and one without rows */
	assert_int_equal(sl_h5_roll(r.file), 0);
	append(&r, 20);
	assert_int_equal(sl_h5_series_rows(r.image), 35);
	assert_int_equal(sl_h5_data_files(r.file), 4);
	assert_int_equal(sl_h5_rows_end(r.file), 0);
	assert_int_equal(sl_h5_write_text(r.file, "/entry/state", "complete"), 0);
	assert_int_equal(sl_h5_finish(r.file), 0);
	sl_packer_fini(&r.packer);

	assert_int_equal(access(in("run_data_000004.h5"), F_OK), 0);
	assert_int_equal(access(in("run_master.h5.part"), F_OK), -1);
	assert_int_equal(sl_h5_open(in("run_master.h5"), &file), 0);
	check_rows(file, 35);
	assert_int_equal(sl_h5_describe(file, "/entry/deep/table", &shape), 0);
	assert_int_equal(shape.dim[0], 12);
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry/data/number", "long_name", text,
						   sizeof(text)),
			 0);
	assert_string_equal(text, "counts");
	assert_int_equal(sl_h5_read_text(file, "/entry/state", 0, text, sizeof(text)), 0);
	assert_int_equal(sl_h5_describe(file, "/entry/soft", &shape), 0);
	sl_h5_close(file);
	assert_int_equal(sl_h5_open(in("run_data_000001.h5"), &file), 0);
	check_rows(file, 10);
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry/data/number", "long_name", text,
						   sizeof(text)),
			 0);
	sl_h5_close(file);
}

/* A writer that is killed after a flush, with rows behind it. */
static void write_and_die(const char *path, bool roll)
{
	uint64_t end = sl_clock_ns() + UINT64_C(30000000000);
	struct rows r;

	open_rows(&r, path);
	append(&r, 10);
	if (roll)
		assert_int_equal(sl_h5_roll(r.file), 0);
	append(&r, 7);
	assert_int_equal(sl_h5_flush(r.file, 17), 0);
	while (sl_h5_durable(r.file) < 17 && sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	append(&r, 3);
	kill(getpid(), SIGKILL);
}

/* In another process: HDF5 tells files of one process by their inode. */
static void write_and_be_killed(const char *path, bool roll)
{
	pid_t child = fork();
	int status;

	if (!child) {
		write_and_die(path, roll);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static uint64_t rows_of(hid_t id, const char *path)
{
	hid_t dataset = H5Dopen2(id, path, H5P_DEFAULT), space = H5Dget_space(dataset);
	hsize_t rows[3] = {0};

	assert_true(dataset >= 0 && space >= 0);
	H5Sget_simple_extent_dims(space, rows, NULL);
	H5Sclose(space);
	H5Dclose(dataset);
	return rows[0];
}

static void readers_find_what_was_flushed(void **state)
{
	uint64_t flushed[3];
	hid_t access_list, id, dataset;
	struct sl_h5 *file;
	char text[256];

	write_and_be_killed(in("live.nxs"), true);
	assert_int_equal(sl_h5_open(in("live.nxs"), &file), 0); /* the master was there */
	sl_h5_close(file);
	assert_int_equal(sl_h5_open(in("live_data_000001.h5"), &file), 0); /* and closed files */
	check_rows(file, 10);
	sl_h5_close(file);

	access_list = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_file_locking(access_list, false, true);
	id = H5Fopen(in("live_data_000002.h5"), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access_list);
	assert_true(id >= 0);
	assert_in_range(rows_of(id, "/entry/data/data"), 7, 10);
	assert_int_equal(rows_of(id, "/entry/data/number"), 7);
	assert_int_equal(rows_of(id, "/entry/sluice/flushed"), 1);
	dataset = H5Dopen2(id, "/entry/sluice/flushed", H5P_DEFAULT);
	assert_true(H5Dread(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, flushed) >=
		    0);
	H5Dclose(dataset);
	H5Fclose(id);
	H5Pclose(access_list);
	assert_int_equal(flushed[0], 2); /* the series that was opened last comes first */
	assert_int_equal(flushed[1], 7);
	assert_int_equal(flushed[2], 7);
	assert_int_equal(sl_h5_open(in("live_data_000001.h5"), &file), 0);
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry/sluice/flushed", "series", text,
						   sizeof(text)),
			 0);
	assert_string_equal(text, "/entry/deep/table\n/entry/data/number\n/entry/data/data");
	sl_h5_close(file);
}

/* Also of a run that had one data file: the list of series comes from the first. */
static void a_killed_run_is_recovered_up_to_its_last_flush(void **state)
{
	for (unsigned files = 1; files <= 2; files++) {
		char name[16];
		struct sl_h5_recovered found = {.files = 0};
		struct sl_h5_shape shape;
		struct sl_h5 *file;
		char text[64];

		snprintf(name, sizeof(name), "killed%u.nxs", files);
		write_and_be_killed(in(name), files == 2);
		assert_int_equal(sl_h5_recover(in(name), &found, &file), 0);
		assert_int_equal(found.files, files);
		assert_int_equal(found.mended, 1);
		assert_int_equal(sl_h5_finish(file), 0);
		assert_int_equal(sl_h5_open(in(name), &file), 0);
		check_rows(file, 17);
		assert_int_equal(sl_h5_describe(file, "/entry/deep/table", &shape), 0);
		assert_int_equal(shape.dim[0], 6);
		assert_int_equal(sl_h5_read_attribute_text(file, "/entry/data/number", "long_name",
							   text, sizeof(text)),
				 0);
		assert_string_equal(text, "counts");
		sl_h5_close(file);
	}
}

static void a_file_that_is_given_up_leaves_nothing(void **state)
{
	struct rows r;

	open_rows(&r, in("gone.nxs"));
	sl_h5_abandon(r.file);
	sl_packer_fini(&r.packer);
	assert_int_equal(access(in("gone.nxs.part"), F_OK), -1);
	assert_int_equal(access(in("gone_data_000001.h5"), F_OK), -1);
}

static void a_data_file_that_is_there_is_not_touched(void **state)
{
	const char *said;
	struct sl_h5 *file;
	struct stat st;
	int fd = open(in("taken_data_000001.h5"), O_CREAT | O_WRONLY, 0600);

	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
	capture_begin();
	assert_int_equal(sl_h5_create_rolled(in("taken.nxs"), false, &file), -EEXIST);
	said = capture_end();
	assert_non_null(strstr(said, "taken_data_000001.h5: exists"));
	assert_int_equal(stat(in("taken_data_000001.h5"), &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(access(in("taken.nxs.part"), F_OK), -1);
	capture_begin(); /* nor with overwrite: it is no data file of a run at this path */
	assert_int_equal(sl_h5_create_rolled(in("taken.nxs"), true, &file), -EEXIST);
	said = capture_end();
	assert_non_null(strstr(said, "taken_data_000001.h5: exists, and HDF5 cannot open it"));
	assert_int_equal(stat(in("taken_data_000001.h5"), &st), 0);
	assert_int_equal(st.st_size, 8);
}

/* ---- which files overwrite replaces ---- */

static void write_run(const char *path, bool overwrite, unsigned rows)
{
	struct rows r;

	open_rows_over(&r, path, overwrite);
	append(&r, rows);
	assert_int_equal(sl_h5_roll(r.file), 0);
	append(&r, rows);
	assert_int_equal(sl_h5_finish(r.file), 0);
	sl_packer_fini(&r.packer);
}

static void check_run(const char *path, uint64_t rows)
{
	struct sl_h5 *file;

	assert_int_equal(sl_h5_open(path, &file), 0);
	check_rows(file, rows);
	sl_h5_close(file);
}

static void refuses(const char *path, bool overwrite, int error, const char *what)
{
	struct sl_h5 *file;
	char part[600];
	const char *said;
	int part_was;

	snprintf(part, sizeof(part), "%s.part", path);
	part_was = access(part, F_OK);
	capture_begin();
	assert_int_equal(sl_h5_create_rolled(path, overwrite, &file), error);
	said = capture_end();
	if (!strstr(said, what))
		fail_msg("'%s' is not in '%s'", what, said);
	assert_int_equal(access(part, F_OK), part_was);
}

static void overwrite_replaces_the_data_files_of_its_own_master(void **state)
{
	write_run(in("over.nxs"), false, 5);
	write_run(in("over.nxs"), true, 3);
	check_run(in("over.nxs"), 6);
	assert_int_equal(access(in("over.nxs.replaced"), F_OK), -1);
	assert_int_equal(access(in("over_data_000001.h5.replaced"), F_OK), -1);
}

static void one_file_replaces_a_run_with_data_files(void **state)
{
	struct sl_h5 *file;

	write_run(in("one.nxs"), false, 5);
	assert_int_equal(sl_h5_create_single(in("one.h5"), &file), 0); /* not its own */
	assert_int_equal(sl_h5_finish(file), 0);
	check_run(in("one.nxs"), 10);
	assert_int_equal(sl_h5_create_single(in("one.nxs"), &file), 0);
	sl_h5_abandon(file);
	check_run(in("one.nxs"), 10);
	assert_int_equal(sl_h5_create_single(in("one.nxs"), &file), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(access(in("one_data_000001.h5"), F_OK), -1);
	assert_int_equal(access(in("one_data_000002.h5"), F_OK), -1);
}

/* run.nxs and run.h5 have data files of the same names. */
static void overwrite_leaves_the_data_files_of_another_master(void **state)
{
	FILE *f;

	write_run(in("two.nxs"), false, 5);
	refuses(in("two.h5"), true, -EEXIST, "two_data_000001.h5: is a data file of two.nxs");
	refuses(in("two_master.h5"), true, -EEXIST, "is a data file of two.nxs");
	f = fopen(in("two.h5"), "w"); /* a file that names no data files changes nothing */
	assert_non_null(f);
	fputs("text", f);
	fclose(f);
	refuses(in("two.h5"), true, -EEXIST, "two_data_000001.h5: is a data file of two.nxs");
	assert_int_equal(unlink(in("two.h5")), 0);
	assert_int_equal(link(in("two.nxs"), in("two.h5")), 0); /* nor does a copy of the master */
	refuses(in("two.h5"), true, -EEXIST, "two_data_000001.h5: is a data file of two.nxs");
	check_run(in("two.nxs"), 10);
}

/* The master of another run took its place, or none is there. */
static void overwrite_leaves_data_files_that_the_master_does_not_know(void **state)
{
	write_run(in("lone.nxs"), false, 5);
	assert_int_equal(rename(in("lone.nxs"), in("kept")), 0);
	refuses(in("lone.nxs"), true, -EEXIST, "lone_data_000001.h5: exists, and there is no run");
	write_run(in("else.nxs"), false, 5);
	assert_int_equal(rename(in("else.nxs"), in("lone.nxs")), 0);
	refuses(in("lone.nxs"), true, -EEXIST, "lone_data_000001.h5: exists, and there is no run");
	assert_int_equal(rename(in("kept"), in("lone.nxs")), 0);
	check_run(in("lone.nxs"), 10);
	write_run(in("lone.nxs"), true, 2);
}

/* A data file that the run would come to later is in the way from the beginning. */
static void a_data_file_far_away_is_found_at_the_start(void **state)
{
	int fd = open(in("far_data_000037.h5"), O_CREAT | O_WRONLY, 0600);

	close(fd);
	refuses(in("far.nxs"), false, -EEXIST, "far_data_000037.h5: exists");
	refuses(in("far.nxs"), true, -EEXIST, "far_data_000037.h5: exists");
	assert_int_equal(unlink(in("far_data_000037.h5")), 0);
	assert_int_equal(mkdir(in("far_data_000002.h5"), 0700), 0);
	refuses(in("far.nxs"), true, -EEXIST, "far_data_000002.h5: exists and cannot be replaced");
	assert_int_equal(rmdir(in("far_data_000002.h5")), 0);
	write_run(in("far.nxs"), false, 1);
}

static void a_data_file_of_a_run_under_way_is_never_taken(void **state)
{
	struct rows r;

	open_rows(&r, in("held.nxs"));
	append(&r, 3);
	refuses(in("held.h5"), true, -EBUSY, "held_data_000001.h5: is being written");
	assert_true(sl_part_file_is_held(in("held_data_000001.h5")));
	assert_int_equal(sl_h5_finish(r.file), 0);
	sl_packer_fini(&r.packer);
	assert_false(sl_part_file_is_held(in("held_data_000001.h5")));
	check_run(in("held.nxs"), 3);
}

static void a_run_that_is_given_up_brings_the_earlier_one_back(void **state)
{
	struct rows r;

	write_run(in("back.nxs"), false, 4);
	open_rows_over(&r, in("back.nxs"), true);
	append(&r, 2);
	assert_int_equal(access(in("back_data_000002.h5.replaced"), F_OK), 0);
	refuses(in("back.h5"), true, -EEXIST, "back_data_000001.h5.replaced: is of an earlier run");
	sl_h5_abandon(r.file);
	sl_packer_fini(&r.packer);
	check_run(in("back.nxs"), 8);
	assert_int_equal(access(in("back_data_000001.h5.replaced"), F_OK), -1);
}

/* In another process, which dies with rows or without. */
static void begin_and_die(const char *path, unsigned rows)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct rows r;

		open_rows_over(&r, path, true);
		append(&r, rows);
		if (rows)
			sl_h5_roll(r.file); /* a closed data file has rows without a flush */
		kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void what_a_killed_run_had_set_aside_is_told_and_brought_back(void **state)
{
	uint32_t files = 7;

	write_run(in("dead.nxs"), false, 4);
	begin_and_die(in("dead.nxs"), 0);
	assert_int_equal(access(in("dead.nxs.replaced"), F_OK), 0);
	refuses(in("dead.nxs"), true, -EEXIST, "dead.nxs.replaced: is of an earlier run");
	assert_int_equal(sl_h5_old_bring_back(in("dead.nxs"), &files), 0);
	assert_int_equal(files, 3);
	check_run(in("dead.nxs"), 8);
	assert_int_equal(access(in("dead.nxs.replaced"), F_OK), -1);
	assert_int_equal(sl_h5_old_bring_back(in("dead.nxs"), &files), 0);
	assert_int_equal(files, 0);

	/* The killed run has rows: both stay, and a person decides. */
	begin_and_die(in("dead.nxs"), 2);
	capture_begin();
	assert_int_equal(sl_h5_old_bring_back(in("dead.nxs"), &files), 0);
	assert_non_null(strstr(capture_end(), "the run that replaced it has rows"));
	assert_int_equal(files, 0);
	assert_int_equal(access(in("dead_data_000002.h5.replaced"), F_OK), 0);
	check_run(in("dead_data_000001.h5"), 2);
}

/* Another program cuts a closed data file short before the thread has looked at it. */
static void a_data_file_that_was_cut_makes_the_run_fail(void **state)
{
	const char *said;
	struct rows r;

	open_rows(&r, in("cut.nxs"));
	append(&r, 10);
	assert_int_equal(sl_h5_flush(r.file, 10), 0);
	assert_int_equal(truncate(in("cut_data_000001.h5"), 5000), 0);
	capture_begin();
	assert_int_not_equal(sl_h5_finish(r.file), 0);
	said = capture_end();
	assert_non_null(strstr(said, "cut_data_000001.h5"));
	sl_packer_fini(&r.packer);
}

static void names_of_data_files(void **state)
{
	static const char *const names[][2] = {
		{"run.nxs", "run_data_000007.h5"},	   {"a/b.c/run", "run_data_000007.h5"},
		{"x/run_master.h5", "run_data_000007.h5"}, {"_master.h5", "_master_data_000007.h5"},
		{".hidden", ".hidden_data_000007.h5"},	   {"a.b.nxs", "a.b_data_000007.h5"}};
	char name[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(sl_h5_data_name(names[i][0], 7, name, sizeof(name)), 0);
		assert_string_equal(name, names[i][1]);
	}
	assert_int_equal(sl_h5_data_name("run.nxs", 7, name, 5), -ENAMETOOLONG);
}

static int make(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	return 0;
}

static int clean(void **state)
{
	scratch_remove(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_go_on_from_file_to_file),
		cmocka_unit_test(readers_find_what_was_flushed),
		cmocka_unit_test(a_killed_run_is_recovered_up_to_its_last_flush),
		cmocka_unit_test(a_file_that_is_given_up_leaves_nothing),
		cmocka_unit_test(a_data_file_that_is_there_is_not_touched),
		cmocka_unit_test(overwrite_replaces_the_data_files_of_its_own_master),
		cmocka_unit_test(one_file_replaces_a_run_with_data_files),
		cmocka_unit_test(overwrite_leaves_the_data_files_of_another_master),
		cmocka_unit_test(overwrite_leaves_data_files_that_the_master_does_not_know),
		cmocka_unit_test(a_data_file_far_away_is_found_at_the_start),
		cmocka_unit_test(a_data_file_of_a_run_under_way_is_never_taken),
		cmocka_unit_test(a_run_that_is_given_up_brings_the_earlier_one_back),
		cmocka_unit_test(what_a_killed_run_had_set_aside_is_told_and_brought_back),
		cmocka_unit_test(a_data_file_that_was_cut_makes_the_run_fail),
		cmocka_unit_test(names_of_data_files),
	};

	return cmocka_run_group_tests_name("rolled", tests, make, clean);
}
