/* pixels_test.c - regions and bins of every type, compared with the plainest loops there are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "picture/pixels.h"

enum { ROWS = 37, COLUMNS = 53, PIXELS = ROWS * COLUMNS };

static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", "<i2", "<u4",
				    "<i4", "<u8", "<i8", "<f4", "<f8"};

/* One pixel in seven is marked, where the type has a mark; the others have any value. */
static void fill(const char *type, void *image, unsigned seed)
{
	union {
		uint8_t u1;
		int8_t i1;
		uint16_t u2;
		int16_t i2;
		uint32_t u4;
		int32_t i4;
		uint64_t u8;
		int64_t i8;
		float f4;
		double f8;
	} x;
	uint32_t bytes = sl_pixels_bytes(sl_pixels_kind(type));

	srand(seed);
	for (unsigned i = 0; i < PIXELS; i++) {
		int64_t value = rand() % 60000;
		bool marked = rand() % 7 == 0;

		x.u8 = 0;
		if (type[1] == 'f' && bytes == 4)
			x.f4 = marked ? NAN : (float)value / 7 - 4000;
		else if (type[1] == 'f')
			x.f8 = marked ? NAN : (double)value / 7 - 4000;
		else if (type[1] == 'i')
			x.i8 = marked ? INT64_MIN >> (64 - 8 * bytes) : value % 250 - 100;
		else
			x.u8 = marked && bytes > 1 && bytes < 8 ? UINT64_MAX
			       : bytes == 1			? (uint64_t)value & 0xff
								: (uint64_t)value;
		if (type[1] == 'i' && bytes == 1 && marked)
			x.i8 = -128;
		memcpy((uint8_t *)image + (size_t)i * bytes, &x, bytes);
	}
}

/* What the view must be, as floats, by the definition. */
static float expected(const float *image, const struct sl_pixels_view *v, uint32_t row,
		      uint32_t column)
{
	double sum = 0, most = -INFINITY;
	unsigned n = 0;

	for (uint32_t r = row * v->bin; r < (row + 1) * v->bin && r < v->height; r++)
		for (uint32_t c = column * v->bin; c < (column + 1) * v->bin && c < v->width; c++) {
			float x = image[(v->y + r) * COLUMNS + v->x + c];

			if (isnan(x))
				continue;
			sum += (double)x;
			most = (double)x > most ? (double)x : most;
			n++;
		}
	return !n ? NAN : v->mean ? (float)(sum / n) : (float)most;
}

static void compare(const char *type, const void *image, const float *floats,
		    const struct sl_pixels_view *v)
{
	const struct sl_pixels_kind *kind = sl_pixels_kind(type), *made = sl_pixels_made(kind, v);
	uint32_t rows = sl_pixels_rows(v), columns = sl_pixels_columns(v);
	size_t bytes = (size_t)rows * columns * sl_pixels_bytes(made);
	uint8_t *out = malloc(bytes); /* exact, for sanitizers */
	float *got = malloc(rows * columns * sizeof(*got));

	assert_true(out && got);
	assert_int_equal(sl_pixels_view(kind, image, COLUMNS, v, out), 0);
	sl_pixels_to_floats(made, out, rows * columns, got);
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < columns; c++) {
			float x = got[r * columns + c], y = expected(floats, v, r, c);

			if (isnan(y) ? !isnan(x) : !(fabsf(x - y) <= fabsf(y) * 1e-6f))
				fail_msg("%s, bin %u, %s: row %u, column %u: %g, expected %g", type,
					 v->bin, v->mean ? "mean" : "maximum", r, c, (double)x,
					 (double)y);
		}
	free(out);
	free(got);
}

static void test_views_are_what_plain_loops_make(void **arg)
{
	static const uint32_t bins[] = {1, 2, 3, 4, 8, 16, 37, 64, 256};
	static const uint32_t region[][4] = {
		{0, 0, COLUMNS, ROWS}, {5, 7, 30, 20}, {52, 36, 1, 1}, {0, 36, COLUMNS, 1}};

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		const struct sl_pixels_kind *kind = sl_pixels_kind(types[t]);
		void *image = malloc((size_t)PIXELS * sl_pixels_bytes(kind));
		float *floats = malloc(PIXELS * sizeof(*floats));

		assert_true(image && floats);
		fill(types[t], image, (unsigned)t + 1);
		sl_pixels_to_floats(kind, image, PIXELS, floats);
		for (size_t b = 0; b < sizeof(bins) / sizeof(bins[0]); b++)
			for (unsigned i = 0; i < 8; i++) {
				const uint32_t *r = region[i / 2];
				const struct sl_pixels_view v = {r[0], r[1],	r[2],
								 r[3], bins[b], i % 2};

				compare(types[t], image, floats, &v);
			}
		free(image);
		free(floats);
	}
}

static void test_a_bin_of_marked_pixels_is_marked(void **arg)
{
	const uint16_t u2[] = {0xffff, 0xffff, 0xffff, 0xfffe, 0xffff, 0xffff, 3, 0};
	const int16_t i2[] = {INT16_MIN, INT16_MIN, INT16_MIN, -7, INT16_MIN, INT16_MIN, -8, -9};
	struct sl_pixels_view v = {0, 0, 4, 2, 2, false};
	uint16_t unsigned_out[2];
	int16_t signed_out[2];
	float mean[2];

	assert_int_equal(sl_pixels_view(sl_pixels_kind("<u2"), u2, 4, &v, unsigned_out), 0);
	assert_true(unsigned_out[0] == 0xffff && unsigned_out[1] == 0xfffe);
	assert_int_equal(sl_pixels_view(sl_pixels_kind("<i2"), i2, 4, &v, signed_out), 0);
	assert_true(signed_out[0] == INT16_MIN && signed_out[1] == -7);
	v.mean = true;
	assert_int_equal(sl_pixels_view(sl_pixels_kind("<i2"), i2, 4, &v, mean), 0);
	assert_true(isnan(mean[0]) && mean[1] == -8);
	assert_int_equal(sl_pixels_view(sl_pixels_kind("<u2"), u2, 4, &v, mean), 0);
	assert_true(isnan(mean[0]) && mean[1] == (0xfffe + 3 + 0) / 3.f);
}

static void test_a_large_bin_of_full_pixels_does_not_overflow(void **arg)
{
	static uint16_t u2[256 * 256];
	static int16_t i2[256 * 256];
	const struct sl_pixels_view v = {0, 0, 256, 256, 256, true};
	float mean;

	for (unsigned i = 0; i < 256 * 256; i++) {
		u2[i] = 0xfffe;
		i2[i] = -32767;
	}
	assert_int_equal(sl_pixels_view(sl_pixels_kind("<u2"), u2, 256, &v, &mean), 0);
	assert_true(mean == 65534);
	assert_int_equal(sl_pixels_view(sl_pixels_kind("<i2"), i2, 256, &v, &mean), 0);
	assert_true(mean == -32767);
}

static void test_types_and_marks(void **arg)
{
	static const struct {
		const char *type, *maximum, *mean;
		bool has_mark;
		int64_t mark;
	} cases[] = {
		{"|u1", "|u1", "<f4", false, 0},	{"<u2", "<u2", "<f4", true, 65535},
		{"<i2", "<i2", "<f4", true, -32768},	{"<u4", "<u4", "<f4", true, UINT32_MAX},
		{"<i4", "<i4", "<f4", true, INT32_MIN}, {"<f4", "<f4", "<f4", false, 0},
		{"<f8", "<f4", "<f4", false, 0},	{"<u8", "<f4", "<f4", false, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sl_pixels_kind *kind = sl_pixels_kind(cases[i].type);
		struct sl_pixels_view v = {0, 0, 1, 1, 2, false};
		int64_t mark;

		assert_string_equal(sl_pixels_type(kind), cases[i].type);
		assert_string_equal(sl_pixels_type(sl_pixels_made(kind, &v)), cases[i].maximum);
		v.mean = true;
		assert_string_equal(sl_pixels_type(sl_pixels_made(kind, &v)), cases[i].mean);
		assert_int_equal(sl_pixels_mark(kind, &mark), cases[i].has_mark);
		if (cases[i].has_mark)
			assert_int_equal(mark, cases[i].mark);
	}
	assert_null(sl_pixels_kind("<c8"));
	assert_null(sl_pixels_kind("<f2"));
	assert_null(sl_pixels_kind(">u2"));
	assert_null(sl_pixels_kind(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views_are_what_plain_loops_make),
		cmocka_unit_test(test_a_bin_of_marked_pixels_is_marked),
		cmocka_unit_test(test_a_large_bin_of_full_pixels_does_not_overflow),
		cmocka_unit_test(test_types_and_marks),
	};

	return cmocka_run_group_tests_name("pixels", tests, NULL, NULL);
}
