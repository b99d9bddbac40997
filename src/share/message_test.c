/* message_test.c - messages that are too long, queues that are full, and how a follower that sends
 * and receives learns that the share has ended: each on one host and between hosts. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/share_far_rig.h"

enum { QUEUE = 1 << 20, HERE = 0, THERE = 1 };

static uint32_t data[2048];
static uint8_t block[QUEUE + 1];

struct both {
	struct sl_share *share;
	struct sl_follower *f;
};

static struct both open_both(const char *name, int where, uint64_t queue_bytes)
{
	struct sl_share_options options = far_options(4);
	const struct sl_follow_options follow = {.bytes = sizeof(follow),
						 .queue_bytes = queue_bytes};
	struct sl_remote_error error;
	struct both both;

	options.queue_bytes = QUEUE;
	both.share = far_open_with(name, &options);
	if (sl_follow_open(where == HERE ? name : sl_share_url(both.share), &follow, &both.f,
			   &error))
		fail_msg("%s", error.message);
	return both;
}

static void close_both(struct both *both)
{
	sl_follow_close(both->f);
	sl_share_close(both->share);
}

static void expect(struct both *both, uint32_t kind, uint64_t bytes)
{
	struct sl_share_message m;

	assert_int_equal(sl_follow_receive(both->f, 20000, &m), 0);
	assert_int_equal(m.kind, kind);
	assert_int_equal(m.bytes, bytes);
	sl_remote_free(m.data);
}

static int ping(struct both *both)
{
	uint64_t ns;

	return sl_follow_ping(both->f, 20000, &ns);
}

/* ---- too long ---- */

/* A message longer than the writer's queue is refused before it costs the connection. */
static void too_long_for_the_writer(int where)
{
	const struct sl_share_options other = share_options(2);
	struct both both = open_both("longest", where, 0);
	struct sl_follow_element element;
	struct sl_follower *late;
	struct sl_share_message m;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(sl_follow_send(both.f, 1, block, QUEUE + 1, 1000), -EMSGSIZE);
		assert_int_equal(sl_follow_send(both.f, 2, block, QUEUE, 20000), 0);
		assert_int_equal(ping(&both), 0);
		assert_int_equal(sl_share_receive(both.share, 20000, &m), 0);
		assert_int_equal(m.bytes, QUEUE);
		assert_int_equal(m.kind, 2);
		sl_remote_free(m.data);
		/* The same with another layout. */
		assert_int_equal(sl_share_resize(both.share, &other, NULL), 0);
		assert_int_equal(sl_follow_next(both.f, SL_FOLLOW_NEWEST, 20000, data, sizeof(data),
						&element),
				 -ESTALE);
		late = follower_open(where == HERE ? "longest" : sl_share_url(both.share));
		assert_int_equal(sl_follow_send(late, 1, block, QUEUE + 1, 1000), -EMSGSIZE);
		sl_follow_close(late);
	}
	close_both(&both);
}

/* A message longer than the follower takes is dropped, and the follower is told; those before and
 * behind it arrive. */
static void too_long_for_the_follower(int where)
{
	struct both both = open_both("shorter", where, 1000);
	struct sl_share_message m;

	assert_int_equal(sl_share_send(both.share, 0, 1, block, 1000), 0);
	assert_int_equal(sl_share_send(both.share, 0, 2, block, 1001), 0);
	assert_int_equal(sl_share_send(both.share, 0, 3, block, QUEUE - 5000), 0);
	assert_int_equal(sl_share_send(both.share, 0, 4, "x", 1), 0);
	expect(&both, 1, 1000);
	assert_int_equal(sl_follow_receive(both.f, 20000, &m), -EMSGSIZE);
	assert_int_equal(m.kind, 2);
	assert_int_equal(m.bytes, 1001);
	assert_null(m.data);
	assert_int_equal(sl_follow_receive(both.f, 20000, &m), -EMSGSIZE);
	assert_int_equal(m.kind, 3);
	assert_int_equal(m.bytes, QUEUE - 5000);
	expect(&both, 4, 1);
	assert_int_equal(ping(&both), 0);
	close_both(&both);
}

/* A follower that receives no messages has a limit for those that wait, too. Elements come all the
 * same; an answer that is behind those messages does not. */
static void full(int where)
{
	const struct sl_share_options other = share_options(2);
	struct both both = open_both("full", where, 1000);
	struct sl_follow_element element;

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(sl_share_send(both.share, 0, i, block, 400), 0);
	assert_int_equal(ping(&both), -ENOBUFS);
	assert_int_equal(both.f->inbox.bytes, 800);
	share_push(both.share, 0);
	assert_int_equal(
		sl_follow_next(both.f, SL_FOLLOW_EVERY, 20000, data, sizeof(data), &element), 0);
	assert_true(share_is(&element, 0));
	assert_int_equal(sl_share_resize(both.share, &other, NULL), 0);
	assert_int_equal(
		sl_follow_next(both.f, SL_FOLLOW_EVERY, 20000, data, sizeof(data), &element),
		-ENOBUFS);
	for (uint32_t i = 0; i < 10; i++)
		expect(&both, i, 400);
	assert_int_equal(
		sl_follow_next(both.f, SL_FOLLOW_EVERY, 20000, data, sizeof(data), &element),
		-ESTALE);
	assert_int_equal(ping(&both), 0);
	close_both(&both);
}

/* Messages without a byte have a limit, too. */
static void full_of_nothing(int where)
{
	struct both both = open_both("nothing", where, 640);

	for (uint32_t i = 0; i < 30; i++)
		assert_int_equal(sl_share_send(both.share, 0, i, NULL, 0), 0);
	assert_int_equal(ping(&both), -ENOBUFS);
	assert_int_equal(both.f->inbox.messages, 11);
	for (uint32_t i = 0; i < 30; i++)
		expect(&both, i, 0);
	assert_int_equal(ping(&both), 0);
	close_both(&both);
}

static void test_too_long_for_the_writer(void **state)
{
	too_long_for_the_writer(HERE);
	too_long_for_the_writer(THERE);
}

static void test_too_long_for_the_follower(void **state)
{
	too_long_for_the_follower(HERE);
	too_long_for_the_follower(THERE);
}

static void test_full(void **state)
{
	full(HERE);
	full(THERE);
	full_of_nothing(HERE);
	full_of_nothing(THERE);
}

/* ---- the end ---- */

/* TCP takes some bytes more after the other side has gone. */
static int send_until_it_fails(struct sl_follower *f)
{
	int err = 0;

	for (unsigned i = 0; !err && i < 1000; i++) {
		err = sl_follow_send(f, 1, block, 1000, 20000);
		usleep(err ? 0 : 1000);
	}
	return err;
}

static int receive(struct sl_follower *f)
{
	struct sl_share_message m;

	return sl_follow_receive(f, 20000, &m);
}

static int ping_until_it_fails(struct sl_follower *f)
{
	uint64_t ns;

	return sl_follow_ping(f, 20000, &ns);
}

/* However a follower finds out, and however often it asks: the end of a share is no crash. */
static void ends(int where)
{
	int (*const calls[])(struct sl_follower *) = {receive, send_until_it_fails,
						      ping_until_it_fails};

	for (unsigned first = 0; first < 3; first++) {
		struct both both = open_both("ends", where, 0);

		assert_int_equal(sl_share_send(both.share, 0, 7, "last", 4), 0);
		/* The share closes its end while a message of the follower waits unread. */
		assert_int_equal(sl_follow_send(both.f, 8, "unread", 6, 20000), 0);
		sl_share_close(both.share);
		if (first == 0)
			expect(&both, 7, 4);
		for (unsigned i = 0; i < 6; i++) {
			int (*call)(struct sl_follower *) = calls[(first + i) % 3];

			if (first != 0 && call == receive && both.f->inbox.first)
				expect(&both, 7, 4);
			assert_int_equal(call(both.f), -EPIPE);
		}
		sl_follow_close(both.f);
	}
}

static void test_ends(void **state)
{
	ends(HERE);
	ends(THERE);
}

static void *close_soon(void *share)
{
	usleep(50000);
	sl_share_close(share);
	return NULL;
}

/* The same while it waits. */
static void test_ends_meanwhile(void **state)
{
	for (int where = HERE; where <= THERE; where++) {
		struct both both = open_both("waits", where, 0);
		struct sl_share_message m;
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, close_soon, both.share), 0);
		assert_int_equal(sl_follow_receive(both.f, -1, &m), -EPIPE);
		pthread_join(thread, NULL);
		sl_follow_close(both.f);
	}
}

static void crash(int where, unsigned first)
{
	int (*const calls[])(struct sl_follower *) = {receive, send_until_it_fails,
						      ping_until_it_fails};
	char url[200] = "";
	struct sl_follower *f;
	pid_t child;
	int up[2];

	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		struct sl_share *share = far_open("crash", 4);
		const char *at = where == HERE ? "share:crash" : sl_share_url(share);

		if (write(up[1], at, strlen(at)) < 0)
			_exit(1);
		pause();
	}
	assert_true(read(up[0], url, sizeof(url) - 1) > 0);
	f = follower_open(url);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(calls[(first + i) % 3](f), -ECONNRESET);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
}

static void test_a_crash(void **state)
{
	for (unsigned first = 0; first < 3; first++) {
		crash(HERE, first);
		crash(THERE, first);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_too_long_for_the_writer),
		TEST(test_too_long_for_the_follower),
		TEST(test_full),
		TEST(test_ends),
		TEST(test_ends_meanwhile),
		TEST(test_a_crash),
	};

	return cmocka_run_group_tests_name("share_message", tests, NULL, NULL);
}
