/* thread_counts_test.c - which numbers of threads are chosen: a table of hosts and experiments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "experiment/thread_counts.h"

/* Where the front end runs. */
enum { UDP, SHM }; /* one thread, which has little to do */
enum { NONE, STAGES };
enum place { HERE, ELSEWHERE, ALONE /* there is no receiver here */ };

static struct sl_thread_terms terms_of(unsigned cpus, unsigned modules, bool shm, bool stages,
				       enum place source)
{
	return (struct sl_thread_terms){
		.cpus = cpus,
		.modules = modules,
		.stages = stages,
		.receiver_here = source != ALONE,
		.source_here = source != ELSEWHERE,
		.most_pollers = shm ? 1 : 8,
		.most_workers = 64,
		.most_senders = 64,
	};
}

static const struct {
	unsigned cpus, modules;
	bool shm, stages;
	enum place source;
	struct sl_thread_counts wanted; /* pollers, workers, senders */
} table[] = {
	{1, 8, UDP, NONE, HERE, {1, 1, 1}},	     {1, 8, UDP, STAGES, HERE, {1, 1, 1}},
	{1, 8, SHM, NONE, HERE, {1, 1, 1}},	     {1, 8, SHM, STAGES, HERE, {1, 1, 1}},
	{1, 8, UDP, NONE, ELSEWHERE, {1, 1, 1}},     {1, 8, UDP, STAGES, ELSEWHERE, {1, 1, 1}},
	{1, 8, SHM, STAGES, ELSEWHERE, {1, 1, 1}},   {1, 8, UDP, NONE, ALONE, {1, 1, 1}},
	{2, 8, UDP, NONE, HERE, {1, 1, 1}},	     {2, 8, UDP, STAGES, HERE, {1, 2, 1}},
	{2, 8, SHM, NONE, HERE, {1, 1, 1}},	     {2, 8, SHM, STAGES, HERE, {1, 2, 1}},
	{2, 8, UDP, NONE, ELSEWHERE, {1, 1, 1}},     {2, 8, UDP, STAGES, ELSEWHERE, {1, 2, 1}},
	{2, 8, SHM, STAGES, ELSEWHERE, {1, 2, 1}},   {2, 8, UDP, NONE, ALONE, {1, 1, 1}},
	{3, 8, UDP, NONE, HERE, {1, 1, 1}},	     {3, 8, UDP, STAGES, HERE, {1, 2, 1}},
	{3, 8, SHM, NONE, HERE, {1, 1, 1}},	     {3, 8, SHM, STAGES, HERE, {1, 2, 1}},
	{3, 8, UDP, NONE, ELSEWHERE, {1, 1, 1}},     {3, 8, UDP, STAGES, ELSEWHERE, {1, 2, 1}},
	{3, 8, SHM, STAGES, ELSEWHERE, {1, 2, 1}},   {3, 8, UDP, NONE, ALONE, {1, 1, 1}},
	{4, 8, UDP, NONE, HERE, {2, 1, 2}},	     {4, 8, UDP, STAGES, HERE, {2, 2, 2}},
	{4, 8, SHM, NONE, HERE, {1, 1, 4}},	     {4, 8, SHM, STAGES, HERE, {1, 3, 2}},
	{4, 8, UDP, NONE, ELSEWHERE, {2, 1, 1}},     {4, 8, UDP, STAGES, ELSEWHERE, {2, 2, 1}},
	{4, 8, SHM, STAGES, ELSEWHERE, {1, 4, 1}},   {4, 8, UDP, NONE, ALONE, {1, 1, 4}},
	{8, 8, UDP, NONE, HERE, {4, 1, 4}},	     {8, 8, UDP, STAGES, HERE, {2, 3, 2}},
	{8, 8, SHM, NONE, HERE, {1, 1, 8}},	     {8, 8, SHM, STAGES, HERE, {1, 5, 2}},
	{8, 8, UDP, NONE, ELSEWHERE, {4, 1, 1}},     {8, 8, UDP, STAGES, ELSEWHERE, {2, 3, 1}},
	{8, 8, SHM, STAGES, ELSEWHERE, {1, 7, 1}},   {8, 8, UDP, NONE, ALONE, {1, 1, 8}},
	{16, 8, UDP, NONE, HERE, {8, 1, 8}},	     {16, 8, UDP, STAGES, HERE, {4, 7, 4}},
	{16, 8, SHM, NONE, HERE, {1, 1, 8}},	     {16, 8, SHM, STAGES, HERE, {1, 10, 4}},
	{16, 8, UDP, NONE, ELSEWHERE, {8, 1, 1}},    {16, 8, UDP, STAGES, ELSEWHERE, {4, 7, 1}},
	{16, 8, SHM, STAGES, ELSEWHERE, {1, 14, 1}}, {16, 8, UDP, NONE, ALONE, {1, 1, 8}},
	{32, 8, UDP, NONE, HERE, {8, 1, 8}},	     {32, 8, UDP, STAGES, HERE, {8, 15, 8}},
	{32, 8, SHM, NONE, HERE, {1, 1, 8}},	     {32, 8, SHM, STAGES, HERE, {1, 22, 8}},
	{32, 8, UDP, NONE, ELSEWHERE, {8, 1, 1}},    {32, 8, UDP, STAGES, ELSEWHERE, {8, 15, 1}},
	{32, 8, SHM, STAGES, ELSEWHERE, {1, 30, 1}}, {32, 8, UDP, NONE, ALONE, {1, 1, 8}},
	{64, 8, UDP, NONE, HERE, {8, 1, 8}},	     {64, 8, UDP, STAGES, HERE, {8, 46, 8}},
	{64, 8, SHM, NONE, HERE, {1, 1, 8}},	     {64, 8, SHM, STAGES, HERE, {1, 54, 8}},
	{64, 8, UDP, NONE, ELSEWHERE, {8, 1, 1}},    {64, 8, UDP, STAGES, ELSEWHERE, {8, 46, 1}},
	{64, 8, SHM, STAGES, ELSEWHERE, {1, 62, 1}}, {64, 8, UDP, NONE, ALONE, {1, 1, 8}},
	{16, 1, UDP, STAGES, HERE, {1, 12, 1}},	     {16, 1, UDP, NONE, HERE, {1, 1, 1}},
	{16, 2, UDP, STAGES, HERE, {2, 10, 2}},	     {16, 2, UDP, NONE, HERE, {2, 1, 2}},
	{16, 3, UDP, STAGES, HERE, {3, 8, 3}},	     {16, 3, UDP, NONE, HERE, {3, 1, 3}},
	{16, 32, UDP, STAGES, HERE, {4, 7, 4}},	     {16, 32, UDP, NONE, HERE, {8, 1, 8}},
};

static void the_table_holds(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sl_thread_terms terms = terms_of(table[i].cpus, table[i].modules,
							table[i].shm, table[i].stages,
							table[i].source);
		struct sl_thread_counts counts, *w = &(struct sl_thread_counts){0};

		*w = table[i].wanted;
		sl_thread_counts_choose(&terms, &counts);
		if (counts.pollers == w->pollers && counts.workers == w->workers &&
		    counts.senders == w->senders)
			continue;
		wrong++;
		fprintf(stderr, "{%u, %u, %s, %s, %s, {%u, %u, %u}}, and not {%u, %u, %u}\n",
			terms.cpus, terms.modules, table[i].shm ? "SHM" : "UDP",
			terms.stages ? "STAGES" : "NONE",
			table[i].source == HERE	       ? "HERE"
			: table[i].source == ELSEWHERE ? "ELSEWHERE"
						       : "ALONE",
			counts.pollers, counts.workers, counts.senders, w->pollers, w->workers,
			w->senders);
	}
	assert_int_equal(wrong, 0);
}

/* On every host: at least one of each, no more than there is work for, and hardly more busy
 * threads than cpus unless one of each is too many. */
static void bounds_hold_everywhere(void **state)
{
	for (unsigned cpus = 1; cpus <= 128; cpus++)
		for (unsigned i = 0; i < 5u * 2 * 2 * 3; i++) {
			static const unsigned modules[] = {1, 2, 4, 8, 32};
			enum place source = (enum place)(i / 20);
			struct sl_thread_terms t =
				terms_of(cpus, modules[i % 5], i / 5 % 2, i / 10 % 2, source);
			struct sl_thread_counts c;
			unsigned busy = 0;

			sl_thread_counts_choose(&t, &c);
			assert_in_range(c.pollers, 1, t.most_pollers);
			assert_in_range(c.workers, 1, t.most_workers);
			assert_in_range(c.senders, 1, t.modules);
			assert_true(c.pollers <= t.modules);
			/* The one thread of such a link has little to do. */
			busy += t.receiver_here && t.most_pollers > 1 ? c.pollers : 0;
			busy += t.receiver_here && t.stages ? c.workers : 0;
			busy += t.source_here ? c.senders : 0;
			assert_true(busy <= cpus + 2 ||
				    (c.pollers == 1 && c.workers == 1 && c.senders == 1));
			if (!t.stages)
				assert_int_equal(c.workers, 1);
		}
}

/* What the file says is taken as it is, and the others make room for it. */
static void numbers_of_the_file_stand(void **state)
{
	struct sl_thread_terms t = terms_of(16, 8, false, true, HERE);
	struct sl_thread_counts without, c;

	sl_thread_counts_choose(&t, &without);
	t.workers = 12;
	sl_thread_counts_choose(&t, &c);
	assert_int_equal(c.workers, 12);
	assert_true(c.pollers <= without.pollers && c.senders <= without.senders);
	t.pollers = 8;
	t.senders = 5;
	sl_thread_counts_choose(&t, &c);
	assert_int_equal(c.pollers, 8);
	assert_int_equal(c.workers, 12);
	assert_int_equal(c.senders, 5);
}

static void words_for_the_log(void **state)
{
	struct sl_thread_terms t = terms_of(2, 8, false, true, HERE);
	struct sl_thread_counts c;
	char text[200];

	t.workers = 2;
	sl_thread_counts_choose(&t, &c);
	sl_thread_counts_describe(&t, &c, text, sizeof(text));
	assert_string_equal(text,
			    "1 poller (auto), 2 workers (as set) and 1 sender (auto) on 2 cpus");
	t.source_here = false;
	sl_thread_counts_describe(&t, &c, text, sizeof(text));
	assert_string_equal(text, "1 poller (auto) and 2 workers (as set) on 2 cpus");
	t.source_here = true;
	t.receiver_here = false;
	sl_thread_counts_describe(&t, &c, text, sizeof(text));
	assert_string_equal(text, "1 sender (auto) on 2 cpus");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_holds),
		cmocka_unit_test(bounds_hold_everywhere),
		cmocka_unit_test(numbers_of_the_file_stand),
		cmocka_unit_test(words_for_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
