/* remote_test.c - a share and its followers over RDMA on loopback: elements in order, never torn,
 * lost packets, keys and secrets that are wrong, another layout, ends and crashes, messages. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/sanitized.h"
#include "lib/share_far_rig.h"

static uint32_t data[2048];

/* ---- helpers ---- */

static int next(struct sl_follower *f, enum sl_follow_mode mode, struct sl_follow_element *element)
{
	return sl_follow_next(f, mode, 20000, data, sizeof(data), element);
}

/* A file with a secret, in the test's folder. */
static const char *secret_file(const char *name, const char *secret)
{
	static char path[4][300];
	static unsigned turn;
	char *at = path[turn++ % 4];
	FILE *file;

	snprintf(at, sizeof(path[0]), "%s/%s", share_base, name);
	file = fopen(at, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", secret);
	assert_int_equal(fchmod(fileno(file), 0600), 0);
	fclose(file);
	return at;
}

/* ---- elements ---- */

static void test_every_element(void **state)
{
	struct sl_share *share = far_open("every", 8);
	struct sl_follower *f = far_follower(share);
	const struct sl_share_description *d = sl_follow_describe(f);
	struct sl_follow_element element;

	assert_memory_equal(sl_share_url(share), "rdma://127.0.0.1:", 17);
	assert_int_equal(d->count, 8);
	assert_string_equal(d->name, "every");
	assert_string_equal(d->array[0].unit, "photons");
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, sizeof(data), &element),
			 -ETIMEDOUT);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, 100, &element), -ERANGE);
	for (uint64_t n = 0; n < 100; n++) {
		share_push(share, n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
		assert_int_equal(element.missed, 0);
	}
	for (uint64_t n = 100; n < 106; n++)
		share_push(share, n);
	for (uint64_t n = 100; n < 106; n++) {
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_overtaken_elements_are_counted(void **state)
{
	struct sl_share *share = far_open("slow", 8);
	struct sl_follower *f = far_follower(share);
	struct sl_follow_element element;
	uint64_t got = 1, missed = 0;

	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	for (uint64_t n = 1; n < 100; n++)
		share_push(share, n);
	do {
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, element.n));
		missed += element.missed;
		got++;
	} while (element.n < 99);
	assert_int_equal(got + missed, 100);

	for (uint64_t n = 100; n < 130; n++)
		share_push(share, n);
	do /* it may hear of them one by one */
		assert_int_equal(next(f, SL_FOLLOW_NEWEST, &element), 0);
	while (element.n < 129);
	assert_true(share_is(&element, 129));
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 10, data, sizeof(data), &element),
			 -ETIMEDOUT);
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_the_first_one(void **state)
{
	struct sl_share *share = far_open("late", 4);
	struct sl_follow_element element;
	struct sl_follower *f;

	for (uint64_t n = 0; n < 3; n++)
		share_push(share, n);
	f = far_follower(share);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 2));
	assert_int_equal(element.missed, 0);
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_parts(void **state)
{
	struct sl_share *share = far_open("parts", 4);
	struct sl_follower *f = far_follower(share);
	struct sl_follow_element element;
	uint32_t part[10];

	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -ENODATA);
	for (uint64_t n = 0; n < 5; n++)
		share_push(share, n);
	assert_int_equal(sl_follow_fetch(f, 2, 40, sizeof(part), part, &element), 0);
	assert_int_equal(part[0], 2);
	assert_int_equal(part[9], 2);
	assert_int_equal(element.note.number, 1002);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 4, part, &element), -ESTALE);
	assert_int_equal(sl_follow_fetch(f, 5, 0, 4, part, &element), -ENODATA);
	assert_int_equal(sl_follow_fetch(f, 2, 1, UINT64_MAX, part, &element), -ERANGE);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_int_equal(element.n, 4);
	assert_true(share_is(&element, 4));
	sl_share_reserve(share); /* the place of 1 is being written now */
	assert_int_equal(sl_follow_fetch(f, 1, 0, 4, part, &element), -ESTALE);
	assert_int_equal(sl_share_commit(share), 5);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_int_equal(element.n, 5);

	assert_int_equal(sl_follow_peek(f, SL_FOLLOW_NEWEST, 10, &element), -EOPNOTSUPP);
	assert_false(sl_follow_is_valid(f, 5));
	sl_follow_close(f);
	sl_share_close(share);
}

/* Elements that take many packets and several READs in flight, in memory of the application. */
static void test_large_elements(void **state)
{
	enum { WORDS = 100000, COUNT = 16 };
	const struct sl_share_array wide = {
		.name = "wide", .type = "<u4", .rank = 1, .dim = {WORDS}};
	struct sl_share_options options = far_options(COUNT);
	uint32_t *from = malloc(WORDS * 4), *to = malloc(WORDS * 4);
	int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sl_follow_element element;
	struct sl_remote_error error;
	const void *arrays[] = {from};
	struct sl_share *share;
	struct sl_follower *f;

	assert_int_equal(ftruncate(fd, COUNT * (WORDS * 4 + 8192) + 8192), 0);
	options.array = &wide;
	options.arrays = 1;
	options.memory_fd = fd;
	options.memory_offset = 8192;
	if (sl_share_open("large", &options, &share, &error))
		fail_msg("%s", error.message);
	f = far_follower(share);
	for (uint32_t n = 0; n < COUNT; n++) {
		for (uint32_t i = 0; i < WORDS; i++)
			from[i] = n * 1000003 + i;
		sl_share_push(share, NULL, arrays);
	}
	for (uint32_t n = 0; n < COUNT; n++) {
		assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20000, to, WORDS * 4, &element),
				 0);
		n = (uint32_t)element.n; /* a quarter of the ring was left out */
		for (uint32_t i = 0; i < WORDS; i++)
			assert_int_equal(to[i], n * 1000003 + i);
	}
	assert_int_equal(element.n, COUNT - 1);
	sl_follow_close(f);
	sl_share_close(share);
	close(fd);
	free(from);
	free(to);
}

/* ---- never torn ---- */

struct lapping {
	struct sl_share *share;
	_Atomic bool stop;
	uint64_t first;
};

static void *push_on(void *arg)
{
	struct lapping *w = arg;
	uint64_t n = w->first;

	while (!atomic_load(&w->stop))
		share_push(w->share, n++);
	return NULL;
}

/* Follow until so many words were compared, or so many copies were overtaken. */
static void check_words(struct sl_follower *f, enum sl_follow_mode mode, uint64_t words)
{
	struct sl_follow_element element;
	uint64_t last = 0, had = 0;

	while (words > SHARE_IMAGE) {
		int err = next(f, mode, &element);

		if (err == -EAGAIN) /* the writer is as quick as that */
			continue;
		assert_int_equal(err, 0);
		assert_true(share_is(&element, element.n));
		assert_true(!had || element.n > last);
		last = element.n;
		had = 1;
		words -= SHARE_IMAGE;
	}
}

static void lap(uint64_t count, enum sl_follow_mode mode, uint64_t words)
{
	struct lapping w = {.share = far_open("laps", count)};
	struct sl_follower *f = far_follower(w.share);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, push_on, &w), 0);
	check_words(f, mode, words);
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(w.share);
}

/* Few: writer and reader are one core each, and tests beside this one want them, too. */
enum { WORDS = SANITIZED ? 60000 : 200000 };

/* The writer goes round its ring while elements are read from it. */
static void test_the_writer_laps(void **state)
{
	lap(64, SL_FOLLOW_EVERY, WORDS);
	lap(256, SL_FOLLOW_NEWEST, WORDS);
	lap(8, SL_FOLLOW_NEWEST, WORDS / 10);
}

static enum sl_endpoint_fault_kind lose_some(void *arg, const struct sl_roce_packet *packet)
{
	uint64_t *drawn = arg, x = (*drawn)++ * UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	switch (x >> 58) {
	case 0:
		return SL_ENDPOINT_FAULT_LOSE;
	case 1:
		return SL_ENDPOINT_FAULT_REPEAT;
	case 2:
		return SL_ENDPOINT_FAULT_HOLD;
	case 3:
		return SL_ENDPOINT_FAULT_CORRUPT;
	default:
		return SL_ENDPOINT_FAULT_NONE;
	}
}

/* The same where packets of both sides are lost, repeated, damaged and out of order. */
static void test_a_bad_path(void **state)
{
	static uint64_t drawn[2];
	struct lapping w = {0};
	struct sl_follower *f;
	pthread_t thread;

	sl_share_remote_fault = (struct sl_endpoint_fault){lose_some, &drawn[0]};
	w.share = far_open("bad", 64);
	sl_share_remote_fault = (struct sl_endpoint_fault){lose_some, &drawn[1]};
	f = far_follower(w.share);
	sl_share_remote_fault = (struct sl_endpoint_fault){0};
	assert_int_equal(pthread_create(&thread, NULL, push_on, &w), 0);
	check_words(f, SL_FOLLOW_EVERY, 40000);
	check_words(f, SL_FOLLOW_NEWEST, 20000);
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(w.share);
	assert_true(drawn[0] > 100 && drawn[1] > 100);
}

/* ---- what followers may not do ---- */

static bool completes(struct sl_follower *f, struct sl_completion *done)
{
	uint64_t end_ns = sl_share_end_ns(5000);

	while (sl_share_left_ms(end_ns)) {
		sl_endpoint_poll(sl_share_rdma_endpoint(f->remote->rdma), sl_clock_ns(), 64);
		if (sl_endpoint_reap(sl_share_rdma_endpoint(f->remote->rdma), NULL, done, 1))
			return true;
		usleep(100);
	}
	return false;
}

/* A WRITE into the share is refused, whichever queue pair it comes by, and changes nothing. */
static void test_followers_cannot_write(void **state)
{
	struct sl_share *share = far_open("safe", 4);
	struct sl_follow_element element;

	share_push(share, 0);
	for (unsigned queue = 0; queue < SL_SHARE_QUEUES; queue++) {
		struct sl_follower *f = far_follower(share);
		uint64_t evil = 77;
		const struct sl_work work = {.kind = SL_ROCE_KIND_WRITE,
					     .piece = {{&evil, sizeof(evil)}},
					     .rkey = f->remote->there.region_key,
					     .va = 4096};
		struct sl_completion done;

		assert_int_equal(sl_qp_send((struct sl_qp *)f->remote->queue[queue], &work), 0);
		assert_true(completes(f, &done));
		if (queue != SL_SHARE_ARRIVALS) /* nothing answers a UC WRITE */
			assert_true(done.status == SL_STATUS_REMOTE_ACCESS ||
				    done.status == SL_STATUS_REMOTE_INVALID);
		sl_follow_close(f);
	}
	struct sl_follower *f = far_follower(share);

	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 0));
	sl_follow_close(f);
	sl_share_close(share);
}

/* With a key that is wrong, or that is another share's, a READ fails, and the follower asks for the
 * right one. */
static void test_wrong_keys(void **state)
{
	struct sl_share *share = far_open("one", 4), *other = far_open("two", 4);
	struct sl_follower *f = far_follower(share), *g = far_follower(other);
	struct sl_follow_element element;

	share_push(share, 0);
	share_push(other, 0);
	share_push(other, 1);
	f->remote->there.region_key ^= 0x5a5a;
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 0));
	share_push(share, 1);
	f->remote->there.region_key = g->remote->there.region_key;
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 1));
	/* Beyond the memory that the key covers. */
	share_push(share, 2);
	f->remote->there.header.stride = 1 << 30;
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 2));
	sl_follow_close(f);
	sl_follow_close(g);
	sl_share_close(share);
	sl_share_close(other);
}

/* ---- who may follow ---- */

static int try_with(const struct sl_share *share, const char *secret, struct sl_remote_error *error)
{
	const struct sl_follow_options options = {.bytes = sizeof(options), .secret_file = secret};
	struct sl_follow_element element;
	struct sl_follower *f;
	int err = sl_follow_open(sl_share_url(share), &options, &f, error);

	if (err)
		return err;
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	sl_follow_close(f);
	return 0;
}

static void test_secrets(void **state)
{
	const char *right = secret_file("right", "correct horse battery staple");
	const char *wrong = secret_file("wrong", "correct horse battery stable");
	struct sl_share_options options = far_options(4);
	struct sl_share *share, *open_share = far_open("open", 4);
	struct sl_remote_error error;

	options.secret_file = right;
	assert_int_equal(sl_share_open("closed", &options, &share, &error), 0);
	share_push(share, 0);
	assert_int_equal(try_with(share, right, &error), 0);
	assert_int_equal(try_with(share, wrong, &error), -EACCES);
	assert_non_null(strstr(error.message, "the secret is wrong"));
	assert_int_equal(try_with(share, NULL, &error), -EACCES);
	assert_non_null(strstr(error.message, "it has a secret"));
	assert_int_equal(try_with(open_share, right, &error), -EACCES);
	assert_non_null(strstr(error.message, "it has no secret"));
	assert_int_equal(try_with(share, "/nonexistent", &error), -EINVAL);
	assert_non_null(strstr(error.message, "secret_file"));
	sl_share_close(share);
	sl_share_close(open_share);

	options.secret_file = NULL;
	options.listen =
		"192.0.2.1:7000"; /* no address of this host: a secret is asked for first */
	assert_int_equal(sl_share_open("closed", &options, &share, &error), -EINVAL);
	assert_non_null(strstr(error.message, "a secret is required"));
}

static void test_names_and_places(void **state)
{
	static const char *const bad_urls[] = {"rdma://",
					       "rdma://127.0.0.1/x",
					       "rdma://127.0.0.1:/x",
					       "rdma://127.0.0.1:7/",
					       "rdma://127.0.0.1:7/.x",
					       "rdma://127.0.0.1:70000/x",
					       "rdma://[::1:7/x",
					       "rdma://[localhost]:7/x",
					       "rdma://:7/x"};
	static const char *const bad_places[] = {"127.0.0.1", "127.0.0.1:x", "0.0.0.0:0", "[::]:0",
						 "127.0.0.1:70000"};
	struct sl_share *share = far_open("here", 4), *other;
	struct sl_share_options options = far_options(4);
	struct sl_remote_error error;
	struct sl_follower *f;
	char url[100];

	for (unsigned i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
		assert_int_equal(sl_follow_open(bad_urls[i], NULL, &f, &error), -EINVAL);
		assert_non_null(strstr(error.message, "is no share"));
	}
	for (unsigned i = 0; i < sizeof(bad_places) / sizeof(bad_places[0]); i++) {
		options.listen = bad_places[i];
		assert_int_equal(sl_share_open("bad", &options, &other, &error), -EINVAL);
		assert_non_null(strstr(error.message, "listen: "));
	}
	snprintf(url, sizeof(url), "127.0.0.1:%u", far_port(share));
	options.listen = url;
	assert_int_equal(sl_share_open("twice", &options, &other, &error), -EADDRINUSE);
	options.listen = "127.0.0.1:0";
	options.device = "no_such_nic";
	assert_true(sl_share_open("device", &options, &other, &error) < 0);
	assert_non_null(strstr(error.message, "cannot open the share 'device': "));
	assert_true(strstr(error.message, "no_such_nic") || strstr(error.message, "libibverbs"));
	snprintf(url, sizeof(url), "rdma://127.0.0.1:%u/there", far_port(share));
	assert_int_equal(sl_follow_open(url, NULL, &f, &error), -ENOENT);
	assert_non_null(strstr(error.message, "no share is called 'there'"));
	snprintf(url, sizeof(url), "rdma://localhost:%u/here", far_port(share));
	assert_int_equal(sl_follow_open(url, NULL, &f, &error), 0);
	sl_follow_close(f);
	snprintf(url, sizeof(url), "rdma://127.0.0.1:%u/here", far_port(share));
	sl_share_close(share);
	assert_int_equal(sl_follow_open(url, NULL, &f, &error), -ENOENT);
	assert_non_null(strstr(error.message, "no share listens"));
}

static void test_too_many_followers(void **state)
{
	struct sl_share_options options = far_options(2);
	struct sl_follower *a, *b;
	struct sl_remote_error error;
	struct sl_share *share;

	options.max_peers = 1;
	assert_int_equal(sl_share_open("few", &options, &share, NULL), 0);
	a = far_follower(share);
	assert_int_equal(sl_follow_open(sl_share_url(share), NULL, &b, &error), -ECONNRESET);
	assert_non_null(strstr(error.message, "as many followers as it takes"));
	sl_follow_close(a);
	for (unsigned i = 0; i < 500 && sl_follow_open(sl_share_url(share), NULL, &b, &error); i++)
		usleep(10000);
	sl_follow_close(b);
	sl_share_close(share);
}

/* ---- garbage ---- */

/* Whatever comes to its ports, a share goes on with the followers that it has. */
static void test_garbage(void **state)
{
	struct sl_share *share = far_open("garbage", 4);
	struct sl_follower *f = far_follower(share);
	struct sl_share_frame frame = {.magic = SL_SHARE_FRAME_MAGIC};
	struct sl_follow_element element;
	uint8_t bytes[300], byte;
	uint64_t x = 1;
	int udp = far_dial(share, SOCK_DGRAM);

	for (unsigned i = 0; i < 40; i++) {
		int fd = far_dial(share, SOCK_STREAM);

		for (unsigned k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(x = x * UINT64_C(6364136223846793005) + 1, x >> 56);
		assert_int_equal(send(udp, bytes, sizeof(bytes), 0), sizeof(bytes));
		frame.type = i; /* every type, too early, with a wrong payload */
		frame.bytes = i % 3 ? i * 7 : 128;
		memcpy(bytes, &frame, i % 2 ? sizeof(frame) : 0);
		assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
		shutdown(fd, SHUT_WR);
		while (recv(fd, &byte, 1, 0) > 0)
			; /* until it hangs up */
		close(fd);
	}
	close(udp);
	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 0));
	sl_follow_close(f);
	sl_share_close(share);
}

/* Connections that say nothing, or half of it, are closed after a while; meanwhile at most some are
 * kept. */
static void test_half_connections(void **state)
{
	struct sl_share *share = far_open("half", 4);
	struct sl_share_frame frame = {.magic = SL_SHARE_FRAME_MAGIC,
				       .type = SL_SHARE_FRAME_GREETING,
				       .bytes = sizeof(struct sl_share_remote_hello)};
	struct sl_share_counts counts;
	int fd[SL_SHARE_STRANGERS + 4];
	struct sl_follower *f;
	uint8_t byte;

	pthread_mutex_lock(&share->lock);
	share->remote->greet_ns = 200000000;
	pthread_mutex_unlock(&share->lock);
	for (unsigned i = 0; i < SL_SHARE_STRANGERS + 4; i++) {
		fd[i] = far_dial(share, SOCK_STREAM);
		assert_int_equal(send(fd[i], &frame, i % 2 * sizeof(frame) / 2, MSG_NOSIGNAL),
				 i % 2 * sizeof(frame) / 2);
	}
	for (unsigned i = 0; i < SL_SHARE_STRANGERS + 4; i++) {
		assert_true(recv(fd[i], &byte, 1, 0) <= 0);
		close(fd[i]);
	}
	sl_share_count(share, &counts);
	assert_int_equal(counts.peers, 0);
	f = far_follower(share);
	sl_follow_close(f);
	sl_share_close(share);
}

struct liar {
	int listener;
	unsigned answer;
};

/* A program that is no share: what it answers to a greeting is wrong in another way each time. */
static void *lie(void *arg)
{
	struct liar *liar = arg;

	for (; liar->answer < 24; liar->answer++) {
		static const uint32_t types[] = {SL_SHARE_FRAME_CONNECTED, SL_SHARE_FRAME_WELCOME,
						 SL_SHARE_FRAME_REFUSED};
		struct sl_share_remote_offer offer;
		struct sl_share_frame frame = {.magic = SL_SHARE_FRAME_MAGIC,
					       .type = types[liar->answer % 3]};
		uint8_t in[1000];
		int fd = accept(liar->listener, NULL, NULL);

		memset(&offer, (int)liar->answer, sizeof(offer));
		while (recv(fd, in, sizeof(in), 0) > 0) {
			if (liar->answer % 4 == 3)
				break;
			if (liar->answer >= 12)
				frame.bytes = sizeof(offer);
			if (send(fd, &frame, sizeof(frame), MSG_NOSIGNAL) < 0 ||
			    send(fd, &offer, frame.bytes, MSG_NOSIGNAL) < 0)
				break;
			frame.type = SL_SHARE_FRAME_CONNECTED;
			frame.bytes = sizeof(offer);
		}
		close(fd);
	}
	return NULL;
}

static void test_liars(void **state)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric("127.0.0.1", 0, &at);
	struct liar liar = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct sl_remote_error error;
	struct sl_follower *f;
	pthread_t thread;
	char url[100];

	assert_int_equal(bind(liar.listener, &at.any, bytes), 0);
	assert_int_equal(listen(liar.listener, 4), 0);
	snprintf(url, sizeof(url), "rdma://127.0.0.1:%u/x", sl_net_port(liar.listener));
	assert_int_equal(pthread_create(&thread, NULL, lie, &liar), 0);
	for (unsigned i = 0; i < 24; i++) {
		int err = sl_follow_open(url, NULL, &f, &error);

		assert_true(err == -EPROTO || err == -ECONNRESET);
		assert_non_null(strstr(error.message, "cannot follow "));
	}
	pthread_join(thread, NULL);
	close(liar.listener);
}

/* ---- another layout ---- */

static void test_another_layout(void **state)
{
	struct sl_share *share = far_open("moves", 4);
	struct sl_follower *f = far_follower(share);
	struct sl_share_options options = share_options(2);
	const struct sl_share_array larger = {
		.name = "wide", .type = "<f8", .rank = 1, .dim = {700}};
	struct sl_follow_element element;
	double wide[700];
	const void *from[] = {wide};

	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	options.array = &larger;
	options.arrays = 1;
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	for (unsigned i = 0; i < 700; i++)
		wide[i] = 2.5;
	assert_int_equal(sl_share_push(share, NULL, from), 1);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ESTALE);
	assert_int_equal(sl_follow_describe(f)->generation, 2);
	assert_string_equal(sl_follow_describe(f)->array[0].name, "wide");
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(element.n, 1);
	assert_int_equal(element.missed, 0);
	assert_memory_equal(element.data, wide, sizeof(wide));
	sl_follow_close(f);
	sl_share_close(share);
}

static void *resize_often(void *arg)
{
	struct lapping *w = arg;
	uint64_t n = 0;

	for (unsigned i = 0; i < 40; i++) {
		struct sl_share_options options = share_options(16 + i % 5);

		for (unsigned k = 0; k < 200; k++)
			share_push(w->share, n++);
		if (sl_share_resize(w->share, &options, NULL))
			abort();
	}
	share_push(w->share, n);
	w->first = n;
	atomic_store(&w->stop, true);
	return NULL;
}

/* The keys under READs that are under way are given up again and again. */
static void test_resized_while_read(void **state)
{
	struct lapping w = {.share = far_open("resized", 16)};
	struct sl_follower *f = far_follower(w.share);
	struct sl_follow_element element = {0};
	uint64_t moved = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, resize_often, &w), 0);
	do {
		int err = element.n % 2 ? next(f, SL_FOLLOW_EVERY, &element)
					: sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element);

		if (err == -ENODATA || err == -EAGAIN)
			continue;
		if (err == -ESTALE)
			moved++;
		else if (err)
			fail_msg("%d after %llu moves", err, (unsigned long long)moved);
		else
			assert_true(share_is(&element, element.n));
	} while (!atomic_load(&w.stop) || element.n != w.first);
	pthread_join(thread, NULL);
	assert_in_range(moved, 1, 100);
	sl_follow_close(f);
	sl_share_close(w.share);
}

/* ---- ends ---- */

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

/* Followers read what is there before a share is gone. */
static void test_ends(void **state)
{
	struct sl_share *share = far_open("ends", 64);
	struct sl_follower *f = far_follower(share), *asleep = far_follower(share);
	struct sl_follow_element element;
	pthread_t thread;
	void *n;

	for (uint64_t i = 0; i < 50; i++)
		share_push(share, i);
	assert_int_equal(pthread_create(&thread, NULL, follow_to_the_end, f), 0);
	sl_share_close(share);
	pthread_join(thread, &n);
	assert_int_equal((uintptr_t)n, 50);
	/* One that did not read meanwhile learns that it has ended. */
	assert_int_equal(next(asleep, SL_FOLLOW_EVERY, &element), -EPIPE);
	assert_int_equal(next(asleep, SL_FOLLOW_EVERY, &element), -EPIPE);
	sl_follow_close(f);
	sl_follow_close(asleep);
}

static void test_a_crash(void **state)
{
	int up[2];
	struct sl_follow_element element;
	struct sl_follower *f;
	struct sl_share *share;
	char url[200] = "";
	pid_t child;

	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		share = far_open("crash", 4);
		share_push(share, 0);
		if (write(up[1], sl_share_url(share), strlen(sl_share_url(share))) < 0)
			_exit(1);
		pause();
	}
	assert_true(read(up[0], url, sizeof(url) - 1) > 0);
	f = follower_open(url);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ECONNRESET);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
}

/* A follower that is stopped costs the share nothing; one that is killed is forgotten. */
static void test_followers_stop_and_die(void **state)
{
	struct sl_share *share = far_open("dies", 8);
	struct sl_follow_element element;
	struct sl_share_counts counts;
	struct sl_follower *f;
	uint64_t n = 0;
	int up[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		f = far_follower(share);
		if (write(up[1], "x", 1) != 1)
			_exit(1);
		while (next(f, SL_FOLLOW_NEWEST, &element) == 0)
			if (!share_is(&element, element.n))
				_exit(2);
		_exit(3);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	while (n < 100)
		share_push(share, n++);
	kill(child, SIGSTOP);
	while (n < 20000)
		share_push(share, n++);
	kill(child, SIGCONT);
	while (n < 20100)
		share_push(share, n++);
	sl_share_count(share, &counts);
	assert_int_equal(counts.peers, 1);
	f = far_follower(share);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	do {
		usleep(1000);
		sl_share_count(share, &counts);
	} while (counts.peers > 1);
	assert_int_equal(next(f, SL_FOLLOW_NEWEST, &element), 0);
	assert_true(share_is(&element, n - 1));
	sl_follow_close(f);
	sl_share_close(share);
	close(up[0]);
	close(up[1]);
}

/* A writer in another process goes round its ring. */
static void test_across_processes(void **state)
{
	char url[200] = "";
	int up[2], status;
	struct sl_follower *f;
	pid_t child;

	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		struct lapping w = {.share = far_open("race", 128)};

		if (write(up[1], sl_share_url(w.share), strlen(sl_share_url(w.share))) < 0)
			_exit(1);
		push_on(&w);
	}
	assert_true(read(up[0], url, sizeof(url) - 1) > 0);
	f = follower_open(url);
	check_words(f, SL_FOLLOW_EVERY, WORDS);
	check_words(f, SL_FOLLOW_NEWEST, WORDS / 2);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
}

/* ---- messages and waiting ---- */

static void test_messages(void **state)
{
	enum { LARGE = 10 << 20 };
	struct sl_share *share = far_open("talks", 4);
	struct sl_follower *a = far_follower(share), *b = follower_open("talks");
	struct sl_share_message m;
	struct sl_share_counts counts;
	uint8_t *large = malloc(LARGE);
	uint64_t far, rtt;

	for (unsigned i = 0; i < LARGE; i++)
		large[i] = (uint8_t)(i * 7);
	assert_int_equal(sl_follow_send(a, 5, "hello", 5, 1000), 0);
	assert_int_equal(sl_share_receive(share, 5000, &m), 0);
	assert_int_equal(m.bytes, 5);
	assert_int_equal(m.kind, 5);
	assert_memory_equal(m.data, "hello", 5);
	sl_remote_free(m.data);
	far = m.peer;
	assert_int_equal(sl_follow_send(b, 6, NULL, 0, 1000), 0);
	assert_int_equal(sl_share_receive(share, 5000, &m), 0);
	assert_true(m.peer != far);
	assert_int_equal(sl_share_send(share, far, 9, large, LARGE), 0);
	assert_int_equal(sl_follow_receive(a, 20000, &m), 0);
	assert_int_equal(m.bytes, LARGE);
	assert_memory_equal(m.data, large, LARGE);
	sl_remote_free(m.data);
	assert_int_equal(sl_share_send(share, 0, 1, "all", 3), 0);
	assert_int_equal(sl_follow_receive(a, 5000, &m), 0);
	sl_remote_free(m.data);
	assert_int_equal(sl_follow_receive(b, 5000, &m), 0);
	sl_remote_free(m.data);
	assert_int_equal(sl_follow_ping(a, 5000, &rtt), 0);
	assert_true(rtt > 0);
	sl_share_count(share, &counts);
	assert_int_equal(counts.peers, 2);
	assert_int_equal(counts.messages_in, 2);
	assert_int_equal(counts.messages_out, 3);
	free(large);
	sl_follow_close(a);
	sl_follow_close(b);
	sl_share_close(share);
}

/* What was accepted arrives in order, and a queue has an end. */
static void test_back_pressure(void **state)
{
	struct sl_share_options options = far_options(2);
	struct sl_share_message m;
	struct sl_follow_element element;
	struct sl_share *share;
	struct sl_follower *f;
	uint32_t sent = 0;
	static uint8_t block[1 << 20];

	options.queue_bytes = 4 << 20;
	assert_int_equal(sl_share_open("full", &options, &share, NULL), 0);
	f = far_follower(share);
	assert_int_equal(sl_share_send(share, 0, 0, block, 5 << 20), -EMSGSIZE);
	while (sl_share_send(share, 1, sent, block, sizeof(block)) == 0)
		assert_true(sent++ < 100);
	/* Elements go past messages that wait. */
	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(sl_follow_receive(f, 20000, &m), 0);
		assert_int_equal(m.kind, i);
		sl_remote_free(m.data);
	}
	for (sent = 0; sl_follow_send(f, sent, block, sizeof(block), 50) == 0; sent++)
		assert_true(sent < 100);
	assert_true(sent >= 4);
	for (uint32_t i = 0; i < sent; i++) {
		struct sl_share_message none;

		/* The rest of the last one goes with further calls of the follower. */
		while (sl_share_receive(share, 100, &m))
			assert_int_equal(sl_follow_receive(f, 10, &none), -ETIMEDOUT);
		assert_int_equal(m.kind, i);
		sl_remote_free(m.data);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

static void *push_slowly(void *arg)
{
	struct lapping *w = arg;

	for (uint64_t n = 0; n < 300; n++) {
		usleep(n % 4 ? 100 : 1500);
		share_push(w->share, n);
	}
	return NULL;
}

/* A follower that sleeps gets every element, also those that come right behind another, and more
 * than a share may tell of at a time. */
static void test_sleepers_are_woken(void **state)
{
	struct lapping w = {.share = far_open("sleeps", 512)};
	struct sl_follower *f = far_follower(w.share);
	struct sl_follow_element element;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, push_slowly, &w), 0);
	for (uint64_t n = 0; n < 300; n++) {
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	pthread_join(thread, NULL);
	assert_true(f->remote->line->published > 100); /* it was told */
	assert_int_equal(*sl_follow_flag(f), 300);
	sl_follow_close(f);
	sl_share_close(w.share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_every_element),
		TEST(test_overtaken_elements_are_counted),
		TEST(test_the_first_one),
		TEST(test_parts),
		TEST(test_large_elements),
		TEST(test_the_writer_laps),
		TEST(test_a_bad_path),
		TEST(test_followers_cannot_write),
		TEST(test_wrong_keys),
		TEST(test_secrets),
		TEST(test_names_and_places),
		TEST(test_too_many_followers),
		TEST(test_garbage),
		TEST(test_half_connections),
		TEST(test_liars),
		TEST(test_another_layout),
		TEST(test_resized_while_read),
		TEST(test_ends),
		TEST(test_a_crash),
		TEST(test_followers_stop_and_die),
		TEST(test_across_processes),
		TEST(test_messages),
		TEST(test_back_pressure),
		TEST(test_sleepers_are_woken),
	};

	return cmocka_run_group_tests_name("share_remote", tests, NULL, NULL);
}
