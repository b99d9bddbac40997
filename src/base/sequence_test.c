/* sequence_test.c - readers see all words of one write, or all of another, never some of each. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sequence.h"

enum { WORDS = 40, READERS = 2, CHANGES = 2000 };

struct shared {
	_Atomic uint32_t sequence, done; /* done: readers that have seen enough */
	_Atomic uint64_t word[WORDS];
};

struct reader {
	pthread_t thread;
	struct shared *shared;
	uint64_t torn, changes;
};

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	uint64_t copy[WORDS], last = 0;

	while (reader->changes < CHANGES) {
		sl_sequence_read(&reader->shared->sequence, reader->shared->word, copy, WORDS);
		for (unsigned w = 1; w < WORDS; w++)
			reader->torn += copy[w] != copy[0];
		reader->changes += copy[0] != last;
		last = copy[0];
	}
	atomic_fetch_add(&reader->shared->done, 1);
	return NULL;
}

static void a_copy_is_of_one_write(void **state)
{
	struct shared shared = {.sequence = 0};
	struct reader reader[READERS] = {{.shared = &shared}, {.shared = &shared}};
	uint64_t words[WORDS], written = 0;

	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&reader[i].thread, NULL, read_all, &reader[i]), 0);
	while (atomic_load(&shared.done) < READERS) {
		written++;
		for (unsigned w = 0; w < WORDS; w++)
			words[w] = written;
		sl_sequence_write(&shared.sequence, shared.word, words, WORDS);
		sched_yield(); /* leave readers time between two writes */
	}
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(reader[i].thread, NULL), 0);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(reader[i].torn, 0);
}

static void the_sequence_is_odd_while_it_is_written(void **state)
{
	_Atomic uint32_t sequence = 0;
	_Atomic uint64_t counter = 0;
	uint32_t before = sl_sequence_look(&sequence);

	sl_sequence_begin(&sequence);
	assert_int_equal(sequence & 1, 1);
	sl_sequence_add(&counter, 3);
	assert_false(sl_sequence_same(&sequence, before));
	sl_sequence_end(&sequence);
	assert_int_equal(sequence & 1, 0);
	assert_false(sl_sequence_same(&sequence, before));
	assert_int_equal(sl_sequence_load(&counter), 3);
	assert_true(sl_sequence_same(&sequence, sl_sequence_look(&sequence)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sequence_is_odd_while_it_is_written),
		cmocka_unit_test(a_copy_is_of_one_write),
	};

	return cmocka_run_group_tests_name("sequence", tests, NULL, NULL);
}
