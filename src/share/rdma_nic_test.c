/* rdma_nic_test.c - shares and followers on RDMA NICs: those of a library that stands in for
 * libibverbs, which ends the program where a real one would misbehave. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fake_verbs.h"
#include "lib/share_far_rig.h"

static uint32_t data[2048];

static int with_nics(void **state)
{
	fake_verbs_add("fake0", "127.0.0.1");
	fake_verbs_add("fake1", "192.0.2.1");
	return share_setup(state);
}

/* Nothing stays open in the NIC. */
static int without_nics(void **state)
{
	int err = share_teardown(state);

	assert_int_equal(fake_verbs_objects(), 0);
	fake_verbs_forget();
	return err;
}

static struct sl_share *nic_share(const char *name, struct sl_share_options *options)
{
	options->listen = "127.0.0.1:0";
	options->device = "fake0";
	return far_open_with(name, options);
}

static struct sl_share *nic_open(const char *name, uint64_t count)
{
	struct sl_share_options options = share_options(count);

	return nic_share(name, &options);
}

static int try_to_follow(const struct sl_share *share, const char *device, struct sl_follower **f,
			 struct sl_remote_error *error)
{
	const struct sl_follow_options options = {.bytes = sizeof(options), .device = device};

	return sl_follow_open(sl_share_url(share), &options, f, error);
}

static struct sl_follower *nic_follower(const struct sl_share *share)
{
	struct sl_remote_error error;
	struct sl_follower *f = NULL;

	if (try_to_follow(share, "fake0", &f, &error))
		fail_msg("%s", error.message);
	return f;
}

static int next(struct sl_follower *f, enum sl_follow_mode mode, struct sl_follow_element *element)
{
	return sl_follow_next(f, mode, 20000, data, sizeof(data), element);
}

/* ---- elements ---- */

static void test_every_element(void **state)
{
	struct sl_share *share = nic_open("every", 8);
	struct sl_follower *f = nic_follower(share);
	struct sl_follow_element element;
	uint64_t count;

	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, sizeof(data), &element),
			 -ETIMEDOUT);
	for (uint64_t n = 0; n < 300; n++) {
		share_push(share, n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
		assert_int_equal(element.missed, 0);
		assert_ptr_equal(element.data, data);
	}
	for (uint64_t n = 300; n < 306; n++) /* several at a time */
		share_push(share, n);
	for (uint64_t n = 300; n < 306; n++) {
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	for (uint64_t n = 306; n < 350; n++)
		share_push(share, n);
	do
		assert_int_equal(next(f, SL_FOLLOW_NEWEST, &element), 0);
	while (element.n < 349);
	assert_true(share_is(&element, 349));
	assert_int_equal(sl_follow_published(f, &count), 0);
	assert_int_equal(count, 350);
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_parts(void **state)
{
	struct sl_share *share = nic_open("parts", 4);
	struct sl_follower *f = nic_follower(share);
	struct sl_follow_element element;
	uint32_t part[12];

	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -ENODATA);
	for (uint64_t n = 0; n < 5; n++)
		share_push(share, n);
	memset(part, 0xee, sizeof(part));
	assert_int_equal(sl_follow_fetch(f, 2, 40, 40, part + 1, &element), 0);
	assert_int_equal(part[0], 0xeeeeeeee);
	assert_int_equal(part[1], 2);
	assert_int_equal(part[10], 2);
	assert_int_equal(part[11], 0xeeeeeeee);
	assert_int_equal(element.note.number, 1002);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 4, part, &element), -ESTALE);
	assert_int_equal(sl_follow_fetch(f, 5, 0, 4, part, &element), -ENODATA);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_true(share_is(&element, 4));
	sl_share_reserve(share); /* the place of 1 is being written now */
	assert_int_equal(sl_follow_fetch(f, 1, 0, 4, part, &element), -ESTALE);
	sl_follow_close(f);
	sl_share_close(share);
}

/* In memory of the application, of which only the ring is registered. */
static void test_memory_of_the_application(void **state)
{
	enum { WORDS = 100000, COUNT = 4 };
	const struct sl_share_array wide = {
		.name = "wide", .type = "<u4", .rank = 1, .dim = {WORDS}};
	struct sl_share_options options = share_options(COUNT);
	uint32_t *from = malloc(WORDS * 4), *to = malloc(WORDS * 4);
	int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sl_follow_element element;
	const void *arrays[] = {from};
	struct sl_share *share;
	struct sl_follower *f;

	assert_int_equal(ftruncate(fd, COUNT * (WORDS * 4 + 8192) + 8192), 0);
	options.array = &wide;
	options.arrays = 1;
	options.memory_fd = fd;
	options.memory_offset = 8192;
	share = nic_share("large", &options);
	f = nic_follower(share);
	for (uint32_t n = 0; n < 3 * COUNT; n++) {
		for (uint32_t i = 0; i < WORDS; i++)
			from[i] = n * 1000003 + i;
		sl_share_push(share, NULL, arrays);
		assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20000, to, WORDS * 4, &element),
				 0);
		assert_int_equal(element.n, n);
		assert_memory_equal(from, to, WORDS * 4);
	}
	sl_follow_close(f);
	sl_share_close(share);
	close(fd);
	free(from);
	free(to);
}

/* ---- another layout, the end ---- */

static void test_another_layout(void **state)
{
	struct sl_share *share = nic_open("moves", 4);
	struct sl_follower *f = nic_follower(share);
	struct sl_follow_element element;

	for (uint64_t n = 0; n < 10; n++) {
		struct sl_share_options options = share_options(2 + n % 3);

		share_push(share, n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
		assert_int_equal(sl_share_resize(share, &options, NULL), 0);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ESTALE);
		assert_int_equal(sl_follow_describe(f)->generation, n + 2);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

static void *follow_to_the_end(void *arg)
{
	struct sl_follower *f = arg;
	struct sl_follow_element element;
	static uint32_t mine[2048];
	uint64_t n = 0;
	int err;

	while (!(err = sl_follow_next(f, SL_FOLLOW_EVERY, 20000, mine, sizeof(mine), &element)))
		n = element.n + 1;
	return (void *)(uintptr_t)(err == -EPIPE ? n : 0);
}

static void test_ends(void **state)
{
	struct sl_share *share = nic_open("ends", 64);
	struct sl_follower *f = nic_follower(share);
	pthread_t thread;
	void *n;

	for (uint64_t i = 0; i < 50; i++)
		share_push(share, i);
	assert_int_equal(pthread_create(&thread, NULL, follow_to_the_end, f), 0);
	sl_share_close(share);
	pthread_join(thread, &n);
	assert_int_equal((uintptr_t)n, 50);
	sl_follow_close(f);
}

/* A follower that sleeps is told of an element by a WRITE. */
static void *push_later(void *share)
{
	usleep(20000);
	share_push(share, 0);
	return NULL;
}

static void test_a_sleeper_is_woken(void **state)
{
	struct sl_share *share = nic_open("sleeps", 4);
	struct sl_follower *f = nic_follower(share);
	struct sl_follow_element element;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, push_later, share), 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 0));
	pthread_join(thread, NULL);
	while (sl_follow_next(f, SL_FOLLOW_EVERY, 1, data, sizeof(data), &element) == -ETIMEDOUT &&
	       !f->remote->line->published)
		; /* a look may have been quicker */
	assert_int_equal(f->remote->line->published, 1);
	sl_follow_close(f);
	sl_share_close(share);
}

/* ---- what followers may not do ---- */

static void test_followers_cannot_write(void **state)
{
	struct sl_share *share = nic_open("safe", 4);
	struct sl_follow_element element;

	share_push(share, 0);
	for (unsigned queue = SL_SHARE_DATA; queue <= SL_SHARE_LOOKS; queue++) {
		struct sl_follower *f = nic_follower(share);
		struct sl_share_remote_follower *r = f->remote;
		struct sl_share_done done[SL_SHARE_DONE];
		unsigned n = 0;
		const struct sl_share_work work = {.local = &r->self,
						   .at = &r->words,
						   .bytes = 8,
						   .rkey = r->there.region_key,
						   .va = 4096};

		assert_int_equal(r->rdma->ops->post(r->queue[queue], &work), 0);
		for (unsigned i = 0; i < 1000 && !n; i++)
			r->rdma->ops->poll(r->rdma, 0, done, &n);
		assert_int_equal(n, 1);
		assert_int_equal(done[0].status, SL_STATUS_REMOTE_ACCESS);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0); /* by new queue pairs */
		assert_true(share_is(&element, 0));
		sl_follow_close(f);
	}
	sl_share_close(share);
}

/* With a key that is wrong a READ fails, and the follower asks for the right one. */
static void test_wrong_keys(void **state)
{
	struct sl_share *share = nic_open("keys", 4);
	struct sl_follower *f = nic_follower(share);
	struct sl_follow_element element;

	for (uint64_t n = 0; n < 5; n++) {
		share_push(share, n);
		f->remote->there.region_key ^= 0x5a5a;
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	sl_follow_close(f);
	sl_share_close(share);
}

/* READ `bytes` from there with that key; how it ended. The queue pair fails, if it is refused. */
static unsigned status_of_read(struct sl_follower *f, uint32_t key, uint64_t va, uint32_t bytes)
{
	struct sl_share_remote_follower *r = f->remote;
	const struct sl_share_work work = {
		.read = true, .local = &r->self, .at = r, .bytes = bytes, .rkey = key, .va = va};
	struct sl_share_remote_follower before = *r;
	struct sl_share_done done[SL_SHARE_DONE];
	unsigned n = 0;

	assert_int_equal(r->rdma->ops->post(r->queue[SL_SHARE_DATA], &work), 0);
	for (unsigned i = 0; i < 1000 && !n; i++)
		r->rdma->ops->poll(r->rdma, 0, done, &n);
	*r = before;
	assert_int_equal(n, 1);
	return done[0].status;
}

/* A key reaches the memory of its share alone, and not a byte behind it. */
static void test_keys_reach_no_further(void **state)
{
	struct sl_share *share = nic_open("one", 4), *other = nic_open("other", 4);
	const struct sl_share_remote *remote = share->remote, *others = other->remote;
	uint64_t bytes = share->memory.bytes;
	const struct {
		uint32_t key;
		uint64_t va;
		unsigned status;
	} cases[] = {
		{remote->region_key, bytes - 8, SL_STATUS_SUCCESS},
		{remote->region_key, bytes - 7, SL_STATUS_REMOTE_ACCESS},
		{remote->region_key, (uint64_t)-8, SL_STATUS_REMOTE_ACCESS},
		{others->region_key, 0, SL_STATUS_REMOTE_ACCESS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_follower *f = nic_follower(share);

		assert_int_equal(status_of_read(f, cases[i].key, cases[i].va, 8), cases[i].status);
		sl_follow_close(f);
	}
	sl_share_close(share);
	sl_share_close(other);
}

/* ---- what is lost ---- */

/* A follower whose program has gone: the share sees its connection end, and serves the others. */
static void test_a_follower_that_is_killed(void **state)
{
	struct sl_share *share = nic_open("killed", 4);
	struct sl_follower *f = nic_follower(share), *killed = nic_follower(share);
	struct sl_share_counts counts = {.peers = 2};
	struct sl_follow_element element;

	for (unsigned queue = 0; queue < SL_SHARE_QUEUES; queue++) { /* as the kernel does */
		killed->remote->rdma->ops->close_queue(killed->remote->queue[queue]);
		killed->remote->queue[queue] = NULL;
	}
	shutdown(killed->socket, SHUT_RDWR);
	for (uint64_t n = 0; n < 100; n++) {
		share_push(share, n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	while (counts.peers > 1)
		sl_share_count(share, &counts);
	sl_follow_close(killed);
	sl_follow_close(f);
	sl_share_close(share);
}

/* The NIC at both ends fails while a follower waits: its call ends, and later ones do. */
static void *break_later(void *unused)
{
	usleep(20000);
	fake_verbs_break("fake0");
	return unused;
}

static void test_the_nic_fails(void **state)
{
	struct sl_share *share = nic_open("breaks", 4);
	struct sl_follower *f = nic_follower(share), *late;
	struct sl_follow_element element;
	struct sl_remote_error error;
	pthread_t thread;

	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(pthread_create(&thread, NULL, break_later, NULL), 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ECONNRESET);
	pthread_join(thread, NULL);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ECONNRESET);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 4, data, &element), -ECONNRESET);
	assert_int_equal(try_to_follow(share, "fake0", &late, &error), -EIO);
	share_push(share, 1); /* the writer goes on */
	sl_follow_close(f);
	sl_share_close(share);
}

/* ---- what is said when there is none ---- */

static void test_no_such_nic(void **state)
{
	struct sl_share_options options = share_options(4);
	struct sl_share *share = nic_open("here", 4), *other;
	struct sl_remote_error error;
	struct sl_follower *f;

	options.listen = "127.0.0.1:0";
	options.device = "fake1"; /* it has another address */
	assert_int_equal(sl_share_open("there", &options, &other, &error), -ENODEV);
	assert_non_null(strstr(error.message, "no RDMA NIC called fake1 has 127.0.0.1"));
	assert_int_equal(try_to_follow(share, "fake7", &f, &error), -ENODEV);
	assert_non_null(strstr(error.message, "fake7"));
	fake_verbs_set_active("fake0", false);
	assert_int_equal(try_to_follow(share, "fake0", &f, &error), -ENETDOWN);
	fake_verbs_set_active("fake0", true);
	fake_verbs_fail("ibv_reg_mr_iova", ENOMEM);
	options.device = "fake0";
	assert_int_equal(sl_share_open("pinned", &options, &other, &error), -ENOMEM);
	assert_non_null(strstr(error.message, "ulimit -l"));
	fake_verbs_fail("ibv_reg_mr_iova", ENOMEM);
	assert_int_equal(try_to_follow(share, "fake0", &f, &error), -ENOMEM);
	assert_non_null(strstr(error.message, "ulimit -l"));
	f = nic_follower(share);
	sl_follow_close(f);
	sl_share_close(share);
}

/* A NIC sends to UDP port 4791 alone: a share behind a socket with another port says so. */
static void test_a_socket_with_another_port(void **state)
{
	struct sl_share *share = far_open("socket", 4);
	struct sl_remote_error error;
	struct sl_follower *f;

	assert_int_equal(try_to_follow(share, "fake0", &f, &error), -ECONNRESET);
	assert_non_null(strstr(error.message, "let the share listen on port 4791"));
	sl_share_close(share);
}

/* The other way around the follower takes port 4791. Its socket and this NIC do not meet, since the
 * library that stands in has no network: packets are not answered. */
static void test_a_socket_that_follows_a_nic(void **state)
{
	struct sl_share *share = nic_open("nic", 4);
	const struct sl_follow_options options = {.bytes = sizeof(options), .timeout_ms = 300};
	struct sl_remote_error error;
	struct sl_follower *f;
	int err = sl_follow_open(sl_share_url(share), &options, &f, &error);

	if (err == -EADDRINUSE) /* by a program of this host, or by the kernel's own Soft-RoCE */
		assert_non_null(strstr(error.message, "sends to UDP port 4791 alone"));
	else
		assert_true(err == -ETIMEDOUT || err == -EIO);
	sl_share_close(share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, with_nics, without_nics)
	const struct CMUnitTest tests[] = {
		TEST(test_every_element),
		TEST(test_parts),
		TEST(test_memory_of_the_application),
		TEST(test_another_layout),
		TEST(test_ends),
		TEST(test_a_sleeper_is_woken),
		TEST(test_followers_cannot_write),
		TEST(test_wrong_keys),
		TEST(test_keys_reach_no_further),
		TEST(test_a_follower_that_is_killed),
		TEST(test_the_nic_fails),
		TEST(test_no_such_nic),
		TEST(test_a_socket_with_another_port),
		TEST(test_a_socket_that_follows_a_nic),
	};

	return cmocka_run_group_tests_name("share_nic", tests, NULL, NULL);
}
