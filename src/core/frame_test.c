/* frame_test.c - names and sizes of what a frame carries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/frame.h>

static void test_every_type_has_a_size_and_a_name(void **arg)
{
	static const size_t bytes[SL_DTYPES] = {1, 2, 4, 2, 4, 4};

	for (int i = 0; i < SL_DTYPES; i++) {
		assert_int_equal(sl_dtype_bytes((enum sl_dtype)i), bytes[i]);
		assert_true(strlen(sl_dtype_name((enum sl_dtype)i)) > 0);
	}
	assert_string_equal(sl_dtype_name(SL_U16), "uint16");
	assert_string_equal(sl_dtype_name(SL_I16), "int16");
	assert_string_equal(sl_dtype_name(SL_F32), "float32");
}

static void test_what_is_no_type_has_no_size(void **arg)
{
	assert_int_equal(sl_dtype_bytes(SL_DTYPES), 0);
	assert_string_equal(sl_dtype_name(SL_DTYPES), "unknown");
}

static void test_shapes_multiply(void **arg)
{
	struct sl_shape shape = {"image", SL_I16, 3, {32, 512, 1024}};

	assert_int_equal(sl_shape_elements(&shape), 32 * 512 * 1024);
	assert_int_equal(sl_shape_bytes(&shape), 2 * 32 * 512 * 1024);
}

static void test_shapes_beyond_32_bits(void **arg)
{
	struct sl_shape shape = {"image", SL_U32, 3, {64, 65536, 65536}};

	assert_true(sl_shape_bytes(&shape) == UINT64_C(1) << 40);
}

static void test_a_shape_without_dimensions_is_a_scalar(void **arg)
{
	struct sl_shape shape = {"score", SL_F32, 0, {0}};

	assert_int_equal(sl_shape_elements(&shape), 1);
}

static void test_every_reason_has_a_name_of_its_own(void **arg)
{
	for (int i = 0; i < SL_REASONS; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(sl_reason_name((enum sl_reason)i),
						sl_reason_name((enum sl_reason)k));
	assert_string_equal(sl_reason_name(SL_REASON_DARK), "dark");
	assert_string_equal(sl_reason_name(SL_REASONS), "unknown");
}

static void test_results_are_found_by_name(void **arg)
{
	struct sl_frame frame = {.results = 2};

	strcpy(frame.result[0].shape.name, "raw");
	strcpy(frame.result[1].shape.name, "image");
	strcpy(frame.result[2].shape.name, "stale");
	assert_ptr_equal(sl_frame_result(&frame, "image"), &frame.result[1]);
	assert_ptr_equal(sl_frame_result(&frame, "raw"), &frame.result[0]);
	assert_null(sl_frame_result(&frame, "stale"));
	assert_null(sl_frame_result(&frame, "imag"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_has_a_size_and_a_name),
		cmocka_unit_test(test_what_is_no_type_has_no_size),
		cmocka_unit_test(test_shapes_multiply),
		cmocka_unit_test(test_shapes_beyond_32_bits),
		cmocka_unit_test(test_a_shape_without_dimensions_is_a_scalar),
		cmocka_unit_test(test_every_reason_has_a_name_of_its_own),
		cmocka_unit_test(test_results_are_found_by_name),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
