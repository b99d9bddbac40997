/* shares_test.c - rays, rings and shares on detectors of any shape: one pixel, turned modules, wide
 * pixels; everything that a pixel counts is accounted for. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "stage/radial.h"
#include "stage/shares.h"

static struct sl_geometry geometry_of(uint32_t modules, uint32_t rows, uint32_t columns)
{
	struct sl_geometry g = {.detector = "test",
				.modules = modules,
				.rows = rows,
				.columns = columns,
				.photon_energy_keV = 12.4,
				.pixel_size_m = 75e-6,
				.distance_m = 0.01};

	sl_layout_resolve(&g, &g.layout);
	return g;
}

/* Two modules of 2 x 2 ASICs, the second turned by a quarter. */
static struct sl_geometry turned(void)
{
	struct sl_geometry g = geometry_of(2, 8, 16);

	g.layout = (struct sl_layout){.rows = 40,
				      .columns = 50,
				      .asic_rows = 4,
				      .asic_columns = 8,
				      .gap = 2,
				      .beam_row = 14.3,
				      .beam_column = 21.1,
				      .module = {{3, 2, 0}, {12, 25, 1}}};
	return g;
}

static void open_rays(struct sl_rays *rays, const struct sl_geometry *g, uint32_t unit)
{
	const struct sl_rays_options o = {.unit = unit, .azimuth = true};
	const struct sl_env env = {.geometry = g};

	assert_int_equal(sl_rays_open(rays, &o, &env, "test"), 0);
}

/* The box of a raw pixel is that of the image pixels that it covers. */
static void boxes_are_those_of_the_image_pixels(void **arg)
{
	struct sl_geometry g = turned();
	struct sl_rays rays;
	uint32_t wide = 0;

	(void)arg;
	open_rays(&rays, &g, SL_RADIAL_R_PIXELS);
	for (uint32_t m = 0; m < 2; m++)
		for (uint32_t p = 0; p < 8 * 16; p++) {
			struct sl_ray ray = sl_rays_box(&rays, m, p);
			double far = 0, turn = 0, area = 0, row = 0, column = 0, r;

			for (int i = 0; i < 40 * 50; i++) {
				uint32_t pixel;

				if (sl_layout_find(&g, i / 50, i % 50, &pixel) != (int)m ||
				    pixel != p)
					continue;
				row += i / 50 + 0.5;
				column += i % 50 + 0.5;
				area++;
			}
			row = row / area - g.layout.beam_row;
			column = column / area - g.layout.beam_column;
			r = hypot(row, column);
			for (int i = 0; i < 40 * 50 * 4; i++) {
				double y = i / 4 / 50 + (i & 1) - g.layout.beam_row;
				double x = i / 4 % 50 + (i >> 1 & 1) - g.layout.beam_column;
				uint32_t pixel;

				if (sl_layout_find(&g, i / 4 / 50, i / 4 % 50, &pixel) != (int)m ||
				    pixel != p)
					continue;
				far = fmax(far, fabs(hypot(x, y) - r));
				turn = fmax(turn, fabs(remainder(atan2(y, x) - atan2(row, column),
								 2 * M_PI)));
			}
			assert_float_equal(ray.x, r, 1e-9);
			assert_float_equal(ray.half_x, far, 1e-9);
			assert_float_equal(ray.half_chi, turn * 180 / M_PI, 1e-9);
			assert_float_equal(ray.norm, area, 1e-12);
			wide += area > 1;
		}
	assert_true(wide > 50);
}

/* Every unit by its formula. */
static void units_are_what_they_say(void **arg)
{
	struct sl_geometry g = geometry_of(1, 50, 70);
	double lambda_nm = 1.2398419843320026 / 12.4;

	(void)arg;
	for (uint32_t p = 0; p < 50 * 70; p++) {
		double r = hypot(p / 70 + 0.5 - 25, p % 70 + 0.5 - 35);
		double tth = atan(r * 75e-6 / 0.01);
		const double want[] = {4 * M_PI * sin(tth / 2) / lambda_nm, tth * 180 / M_PI,
				       r * 0.075, r};

		for (uint32_t unit = 0; unit < 4; unit++) {
			struct sl_rays rays;

			open_rays(&rays, &g, unit);
			assert_float_equal(sl_rays_middle(&rays, 0, p).x, want[unit],
					   1e-12 * want[unit]);
		}
	}
}

static struct sl_shares_options options_of(uint32_t bins, uint32_t sectors, bool boxes)
{
	return (struct sl_shares_options){
		.bins = bins, .sectors = sectors, .boxes = boxes, .value_bits = 16};
}

/* Up to the farthest corner all of a pixel is somewhere; its cells are next to each other. */
static void shares_of_a_pixel_are_one_pixel(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 3 * 3 * 2; n++) {
		static const uint32_t bins[] = {1, 17, 400}, sectors[] = {0, 1, 12};
		struct sl_geometry g = turned();
		const struct sl_env env = {.geometry = &g};
		struct sl_shares_options o = options_of(bins[n % 3], sectors[n / 3 % 3], n / 9);
		int64_t all = 0, want = 0;
		struct sl_shares s;
		struct sl_rays rays;

		open_rays(&rays, &g, SL_RADIAL_TTH_DEG);
		assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), 0);
		assert_int_equal(s.cells,
				 bins[n % 3] * (sectors[n / 3 % 3] ? sectors[n / 3 % 3] : 1));
		for (uint64_t i = 0; i < s.pixels; i++) {
			double sum = s.cell ? 1 : 0;

			if (s.cell)
				assert_true(s.cell[i] < s.cells);
			for (uint32_t e = s.cell ? 0 : s.first[i]; !s.cell && e < s.first[i + 1];
			     e++) {
				sum += sl_share_part(s.share[e]) / (double)(1u << s.bits);
				assert_true(s.share[e].cell < s.cells);
				assert_int_equal(s.share[e].share >> 31, e + 1 == s.first[i + 1]);
			}
			assert_float_equal(sum, 1, 1e-6);
			want += sl_shares_norm(&s, i, 1u << s.bits);
		}
		for (uint32_t c = 0; c < s.cells; c++)
			all += s.total[c];
		assert_true(llabs(all - want) <= want / 1000000);
		sl_shares_close(&s);
	}
}

static void one_pixel_is_an_image(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 4; n++) {
		struct sl_geometry g = geometry_of(1, 1, 1);
		const struct sl_env env = {.geometry = &g};
		struct sl_shares_options o = options_of(3, n & 2 ? 4 : 0, n & 1);
		double sum = 0;
		struct sl_shares s;
		struct sl_rays rays;

		/* The beam goes through its middle, where it has neither distance nor angle. */
		open_rays(&rays, &g, SL_RADIAL_Q_NM);
		assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), 0);
		assert_true(s.high > 0);
		for (uint32_t c = 0; c < s.cells; c++)
			sum += (double)s.total[c] * s.norm_unit;
		assert_float_equal(sum, 1, 1e-6);
		sl_shares_close(&s);
	}
}

/* Rings of radial.c are those of shares without split. */
static void rings_are_the_same_for_all(void **arg)
{
	struct sl_geometry g = turned();
	uint8_t mask[2 * 8 * 16] = {0};
	const struct sl_calibration calibration = {.mask = mask};
	const struct sl_env env = {.geometry = &g, .calibration = &calibration};
	const struct sl_radial_options r = {
		.bins = 31, .unit = SL_RADIAL_Q_NM, .low = 4, .high = 20};
	struct sl_shares_options o = options_of(31, 0, false);
	struct sl_radial radial;
	struct sl_shares s;
	struct sl_rays rays;
	int used = 0;

	(void)arg;
	memset(mask + 40, 1, 20);
	o.low = 4;
	o.high = 20;
	open_rays(&rays, &g, SL_RADIAL_Q_NM);
	assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), 0);
	assert_int_equal(sl_radial_open(&radial, &r, &env, "test"), 0);
	for (uint64_t i = 0; i < s.pixels; i++) {
		assert_int_equal(s.cell[i], radial.bin[i]);
		assert_true(s.norm[i] == radial.norm[i]);
		used += s.cell[i] < 31;
	}
	assert_true(used > 100 && used < 2 * 8 * 16);
	for (uint32_t b = 0; b < 31; b++) {
		assert_float_equal((double)s.total[b] * s.norm_unit, radial.total[b], 1e-6);
		assert_float_equal(sl_shares_bin(&s, b), sl_radial_middle(&radial, b), 1e-12);
	}
	sl_radial_close(&radial);
	sl_shares_close(&s);
}

static void a_range_without_pixels_is_refused(void **arg)
{
	struct sl_geometry g = geometry_of(1, 20, 20);
	const struct sl_env env = {.geometry = &g};
	struct sl_shares_options o = options_of(10, 0, true);
	struct sl_shares s = {.cells = 0};
	struct sl_rays rays;

	(void)arg;
	open_rays(&rays, &g, SL_RADIAL_R_PIXELS);
	o.low = 15;
	capture_begin();
	assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), -EINVAL);
	assert_non_null(strstr(capture_end(), "low is beyond the farthest pixel"));
	o.high = 30;
	capture_begin();
	assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), -EINVAL);
	assert_non_null(strstr(capture_end(), "no pixel that is not masked lies between"));
	o.high = 14.9;
	capture_begin();
	assert_int_equal(sl_shares_open(&s, &o, &rays, &env, "test"), -EINVAL);
	assert_non_null(strstr(capture_end(), "high must be above low"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_are_those_of_the_image_pixels),
		cmocka_unit_test(units_are_what_they_say),
		cmocka_unit_test(shares_of_a_pixel_are_one_pixel),
		cmocka_unit_test(one_pixel_is_an_image),
		cmocka_unit_test(rings_are_the_same_for_all),
		cmocka_unit_test(a_range_without_pixels_is_refused),
	};

	return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
