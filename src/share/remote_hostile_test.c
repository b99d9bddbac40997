/* remote_hostile_test.c - what a program on another host may do to a share, were it broken or
 * malicious, once it has been let in. What programs do that are not let in is in remote_test.c. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/share_far_rig.h"

/* ---- a follower ---- */

static bool wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, timeout_ms) > 0;
}

static void say(int fd, uint32_t type, uint64_t value, const void *payload, size_t bytes)
{
	struct sl_share_frame head = {
		.magic = SL_SHARE_FRAME_MAGIC, .type = type, .value = value, .bytes = bytes};

	assert_int_equal(send(fd, &head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(send(fd, payload, bytes, MSG_NOSIGNAL), bytes);
}

/* The next frame; its payload is read and forgotten. */
static struct sl_share_frame hear(int fd)
{
	struct sl_share_frame head;
	uint8_t payload[8192];

	assert_int_equal(recv(fd, &head, sizeof(head), MSG_WAITALL), sizeof(head));
	assert_in_range(head.bytes, 0, sizeof(payload));
	if (head.bytes)
		assert_int_equal(recv(fd, payload, head.bytes, MSG_WAITALL), head.bytes);
	return head;
}

/* A connection with small buffers that has been let in. */
static int welcome(const struct sl_share *share)
{
	struct sl_share_remote_hello hello = {.version = SL_SHARE_REMOTE_VERSION};
	int fd = far_dial(share, SOCK_STREAM);

	snprintf(hello.name, sizeof(hello.name), "%s", sl_share_describe(share)->name);
	say(fd, SL_SHARE_FRAME_GREETING, 0, &hello, sizeof(hello));
	assert_int_equal(hear(fd).type, SL_SHARE_FRAME_WELCOME);
	return fd;
}

struct question {
	struct sl_share_frame head;
	struct sl_share_remote_end end;
};

static const struct question connect_again = {
	{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_CONNECT, 0, sizeof(struct sl_share_remote_end), 0},
	{.qpn = {17, 18, 19}, .psn = {1, 2, 3}, .port = 9, .pmtu = 1024, .at = 4096},
};

/* What waits for the only follower. */
static uint64_t waits(struct sl_share *share, bool *full)
{
	uint64_t bytes;

	pthread_mutex_lock(&share->lock);
	bytes = share->peer->out.bytes;
	*full = share->peer->full;
	pthread_mutex_unlock(&share->lock);
	return bytes;
}

/* CONNECTs, until the share reads no more of them for a while. Returns how many went as a whole. */
static unsigned connect_without_end(struct sl_share *share, int fd)
{
	const uint8_t *from = (const uint8_t *)&connect_again;
	unsigned sent = 0;
	size_t at = 0;
	bool full;

	while (wait_for(fd, POLLOUT, 300)) {
		ssize_t n = send(fd, from + at, sizeof(connect_again) - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		at += n > 0 ? (size_t)n : 0;
		if (at < sizeof(connect_again))
			continue;
		at = 0;
		sent++;
		assert_in_range(waits(share, &full), 0, sizeof(struct sl_share_remote_offer));
	}
	return sent;
}

static void wait_until_full(struct sl_share *share)
{
	bool full = false;

	for (unsigned i = 0; i < 20000 && !full; i++) {
		usleep(1000);
		waits(share, &full);
	}
	assert_true(full);
}

/* A follower that asks for queue pairs again and again, and reads no answer, takes up memory for
 * one answer. When it reads at last, every question has its answer. */
static void test_connects_without_end(void **state)
{
	struct sl_share *share = far_open("asked", 4);
	struct sl_follow_element element;
	unsigned sent, got = 0;
	struct sl_follower *f;
	uint32_t data[2048];
	int fd = welcome(share);

	sent = connect_without_end(share, fd);
	wait_until_full(share);
	f = far_follower(share); /* the share goes on */
	share_push(share, 0);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20000, data, sizeof(data), &element),
			 0);
	assert_true(share_is(&element, 0));
	sl_follow_close(f);
	while (got < sent && wait_for(fd, POLLIN, 20000)) {
		assert_int_equal(hear(fd).type, SL_SHARE_FRAME_CONNECTED);
		got++;
	}
	assert_int_equal(got, sent);
	close(fd);
	sl_share_close(share);
}

/* The share's thread ends when it cannot wait for events any longer: poll() refuses more
 * descriptors than the process may have. Its writer goes on all the same, and does not wait for
 * the thread. */
static void test_a_thread_that_has_ended(void **state)
{
	struct sl_share *share = far_open("alone", 4);
	struct sl_follower *f = far_follower(share);
	const struct sl_share_options options = share_options(8);
	struct rlimit limit, none;
	bool unserved = false;
	uint64_t before;

	share_push(share, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	sl_share_kick(share);
	for (unsigned i = 0; i < 20000 && !unserved; i++) {
		usleep(1000);
		pthread_mutex_lock(&share->lock);
		unserved = share->unserved;
		pthread_mutex_unlock(&share->lock);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(unserved);
	before = share->remote->region_key;
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	assert_true(share->remote->region_key != before);
	assert_int_equal(sl_share_describe(share)->count, 8);
	share_push(share, 1);
	sl_share_close(share);
	sl_follow_close(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_connects_without_end),
		TEST(test_a_thread_that_has_ended),
	};

	return cmocka_run_group_tests_name("share_remote_hostile", tests, NULL, NULL);
}
