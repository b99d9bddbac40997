/* rings_test.c - the stage `rings`: what it says of known rings, which events it keeps, and what
 * becomes of hits that make no ring, of bytes that are no hits and of settings that make no
 * sense. oracle_test.c compares what is found with a plain program. */
#include <errno.h>

#include "lib/capture.h"
#include "lib/frame_rig.h"
#include "lib/rich_draw.h"

extern const struct sl_stage sl_stage_rings;

enum { EVENTS = 40, MODULES = 2, ITEMS = EVENTS * MODULES, COLUMNS = 7 };
enum { FOUND, NONE, ONE, TWO, THREE, MORE, ALONE, ODD };

struct scene {
	struct frame_rig rig;
	uint8_t packed[MODULES][EVENTS][SL_RICH_EVENT_BYTES];
	struct sl_verdict verdict[ITEMS];
	struct frame_rig_frame frame;
	struct rich_draw draw;
	const float (*row)[COLUMNS];
	const uint32_t *found;
	uint32_t rows;
};

static void begin(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	memset(s->packed, 0xff, sizeof(s->packed));
	frame_rig_init(&s->rig, &sl_stage_rings, SL_U8, MODULES, EVENTS, SL_RICH_EVENT_BYTES);
	s->rig.geometry.items = EVENTS;
	s->rig.raw = true;
	s->draw.random = 1;
}

static void prepare(struct scene *s)
{
	frame_rig_open(&s->rig);
	frame_rig_frame_init(&s->rig, &s->frame, s->packed);
	for (int i = 0; i < ITEMS; i++)
		s->verdict[i] = (struct sl_verdict){.keep = 1};
	s->frame.frame.items = ITEMS;
	s->frame.frame.verdict = s->verdict;
}

static void run(struct scene *s)
{
	frame_rig_run(&s->rig, &s->frame, 3);
	s->row = frame_rig_result(&s->rig, &s->frame, 0)->host;
	s->rows = frame_rig_result(&s->rig, &s->frame, 0)->rows;
	s->found = frame_rig_result(&s->rig, &s->frame, 1)->host;
}

static void end(struct scene *s)
{
	frame_rig_frame_fini(&s->rig, &s->frame);
	frame_rig_close(&s->rig);
}

static uint8_t *event(struct scene *s, int item)
{
	return s->packed[item / EVENTS][item % EVENTS];
}

static void put_ring(struct scene *s, int item, double x, double y, double radius, uint32_t hits)
{
	rich_draw_ring(&s->draw, x, y, radius, hits, 0);
	rich_draw_pack(&s->draw, event(s, item));
}

/* ---- rings that are known ---- */

static void test_rings_are_where_they_were_put(void **state)
{
	static struct scene s;
	uint32_t at = 0;

	(void)state;
	begin(&s);
	for (int i = 0; i < ITEMS; i++) {
		uint32_t hits = (uint32_t)(8 + i % 8);

		rich_draw_ring(&s.draw, i - 40, 30 - i, 90 + i, hits, 0);
		if (i % 2)
			rich_draw_ring(&s.draw, 40 - i, i / 2. - 50, 180, 16, 0);
		rich_draw_pack(&s.draw, event(&s, i));
	}
	prepare(&s);
	run(&s);
	for (int i = 0; i < ITEMS; i++) {
		double least = INFINITY;
		int rings = 0;

		for (; at < s.rows && s.row[at][0] == (float)i; at++, rings++)
			least = fmin(least, fabs(s.row[at][1] - (i - 40)) +
						    fabs(s.row[at][2] - (30 - i)) +
						    fabs(s.row[at][3] - (90 + i)));
		assert_true(rings >= 1 && rings <= 2);
		assert_true(s.verdict[i].score == (float)rings);
		assert_int_equal(s.verdict[i].reason, SL_REASON_RINGS);
		if (i % 2 == 0)
			assert_int_equal(rings, 1);
		if (i % 2 == 0)
			assert_true(least < 20);
	}
	assert_int_equal(at, s.rows);
	assert_int_equal(s.found[FOUND], s.rows);
	assert_int_equal(s.found[ONE] + s.found[TWO], ITEMS);
	assert_true(s.found[TWO] > ITEMS / 2 - 5);
	assert_true(s.found[ALONE] >= ITEMS / 2 - 2);
	end(&s);
}

/* Four that do not touch, of eight hits each: more than there is room for. */
static void test_a_fourth_ring_is_told(void **state)
{
	static struct scene s;

	(void)state;
	begin(&s);
	frame_rig_set(&s.rig, "max_rings", "3");
	for (int i = 0; i < 4; i++)
		rich_draw_ring(&s.draw, i % 2 ? 110 : -110, i / 2 ? 110 : -110, 75, 8, 0);
	assert_int_equal(s.draw.hits, 32);
	rich_draw_pack(&s.draw, event(&s, 5));
	prepare(&s);
	run(&s);
	assert_int_equal(s.rows, 3);
	assert_int_equal(s.found[FOUND], 4);
	assert_int_equal(s.found[MORE], 1);
	assert_true(s.verdict[5].score == 4);
	assert_false(s.verdict[5].keep);
	end(&s);
}

/* Three that lie beside each other, turned about the middle: hits of each are close in angle. */
static void test_rings_that_lie_apart(void **state)
{
	static struct scene s;

	(void)state;
	begin(&s);
	for (int i = 0; i < ITEMS; i++) {
		for (int k = 0; k < 3; k++) {
			double angle = 2 * SL_PI * (i / (double)ITEMS + k) / 3;

			rich_draw_ring(&s.draw, 140 * cos(angle), 140 * sin(angle), 80, 10, 0);
		}
		rich_draw_pack(&s.draw, event(&s, i));
	}
	prepare(&s);
	run(&s);
	print_message("three rings in %u of %d\n", s.found[THREE], ITEMS);
	assert_true(s.found[THREE] >= ITEMS - 4);
	end(&s);
}

static void test_what_does_not_fit_is_counted(void **state)
{
	static struct scene s;

	(void)state;
	begin(&s);
	frame_rig_set(&s.rig, "max_rows", "5");
	for (int i = 0; i < ITEMS; i++)
		put_ring(&s, i, 0, 0, 150, 14);
	prepare(&s);
	run(&s);
	assert_int_equal(s.rows, 5);
	assert_int_equal(s.found[FOUND], ITEMS);
	for (int i = 0; i < ITEMS; i++)
		assert_true(s.verdict[i].keep && s.verdict[i].score == 1);
	end(&s);
}

/* ---- which events are kept ---- */

static void expect_kept(const char *settings[][2], const int *kept, int n)
{
	static struct scene s;

	begin(&s);
	for (int i = 0; settings[i][0]; i++)
		frame_rig_set(&s.rig, settings[i][0], settings[i][1]);
	put_ring(&s, 1, 0, 0, 140, 14);	   /* a pion of 20 GeV, or a muon of 14 */
	put_ring(&s, 2, 60, -60, 140, 14); /* another direction */
	put_ring(&s, 3, 0, 0, 188, 16);	   /* an electron, or anything that is fast */
	rich_draw_ring(&s.draw, 0, 0, 112, 12, 0);
	rich_draw_ring(&s.draw, 0, 0, 192, 14, 0);
	rich_draw_pack(&s.draw, event(&s, 4)); /* 0 is empty */
	prepare(&s);
	run(&s);
	assert_int_equal(s.found[NONE], ITEMS - 4);
	assert_int_equal(s.found[ONE], 3);
	assert_int_equal(s.found[TWO], 1);
	for (int i = 0; i < n; i++)
		if (s.verdict[i].keep != kept[i])
			fail_msg("%s: event %d: %d", settings[0][0] ? settings[0][0] : "as it is",
				 i, s.verdict[i].keep);
	end(&s);
}

#define KEPT(...) (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void test_events_are_kept_by_their_rings(void **state)
{
	(void)state;
	expect_kept((const char *[][2]){{NULL, NULL}}, KEPT(0, 1, 1, 1, 1));
	expect_kept((const char *[][2]){{"min_rings", "0"}, {"max_rings", "0"}, {NULL, NULL}},
		    KEPT(1, 0, 0, 0, 0));
	expect_kept((const char *[][2]){{"max_rings", "1"}, {NULL, NULL}}, KEPT(0, 1, 1, 1, 0));
	expect_kept((const char *[][2]){{"min_rings", "2"}, {NULL, NULL}}, KEPT(0, 0, 0, 0, 1));
	expect_kept((const char *[][2]){{"particle", "pion"}, {"min_matches", "1"}, {NULL, NULL}},
		    KEPT(0, 1, 1, 0, 1));
	expect_kept(
		(const char *[][2]){{"particle", "electron"}, {"min_matches", "1"}, {NULL, NULL}},
		KEPT(0, 0, 0, 1, 1));
	expect_kept(
		(const char *[][2]){{"match_max_mm", "120"}, {"min_matches", "1"}, {NULL, NULL}},
		KEPT(0, 0, 0, 0, 1));
	expect_kept((const char *[][2]){{"match_min_mm", "90"}, {"min_matches", "2"}, {NULL, NULL}},
		    KEPT(0, 0, 0, 0, 1));
	expect_kept((const char *[][2]){{"match_x_mm", "55"},
					{"match_y_mm", "-55"},
					{"match_distance_mm", "20"},
					{"min_matches", "1"},
					{NULL, NULL}},
		    KEPT(0, 0, 1, 0, 0));
	expect_kept((const char *[][2]){{"particle", "muon"},
					{"momentum_min_GeV", "14"},
					{"momentum_max_GeV", "14.5"},
					{"max_rings", "1"},
					{"min_matches", "1"},
					{NULL, NULL}},
		    KEPT(0, 1, 1, 0, 0));
}

static void test_earlier_verdicts_stay(void **state)
{
	static struct scene s;

	(void)state;
	begin(&s);
	for (int i = 0; i < 4; i++)
		put_ring(&s, i, 0, 0, 150, 14);
	prepare(&s);
	s.verdict[1] = (struct sl_verdict){.keep = 0, .score = 9, .reason = SL_REASON_SCORE};
	s.verdict[2] = (struct sl_verdict){.keep = 1, .score = 8, .reason = SL_REASON_PRESCALED};
	run(&s);
	assert_true(s.verdict[0].keep && s.verdict[3].keep);
	assert_true(!s.verdict[1].keep && s.verdict[1].score == 9);
	assert_int_equal(s.verdict[1].reason, SL_REASON_SCORE);
	assert_int_equal(s.verdict[2].reason, SL_REASON_PRESCALED);
	assert_int_equal(s.rows, 4);
	end(&s);
}

static void test_frames_without_light(void **state)
{
	static struct scene s;

	(void)state;
	begin(&s);
	for (int i = 0; i < ITEMS; i++)
		put_ring(&s, i, 0, 0, 150, 14);
	prepare(&s);
	s.frame.frame.flags |= SL_FRAME_DARK;
	run(&s);
	assert_int_equal(s.rows, 0);
	assert_int_equal(s.found[FOUND] + s.found[NONE], 0);
	assert_int_equal(s.verdict[0].reason, SL_REASON_UNJUDGED);
	/* One module did not come: none of its events is kept, whatever bytes are there. */
	s.frame.frame.flags = SL_FRAME_PARTIAL;
	s.frame.frame.missing = 1;
	run(&s);
	assert_int_equal(s.rows, EVENTS);
	assert_true(s.row[0][0] == EVENTS);
	assert_true(!s.verdict[0].keep && s.verdict[EVENTS].keep);
	/* All were rejected before: there is nothing to look at. */
	for (int i = 0; i < ITEMS; i++)
		s.verdict[i].keep = 0;
	s.frame.frame.missing = 0;
	run(&s);
	assert_int_equal(s.rows, 0);
	end(&s);
	begin(&s);
	frame_rig_set(&s.rig, "look", "all");
	put_ring(&s, 0, 0, 0, 150, 14);
	prepare(&s);
	for (int i = 0; i < ITEMS; i++)
		s.verdict[i].keep = 0;
	run(&s);
	assert_int_equal(s.rows, 1);
	assert_false(s.verdict[0].keep);
	end(&s);
}

/* ---- bytes ---- */

static void test_a_pitch_and_a_copy(void **state)
{
	static struct scene s;
	static uint8_t wide[MODULES][EVENTS][64];
	float first[COLUMNS];

	(void)state;
	begin(&s);
	for (int i = 0; i < ITEMS; i++)
		put_ring(&s, i, i / 2., -i, 100 + i, 14);
	for (int i = 0; i < ITEMS; i++)
		memcpy(wide[i / EVENTS][i % EVENTS], event(&s, i), SL_RICH_EVENT_BYTES);
	prepare(&s);
	run(&s);
	assert_int_equal(s.rows, ITEMS);
	memcpy(first, s.row[ITEMS - 1], sizeof(first));
	for (int m = 0; m < MODULES; m++) {
		s.frame.view[m].pixels.host = wide[m];
		s.frame.view[m].pixels.pitch = 64;
	}
	run(&s);
	assert_memory_equal(first, s.row[ITEMS - 1], sizeof(first));
	end(&s);
	s.rig.raw = false;
	s.rig.state = calloc(1, sl_stage_rings.state_bytes);
	sl_options_defaults(sl_stage_rings.options, s.rig.state);
	prepare(&s);
	run(&s);
	assert_memory_equal(first, s.row[ITEMS - 1], sizeof(first));
	end(&s);
}

static void put_cells(struct scene *s, int item, const uint16_t *cell, uint32_t n)
{
	sl_rich_pack(cell, n, event(s, item));
}

/* Hits that lie on no circle, or on any number of them. */
static void test_hits_that_make_no_ring(void **state)
{
	static struct scene s;
	uint16_t cell[SL_RICH_HITS];

	(void)state;
	begin(&s);
	frame_rig_set(&s.rig, "min_hits", "4");
	for (int i = 0; i < SL_RICH_HITS; i++)
		cell[i] = 500;
	put_cells(&s, 1, cell, SL_RICH_HITS); /* all in one place */
	for (int i = 0; i < SL_RICH_HITS; i++)
		cell[i] = i % 2 ? 500 : 100;
	put_cells(&s, 2, cell, SL_RICH_HITS); /* in two */
	for (int i = 0; i < SL_RICH_HITS; i++)
		cell[i] = (uint16_t)(471 + i);
	put_cells(&s, 3, cell, SL_RICH_HITS); /* in a row */
	for (int i = 0; i < 4; i++)
		cell[i] = (uint16_t)(200 + 300 * (i % 2) + SL_RICH_DISK_CELLS * (i / 2));
	put_cells(&s, 11, cell, 4); /* in two places of both disks */
	for (int i = 0, first = 0; i < 16; i++) {
		/* A row of the lattice that goes up: half a cell to the side in each. */
		double x, y;

		for (; first < SL_RICH_DISK_CELLS; first++) {
			sl_rich_position((uint32_t)first, &x, &y);
			if (fabs(x - 9 * (i - 7)) < 1 &&
			    fabs(y - SL_RICH_ROW_PITCH_MM * (i - 8)) < 1)
				break;
		}
		cell[i] = (uint16_t)first;
	}
	put_cells(&s, 12, cell, 16);
	for (uint32_t n = 1; n <= 3; n++) { /* too few */
		rich_draw_ring(&s.draw, 0, 0, 150, n, 0);
		rich_draw_pack(&s.draw, event(&s, 3 + (int)n));
	}
	put_ring(&s, 9, 0, 0, 25, 9);	  /* too small */
	put_ring(&s, 10, 240, 0, 60, 12); /* too far out */
	prepare(&s);
	run(&s);
	assert_int_equal(s.rows, 0);
	assert_int_equal(s.found[NONE], ITEMS);
	assert_int_equal(s.found[ODD], 31 + 30);
	for (int i = 0; i < ITEMS; i++)
		assert_true(!s.verdict[i].keep && s.verdict[i].score == 0);
	end(&s);
}

static void test_full_events_and_odd_numbers(void **state)
{
	static struct scene s;
	uint16_t cell[SL_RICH_HITS];
	int n;

	(void)state;
	begin(&s);
	/* 33 hits and more: the detector has cut them to 32, and a fill is not needed. */
	put_ring(&s, 0, 0, 0, 180, 50);
	assert_int_equal(sl_rich_hits(event(&s, 0)), 32);
	/* Half of the numbers are no cells. */
	put_ring(&s, 1, 10, 0, 150, 14);
	n = (int)sl_rich_hits(event(&s, 1));
	for (int i = 0; i < n; i++) {
		cell[2 * i] = (uint16_t)sl_rich_hit(event(&s, 1), (uint32_t)i);
		cell[2 * i + 1] = (uint16_t)(i % 2 ? SL_RICH_CELLS : 0xffe);
	}
	put_cells(&s, 1, cell, (uint32_t)(2 * n));
	/* What is behind the first number that is not used does not count. */
	put_ring(&s, 2, 10, 0, 150, 14);
	event(&s, 2)[6] = 0xff;
	event(&s, 2)[7] = 0xff;
	prepare(&s);
	run(&s);
	assert_int_equal(s.rows, 2);
	assert_true(s.row[0][0] == 0 && s.row[0][4] > 28);
	assert_true(s.row[1][0] == 1 && s.row[1][4] == (float)n);
	assert_int_equal(s.found[ODD], n);
	end(&s);
}

/* Any bytes: rings are numbers within the limits, and counts agree. */
static void test_garbage(void **state)
{
	static const char *const kinds[] = {"auto", "avx2", "baseline"};
	static struct scene s;
	float kept[3 * ITEMS][COLUMNS];

	(void)state;
	for (int k = 0; k < 60; k++) {
		begin(&s);
		frame_rig_set(&s.rig, "vectors", kinds[k % 3]);
		s.draw.random = (uint64_t)(k / 3);
		for (size_t i = 0; i < sizeof(s.packed); i++)
			((uint8_t *)s.packed)[i] =
				(uint8_t)(rich_draw_uniform(&s.draw) * (k / 3 % 2 ? 256 : 122));
		prepare(&s);
		run(&s);
		assert_true(s.rows <= 3 * ITEMS && s.rows <= s.found[FOUND]);
		assert_int_equal(s.found[NONE] + s.found[ONE] + s.found[TWO] + s.found[THREE] +
					 s.found[MORE],
				 ITEMS);
		for (uint32_t i = 0; i < s.rows; i++) {
			assert_true(s.row[i][3] >= 44.9f && s.row[i][3] <= 215.1f);
			assert_true(hypot(s.row[i][1], s.row[i][2]) <= 200.1);
			assert_true(s.row[i][4] >= 6 && s.row[i][4] <= 32);
			assert_true(s.row[i][5] >= 0 && s.row[i][5] <= 15.1f);
		}
		if (k % 3 == 0)
			memcpy(kept, s.row, s.rows * sizeof(*kept));
		else
			assert_memory_equal(kept, s.row, s.rows * sizeof(*kept));
		end(&s);
	}
}

/* ---- settings ---- */

static void expect_refused(const char *option, const char *value, const char *other,
			   const char *other_value, const char *says)
{
	struct scene *s = malloc(sizeof(*s));

	begin(s);
	frame_rig_set(&s->rig, option, value);
	if (other)
		frame_rig_set(&s->rig, other, other_value);
	capture_begin();
	assert_int_equal(frame_rig_try_open(&s->rig), -EINVAL);
	assert_non_null(strstr(capture_end(), says));
	sl_stage_rings.close(s->rig.state);
	free(s->rig.state);
	free(s);
}

static void test_settings_that_make_no_sense(void **state)
{
	(void)state;
	expect_refused("radius_min_mm", "300", NULL, NULL, "radius_max_mm");
	expect_refused("window_mm", "50", NULL, NULL, "window_mm");
	expect_refused("min_own", "9", NULL, NULL, "min_own");
	expect_refused("min_rings", "3", "max_rings", "2", "max_rings");
	expect_refused("min_matches", "3", "max_rings", "2", "min_matches");
	expect_refused("particle", "kaon", NULL, NULL, "no light");
	expect_refused("particle", "pion", "momentum_max_GeV", "14", "momentum_max_GeV");
	expect_refused("particle", "electron", "match_max_mm", "100", "no radius");
}

static void test_numbers_that_are_none(void **state)
{
	char why[128];

	(void)state;
	for (const struct sl_option *o = sl_stage_rings.options; o->name; o++) {
		struct scene *s = malloc(sizeof(*s));
		double nan = NAN;

		begin(s);
		if (o->type == SL_OPTION_F64) {
			assert_int_not_equal(
				sl_option_set(o, s->rig.state, "nan", why, sizeof(why)), 0);
			/* Not even when it comes in some other way. */
			frame_rig_set(&s->rig, "particle", "pion");
			memcpy((char *)s->rig.state + o->offset, &nan, sizeof(nan));
			capture_begin();
			if (frame_rig_try_open(&s->rig) != -EINVAL)
				fail_msg("%s", o->name);
			capture_end();
		}
		free(s->rig.state);
		free(s);
	}
}

static void test_other_detectors_are_refused(void **state)
{
	struct scene *s = malloc(sizeof(*s));

	(void)state;
	begin(s);
	s->rig.geometry.columns = 960;
	capture_begin();
	assert_int_equal(frame_rig_try_open(&s->rig), -EINVAL);
	assert_non_null(strstr(capture_end(), "48 bytes"));
	free(s->rig.state);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings_are_where_they_were_put),
		cmocka_unit_test(test_a_fourth_ring_is_told),
		cmocka_unit_test(test_rings_that_lie_apart),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
		cmocka_unit_test(test_events_are_kept_by_their_rings),
		cmocka_unit_test(test_earlier_verdicts_stay),
		cmocka_unit_test(test_frames_without_light),
		cmocka_unit_test(test_a_pitch_and_a_copy),
		cmocka_unit_test(test_hits_that_make_no_ring),
		cmocka_unit_test(test_full_events_and_odd_numbers),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_settings_that_make_no_sense),
		cmocka_unit_test(test_numbers_that_are_none),
		cmocka_unit_test(test_other_detectors_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
