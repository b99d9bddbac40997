/* sums_test.c - means and noise against numbers known beforehand, and which pixels are bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibration/sums.h"

enum { ROWS = 8, COLUMNS = 16, PIXELS = ROWS * COLUMNS };

static const struct sl_geometry two = {
	.detector = "test", .modules = 2, .rows = ROWS, .columns = COLUMNS, .dtype = SL_U16};

static uint32_t next(uint32_t *x)
{
	return *x = *x * 1664525u + 1013904223u;
}

static void test_means_and_noise_are_exact(void **state)
{
	struct sl_sums sums;
	struct sl_tables tables;
	uint16_t raw[PIXELS] = {0};

	assert_int_equal(sl_sums_open(&sums, &two, 0), 0);
	sl_tables_init(&tables, &two);
	for (unsigned k = 0; k < 100; k++) { /* 10 and 13 in turn, 16383 always, ... */
		raw[0] = k % 2 ? 13 : 10;
		raw[1] = 16383;
		raw[2] = (uint16_t)(k % 4 ? 100 : 0x4000 | 77); /* every fourth in G1 */
		raw[3] = 0xc000 | 5;
		sl_sums_add(&sums, 0, 1, raw);
		sums.frames++;
	}
	assert_int_equal(sl_sums_tables(&sums, &tables), 0);
	assert_true(tables.pedestal[0][PIXELS] == 11.5f && tables.rms[0][PIXELS] == 1.5f);
	assert_true(tables.pedestal[0][PIXELS + 1] == 16383 && tables.rms[0][PIXELS + 1] == 0);
	assert_true(tables.pedestal[0][PIXELS + 2] == 100 && tables.rms[0][PIXELS + 2] == 0);
	assert_true(isnan(tables.pedestal[0][PIXELS + 3]) && isnan(tables.rms[0][PIXELS + 3]));
	assert_true(isnan(tables.pedestal[0][0])); /* nothing came of module 0 */
	assert_int_equal(sums.samples[PIXELS + 2], 75);
	assert_int_equal(sums.wrong[PIXELS + 2], 25);
	assert_int_equal(tables.frames[0], 100);
	assert_null(tables.pedestal[1]);
	sl_sums_close(&sums);
	sl_tables_free(&tables);
}

/* As the stage `correct` does: float sums of up to 128 samples, divided in float. */
static void test_means_are_those_of_correct(void **state)
{
	float sum[PIXELS] = {0};
	uint32_t x = 7;
	struct sl_sums sums;
	struct sl_tables tables;
	uint16_t raw[PIXELS];

	assert_int_equal(sl_sums_open(&sums, &two, 0), 0);
	sl_tables_init(&tables, &two);
	for (unsigned k = 1; k <= 128; k++) {
		for (unsigned i = 0; i < PIXELS; i++) {
			raw[i] = (uint16_t)(next(&x) >> 18);
			sum[i] += raw[i];
		}
		sl_sums_add(&sums, 0, 0, raw);
		assert_int_equal(sl_sums_tables(&sums, &tables), 0);
		for (unsigned i = 0; i < PIXELS; i++)
			assert_true(tables.pedestal[0][i] == sum[i] / (float)k);
	}
	sl_sums_close(&sums);
	sl_tables_free(&tables);
}

static void test_each_gain_and_cell_for_itself(void **state)
{
	static const unsigned codes[] = {0, 1, 3};
	struct sl_geometry cells = two;
	struct sl_sums sums;
	struct sl_tables tables;
	uint16_t raw[PIXELS];

	cells.cells = 3;
	for (int gain = 0; gain < 3; gain++) {
		assert_int_equal(sl_sums_open(&sums, &cells, gain), 0);
		sl_tables_init(&tables, &cells);
		for (uint32_t cell = 0; cell < 3; cell++)
			for (unsigned code = 0; code < 4; code++) { /* one of them is right */
				for (unsigned i = 0; i < PIXELS; i++)
					raw[i] = (uint16_t)(code << 14 |
							    (1000 * code + 100 * cell + i));
				sl_sums_add(&sums, cell, 0, raw);
			}
		sl_sums_add(&sums, 3, 0, raw); /* no such cell, no such module */
		sl_sums_add(&sums, 0, 2, raw);
		assert_int_equal(sl_sums_tables(&sums, &tables), 0);
		for (uint32_t cell = 0; cell < 3; cell++) {
			assert_true(tables.pedestal[gain][cell * 2 * PIXELS + 9] ==
				    (float)(1000 * codes[gain] + 100 * cell + 9));
			assert_int_equal(sums.samples[cell * 2 * PIXELS + 9], 1);
			assert_int_equal(sums.wrong[cell * 2 * PIXELS + 9], 3);
		}
		sl_sums_close(&sums);
		sl_tables_free(&tables);
	}
}

static void test_every_type_of_pixel(void **state)
{
	static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_I32, SL_F32};
	struct sl_geometry g = two;

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		union {
			uint8_t u8[PIXELS];
			uint16_t u16[PIXELS];
			uint32_t u32[PIXELS];
			int16_t i16[PIXELS];
			int32_t i32[PIXELS];
			float f32[PIXELS];
		} raw;
		double high = 0;
		struct sl_sums sums;
		struct sl_tables tables;

		memset(&raw, 0, sizeof(raw));
		g.dtype = types[t];
		assert_int_equal(sl_sums_open(&sums, &g, -1), 0);
		sl_tables_init(&tables, &g);
		for (unsigned k = 0; k < 64; k++) { /* the largest of the type, less 0 or 4 */
			unsigned less = k % 2 * 4;

			switch (types[t]) {
			case SL_U8:
				raw.u8[0] = (uint8_t)(high = 255, 255 - less);
				break;
			case SL_U16:
				raw.u16[0] = (uint16_t)(high = 65535, 65535 - less);
				break;
			case SL_U32:
				raw.u32[0] = (uint32_t)(high = UINT32_MAX, UINT32_MAX - less);
				break;
			case SL_I16:
				raw.i16[0] = (int16_t)(high = -32764, -32764 - (int)less);
				break;
			case SL_I32:
				raw.i32[0] =
					(int32_t)(high = -2147483644., -2147483644 - (int)less);
				break;
			default:
				raw.f32[0] = (float)((high = 1e6) - less);
				break;
			}
			sl_sums_add(&sums, 0, 0, &raw);
		}
		assert_int_equal(sl_sums_tables(&sums, &tables), 0);
		assert_true(tables.pedestal[0][0] == (float)(high - 2));
		assert_true(fabsf(tables.rms[0][0] - 2) < 1e-6f);
		sl_sums_close(&sums);
		sl_tables_free(&tables);
	}
	g.dtype = SL_U8;
	{
		struct sl_sums sums;

		assert_int_equal(sl_sums_open(&sums, &g, 0), -EINVAL); /* no gain bits there */
		sl_sums_close(&sums);
	}
}

/* Each number is that of the pixels which have its bit. */
static void check_counts(const struct sl_tables *t, uint64_t n, const struct sl_bad *bad)
{
	const struct {
		uint8_t bit;
		uint64_t count;
	} counts[] = {{SL_MASK_EMPTY, bad->empty}, {SL_MASK_GAIN, bad->gain},
		      {SL_MASK_STUCK, bad->stuck}, {SL_MASK_PEDESTAL, bad->pedestal},
		      {SL_MASK_RMS, bad->rms},	   {0xff, bad->any}};

	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		uint64_t have = 0;

		for (uint64_t i = 0; i < n; i++)
			have += (t->mask[i] & counts[k].bit) != 0;
		assert_true(have > 0);
		assert_int_equal(counts[k].count, have);
	}
}

/* Pixels 0 to 6 of module 0 are each bad in their own way. */
static void test_bad_pixels_have_their_reasons(void **state)
{
	struct sl_bounds bounds = {.spreads = 10, .wrong_share = 0.1, .stuck = true};
	struct sl_sums sums;
	struct sl_tables tables;
	struct sl_bad bad;
	uint16_t raw[2][PIXELS];
	uint32_t x = 3;

	assert_int_equal(sl_sums_open(&sums, &two, 0), 0);
	sl_tables_init(&tables, &two);
	for (unsigned k = 0; k < 200; k++) {
		for (unsigned m = 0; m < 2; m++)
			for (unsigned i = 0; i < PIXELS; i++)
				raw[m][i] = (uint16_t)(2000 + 3 * i + (next(&x) >> 28));
		raw[0][0] = 0xffff;
		raw[0][1] = 0x4000;
		raw[0][2] = 2100;
		raw[0][3] = (uint16_t)(raw[0][3] + 9000);
		raw[0][4] = (uint16_t)(2000 + (next(&x) >> 22));
		raw[0][5] = k % 5 ? raw[0][5] : 0x4000 | 13000;
		raw[0][6] = k % 50 ? raw[0][6] : 0x4000 | 13000; /* less than a tenth: good */
		sl_sums_add(&sums, 0, 0, raw[0]);
		sl_sums_add(&sums, 0, 1, raw[1]);
	}
	assert_int_equal(sl_sums_tables(&sums, &tables), 0);
	assert_int_equal(sl_sums_mask(&sums, &bounds, &tables, &bad), 0);
	assert_int_equal(tables.mask[0], SL_MASK_EMPTY | SL_MASK_GAIN);
	assert_int_equal(tables.mask[1], SL_MASK_EMPTY | SL_MASK_GAIN);
	assert_true(tables.mask[2] & SL_MASK_STUCK);
	assert_int_equal(tables.mask[3], SL_MASK_PEDESTAL);
	assert_int_equal(tables.mask[4], SL_MASK_RMS);
	assert_int_equal(tables.mask[5], SL_MASK_GAIN);
	assert_int_equal(bad.any, 6);
	assert_int_equal(bad.empty, 2);
	check_counts(&tables, 2 * PIXELS, &bad);
	for (unsigned i = 6; i < 2 * PIXELS; i++)
		assert_int_equal(tables.mask[i], 0);

	/* Bounds in ADU, one at a time; what was bad stays so. */
	bounds = (struct sl_bounds){.pedestal_min = 2010};
	assert_int_equal(sl_sums_mask(&sums, &bounds, &tables, &bad), 0);
	assert_true(tables.mask[PIXELS] & SL_MASK_PEDESTAL);
	assert_int_equal(tables.mask[PIXELS + 100], 0);
	assert_true(bad.any > 6);
	sl_sums_close(&sums);
	sl_tables_free(&tables);
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void test_medians_are_those_of_sorted_values(void **state)
{
	static float value[2000], sorted[2000];
	uint32_t x = 1;

	for (unsigned n = 1; n < 2000; n += n < 40 ? 1 : 97)
		for (unsigned kind = 0; kind < 5; kind++) {
			for (unsigned i = 0; i < n; i++)
				value[i] = kind == 0   ? (float)(next(&x) >> 8)
					   : kind == 1 ? (float)(next(&x) >> 30)
					   : kind == 2 ? (float)i
					   : kind == 3 ? -(float)i
						       : 7;
			memcpy(sorted, value, sizeof(sorted));
			qsort(sorted, n, sizeof(*sorted), ascending);
			assert_true(sl_median(value, n) == sorted[n / 2]);
		}
	value[0] = NAN;
	value[1] = 3;
	value[2] = INFINITY;
	assert_true(sl_median(value, 3) == 3);
	assert_true(isnan(sl_median(value, 1)));
	assert_true(isnan(sl_median(value, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_means_and_noise_are_exact),
		cmocka_unit_test(test_means_are_those_of_correct),
		cmocka_unit_test(test_each_gain_and_cell_for_itself),
		cmocka_unit_test(test_every_type_of_pixel),
		cmocka_unit_test(test_medians_are_those_of_sorted_values),
		cmocka_unit_test(test_bad_pixels_have_their_reasons),
	};

	return cmocka_run_group_tests_name("sums", tests, NULL, NULL);
}
