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
#include "hdf5/rolled.h"
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

static void open_rows(struct rows *r, const char *path)
{
	const struct sl_h5_shape image = {SL_H5_U16, 2, {SIDE, SIDE}}, number = {.type = SL_H5_U64};

	*r = (struct rows){.n = 0};
	assert_int_equal(sl_packer_init(&r->packer, SL_VECTORS_AUTO), 0);
	assert_int_equal(sl_h5_create_rolled(path, false, &r->file), 0);
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
static void write_and_die(const char *path)
{
	uint64_t end = sl_clock_ns() + UINT64_C(30000000000);
	struct rows r;

	open_rows(&r, path);
	append(&r, 10);
	assert_int_equal(sl_h5_roll(r.file), 0);
	append(&r, 7);
	assert_int_equal(sl_h5_flush(r.file, 17), 0);
	while (sl_h5_durable(r.file) < 17 && sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	append(&r, 3);
	kill(getpid(), SIGKILL);
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

/* HDF5 tells files of one process by their inode, so the writer is another process. */
static void readers_find_what_was_flushed(void **state)
{
	uint64_t flushed[3];
	hid_t access_list, id, dataset;
	struct sl_h5 *file;
	char text[256];
	pid_t child;
	int status;

	child = fork();
	if (!child) {
		write_and_die(in("live.nxs"));
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
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
	assert_int_equal(sl_h5_create_rolled(in("taken.nxs"), true, &file), 0);
	sl_h5_abandon(file);
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
		cmocka_unit_test(a_file_that_is_given_up_leaves_nothing),
		cmocka_unit_test(a_data_file_that_is_there_is_not_touched),
		cmocka_unit_test(a_data_file_that_was_cut_makes_the_run_fail),
		cmocka_unit_test(names_of_data_files),
	};

	return cmocka_run_group_tests_name("rolled", tests, make, clean);
}
