/* hostile_test.c - what the other side of a share may do, were it broken or malicious: a writer
 * that changes the words which followers look at, memory that is none, and followers that send
 * garbage, hang, flood, or never read. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/share_rig.h"
#include "share/follower.h"

/* ---- a writer ---- */

struct liar {
	struct sl_share_header *header;
	struct sl_share_place *place;
	uint64_t count;
	_Atomic bool ends;
};

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Numbers around those that are right, and at the ends of what there is. */
static uint64_t lie(uint64_t *seed)
{
	static const uint64_t ends[] = {
		0, 1, 2, 3, 4, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63};
	uint64_t x = draw(seed);

	return x % 3 == 0 ? ends[x / 3 % 8] : x % 3 == 1 ? x / 3 % 1000 : x;
}

static void *scribble(void *arg)
{
	struct liar *liar = arg;
	uint64_t seed = 88172645463325252u;

	while (!atomic_load(&liar->ends)) {
		struct sl_share_place *place = &liar->place[draw(&seed) % liar->count];
		struct sl_share_words *words = &liar->header->words;
		uint64_t n = lie(&seed);

		/* Sometimes all of it fits, so that followers go on to copy. */
		__atomic_store_n(&place->done, n + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&place->claim, draw(&seed) % 8 ? n + 1 : lie(&seed),
				 __ATOMIC_RELEASE);
		for (unsigned i = 0; i < SL_SHARE_ARRAYS; i++)
			__atomic_store_n(&place->note.rows[i], (uint32_t)draw(&seed),
					 __ATOMIC_RELAXED);
		__atomic_store_n(&words->published, draw(&seed) % 4 ? n + 1 : lie(&seed),
				 __ATOMIC_RELEASE);
		__atomic_store_n(&words->claimed, lie(&seed), __ATOMIC_RELAXED);
		__atomic_store_n(&words->wake, (uint32_t)draw(&seed), __ATOMIC_RELAXED);
		__atomic_store_n(&words->state, draw(&seed) % 16 ? SL_SHARE_LIVE : lie(&seed) % 5,
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool is_an_answer(int err)
{
	static const int answers[] = {0,	-ETIMEDOUT, -ESTALE, -EPIPE,
				      -ENODATA, -EAGAIN,    -ERANGE, -ECONNRESET};

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (err == answers[i])
			return true;
	return false;
}

/* Everything that a follower can be asked for, many times. */
static void ask(struct sl_follower *f)
{
	enum { TIMES = 3000, WANTED = 100, MOST = 10000000 };
	static uint8_t data[1 << 16];
	uint64_t seed = 7, delivered = 0;

	for (unsigned i = 0; i < TIMES || delivered < WANTED; i++) {
		enum sl_follow_mode mode = i & 1 ? SL_FOLLOW_NEWEST : SL_FOLLOW_EVERY;
		uint64_t n = lie(&seed), bytes = sl_follow_describe(f)->data_bytes;
		struct sl_follow_element element = {0};
		const uint8_t *at;
		uint8_t sum = 0;
		int err;

		assert_true(bytes <= sizeof(data));
		assert_true(i < MOST); /* or this has shown nothing */
		if (i % 64 == 0)
			sched_yield();
		f->next = 0; /* it has believed larger numbers */
		err = sl_follow_next(f, mode, 0, data, sizeof(data), &element);
		assert_true(is_an_answer(err));
		if (!err) {
			delivered++;
			assert_true(element.note.rows[1] <= 10); /* of spots */
		}
		err = sl_follow_peek(f, mode, 0, &element);
		assert_true(is_an_answer(err));
		for (at = element.data; !err && at < (const uint8_t *)element.data + bytes; at++)
			sum += *(const volatile uint8_t *)at;
		err = sl_follow_fetch(f, i & 2 ? n : UINT64_MAX, n % 100, n % 1000, data, &element);
		assert_true(is_an_answer(err));
		assert_true(err || element.note.rows[1] <= 10);
		(void)sl_follow_is_valid(f, n);
	}
}

static void test_a_writer_that_changes_its_words(void **state)
{
	struct sl_share *share = share_open("lies", 4);
	struct sl_follower *f = follower_open("lies");
	struct liar liar = {share->memory.header, share->memory.place, 4, false};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, scribble, &liar), 0);
	ask(f);
	atomic_store(&liar.ends, true);
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(share);
}

/* The same in memory of exactly the size that there is, for AddressSanitizer. */
static void test_nothing_outside_is_read(void **state)
{
	struct sl_share *share = share_open("heap", 4);
	struct sl_follower *f = follower_open("heap");
	struct sl_share_memory own = f->memory;
	uint64_t end = (uint64_t)(own.data - (uint8_t *)own.header) + 3 * own.stride +
		       f->description.data_bytes;
	uint8_t *exact = aligned_alloc(64, (end + 63) / 64 * 64);
	struct liar liar = {.count = 4};
	pthread_t thread;

	assert_non_null(exact);
	memcpy(exact, own.header, end);
	f->memory.header = (struct sl_share_header *)exact;
	f->memory.place = (struct sl_share_place *)(exact + SL_SHARE_HEADER_BYTES);
	f->memory.data = exact + (own.data - (uint8_t *)own.header);
	f->words = &f->memory.header->words;
	f->memory.header->words.state = SL_SHARE_LIVE;
	liar.header = f->memory.header;
	liar.place = f->memory.place;
	close(f->socket); /* it stays in this memory: there is no share to attach to again */
	f->socket = -1;
	assert_int_equal(pthread_create(&thread, NULL, scribble, &liar), 0);
	for (unsigned i = 0; i < 100000; i++) {
		uint8_t data[4096];
		struct sl_follow_element element = {0};
		uint64_t n = __atomic_load_n(&f->words->published, __ATOMIC_ACQUIRE) - 1;
		int err = sl_follow_fetch(f, n, i % 100, 0, data, &element);

		assert_true(err || element.note.rows[1] <= 10);
		(void)sl_follow_is_valid(f, n);
	}
	atomic_store(&liar.ends, true);
	pthread_join(thread, NULL);
	free(exact);
	f->memory = own;
	sl_follow_close(f);
	sl_share_close(share);
}

/* Memory that could shrink, or that is no memory, is not touched. */
static void test_memory_that_is_refused(void **state)
{
	struct sl_share *share = share_open("seals", 4);
	struct sl_share_header header;
	struct sl_share_memory memory;
	char why[SL_SHARE_WHY];
	int fd[2];

	fd[0] = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd[0], (off_t)share->memory.bytes), 0);
	assert_int_equal(pwrite(fd[0], share->memory.header, 8192, 0), 8192);
	assert_int_equal(sl_share_memory_map(fd, 1, &header, &memory, why, sizeof(why)), -EPROTO);
	fd[0] = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(fcntl(fd[0], F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(sl_share_memory_map(fd, 1, &header, &memory, why, sizeof(why)), -EPROTO);
	fd[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sl_share_memory_map(fd, 1, &header, &memory, why, sizeof(why)), -EPROTO);
	assert_int_equal(sl_share_memory_map(fd, 0, &header, &memory, why, sizeof(why)), -EPROTO);
	fd[0] = fcntl(share->memory.fd, F_DUPFD_CLOEXEC, 0);
	fd[1] = fcntl(share->memory.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(sl_share_memory_map(fd, 2, &header, &memory, why, sizeof(why)), -EPROTO);
	fd[0] = fcntl(share->memory.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(sl_share_memory_map(fd, 1, &header, &memory, why, sizeof(why)), 0);
	sl_share_memory_fini(&memory);
	sl_share_close(share);
}

/* ---- followers ---- */

static void dial_with(int fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int err = -1;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/shares/%s.sock", share_base, name);
	for (unsigned i = 0; i < 5000; i++) {
		err = connect(fd, (struct sockaddr *)&address, sizeof(address));
		if (!err || errno != EAGAIN)
			break;
		usleep(1000); /* as many as a listener keeps wait to be accepted */
	}
	assert_int_equal(err, 0);
}

static int dial(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	dial_with(fd, name);
	return fd;
}

static bool say(int fd, uint32_t type, uint64_t value, uint64_t bytes)
{
	const struct sl_share_frame head = {SL_SHARE_FRAME_MAGIC, type, value, bytes, 0};

	return send(fd, &head, sizeof(head), MSG_NOSIGNAL) == sizeof(head);
}

/* Whether the share hangs up. */
static bool is_closed(int fd)
{
	uint8_t bytes[4096];

	for (unsigned i = 0; i < 5000; i++) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0)
			usleep(1000);
	}
	return false;
}

/* The share goes on: for one that has attached, and for a new one. */
static void goes_on(struct sl_share *share, const char *name, struct sl_follower *old)
{
	struct sl_follow_element element;
	struct sl_follower *fresh = follower_open(name);
	uint64_t ns, n = share->n;
	uint32_t data[2048];

	share_push(share, n);
	assert_int_equal(sl_follow_next(old, SL_FOLLOW_NEWEST, 5000, data, sizeof(data), &element),
			 0);
	assert_true(share_is(&element, n));
	assert_int_equal(sl_follow_ping(old, 5000, &ns), 0);
	assert_int_equal(
		sl_follow_next(fresh, SL_FOLLOW_NEWEST, 5000, data, sizeof(data), &element), 0);
	assert_true(share_is(&element, n));
	sl_follow_close(fresh);
}

static void test_garbage(void **state)
{
	static const uint8_t garbage[200] = {1, 2, 3, 4, 5};
	struct sl_share *share = share_open("rubbish", 4);
	struct sl_follower *f = follower_open("rubbish");
	const struct sl_share_frame wrong[] = {
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION + 1, 0, 0},
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION, 1, 0},
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_MESSAGE, 1, 0, 0}, /* before HELLO */
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_ATTACHED, 1, 0, 0},
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_PONG, 1, 0, 0},
		{SL_SHARE_FRAME_MAGIC, 99, 1, 0, 0},
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_PING, 1, UINT64_MAX, 0},
		{SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_MESSAGE, 1, SL_SHARE_QUEUE_BYTES + 1, 0},
		{SL_SHARE_FRAME_MAGIC + 1, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION, 0, 0},
	};
	int fd = dial("rubbish");

	assert_int_equal(send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL), sizeof(garbage));
	assert_true(is_closed(fd));
	close(fd);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const uint8_t byte = 0;

		fd = dial("rubbish");
		assert_int_equal(send(fd, &wrong[i], sizeof(wrong[i]), MSG_NOSIGNAL),
				 sizeof(wrong[i]));
		send(fd, &byte, 1, MSG_NOSIGNAL); /* of a payload */
		if (!is_closed(fd))
			fail_msg("frame %u is taken", i);
		close(fd);
	}
	goes_on(share, "rubbish", f);
	sl_follow_close(f);
	sl_share_close(share);
}

/* More descriptors than a share has use for, with every byte: all are closed. The end of the test
 * counts those that are open. */
static void test_descriptors(void **state)
{
	struct sl_share *share = share_open("files", 4);
	struct sl_follower *f = follower_open("files");
	struct sl_share_frame ping = {SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_PING, 1, 0, 0};
	int fd = dial("files");

	for (unsigned i = 0; i < 3 * sizeof(ping); i++) {
		union {
			char bytes[CMSG_SPACE(8 * sizeof(int))];
			struct cmsghdr align;
		} control = {{0}};
		struct iovec piece = {(char *)&ping + i % sizeof(ping), 1};
		struct msghdr m = {.msg_iov = &piece,
				   .msg_iovlen = 1,
				   .msg_control = control.bytes,
				   .msg_controllen = sizeof(control.bytes)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		int fds[8] = {0, 0, 0, 0, 0, 0, 0, 0};

		*c = (struct cmsghdr){CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
		assert_int_equal(sendmsg(fd, &m, MSG_NOSIGNAL), 1);
	}
	goes_on(share, "files", f);
	close(fd);
	sl_follow_close(f);
	sl_share_close(share);
}

/* Hundreds of connections that never say HELLO, or half of it, do not keep a follower out. */
static void test_connections(void **state)
{
	enum { MANY = 300, AT_A_TIME = 100 };
	struct sl_share *share = share_open("crowd", 4);
	struct sl_follower *f = follower_open("crowd");
	const struct sl_share_frame hello = {SL_SHARE_FRAME_MAGIC, SL_SHARE_FRAME_HELLO,
					     SL_SHARE_VERSION, 0, 0};
	struct sl_share_counts counts;
	int fd[AT_A_TIME];

	for (unsigned i = 0; i < AT_A_TIME; i++)
		fd[i] = -1;
	for (unsigned i = 0; i < MANY; i++) {
		int *place = &fd[i % AT_A_TIME];

		if (*place >= 0)
			close(*place);
		*place = dial("crowd");
		send(*place, &hello, i % sizeof(hello), MSG_NOSIGNAL);
		share_push(share, i);
	}
	goes_on(share, "crowd", f);
	sl_share_count(share, &counts);
	assert_in_range(counts.peers, 1, SL_SHARE_PEERS);
	assert_true(counts.refused > 0);
	for (unsigned i = 0; i < AT_A_TIME; i++)
		close(fd[i]);
	goes_on(share, "crowd", f);
	sl_follow_close(f);
	sl_share_close(share);
}

/* Until the share reads no more of it. Returns how many frames went. */
static unsigned flood(int fd, uint32_t type, uint64_t value)
{
	unsigned sent = 0, idle = 0;

	while (idle < 100) {
		assert_true(sent < 10000000); /* it has no end */
		if (say(fd, type, value, 0)) {
			sent++;
			idle = 0;
		} else {
			assert_int_equal(errno, EAGAIN);
			idle++;
			usleep(1000);
		}
	}
	return sent;
}

static unsigned count_pongs(int fd, unsigned wanted)
{
	struct sl_share_frame head;
	unsigned got = 0;

	for (unsigned idle = 0; got < wanted && idle < 5000;) {
		ssize_t n = recv(fd, &head, sizeof(head), 0);

		if (n == (ssize_t)sizeof(head) && head.type == SL_SHARE_FRAME_PONG)
			got++;
		else
			usleep(1000);
		idle = n > 0 ? 0 : idle + 1;
	}
	return got;
}

/* One that asks and never reads: the share stops to read what it asks; when it reads at last, each
 * ping has its answer. */
static void test_questions(void **state)
{
	struct sl_share *share = share_open("asks", 4);
	struct sl_follower *f = follower_open("asks");
	int fd = dial("asks"), other = dial("asks");
	unsigned files = open_files(), sent;

	sent = flood(fd, SL_SHARE_FRAME_PING, 5);
	goes_on(share, "asks", f);
	assert_int_equal(count_pongs(fd, sent), sent);

	flood(other, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION);
	goes_on(share, "asks", f);
	assert_true(open_files() <= files + 4); /* those of one answer that waits */
	close(fd);
	close(other);
	sl_follow_close(f);
	sl_share_close(share);
}

static void wait_for_sleepers(struct sl_share *share, uint32_t wanted)
{
	for (unsigned i = 0; i < 5000 && atomic_load(&share->sleepers) != wanted; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&share->sleepers), wanted);
}

/* A follower that sleeps is counted once, however often it says so. */
static void test_sleepers(void **state)
{
	static const uint64_t said[] = {0, 0, 1, 1, 7, 0, 0, 1};
	struct sl_share *share = share_open("naps", 4);
	struct sl_follower *f = follower_open("naps");
	const uint32_t *wake = &share->memory.header->words.wake;
	int fd = dial("naps");
	uint32_t before = *wake;
	uint64_t ns;

	for (unsigned i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		assert_true(say(fd, SL_SHARE_FRAME_SLEEPS, said[i], 0));
		assert_true(say(fd, SL_SHARE_FRAME_PING, i, 0));
		assert_int_equal(count_pongs(fd, 1), 1);
		assert_int_equal(atomic_load(&share->sleepers), said[i] != 0);
	}
	assert_int_equal(sl_follow_ping(f, 5000, &ns), 0);
	assert_int_equal(*wake - before, 2); /* it woke twice, to look once more */
	share_push(share, 0);
	assert_int_equal(*wake - before, 3);
	close(fd);
	wait_for_sleepers(share, 0);
	share_push(share, 1);
	assert_int_equal(*wake - before, 3);
	sl_follow_close(f);
	sl_share_close(share);
}

/* A follower that has slept, and polls from then on, costs the writer no further system calls; when
 * it sleeps again, it is woken. */
static void test_one_that_sleeps_no_longer(void **state)
{
	struct sl_share *share = share_open("polls", 4);
	struct sl_follower *f = follower_open("polls");
	const uint32_t *wake = &share->memory.header->words.wake;
	struct sl_follow_element element;
	uint32_t data[2048], before;
	uint64_t ns;

	for (unsigned round = 0; round < 2; round++) {
		uint64_t first = share->n;

		assert_int_equal(
			sl_follow_next(f, SL_FOLLOW_NEWEST, 5, data, sizeof(data), &element),
			-ETIMEDOUT);
		wait_for_sleepers(share, 1);
		for (uint64_t n = first; n < first + 1500; n++) {
			share_push(share, n);
			assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 0, data, sizeof(data),
							&element),
					 0);
		}
		wait_for_sleepers(share, 0);
		assert_int_equal(sl_follow_ping(f, 5000, &ns), 0);
		before = __atomic_load_n(wake, __ATOMIC_RELAXED);
		share_push(share, first + 1500);
		usleep(1000);
		share_push(share, first + 1501);
		assert_int_equal(__atomic_load_n(wake, __ATOMIC_RELAXED), before);
		assert_int_equal(
			sl_follow_next(f, SL_FOLLOW_NEWEST, 0, data, sizeof(data), &element), 0);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

/* A writer without a free descriptor: connections wait, and are served once there is one. */
static void test_no_descriptor_is_free(void **state)
{
	struct sl_share *share = share_open("files", 4);
	struct sl_follower *f = follower_open("files");
	struct rlimit limit, none;
	uint64_t ns;
	int fd = dial("files"), next;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(say(fd, SL_SHARE_FRAME_PING, 1, 0)); /* it is accepted */
	assert_int_equal(count_pongs(fd, 1), 1);
	next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	none = limit;
	none.rlim_cur = (rlim_t)next + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	dial_with(next, "files");
	assert_true(say(next, SL_SHARE_FRAME_PING, 2, 0));
	assert_true(say(fd, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION, 0));
	assert_true(is_closed(fd)); /* no copy of its memory's descriptor can be made */
	close(fd);
	assert_int_equal(sl_follow_ping(f, 5000, &ns), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(count_pongs(next, 1), 1);
	goes_on(share, "files", f);
	close(next);
	sl_follow_close(f);
	sl_share_close(share);
}

/* Messages without a byte have a limit, too; none that was taken is lost when their sender goes. */
static void test_empty_messages(void **state)
{
	struct sl_share_options options = share_options(4);
	struct sl_share_counts counts;
	struct sl_share_message m;
	struct sl_share *share;
	struct sl_follower *f;
	unsigned sent, got = 0;
	int fd;

	options.queue_bytes = 64 * 100;
	assert_int_equal(sl_share_open("empty", &options, &share, NULL), 0);
	f = follower_open("empty");
	fd = dial("empty");
	assert_true(say(fd, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION, 0));
	sent = flood(fd, SL_SHARE_FRAME_MESSAGE, 3);
	sl_share_count(share, &counts);
	assert_int_equal(counts.messages_in, 101);
	goes_on(share, "empty", f);
	close(fd); /* with its answer unread: the share cannot send to it any longer */
	sl_share_send(share, 0, 1, "x", 1);
	while (sl_share_receive(share, 1000, &m) == 0) {
		assert_int_equal(m.kind, 3);
		assert_int_equal(m.bytes, 0);
		assert_null(m.data);
		got++;
	}
	assert_int_equal(got, sent);

	/* The other way: a follower that receives none. */
	for (got = 0; sl_share_send(share, 2, 1, NULL, 0) == 0; got++)
		assert_true(got < 1000000);
	sl_follow_close(f);
	sl_share_close(share);
}

/* A follower whose messages the writer does not take gets its elements all the same. */
static void test_full_queue(void **state)
{
	struct sl_share_options options = share_options(4);
	struct sl_follow_element element;
	static uint8_t block[1 << 20];
	struct sl_share *share;
	struct sl_follower *f;
	uint32_t data[2048];

	options.queue_bytes = sizeof(block);
	assert_int_equal(sl_share_open("deaf", &options, &share, NULL), 0);
	f = follower_open("deaf");
	while (sl_follow_send(f, 1, block, sizeof(block), 20) == 0)
		;
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, sizeof(data), &element),
			 -ETIMEDOUT);
	for (uint64_t n = 0; n < 10; n++) {
		share_push(share, n);
		assert_int_equal(
			sl_follow_next(f, SL_FOLLOW_EVERY, -1, data, sizeof(data), &element), 0);
		assert_true(share_is(&element, n));
	}
	sl_follow_close(f);
	sl_share_close(share);
}

/* A share that has ended, and whose socket still answers, is no share any longer: a follower that
 * looks for the next one of that name must not get the last element once more. */
static void test_an_end_that_answers(void **state)
{
	struct sl_share *share = share_open("ended", 4);
	struct sl_follower *f;

	share_push(share, 0);
	__atomic_store_n(&share->memory.header->words.state, SL_SHARE_ENDED, __ATOMIC_RELEASE);
	assert_int_equal(sl_follow_open("ended", NULL, &f, NULL), -ENOENT);
	sl_share_close(share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_writer_that_changes_its_words),
		TEST(test_nothing_outside_is_read),
		TEST(test_memory_that_is_refused),
		TEST(test_garbage),
		TEST(test_descriptors),
		TEST(test_connections),
		TEST(test_questions),
		TEST(test_sleepers),
		TEST(test_one_that_sleeps_no_longer),
		TEST(test_no_descriptor_is_free),
		TEST(test_empty_messages),
		TEST(test_full_queue),
		TEST(test_an_end_that_answers),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
