/* tracker_test.c - stubs of the tracker: their bytes, where they lie, how many there are, and
 * tracks that a Hough transform finds where the truth says they are. With PICTURES=folder in the
 * environment, events are drawn there to be looked at. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "detector/tracker/event.h"
#include "lib/capture.h"

extern const struct sl_detector sl_detector_tracker;
static const struct sl_detector *const tracker = &sl_detector_tracker;

enum { COLUMNS = 9 };
enum { EVENT, PT, PHI0, ETA, Z0, CHARGE, SECTOR, SECTORS, STUBS };

/* set: name, value, ..., NULL */
static void *open_tracker(uint32_t modules, const char *const *set, struct sl_geometry *geometry,
			  int expected)
{
	struct sl_detector_options run = {.modules = modules, .frames = 10, .seed = 3};
	void *state = calloc(1, tracker->state_bytes);
	char why[128];

	sl_options_defaults(tracker->options, state);
	for (; set && *set; set += 2)
		assert_int_equal(sl_option_set(sl_option_find(tracker->options, set[0]), state,
					       set[1], why, sizeof(why)),
				 0);
	assert_int_equal(tracker->open(state, &run, geometry), expected);
	return state;
}

static void close_tracker(void *state)
{
	tracker->close(state);
	free(state);
}

static struct sl_tracker_setup setup(double pile_up)
{
	static float normal[SL_NORMAL_ENTRIES];

	sl_normal_fill(normal);
	return (struct sl_tracker_setup){.pile_up = pile_up,
					 .jets = 6,
					 .pt_cut_GeV = 3,
					 .efficiency = 0.95,
					 .background = 1,
					 .normal = normal};
}

static struct sl_tracker_event *new_event(void)
{
	struct sl_tracker_event *event = malloc(sizeof(*event));

	assert_non_null(event);
	return event;
}

/* ---- bytes ---- */

static void test_fields_lie_where_the_header_says(void **arg)
{
	static const struct {
		struct sl_stub stub;
		uint8_t bytes[SL_STUB_BYTES];
	} cases[] = {
		{{.layer = 0}, {0x01}},
		{{.layer = 7}, {0x0f}},
		{{.bend = -1}, {0xf1}},
		{{.z = -1}, {0x01, 0xff, 0x3f}},
		{{.r = 4095}, {0x01, 0, 0xc0, 0xff, 0x03}},
		{{.phi = -1}, {0x01, 0, 0, 0, 0xfc, 0xff}},
		{{.phi = 8191}, {0x01, 0, 0, 0, 0xfc, 0x7f}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[SL_STUB_BYTES + 1] = {[SL_STUB_BYTES] = 0x5a};

		sl_stub_pack(&cases[i].stub, bytes);
		assert_memory_equal(bytes, cases[i].bytes, SL_STUB_BYTES);
		assert_int_equal(bytes[SL_STUB_BYTES], 0x5a);
	}
}

static void test_what_was_packed_comes_out(void **arg)
{
	static const uint8_t nothing[SL_STUB_BYTES];
	struct sl_stub out;

	for (uint64_t i = 0; i < 10000; i++) {
		struct sl_stub in = {
			.phi = (int32_t)(sl_draw(i, 0) % 16384) - 8192,
			.z = (int32_t)(sl_draw(i, 1) % 16384) - 8192,
			.bend = (int32_t)(sl_draw(i, 2) % 16) - 8,
			.r = (uint32_t)(sl_draw(i, 3) % 4096),
			.layer = (uint32_t)(sl_draw(i, 4) % 8),
		};
		uint8_t bytes[SL_STUB_BYTES];

		sl_stub_pack(&in, bytes);
		assert_int_equal(sl_stub_unpack(bytes, &out), 1);
		assert_memory_equal(&in, &out, sizeof(in));
	}
	assert_int_equal(sl_stub_unpack(nothing, &out), 0);
}

/* ---- physics ---- */

/* Stubs of a sector, with those that it shares, as in the seed: half of 160, more or less. */
static double occupancy(double pile_up, double *over)
{
	enum { EVENTS = 30 };
	struct sl_tracker_setup s = setup(pile_up);
	struct sl_tracker_event *event = new_event();
	double sum = 0;

	*over = 0;
	for (uint64_t i = 0; i < EVENTS; i++) {
		uint32_t row[SL_TRACKER_SECTORS] = {0};

		sl_tracker_event(&s, sl_key(5, i), false, event);
		for (uint32_t k = 0; k < event->stubs; k++) {
			struct sl_tracker_sectors in = sl_tracker_sectors(&s, &event->stub[k]);

			assert_true(in.phis >= 1 && in.phis <= 3);
			assert_true(in.eta + in.etas <= SL_TRACKER_ETA_SECTORS);
			for (uint32_t p = 0; p < in.phis; p++)
				for (uint32_t e = 0; e < in.etas; e++)
					row[(in.phi + p) % 32 * 9 + in.eta + e]++;
		}
		for (uint32_t k = 0; k < SL_TRACKER_SECTORS; k++) {
			sum += row[k];
			*over += row[k] > SL_STUBS;
		}
	}
	free(event);
	*over /= EVENTS * SL_TRACKER_SECTORS;
	return sum / (EVENTS * SL_TRACKER_SECTORS);
}

static void test_as_many_stubs_as_expected(void **arg)
{
	double over;

	assert_true(fabs(occupancy(140, &over) - 65) < 4);
	assert_true(over < 0.01);
	assert_true(fabs(occupancy(200, &over) - 90) < 5);
	assert_true(over < 0.05);
}

static void test_stubs_lie_on_their_tracks(void **arg)
{
	struct sl_tracker_setup s = setup(200);
	struct sl_tracker_event *event = new_event();
	double square = 0, layers = 0;
	uint32_t n = 0, tracks = 0;

	for (uint64_t i = 0; i < 20; i++) {
		sl_tracker_event(&s, sl_key(6, i), false, event);
		tracks += event->tracks;
		for (uint32_t k = 0; k < event->stubs; k++) {
			const struct sl_tracker_stub *stub = &event->stub[k];
			const struct sl_tracker_track *t;
			double phi, aside, z;

			assert_true(fabs(stub->phi) <= SL_PI);
			assert_true(stub->r_cm > 20 && stub->r_cm < 115);
			assert_true(stub->layer >= 1 && stub->layer <= 7);
			if (stub->track == SL_TRACKER_NO_TRACK)
				continue;
			t = &event->track[stub->track];
			z = t->z0_cm + stub->r_cm * sinh(t->eta);
			/* 2S strips are 5 cm long; in the disks that is so in r. */
			assert_true(fabs(z - stub->z_cm) < 4 + 3.5 * fabs(sinh(t->eta)));
			if (fabs(stub->z_cm) > 121)
				continue;
			layers++;
			phi = t->phi0 - asin(SL_TRACKER_K * stub->r_cm * t->charge / t->pt_GeV);
			aside = remainder(phi - stub->phi, 2 * SL_PI) * stub->r_cm;
			assert_true(fabs(aside) < 1);
			square += aside * aside;
			n++;
		}
	}
	free(event);
	assert_true(tracks > 20 * 40 && tracks < 20 * 90);
	/* Scattering, mostly. */
	assert_true(sqrt(square / n) > 0.01 && sqrt(square / n) < 0.15);
}

static void test_every_layer_once_and_nearly_all_of_them(void **arg)
{
	struct sl_tracker_setup s = setup(200);
	struct sl_tracker_event *event = new_event();
	uint32_t tracks = 0, stubs = 0, twice = 0, good = 0, central = 0, central_stubs = 0;

	s.background = 0;
	for (uint64_t i = 0; i < 50; i++) {
		uint8_t seen[SL_TRACKER_TRACKS] = {0};

		sl_tracker_event(&s, sl_key(8, i), false, event);
		for (uint32_t k = 0; k < event->stubs; k++) {
			uint8_t bit = (uint8_t)(1 << event->stub[k].layer);

			twice += !!(seen[event->stub[k].track] & bit);
			seen[event->stub[k].track] |= bit;
		}
		tracks += event->tracks;
		stubs += event->stubs;
		for (uint32_t k = 0; k < event->tracks; k++) {
			good += event->track[k].sectors > 0;
			if (fabs(event->track[k].eta) < 0.7) {
				central++;
				central_stubs += event->track[k].stubs;
			}
		}
	}
	free(event);
	assert_true(twice < stubs / 200);
	/* Six layers, 95 % each, less a few that the bend seems to rule out. */
	assert_true(fabs((double)central_stubs / central - 5.7 * 0.97) < 0.2);
	assert_true(good > 0.9 * tracks);
}

static void test_dark_events_have_no_tracks(void **arg)
{
	struct sl_tracker_setup s = setup(200);
	struct sl_tracker_event *event = new_event();

	sl_tracker_event(&s, 1, true, event);
	assert_int_equal(event->tracks, 0);
	assert_true(event->stubs > 5 && event->stubs < 80);
	free(event);
}

/* ---- the detector ---- */

/* Layers that the stubs of a row have in the best cell of a Hough transform: q/pT by phi at 67 cm.
 */
static unsigned hough(const uint8_t *row, double *q_over_pt, double *phi)
{
	enum { N = 32 };
	const double x_max = 1 / 3., y_max = SL_PI / SL_TRACKER_PHI_SECTORS;
	uint8_t map[N][N] = {{0}};
	struct sl_stub stub;
	unsigned best = 0;

	for (uint32_t k = 0; k < SL_STUBS && sl_stub_unpack(row, &stub); k++) {
		double lever = SL_TRACKER_K * (stub.r * SL_STUB_R_CM - SL_TRACKER_R_PHI);

		for (int i = 0; i < N; i++) {
			double x = ((i + 0.5) / N * 2 - 1) * x_max;
			double middle = stub.phi * SL_STUB_PHI_RAD + lever * x + y_max;
			double aside = fabs(lever) * x_max / N, cell = 2 * y_max / N;

			for (int j = (int)floor((middle - aside) / cell);
			     j <= (int)floor((middle + aside) / cell); j++)
				if (j >= 0 && j < N)
					map[i][j] |= (uint8_t)(1 << stub.layer);
		}
		row += SL_STUB_BYTES;
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if ((unsigned)__builtin_popcount(map[i][j]) > best) {
				best = (unsigned)__builtin_popcount(map[i][j]);
				*q_over_pt = ((i + 0.5) / N * 2 - 1) * x_max;
				*phi = ((j + 0.5) / N * 2 - 1) * y_max;
			}
	return best;
}

static void test_a_hough_transform_finds_the_tracks(void **arg)
{
	static const char *const set[] = {"sectors", "9", "background", "0", "jets", "0", NULL};
	struct sl_geometry g;
	void *state = open_tracker(32, set, &g, 0);
	struct sl_truth truth;
	double *table;
	uint32_t found = 0, sought = 0;

	assert_int_equal(g.rows, 36);
	assert_int_equal(g.columns, 960);
	assert_int_equal(sl_geometry_frame_items(&g), 4);
	tracker->truth(state, 0, 0, &truth);
	table = calloc(truth.spots, COLUMNS * sizeof(*table));
	assert_int_equal(tracker->truth_rows(state, 0, 0, table, truth.spots), truth.spots);
	for (uint32_t i = 0; i < truth.spots; i++) {
		const double *t = table + (size_t)i * COLUMNS;
		uint32_t sector = (uint32_t)t[SECTOR];
		const void *block;
		double x, phi, true_phi;

		if (t[SECTORS] < 1)
			continue;
		sought++;
		assert_int_equal(tracker->render(state, 0, sector / 9, 0, NULL, &block), 0);
		if (hough((const uint8_t *)block + ((uint32_t)t[EVENT] * 9 + sector % 9) * 960, &x,
			  &phi) < 5)
			continue;
		true_phi = t[PHI0] - asin(SL_TRACKER_K * SL_TRACKER_R_PHI * t[CHARGE] / t[PT]);
		true_phi = remainder(true_phi - sl_tracker_sector_phi(sector), 2 * SL_PI);
		found += fabs(x - t[CHARGE] / t[PT]) < 0.05 && fabs(phi - true_phi) < 0.02;
	}
	assert_true(sought > 50);
	/* Not those that share a sector with a better one. */
	assert_true(found > 0.9 * sought);
	free(table);
	close_tracker(state);
}

static void test_stubs_in_overlaps_are_the_same_in_both_sectors(void **arg)
{
	static const char *const set[] = {"sectors", "9", "events", "1", NULL};
	struct sl_geometry g;
	void *state = open_tracker(2, set, &g, 0);
	const uint8_t *row[2];
	uint32_t stubs[2] = {0}, both = 0;

	for (uint32_t m = 0; m < 2; m++) {
		const void *block;
		struct sl_stub stub;

		assert_int_equal(tracker->render(state, 0, m, 0, NULL, &block), 0);
		row[m] = (const uint8_t *)block + 4 * 960; /* the middle in eta */
		while (sl_stub_unpack(row[m] + stubs[m] * 6, &stub))
			stubs[m]++;
		/* What is not used is zero to the end. */
		for (uint32_t i = stubs[m] * 6; i < 960; i++)
			assert_int_equal(row[m][i], 0);
	}
	for (uint32_t i = 0; i < stubs[0]; i++)
		for (uint32_t j = 0; j < stubs[1]; j++) {
			const double apart = SL_PI / 16 / SL_STUB_PHI_RAD;
			struct sl_stub a, b;

			sl_stub_unpack(row[0] + i * 6, &a);
			sl_stub_unpack(row[1] + j * 6, &b);
			both += a.r == b.r && a.z == b.z && a.layer == b.layer &&
				a.bend == b.bend && fabs(a.phi - b.phi - apart) < 1.5;
		}
	assert_true(stubs[0] > 30 && stubs[1] > 30);
	assert_true(both > 5 && both < stubs[0]);
	close_tracker(state);
}

/* Others could not be found. */
static void test_truth_has_tracks_of_the_sectors_that_are_there_only(void **arg)
{
	struct sl_geometry g;
	void *state = open_tracker(2, NULL, &g, 0);
	double table[64 * COLUMNS];
	uint32_t tracks = 0;

	for (uint64_t frame = 0; frame < 31; frame++) {
		uint32_t rows = tracker->truth_rows(state, frame, 0, table, 64);

		tracks += rows;
		for (uint32_t i = 0; i < rows && i < 64; i++)
			assert_true(table[i * COLUMNS + SECTOR] < 18);
	}
	/* 50 an event in the whole detector, of which this is a sixteenth. */
	assert_true(fabs(tracks / (31. * 4 * 50 / 16) - 1) < 0.2);
	close_tracker(state);
}

static void test_more_sectors_than_there_are_is_refused(void **arg)
{
	static const char *const set[] = {"sectors", "10", NULL};
	struct sl_geometry g;
	const char *said;
	void *state;

	capture_begin();
	state = open_tracker(32, set, &g, -EINVAL);
	said = capture_end();
	assert_non_null(strstr(said, "32 modules of 10 sectors"));
	assert_non_null(strstr(said, "288"));
	close_tracker(state);
}

static void test_the_pool_is_replayed_without_a_copy(void **arg)
{
	static const char *const set[] = {"pool", "3", "events", "1", NULL};
	struct sl_geometry g;
	void *state = open_tracker(2, set, &g, 0);
	const void *first, *later;

	assert_int_equal(tracker->prepare(state), 0);
	assert_int_equal(tracker->render(state, 2, 1, 0, NULL, &first), 0);
	assert_int_equal(tracker->render(state, 2 + 3 * 1000, 1, 0, NULL, &later), 0);
	assert_ptr_equal(first, later);
	close_tracker(state);
}

/* ---- modules on threads of their own ---- */

enum { THREADS = 8, BLOCKS = 6 };

struct renderer {
	pthread_t thread;
	pthread_barrier_t *start;
	void *state;
	uint32_t module;
	const void *got[BLOCKS];
};

static void *render_dark(void *arg)
{
	struct renderer *r = arg;

	for (uint64_t frame = 0; frame < BLOCKS; frame++) {
		pthread_barrier_wait(r->start);
		if (tracker->render(r->state, frame, r->module, SL_RECORD_DARK, NULL,
				    &r->got[frame]))
			r->got[frame] = NULL;
	}
	return NULL;
}

/* The pool of a run without dark frames has no dark blocks, and records from the wire may say
 * "dark" all the same. Each block is made once, and as one thread alone makes it. */
static void test_modules_of_a_dark_frame_that_was_not_expected_are_rendered_at_once(void **arg)
{
	static const char *const set[] = {"pool", "6", "events", "1", "sectors", "2", NULL};
	struct renderer renderer[THREADS];
	pthread_barrier_t start;
	struct sl_geometry g;
	void *state = open_tracker(THREADS, set, &g, 0), *alone = open_tracker(THREADS, set, &g, 0);
	const void *expected;

	assert_int_equal(tracker->prepare(state), 0);
	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (uint32_t m = 0; m < THREADS; m++) {
		renderer[m] = (struct renderer){.start = &start, .state = state, .module = m};
		assert_int_equal(
			pthread_create(&renderer[m].thread, NULL, render_dark, &renderer[m]), 0);
	}
	for (uint32_t m = 0; m < THREADS; m++)
		assert_int_equal(pthread_join(renderer[m].thread, NULL), 0);
	for (uint64_t frame = 0; frame < BLOCKS; frame++)
		for (uint32_t m = 0; m < THREADS; m++) {
			const uint8_t *first = renderer[0].got[frame];

			assert_non_null(first);
			assert_ptr_equal(renderer[m].got[frame], first + m * g.module_bytes);
			assert_int_equal(
				tracker->render(alone, frame, m, SL_RECORD_DARK, NULL, &expected),
				0);
			assert_memory_equal(renderer[m].got[frame], expected, g.module_bytes);
		}
	pthread_barrier_destroy(&start);
	close_tracker(alone);
	close_tracker(state);
}

/* ---- pictures ---- */

static void save(const uint8_t *rgb, uint32_t rows, uint32_t columns, const char *name)
{
	const char *folder = getenv("PICTURES");
	char path[4096];
	FILE *file;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/tracker-%s.ppm", folder, name);
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

static void draw(uint32_t modules, const char *pile_up, const char *name)
{
	enum { SIZE = 800 };
	const char *const set[] = {"events", "1", "pile_up", pile_up, NULL};
	uint8_t *rgb = malloc(SIZE * SIZE * 3);
	struct sl_geometry g;
	void *state = open_tracker(modules, set, &g, 0);

	assert_int_equal(tracker->picture(state, 0, 0, 0, rgb, SIZE, SIZE), 0);
	assert_true(pixels_of(rgb, SIZE * SIZE, 0x8fa3bf) > 1000);
	assert_true(pixels_of(rgb, SIZE * SIZE, 0xff8c3a) > 100);
	assert_true(pixels_of(rgb, SIZE * SIZE, 0x3ab4ff) > 100);
	save(rgb, SIZE, SIZE, name);
	assert_int_equal(tracker->picture(state, 0, 0, 1, rgb, SIZE, SIZE), -EINVAL);
	assert_int_equal(tracker->picture(state, 0, 0, 0, rgb, 1, 3), 0);
	free(rgb);
	close_tracker(state);
}

static void test_a_picture_shows_stubs_and_tracks(void **arg)
{
	draw(32, "200", "all");
	draw(6, "140", "wedges");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_lie_where_the_header_says),
		cmocka_unit_test(test_what_was_packed_comes_out),
		cmocka_unit_test(test_as_many_stubs_as_expected),
		cmocka_unit_test(test_stubs_lie_on_their_tracks),
		cmocka_unit_test(test_every_layer_once_and_nearly_all_of_them),
		cmocka_unit_test(test_dark_events_have_no_tracks),
		cmocka_unit_test(test_a_hough_transform_finds_the_tracks),
		cmocka_unit_test(test_stubs_in_overlaps_are_the_same_in_both_sectors),
		cmocka_unit_test(test_truth_has_tracks_of_the_sectors_that_are_there_only),
		cmocka_unit_test(test_more_sectors_than_there_are_is_refused),
		cmocka_unit_test(test_the_pool_is_replayed_without_a_copy),
		cmocka_unit_test(
			test_modules_of_a_dark_frame_that_was_not_expected_are_rendered_at_once),
		cmocka_unit_test(test_a_picture_shows_stubs_and_tracks),
	};

	return cmocka_run_group_tests_name("tracker", tests, NULL, NULL);
}
