/* rich_test.c - events of the RICH: their bytes, the lattice of photomultipliers, and rings that a
 * fit finds where the truth says they are. With PICTURES=folder in the environment, events are
 * drawn there to be looked at. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detector/rich/event.h"

#include <sluice/detector.h>
#include <sluice/random.h>

extern const struct sl_detector sl_detector_rich;
static const struct sl_detector *const rich = &sl_detector_rich;

enum { COLUMNS = 7, EVENTS = 20000 };
enum { EVENT, X, Y, RADIUS, MOMENTUM, PARTICLE, HITS };

static void *open_rich(uint64_t seed, uint32_t modules, const char *const (*set)[2],
		       struct sl_geometry *geometry)
{
	struct sl_detector_options run = {.modules = modules, .frames = 10, .seed = seed};
	void *state = calloc(1, rich->state_bytes);
	char why[128];

	sl_options_defaults(rich->options, state);
	for (; set && (*set)[0]; set++)
		assert_int_equal(sl_option_set(sl_option_find(rich->options, (*set)[0]), state,
					       (*set)[1], why, sizeof(why)),
				 0);
	assert_int_equal(rich->open(state, &run, geometry), 0);
	return state;
}

static void close_rich(void *state)
{
	rich->close(state);
	free(state);
}

static struct sl_rich_setup setup(void)
{
	static float normal[SL_NORMAL_ENTRIES];

	sl_normal_fill(normal);
	return (struct sl_rich_setup){.two_rings = 0.3,
				      .three_rings = 0.05,
				      .ring_hits = 17,
				      .noise_hits = 2,
				      .resolution_mm = 4.7,
				      .normal = normal};
}

/* ---- bytes and cells ---- */

static void test_hits_lie_where_the_header_says(void **arg)
{
	static const uint16_t hit[3] = {0x123, 0x7ff, 0x001};
	static const uint8_t begins[] = {0x23, 0xf1, 0x7f, 0x01, 0xf0, 0xff};
	uint8_t event[SL_RICH_EVENT_BYTES];

	sl_rich_pack(hit, 3, event);
	assert_memory_equal(event, begins, sizeof(begins));
	for (size_t i = sizeof(begins); i < sizeof(event); i++)
		assert_int_equal(event[i], 0xff);
	assert_int_equal(sl_rich_hits(event), 3);
}

static void test_what_was_packed_comes_out(void **arg)
{
	for (uint32_t n = 0; n <= SL_RICH_HITS; n++) {
		uint8_t event[SL_RICH_EVENT_BYTES + 2] = {[0] = 0x5a,
							  [SL_RICH_EVENT_BYTES + 1] = 0xa5};
		uint16_t hit[SL_RICH_HITS];

		for (uint32_t i = 0; i < n; i++)
			hit[i] = (uint16_t)(sl_draw(n, i) % SL_RICH_CELLS);
		sl_rich_pack(hit, n, event + 1);
		assert_int_equal(sl_rich_hits(event + 1), n);
		for (uint32_t i = 0; i < SL_RICH_HITS; i++)
			assert_int_equal(sl_rich_hit(event + 1, i),
					 i < n ? hit[i] : SL_RICH_UNUSED);
		assert_int_equal(event[0], 0x5a);
		assert_int_equal(event[SL_RICH_EVENT_BYTES + 1], 0xa5);
	}
}

static void test_cells_are_a_hexagonal_lattice(void **arg)
{
	double sum_x = 0, sum_y = 0;
	uint32_t inner = 0;

	for (uint32_t a = 0; a < SL_RICH_DISK_CELLS; a++) {
		double ax, ay, bx, by;
		uint32_t near = 0;

		sl_rich_position(a, &ax, &ay);
		sl_rich_position(a + SL_RICH_DISK_CELLS, &bx, &by);
		assert_true(ax == bx && ay == by);
		assert_true(hypot(ax, ay) < 298);
		sum_x += ax;
		sum_y += ay;
		for (uint32_t b = 0; b < SL_RICH_DISK_CELLS; b++) {
			double d;

			sl_rich_position(b, &bx, &by);
			d = hypot(ax - bx, ay - by);
			assert_true(a == b || d > SL_RICH_PITCH_MM - 1e-9);
			near += a != b && d < SL_RICH_PITCH_MM + 1e-9;
		}
		assert_true(near >= 2 && near <= 6);
		inner += near == 6;
	}
	assert_true(inner > 850);
	assert_true(fabs(sum_x) < 1e-6 && fabs(sum_y) < 1e-6);
}

/* ---- physics ---- */

static void test_radii_are_those_of_neon(void **arg)
{
	assert_true(fabs(sl_rich_radius_mm(SL_RICH_PION, 15) - 106) < 1);
	assert_true(fabs(sl_rich_radius_mm(SL_RICH_PION, 35) - 178) < 1);
	assert_true(fabs(sl_rich_radius_mm(SL_RICH_MUON, 15) - 148) < 1);
	assert_true(fabs(sl_rich_radius_mm(SL_RICH_ELECTRON, 40) - 190) < 1);
	assert_true(sl_rich_radius_mm(SL_RICH_PION, 12) == 0);
	assert_true(sl_rich_radius_mm(SL_RICH_MUON, 9) == 0);
}

static void test_as_many_hits_and_rings_as_the_experiment_has(void **arg)
{
	struct sl_rich_setup s = setup();
	uint64_t hits = 0, full = 0, rings[4] = {0}, kinds[3] = {0}, all = 0;

	for (uint64_t i = 0; i < EVENTS; i++) {
		struct sl_rich_event e;

		sl_rich_event(&s, sl_key(7, i), false, &e);
		assert_int_equal(e.rings, sl_rich_event_rings(&s, sl_key(7, i)));
		hits += e.hits;
		full += e.hits == SL_RICH_HITS;
		rings[e.rings]++;
		all += e.rings;
		for (uint32_t r = 0; r < e.rings; r++) {
			kinds[e.ring[r].particle]++;
			assert_true(e.ring[r].radius_mm > 10 && e.ring[r].radius_mm < 191);
			assert_true(e.ring[r].radius_mm ==
				    sl_rich_radius_mm(e.ring[r].particle, e.ring[r].momentum_GeV));
		}
	}
	/* 20 photons on average, of 32 at most. */
	assert_true(fabs((double)hits / EVENTS - 20) < 0.5);
	assert_true(full > EVENTS / 50 && full < EVENTS / 5);
	assert_true(fabs((double)rings[2] / EVENTS - 0.3) < 0.015);
	assert_true(fabs((double)rings[3] / EVENTS - 0.05) < 0.01);
	assert_true(fabs((double)kinds[SL_RICH_MUON] / (double)all - 0.64) < 0.02);
	assert_true(fabs((double)kinds[SL_RICH_ELECTRON] / (double)all - 0.05) < 0.01);
}

static void test_every_hit_is_of_a_ring_when_there_is_no_noise(void **arg)
{
	struct sl_rich_setup s = setup();
	double square = 0;
	uint64_t n = 0, sides[2] = {0};

	s.noise_hits = 0;
	s.two_rings = s.three_rings = 0;
	for (uint64_t i = 0; i < EVENTS; i++) {
		struct sl_rich_event e;

		sl_rich_event(&s, sl_key(9, i), false, &e);
		assert_int_equal(e.ring[0].hits, e.hits);
		for (uint32_t h = 0; h < e.hits; h++) {
			double x, y, d;

			assert_true(e.hit[h] < SL_RICH_CELLS);
			for (uint32_t other = 0; other < h; other++)
				assert_int_not_equal(e.hit[h], e.hit[other]);
			sl_rich_position(e.hit[h], &x, &y);
			d = hypot(x - e.ring[0].x_mm, y - e.ring[0].y_mm) - e.ring[0].radius_mm;
			assert_true(fabs(d) < 5 * 4.7 + 10.5);
			square += d * d;
			n++;
			sides[e.hit[h] / SL_RICH_DISK_CELLS]++;
		}
	}
	/* 4.7 mm of the optics and 18 mm / 4 of the cell. */
	assert_true(fabs(sqrt(square / (double)n) - hypot(4.7, 4.5)) < 0.4);
	assert_true(fabs((double)sides[0] / (double)n - 0.5) < 0.03);
}

/* Kasa's fit: the circle through points by least squares, by centred sums. */
static void fit(const uint16_t *hit, uint32_t n, double *cx, double *cy, double *radius)
{
	double mx = 0, my = 0, uu = 0, vv = 0, uv = 0, uz = 0, vz = 0, x, y, determinant, a, b;

	for (uint32_t i = 0; i < n; i++) {
		sl_rich_position(hit[i], &x, &y);
		mx += x / n;
		my += y / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double u, v;

		sl_rich_position(hit[i], &x, &y);
		u = x - mx;
		v = y - my;
		uu += u * u;
		vv += v * v;
		uv += u * v;
		uz += u * (u * u + v * v) / 2;
		vz += v * (u * u + v * v) / 2;
	}
	determinant = uu * vv - uv * uv;
	a = (uz * vv - vz * uv) / determinant;
	b = (vz * uu - uz * uv) / determinant;
	*cx = mx + a;
	*cy = my + b;
	*radius = sqrt(a * a + b * b + (uu + vv) / n);
}

static void test_a_fit_finds_the_true_ring(void **arg)
{
	struct sl_rich_setup s = setup();
	double radius_error = 0, radius_square = 0, centre_square = 0;
	uint32_t n = 0;

	s.noise_hits = 0;
	s.two_rings = s.three_rings = 0;
	for (uint64_t i = 0; i < EVENTS; i++) {
		struct sl_rich_event e;
		double x, y, r;

		sl_rich_event(&s, sl_key(11, i), false, &e);
		/* A whole ring with enough light. */
		if (e.hits < 10 || hypot(e.ring[0].x_mm, e.ring[0].y_mm) > 90)
			continue;
		fit(e.hit, e.hits, &x, &y, &r);
		radius_error += r - e.ring[0].radius_mm;
		radius_square += pow(r - e.ring[0].radius_mm, 2);
		centre_square += pow(x - e.ring[0].x_mm, 2);
		n++;
	}
	assert_true(n > EVENTS / 2);
	assert_true(fabs(radius_error / n) < 0.5);
	assert_true(sqrt(radius_square / n) < 3);
	assert_true(sqrt(centre_square / n) < 4);
}

static void test_dark_events_have_noise_only(void **arg)
{
	struct sl_rich_setup s = setup();
	uint64_t hits = 0;

	for (uint64_t i = 0; i < EVENTS; i++) {
		struct sl_rich_event e;

		sl_rich_event(&s, sl_key(13, i), true, &e);
		assert_int_equal(e.rings, 0);
		hits += e.hits;
	}
	assert_true(fabs((double)hits / EVENTS - 2) < 0.05);
}

/* ---- the detector ---- */

static void test_blocks_are_the_events_of_the_truth(void **arg)
{
	static const char *const set[][2] = {{"events", "40"}, {"noise_hits", "0"}, {NULL, NULL}};
	struct sl_geometry g;
	void *state = open_rich(5, 3, set, &g);
	struct sl_truth truth;
	double *table;
	uint32_t rows;

	assert_int_equal(g.items, 40);
	assert_int_equal(g.rows, 40);
	assert_int_equal(g.columns, 48);
	rich->truth(state, 3, 0, &truth);
	table = calloc(truth.spots, COLUMNS * sizeof(*table));
	rows = rich->truth_rows(state, 3, 0, table, truth.spots);
	assert_int_equal(rows, truth.spots);
	for (uint32_t item = 0; item < 3 * 40; item++) {
		const void *block;
		double of_rings = 0;
		uint32_t rings = 0, hits;

		assert_int_equal(rich->render(state, 3, item / 40, 0, NULL, &block), 0);
		hits = sl_rich_hits((const uint8_t *)block + (size_t)(item % 40) * 48);
		for (uint32_t i = 0; i < rows; i++)
			if (table[i * COLUMNS + EVENT] == item) {
				of_rings += table[i * COLUMNS + HITS];
				rings++;
			}
		assert_true(rings >= 1 && rings <= 3);
		/* A cell may have light of two rings, and then is one hit. */
		assert_true(of_rings >= hits && of_rings <= 2 * hits);
		if (rings == 1)
			assert_true(of_rings == hits);
	}
	free(table);
	close_rich(state);
}

static void test_truth_fills_no_more_than_asked_for(void **arg)
{
	struct sl_geometry g;
	void *state = open_rich(1, 1, NULL, &g);
	double table[3 * COLUMNS + 1], canary = 12345;
	struct sl_truth truth;

	table[3 * COLUMNS] = canary;
	rich->truth(state, 0, 0, &truth);
	assert_int_equal(rich->truth_rows(state, 0, 0, table, 3), truth.spots);
	assert_true(table[3 * COLUMNS] == canary);
	assert_int_equal(rich->truth_rows(state, 0, 0, NULL, 0), truth.spots);
	close_rich(state);
}

static void test_the_pool_is_replayed_without_a_copy(void **arg)
{
	static const char *const set[][2] = {{"pool", "7"}, {NULL, NULL}};
	struct sl_geometry g;
	void *state = open_rich(1, 2, set, &g);
	const void *first, *later;

	assert_int_equal(rich->prepare(state), 0);
	assert_int_equal(rich->render(state, 3, 1, 0, NULL, &first), 0);
	assert_int_equal(rich->render(state, 3 + 7 * 1000, 1, 0, NULL, &later), 0);
	assert_ptr_equal(first, later);
	close_rich(state);
}

/* ---- pictures ---- */

static void save(const uint8_t *rgb, uint32_t rows, uint32_t columns, int number)
{
	const char *folder = getenv("PICTURES");
	char path[4096];
	FILE *file;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/rich-%d.ppm", folder, number);
	file = fopen(path, "wb");
	assert_non_null(file);
	fprintf(file, "P6 %u %u 255\n", columns, rows);
	fwrite(rgb, 3, (size_t)rows * columns, file);
	fclose(file);
}

static uint64_t pixels_of(const uint8_t *rgb, size_t pixels, uint32_t colour)
{
	uint64_t n = 0;

	for (; pixels; pixels--, rgb += 3)
		n += (uint32_t)(rgb[0] << 16 | rgb[1] << 8 | rgb[2]) == colour;
	return n;
}

static void test_a_picture_shows_hits_and_rings(void **arg)
{
	enum { ROWS = 480, WIDE = 960 };
	uint8_t *rgb = malloc(ROWS * WIDE * 3);
	struct sl_geometry g;
	void *state = open_rich(1, 2, NULL, &g);

	for (uint32_t item = 0; item < 6; item++) {
		memset(rgb, 1, ROWS * WIDE * 3);
		assert_int_equal(rich->picture(state, 0, 0, item * 50, rgb, ROWS, WIDE), 0);
		assert_int_equal(pixels_of(rgb, ROWS * WIDE, 0x010101), 0);
		assert_true(pixels_of(rgb, ROWS * WIDE, 0xd02020) > 100);
		assert_true(pixels_of(rgb, ROWS * WIDE, 0xe4e4e8) > 10000);
		save(rgb, ROWS, WIDE, (int)item);
	}
	assert_int_equal(rich->picture(state, 0, 0, 512, rgb, ROWS, WIDE), -EINVAL);
	free(rgb);
	close_rich(state);
}

static void test_pictures_of_any_size(void **arg)
{
	static const uint32_t sizes[][2] = {{1, 1}, {1, 500}, {500, 1}, {7, 13}};
	struct sl_geometry g;
	void *state = open_rich(1, 1, NULL, &g);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *rgb = malloc((size_t)sizes[i][0] * sizes[i][1] * 3);

		assert_int_equal(rich->picture(state, 1, 0, 2, rgb, sizes[i][0], sizes[i][1]), 0);
		free(rgb);
	}
	close_rich(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hits_lie_where_the_header_says),
		cmocka_unit_test(test_what_was_packed_comes_out),
		cmocka_unit_test(test_cells_are_a_hexagonal_lattice),
		cmocka_unit_test(test_radii_are_those_of_neon),
		cmocka_unit_test(test_as_many_hits_and_rings_as_the_experiment_has),
		cmocka_unit_test(test_every_hit_is_of_a_ring_when_there_is_no_noise),
		cmocka_unit_test(test_a_fit_finds_the_true_ring),
		cmocka_unit_test(test_dark_events_have_noise_only),
		cmocka_unit_test(test_blocks_are_the_events_of_the_truth),
		cmocka_unit_test(test_truth_fills_no_more_than_asked_for),
		cmocka_unit_test(test_the_pool_is_replayed_without_a_copy),
		cmocka_unit_test(test_a_picture_shows_hits_and_rings),
		cmocka_unit_test(test_pictures_of_any_size),
	};

	return cmocka_run_group_tests_name("rich", tests, NULL, NULL);
}
