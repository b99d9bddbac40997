/* space_test.c - files whose disk or size limit ends before the data does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/handle.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

enum { SIDE = 256, PIXELS = SIDE * SIDE, IMAGE_BYTES = PIXELS * 2, PER_CHUNK = 100 };

static char scratch[256];

/* HDF5 leaks a buffer when a close fails; what this program tests is that it does no worse. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libhdf5";
}

static void fill(uint16_t *image, uint64_t number)
{
	for (uint32_t i = 0; i < PIXELS; i++)
		image[i] = (uint16_t)(number * 40503 + i * 7);
}

/* A file that takes images and a table row each, until it refuses or `most` are in. */
static int write_until(const char *path, uint64_t most, bool no_fallocate, uint64_t *accepted,
		       int *refusal)
{
	struct sl_h5_shape image = {SL_H5_U16, 2, {SIDE, SIDE}}, number = {.type = SL_H5_U64};
	struct sl_h5_series *images, *numbers;
	static uint16_t pixels[PIXELS];
	struct sl_h5 *file;
	int r = sl_h5_create(path, &file);

	*accepted = 0;
	*refusal = r;
	if (r)
		return r;
	file->no_fallocate = no_fallocate;
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_series_open(file, "/entry/image", &image, 1, &images);
	r = sl_h5_series_open(file, "/entry/number", &number, PER_CHUNK, &numbers);
	if (r) {
		sl_h5_abandon(file);
		return *refusal = r;
	}
	for (uint64_t n = 0; n < most; n++) {
		*refusal = sl_h5_reserve(file, IMAGE_BYTES);
		if (*refusal)
			break;
		fill(pixels, n);
		sl_h5_series_append(images, pixels);
		sl_h5_series_append(numbers, &n);
		*accepted = n + 1;
	}
	sl_h5_write_u64(file, "/entry/accepted", *accepted);
	return sl_h5_finish(file);
}

/* The line of the first thing that is wrong, or 0. */
static int check_file(const char *path, uint64_t accepted)
{
	static uint16_t expected[PIXELS], pixels[PIXELS];
	struct sl_h5_shape shape;
	struct sl_h5 *file;
	uint64_t value;
	int wrong = 0;

	if (sl_h5_open(path, &file))
		return __LINE__;
	if (sl_h5_describe(file, "/entry/image", &shape) || shape.dim[0] != accepted)
		wrong = __LINE__;
	if (sl_h5_read(file, "/entry/accepted", SL_H5_U64, &value, 8) || value != accepted)
		wrong = __LINE__;
	for (uint64_t n = 0; n < accepted && !wrong; n++) {
		fill(expected, n);
		if (sl_h5_read_row(file, "/entry/image", n, SL_H5_U16, pixels, IMAGE_BYTES) ||
		    memcmp(pixels, expected, IMAGE_BYTES))
			wrong = __LINE__;
		if (sl_h5_read_row(file, "/entry/number", n, SL_H5_U64, &value, 8) || value != n)
			wrong = __LINE__;
	}
	sl_h5_close(file);
	return wrong;
}

static void join(char *path, const char *folder, const char *name)
{
	snprintf(path, 512, "%s/%s", folder, name);
}

static void what_is_not_used_is_given_back(void **state)
{
	char path[512];
	uint64_t accepted;
	struct stat st;
	int refusal;

	(void)state;
	join(path, scratch, "small.h5");
	assert_int_equal(write_until(path, 10, false, &accepted, &refusal), 0);
	assert_int_equal(accepted, 10);
	assert_int_equal(check_file(path, 10), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 10 * IMAGE_BYTES);
	assert_true((uint64_t)st.st_blocks * 512 < 12 * IMAGE_BYTES + (1 << 20));
}

static void size_limit_refuses_and_keeps_what_was_accepted(void **state)
{
	char path[512];

	(void)state;
	join(path, scratch, "limited.h5");
	/* Odd sizes, so that the limit falls into images, tables and metadata. */
	for (uint64_t limit = (2 << 20) + 1; limit < 6 << 20; limit += 333331) {
		uint64_t accepted;
		int refusal, r;

		limit_file_size(limit);
		r = write_until(path, 1000, false, &accepted, &refusal);
		limit_file_size(0);
		assert_int_equal(r, 0);
		assert_int_equal(refusal, -EFBIG);
		assert_int_equal(check_file(path, accepted), 0);
	}
}

static void size_limit_is_used_well(void **state)
{
	char path[512];
	uint64_t accepted;
	int refusal;

	(void)state;
	join(path, scratch, "used.h5");
	limit_file_size(32 << 20);
	assert_int_equal(write_until(path, 1000, false, &accepted, &refusal), 0);
	limit_file_size(0);
	assert_int_equal(refusal, -EFBIG);
	assert_in_range(accepted * IMAGE_BYTES, 30 << 20, 32 << 20);
}

static void a_file_that_has_room_is_written_without_a_word(void **state)
{
	char path[512];
	uint64_t accepted;
	int refusal, r;

	(void)state;
	join(path, scratch, "silent.h5");
	capture_begin();
	r = write_until(path, 3, false, &accepted, &refusal);
	assert_string_equal(capture_end(), "");
	assert_int_equal(r, 0);
}

static void too_small_a_limit_fails_at_create(void **state)
{
	char path[512], part[512];
	const char *said;
	uint64_t accepted;
	int refusal;

	(void)state;
	join(path, scratch, "tiny.h5");
	join(part, scratch, "tiny.h5.part");
	limit_file_size(10000);
	capture_begin();
	assert_int_equal(write_until(path, 10, false, &accepted, &refusal), -EFBIG);
	said = capture_end();
	limit_file_size(0);
	assert_non_null(strstr(said, "tiny.h5"));
	assert_non_null(strstr(said, "reserve space for"));
	assert_non_null(strstr(said, strerror(EFBIG)));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(part, F_OK), -1);
}

/* What no reservation can foresee, such as an I/O error: HDF5's own write fails. The file is given
 * up, nothing crashes now or at exit, and later files are not affected. */
static void fail_hdf5_writes(struct sl_h5 *file)
{
	int *fd, full = open("/dev/full", O_RDWR);

	assert_true(full >= 0);
	assert_true(H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&fd) >= 0);
	assert_true(dup2(full, *fd) >= 0);
	close(full);
}

static void check_a_later_file(void)
{
	uint64_t accepted;
	char path[512];
	int refusal;

	join(path, scratch, "after.h5");
	assert_int_equal(write_until(path, 3, false, &accepted, &refusal), 0);
	assert_int_equal(check_file(path, 3), 0);
}

static void a_failing_write_gives_the_file_up_and_harms_no_other(void **state)
{
	struct sl_h5_shape image = {SL_H5_U16, 2, {SIDE, SIDE}};
	static uint16_t pixels[PIXELS];
	struct sl_h5_series *images;
	struct sl_h5 *file;
	char path[512];

	(void)state;
	join(path, scratch, "broken.h5");
	assert_int_equal(sl_h5_create(path, &file), 0);
	assert_int_equal(sl_h5_series_open(file, "/image", &image, 1, &images), 0);
	assert_int_equal(sl_h5_series_append(images, pixels), 0);
	fail_hdf5_writes(file);
	assert_int_equal(sl_h5_series_append(images, pixels), -ENOSPC);
	assert_int_equal(sl_h5_finish(file), -ENOSPC);
	assert_int_equal(access(path, F_OK), -1);
	check_a_later_file();
}

static void a_failing_close_gives_the_file_up_and_harms_no_other(void **state)
{
	struct sl_h5 *file;
	char path[512];

	(void)state;
	join(path, scratch, "unclosed.h5");
	assert_int_equal(sl_h5_create(path, &file), 0);
	assert_int_equal(sl_h5_write_u64(file, "/value", 1), 0);
	fail_hdf5_writes(file);
	assert_true(sl_h5_finish(file) < 0);
	assert_int_equal(access(path, F_OK), -1);
	check_a_later_file();
}

/* The limit sinks below what was reserved: the append sees it before HDF5 does. */
static void an_error_sticks_and_the_file_does_not_get_its_name(void **state)
{
	struct sl_h5_shape image = {SL_H5_U16, 2, {SIDE, SIDE}};
	static uint16_t pixels[PIXELS];
	struct sl_h5_series *images;
	char path[512], part[512];
	struct sl_h5 *file;

	(void)state;
	join(path, scratch, "stuck.h5");
	join(part, scratch, "stuck.h5.part");
	assert_int_equal(sl_h5_create(path, &file), 0);
	assert_int_equal(sl_h5_series_open(file, "/image", &image, 1, &images), 0);
	limit_file_size(4096);
	assert_int_equal(sl_h5_series_append(images, pixels), -EFBIG);
	limit_file_size(0);
	assert_int_equal(sl_h5_series_append(images, pixels), -EFBIG);
	assert_int_equal(sl_h5_group(file, "/more", "NXcollection"), -EFBIG);
	assert_int_equal(sl_h5_reserve(file, 1), -EFBIG);
	assert_int_equal(sl_h5_status(file), -EFBIG);
	assert_int_equal(sl_h5_finish(file), -EFBIG);
	assert_int_equal(access(path, F_OK), -1);
	/* HDF5 was not let fail, so even the part can be opened. */
	assert_int_equal(sl_h5_open(part, &file), 0);
	assert_int_equal(sl_h5_describe(file, "/image", &image), 0);
	assert_int_equal(image.dim[0], 0);
	sl_h5_close(file);
}

static int full_disk(const char *folder, bool no_fallocate)
{
	uint64_t accepted;
	char path[512];
	int refusal;

	join(path, folder, "full.h5");
	if (write_until(path, 100000, no_fallocate, &accepted, &refusal))
		return __LINE__;
	if (refusal != -ENOSPC || accepted < 5)
		return __LINE__;
	if (check_file(path, accepted))
		return __LINE__;
	return unlink(path) ? __LINE__ : 0;
}

/* Runs on a small tmpfs. Between rounds it gets fuller, so that the end falls elsewhere each time.
 */
static int tmpfs_check(const char *folder)
{
	int wrong = 0;

	for (unsigned round = 0; round < 12 && !wrong; round++) {
		char path[512], name[32];
		int fd;

		wrong = full_disk(folder, round % 3 == 2);
		snprintf(name, sizeof(name), "ballast%u", round);
		join(path, folder, name);
		fd = open(path, O_CREAT | O_WRONLY, 0666);
		if (fd < 0 || fallocate(fd, 0, 0, 8192 * (off_t)(round + 1)))
			wrong = __LINE__;
		close(fd);
	}
	if (wrong)
		fprintf(stderr, "space_test.c:%d: wrong\n", wrong);
	return wrong;
}

static void full_disk_refuses_and_keeps_what_was_accepted(void **state)
{
	static const char *const size[] = {"3500k", "5m", "8m"};

	(void)state;
	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		int status = run_on_tmpfs(scratch, size[i]);

		if (status == TESTING_NOT_ALLOWED) {
			print_message(
				"# skipped: no mount namespace with a tmpfs is allowed here\n");
			skip();
		}
		assert_int_equal(status, 0);
	}
}

static int setup(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	scratch_make(scratch, sizeof(scratch));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_remove(scratch);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_used_is_given_back),
		cmocka_unit_test(size_limit_refuses_and_keeps_what_was_accepted),
		cmocka_unit_test(size_limit_is_used_well),
		cmocka_unit_test(a_file_that_has_room_is_written_without_a_word),
		cmocka_unit_test(too_small_a_limit_fails_at_create),
		cmocka_unit_test(an_error_sticks_and_the_file_does_not_get_its_name),
		cmocka_unit_test(a_failing_write_gives_the_file_up_and_harms_no_other),
		cmocka_unit_test(a_failing_close_gives_the_file_up_and_harms_no_other),
		cmocka_unit_test(full_disk_refuses_and_keeps_what_was_accepted),
	};

	tmpfs_child(argc, argv, tmpfs_check);
	return cmocka_run_group_tests(tests, setup, teardown);
}
