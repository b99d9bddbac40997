/* layout_test.c - every pixel has its place, and only one: against a slow reference that lays out
 * modules by repeating and turning them as one would on paper. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "detector/places.h"

enum { NOTHING = -1 };

struct sheet { /* an image of raw pixel numbers */
	uint32_t rows, columns;
	int64_t *at;
};

static struct sheet sheet_new(uint32_t rows, uint32_t columns)
{
	struct sheet s = {rows, columns, malloc((size_t)rows * columns * sizeof(int64_t))};

	assert_non_null(s.at);
	for (size_t i = 0; i < (size_t)rows * columns; i++)
		s.at[i] = NOTHING;
	return s;
}

/* How often a raw pixel is repeated in one direction, by looking at its neighbours. */
static uint32_t times(uint32_t raw, uint32_t length, uint32_t asic, uint32_t gap)
{
	uint32_t n = 1;

	if (!asic)
		return 1;
	if (raw > 0 && (raw - 1) / asic != raw / asic)
		n += gap / 2;
	if (raw + 1 < length && (raw + 1) / asic != raw / asic)
		n += gap / 2;
	return n;
}

/* A module as it was read, each raw pixel as often as it is wide and high. */
static struct sheet expand(const struct sl_geometry *g, uint32_t module)
{
	const struct sl_layout *l = &g->layout;
	uint32_t rows = 0, columns = 0, r = 0;
	struct sheet s;

	for (uint32_t i = 0; i < g->rows; i++)
		rows += times(i, g->rows, l->asic_rows, l->gap);
	for (uint32_t i = 0; i < g->columns; i++)
		columns += times(i, g->columns, l->asic_columns, l->gap);
	s = sheet_new(rows, columns);
	for (uint32_t i = 0; i < g->rows; i++)
		for (uint32_t n = times(i, g->rows, l->asic_rows, l->gap); n; n--, r++) {
			uint32_t c = 0;

			for (uint32_t j = 0; j < g->columns; j++)
				for (uint32_t k = times(j, g->columns, l->asic_columns, l->gap); k;
				     k--, c++)
					s.at[(size_t)r * columns + c] =
						((int64_t)module * g->rows + i) * g->columns + j;
		}
	return s;
}

static struct sheet turn_once(struct sheet from)
{
	struct sheet to = sheet_new(from.columns, from.rows);

	/* The upper left corner goes to the upper right one. */
	for (uint32_t r = 0; r < from.rows; r++)
		for (uint32_t c = 0; c < from.columns; c++)
			to.at[(size_t)c * to.columns + (to.columns - 1 - r)] =
				from.at[(size_t)r * from.columns + c];
	free(from.at);
	return to;
}

static struct sheet lay_out(const struct sl_geometry *g)
{
	struct sheet image = sheet_new(g->layout.rows, g->layout.columns);

	for (uint32_t m = 0; m < g->modules; m++) {
		const struct sl_layout_module *at = &g->layout.module[m];
		struct sheet part = expand(g, m);

		for (uint32_t t = 0; t < at->turns; t++)
			part = turn_once(part);
		for (uint32_t r = 0; r < part.rows; r++)
			for (uint32_t c = 0; c < part.columns; c++) {
				size_t i = (size_t)(at->row + r) * image.columns + at->column + c;

				assert_int_equal(image.at[i], NOTHING);
				image.at[i] = part.at[(size_t)r * part.columns + c];
			}
		free(part.at);
	}
	return image;
}

/* The map agrees with the reference at every pixel, shares are what is counted there, and centres
 * are the means of the places. */
static void check_map(const struct sl_geometry *g)
{
	size_t raw_pixels = (size_t)g->modules * g->rows * g->columns;
	struct sheet image = lay_out(g);
	double *sum = calloc(2 * raw_pixels, sizeof(*sum));
	uint32_t *count = calloc(raw_pixels, sizeof(*count)), pixel;

	for (uint32_t r = 0; r < image.rows; r++)
		for (uint32_t c = 0; c < image.columns; c++) {
			int64_t want = image.at[(size_t)r * image.columns + c];
			int module = sl_layout_find(g, r, c, &pixel);

			if (want == NOTHING) {
				assert_int_equal(module, -1);
				continue;
			}
			assert_int_equal((int64_t)module * g->rows * g->columns + pixel, want);
			count[want]++;
			sum[2 * want] += r + 0.5;
			sum[2 * want + 1] += c + 0.5;
		}
	for (size_t i = 0; i < raw_pixels; i++) {
		uint32_t in_module = (uint32_t)(i % ((size_t)g->rows * g->columns));
		double row, column;

		assert_int_equal(count[i], sl_layout_share(g, in_module));
		sl_layout_centre(g, (uint32_t)(i / ((size_t)g->rows * g->columns)), in_module, &row,
				 &column);
		assert_true(row == sum[2 * i] / count[i] && column == sum[2 * i + 1] / count[i]);
	}
	assert_int_equal(sl_layout_find(g, -1, 0, &pixel), -1);
	assert_int_equal(sl_layout_find(g, 0, -1, &pixel), -1);
	assert_int_equal(sl_layout_find(g, image.rows, 0, &pixel), -1);
	assert_int_equal(sl_layout_find(g, 0, image.columns, &pixel), -1);
	free(image.at);
	free(sum);
	free(count);
}

/* Assembled images of every pixel size, with a module missing, against the reference. */
static void check_assembly(const struct sl_geometry *g, uint32_t bytes, uint64_t missing)
{
	size_t module_pixels = (size_t)g->rows * g->columns,
	       raw_pixels = module_pixels * g->modules;
	size_t image_pixels = (size_t)g->layout.rows * g->layout.columns;
	struct sheet image = lay_out(g);
	uint8_t *raw = malloc(raw_pixels * bytes), *out = malloc(image_pixels * bytes + 16);
	const uint8_t fill[4] = {0xfe, 0xed, 0xfa, 0xce};

	for (size_t i = 0; i < raw_pixels * bytes; i++)
		raw[i] = (uint8_t)sl_draw(bytes, i);
	memset(out + image_pixels * bytes, 0x77, 16);
	sl_layout_assemble(g, bytes, raw, missing, fill, out);
	for (size_t i = 0; i < image_pixels; i++) {
		int64_t at = image.at[i];
		bool gone = at == NOTHING || missing >> ((size_t)at / module_pixels) & 1;

		if (memcmp(out + i * bytes, gone ? fill : raw + (size_t)at * bytes, bytes))
			fail_msg("pixel %zu of %zu", i, image_pixels);
	}
	for (int i = 0; i < 16; i++)
		assert_int_equal(out[image_pixels * bytes + i], 0x77);
	free(image.at);
	free(raw);
	free(out);
}

static struct sl_geometry resolved(struct sl_geometry g)
{
	char why[100];

	sl_layout_resolve(&g, &g.layout);
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), 0);
	return g;
}

/* A family's detector of that many modules. */
static struct sl_geometry photon_detector(const struct sl_places *places, uint32_t modules)
{
	struct sl_geometry g = {.modules = modules, .rows = 512, .columns = 1024};

	sl_places_fill(places, &g);
	return resolved(g);
}

static void test_without_a_layout_modules_lie_one_below_the_other(void **arg)
{
	struct sl_geometry g = resolved(
		(struct sl_geometry){.modules = 3,
				     .rows = 4,
				     .columns = 6,
				     .layout = {.asic_rows = 2, .asic_columns = 2, .gap = 2}});

	assert_int_equal(g.layout.rows, 3 * 6);
	assert_int_equal(g.layout.columns, 10);
	assert_true(g.layout.beam_row == 9 && g.layout.beam_column == 5);
	check_map(&g);
	g = resolved((struct sl_geometry){.modules = 2, .rows = 3, .columns = 5});
	assert_int_equal(g.layout.rows, 6);
	assert_int_equal(g.layout.columns, 5);
	check_map(&g);
}

static void test_a_module_is_514_by_1030(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 1);
	uint32_t shares[5] = {0};

	assert_int_equal(g.layout.rows, 514);
	assert_int_equal(g.layout.columns, 1030);
	check_map(&g);
	for (uint32_t i = 0; i < 512 * 1024; i++)
		shares[sl_layout_share(&g, i)]++;
	/* Two rows and six columns are wide, and cross in twelve corners. */
	assert_int_equal(shares[4], 12);
	assert_int_equal(shares[2], 2 * 1024 + 6 * 512 - 2 * 12);
	assert_int_equal(shares[1] + shares[2] + shares[4], 512 * 1024);
}

static void test_sizes_of_real_detectors(void **arg)
{
	static const struct {
		const struct sl_places *places;
		uint32_t modules, rows, columns;
	} want[] = {
		{&sl_places_jungfrau, 2, 1064, 1030},  {&sl_places_jungfrau, 8, 2164, 2068},
		{&sl_places_jungfrau, 18, 3264, 3106}, {&sl_places_jungfrau, 32, 4432, 4215},
		{&sl_places_eiger, 1, 514, 1030},      {&sl_places_eiger, 2, 1065, 1030},
		{&sl_places_eiger, 8, 2167, 2070},     {&sl_places_eiger, 18, 3269, 3110},
		{&sl_places_eiger, 32, 4371, 4150},
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct sl_geometry g = photon_detector(want[i].places, want[i].modules);

		assert_int_equal(g.layout.rows, want[i].rows);
		assert_int_equal(g.layout.columns, want[i].columns);
	}
}

static void test_any_number_of_modules_has_a_place(void **arg)
{
	for (uint32_t modules = 1; modules <= SL_LAYOUT_MODULES; modules++) {
		photon_detector(&sl_places_jungfrau, modules);
		photon_detector(&sl_places_eiger, modules);
	}
}

static void test_gaps_of_the_4m(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 8);
	uint32_t pixel;

	for (int64_t i = 0; i < 8; i++)
		assert_int_equal(sl_layout_find(&g, 100, 1030 + i, &pixel), -1);
	for (int64_t i = 0; i < 36; i++)
		assert_int_equal(sl_layout_find(&g, 514 + i, 100, &pixel), -1);
	assert_int_equal(sl_layout_find(&g, 513, 1029, &pixel), 0);
	assert_int_equal(sl_layout_find(&g, 513, 1038, &pixel), 1);
	assert_int_equal(sl_layout_find(&g, 550, 1029, &pixel), 2);
	check_assembly(&g, 2, 0);
	check_assembly(&g, 4, 1 << 5);
}

/* 32 modules around a hole for the beam, all pixels. */
static void test_16m_assembles_pixel_exactly(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 32);
	uint32_t pixel;

	assert_int_equal(sl_layout_find(&g, (int64_t)g.layout.beam_row,
					(int64_t)g.layout.beam_column, &pixel),
			 -1);
	check_assembly(&g, 2, 0);
}

/* As published for JF07T32V01: rows of four 550 apart, modules 1039; the right half 68 lower, the
 * lower half 68 to the left. */
static void test_16m_has_its_modules_where_they_are(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 32);

	for (uint32_t m = 0; m < 32; m++) {
		assert_int_equal(g.layout.module[m].row, m / 4 * 550 + (m % 4 >= 2 ? 68 : 0));
		assert_int_equal(g.layout.module[m].column, m % 4 * 1039 + (m / 4 < 4 ? 68 : 0));
		assert_int_equal(g.layout.module[m].turns, 0);
	}
}

/* Small modules, turned and strewn about. */
static void test_quarter_turns(void **arg)
{
	for (uint32_t n = 0; n < 64; n++) {
		struct sl_geometry g = {.modules = 2,
					.rows = 6,
					.columns = 8,
					.layout = {.rows = 40,
						   .columns = 24,
						   .asic_rows = n % 2 ? 3 : 6,
						   .asic_columns = n % 3 ? 4 : 0,
						   .gap = n % 5 * 2}};

		for (uint32_t m = 0; m < 2; m++)
			g.layout.module[m] = (struct sl_layout_module){
				.row = m * 20, .column = m, .turns = (n + m) % 4};
		g = resolved(g);
		check_map(&g);
		for (uint32_t bytes = 1; bytes <= 4; bytes *= 2)
			check_assembly(&g, bytes, n % 3 == 0 ? 1 : 0);
	}
}

/* Inside a piece raw pixels lie on the grid that begins at its corner, whichever way it is turned;
 * those at its edges may reach out of it. */
static void test_pieces_begin_where_their_pixels_do(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 8);

	assert_int_equal(sl_layout_pieces(&g), 8);
	for (uint32_t turns = 0; turns < 4; turns++) {
		struct sl_layout_piece piece;
		double row, column, down, right;

		for (uint32_t i = 0; i < 8; i++) {
			g.layout.module[5].turns = turns;
			sl_layout_piece(&g, 5, i, &piece);
			assert_int_equal(piece.rows, 256);
			assert_int_equal(piece.first_row, i / 4 * 256);
			assert_int_equal(piece.first_column, i % 4 * 256);
			sl_layout_centre(&g, 5,
					 (piece.first_row + 10) * 1024 + piece.first_column + 20,
					 &row, &column);
			down = turns == 0 ? 10.5 : turns == 1 ? 20.5 : turns == 2 ? -10.5 : -20.5;
			right = turns == 0 ? 20.5 : turns == 1 ? -10.5 : turns == 2 ? -20.5 : 10.5;
			assert_true(row - piece.row == down && column - piece.column == right);
		}
	}
}

static void test_beam_among_modules_as_they_were_read(void **arg)
{
	struct sl_geometry g = photon_detector(&sl_places_jungfrau, 2);
	double row, column;

	/* In the gap: next to it is the first row of the lower module. */
	sl_layout_beam_in_stack(&g, &row, &column);
	assert_true(row == 512 && column == 512);
	g.layout.beam_row = 550 + 3.25;
	g.layout.beam_column = 7.5;
	sl_layout_beam_in_stack(&g, &row, &column);
	assert_true(row == 512 + 3.25 && column == 7.5);
	/* Without gaps it is where it is in the image. */
	g = resolved((struct sl_geometry){.modules = 2, .rows = 4, .columns = 6});
	sl_layout_beam_in_stack(&g, &row, &column);
	assert_true(row == 4 && column == 3);
}

static void test_what_does_not_fit_is_refused(void **arg)
{
	struct sl_geometry g = {
		.modules = 2,
		.rows = 4,
		.columns = 4,
		.layout = {.rows = 8, .columns = 4, .module = {{0, 0, 0}, {4, 0, 0}}}};
	char why[100];

	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), 0);
	g.layout.module[1].row = 5;
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "module 1 is not inside the image");
	g.layout.module[1].row = 3;
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "module 1 lies on module 0");
	g.layout.module[1].row = 4;
	g.layout.asic_rows = 3;
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), -EINVAL);
	g.layout.asic_rows = 0;
	g.layout.gap = 3;
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), -EINVAL);
	g.modules = 65;
	assert_int_equal(sl_layout_check(&g, why, sizeof(why)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_layout_modules_lie_one_below_the_other),
		cmocka_unit_test(test_a_module_is_514_by_1030),
		cmocka_unit_test(test_sizes_of_real_detectors),
		cmocka_unit_test(test_any_number_of_modules_has_a_place),
		cmocka_unit_test(test_gaps_of_the_4m),
		cmocka_unit_test(test_16m_assembles_pixel_exactly),
		cmocka_unit_test(test_16m_has_its_modules_where_they_are),
		cmocka_unit_test(test_quarter_turns),
		cmocka_unit_test(test_pieces_begin_where_their_pixels_do),
		cmocka_unit_test(test_beam_among_modules_as_they_were_read),
		cmocka_unit_test(test_what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
