/* picture_test.c - binning, scales and colours. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "picture/picture.h"

static void test_bins_are_means_of_what_is_there(void **arg)
{
	/* 5 columns: the last is left over; NaN counts as nothing. */
	float pixels[] = {1, 3, NAN, NAN, 9, 5, 7, NAN, NAN, 9, 2, NAN, 1, 1, 9, 4, 6, 1, 1, 9};
	struct sl_picture p = {4, 5, pixels};

	sl_picture_bin(&p, 2);
	assert_int_equal(p.rows, 2);
	assert_int_equal(p.columns, 2);
	assert_true(pixels[0] == 4 && isnan(pixels[1]) && pixels[2] == 4 && pixels[3] == 1);
	sl_picture_bin(&p, 1);
	assert_int_equal(p.rows, 2);
	/* More than there is: nothing is done. */
	sl_picture_bin(&p, 3);
	assert_int_equal(p.rows, 2);
}

static void test_scales_rise_from_the_first_colour_to_the_last(void **arg)
{
	for (uint32_t scale = SL_PICTURE_LOG; scale <= SL_PICTURE_LINEAR; scale++) {
		const struct sl_picture_look look = {.scale = scale, .low = 0, .high = 100};
		float pixels[1000];
		struct sl_picture p = {10, 100, pixels};
		uint8_t index[1000];
		double range[2];

		for (int i = 0; i < 1000; i++)
			pixels[i] = (float)i * 0.5f - 20;
		assert_int_equal(sl_picture_colour(&p, &look, index, range), 0);
		assert_true(range[0] == -20 && range[1] == 479.5);
		assert_int_equal(index[0], 1);
		assert_int_equal(index[999], 255);
		for (int i = 1; i < 1000; i++)
			assert_true(index[i] >= index[i - 1]);
		/* The middle is in the middle only of a linear scale. */
		if (scale == SL_PICTURE_LINEAR)
			assert_in_range(index[500], 127, 129);
		else
			assert_true(index[500] > 140);
	}
}

static void test_what_is_nothing_and_what_is_too_much(void **arg)
{
	const struct sl_picture_look look = {.scale = SL_PICTURE_LOG, .low = 0, .high = 100};
	float pixels[] = {NAN, INFINITY, -INFINITY, 1, 2, 3};
	struct sl_picture p = {2, 3, pixels};
	uint8_t index[6];
	double range[2];

	assert_int_equal(sl_picture_colour(&p, &look, index, range), 0);
	assert_int_equal(index[0], 0);
	assert_int_equal(index[1], 255);
	assert_int_equal(index[2], 1);
	assert_true(range[0] == 1 && range[1] == 3);
	for (int i = 0; i < 6; i++)
		pixels[i] = i % 2 ? NAN : 7; /* all the same */
	assert_int_equal(sl_picture_colour(&p, &look, index, range), 0);
	assert_true(index[0] == 1 && index[1] == 0);
	for (int i = 0; i < 6; i++)
		pixels[i] = NAN;
	assert_int_equal(sl_picture_colour(&p, &look, index, range), 0);
	assert_int_equal(index[5], 0);
}

static int brightness(const uint8_t *colour)
{
	return 3 * colour[0] + 6 * colour[1] + colour[2];
}

static void test_palettes_only_rise_or_fall(void **arg)
{
	uint8_t palette[256][3];

	for (int map = SL_PICTURE_FIRE; map <= SL_PICTURE_GREY; map++) {
		int way = map == SL_PICTURE_PAPER ? -1 : 1;

		sl_picture_palette((enum sl_picture_colours)map, palette);
		for (int i = 2; i < 256; i++)
			assert_true(way * (brightness(palette[i]) - brightness(palette[i - 1])) >=
				    0);
		/* Nothing is none of the colours. */
		for (int i = 1; i < 256; i++)
			assert_memory_not_equal(palette[0], palette[i], 3);
	}
}

/* Pictures of one run are compared with those of another by eye, and with those in the
 * documentation: a colour does not change by accident. */
static void test_palettes_are_what_they_were(void **arg)
{
	static const uint32_t crc[] = {[SL_PICTURE_FIRE] = 0xeeff1110,
				       [SL_PICTURE_PAPER] = 0x0694f138,
				       [SL_PICTURE_GREY] = 0xd85c74e5};
	uint8_t palette[256][3];

	for (int map = SL_PICTURE_FIRE; map <= SL_PICTURE_GREY; map++) {
		sl_picture_palette((enum sl_picture_colours)map, palette);
		assert_int_equal(sl_crc32c(0, palette, sizeof(palette)), crc[map]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins_are_means_of_what_is_there),
		cmocka_unit_test(test_scales_rise_from_the_first_colour_to_the_last),
		cmocka_unit_test(test_what_is_nothing_and_what_is_too_much),
		cmocka_unit_test(test_palettes_only_rise_or_fall),
		cmocka_unit_test(test_palettes_are_what_they_were),
	};

	return cmocka_run_group_tests_name("picture", tests, NULL, NULL);
}
