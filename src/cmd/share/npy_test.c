/* npy_test.c - NumPy's header: what is written is read, and what is wrong is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/share/npy.h"

static void test_what_is_written_is_read(void **state)
{
	static const struct sl_npy cases[] = {
		{.type = "<u2", .rank = 2, .dim = {512, 1024}},
		{.type = "|u1", .rank = 1, .dim = {7}},
		{.type = "<f8", .rank = 0},
		{.type = "<c16",
		 .rank = 7,
		 .dim = {UINT64_C(1) << 40, 0, 1, 4294967295u, 5, 6, UINT64_C(1) << 40}},
	};
	char header[SL_NPY_HEADER], why[200];
	struct sl_npy npy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t bytes = sl_npy_write(&cases[i], header);

		assert_int_equal(bytes % 64, 0);
		assert_true(bytes <= sizeof(header));
		assert_int_equal(sl_npy_parse(header, bytes, &npy, why, sizeof(why)), 0);
		assert_int_equal(npy.data, bytes);
		assert_string_equal(npy.type, cases[i].type);
		assert_int_equal(npy.rank, cases[i].rank);
		assert_memory_equal(npy.dim, cases[i].dim, npy.rank * sizeof(npy.dim[0]));
		/* Every header that is cut is refused. */
		for (size_t cut = 0; cut < bytes; cut++)
			assert_true(sl_npy_parse(header, cut, &npy, why, sizeof(why)) < 0);
	}
}

/* A header of version 1 with this dictionary. */
static size_t make(char *header, const char *dictionary, char version)
{
	size_t length = strlen(dictionary), fixed = version > 1 ? 12 : 10;

	memset(header, 0, fixed);
	memcpy(header, "\x93NUMPY", 6);
	header[6] = version;
	header[8] = (char)length;
	memcpy(header + fixed, dictionary, length);
	return fixed + length;
}

static void test_other_ways_to_write_it(void **state)
{
	static const char *const cases[] = {
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }      \n",
		"{'shape': (2, 3), 'fortran_order': False, 'descr': '<u2'}",
		"{\"descr\":\"<u2\",\"fortran_order\":False,\"shape\":(2,3,)}",
	};
	char header[300], why[200];
	struct sl_npy npy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (char version = 1; version <= 3; version++) {
			size_t bytes = make(header, cases[i], version);

			assert_int_equal(sl_npy_parse(header, bytes, &npy, why, sizeof(why)), 0);
			assert_int_equal(npy.data, bytes);
			assert_string_equal(npy.type, "<u2");
			assert_int_equal(npy.rank, 2);
			assert_true(npy.dim[0] == 2 && npy.dim[1] == 3);
		}
}

static void test_what_is_wrong_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"{}",
		"{'descr': '<u2', 'fortran_order': False}",
		"{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3)}",
		"{'descr': '<u2', 'fortran_order': Maybe, 'shape': (2, 3)}",
		"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (2, 3)}",
		"{'descr': 'a long type', 'fortran_order': False, 'shape': (2, 3)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (-2, 3)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2 3)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999, 2)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': 3}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), 'more': (1,)}",
		"{'descr': '<u2'; 'fortran_order': False}",
		"{'descr': '<u2",
	};
	char header[300], why[200];
	struct sl_npy npy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why[0] = 0;
		assert_true(sl_npy_parse(header, make(header, cases[i], 1), &npy, why,
					 sizeof(why)) < 0);
		assert_true(why[0]);
	}
	assert_true(sl_npy_parse(header, make(header, cases[0], 4), &npy, why, sizeof(why)) < 0);
	assert_true(sl_npy_parse("PK\x03\x04 an archive of arrays", 30, &npy, why, sizeof(why)) <
		    0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_other_ways_to_write_it),
		cmocka_unit_test(test_what_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
