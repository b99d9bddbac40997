/* random_test.c - the tables have the distributions they claim, and never change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sluice/random.h>

static void test_exponential_agrees_with_the_library(void **arg)
{
	for (double x = -600; x <= 20; x += 0.37)
		assert_true(fabs(sl_exp(x) / exp(x) - 1) < 1e-11);
	assert_true(sl_exp(0) == 1);
	assert_true(sl_exp(-1e9) == 0);
}

static void test_draws_never_change(void **arg)
{
	/* Files recorded with one version must be verifiable with the next. */
	assert_true(sl_mix(1) == 0x5692161d100b05e5u);
	assert_true(sl_draw(1, 2) == sl_mix(1 + 2 * 0x9e3779b97f4a7c15u));
	assert_true(sl_key(1, 2) != sl_key(2, 1));
}

static void test_neighbouring_keys_and_counters_are_unrelated(void **arg)
{
	int flipped = 0;

	for (uint64_t i = 0; i < 1000; i++)
		flipped += __builtin_popcountll(sl_draw(7, i) ^ sl_draw(7, i + 1)) +
			   __builtin_popcountll(sl_key(i, 3) ^ sl_key(i + 1, 3));
	/* Half of 64 bits each; the spread of the mean is 4 / sqrt(2000). */
	assert_true(fabs(flipped / 2000. - 32) < 0.5);
}

static void test_uniform_covers_its_range(void **arg)
{
	assert_true(sl_uniform(0) == 0);
	assert_true(sl_uniform(UINT64_MAX) < 1);
	assert_true(sl_uniform(UINT64_MAX) > 1 - 1e-12);
}

static void test_normal_table(void **arg)
{
	float *table = malloc(SL_NORMAL_ENTRIES * sizeof(*table));
	double sum = 0, squares = 0;

	sl_normal_fill(table);
	for (unsigned i = 0; i < SL_NORMAL_ENTRIES; i++) {
		assert_true(i == 0 || table[i] >= table[i - 1]);
		sum += table[i];
		squares += (double)table[i] * table[i];
	}
	assert_true(fabs(sum) < 1e-3);
	assert_true(fabs(squares / SL_NORMAL_ENTRIES - 1) < 1e-3);
	/* Quantiles of the normal distribution, from any table of it. */
	assert_true(fabs(table[(unsigned)(0.975 * SL_NORMAL_ENTRIES)] - 1.95996) < 1e-3);
	assert_true(fabs(table[(unsigned)(0.01 * SL_NORMAL_ENTRIES)] + 2.32635) < 2e-3);
	assert_true(fabs(table[SL_NORMAL_ENTRIES - 1] - 4.3249) < 1e-3);
	free(table);
}

/* The guide is a shortcut and nothing else. */
static void test_poisson_guide_agrees_with_the_steps(void **arg)
{
	static const double means[] = {0, 0.003, 0.5, 3, 49.9};
	struct sl_poisson p;

	for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++) {
		sl_poisson_fill(&p, means[m]);
		for (uint64_t i = 0; i < 100000; i++) {
			uint32_t bits = (uint32_t)sl_draw(m, i);
			unsigned n = 0;

			while (n < SL_POISSON_STEPS && bits > p.step[n])
				n++;
			assert_int_equal(sl_poisson_draw(&p, bits), n);
		}
		assert_true(sl_poisson_draw(&p, UINT32_MAX) < SL_POISSON_STEPS);
		assert_int_equal(sl_poisson_draw(&p, 0), 0);
	}
}

static void check_moments(double mean, double (*draw)(void *arg, uint64_t i), void *arg)
{
	const int n = 200000;
	double sum = 0, squares = 0;

	for (int i = 0; i < n; i++) {
		double x = draw(arg, (uint64_t)i);

		sum += x;
		squares += (x - mean) * (x - mean);
	}
	/* Five standard errors. */
	assert_true(fabs(sum / n - mean) < 5 * sqrt(mean / n) + 1e-6);
	assert_true(fabs(squares / n - mean) < 5 * sqrt((mean + 3 * mean * mean) / n) + 1e-6);
}

static double draw_table(void *arg, uint64_t i)
{
	return sl_poisson_draw(arg, (uint32_t)(sl_draw(99, i) >> 32));
}

static void test_poisson_table_has_the_right_moments(void **arg)
{
	static const double means[] = {0.1, 0.7, 4, 25, 49};
	struct sl_poisson p;

	for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++) {
		sl_poisson_fill(&p, means[m]);
		check_moments(means[m], draw_table, &p);
	}
}

struct any {
	double mean;
	float *normal;
};

static double draw_any(void *arg, uint64_t i)
{
	struct any *any = arg;

	return sl_poisson_any(any->mean, sl_draw(5, i), any->normal);
}

static void test_poisson_of_any_mean_has_the_right_moments(void **arg)
{
	static const double means[] = {0.01, 1, 20, 51, 3000};
	struct any any = {.normal = malloc(SL_NORMAL_ENTRIES * sizeof(float))};

	sl_normal_fill(any.normal);
	for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++) {
		any.mean = means[m];
		check_moments(any.mean, draw_any, &any);
	}
	free(any.normal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exponential_agrees_with_the_library),
		cmocka_unit_test(test_draws_never_change),
		cmocka_unit_test(test_neighbouring_keys_and_counters_are_unrelated),
		cmocka_unit_test(test_uniform_covers_its_range),
		cmocka_unit_test(test_normal_table),
		cmocka_unit_test(test_poisson_guide_agrees_with_the_steps),
		cmocka_unit_test(test_poisson_table_has_the_right_moments),
		cmocka_unit_test(test_poisson_of_any_mean_has_the_right_moments),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
