/* file_test.c - what was written is what is read, and a file has its name only when it is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "codec/pack.h"
#include "hdf5/file.h"
#include "hdf5/series.h"
#include "hdf5/testing.h"

static char scratch[256], path[512], part[520];

static int setup(void **state)
{
	(void)state;
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/file.h5", scratch);
	snprintf(part, sizeof(part), "%s.part", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_remove(scratch);
	return 0;
}

static struct sl_h5 *begin(void)
{
	struct sl_h5 *file = NULL;

	assert_int_equal(sl_h5_create(path, &file), 0);
	return file;
}

static struct sl_h5 *finish_and_open(struct sl_h5 *file)
{
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	return file;
}

static void numbers_of_every_type_come_back(void **state)
{
	struct sl_h5 *file = begin();
	char name[16];

	(void)state;
	for (enum sl_h5_type type = SL_H5_U8; type < SL_H5_TEXT; type++) {
		struct sl_h5_shape shape = {type, 2, {2, 3}};
		uint8_t data[48];

		memset(data, 0x11 + (int)type, sizeof(data));
		snprintf(name, sizeof(name), "/type%d", (int)type);
		assert_int_equal(sl_h5_write(file, name, &shape, data), 0);
	}
	file = finish_and_open(file);
	for (enum sl_h5_type type = SL_H5_U8; type < SL_H5_TEXT; type++) {
		size_t bytes = 6 * sl_h5_type_bytes(type);
		struct sl_h5_shape shape;
		uint8_t data[48], expected[48];

		memset(expected, 0x11 + (int)type, sizeof(expected));
		snprintf(name, sizeof(name), "/type%d", (int)type);
		assert_int_equal(sl_h5_describe(file, name, &shape), 0);
		assert_int_equal(shape.type, type);
		assert_int_equal(shape.rank, 2);
		assert_int_equal(shape.dim[0], 2);
		assert_int_equal(shape.dim[1], 3);
		assert_int_equal(sl_h5_read(file, name, type, data, bytes), 0);
		assert_memory_equal(data, expected, bytes);
	}
	sl_h5_close(file);
}

static void scalars_have_rank_0_and_units(void **state)
{
	struct sl_h5 *file = begin();
	struct sl_h5_shape shape;
	uint64_t integer;
	double real;
	char text[16];

	(void)state;
	sl_h5_write_u64(file, "/integer", UINT64_MAX);
	sl_h5_write_f64(file, "/real", 0.25, "m");
	file = finish_and_open(file);
	assert_int_equal(sl_h5_describe(file, "/integer", &shape), 0);
	assert_int_equal(shape.rank, 0);
	assert_int_equal(sl_h5_read(file, "/integer", SL_H5_U64, &integer, 8), 0);
	assert_true(integer == UINT64_MAX);
	assert_int_equal(sl_h5_read(file, "/real", SL_H5_F64, &real, 8), 0);
	assert_true(real == 0.25);
	assert_int_equal(sl_h5_read_attribute_text(file, "/real", "units", text, 16), 0);
	assert_string_equal(text, "m");
	sl_h5_close(file);
}

static void texts_come_back_and_are_cut_to_fit(void **state)
{
	const char *const names[] = {"one", "", "drei \xc3\xa4"};
	struct sl_h5 *file = begin();
	struct sl_h5_shape shape;
	char text[32];

	(void)state;
	sl_h5_write_text(file, "/text", "a line\nand another");
	sl_h5_write_texts(file, "/names", names, 3);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_describe(file, "/names", &shape), 0);
	assert_int_equal(shape.type, SL_H5_TEXT);
	assert_int_equal(shape.dim[0], 3);
	assert_int_equal(sl_h5_read_text(file, "/text", 0, text, sizeof(text)), 0);
	assert_string_equal(text, "a line\nand another");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_h5_read_text(file, "/names", i, text, sizeof(text)), 0);
		assert_string_equal(text, names[i]);
	}
	assert_int_equal(sl_h5_read_text(file, "/names", 3, text, sizeof(text)), -ERANGE);
	assert_int_equal(sl_h5_read_text(file, "/text", 0, text, 7), 0);
	assert_string_equal(text, "a line");
	sl_h5_close(file);
}

static void attributes_and_classes_come_back(void **state)
{
	const double vector[3] = {-1, 0, 0.5};
	struct sl_h5 *file = begin();
	double read[3];
	uint64_t n = 7;
	char text[16];

	(void)state;
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_attribute_text(file, "/", "default", "entry");
	sl_h5_attribute(file, "/entry", "vector", SL_H5_F64, 3, vector);
	sl_h5_attribute(file, "/entry", "n", SL_H5_U64, 0, &n);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_read_attribute_text(file, "/", "default", text, 16), 0);
	assert_string_equal(text, "entry");
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry", "NX_class", text, 16), 0);
	assert_string_equal(text, "NXentry");
	assert_int_equal(sl_h5_read_attribute(file, "/entry", "vector", SL_H5_F64, read, 24), 0);
	assert_memory_equal(read, vector, 24);
	n = 0;
	assert_int_equal(sl_h5_read_attribute(file, "/entry", "n", SL_H5_U64, &n, 8), 0);
	assert_int_equal(n, 7);
	assert_int_equal(sl_h5_read_attribute(file, "/entry", "n", SL_H5_U64, read, 24), -EMSGSIZE);
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry", "n", text, 16), -EINVAL);
	assert_int_equal(sl_h5_read_attribute_text(file, "/entry", "no", text, 16), -ENOENT);
	assert_int_equal(sl_h5_read_attribute_text(file, "/no", "n", text, 16), -ENOENT);
	sl_h5_close(file);
}

static void soft_links_lead_to_the_data(void **state)
{
	struct sl_h5 *file = begin();
	struct sl_h5_shape shape;
	uint64_t value;

	(void)state;
	sl_h5_group(file, "/a", "NXcollection");
	sl_h5_link(file, "/a/link", "/value");
	sl_h5_link(file, "/a/nowhere", "/nothing");
	sl_h5_write_u64(file, "/value", 42);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_read(file, "/a/link", SL_H5_U64, &value, 8), 0);
	assert_int_equal(value, 42);
	assert_int_equal(sl_h5_describe(file, "/a/nowhere", &shape), -ENOENT);
	sl_h5_close(file);
}

/* Rows of [2] u32 in chunks of 4: before, at and after the end of a chunk. */
static void series_of_any_length_come_back(void **state)
{
	struct sl_h5_shape row = {SL_H5_U32, 1, {2}};
	static const uint64_t lengths[] = {0, 1, 3, 4, 5, 8, 1001};

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct sl_h5 *file = begin();
		struct sl_h5_series *series = NULL;
		struct sl_h5_shape shape;
		uint32_t data[2002];

		assert_int_equal(sl_h5_series_open(file, "/rows", &row, 4, &series), 0);
		for (uint32_t n = 0; n < lengths[i]; n++) {
			uint32_t pair[2] = {n, ~n};

			assert_int_equal(sl_h5_series_append(series, pair), 0);
			assert_int_equal(sl_h5_series_rows(series), n + 1);
		}
		file = finish_and_open(file);
		assert_int_equal(sl_h5_describe(file, "/rows", &shape), 0);
		assert_int_equal(shape.rank, 2);
		assert_int_equal(shape.dim[0], lengths[i]);
		assert_int_equal(shape.dim[1], 2);
		assert_int_equal(sl_h5_read(file, "/rows", SL_H5_U32, data, lengths[i] * 8), 0);
		for (uint32_t n = 0; n < lengths[i]; n++) {
			assert_int_equal(data[2 * n], n);
			assert_int_equal(data[2 * n + 1], ~n);
		}
		sl_h5_close(file);
	}
}

/* Nothing of earlier rows is left behind them, where tools that look at chunks would find it. */
static void chunk_of_seven_rows(bool shown)
{
	static const struct sl_h5_shape row = {SL_H5_U32, 1, {2}};
	const hsize_t last[] = {4, 0};
	uint32_t pair[2] = {1, 2}, chunk[8], mask;
	struct sl_h5_series *series;
	struct sl_h5 *file = begin();
	hid_t id, dataset;

	assert_int_equal(sl_h5_series_open(file, "/rows", &row, 4, &series), 0);
	for (unsigned n = 0; n < 7; n++) {
		if (shown)
			assert_int_equal(sl_h5_series_show(series), 0);
		assert_int_equal(sl_h5_series_append(series, pair), 0);
	}
	assert_int_equal(sl_h5_finish(file), 0);
	id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	dataset = H5Dopen2(id, "/rows", H5P_DEFAULT);
	assert_true(H5Dread_chunk(dataset, H5P_DEFAULT, last, &mask, chunk) >= 0);
	for (unsigned n = 0; n < 8; n++)
		assert_int_equal(chunk[n], n < 6 ? pair[n % 2] : 0);
	assert_true(H5Dclose(dataset) >= 0 && H5Fclose(id) >= 0);
}

static void a_chunk_that_is_not_full_ends_with_zeros(void **state)
{
	(void)state;
	chunk_of_seven_rows(false);
	chunk_of_seven_rows(true); /* before it was full, too */
}

static void images_come_back_row_by_row(void **state)
{
	struct sl_h5_shape image = {SL_H5_I16, 2, {5, 7}};
	struct sl_h5 *file = begin();
	struct sl_h5_series *series;
	int16_t pixels[35];
	float converted[35];

	(void)state;
	assert_int_equal(sl_h5_series_open(file, "/images", &image, 1, &series), 0);
	for (int n = 0; n < 300; n++) {
		for (int i = 0; i < 35; i++)
			pixels[i] = (int16_t)(i - n);
		assert_int_equal(sl_h5_series_append(series, pixels), 0);
	}
	file = finish_and_open(file);
	for (int n = 299; n >= 0; n -= 23) {
		assert_int_equal(sl_h5_read_row(file, "/images", (uint64_t)n, SL_H5_I16, pixels,
						sizeof(pixels)),
				 0);
		assert_int_equal(sl_h5_read_row(file, "/images", (uint64_t)n, SL_H5_F32, converted,
						sizeof(converted)),
				 0);
		for (int i = 0; i < 35; i++) {
			assert_int_equal(pixels[i], i - n);
			assert_true(converted[i] == (float)(i - n));
		}
	}
	assert_int_equal(sl_h5_read_row(file, "/images", 300, SL_H5_I16, pixels, sizeof(pixels)),
			 -ERANGE);
	assert_int_equal(sl_h5_read_row(file, "/images", 0, SL_H5_I16, pixels, 4), -EMSGSIZE);
	sl_h5_close(file);
}

static void impossible_series_are_refused(void **state)
{
	struct sl_h5_shape shapes[] = {
		{SL_H5_TEXT, 0, {0}},
		{SL_H5_U8, 5, {1, 1, 1, 1, 1}},
		{SL_H5_U8, 1, {0}},
		{SL_H5_U64, 3, {1 << 20, 1 << 20, 1 << 20}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct sl_h5 *file = begin();
		struct sl_h5_series *series = NULL;

		assert_int_equal(sl_h5_series_open(file, "/rows", &shapes[i], 16, &series),
				 -EINVAL);
		assert_null(series);
		sl_h5_abandon(file);
	}
}

static void the_name_appears_only_at_the_end(void **state)
{
	struct sl_h5 *file = begin();

	(void)state;
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(part, F_OK), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(part, F_OK), -1);
}

static void an_existing_file_is_replaced_only_at_the_end(void **state)
{
	struct sl_h5 *file = begin(), *old;
	uint64_t value;

	(void)state;
	sl_h5_write_u64(file, "/value", 1);
	assert_int_equal(sl_h5_finish(file), 0);
	file = begin();
	sl_h5_write_u64(file, "/value", 2);
	assert_int_equal(sl_h5_open(path, &old), 0);
	assert_int_equal(sl_h5_read(old, "/value", SL_H5_U64, &value, 8), 0);
	assert_int_equal(value, 1);
	sl_h5_close(old);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_read(file, "/value", SL_H5_U64, &value, 8), 0);
	assert_int_equal(value, 2);
	sl_h5_close(file);
}

static void an_abandoned_file_leaves_nothing(void **state)
{
	struct sl_h5_shape row = {SL_H5_U8, 0, {0}};
	struct sl_h5_series *series;
	struct sl_h5 *file = begin();
	uint8_t value = 1;

	(void)state;
	assert_int_equal(sl_h5_series_open(file, "/rows", &row, 16, &series), 0);
	assert_int_equal(sl_h5_series_append(series, &value), 0);
	sl_h5_abandon(file);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(part, F_OK), -1);
}

static void a_stale_part_is_overwritten(void **state)
{
	int fd = open(part, O_CREAT | O_WRONLY, 0666);
	struct sl_h5 *file;

	(void)state;
	assert_int_equal(write(fd, "rubbish", 7), 7);
	close(fd);
	file = finish_and_open(begin());
	sl_h5_close(file);
}

static void two_writers_of_one_path_are_told(void **state)
{
	struct sl_h5 *file = begin(), *other = NULL;
	uint64_t value;

	(void)state;
	sl_h5_write_u64(file, "/value", 5);
	assert_int_equal(sl_h5_create(path, &other), -EBUSY);
	assert_null(other);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_read(file, "/value", SL_H5_U64, &value, 8), 0);
	assert_int_equal(value, 5);
	sl_h5_close(file);
}

/* 100 images of a kilobyte; `spoil` is called after the 60th. */
static int spoilt(void (*spoil)(void))
{
	const struct sl_h5_shape row = {.type = SL_H5_U16, .rank = 2, .dim = {16, 32}};
	struct sl_h5_series *images, *numbers;
	uint16_t image[16 * 32];
	struct sl_h5 *file = begin();

	assert_int_equal(sl_h5_series_open(file, "/images", &row, 1, &images), 0);
	assert_int_equal(sl_h5_series_open(file, "/numbers",
					   &(struct sl_h5_shape){.type = SL_H5_U64}, 32, &numbers),
			 0);
	for (uint64_t i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 16 * 32; k++)
			image[k] = (uint16_t)(i * 7 + k + 1);
		assert_int_equal(sl_h5_series_append(images, image), 0);
		assert_int_equal(sl_h5_series_append(numbers, &i), 0);
		if (i == 60)
			spoil();
	}
	return sl_h5_finish(file);
}

static void empty_it(void)
{
	assert_int_equal(truncate(part, 0), 0);
}

static void cut_it(void)
{
	struct stat st;

	assert_int_equal(stat(part, &st), 0);
	assert_int_equal(truncate(part, st.st_size / 2), 0);
}

static void overwrite_it(void)
{
	static const uint8_t zeros[8192];
	int fd = open(part, O_WRONLY);
	struct stat st;

	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), st.st_size / 2), sizeof(zeros));
	close(fd);
}

static void remove_it(void)
{
	assert_int_equal(unlink(part), 0);
}

static void plant_another(void)
{
	FILE *file;

	assert_int_equal(unlink(part), 0);
	file = fopen(part, "w");
	fputs("planted", file);
	fclose(file);
}

static void leave_it(void)
{
}

static void what_other_programs_do_to_a_file_is_noticed(void **state)
{
	static void (*const spoil[])(void) = {empty_it, cut_it, overwrite_it, remove_it,
					      plant_another};
	for (unsigned i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		assert_true(spoilt(spoil[i]) < 0);
		assert_int_not_equal(access(path, F_OK), 0);
	}
	assert_int_equal(spoilt(leave_it), 0);
	assert_int_equal(access(path, F_OK), 0);
}

static void missing_folders_are_made(void **state)
{
	struct sl_h5 *file = NULL;
	char deep[600];

	(void)state;
	snprintf(deep, sizeof(deep), "%s/a/b//c/file.h5", scratch);
	assert_int_equal(sl_h5_create(deep, &file), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(access(deep, F_OK), 0);
}

static void a_path_without_a_folder_works(void **state)
{
	struct sl_h5 *file = NULL;
	char before[512];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(scratch), 0);
	assert_int_equal(sl_h5_create("bare.h5", &file), 0);
	assert_int_equal(sl_h5_finish(file), 0);
	assert_int_equal(access("bare.h5", F_OK), 0);
	assert_int_equal(chdir(before), 0);
}

static void paths_that_cannot_be_written_fail_at_create(void **state)
{
	struct sl_h5 *file = NULL;
	char bad[600];
	int fd;

	(void)state;
	assert_int_equal(sl_h5_create(scratch, &file), -EISDIR);
	snprintf(bad, sizeof(bad), "%s/plain", scratch);
	fd = open(bad, O_CREAT | O_WRONLY, 0666);
	close(fd);
	snprintf(bad, sizeof(bad), "%s/plain/file.h5", scratch);
	assert_int_equal(sl_h5_create(bad, &file), -ENOTDIR);
	assert_null(file);
}

static void what_is_not_hdf5_is_not_opened(void **state)
{
	struct sl_h5 *file = NULL;
	int fd = open(path, O_CREAT | O_WRONLY, 0666);

	(void)state;
	assert_int_equal(write(fd, "not HDF5 at all", 15), 15);
	close(fd);
	assert_true(sl_h5_open(path, &file) < 0);
	unlink(path);
	assert_int_equal(sl_h5_open(path, &file), -ENOENT);
	assert_null(file);
}

static void reading_wrongly_is_an_error_and_does_not_stick(void **state)
{
	struct sl_h5 *file = begin();
	struct sl_h5_shape shape;
	uint64_t value = 0;
	char text[8];

	(void)state;
	sl_h5_group(file, "/group", "NXcollection");
	sl_h5_write_u64(file, "/group/value", 3);
	file = finish_and_open(file);
	assert_int_equal(sl_h5_read(file, "/group/none", SL_H5_U64, &value, 8), -ENOENT);
	assert_int_equal(sl_h5_read(file, "/none/at/all", SL_H5_U64, &value, 8), -ENOENT);
	assert_true(sl_h5_describe(file, "/group", &shape) < 0);
	assert_int_equal(sl_h5_read(file, "/group/value", SL_H5_U64, &value, 4), -EMSGSIZE);
	assert_int_equal(sl_h5_read_text(file, "/group/value", 0, text, 8), -EINVAL);
	assert_int_equal(value, 0);
	assert_int_equal(sl_h5_read(file, "/group/value", SL_H5_U64, &value, 8), 0);
	assert_int_equal(value, 3);
	sl_h5_close(file);
}

static void writing_wrongly_sticks(void **state)
{
	struct sl_h5 *file = begin();
	uint64_t value = 0;

	(void)state;
	assert_int_equal(sl_h5_write_u64(file, "/value", value), 0);
	assert_true(sl_h5_write_u64(file, "/value", value) < 0); /* exists */
	assert_true(sl_h5_status(file) < 0);
	assert_true(sl_h5_write_u64(file, "/other", value) < 0);
	assert_true(sl_h5_finish(file) < 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void two_files_of_the_same_data_are_the_same(void **state)
{
	struct sl_h5_shape row = {SL_H5_U64, 0, {0}};
	static char bytes[2][1 << 17];
	ssize_t size[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sl_h5 *file = begin();
		struct sl_h5_series *series;
		int fd;

		sl_h5_group(file, "/entry", "NXentry");
		sl_h5_write_text(file, "/entry/text", "text");
		assert_int_equal(sl_h5_series_open(file, "/entry/rows", &row, 8, &series), 0);
		for (uint64_t n = 0; n < 100; n++)
			sl_h5_series_append(series, &n);
		assert_int_equal(sl_h5_finish(file), 0);
		fd = open(path, O_RDONLY);
		size[i] = read(fd, bytes[i], sizeof(bytes[i]));
		close(fd);
		if (!i)
			usleep(1100 * 1000); /* HDF5's time stamps count seconds */
	}
	assert_int_equal(size[0], size[1]);
	assert_in_range(size[0], 1000, sizeof(bytes[0]) - 1);
	assert_memory_equal(bytes[0], bytes[1], (size_t)size[0]);
}

/* The client data of the bitshuffle filter 0.3.5 are its version (two numbers), the size of an
 * element, the size of a block (0: its own choice) and the compressor. Its decoder takes element
 * and block size from there; others look at the version, too. */
static void packed_series_name_their_filter_as_bitshuffle_does(void **state)
{
	static const struct {
		enum sl_codec codec;
		H5Z_filter_t id;
		size_t n;
		unsigned cd[5];
	} cases[] = {{SL_CODEC_BSLZ4, 32008, 5, {0, 4, 2, 0, 2}},
		     {SL_CODEC_BSZSTD, 32008, 5, {0, 4, 2, 0, 3}},
		     {SL_CODEC_LZ4, 32004, 1, {SL_PACK_LZ4_BYTES}}};
	const struct sl_h5_shape image = {SL_H5_U16, 2, {8, 16}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_h5 *file = begin();
		struct sl_h5_series *series;
		unsigned flags, cd[8] = {0}, config;
		size_t n = sizeof(cd) / sizeof(cd[0]);
		hid_t id, dataset, properties;
		char name[16];

		assert_int_equal(
			sl_h5_series_open_packed(file, "/x", &image, cases[i].codec, 1, &series),
			0);
		assert_int_equal(sl_h5_finish(file), 0);
		id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
		dataset = H5Dopen2(id, "/x", H5P_DEFAULT);
		properties = H5Dget_create_plist(dataset);
		assert_int_equal(H5Pget_nfilters(properties), 1);
		assert_int_equal(
			H5Pget_filter2(properties, 0, &flags, &n, cd, sizeof(name), name, &config),
			cases[i].id);
		assert_int_equal(n, cases[i].n);
		assert_memory_equal(cd, cases[i].cd, n * sizeof(*cd));
		H5Pclose(properties);
		H5Dclose(dataset);
		H5Fclose(id);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void count_series(void *arg, struct sl_h5_series *series, const char *path)
{
	assert_non_null(series);
	*(int *)arg += !strcmp(path, "/a") + !strcmp(path, "/b");
}

/* Also what was appended before, as long as it is buffered. */
static void a_series_that_is_watched_sums_up_its_rows(void **state)
{
	const struct sl_h5_shape number = {.type = SL_H5_U32};
	const uint32_t row[] = {7, 8, 9, 10};
	struct sl_h5_series *a, *b;
	struct sl_h5 *file = begin();
	uint32_t crc;
	int found = 0;

	(void)state;
	assert_int_equal(sl_h5_series_open(file, "/a", &number, 8, &a), 0);
	assert_int_equal(sl_h5_series_open(file, "/b", &number, 1, &b), 0);
	sl_h5_series_each(file, count_series, &found);
	assert_int_equal(found, 2);
	sl_h5_series_append(a, &row[0]);
	sl_h5_series_watch(a);
	sl_h5_series_watch(b);
	sl_h5_series_append_rows(a, &row[1], 2);
	assert_int_equal(sl_h5_series_take(a, &crc), 3);
	assert_int_equal(crc, sl_crc32c(0, row, 3 * sizeof(*row)));
	assert_int_equal(sl_h5_series_take(a, &crc), 0);
	assert_int_equal(crc, 0);
	sl_h5_series_append(b, &row[3]);
	assert_int_equal(sl_h5_series_take(b, &crc), 1);
	assert_int_equal(crc, sl_crc32c(0, &row[3], sizeof(*row)));
	sl_h5_abandon(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(numbers_of_every_type_come_back),
		CASE(scalars_have_rank_0_and_units),
		CASE(texts_come_back_and_are_cut_to_fit),
		CASE(attributes_and_classes_come_back),
		CASE(soft_links_lead_to_the_data),
		CASE(series_of_any_length_come_back),
		CASE(a_chunk_that_is_not_full_ends_with_zeros),
		CASE(images_come_back_row_by_row),
		CASE(impossible_series_are_refused),
		CASE(the_name_appears_only_at_the_end),
		CASE(an_existing_file_is_replaced_only_at_the_end),
		CASE(an_abandoned_file_leaves_nothing),
		CASE(a_stale_part_is_overwritten),
		CASE(two_writers_of_one_path_are_told),
		CASE(what_other_programs_do_to_a_file_is_noticed),
		CASE(missing_folders_are_made),
		CASE(a_path_without_a_folder_works),
		CASE(paths_that_cannot_be_written_fail_at_create),
		CASE(what_is_not_hdf5_is_not_opened),
		CASE(reading_wrongly_is_an_error_and_does_not_stick),
		CASE(writing_wrongly_sticks),
		CASE(two_files_of_the_same_data_are_the_same),
		CASE(a_series_that_is_watched_sums_up_its_rows),
		CASE(packed_series_name_their_filter_as_bitshuffle_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
