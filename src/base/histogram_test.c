/* histogram_test.c - percentiles against sorted arrays. */
#include "base/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sl_histogram histogram;

static int reset(void **state)
{
	memset(&histogram, 0, sizeof(histogram));
	return 0;
}

static uint64_t next(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *x >> 11;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The samples sorted: the value at or below which `fraction` of them lie. */
static uint64_t exact(const uint64_t *sorted, size_t n, double fraction)
{
	size_t rank = (size_t)ceil(fraction * (double)n);

	return sorted[rank ? rank - 1 : 0];
}

static void check_all(uint64_t *values, size_t n)
{
	static const double fractions[] = {0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1};

	for (size_t i = 0; i < n; i++)
		sl_histogram_add(&histogram, values[i]);
	qsort(values, n, sizeof(*values), compare);
	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
		double right = (double)exact(values, n, fractions[i]);
		double got = (double)sl_histogram_percentile(&histogram, fractions[i]);

		if (fabs(got - right) > 0.045 * right)
			fail_msg("p%g: got %g, is %g", 100 * fractions[i], got, right);
	}
	assert_int_equal(sl_histogram_count(&histogram), n);
	assert_int_equal(sl_histogram_min(&histogram), values[0]);
	assert_int_equal(sl_histogram_max(&histogram), values[n - 1]);
}

static void empty_is_zero(void **state)
{
	assert_int_equal(sl_histogram_percentile(&histogram, 0.5), 0);
	assert_int_equal(sl_histogram_max(&histogram), 0);
	assert_int_equal(sl_histogram_min(&histogram), 0);
	assert_int_equal(sl_histogram_count(&histogram), 0);
}

static void one_sample_is_every_percentile(void **state)
{
	sl_histogram_add(&histogram, 123457);
	assert_int_equal(sl_histogram_percentile(&histogram, 0), 123457);
	assert_int_equal(sl_histogram_percentile(&histogram, 0.5), 123457);
	assert_int_equal(sl_histogram_percentile(&histogram, 1), 123457);
	assert_int_equal(sl_histogram_min(&histogram), 123457);
}

static void small_values_are_exact(void **state)
{
	for (uint64_t v = 0; v < 32; v++)
		sl_histogram_add(&histogram, v);
	for (uint64_t v = 0; v < 32; v++)
		assert_int_equal(sl_histogram_percentile(&histogram, (double)(v + 1) / 32), v);
}

static void zero_counts_as_a_sample(void **state)
{
	sl_histogram_add(&histogram, 0);
	sl_histogram_add(&histogram, 7);
	assert_int_equal(sl_histogram_min(&histogram), 0);
	assert_int_equal(sl_histogram_percentile(&histogram, 0.5), 0);
	assert_int_equal(sl_histogram_count(&histogram), 2);
}

static void uniform(void **state)
{
	static uint64_t values[20000];
	uint64_t x = 1;

	for (size_t i = 0; i < 20000; i++)
		values[i] = next(&x) % 1000000;
	check_all(values, 20000);
}

static void over_many_decades(void **state)
{
	static uint64_t values[20000];
	uint64_t x = 2;

	for (size_t i = 0; i < 20000; i++)
		values[i] = next(&x) >> next(&x) % 53;
	check_all(values, 20000);
}

static void a_tail_of_one_in_a_thousand(void **state)
{
	static uint64_t values[10000];

	for (size_t i = 0; i < 10000; i++)
		values[i] = i % 1000 == 7 ? 50000000 : 2000 + i % 100;
	check_all(values, 10000);
}

/* Around every power of two, one sample at a time: the worst places for the bucket arithmetic. */
static void within_bounds_everywhere(void **state)
{
	for (unsigned e = 0; e < 64; e++)
		for (int d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << e) + (uint64_t)d;
			double got;

			reset(state);
			sl_histogram_add(&histogram, v);
			sl_histogram_add(&histogram, v);
			/* Not clamped by min and max: a sample on either side. */
			sl_histogram_add(&histogram, 0);
			sl_histogram_add(&histogram, UINT64_MAX);
			got = (double)sl_histogram_percentile(&histogram, 0.75);
			assert_true(fabs(got - (double)v) <= 0.045 * (double)v);
		}
}

static void never_above_max_or_below_min(void **state)
{
	sl_histogram_add(&histogram, 1024); /* the middle of this bucket is above it */
	sl_histogram_add(&histogram, 1087); /* same bucket */
	assert_true(sl_histogram_percentile(&histogram, 0.99) <= 1087);
	assert_true(sl_histogram_percentile(&histogram, 0.01) >= 1024);
	reset(state);
	sl_histogram_add(&histogram, 1024);
	sl_histogram_add(&histogram, 1024);
	assert_int_equal(sl_histogram_percentile(&histogram, 0.5), 1024);
	reset(state);
	sl_histogram_add(&histogram, 1080); /* the middle of this bucket is below it */
	sl_histogram_add(&histogram, 1087);
	assert_int_equal(sl_histogram_percentile(&histogram, 0.5), 1080);
}

static void percentiles_do_not_decrease(void **state)
{
	uint64_t x = 3, last = 0;

	for (int i = 0; i < 5000; i++)
		sl_histogram_add(&histogram, next(&x) >> next(&x) % 50);
	for (int i = 0; i <= 1000; i++) {
		uint64_t p = sl_histogram_percentile(&histogram, i / 1000.0);

		assert_true(p >= last);
		last = p;
	}
}

#define CASE(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(empty_is_zero),
		CASE(one_sample_is_every_percentile),
		CASE(small_values_are_exact),
		CASE(zero_counts_as_a_sample),
		CASE(uniform),
		CASE(over_many_decades),
		CASE(a_tail_of_one_in_a_thousand),
		CASE(within_bounds_everywhere),
		CASE(never_above_max_or_below_min),
		CASE(percentiles_do_not_decrease),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
