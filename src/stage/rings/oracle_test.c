/* oracle_test.c - rings are those that a plain program in double precision finds, which tries
 * all triplets of hits; with every kind of vectors they are the same, and whatever is beside them.
 *
 * Triplets that are tried decide which ring is found, where several explain the hits about as well.
 * So counts differ in some events: the test says how many may. Where both find rings of the same
 * hits, the circles are the same but for the precision of floats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rich_draw.h"
#include "stage/rings/find.h"
#include "stage/rings/oracle.h"
#include "stage/rings/scalar_oracle.h"

/* Plain C, one event after the other. */
#define VECTOR_WIDTH 1
#define VECTOR_TARGET
#define PASSES rings_plain
#include "stage/rings/passes.h"

enum { EVENTS = 1000 };

static uint8_t packed[EVENTS][SL_RICH_EVENT_BYTES];
static struct sl_rings_settings settings;
static struct sl_rings_work work;

/* ---- what is compared ---- */

static void draw(uint64_t seed, double noise)
{
	struct rich_draw d = {.random = seed};

	for (int i = 0; i < EVENTS; i++) {
		rich_draw_event(&d, noise);
		rich_draw_pack(&d, packed[i]);
	}
}

static void find(const struct sl_rings_passes *passes, struct sl_rings_event *out)
{
	for (uint32_t i = 0; i < EVENTS; i += SL_RINGS_CHUNK) {
		uint32_t n = EVENTS - i < SL_RINGS_CHUNK ? EVENTS - i : SL_RINGS_CHUNK;

		memset(&work, 0x5a, sizeof(work));
		sl_rings_find(&settings, passes, packed[i], SL_RICH_EVENT_BYTES, n, &work);
		memcpy(out + i, work.event, n * sizeof(*out));
	}
}

static void assert_same(const struct sl_rings_event *a, const struct sl_rings_event *b)
{
	uint32_t n = a->rings < SL_RINGS ? a->rings : SL_RINGS;

	assert_int_equal(a->rings, b->rings);
	assert_int_equal(a->hits, b->hits);
	assert_int_equal(a->alone, b->alone);
	assert_memory_equal(a->ring, b->ring, n * sizeof(*a->ring));
}

struct score {
	int events, same_count, rings, same_ring, near_ring;
	double worst; /* of rings that are the same: the largest difference, mm */
};

/* Of the oracle's rings the nearest; the two are the same when they are within a micrometre or so
 * of each other: other hits would move it by more. */
static void score_rings(const struct sl_rings_event *e, const struct rings_oracle *o,
			struct score *s)
{
	for (int i = 0; i < e->rings && i < SL_RINGS; i++) {
		double least = INFINITY;

		for (int k = 0; k < o->rings; k++) {
			double d = fmax(
				hypot(e->ring[i].x - o->ring[k].x, e->ring[i].y - o->ring[k].y),
				fabs(sqrt(e->ring[i].square) - o->ring[k].r));

			least = fmin(least, d);
		}
		s->rings++;
		s->same_ring += least < 0.02;
		s->near_ring += least < 3;
		if (least < 0.02)
			s->worst = fmax(s->worst, least);
	}
}

static struct score compare(uint64_t seed, double noise, uint32_t triplets, int events)
{
	static struct sl_rings_event found[EVENTS];
	struct score s = {.events = events};
	struct rings_oracle o;

	settings.triplets = triplets;
	draw(seed, noise);
	find(&rings_plain, found);
	settings.triplets = 64;
	for (int i = 0; i < events; i++) {
		int rings = found[i].rings < SL_RINGS ? found[i].rings : SL_RINGS;

		rings_oracle_event(&settings, packed[i], &o);
		s.same_count += rings == o.rings;
		score_rings(&found[i], &o, &s);
	}
	print_message("%u triplets, noise %g: as many rings in %d of %d events; of %d rings %d are "
		      "the same within "
		      "%.4f mm, %d within 3 mm\n",
		      triplets, noise, s.same_count, events, s.rings, s.same_ring, s.worst,
		      s.near_ring);
	return s;
}

static void test_rings_are_those_of_all_triplets(void **state)
{
	struct score s = compare(1, 2, 64, 400);

	(void)state;
	assert_true(s.same_count >= 0.97 * s.events);
	assert_true(s.same_ring >= 0.86 * s.rings);
	assert_true(s.near_ring >= 0.89 * s.rings);
	assert_true(s.worst < 0.002);
	/* The more triplets, the more it is what all of them give. */
	s = compare(1, 2, SL_RINGS_TRIPLETS, 300);
	assert_true(s.same_count >= 0.985 * s.events);
	assert_true(s.same_ring >= 0.91 * s.rings);
	s = compare(2, 6, SL_RINGS_TRIPLETS, 120);
	assert_true(s.same_count >= 0.96 * s.events);
	assert_true(s.same_ring >= 0.88 * s.rings);
}

static void test_all_vectors_give_the_same_bits(void **state)
{
	static struct sl_rings_event plain[EVENTS], other[EVENTS];
	static const enum sl_vectors kinds[] = {SL_VECTORS_AVX512, SL_VECTORS_AVX2,
						SL_VECTORS_BASELINE};

	(void)state;
	for (uint64_t seed = 3; seed < 6; seed++) {
		draw(seed, (double)(seed % 3) * 3);
		find(&rings_plain, plain);
		for (int k = 0; k < 3; k++) {
			find(sl_rings_passes_of(sl_vectors_choose(kinds[k])), other);
			for (int i = 0; i < EVENTS; i++)
				assert_same(&plain[i], &other[i]);
		}
	}
}

static void test_plain_loops_find_the_same_bits(void **state)
{
	static struct sl_rings_event found[EVENTS];
	struct sl_rings_event scalar;
	int rings = 0;

	(void)state;
	for (uint64_t seed = 6; seed < 9; seed++) {
		draw(seed, (double)(seed % 3) * 3);
		find(sl_rings_passes_of(sl_vectors_choose(0)), found);
		for (int i = 0; i < EVENTS; i++) {
			sl_scalar_rings(&settings, packed[i], &scalar);
			assert_same(&found[i], &scalar);
			rings += scalar.rings;
		}
	}
	assert_true(rings > EVENTS);
}

/* Alone, in another order, with others: each event has the same rings. */
static void test_neighbours_do_not_matter(void **state)
{
	static struct sl_rings_event found[EVENTS];
	const struct sl_rings_passes *passes = sl_rings_passes_of(sl_vectors_choose(0));

	(void)state;
	draw(20, 4);
	find(passes, found);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t n = 1 + i % 37;

		if (i < n - 1)
			continue;
		/* Backwards, n of them. */
		sl_rings_find(&settings, passes, packed[i], -SL_RICH_EVENT_BYTES, n, &work);
		assert_same(&found[i - (n - 1)], &work.event[n - 1]);
	}
}

/* What is said of a ring holds for its circle. */
static void test_hits_and_spread_are_right(void **state)
{
	static struct sl_rings_event found[EVENTS];
	int rings = 0, border = 0;

	(void)state;
	draw(30, 2);
	find(&sl_rings_baseline, found);
	for (int i = 0; i < EVENTS; i++)
		for (int k = 0; k < found[i].rings && k < SL_RINGS; k++) {
			const struct sl_rings_ring *ring = &found[i].ring[k];
			struct rings_oracle_circle c = {ring->x, ring->y, sqrt(ring->square)};
			double sum = 0, x, y;
			int n = 0;

			for (uint32_t h = 0; h < sl_rich_hits(packed[i]); h++) {
				double off;

				sl_rich_position(sl_rich_hit(packed[i], h), &x, &y);
				off = rings_oracle_off(c, x, y);
				n += off < settings.window;
				sum += off < settings.window ? off * off : 0;
			}
			rings++;
			border += n != (int)ring->hits;
			assert_true(n >= (int)settings.min_hits - 1);
			if (n == (int)ring->hits)
				assert_true(fabs(sum / n - ring->spread) <
					    1e-3 * ring->spread + 1e-4);
			assert_true(rings_oracle_accepts(&settings, c));
		}
	assert_true(rings > EVENTS);
	assert_true(border < 5);
}

/* Any number of hits in two places, or on a line, whatever floats make of their sums. */
static void test_a_line_is_no_circle(void **state)
{
	struct rich_draw d = {.random = 40};
	struct group g = {.events = 1};

	(void)state;
	for (int k = 0; k < 20000; k++) {
		double x = 300 * rich_draw_uniform(&d), y = 300 * rich_draw_uniform(&d);

		g.hits = 4 + (uint32_t)(rich_draw_uniform(&d) * 28);
		g.n.all = (float)g.hits;
		for (uint32_t h = 0; h < g.hits; h++) {
			double along = k % 2 ? (h * 5 + 1) % 3 == 0 : h / 10.;

			g.x[h].all = (float)(x + along * (100 - x));
			g.y[h].all = (float)(y - along * y);
		}
		mark_all(&g);
		assert_false(sl_rings_is_within(fit(&g), limits_of(&settings)));
	}
}

static int set_up(void **state)
{
	(void)state;
	settings = (struct sl_rings_settings){.radius_min = 45,
					      .radius_max = 215,
					      .reach = 200,
					      .window = 15,
					      .rms = 9,
					      .min_hits = 6,
					      .min_own = 4,
					      .triplets = 64};
	sl_rings_settings_init(&settings);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings_are_those_of_all_triplets),
		cmocka_unit_test(test_all_vectors_give_the_same_bits),
		cmocka_unit_test(test_plain_loops_find_the_same_bits),
		cmocka_unit_test(test_neighbours_do_not_matter),
		cmocka_unit_test(test_a_line_is_no_circle),
		cmocka_unit_test(test_hits_and_spread_are_right),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
