/* stack_test.c - raw files and datasets as one row of images. */
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

#include "detector/replay/stack.h"
#include "hdf5/testing.h"

enum { ROWS = 4, COLUMNS = 6, PIXELS = ROWS * COLUMNS };

static char scratch[256], path[512];

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/a.raw", scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

static uint16_t pixel(unsigned image, unsigned i)
{
	return (uint16_t)(image * 257 + i);
}

static void write_raw(const char *name, unsigned first, unsigned images, unsigned header,
		      unsigned before, unsigned after, unsigned more)
{
	FILE *file = fopen(name, "w");

	for (unsigned i = 0; i < header; i++)
		fputc('H', file);
	for (unsigned image = first; image < first + images; image++) {
		for (unsigned i = 0; i < before; i++)
			fputc('b', file);
		for (unsigned i = 0; i < PIXELS; i++) {
			uint16_t value = pixel(image, i);

			fwrite(&value, sizeof(value), 1, file);
		}
		for (unsigned i = 0; i < after; i++)
			fputc('a', file);
	}
	for (unsigned i = 0; i < more; i++)
		fputc('x', file);
	fclose(file);
}

static struct sl_stack_options raw(const char *name)
{
	struct sl_stack_options o = {.rows = ROWS, .columns = COLUMNS, .bits = 16};

	assert_true(strlen(name) < sizeof(o.file));
	strcpy(o.file, name);
	return o;
}

static void expect(const struct sl_stack_options *o, unsigned images)
{
	uint16_t image[PIXELS], part[5];
	struct sl_stack *stack;

	assert_int_equal(sl_stack_open(o, &stack), 0);
	assert_int_equal(sl_stack_images(stack), images);
	assert_int_equal(sl_stack_shape(stack)->image_bytes, sizeof(image));
	for (unsigned k = 0; k < images; k++) {
		unsigned i = (k * 7 + 3) % images; /* here and there */

		assert_int_equal(sl_stack_read(stack, i, image), 0);
		for (unsigned p = 0; p < PIXELS; p++)
			assert_int_equal(image[p], pixel(i, p));
		assert_int_equal(sl_stack_read_part(stack, i, 6, sizeof(part), part), 0);
		assert_int_equal(part[4], pixel(i, 7));
	}
	assert_int_equal(sl_stack_read(stack, images, image), -EINVAL);
	assert_true(sl_stack_is_raw(stack));
	sl_stack_close(stack);
}

static void test_raw_files_with_headers_and_gaps(void **state)
{
	struct sl_stack_options o = raw(path);

	write_raw(path, 0, 5, 0, 0, 0, 0);
	expect(&o, 5);
	o.header_bytes = 100;
	write_raw(path, 0, 5, 100, 0, 0, 0);
	expect(&o, 5);
	o.frame_header_bytes = 48;
	write_raw(path, 0, 5, 100, 48, 0, 0);
	expect(&o, 5);
	o.gap_bytes = 16;
	write_raw(path, 0, 5, 100, 48, 16, 0);
	expect(&o, 5);
	assert_int_equal(truncate(path, 100 + 5 * (48 + 48 + 16) - 16), 0);
	expect(&o, 5); /* no gap behind the last */
}

static void test_files_follow_each_other(void **state)
{
	struct sl_stack_options o = {0};
	char name[600];

	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "%s/r_%u.raw", scratch, i);
		write_raw(name, 3 * i, 3, 0, 0, 0, 0);
	}
	snprintf(name, sizeof(name), "%s/r_*.raw", scratch);
	o = raw(name);
	expect(&o, 36);
	snprintf(name, sizeof(name), "%s/r_%%d.raw", scratch);
	o = raw(name);
	expect(&o, 36);
}

static void test_a_size_that_does_not_fit_is_refused(void **state)
{
	struct sl_stack_options o = raw(path);
	struct sl_stack *stack;

	write_raw(path, 0, 5, 0, 0, 0, 7);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	o.ragged = true;
	expect(&o, 5);
	assert_int_equal(truncate(path, 7), 0);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	write_raw(path, 0, 5, 0, 0, 0, 0);
	o.header_bytes = 1 << 20;
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	o = raw(path);
	o.rows = 0;
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	o = raw(path);
	o.bits = 8;
	o.numbers = SL_STACK_SIGNED;
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	o = raw("/nothing/there");
	assert_int_equal(sl_stack_open(&o, &stack), -ENOENT);
	o = raw(scratch);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
}

/* To open it would wait for somebody to write. */
static void test_a_pipe_is_refused(void **state)
{
	struct sl_stack_options o;
	struct sl_stack *stack;
	char name[700];

	snprintf(name, sizeof(name), "%s/pipe", scratch);
	assert_int_equal(mkfifo(name, 0600), 0);
	o = raw(name);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
	assert_int_equal(unlink(name), 0);
}

static void test_other_byte_orders_and_types(void **state)
{
	struct sl_stack_options o = raw(path);
	struct sl_stack *stack;
	uint16_t image[PIXELS];

	write_raw(path, 1, 2, 0, 0, 0, 0);
	o.big_endian = true;
	assert_int_equal(sl_stack_open(&o, &stack), 0);
	assert_int_equal(sl_stack_read(stack, 1, image), 0);
	assert_int_equal(image[3], (uint16_t)__builtin_bswap16(pixel(2, 3)));
	sl_stack_close(stack);
	o = raw(path);
	o.columns = COLUMNS / 2;
	o.bits = 32;
	o.numbers = SL_STACK_FLOAT;
	assert_int_equal(sl_stack_open(&o, &stack), 0);
	assert_int_equal(sl_stack_shape(stack)->dtype, SL_F32);
	sl_stack_close(stack);
}

/* What is read is what was there when the file was opened, or nothing. */
static void test_a_file_that_changes_is_noticed(void **state)
{
	struct sl_stack_options o = raw(path);
	struct sl_stack *stack;
	uint16_t image[PIXELS];

	write_raw(path, 0, 5, 0, 0, 0, 0);
	assert_int_equal(sl_stack_open(&o, &stack), 0);
	assert_int_equal(sl_stack_read(stack, 4, image), 0);
	assert_int_equal(truncate(path, 4 * sizeof(image)), 0);
	assert_int_equal(sl_stack_read(stack, 4, image), -ESTALE); /* is gone */
	assert_int_equal(sl_stack_read(stack, 0, image), -ESTALE); /* is there; of which file? */
	assert_string_equal(sl_stack_where(stack, 4), path);
	sl_stack_close(stack);

	write_raw(path, 0, 5, 0, 0, 0, 0);
	assert_int_equal(sl_stack_open(&o, &stack), 0);
	usleep(20000); /* the kernel's clock for files moves in steps */
	write_raw(path, 9, 5, 0, 0, 0, 0);
	assert_int_equal(sl_stack_read(stack, 1, image), -ESTALE);
	sl_stack_close(stack);
}

static void test_files_of_different_shapes_do_not_go_together(void **state)
{
	struct sl_stack_options o;
	struct sl_stack *stack;
	char name[600], both[1200];

	snprintf(name, sizeof(name), "%s/b.raw", scratch);
	write_raw(path, 0, 5, 0, 0, 0, 0);
	write_raw(name, 0, 5, 0, 0, 0, 3);
	snprintf(both, sizeof(both), "%s,%s", path, name);
	o = raw(both);
	assert_int_equal(sl_stack_open(&o, &stack), -EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_raw_files_with_headers_and_gaps),
		CASE(test_files_follow_each_other),
		CASE(test_a_size_that_does_not_fit_is_refused),
		CASE(test_a_pipe_is_refused),
		CASE(test_other_byte_orders_and_types),
		CASE(test_a_file_that_changes_is_noticed),
		CASE(test_files_of_different_shapes_do_not_go_together),
	};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
