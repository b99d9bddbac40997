/* remote_lap_test.c - a share that is read over RDMA while its writer does, at chosen moments,
 * what is worst for the follower: it laps the ring, fills its only place, or ends. The follower's
 * packets choose the moments: nothing here depends on speed. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/share_far_rig.h"

static uint32_t data[2048];

static int next(struct sl_follower *f, enum sl_follow_mode mode, int timeout_ms,
		struct sl_follow_element *element)
{
	return sl_follow_next(f, mode, timeout_ms, data, sizeof(data), element);
}

/* ---- a writer that waits for looks ---- */

struct lapper { /* this thread writes inside of the follower's calls, before a look leaves */
	struct sl_share *share;
	struct sl_follower *follower; /* NULL: nothing happens yet */
	uint64_t n;		      /* of the next element */
	unsigned elements;	      /* to push before a look */
	unsigned looks;		      /* before which to do it */
	unsigned after;		      /* looks that leave as they are first */
	bool idle_looks;	      /* also before looks that judge no copy */
	unsigned laps;		      /* so far */
	uint64_t copies, judged;      /* READs of notes in all, and before the last look */
};

static void write_before_look(struct lapper *l)
{
	bool judges = l->copies > l->judged;

	l->judged = l->copies;
	if (!judges && !l->idle_looks)
		return;
	if (l->after) {
		l->after--;
		return;
	}
	if (!l->looks)
		return;
	l->looks--;
	l->laps++;
	for (unsigned i = 0; i < l->elements; i++)
		share_push(l->share, l->n++);
}

static enum sl_endpoint_fault_kind on_packet(void *arg, const struct sl_roce_packet *packet)
{
	struct lapper *l = arg;
	const uint32_t *there = l->follower ? l->follower->remote->there.end.qpn : NULL;

	if (there && packet->qpn == there[SL_SHARE_DATA] &&
	    packet->reth.length == sizeof(struct sl_share_place))
		l->copies++;
	if (there && packet->qpn == there[SL_SHARE_LOOKS])
		write_before_look(l);
	return SL_ENDPOINT_FAULT_NONE;
}

/* A share with `count` places that already has as many elements, and a follower that knows it. */
static void open_lapper(struct lapper *l, uint64_t count)
{
	struct sl_follower *f;
	uint64_t n;

	*l = (struct lapper){.share = far_open("laps", count)};
	sl_share_remote_fault = (struct sl_endpoint_fault){on_packet, l};
	f = far_follower(l->share);
	sl_share_remote_fault = (struct sl_endpoint_fault){0};
	while (l->n < count)
		share_push(l->share, l->n++);
	assert_int_equal(sl_follow_published(f, &n), 0);
	assert_int_equal(n, count);
	l->follower = f;
}

static void close_lapper(struct lapper *l)
{
	sl_follow_close(l->follower);
	sl_share_close(l->share);
}

/* Elements are read, and then lapped before the look that judges them: each copy is thrown away,
 * until the writer lets one be. */
static void lap(uint64_t count, enum sl_follow_mode mode, unsigned laps)
{
	struct sl_follow_element element;
	struct lapper l;

	open_lapper(&l, count);
	assert_int_equal(next(l.follower, mode, 20000, &element), 0);
	l.elements = (unsigned)count;
	for (unsigned round = 0; round < 5; round++) {
		uint64_t last = element.n, copies = l.copies;

		share_push(l.share, l.n++);
		l.laps = 0;
		l.looks = laps;
		do
			assert_int_equal(next(l.follower, mode, 20000, &element), 0);
		while (l.laps < laps);
		assert_true(share_is(&element, element.n));
		assert_true(element.n > last);
		/* As many copies as laps were thrown away, and read in vain. */
		assert_int_equal(l.laps, laps);
		assert_true(l.copies > copies + laps);
	}
	close_lapper(&l);
}

static void test_copies_are_thrown_away(void **state)
{
	lap(8, SL_FOLLOW_EVERY, 3);
	lap(8, SL_FOLLOW_NEWEST, 3);
	lap(1, SL_FOLLOW_NEWEST, 2);
	lap(64, SL_FOLLOW_EVERY, 5);
}

/* A follower that never gets a whole copy gives up when its time is over, after some tries. */
static void test_the_time_is_kept(void **state)
{
	struct sl_follow_element element;
	struct lapper l;

	for (enum sl_follow_mode mode = SL_FOLLOW_NEWEST; mode <= SL_FOLLOW_EVERY; mode++) {
		open_lapper(&l, 8);
		l.elements = 8;
		l.looks = UINT32_MAX;
		assert_int_equal(next(l.follower, mode, 0, &element), -ETIMEDOUT);
		assert_null(element.data);
		assert_in_range(l.laps, 5, 40);
		l.looks = 0;
		do
			assert_int_equal(next(l.follower, mode, 20000, &element), 0);
		while (element.n + 1 < l.n);
		assert_true(share_is(&element, l.n - 1));
		close_lapper(&l);
	}
}

/* ---- one place ---- */

static struct sl_follower *patient(const struct sl_share *share, int timeout_ms)
{
	const struct sl_follow_options options = {.bytes = sizeof(options),
						  .timeout_ms = timeout_ms};
	struct sl_remote_error error;
	struct sl_follower *f = NULL;

	if (sl_follow_open(sl_share_url(share), &options, &f, &error))
		fail_msg("%s", error.message);
	return f;
}

/* A region of one place that is being written is waited for, and not read again and again. */
static void test_one_place_is_filled(void **state)
{
	struct sl_share *share = far_open("region", 1);
	struct sl_follower *f = patient(share, 300);
	struct sl_follow_element element;

	share_push(share, 0);
	sl_share_reserve(share);
	assert_int_equal(next(f, SL_FOLLOW_NEWEST, 20, &element), -ETIMEDOUT);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, 20, &element), -ETIMEDOUT);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -EAGAIN);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 0, data, &element), -ESTALE);
	share_push(share, 1);
	assert_int_equal(next(f, SL_FOLLOW_NEWEST, 20000, &element), 0);
	assert_true(share_is(&element, 1));
	assert_int_equal(element.missed, 0); /* it is the first that this follower got */
	sl_share_reserve(share);
	assert_int_equal(sl_share_commit(share), 2);
	assert_int_equal(sl_share_push(share, NULL, NULL), 3);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, 20000, &element), 0);
	assert_int_equal(element.n, 3);
	assert_int_equal(element.missed, 1);
	sl_follow_close(f);
	sl_share_close(share);
}

/* An element that the writer has begun to overwrite is read once, however often it is asked for. */
static void test_what_is_lost_is_not_read_again(void **state)
{
	struct sl_follow_element element;
	struct lapper l;

	open_lapper(&l, 1);
	sl_share_reserve(l.share);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(next(l.follower, SL_FOLLOW_NEWEST, 20, &element), -ETIMEDOUT);
	assert_in_range(l.copies, 1, 20); /* one, and what a busy host asks for again */
	close_lapper(&l);
}

static void *fill_slowly(void *share)
{
	usleep(400000);
	share_push(share, 1);
	return NULL;
}

static void test_a_fetch_waits_until_it_is_filled(void **state)
{
	struct sl_share *share = far_open("slow", 1);
	struct sl_follower *f = patient(share, 60000);
	struct sl_follow_element element;
	pthread_t thread;

	share_push(share, 0);
	sl_share_reserve(share);
	assert_int_equal(pthread_create(&thread, NULL, fill_slowly, share), 0);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_true(share_is(&element, 1));
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(share);
}

/* ---- calls without time ---- */

static int poll_for(struct sl_follower *f, struct sl_follow_element *element)
{
	int err;

	do
		err = next(f, SL_FOLLOW_EVERY, 0, element);
	while (err == -ETIMEDOUT);
	return err;
}

/* Calls that may not wait get every element, and the next generation. */
static void test_calls_without_time(void **state)
{
	struct sl_share *share = far_open("polls", 8);
	struct sl_share_options options = share_options(4);
	struct sl_follower *f = far_follower(share);
	struct sl_follow_element element;

	for (uint64_t n = 0; n < 5; n++) {
		share_push(share, n);
		assert_int_equal(poll_for(f, &element), 0);
		assert_true(share_is(&element, n));
		assert_int_equal(sl_share_resize(share, &options, NULL), 0);
		assert_int_equal(poll_for(f, &element), -ESTALE);
		assert_int_equal(sl_follow_describe(f)->generation, n + 2);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

/* How many are published is known without a call that waits for one. */
static void test_published(void **state)
{
	struct sl_share *share = far_open("counts", 4);
	struct sl_follower *f = far_follower(share);
	uint64_t n = 77;

	assert_int_equal(sl_follow_published(f, &n), 0);
	assert_int_equal(n, 0);
	for (uint64_t i = 0; i < 6; i++) {
		share_push(share, i);
		assert_int_equal(sl_follow_published(f, &n), 0);
		assert_int_equal(n, i + 1);
		assert_int_equal(*sl_follow_flag(f), i + 1);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

/* ---- the end ---- */

/* A look may bring the end together with a count that is older: the follower looks once more. Here
 * the last element comes between both looks. */
static void test_the_end_and_an_older_count(void **state)
{
	struct sl_follow_element element;
	struct sl_share_words *words;
	struct lapper l;
	uint64_t n;

	open_lapper(&l, 4);
	do
		assert_int_equal(next(l.follower, SL_FOLLOW_EVERY, 20000, &element), 0);
	while (element.n < 3);
	assert_int_equal(sl_follow_published(l.follower, &n), 0); /* no look is under way */
	words = &l.share->memory.header->words;
	__atomic_store_n(&words->state, SL_SHARE_ENDED, __ATOMIC_RELEASE);
	l.idle_looks = true;
	l.elements = 1;
	l.looks = 1;
	l.after = 1; /* look, which sees the end */
	assert_int_equal(next(l.follower, SL_FOLLOW_EVERY, 20000, &element), 0);
	assert_int_equal(l.laps, 1);
	assert_true(share_is(&element, 4));
	assert_int_equal(next(l.follower, SL_FOLLOW_EVERY, 20000, &element), -EPIPE);
	close_lapper(&l);
}

/* ---- notes ---- */

/* More rows than there can be are as many as there can be. */
static void test_too_many_rows(void **state)
{
	struct sl_share *share = far_open("rows", 4);
	struct sl_follower *f = far_follower(share);
	struct sl_share_note note = {.rows = {0, 11}};
	struct sl_follow_element element;
	const float spots[20] = {0};
	const void *from[] = {NULL, spots};

	for (uint32_t rows = 9; rows < 13; rows++) {
		note.rows[1] = rows;
		sl_share_push(share, &note, from);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, 20000, &element), 0);
		assert_int_equal(element.note.rows[1], rows < 10 ? rows : 10);
		assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
		assert_int_equal(element.note.rows[1], rows < 10 ? rows : 10);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_copies_are_thrown_away),
		TEST(test_the_time_is_kept),
		TEST(test_one_place_is_filled),
		TEST(test_what_is_lost_is_not_read_again),
		TEST(test_a_fetch_waits_until_it_is_filled),
		TEST(test_calls_without_time),
		TEST(test_published),
		TEST(test_the_end_and_an_older_count),
		TEST(test_too_many_rows),
	};

	return cmocka_run_group_tests_name("share_remote_lap", tests, NULL, NULL);
}
