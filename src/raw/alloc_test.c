/* alloc_test.c - a writer and a reader, when an allocation fails: the error is returned, and
 * nothing is left behind. */
#include "lib/failing_alloc.h"
#include "lib/raw_rig.h"

/* Small enough that no second data file is prepared: the flush thread would allocate by chance. */
static int make_writer(void *arg)
{
	struct raw_rig *rig = arg;
	struct sl_raw_writer *w;
	int r = sl_raw_create(&rig->options, "head", 4, &w);

	if (!r)
		sl_raw_discard(w);
	assert_int_equal(raw_rig_files(rig), 0);
	return r;
}

static int append_one(void *arg)
{
	struct raw_rig *rig = arg;
	struct sl_raw_writer *w;
	int r = sl_raw_create(&rig->options, NULL, 0, &w), end;

	if (r)
		return r;
	r = raw_rig_append_one(w, 0);
	end = sl_raw_finish(w, "tail", 4);
	r = r ? r : end;
	raw_rig_clean(rig);
	return r;
}

static int read_all(void *arg)
{
	struct raw_rig *rig = arg;
	struct sl_raw_reader *reader;
	int r = sl_raw_open(rig->path, 0, &reader);

	if (!r) {
		raw_rig_check(reader, 0, 20);
		sl_raw_close(reader);
	}
	return r;
}

static void test_failed_allocations_of_the_writer(void **state)
{
	struct raw_rig *rig = *state;

	rig->options.plain = true; /* else a ring that cannot be made is no error */
	assert_true(alloc_fail_each(make_writer, rig) >= 10);
}

/* The index, and what is remembered of a closed file. Without memory for the index the file has
 * none, which is no error: alloc_fail_each() would not have it so. */
static void test_failed_allocations_of_an_append(void **state)
{
	struct raw_rig *rig = *state;
	unsigned failures = 0, n;
	size_t before = alloc_live();

	rig->options.plain = true;
	for (n = 1;; n++) {
		int r;

		alloc_fail_at(n);
		r = append_one(rig);
		if (!alloc_has_failed())
			break;
		alloc_fail_at(0);
		assert_true(r == 0 || r == -ENOMEM);
		failures += r != 0;
		assert_int_equal(alloc_live(), before);
		raw_rig_clean(rig);
	}
	alloc_fail_at(0);
	assert_true(n > 14 && failures >= n - 3);
}

static void test_failed_allocations_of_the_reader(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_writer *w;

	assert_int_equal(sl_raw_create(&rig->options, "head", 4, &w), 0);
	raw_rig_append(w, 0, 20);
	assert_int_equal(sl_raw_finish(w, "tail", 4), 0);
	assert_true(alloc_fail_each(read_all, rig) >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_failed_allocations_of_the_writer),
		RIG_TEST(test_failed_allocations_of_an_append),
		RIG_TEST(test_failed_allocations_of_the_reader),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
