/* points_test.c - points of a scan: of a run, in their order, with values that the first one names;
 * their bounds; what sinks get. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/env.h>

#include "session/points/points.h"

static struct sl_points points;
static char why[200];

static int setup(void **state)
{
	memset(&points, 0, sizeof(points));
	sl_points_init(&points);
	return 0;
}

static int teardown(void **state)
{
	sl_points_fini(&points);
	return 0;
}

static int add(uint64_t first, uint64_t frames, const char *a, double x, const char *b, double y)
{
	struct sl_request request = {.first = first, .frames = frames};
	uint64_t number = UINT64_MAX;
	int err;

	if (a) {
		request.value[request.values].name = a;
		request.value[request.values++].value = x;
	}
	if (b) {
		request.value[request.values].name = b;
		request.value[request.values++].value = y;
	}
	err = sl_points_add(&points, &request, &number, why, sizeof(why));
	assert_true(err || number == points.n - 1);
	return err;
}

struct got {
	uint64_t n, first[4], frames[4];
	uint32_t values;
	char name[2][64];
	double value[2][4];
};

static void note(void *to, const struct sl_env_points *p)
{
	struct got *got = to;

	got->n = p->n;
	got->values = p->values;
	for (uint64_t i = 0; i < p->n && i < 4; i++) {
		got->first[i] = p->first[i];
		got->frames[i] = p->frames[i];
		assert_true(p->unix_ns[i] > UINT64_C(1600000000000000000));
	}
	for (uint32_t v = 0; v < p->values; v++) {
		snprintf(got->name[v], sizeof(got->name[v]), "%s", p->name[v]);
		for (uint64_t i = 0; i < p->n && i < 4; i++)
			got->value[v][i] = p->value[v][i];
	}
}

static struct got all(void)
{
	struct got got = {.n = UINT64_MAX};

	sl_points_all(&points, note, &got);
	return got;
}

static void there_are_none_outside_of_a_run(void **state)
{
	assert_int_equal(add(0, 5, NULL, 0, NULL, 0), -EPROTO);
	assert_string_equal(why, "no run is under way");
	assert_int_equal(all().n, 0);
	sl_points_begin(&points);
	assert_int_equal(add(0, 5, NULL, 0, NULL, 0), 0);
	sl_points_end(&points);
	assert_int_equal(add(5, 5, NULL, 0, NULL, 0), -EPROTO);
	assert_int_equal(all().n,
			 1); /* of the run that has ended: its files may still be closing */
	sl_points_begin(&points);
	assert_int_equal(all().n, 0);
	sl_points_end(&points);
}

static void sinks_get_them_in_their_order(void **state)
{
	struct got got;

	sl_points_begin(&points);
	assert_int_equal(add(0, 5, "x", 1.5, "y", -2), 0);
	assert_int_equal(add(7, 6, "y", 3, "x", 4), 0);
	assert_int_equal(add(20, 1, "y", 5, NULL, 0), 0);
	got = all();
	assert_int_equal(got.n, 3);
	assert_int_equal(got.values, 2);
	assert_int_equal(got.first[1], 7);
	assert_int_equal(got.frames[1], 6);
	assert_string_equal(got.name[0], "x");
	assert_string_equal(got.name[1], "y");
	assert_true(got.value[0][0] == 1.5 && got.value[1][0] == -2);
	assert_true(got.value[0][1] == 4 && got.value[1][1] == 3);
	assert_true(isnan(got.value[0][2]) && got.value[1][2] == 5);
	sl_points_end(&points);
}

static void the_first_one_names_the_values(void **state)
{
	sl_points_begin(&points);
	assert_int_equal(add(0, 5, "x", 1, NULL, 0), 0);
	assert_int_equal(add(5, 5, "z", 1, NULL, 0), -EINVAL);
	assert_non_null(strstr(why, "values.z"));
	assert_int_equal(all().n, 1);
	assert_int_equal(add(5, 5, NULL, 0, NULL, 0), 0); /* fewer are fine */
	sl_points_end(&points);
	sl_points_begin(&points);
	assert_int_equal(add(0, 5, "z", 1, NULL, 0), 0); /* another run, another scan */
	sl_points_end(&points);
}

static void a_run_has_a_bounded_number_of_them(void **state)
{
	sl_points_begin(&points);
	for (unsigned i = 0; i < SL_POINTS_MOST; i++)
		assert_int_equal(add(i, 1, "x", i, NULL, 0), 0);
	assert_int_equal(add(SL_POINTS_MOST, 1, "x", 0, NULL, 0), -E2BIG);
	assert_non_null(strstr(why, "65536"));
	assert_int_equal(all().n, SL_POINTS_MOST);
	assert_int_equal(points.value[0][SL_POINTS_MOST - 1], SL_POINTS_MOST - 1);
	sl_points_end(&points);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(there_are_none_outside_of_a_run),
		CASE(sinks_get_them_in_their_order),
		CASE(the_first_one_names_the_values),
		CASE(a_run_has_a_bounded_number_of_them),
	};

	return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
