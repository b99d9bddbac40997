/* image_test.c - results become images as clients take them: gaps, bad pixels, negatives. */
#include "sink/stream2/image.h"
#include "sink/testing.h"

enum { GAP = 3, WIDTH = COLUMNS, HEIGHT = 2 * ROWS + GAP };

static struct sl_geometry geometry = {
	.modules = MODULES, .rows = ROWS, .columns = COLUMNS, .dtype = SL_U16, .bit_depth = 16};
static uint8_t bad[PIXELS];
static const struct sl_calibration calibration = {.mask = bad};
static struct sl_env env = {.geometry = &geometry};

/* Module 1 lies below module 0, with a gap between them. */
static void set_up(struct sl_image *image, enum sl_dtype dtype, bool assembled)
{
	struct sl_shape shape = {"image", dtype, 3, {MODULES, ROWS, COLUMNS}};

	geometry.layout = (struct sl_layout){.rows = HEIGHT, .columns = WIDTH};
	geometry.layout.module[1].row = ROWS + GAP;
	assert_int_equal(sl_image_open(image, &env, &shape, assembled), 0);
}

static void masked(uint32_t first, uint32_t second)
{
	memset(bad, 0, sizeof(bad));
	bad[first] = bad[second] = 1;
	env.calibration = &calibration;
}

static int tear_down(void **state)
{
	(void)state;
	env.calibration = NULL;
	return 0;
}

static void unsigned_modules_without_bad_pixels_are_used_where_they_lie(void **state)
{
	static const enum sl_dtype dtype[] = {SL_U8, SL_U16, SL_U32};
	uint32_t result[PIXELS] = {1, 2, 3}, memory[PIXELS] = {7};
	uint64_t clipped = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct sl_image image;

		set_up(&image, dtype[i], false);
		assert_int_equal(image.rows, MODULES * ROWS);
		assert_int_equal(image.columns, COLUMNS);
		assert_int_equal(image.bytes, PIXELS << i);
		assert_int_equal(image.dtype, dtype[i]);
		assert_ptr_equal(sl_image_make(&image, result, 0, memory, &clipped), result);
		sl_image_close(&image);
	}
	assert_int_equal(clipped, 0);
}

static void negatives_become_0_and_are_counted(void **state)
{
	int16_t result[PIXELS] = {0, 1, -1, -32767, -32768, 32767, 300};
	const uint16_t expected[] = {0, 1, 0, 0, 65535, 32767, 300};
	uint16_t memory[PIXELS];
	uint64_t clipped = 5;
	struct sl_image image;

	(void)state;
	set_up(&image, SL_I16, false);
	assert_int_equal(image.dtype, SL_U16);
	assert_ptr_equal(sl_image_make(&image, result, 0, memory, &clipped), memory);
	assert_memory_equal(memory, expected, sizeof(expected));
	assert_int_equal(clipped, 5 + 2);
	sl_image_close(&image);
}

static void many_pixels_are_clipped_like_few(void **state)
{
	enum { MANY = 3 * 4096 + 17 };
	struct sl_shape shape = {"image", SL_I16, 1, {MANY}};
	static int16_t result[MANY];
	static uint16_t memory[MANY];
	struct sl_image image;
	uint64_t clipped = 0, expected = 0;

	(void)state;
	for (int i = 0; i < MANY; i++)
		result[i] = (int16_t)(i * 7919);
	assert_int_equal(sl_image_open(&image, &env, &shape, false), 0);
	sl_image_make(&image, result, 0, memory, &clipped);
	for (int i = 0; i < MANY; i++) {
		expected += result[i] < 0 && result[i] != INT16_MIN;
		assert_int_equal(memory[i], result[i] == INT16_MIN ? 65535
					    : result[i] < 0	   ? 0
								   : result[i]);
	}
	assert_int_equal(clipped, expected);
	sl_image_close(&image);
}

static void bad_pixels_and_gaps_are_at_the_maximum(void **state)
{
	int16_t result[PIXELS];
	uint16_t memory[HEIGHT * WIDTH];
	uint64_t clipped = 0;
	struct sl_image image;

	(void)state;
	masked(2, MODULE_PIXELS + 1);
	set_up(&image, SL_I16, true);
	for (int i = 0; i < PIXELS; i++)
		result[i] = (int16_t)i;
	result[2] = -7; /* bad, and so not counted */
	result[3] = -8;
	sl_image_make(&image, result, 0, memory, &clipped);
	for (int row = 0; row < HEIGHT; row++)
		for (int column = 0; column < WIDTH; column++) {
			int module = row >= ROWS + GAP;
			int pixel = (row - module * (ROWS + GAP)) * COLUMNS + column;
			int at = row * WIDTH + column;
			bool gap = row >= ROWS && row < ROWS + GAP;
			bool none = gap || (!module && pixel == 2) || (module && pixel == 1);
			uint32_t mask = gap ? SL_MASK_GAP : none ? SL_MASK_DEAD : 0;

			assert_int_equal(image.mask[at], mask);
			assert_int_equal(memory[at], none ? 65535
						     : !module && pixel == 3
							     ? 0
							     : module * MODULE_PIXELS + pixel);
		}
	assert_int_equal(clipped, 1);
	sl_image_close(&image);
}

static void bad_pixels_of_every_type(void **state)
{
	static const enum sl_dtype dtype[] = {SL_U8, SL_U16, SL_U32};
	uint32_t result[PIXELS] = {0}, memory[PIXELS];
	const uint32_t most = UINT32_MAX;
	uint64_t clipped = 0;

	(void)state;
	masked(0, PIXELS - 1);
	for (int i = 0; i < 3; i++) {
		struct sl_image image;
		size_t bytes = (size_t)1 << i;

		set_up(&image, dtype[i], false);
		assert_ptr_equal(sl_image_make(&image, result, 0, memory, &clipped), memory);
		assert_memory_equal(memory, &most, bytes);
		assert_memory_equal((uint8_t *)memory + bytes, result, (PIXELS - 2) * bytes);
		assert_memory_equal((uint8_t *)memory + (PIXELS - 1) * bytes, &most, bytes);
		sl_image_close(&image);
	}
}

static void missing_modules_are_at_the_maximum(void **state)
{
	static const enum sl_dtype dtype[] = {SL_U16, SL_I16};
	uint16_t result[PIXELS] = {0}, memory[HEIGHT * WIDTH];
	uint64_t clipped = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		bool assembled = i / 2;
		uint32_t second = (assembled ? ROWS + GAP : ROWS) * COLUMNS;
		struct sl_image image;

		set_up(&image, dtype[i % 2], assembled);
		assert_ptr_equal(sl_image_make(&image, result, 2, memory, &clipped), memory);
		for (uint32_t k = 0; k < MODULE_PIXELS; k++) {
			assert_int_equal(memory[k], 0);
			assert_int_equal(memory[second + k], 65535);
		}
		sl_image_close(&image);
	}
	assert_int_equal(clipped, 0);
}

static void the_beam_is_known_where_the_pixels_are(void **state)
{
	struct sl_shape other = {"binned", SL_U16, 2, {2, 3}};
	struct sl_image image;
	double row, column;

	(void)state;
	set_up(&image, SL_U16, true);
	image.geometry.layout.beam_row = 1.5;
	image.geometry.layout.beam_column = 2.5;
	sl_image_beam(&image, &row, &column);
	assert_true(row == 1.5 && column == 2.5);
	sl_image_close(&image);
	assert_int_equal(sl_image_open(&image, &env, &other, false), 0);
	assert_null(image.mask);
	sl_image_beam(&image, &row, &column);
	assert_true(row != row && column != column);
	sl_image_close(&image);
}

static void what_clients_cannot_read_is_refused(void **state)
{
	static const enum sl_dtype dtype[] = {SL_F32, SL_I32, SL_I64, SL_F64};
	struct sl_shape list = {"peaks", SL_U16, 2, {100, 4}, .ragged = 1};
	struct sl_shape large = {"image", SL_U32, 2, {65536, 65536}};
	struct sl_shape other = {"binned", SL_U16, 2, {2, 3}};
	struct sl_image image;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct sl_shape shape = {"image", dtype[i], 3, {MODULES, ROWS, COLUMNS}};

		assert_int_equal(sl_image_open(&image, &env, &shape, false), -EINVAL);
		sl_image_close(&image);
	}
	assert_int_equal(sl_image_open(&image, &env, &list, false), -EINVAL);
	sl_image_close(&image);
	assert_int_equal(sl_image_open(&image, &env, &large, false), -EINVAL);
	sl_image_close(&image);
	assert_int_equal(sl_image_open(&image, &env, &other, true), -EINVAL);
	sl_image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_modules_without_bad_pixels_are_used_where_they_lie),
		cmocka_unit_test(negatives_become_0_and_are_counted),
		cmocka_unit_test(many_pixels_are_clipped_like_few),
		cmocka_unit_test_teardown(bad_pixels_and_gaps_are_at_the_maximum, tear_down),
		cmocka_unit_test_teardown(bad_pixels_of_every_type, tear_down),
		cmocka_unit_test(missing_modules_are_at_the_maximum),
		cmocka_unit_test(the_beam_is_known_where_the_pixels_are),
		cmocka_unit_test(what_clients_cannot_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
