/* mask_test.c - masks by hand: npy, TIFF and EDF, and the shapes that a detector has. Files as
 * fabio and h5py write them are in tests/reference/geometry_reference.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "geometry/mask.h"
#include "lib/capture.h"

/* Two modules of 4 x 6 in 2 x 2 ASICs with wide pixels. */
static const struct sl_geometry two = {
	.modules = 2,
	.rows = 4,
	.columns = 6,
	.layout = {.rows = 14,
		   .columns = 8,
		   .asic_rows = 2,
		   .asic_columns = 3,
		   .gap = 2,
		   .module = {{.row = 0}, {.row = 7, .column = 0}}},
};

/* A file of npy with that header and so many bytes, of which one is set. */
static size_t make_npy(uint8_t *data, const char *header, size_t bytes, size_t set)
{
	size_t length = strlen(header);

	memcpy(data, "\x93NUMPY\x01\x00", 8);
	data[8] = (uint8_t)length;
	data[9] = 0;
	memcpy(data + 10, header, length);
	memset(data + 10 + length, 0, bytes);
	if (set < bytes)
		data[10 + length + set] = 1;
	return 10 + length + bytes;
}

static int read_bytes(const uint8_t *data, size_t bytes, uint8_t *mask)
{
	char path[] = "/tmp/sluice-test-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
	memset(mask, 0, 48);
	err = sl_mask_read(path, &two, mask);
	unlink(path);
	return err;
}

static int masked(const uint8_t *mask)
{
	int n = 0;

	for (int i = 0; i < 48; i++)
		n += mask[i];
	return n;
}

static void npy_of_every_shape(void **state)
{
	uint8_t data[4096], mask[48];
	size_t n;

	(void)state;
	/* Modules one below the other: row 5, column 2. */
	n = make_npy(data, "{'descr': '<u2', 'fortran_order': False, 'shape': (8, 6), }", 96,
		     2 * (5 * 6 + 2) + 1);
	assert_int_equal(read_bytes(data, n, mask), 0);
	assert_true(masked(mask) == 1 && mask[24 + 6 + 2]);
	n = make_npy(data, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 4, 6), }", 48,
		     47);
	assert_int_equal(read_bytes(data, n, mask), 0);
	assert_true(masked(mask) == 1 && mask[47]);
	/* Columns first: element 8 is row 0, column 1. */
	n = make_npy(data, "{'descr': '|u1', 'fortran_order': True, 'shape': (8, 6), }", 48, 8);
	assert_int_equal(read_bytes(data, n, mask), 0);
	assert_true(masked(mask) == 1 && mask[1]);
	/* Of the assembled image row 2, column 4: a part of the wide pixel (1, 3). */
	n = make_npy(data, "{'descr': '<f4', 'fortran_order': False, 'shape': (14, 8), }", 448,
		     4 * (2 * 8 + 4));
	assert_int_equal(read_bytes(data, n, mask), 0);
	assert_true(masked(mask) == 1 && mask[6 + 3]);
	/* A gap, and minus zero. */
	n = make_npy(data, "{'descr': '<f4', 'fortran_order': False, 'shape': (14, 8), }", 448,
		     4 * (6 * 8 + 4));
	data[n - 1] = 0x80;
	assert_int_equal(read_bytes(data, n, mask), 0);
	assert_int_equal(masked(mask), 0);
}

static void expect_refused(const uint8_t *data, size_t bytes, const char *message)
{
	uint8_t mask[48];
	const char *text;
	int err;

	capture_begin();
	err = read_bytes(data, bytes, mask);
	text = capture_end();
	if (err != -EINVAL || !strstr(text, message))
		fail_msg("%d, '%s' instead of '%s'", err, text, message);
}

static void what_is_no_mask_is_refused(void **state)
{
	uint8_t data[4096];
	size_t n;

	(void)state;
	n = make_npy(data, "{'descr': '|u1', 'fortran_order': False, 'shape': (8, 7), }", 56, 0);
	expect_refused(data, n,
		       "is 8 x 7; the detector is 14 x 8 assembled, 8 x 6 with modules one "
		       "below the other, or 2 x 4 x 6");
	n = make_npy(data, "{'descr': '|u1', 'fortran_order': False, 'shape': (8, 6), }", 47, 0);
	expect_refused(data, n, "it ends too soon");
	n = make_npy(data, "{'descr': '<c8', 'fortran_order': False, 'shape': (8, 6), }", 384, 0);
	expect_refused(data, n, "booleans, integers or floats");
	n = make_npy(data, "{'descr': '|u1', 'fortran_order': False, 'shape': (48,), }", 48, 0);
	expect_refused(data, n, "it has 1 dimensions");
	data[8] = 255;
	data[9] = 255;
	expect_refused(data, n, "its header is cut off");
	expect_refused((const uint8_t *)"text", 4, "none of HDF5, npy, TIFF and EDF");
	expect_refused((const uint8_t *)"{ Dim_1 = 6 ;", 13, "its header does not end");
	expect_refused((const uint8_t *)"{ Dim_1 = 6 ;}\n", 15, "its header has no DataType");
	expect_refused((const uint8_t *)"{ DataType = Odd ;}\n", 20, "'Odd' is not known");
	expect_refused((const uint8_t *)"II*\0\x08\0\0\0\0\0", 10, "one number of 8, 16");
}

/* A packed file is no mask; the message says so, and of no other file. */
static void a_compressed_file_is_named_as_such(void **state)
{
	static const struct {
		uint8_t data[4];
		size_t bytes;
		bool packed;
	} cases[] = {{{0x1f, 0x8b, 8, 0}, 4, true},  {{0x1f, 0x8b}, 2, true},
		     {{0x1f, 0x8b}, 1, false},	     {{0x1f, 0x8c, 8, 0}, 4, false},
		     {{0x20, 0x8b, 8, 0}, 4, false}, {{'t', 'e', 'x', 't'}, 4, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_mask_image image;
		char why[SL_MASK_WHY] = "";

		assert_int_equal(sl_mask_parse(cases[i].data, cases[i].bytes, &image, why),
				 -EINVAL);
		assert_string_equal(why, cases[i].packed ? "it is none of HDF5, npy, TIFF and EDF: "
							   "it is compressed by gzip"
							 : "it is none of HDF5, npy, TIFF and EDF");
	}
}

static void edf_by_hand(void **state)
{
	static const char header[] = "{\nByteOrder = LowByteFirst ;\nDim_1 = 6 ;\nDim_2 = 8 ;\n"
				     "DataType = UnsignedByte ;\n}\n";
	uint8_t data[512] = {0}, mask[48];

	(void)state;
	memcpy(data, header, sizeof(header) - 1);
	data[sizeof(header) - 1 + 13] = 255;
	assert_int_equal(read_bytes(data, sizeof(header) - 1 + 48, mask), 0);
	assert_true(masked(mask) == 1 && mask[13]);
}

/* A float of every kind of file: NaN is no mask, and no label. */
static void nan_is_found(void **state)
{
	static const struct sl_mask_numbers kinds[] = {{2, true, false},
						       {4, true, false},
						       {4, true, true},
						       {8, true, false},
						       {8, true, true}};
	static const uint8_t f16[] = {0x01, 0x7c}, f32[] = {0, 0, 0xc0, 0x7f};
	static const uint8_t f32_big[] = {0xff, 0x80, 0, 1}, f64[] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
	static const uint8_t f64_big[] = {0x7f, 0xf0, 0, 0, 0, 0, 0, 1};
	static const uint8_t *const nan[] = {f16, f32, f32_big, f64, f64_big};
	static const uint8_t infinite[] = {0, 0, 0x80, 0x7f}, one[] = {0, 0, 0x80, 0x3f};
	const struct sl_mask_numbers whole = {4, false, false};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_int_equal(sl_mask_number(&kinds[i], nan[i]), SL_MASK_NAN);
	assert_int_equal(sl_mask_number(&kinds[1], infinite), SL_MASK_OTHER);
	assert_int_equal(sl_mask_number(&kinds[1], one), 1);
	assert_int_equal(sl_mask_number(&whole, f32), 0x7fc00000);
}

static void numbers_are_labels_or_are_not(void **state)
{
	static const uint8_t half[] = {0, 0x56}, tiny[] = {1, 0}, minus_zero[] = {0, 0x80};
	static const uint8_t minus_one[] = {0xff, 0xff, 0xff, 0xff},
			     third[] = {0xab, 0xaa, 0xaa, 0x3e};
	static const uint8_t big[] = {0x12, 0x34}, long_one[] = {0, 0, 0, 0, 1, 0, 0, 0};
	const struct sl_mask_numbers f16 = {2, true}, f32 = {4, true}, u16_big = {2, false, true};
	const struct sl_mask_numbers i32 = {4, false, false, true}, u32 = {4}, u64 = {8};

	assert_int_equal(sl_mask_number(&f16, half), 96);
	assert_int_equal(sl_mask_number(&f16, tiny), SL_MASK_OTHER);
	assert_int_equal(sl_mask_number(&f16, minus_zero), 0);
	assert_int_equal(sl_mask_number(&f32, third), SL_MASK_OTHER);
	assert_int_equal(sl_mask_number(&u16_big, big), 0x1234);
	assert_int_equal(sl_mask_number(&i32, minus_one), SL_MASK_OTHER);
	assert_int_equal(sl_mask_number(&u32, minus_one), SL_MASK_OTHER);
	assert_int_equal(sl_mask_number(&u64, long_one), SL_MASK_OTHER);
}

static int read_labels(const uint8_t *data, size_t bytes, uint32_t *label)
{
	char path[] = "/tmp/sluice-test-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
	err = sl_labels_read(path, "correlate.labels", &two, label);
	unlink(path);
	return err;
}

static void labels_keep_their_numbers(void **state)
{
	uint32_t label[48], sum = 0;
	uint8_t data[4096];
	const char *text;
	size_t n;

	n = make_npy(data, "{'descr': '<i2', 'fortran_order': False, 'shape': (8, 6), }", 96,
		     2 * (5 * 6 + 2) + 1);
	assert_int_equal(read_labels(data, n, label), 0);
	for (int i = 0; i < 48; i++)
		sum += label[i];
	assert_true(sum == 256 && label[24 + 6 + 2] == 256);
	data[n - 1] = 0x80; /* of the last pixel, the sign */
	capture_begin();
	assert_int_equal(read_labels(data, n, label), -EINVAL);
	text = capture_end();
	assert_non_null(strstr(text, "correlate.labels"));
	assert_non_null(strstr(text, "is no label"));
	n = make_npy(data, "{'descr': '<f8', 'fortran_order': False, 'shape': (14, 8), }", 896, 9);
	data[n - 896 + 9] = 0;
	for (int i = 0; i < 112; i++) /* 3, everywhere */
		memcpy(data + n - 896 + i * 8, (const uint8_t[]){0, 0, 0, 0, 0, 0, 8, 0x40}, 8);
	assert_int_equal(read_labels(data, n, label), 0);
	for (int i = 0; i < 48; i++)
		assert_int_equal(label[i], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nan_is_found),
		cmocka_unit_test(numbers_are_labels_or_are_not),
		cmocka_unit_test(labels_keep_their_numbers),
		cmocka_unit_test(npy_of_every_shape),
		cmocka_unit_test(what_is_no_mask_is_refused),
		cmocka_unit_test(a_compressed_file_is_named_as_such),
		cmocka_unit_test(edf_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
