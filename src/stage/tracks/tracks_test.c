/* tracks_test.c - cells, candidates and duplicates are those that a plain program in double
 * precision finds, with every kind of vectors and cells; helices come out as they went in; and what
 * bad input becomes. */
#include <errno.h>

#include "lib/capture.h"
#include "lib/frame_rig.h"
#include "lib/tracks_oracle.h"
#include "stage/tracks/maths.h"
#include "stage/tracks/scalar_oracle.h"
#include "stage/tracks/tracks.h"
#include "stage/vectors.h"

extern const struct sl_stage sl_stage_tracks;

static const char *const cells_named[] = {"rectangles", "hexagons", "one-hexagon"};
static const char *const vectors_named[] = {"avx512", "avx2", "baseline"};
enum { KINDS = 3, VECTORS = 3, COLUMNS = 13 };

/* ---- the map against the oracle ---- */

struct trial {
	struct sl_tracks_plan plan;
	struct sl_tracks_work *work;
	struct sl_tracks_found found;
	struct oracle *oracle;
	uint64_t doubtful, touched, cells;
};

static void trial_open(struct trial *t, uint32_t kind, uint32_t columns, uint32_t rows, double bend)
{
	const struct sl_tracks_settings set = {.min_pt_GeV = 3,
					       .columns = columns,
					       .rows = rows,
					       .min_layers = 5,
					       .cells = kind,
					       .bend = bend,
					       .sector_tracks = 1024};

	*t = (struct trial){.work = NULL};
	sl_tracks_plan(&t->plan, &set);
	t->work = aligned_alloc(64,
				(sizeof(*t->work) + 1024 * sizeof(struct sl_track) + 63) / 64 * 64);
	memset(t->work, FRAME_RIG_POISON, sizeof(*t->work));
	t->oracle = calloc(1, sizeof(*t->oracle));
	t->oracle->kind = kind;
	t->oracle->columns = (int)columns;
	t->oracle->rows = (int)rows;
	t->oracle->x_max = 1 / 3.;
	t->oracle->bend = bend;
}

static void trial_close(struct trial *t)
{
	free(t->work);
	free(t->oracle);
}

static bool has_row(const struct sl_tracks_map *map, uint32_t layer, uint32_t c, uint32_t row)
{
	return map->layer[row / 32][layer][c] >> row % 32 & 1;
}

/* Every bit of the map, and every stub of every cell. */
static void check_cell(struct trial *t, const struct sl_tracks_calls *calls, uint32_t c,
		       uint32_t row)
{
	const struct oracle *o = t->oracle;
	const struct sl_tracks_map *map = &t->work->map;
	uint8_t layers = 0, of = 0, sure = o->layers[c][row], perhaps = o->perhaps[c][row];
	sl_tracks_set set;

	for (uint32_t k = 1; k < SL_TRACKS_LAYERS; k++)
		layers |= (uint8_t)(has_row(map, k, c, row) << k);
	assert_int_equal(layers & sure, sure);
	assert_int_equal(layers & ~perhaps, 0);
	assert_int_equal(map->found[row / 32][c] >> row % 32 & 1, __builtin_popcount(layers) >= 5);
	t->cells += __builtin_popcount(layers) >= 5;
	calls->within(map, 1ull << row, t->work->stubs.padded, set);
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++) {
		set[k] &= t->work->stubs.used[k];
		assert_int_equal(set[k] & o->stubs[c][row][k], o->stubs[c][row][k]);
		assert_int_equal(set[k] & ~(o->stubs[c][row][k] | o->unsure[c][row][k]), 0);
		for (uint32_t s = 0; s < 64; s++)
			if (set[k] >> s & 1)
				of |= (uint8_t)(1 << t->work->stubs.layer[k * 64 + s]);
	}
	assert_int_equal(of, layers);
}

static void check_map(struct trial *t, uint32_t vectors, const uint8_t *row)
{
	struct sl_tracks_calls calls = sl_tracks_calls(&t->plan, vectors);

	sl_tracks_unpack(&t->plan, row, &t->work->stubs, &t->found);
	calls.fill(&t->plan, &t->work->stubs, &t->work->map);
	for (uint32_t c = 0; c < SL_TRACKS_CELLS; c++) {
		/* There is nothing outside of the map. */
		for (uint32_t k = c < t->plan.set.columns ? t->plan.set.rows : 0;
		     k < t->plan.words * 32; k++)
			for (uint32_t layer = 0; layer < SL_TRACKS_LAYERS; layer++)
				assert_false(has_row(&t->work->map, layer, c, k));
	}
	for (uint32_t c = 0; c < t->plan.set.columns; c++) {
		calls.column(&t->plan, &t->work->stubs, c, &t->work->map);
		for (uint32_t k = 0; k < t->plan.set.rows; k++)
			check_cell(t, &calls, c, k);
	}
}

static void test_cells_are_those_of_the_plain_program(void **arg)
{
	static const uint32_t sizes[][2] = {{32, 32}, {64, 64}, {17, 33}, {4, 2}, {48, 20}};
	static const uint32_t stubs[] = {160, 63, 90, 5, 129};
	uint64_t seed = 1, doubtful = 0, touched = 0;

	for (uint32_t kind = 0; kind < KINDS; kind++)
		for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct trial t;

			trial_open(&t, kind, sizes[i][0], sizes[i][1], i % 2 ? 2.5 : 0);
			for (uint32_t n = 0; n < (i ? 2 : 5); n++) {
				uint8_t row[SL_TRACKER_ROW_BYTES];
				struct oracle_track truth[8];

				oracle_sector(&seed, n % 5, stubs[(i + n) % 5], row, truth);
				oracle_fill(t.oracle, row);
				for (uint32_t v = SL_VECTORS_AVX512; v <= SL_VECTORS_BASELINE; v++)
					check_map(&t, v, row);
			}
			doubtful += t.oracle->doubtful;
			touched += t.oracle->touched;
			if (!i)
				assert_true(t.cells > 30);
			trial_close(&t);
		}
	/* Where a line is within the rounding of an edge. */
	assert_true((double)doubtful < 0.005 * (double)touched);
	assert_true(touched > 50000);
}

/* Bytes of no meaning: layers 0 and 7, any r, any bend. */
static void test_garbage_is_in_the_cells_that_its_numbers_say(void **arg)
{
	uint64_t seed = 2;

	for (uint32_t kind = 0; kind < KINDS; kind++) {
		struct trial t;

		trial_open(&t, kind, 32, 32, 0);
		for (int n = 0; n < 3; n++) {
			uint8_t row[SL_TRACKER_ROW_BYTES];
			uint32_t zero = 0, before = t.found.strange;

			for (int i = 0; i < SL_TRACKER_ROW_BYTES; i++)
				row[i] = n ? (uint8_t)(oracle_random(&seed) * 256) : 0xff;
			for (int i = 0; i < SL_STUBS; i++) {
				row[i * SL_STUB_BYTES] |= 1;
				zero += !(row[i * SL_STUB_BYTES] >> 1 & 7);
			}
			oracle_fill(t.oracle, row);
			for (uint32_t v = SL_VECTORS_AVX512; v <= SL_VECTORS_BASELINE; v++)
				check_map(&t, v, row);
			assert_int_equal(t.found.strange - before, 3 * zero);
		}
		trial_close(&t);
	}
}

/* A line through the middle of a cell touches it, whatever the stub's distance: so a track's own
 * cell has all its stubs, with rectangles and with hexagons. */
static void test_a_cell_has_all_lines_through_it(void **arg)
{
	uint64_t seed = 3;

	for (uint32_t kind = SL_TRACKS_RECTANGLES; kind <= SL_TRACKS_HEXAGONS; kind++) {
		struct trial t;
		uint32_t n = 0;

		trial_open(&t, kind, 32, 32, 0);
		for (; n < 300; n++) {
			uint32_t c = 2 + (uint32_t)(oracle_random(&seed) * 28);
			uint32_t row = 2 + (uint32_t)(oracle_random(&seed) * 28);
			double dx = 2 / 3. / (kind ? 31 : 32), dy = (double)t.plan.row;
			/* Inside both shapes. */
			double x = (double)t.plan.x[c] + (oracle_random(&seed) - 0.5) * 0.8 * dx;
			double y = (double)sl_tracks_cell_phi(&t.plan, c, row) +
				   (oracle_random(&seed) - 0.5) * (kind ? 0.3 : 0.8) * dy;
			uint8_t bytes[SL_TRACKER_ROW_BYTES] = {0};
			struct sl_tracks_calls calls = sl_tracks_calls(&t.plan, SL_VECTORS_AUTO);

			for (uint32_t k = 0; k < 6; k++) {
				double lever = SL_TRACKER_K * (oracle_radius[k] - SL_TRACKER_R_PHI);
				struct sl_stub stub = {
					.phi = (int32_t)lrint((y - lever * x) / SL_STUB_PHI_RAD),
					.r = (uint32_t)lrint(oracle_radius[k] / SL_STUB_R_CM),
					.layer = k + 1};

				sl_stub_pack(&stub, bytes + k * SL_STUB_BYTES);
			}
			sl_tracks_unpack(&t.plan, bytes, &t.work->stubs, &t.found);
			calls.fill(&t.plan, &t.work->stubs, &t.work->map);
			for (uint32_t k = 1; k <= 6; k++)
				assert_true(has_row(&t.work->map, k, c, row));
		}
		trial_close(&t);
	}
}

/* ---- candidates of a sector against the oracle ---- */

static void test_candidates_are_those_of_the_plain_program(void **arg)
{
	uint64_t seed = 4;

	for (uint32_t kind = 0; kind < KINDS; kind++)
		for (uint32_t common = 0; common < 6; common += common ? 2 : 3) {
			uint32_t compared = 0, candidates = 0, most = 0;
			struct trial t;

			trial_open(&t, kind, 32, 32, 0);
			t.plan.set.common = common;
			for (int i = 0; i < 40; i++) {
				struct sl_tracks_found found = {0};
				uint8_t row[SL_TRACKER_ROW_BYTES], kept[1024][2];
				uint32_t n, want;
				struct oracle_track truth[8];
				struct sl_tracks_calls calls =
					sl_tracks_calls(&t.plan, 1 + (uint32_t)i % 3);

				/* Those that share nearly all are few: of many stubs there are
				 * more candidates than a word has bits. */
				oracle_sector(&seed, 1 + (uint32_t)i % 3,
					      common == 5 ? 120
					      : i % 8	  ? 60
							  : 100,
					      row, truth);
				oracle_fill(t.oracle, row);
				if (!oracle_candidates(t.oracle, common, kept, &want))
					continue;
				n = sl_tracks_sector(&t.plan, &calls, row, t.work, t.work->track,
						     &found);
				assert_int_equal(n, want);
				for (uint32_t k = 0; k < n; k++) {
					assert_int_equal(t.work->track[k].column, kept[k][0]);
					assert_int_equal(t.work->track[k].row, kept[k][1]);
				}
				assert_int_equal(found.cells, n + found.duplicates);
				compared++;
				candidates += n;
				if (found.duplicates && n > most)
					most = n;
			}
			assert_true(compared > 20 && candidates > 10);
			if (common == 5 && kind != SL_TRACKS_ONE_HEXAGON)
				assert_true(most > 32);
			trial_close(&t);
		}
}

static void test_plain_loops_find_the_same(void **arg)
{
	uint64_t seed = 9;
	uint32_t cells = 0;

	for (uint32_t kind = 0; kind < KINDS; kind++)
		for (uint32_t bent = 0; bent < 2; bent++) {
			struct trial t;

			trial_open(&t, kind, 32, 32, 3 * bent);
			t.plan.set.common = 3;
			t.plan.set.sector_tracks = 32;
			for (uint32_t i = 0; i < 60; i++) {
				struct sl_tracks_found found = {0};
				struct sl_scalar_sector scalar;
				struct sl_tracks_calls calls = sl_tracks_calls(&t.plan, 1 + i % 3);
				uint8_t row[SL_TRACKER_ROW_BYTES];
				struct oracle_track truth[8];
				uint32_t n;

				oracle_sector(&seed, i % 6, 20 + 2 * i, row, truth);
				scalar = sl_scalar_sector(&t.plan, row);
				n = sl_tracks_sector(&t.plan, &calls, row, t.work, t.work->track,
						     &found);
				assert_int_equal(found.cells, scalar.cells);
				assert_int_equal(n, scalar.tracks);
				cells += scalar.cells;
			}
			trial_close(&t);
		}
	assert_true(cells > 100);
}

/* ---- the stage ---- */

enum { SECTORS = 9 };

struct stage {
	struct frame_rig rig;
	struct frame_rig_frame frame;
	struct sl_verdict verdict[4];
	uint8_t *block;
	uint32_t modules, events;
};

static void stage_prepare(struct stage *s, uint32_t modules, uint32_t events)
{
	*s = (struct stage){.modules = modules, .events = events};
	frame_rig_init(&s->rig, &sl_stage_tracks, SL_U8, modules, events * SECTORS,
		       SL_TRACKER_ROW_BYTES);
	s->rig.raw = true;
	s->rig.geometry.items = events;
	s->rig.geometry.items_shared = true;
	s->block = calloc((size_t)modules * events * SECTORS, SL_TRACKER_ROW_BYTES);
}

static uint8_t *stage_row(struct stage *s, uint32_t event, uint32_t sector)
{
	return s->block +
	       ((size_t)(sector / SECTORS * s->events + event) * SECTORS + sector % SECTORS) *
		       SL_TRACKER_ROW_BYTES;
}

static void stage_begin(struct stage *s)
{
	frame_rig_open(&s->rig);
	frame_rig_frame_init(&s->rig, &s->frame, s->block);
	s->frame.frame.verdict = s->verdict;
	s->frame.frame.items = s->events;
	for (uint32_t i = 0; i < s->events; i++)
		s->verdict[i] = (struct sl_verdict){.keep = 1};
}

static void stage_end(struct stage *s)
{
	frame_rig_frame_fini(&s->rig, &s->frame);
	frame_rig_close(&s->rig);
	free(s->block);
}

static const float *stage_track(struct stage *s, uint32_t i)
{
	return (const float *)frame_rig_result(&s->rig, &s->frame, 0)->host + i * COLUMNS;
}

static uint32_t stage_tracks(struct stage *s)
{
	return frame_rig_result(&s->rig, &s->frame, 0)->rows;
}

static const struct sl_tracks_found *stage_found(struct stage *s, uint32_t event)
{
	const struct sl_tracks_found *found = frame_rig_result(&s->rig, &s->frame, 2)->host;

	return &found[event];
}

/* All cells are accounted for. */
static void check_account(struct stage *s)
{
	uint32_t listed = 0, stubs = 0;

	for (uint32_t i = 0; i < s->events; i++) {
		const struct sl_tracks_found *f = stage_found(s, i);

		assert_int_equal(f->cells, f->tracks + f->duplicates + f->misfits + f->crowded);
		listed += f->tracks - f->unlisted;
	}
	assert_int_equal(stage_tracks(s), listed);
	for (uint32_t i = 0; i < listed; i++)
		stubs += (uint32_t)stage_track(s, i)[7];
	assert_int_equal(frame_rig_result(&s->rig, &s->frame, 1)->rows, stubs);
}

static void fill_block(struct stage *s, uint64_t seed, uint32_t tracks, uint32_t stubs)
{
	struct oracle_track truth[32];

	for (uint32_t e = 0; e < s->events; e++)
		for (uint32_t i = 0; i < s->modules * SECTORS; i++)
			oracle_sector(&seed, tracks, stubs, stage_row(s, e, i), truth);
}

static void test_results_are_the_same_with_all_vectors(void **arg)
{
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		struct stage s[VECTORS];

		for (uint32_t v = 0; v < VECTORS; v++) {
			stage_prepare(&s[v], 2, 2);
			frame_rig_set(&s[v].rig, "vectors", vectors_named[v]);
			frame_rig_set(&s[v].rig, "cells", cells_named[kind]);
			frame_rig_set(&s[v].rig, "fit", "true");
			frame_rig_set(&s[v].rig, "bend", "3");
			fill_block(&s[v], 5, 2, 110);
			stage_begin(&s[v]);
			frame_rig_run(&s[v].rig, &s[v].frame, v);
			check_account(&s[v]);
		}
		assert_true(stage_tracks(&s[0]) > 20);
		for (uint32_t v = 1; v < VECTORS; v++)
			for (int i = 0; i < 3; i++) {
				struct sl_array *a = frame_rig_result(&s[0].rig, &s[0].frame, i);
				struct sl_array *b = frame_rig_result(&s[v].rig, &s[v].frame, i);
				uint64_t bytes = sl_shape_bytes(&a->shape);

				assert_int_equal(a->rows, b->rows);
				if (a->shape.ragged)
					bytes = bytes / a->shape.dim[0] * a->rows;
				assert_memory_equal(a->host, b->host, bytes);
			}
		for (uint32_t v = 0; v < VECTORS; v++)
			stage_end(&s[v]);
	}
}

/* Alone in their sectors, without noise: charge, momentum, phi and where on the beam they began. */
static void test_a_helix_comes_out_as_it_went_in(void **arg)
{
	uint64_t seed = 6;
	struct stage s;
	struct oracle_track truth[2][18];
	uint32_t seen = 0;

	stage_prepare(&s, 2, 2);
	frame_rig_set(&s.rig, "fit", "true");
	for (uint32_t e = 0; e < 2; e++)
		for (uint32_t i = 0; i < 18; i++)
			oracle_sector(&seed, 1, 6, stage_row(&s, e, i), &truth[e][i]);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	for (uint32_t i = 0; i < stage_tracks(&s); i++) {
		const float *t = stage_track(&s, i);
		uint32_t e = (uint32_t)t[0], sector = (uint32_t)t[1];
		double at = truth[e][sector].phi + sl_tracker_sector_phi(sector), begin;

		begin = at + asin(SL_TRACKER_K * SL_TRACKER_R_PHI * truth[e][sector].x);
		if (fabs((double)t[2] - truth[e][sector].x) > 0.003)
			continue; /* a stub of noise made five of four */
		seen++;
		assert_true(fabs(remainder((double)t[3] - begin, 2 * SL_PI)) < 2.5e-4);
		assert_true(fabs(remainder((double)t[4] - at, 2 * SL_PI)) < 1e-4);
		assert_true(t[5] >= 5 && t[5] <= t[6]);
		assert_true(fabs((double)t[10] - truth[e][sector].z0) < 0.1);
		assert_true(fabs((double)t[11] - truth[e][sector].cot) < 0.002);
		assert_true(t[12] >= 0 && t[12] < 16);
	}
	assert_true(seen >= 30);
	stage_end(&s);
}

/* Stubs of one straight track, of the first `layers` layers; layer 7 lies at 97 cm. */
static uint32_t write_line(uint8_t *row, uint32_t layers)
{
	static const double radius[7] = {23, 36, 51, 69, 86, 108, 97};

	for (uint32_t k = 0; k < layers; k++) {
		struct sl_stub stub = {.phi = 300,
				       .r = (uint32_t)lrint(radius[k] / SL_STUB_R_CM),
				       .z = (int32_t)lrint(radius[k] * 0.2 / SL_STUB_Z_CM),
				       .layer = k + 1};

		sl_stub_pack(&stub, row + k * SL_STUB_BYTES);
	}
	return layers;
}

static void test_seven_layers_count_and_layer_0_does_not(void **arg)
{
	struct sl_stub stub = {.phi = 300, .r = 2000, .z = 280, .layer = 0};
	struct stage s;
	uint32_t n;

	stage_prepare(&s, 1, 1);
	n = write_line(stage_row(&s, 0, 4), 7);
	sl_stub_pack(&stub, stage_row(&s, 0, 4) + n * SL_STUB_BYTES);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	assert_int_equal(stage_tracks(&s), 1);
	assert_int_equal((int)stage_track(&s, 0)[5], 7);
	assert_int_equal((int)stage_track(&s, 0)[6], 7);
	assert_int_equal(stage_found(&s, 0)->strange, 1);
	stage_end(&s);
}

/* In z, by about six deviations: near enough to be looked at, too far to stay. */
static void test_a_fit_leaves_out_what_is_off(void **arg)
{
	for (int limit = 4; limit <= 16; limit += 12) {
		struct stage s;
		struct sl_stub stub;
		uint8_t *at;

		stage_prepare(&s, 1, 1);
		frame_rig_set(&s.rig, "fit", "true");
		frame_rig_set(&s.rig, "fit_deviations", limit == 4 ? "4" : "16");
		write_line(stage_row(&s, 0, 4), 6);
		at = stage_row(&s, 0, 4) + SL_STUB_BYTES;
		sl_stub_unpack(at, &stub);
		stub.z += 8;
		sl_stub_pack(&stub, at);
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		assert_int_equal(stage_tracks(&s), 1);
		assert_int_equal((int)stage_track(&s, 0)[5], limit == 4 ? 5 : 6);
		assert_int_equal((int)stage_track(&s, 0)[6], 6);
		stage_end(&s);
	}
}

/* A cell with all 160 stubs: the fit looks at the first of them. */
static void test_a_crowded_cell_is_fitted_all_the_same(void **arg)
{
	struct stage s;

	stage_prepare(&s, 1, 1);
	frame_rig_set(&s.rig, "fit", "true");
	frame_rig_set(&s.rig, "max_stubs", "160");
	for (uint32_t i = 0; i < 26; i++)
		write_line(stage_row(&s, 0, 4) + (size_t)i * 6 * SL_STUB_BYTES, 6);
	write_line(stage_row(&s, 0, 4) + (size_t)156 * SL_STUB_BYTES, 4);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	assert_int_equal(stage_tracks(&s), 1);
	assert_int_equal((int)stage_track(&s, 0)[6], 160);
	assert_int_equal((int)stage_track(&s, 0)[7], 6);
	stage_end(&s);
}

/* Two straight lines of six layers in one cell, as good as each other: the fit takes the one whose
 * stubs come first in the row. Devices compare pairs in the same order and must choose the same. */
static void test_of_two_equal_helices_the_first_is_taken(void **arg)
{
	struct sl_tracks_plan plan = {.set = {.min_layers = 5, .fit_limit = 16}};

	for (int sign = -1; sign <= 1; sign += 2) {
		struct sl_track track = {.set = {0xfff}};
		uint8_t row[SL_TRACKER_ROW_BYTES] = {0};

		for (uint32_t i = 0; i < 12; i++) {
			struct sl_stub stub = {.phi = i < 6 ? 500 * sign : -500 * sign,
					       .r = 800 + 500 * (i % 6),
					       .layer = 1 + i % 6};

			sl_stub_pack(&stub, row + i * SL_STUB_BYTES);
		}
		assert_true(sl_tracks_fit(&plan, row, &track));
		assert_int_equal(track.set[0], 0x3f);
		assert_int_equal(track.fitted, 6);
		assert_true(track.phi * (float)sign > 0);
	}
}

/* Five layers one above the other, at that angle and so far from the beam. */
static void write_stack(uint8_t *row, int32_t phi, uint32_t r, uint32_t step)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct sl_stub stub = {.phi = phi, .r = r + i * step, .layer = i + 1};

		sl_stub_pack(&stub, row + (size_t)i * SL_STUB_BYTES);
	}
}

/* A straight line half a sector beside this one, and the corners of what can be written. */
static void test_stubs_outside_of_the_sector_are_in_no_track(void **arg)
{
	static const int32_t phi[] = {3072, -3072, 8191, -8192};

	for (int i = 0; i < 8; i++) {
		struct stage s;

		stage_prepare(&s, 1, 1);
		frame_rig_set(&s.rig, "bend", "0");
		frame_rig_set(&s.rig, "fit", i % 2 ? "true" : "false");
		write_stack(stage_row(&s, 0, 4), phi[i / 2], 800, i / 2 < 2 ? 600 : 823);
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		assert_int_equal(stage_found(&s, 0)->cells, 0);
		assert_int_equal(stage_tracks(&s), 0);
		assert_int_equal(s.verdict[0].keep, 0);
		stage_end(&s);
	}
}

/* All in one place: many directions for the map, none for a helix. One layer is none at all. */
static void test_coincident_stubs(void **arg)
{
	for (int fit = 0; fit < 2; fit++) {
		struct stage s;
		struct sl_stub same = {.phi = 100, .r = 2000, .layer = 3};

		stage_prepare(&s, 1, 2);
		frame_rig_set(&s.rig, "bend", "0");
		frame_rig_set(&s.rig, "fit", fit ? "true" : "false");
		write_stack(stage_row(&s, 0, 4), 100, 2000, 0);
		for (uint32_t i = 0; i < SL_STUBS; i++)
			sl_stub_pack(&same, stage_row(&s, 1, 4) + (size_t)i * SL_STUB_BYTES);
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		assert_true(stage_found(&s, 0)->cells > 1);
		assert_int_equal(stage_found(&s, 0)->misfits, fit ? stage_found(&s, 0)->cells : 0);
		assert_int_equal(stage_tracks(&s), fit ? 0 : 1); /* others are its duplicates */
		assert_int_equal(stage_found(&s, 1)->cells, 0);
		assert_int_equal(stage_found(&s, 1)->full, 1);
		stage_end(&s);
	}
}

static void test_neighbours_report_a_track_once(void **arg)
{
	static const char *const unique[] = {"keep", "sector", "event"};
	/* The same stubs in the sector beside it in eta, and, turned, in phi. */
	static const uint32_t sector[] = {4, 5, 4 + SECTORS};
	uint32_t tracks[3], duplicates[3];

	for (int k = 0; k < 3; k++) {
		struct stage s;
		struct sl_stub stub;

		stage_prepare(&s, 2, 1);
		frame_rig_set(&s.rig, "unique", unique[k]);
		frame_rig_set(&s.rig, "bend", "0");
		for (uint32_t i = 0; i < 3; i++)
			for (uint32_t layer = 1; layer <= 6; layer++) {
				/* In the middle between both sectors. */
				stub = (struct sl_stub){
					.phi = i < 2 ? 2040 : 2040 - 4096,
					.r = (uint32_t)(oracle_radius[layer - 1] / SL_STUB_R_CM),
					.z = 100 * (int)layer,
					.layer = layer};
				sl_stub_pack(&stub, stage_row(&s, 0, sector[i]) +
							    (layer - 1) * SL_STUB_BYTES);
			}
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		tracks[k] = stage_found(&s, 0)->tracks;
		duplicates[k] = stage_found(&s, 0)->duplicates;
		if (k == 2)
			assert_int_equal((int)stage_track(&s, 0)[1], 4);
		stage_end(&s);
	}
	assert_true(tracks[0] >= 3);
	assert_int_equal(duplicates[0], 0);
	assert_int_equal(tracks[1], 3);
	assert_int_equal(tracks[2], 1);
}

/* The same track in two sectors that lie beside each other in phi, with a layer less in one of
 * them: the other one reports it, whichever it is. */
static void test_the_better_of_two_neighbours_reports_a_track(void **arg)
{
	for (uint32_t better = 0; better < 2; better++) {
		struct stage s;

		stage_prepare(&s, 2, 1);
		frame_rig_set(&s.rig, "unique", "event");
		frame_rig_set(&s.rig, "bend", "0");
		for (uint32_t i = 0; i < 2; i++)
			for (uint32_t layer = 1; layer <= (i == better ? 6 : 5); layer++) {
				struct sl_stub stub = {
					.phi = i ? 2040 - 4096 : 2040,
					.r = (uint32_t)(oracle_radius[layer - 1] / SL_STUB_R_CM),
					.z = 100 * (int)layer,
					.layer = layer};

				sl_stub_pack(&stub, stage_row(&s, 0, 4 + i * SECTORS) +
							    (layer - 1) * SL_STUB_BYTES);
			}
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		assert_int_equal(stage_tracks(&s), 1);
		assert_int_equal((int)stage_track(&s, 0)[1], 4 + better * SECTORS);
		stage_end(&s);
	}
}

/* Near each other in two sectors, and made of the same stubs in some layers: one track if these are
 * as many as `common`, two if there is one layer less. */
static void test_candidates_of_two_sectors_are_one_track_by_the_stubs_they_share(void **arg)
{
	for (uint32_t share = 0; share <= 6; share++) {
		struct stage s;

		stage_prepare(&s, 1, 1);
		frame_rig_set(&s.rig, "unique", "event");
		frame_rig_set(&s.rig, "common", "4");
		frame_rig_set(&s.rig, "bend", "0");
		for (uint32_t i = 0; i < 2; i++)
			for (uint32_t layer = 1; layer <= 6; layer++) {
				struct sl_stub stub = {
					.phi = 700,
					.r = (uint32_t)(oracle_radius[layer - 1] / SL_STUB_R_CM),
					.z = 100 * (int)layer + (i && layer > share ? 50 : 0),
					.layer = layer};

				sl_stub_pack(&stub,
					     stage_row(&s, 0, 4 + i) + (layer - 1) * SL_STUB_BYTES);
			}
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		assert_int_equal(stage_tracks(&s), share >= 4 ? 1 : 2);
		stage_end(&s);
	}
}

static void test_what_there_is_no_room_for_is_counted(void **arg)
{
	struct stage s;
	uint64_t bytes;

	stage_prepare(&s, 2, 2);
	frame_rig_set(&s.rig, "max_tracks", "7");
	frame_rig_set(&s.rig, "max_stubs", "4");
	frame_rig_set(&s.rig, "sector_tracks", "3");
	frame_rig_set(&s.rig, "cells", "rectangles");
	frame_rig_set(&s.rig, "bend", "0");
	fill_block(&s, 7, 4, 160);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	assert_int_equal(stage_tracks(&s), 7);
	assert_true(stage_found(&s, 0)->crowded > 100);
	assert_true(stage_found(&s, 1)->unlisted > 10);
	assert_int_equal(stage_found(&s, 1)->full, 18);
	bytes = frame_rig_result(&s.rig, &s.frame, 1)->rows;
	assert_int_equal(bytes, 7 * 4);
	assert_true(stage_track(&s, 0)[6] > 4);
	stage_end(&s);
}

static void test_empty_sectors_and_missing_modules_have_no_tracks(void **arg)
{
	struct stage s;
	uint32_t both;

	stage_prepare(&s, 2, 2);
	fill_block(&s, 8, 2, 40);
	memset(stage_row(&s, 0, 3), 0, SL_TRACKER_ROW_BYTES);
	*stage_row(&s, 0, 4) &= 0xfe; /* not valid: all after it is not, either */
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	for (uint32_t i = 0; i < stage_tracks(&s); i++)
		if (!(int)stage_track(&s, i)[0])
			assert_true(stage_track(&s, i)[1] < 3 || stage_track(&s, i)[1] > 4);
	both = stage_tracks(&s);
	s.frame.frame.missing = 2;
	s.frame.frame.flags = SL_FRAME_PARTIAL;
	frame_rig_run(&s.rig, &s.frame, 1);
	check_account(&s);
	assert_true(stage_tracks(&s) > 0 && stage_tracks(&s) < both);
	for (uint32_t i = 0; i < stage_tracks(&s); i++)
		assert_true(stage_track(&s, i)[1] < SECTORS);
	s.frame.frame.flags |= SL_FRAME_DARK;
	frame_rig_run(&s.rig, &s.frame, 1);
	assert_int_equal(stage_tracks(&s), 0);
	assert_int_equal(stage_found(&s, 0)->cells, 0);
	stage_end(&s);
}

static void test_rows_may_be_apart(void **arg)
{
	enum { PITCH = 1024 };
	struct stage s;
	uint8_t *wide = calloc(2 * SECTORS, PITCH);
	uint32_t want;

	stage_prepare(&s, 1, 2);
	fill_block(&s, 9, 2, 50);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	want = stage_tracks(&s);
	assert_true(want > 0);
	for (uint32_t i = 0; i < 2 * SECTORS; i++)
		memcpy(wide + (size_t)i * PITCH, s.block + (size_t)i * SL_TRACKER_ROW_BYTES,
		       SL_TRACKER_ROW_BYTES);
	s.frame.view[0].pixels.host = wide;
	s.frame.view[0].pixels.pitch = PITCH;
	frame_rig_run(&s.rig, &s.frame, 0);
	assert_int_equal(stage_tracks(&s), want);
	stage_end(&s);
	free(wide);
}

static void test_each_event_has_a_verdict(void **arg)
{
	struct stage s;
	struct oracle_track truth[8];
	uint64_t seed = 10;

	stage_prepare(&s, 1, 4);
	frame_rig_set(&s.rig, "min_tracks", "1");
	frame_rig_set(&s.rig, "fit", "true");
	oracle_sector(&seed, 1, 6, stage_row(&s, 1, 2), truth);
	oracle_sector(&seed, 1, 6, stage_row(&s, 3, 2), truth);
	stage_begin(&s);
	s.verdict[3] = (struct sl_verdict){.keep = 0, .score = 7, .reason = SL_REASON_SCORE};
	frame_rig_run(&s.rig, &s.frame, 0);
	check_account(&s);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(s.verdict[i].keep, i == 1);
		assert_true(s.verdict[i].score == (float)(i == 1));
		assert_int_equal(s.verdict[i].reason, SL_REASON_TRACKS);
	}
	/* Somebody else has rejected it. */
	assert_int_equal(s.verdict[3].reason, SL_REASON_SCORE);
	assert_true(s.verdict[3].score == 7);
	stage_end(&s);
}

static void test_slow_tracks_do_not_count_for_a_fast_trigger(void **arg)
{
	struct stage s;
	struct oracle_track truth[8];
	uint64_t seed = 11;

	stage_prepare(&s, 1, 1);
	frame_rig_set(&s.rig, "trigger_pt_GeV", "50");
	do
		oracle_sector(&seed, 1, 6, stage_row(&s, 0, 2), truth);
	while (fabs(truth[0].x) < 0.1);
	stage_begin(&s);
	frame_rig_run(&s.rig, &s.frame, 0);
	assert_int_equal(stage_tracks(&s), 1);
	assert_int_equal(s.verdict[0].keep, 0);
	stage_end(&s);
}

/* Every byte at random, also through fit and neighbours: nothing is written beyond its place. */
static void test_garbage_is_harmless(void **arg)
{
	uint64_t seed = 12;

	for (int n = 0; n < 6; n++) {
		struct stage s;

		stage_prepare(&s, 2, 1);
		frame_rig_set(&s.rig, "cells", cells_named[n % KINDS]);
		frame_rig_set(&s.rig, "fit", n % 2 ? "true" : "false");
		frame_rig_set(&s.rig, "min_layers", "3");
		frame_rig_set(&s.rig, "rows", n < 3 ? "32" : "64");
		frame_rig_set(&s.rig, "max_tracks", "200");
		for (uint32_t i = 0; i < 2 * SECTORS * SL_TRACKER_ROW_BYTES; i++) {
			uint8_t byte = n ? (uint8_t)(oracle_random(&seed) * 256) : 0xff;

			s.block[i] = i % SL_STUB_BYTES ? byte : byte | 1;
		}
		stage_begin(&s);
		frame_rig_run(&s.rig, &s.frame, 0);
		check_account(&s);
		for (uint32_t i = 0; i < stage_tracks(&s); i++)
			for (int k = 0; k < 10; k++)
				assert_true(isfinite(stage_track(&s, i)[k]));
		stage_end(&s);
	}
}

static void refuse(struct stage *s, const char *words)
{
	const char *said;

	capture_begin();
	assert_int_equal(frame_rig_try_open(&s->rig), -EINVAL);
	said = capture_end();
	assert_non_null(strstr(said, words));
	frame_rig_close(&s->rig);
	free(s->block);
}

static void test_what_is_no_tracker_is_refused(void **arg)
{
	struct stage s;

	stage_prepare(&s, 1, 1);
	s.rig.geometry.columns = 48;
	refuse(&s, "160 stubs");
	stage_prepare(&s, 1, 1);
	s.rig.geometry.items = 0;
	refuse(&s, "tracker");
	/* Alone wrong: events that are not in all modules, and rows that do not divide by them. */
	stage_prepare(&s, 1, 1);
	s.rig.geometry.items_shared = false;
	refuse(&s, "tracker");
	stage_prepare(&s, 1, 2);
	s.rig.geometry.rows = 2 * SECTORS + 1;
	refuse(&s, "tracker");
	stage_prepare(&s, 1, 1);
	s.rig.in.dtype = SL_I16;
	refuse(&s, "int16");
	stage_prepare(&s, 33, 1);
	refuse(&s, "288");
}

static void test_numbers_that_are_none_are_refused(void **arg)
{
	static const char *const bad[][2] = {{"min_pt_GeV", "nan"}, {"bend", "nan"},
					     {"bend", "inf"},	    {"fit_deviations", "-nan"},
					     {"columns", "65"},	    {"min_layers", "8"}};
	struct stage s;

	stage_prepare(&s, 1, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char why[128];

		assert_true(sl_option_set(sl_option_find(sl_stage_tracks.options, bad[i][0]),
					  s.rig.state, bad[i][1], why, sizeof(why)) < 0);
	}
	frame_rig_close(&s.rig);
	free(s.block);
}

static void test_bits_are_counted(void **arg)
{
	for (uint32_t mask = 0; mask < 128; mask++)
		for (uint32_t least = 1; least <= 7; least++) {
			uint32_t b[7];

			for (int i = 0; i < 7; i++)
				b[i] = mask >> i & 1 ? 0xffffffff : 0;
			assert_int_equal(sl_tracks_at_least(sl_tracks_count(b[0], b[1], b[2], b[3],
									    b[4], b[5], b[6]),
							    least),
					 sl_tracks_ones(mask) >= least ? 0xffffffff : 0);
			assert_int_equal(sl_tracks_ones(mask), __builtin_popcount(mask));
		}
}

/* What makes straight lines of a helix, beside the helix. */
static void test_bow_and_detour_are_those_of_a_circle(void **arg)
{
	for (double r = 20; r < 120; r += 10)
		for (double x = -1 / 3.; x < 0.34; x += 1 / 12.) {
			double turn = SL_TRACKER_K * x * r, bow = asin(turn) - turn;
			double detour = fabs(x) > 0.01 ? bow / (SL_TRACKER_K * x) : 0;

			assert_true(fabs((double)sl_tracks_bow((float)x, (float)r) - bow) < 5e-5);
			assert_true(fabs((double)sl_tracks_detour((float)x, (float)r) - detour) <
				    0.03);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits_are_counted),
		cmocka_unit_test(test_cells_are_those_of_the_plain_program),
		cmocka_unit_test(test_garbage_is_in_the_cells_that_its_numbers_say),
		cmocka_unit_test(test_a_cell_has_all_lines_through_it),
		cmocka_unit_test(test_candidates_are_those_of_the_plain_program),
		cmocka_unit_test(test_plain_loops_find_the_same),
		cmocka_unit_test(test_results_are_the_same_with_all_vectors),
		cmocka_unit_test(test_a_helix_comes_out_as_it_went_in),
		cmocka_unit_test(test_bow_and_detour_are_those_of_a_circle),
		cmocka_unit_test(test_seven_layers_count_and_layer_0_does_not),
		cmocka_unit_test(test_a_fit_leaves_out_what_is_off),
		cmocka_unit_test(test_a_crowded_cell_is_fitted_all_the_same),
		cmocka_unit_test(test_of_two_equal_helices_the_first_is_taken),
		cmocka_unit_test(test_stubs_outside_of_the_sector_are_in_no_track),
		cmocka_unit_test(test_coincident_stubs),
		cmocka_unit_test(test_neighbours_report_a_track_once),
		cmocka_unit_test(test_the_better_of_two_neighbours_reports_a_track),
		cmocka_unit_test(
			test_candidates_of_two_sectors_are_one_track_by_the_stubs_they_share),
		cmocka_unit_test(test_what_there_is_no_room_for_is_counted),
		cmocka_unit_test(test_empty_sectors_and_missing_modules_have_no_tracks),
		cmocka_unit_test(test_rows_may_be_apart),
		cmocka_unit_test(test_each_event_has_a_verdict),
		cmocka_unit_test(test_slow_tracks_do_not_count_for_a_fast_trigger),
		cmocka_unit_test(test_garbage_is_harmless),
		cmocka_unit_test(test_what_is_no_tracker_is_refused),
		cmocka_unit_test(test_numbers_that_are_none_are_refused),
	};

	return cmocka_run_group_tests_name("tracks", tests, NULL, NULL);
}
