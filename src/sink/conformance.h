/* conformance.h - what every sink must do, whatever it is. A sink's test sets `conforming`, and
 * `prepare` where its options need a value, and lists CONFORMANCE_CASES. */
#ifndef SL_SINK_CONFORMANCE_H
#define SL_SINK_CONFORMANCE_H

#include "sink/testing.h"

static const struct sl_sink *conforming;
static void (*prepare)(struct bench *bench);

static inline void conform_init(struct bench *bench)
{
	bench_init(bench, conforming);
	if (prepare)
		prepare(bench);
}

static inline void has_a_name_a_line_and_its_calls(void **state)
{
	(void)state;
	assert_true(conforming->name && conforming->name[0]);
	assert_true(conforming->doc && conforming->doc[0] && !strchr(conforming->doc, '\n'));
	assert_non_null(conforming->options);
	assert_true(conforming->wants & SL_WANT_KEPT);
	assert_non_null(conforming->open);
	assert_non_null(conforming->put);
	assert_non_null(conforming->close);
	assert_non_null(conforming->figures);
}

static inline void a_run_without_frames_closes_well(void **state)
{
	struct bench bench;

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static inline void a_run_of_every_kind_closes_well(void **state)
{
	struct bench bench;

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 1500; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static inline void only_broken_frames_close_well(void **state)
{
	struct bench bench;

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 10; k++)
		assert_int_equal(bench_feed(&bench, k, LOST), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static inline void close_works_after_an_open_that_failed_or_never_was(void **state)
{
	struct bench bench;

	(void)state;
	conform_init(&bench);
	bench.env.results = 0; /* no sink that looks at results can open with none */
	bench.env.detector = NULL;
	bench_open(&bench);
	bench_close(&bench);
	bench_fini(&bench);
	conform_init(&bench);
	bench_close(&bench);
	bench_fini(&bench);
}

static inline uint64_t sum_of_figures(const struct bench *bench)
{
	struct wanted_figure wanted = {.name = ""};

	conforming->figures(bench->state, find_figure, &wanted);
	return wanted.sum;
}

static inline void figures_only_grow_and_outlive_close(void **state)
{
	struct bench bench;
	uint64_t before, now = 0;

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(sum_of_figures(&bench), 0);
	for (uint64_t k = 0; k < 20; k++) {
		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
		before = now;
		now = sum_of_figures(&bench);
		assert_true(now > before);
	}
	assert_int_equal(bench_close(&bench), 0);
	assert_true(sum_of_figures(&bench) >= now);
	bench_fini(&bench);
}

static inline void a_good_run_has_no_failed_figure(void *arg, const char *name, uint64_t value,
						   int failed)
{
	(void)arg, (void)name;
	assert_true(!failed || !value);
}

static inline void figures_of_a_good_run_fail_nothing(void **state)
{
	struct bench bench;

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 20; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_close(&bench), 0);
	conforming->figures(bench.state, a_good_run_has_no_failed_figure, NULL);
	bench_fini(&bench);
}

/* The frame and what it points to stay as they were: the next sink gets them, too. */
static inline void frames_are_only_read(void **state)
{
	struct bench bench;
	struct sl_frame frame;
	struct sl_verdict verdict;
	struct sl_view view[MODULES];
	uint16_t raw[PIXELS];
	int16_t image[PIXELS];

	(void)state;
	conform_init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	bench_frame(&bench, 0, KEPT);
	frame = bench.frame;
	verdict = bench.verdict;
	memcpy(view, bench.view, sizeof(view));
	memcpy(raw, bench.raw, sizeof(raw));
	memcpy(image, bench.image, sizeof(image));
	assert_int_equal(conforming->put(bench.state, &bench.frame), 0);
	assert_memory_equal(&frame, &bench.frame, sizeof(frame));
	assert_memory_equal(&verdict, &bench.verdict, sizeof(verdict));
	assert_memory_equal(view, bench.view, sizeof(view));
	assert_memory_equal(raw, bench.raw, sizeof(raw));
	assert_memory_equal(image, bench.image, sizeof(image));
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

#define CONFORMANCE_CASES                                                             \
	cmocka_unit_test(has_a_name_a_line_and_its_calls),                            \
		cmocka_unit_test(a_run_without_frames_closes_well),                   \
		cmocka_unit_test(a_run_of_every_kind_closes_well),                    \
		cmocka_unit_test(only_broken_frames_close_well),                      \
		cmocka_unit_test(close_works_after_an_open_that_failed_or_never_was), \
		cmocka_unit_test(figures_only_grow_and_outlive_close),                \
		cmocka_unit_test(figures_of_a_good_run_fail_nothing),                 \
		cmocka_unit_test(frames_are_only_read)

#endif
