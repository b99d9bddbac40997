/* share_test.c - a share and its followers in one process: elements in order, missed ones counted,
 * another layout, ends and crashes, messages. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/sanitized.h"
#include "lib/share_rig.h"

static uint32_t data[2048];

static int next(struct sl_follower *f, enum sl_follow_mode mode, struct sl_follow_element *element)
{
	return sl_follow_next(f, mode, 2000, data, sizeof(data), element);
}

static void test_every_element(void **state)
{
	struct sl_share *share = share_open("every", 8);
	struct sl_follower *f = follower_open("share:every");
	const struct sl_share_description *d = sl_follow_describe(f);
	struct sl_follow_element element;

	assert_int_equal(d->count, 8);
	assert_int_equal(d->arrays, 2);
	assert_string_equal(d->array[0].name, "image");
	assert_string_equal(d->array[0].unit, "photons");
	assert_int_equal(d->array[1].dim[0], 10);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, sizeof(data), &element),
			 -ETIMEDOUT);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 20, data, 100, &element), -ERANGE);
	for (uint64_t n = 0; n < 100; n++) {
		share_push(share, n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
		assert_int_equal(element.missed, 0);
		assert_true(element.note.commit_unix_ns > UINT64_C(1600000000000000000));
		assert_int_equal(*sl_follow_flag(f), n + 1);
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
	struct sl_share *share = share_open("slow", 8);
	struct sl_follower *f = follower_open("slow");
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
	assert_in_range(got, 5, 9);

	for (uint64_t n = 100; n < 130; n++)
		share_push(share, n);
	assert_int_equal(next(f, SL_FOLLOW_NEWEST, &element), 0);
	assert_true(share_is(&element, 129));
	assert_int_equal(element.missed, 29);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 10, data, sizeof(data), &element),
			 -ETIMEDOUT);
	sl_follow_close(f);
	sl_share_close(share);
}

/* One that is behind by a whole ring skips a quarter of it: the writer takes the oldest next. */
static void test_far_behind(void **state)
{
	static const struct {
		uint64_t places, behind, n;
	} cases[] = {{8, 7, 1}, {8, 8, 3}, {8, 9, 4}, {2, 1, 1}, {2, 2, 2}, {1, 1, 1}, {3, 3, 2}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_share *share = share_open("behind", cases[i].places);
		struct sl_follower *f = follower_open("behind");
		struct sl_follow_element element;

		share_push(share, 0);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		for (uint64_t n = 0; n < cases[i].behind; n++)
			share_push(share, 1 + n);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_int_equal(element.n, cases[i].n);
		assert_int_equal(element.missed, cases[i].n - 1);
		sl_follow_close(f);
		sl_share_close(share);
	}
}

/* A follower that comes late begins with the newest element. */
static void test_the_first_one(void **state)
{
	struct sl_share *share = share_open("late", 4);
	struct sl_follow_element element;
	struct sl_follower *f;

	for (uint64_t n = 0; n < 3; n++)
		share_push(share, n);
	f = follower_open("late");
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 2));
	assert_int_equal(element.missed, 0);
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_views_and_parts(void **state)
{
	struct sl_share *share = share_open("views", 4);
	struct sl_follower *f = follower_open("views");
	struct sl_follow_element element;
	uint32_t part[10];

	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -ENODATA);
	share_push(share, 0);
	assert_int_equal(sl_follow_peek(f, SL_FOLLOW_EVERY, 1000, &element), 0);
	assert_true(share_is(&element, 0));
	assert_true(sl_follow_is_valid(f, 0));
	assert_false(sl_follow_is_valid(f, 1));
	for (uint64_t n = 1; n < 4; n++)
		share_push(share, n);
	assert_true(sl_follow_is_valid(f, 0));
	sl_share_reserve(share); /* its place is being written now */
	assert_false(sl_follow_is_valid(f, 0));
	assert_true(sl_follow_is_valid(f, 1));
	assert_int_equal(sl_share_commit(share), 4);

	assert_int_equal(sl_follow_fetch(f, 2, 40, sizeof(part), part, &element), 0);
	assert_int_equal(part[0], 2);
	assert_int_equal(element.note.number, 1002);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 4, part, &element), -ESTALE);
	assert_int_equal(sl_follow_fetch(f, 5, 0, 4, part, &element), -ENODATA);
	assert_int_equal(sl_follow_fetch(f, 2, 1, UINT64_MAX, part, &element), -ERANGE);
	assert_int_equal(sl_follow_fetch(f, 2, UINT64_MAX, 1, part, &element), -ERANGE);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_int_equal(element.n, 4);
	sl_follow_close(f);
	sl_share_close(share);
}

/* Nobody who follows can write: not through its mapping, not through a new one. */
static void test_followers_cannot_write(void **state)
{
	struct sl_share *share = share_open("safe", 4);
	struct sl_follower *f = follower_open("safe");
	struct sl_follow_element element;
	pid_t child;
	int status;

	share_push(share, 0);
	assert_int_equal(sl_follow_peek(f, SL_FOLLOW_EVERY, 1000, &element), 0);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile uint32_t *)(uintptr_t)element.data = 7;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || (SANITIZED && WEXITSTATUS(status)));
	for (int fd = 0; fd < 64;
	     fd++) { /* those of the share and of the follower are among them */
		char path[40], where[80] = "";
		int again;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, where, sizeof(where) - 1) < 0 || !strstr(where, "sluice-share"))
			continue;
		again = open(path, O_RDWR | O_CLOEXEC);
		if (again >= 0) {
			assert_ptr_equal(
				mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
				MAP_FAILED);
			assert_int_equal(pwrite(again, "x", 1, 0), -1);
			assert_int_equal(ftruncate(again, 0), -1);
			close(again);
		}
	}
	assert_true(share_is(&element, 0));
	sl_follow_close(f);
	sl_share_close(share);
}

/* The newest element is that of the share, not of memory which it has left. */
static void test_the_newest_of_another_layout(void **state)
{
	struct sl_share *share = share_open("fetched", 4);
	struct sl_follower *f = follower_open("fetched");
	struct sl_share_options options = share_options(2);
	struct sl_follow_element element;

	share_push(share, 0);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	share_push(share, 1);
	assert_int_equal(sl_follow_fetch(f, 0, 0, 0, data, &element), 0); /* it is still there */
	assert_int_equal(element.n, 0);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -ESTALE);
	assert_int_equal(sl_follow_describe(f)->generation, 2);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_true(share_is(&element, 1));
	assert_int_equal(sl_follow_fetch(f, 0, 0, 0, data, &element), -ESTALE);
	sl_share_close(share);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -EPIPE);
	assert_int_equal(sl_follow_fetch(f, 1, 0, 0, data, &element), 0);
	sl_follow_close(f);
}

/* A region of one place that is being written is waited for; it is not an error. */
static void test_one_place_is_filled(void **state)
{
	const struct sl_follow_options options = {.bytes = sizeof(options), .timeout_ms = 100};
	struct sl_share *share = share_open("region", 1);
	struct sl_follow_element element;
	struct sl_follower *f;

	assert_int_equal(sl_follow_open("region", &options, &f, NULL), 0);

	share_push(share, 0);
	sl_share_reserve(share);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 20, data, sizeof(data), &element),
			 -ETIMEDOUT);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -EAGAIN);
	share_push(share, 1);
	assert_int_equal(next(f, SL_FOLLOW_NEWEST, &element), 0);
	assert_true(share_is(&element, 1));
	assert_int_equal(element.missed, 0); /* it is the first that this follower got */
	sl_share_reserve(share);
	assert_int_equal(sl_share_commit(share), 2);
	sl_share_reserve(share);
	assert_int_equal(sl_share_push(share, NULL, NULL), 3);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(element.n, 3);
	assert_int_equal(element.missed, 1);
	sl_follow_close(f);
	sl_share_close(share);
}

static void *fill_slowly(void *share)
{
	usleep(400000);
	share_push(share, 1);
	return NULL;
}

/* However long the writer takes to fill the only place: a fetch waits for it. */
static void test_a_fetch_waits_until_it_is_filled(void **state)
{
	const struct sl_follow_options options = {.bytes = sizeof(options), .timeout_ms = 60000};
	struct sl_share *share = share_open("slow", 1);
	struct sl_follow_element element;
	struct sl_follower *f;
	pthread_t thread;

	assert_int_equal(sl_follow_open("slow", &options, &f, NULL), 0);
	share_push(share, 0);
	sl_share_reserve(share);
	assert_int_equal(pthread_create(&thread, NULL, fill_slowly, share), 0);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_true(share_is(&element, 1));
	pthread_join(thread, NULL);
	sl_share_reserve(share);
	sl_share_close(share); /* it will never be filled */
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -EPIPE);
	sl_follow_close(f);
}

/* More rows than there can be are as many as there can be, on both sides. */
static void test_too_many_rows(void **state)
{
	struct sl_share *share = share_open("rows", 4);
	struct sl_follower *f = follower_open("rows");
	struct sl_share_note note = {.rows = {0, 11}};
	struct sl_follow_element element;
	const float spots[20] = {0};
	const void *from[] = {NULL, spots};

	assert_int_equal(sl_share_push(share, &note, from), 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(element.note.rows[1], 10);
	for (uint32_t rows = 9; rows < 11; rows++) {
		note.rows[1] = rows;
		sl_share_push(share, &note, from);
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_int_equal(element.note.rows[1], rows);
	}
	assert_false(sl_follow_is_valid(f, UINT64_MAX));
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_another_layout(void **state)
{
	struct sl_share *share = share_open("moves", 4);
	struct sl_follower *f = follower_open("moves");
	struct sl_share_options options = share_options(2);
	const struct sl_share_array larger = {
		.name = "wide", .type = "<f8", .rank = 1, .dim = {700}};
	struct sl_follow_element element;
	struct sl_remote_error error;
	double wide[700];
	const void *from[] = {wide};

	share_push(share, 0);
	share_push(share, 1);
	options.array = &larger;
	options.arrays = 1;
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	for (unsigned i = 0; i < 700; i++)
		wide[i] = 2.5;
	assert_int_equal(sl_share_push(share, NULL, from), 2);

	/* First what was published before. */
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 0));
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_true(share_is(&element, 1));
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ESTALE);
	assert_int_equal(sl_follow_describe(f)->generation, 2);
	assert_string_equal(sl_follow_describe(f)->array[0].name, "wide");
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(element.n, 2);
	assert_int_equal(element.missed, 0);
	assert_memory_equal(element.data, wide, sizeof(wide));

	options.count = 0;
	assert_int_equal(sl_share_resize(share, &options, &error), -EINVAL);
	assert_non_null(strstr(error.message, "stays as it was"));
	assert_int_equal(sl_share_push(share, NULL, from), 3);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	sl_follow_close(f);
	sl_share_close(share);
}

/* One that never waits asks once for each generation, and gets what it asked for. */
static void test_another_layout_without_waiting(void **state)
{
	const struct sl_share_options options = share_options(4);
	struct sl_share *share = share_open("polls", 4);
	struct sl_follower *f = follower_open("polls");
	struct sl_follow_element element;

	for (uint64_t n = 0; n < 5; n++) {
		int err;

		share_push(share, n);
		do
			err = sl_follow_next(f, SL_FOLLOW_EVERY, 0, data, sizeof(data), &element);
		while (err == -ETIMEDOUT);
		assert_int_equal(err, 0);
		assert_true(share_is(&element, n));
		assert_int_equal(sl_share_resize(share, &options, NULL), 0);
		do
			err = sl_follow_next(f, SL_FOLLOW_EVERY, 0, data, sizeof(data), &element);
		while (err == -ETIMEDOUT);
		assert_int_equal(err, -ESTALE);
		assert_int_equal(sl_follow_describe(f)->generation, n + 2);
	}
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_memory_of_the_application(void **state)
{
	enum { BYTES = 1 << 20 };
	int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sl_share_options options = share_options(4);
	struct sl_follow_element element;
	struct sl_remote_error error;
	struct sl_share *share;
	struct sl_follower *f;
	uint32_t *mine;

	assert_int_equal(ftruncate(fd, BYTES), 0);
	mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	options.memory_fd = fd;
	options.memory_offset = 8192;
	options.count = 1;
	if (sl_share_open("mine", &options, &share, &error))
		fail_msg("%s", error.message);
	f = follower_open("mine");
	sl_share_reserve(share);
	for (unsigned i = 0; i < SHARE_IMAGE; i++)
		mine[2048 + i] = 77;
	sl_share_commit(share);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(data[SHARE_IMAGE - 1], 77);
	sl_follow_close(f);
	sl_share_close(share);

	options.count = 1000; /* more than it has */
	assert_int_equal(sl_share_open("mine", &options, &share, &error), -EINVAL);
	assert_non_null(strstr(error.message, "memory_fd has 1048576 bytes"));
	munmap(mine, BYTES);
	close(fd);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	options.memory_fd = fd;
	assert_int_equal(sl_share_open("mine", &options, &share, &error), -EINVAL);
	close(fd);
	/* A file in shared memory that anybody could truncate. */
	fd = shm_open("/sluice-share-test", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	shm_unlink("/sluice-share-test");
	assert_int_equal(ftruncate(fd, BYTES), 0);
	options.memory_fd = fd;
	options.count = 1;
	assert_int_equal(sl_share_open("mine", &options, &share, &error), -EINVAL);
	assert_non_null(strstr(error.message, "must be a memfd"));
	close(fd);
}

static void test_ends(void **state)
{
	struct sl_share *share = share_open("ends", 4);
	struct sl_follower *f = follower_open("ends");
	struct sl_follow_element element;

	share_push(share, 0);
	share_push(share, 1);
	sl_share_close(share);
	for (uint64_t n = 0; n < 2; n++) { /* what is there can still be read */
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
		assert_true(share_is(&element, n));
	}
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -EPIPE);
	sl_follow_close(f);
}

/* The end is no crash, either, for one that has not seen the last layout. */
static void test_ends_elsewhere(void **state)
{
	const struct sl_share_options options = share_options(2);
	struct sl_share *share = share_open("leaves", 4);
	struct sl_follower *f = follower_open("leaves");
	struct sl_follow_element element;

	share_push(share, 0);
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	sl_share_close(share);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -EPIPE);
	sl_follow_close(f);
}

static void test_a_crash(void **state)
{
	int up[2];
	struct sl_follow_element element;
	struct sl_follower *f;
	struct sl_share *share;
	pid_t child;
	char byte;

	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		share = share_open("crash", 4);
		share_push(share, 0);
		if (write(up[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	f = follower_open("crash");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), -ECONNRESET);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
	share = share_open("crash", 4); /* its name is free */
	sl_share_close(share);
}

static void test_names(void **state)
{
	const struct sl_share_options options = share_options(4);
	struct sl_share *share = share_open("one", 4), *other = share_open("two", 4);
	static const char *const sorted[] = {"a", "b", "c", "one", "two"};
	struct sl_share *more[3] = {share_open("b", 1), share_open("c", 1), share_open("a", 1)};
	struct sl_remote_error error;
	struct sl_follower *f;
	char(*names)[64];
	size_t n;

	assert_int_equal(sl_share_open("one", &options, &share, &error), -EEXIST);
	assert_non_null(strstr(error.message, "exists already"));
	assert_int_equal(sl_share_open("../one", &options, &share, &error), -EINVAL);
	assert_int_equal(sl_follow_open("share:none", NULL, &f, &error), -ENOENT);
	assert_non_null(strstr(error.message, "no share is called 'none'"));
	assert_int_equal(sl_follow_open("tcp://x", NULL, &f, &error), -EINVAL);
	assert_int_equal(sl_share_list(&names, &n), 0);
	assert_int_equal(n, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_string_equal(names[i], sorted[i]);
	sl_remote_free(names);
	for (unsigned i = 0; i < 3; i++)
		sl_share_close(more[i]);
	sl_share_close(share);
	sl_share_close(other);
	assert_int_equal(sl_share_list(&names, &n), 0);
	assert_int_equal(n, 0);
	sl_remote_free(names);
}

static void test_messages(void **state)
{
	enum { LARGE = 10 << 20 };
	struct sl_share *share = share_open("talks", 4);
	struct sl_follower *a = follower_open("talks"), *b = follower_open("talks");
	struct sl_share_message m;
	struct sl_share_counts counts;
	uint8_t *large = malloc(LARGE);
	uint64_t first, rtt;

	for (unsigned i = 0; i < LARGE; i++)
		large[i] = (uint8_t)(i * 7);
	assert_int_equal(sl_share_receive(share, 10, &m), -ETIMEDOUT);
	assert_int_equal(sl_share_receive(share, 0, &m), -ETIMEDOUT);
	assert_int_equal(sl_follow_receive(a, 10, &m), -ETIMEDOUT);
	assert_int_equal(sl_follow_send(a, 5, "hello", 5, 1000), 0);
	assert_int_equal(sl_share_receive(share, 2000, &m), 0);
	assert_int_equal(m.bytes, 5);
	assert_int_equal(m.kind, 5);
	assert_memory_equal(m.data, "hello", 5);
	sl_remote_free(m.data);
	first = m.peer;
	assert_int_equal(sl_follow_send(b, 6, NULL, 0, 1000), 0);
	assert_int_equal(sl_share_receive(share, 2000, &m), 0);
	assert_int_equal(m.bytes, 0);
	assert_true(m.peer != first);

	assert_int_equal(sl_share_send(share, first, 9, large, LARGE), 0);
	assert_int_equal(sl_follow_receive(a, 5000, &m), 0);
	assert_int_equal(m.bytes, LARGE);
	assert_int_equal(m.kind, 9);
	assert_memory_equal(m.data, large, LARGE);
	sl_remote_free(m.data);
	assert_int_equal(sl_follow_receive(b, 10, &m), -ETIMEDOUT);
	assert_int_equal(sl_share_send(share, 0, 1, "all", 3), 0);
	assert_int_equal(sl_follow_receive(a, 2000, &m), 0);
	sl_remote_free(m.data);
	assert_int_equal(sl_follow_receive(b, 2000, &m), 0);
	sl_remote_free(m.data);
	assert_int_equal(sl_share_send(share, 99, 1, "x", 1), -ENOENT);
	assert_int_equal(sl_follow_ping(a, 2000, &rtt), 0);
	assert_in_range(rtt, 1, 2000000000);
	sl_share_count(share, &counts);
	assert_int_equal(counts.peers, 2);
	assert_int_equal(counts.messages_in, 2);
	assert_int_equal(counts.messages_out, 3);
	free(large);
	sl_follow_close(a);
	sl_follow_close(b);
	sl_share_close(share);
}

static void *send_much(void *arg)
{
	uint8_t *block = calloc(1, 1 << 20);

	for (uint32_t i = 0; i < 20; i++)
		if (sl_follow_send(arg, i, block, 1 << 20, 20000))
			abort();
	free(block);
	return NULL;
}

/* Queues have an end in both directions, and what was accepted arrives in order. */
static void test_back_pressure(void **state)
{
	struct sl_share_options options = share_options(2);
	struct sl_share_message m;
	struct sl_follower *f;
	struct sl_share *share;
	pthread_t thread;
	uint32_t sent = 0;
	static uint8_t block[1 << 20];

	options.queue_bytes = 4 << 20;
	assert_int_equal(sl_share_open("full", &options, &share, NULL), 0);
	f = follower_open("full");
	assert_int_equal(sl_share_send(share, 0, 0, block, 5 << 20), -EMSGSIZE);
	while (sl_share_send(share, 1, sent, block, sizeof(block)) == 0)
		sent++;
	assert_in_range(sent, 4, 8);
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(sl_follow_receive(f, 5000, &m), 0);
		assert_int_equal(m.kind, i);
		sl_remote_free(m.data);
	}

	for (sent = 0; sl_follow_send(f, sent, block, sizeof(block), 50) == 0; sent++)
		assert_true(sent < 20);
	assert_in_range(sent, 4, 8);
	for (uint32_t i = 0; i < sent; i++) {
		struct sl_share_message none;

		/* The rest of the last one goes with further calls of the follower. */
		while (sl_share_receive(share, 100, &m))
			assert_int_equal(sl_follow_receive(f, 10, &none), -ETIMEDOUT);
		assert_int_equal(m.kind, i);
		sl_remote_free(m.data);
	}
	assert_int_equal(pthread_create(&thread, NULL, send_much, f), 0);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(sl_share_receive(share, 20000, &m), 0);
		assert_int_equal(m.kind, i);
		sl_remote_free(m.data);
	}
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(share);
}

static void test_too_many_followers(void **state)
{
	struct sl_share_options options = share_options(2);
	struct sl_follower *a, *b;
	struct sl_remote_error error;
	struct sl_share *share;

	options.max_peers = 1;
	assert_int_equal(sl_share_open("few", &options, &share, NULL), 0);
	a = follower_open("few");
	assert_int_equal(sl_follow_open("few", NULL, &b, &error), -ECONNRESET);
	assert_non_null(strstr(error.message, "as many followers as it takes"));
	sl_follow_close(a);
	for (unsigned i = 0; i < 200 && sl_follow_open("few", NULL, &b, &error); i++)
		usleep(10000);
	sl_follow_close(b);
	sl_share_close(share);
}

/* All at once: more than a listener keeps waiting. */
static void test_many_followers(void **state)
{
	enum { MANY = 40 };
	struct sl_share *share = share_open("many", 4);
	pid_t child[MANY];
	int status;

	for (unsigned i = 0; i < MANY; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			struct sl_follower *f;
			struct sl_follow_element element;

			if (sl_follow_open("many", NULL, &f, NULL))
				_exit(1);
			_exit(sl_follow_next(f, SL_FOLLOW_NEWEST, 20000, data, sizeof(data),
					     &element)
				      ? 2
				      : 0);
		}
	}
	share_push(share, 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	sl_share_close(share);
}

enum { SENDERS = 4, LETTERS = 200 };

static void *send_letters(void *arg)
{
	static _Atomic uint32_t numbers;
	uint32_t kind = numbers++ % SENDERS;

	for (uint32_t i = 0; i < LETTERS; i++)
		while (sl_share_send(arg, 1, kind, &i, sizeof(i)) == -EAGAIN)
			usleep(1000);
	return NULL;
}

/* Threads of the application send at the same time: messages of each stay in order. What was sent
 * before the end arrives. */
static void test_senders(void **state)
{
	struct sl_share_options options = share_options(2);
	uint32_t next_of[SENDERS] = {0};
	pthread_t thread[SENDERS];
	struct sl_share_message m;
	struct sl_follower *f;
	struct sl_share *share;

	options.queue_bytes = 640; /* 11 messages */
	assert_int_equal(sl_share_open("senders", &options, &share, NULL), 0);
	f = follower_open("senders");
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_letters, share), 0);
	for (unsigned i = 0; i < SENDERS * LETTERS; i++) {
		assert_int_equal(sl_follow_receive(f, 20000, &m), 0);
		assert_true(m.kind < SENDERS && m.bytes == sizeof(uint32_t));
		assert_int_equal(*(uint32_t *)m.data, next_of[m.kind]++);
		sl_remote_free(m.data);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sl_share_send(share, 0, 77, "last", 4), 0);
	sl_share_close(share);
	assert_int_equal(sl_follow_receive(f, 5000, &m), 0);
	assert_int_equal(m.kind, 77);
	sl_remote_free(m.data);
	assert_int_equal(sl_follow_receive(f, 5000, &m), -EPIPE);
	sl_follow_close(f);
}

struct woken {
	struct sl_share *share;
	uint64_t pushed;
};

static void *push_slowly(void *arg)
{
	struct woken *w = arg;

	for (; w->pushed < 40; w->pushed++) {
		usleep(w->pushed % 4 ? 100 : 3000);
		share_push(w->share, w->pushed);
	}
	return NULL;
}

/* A follower that sleeps gets every element, also those that come right behind another. */
static void test_sleepers_are_woken(void **state)
{
	struct woken w = {share_open("sleeps", 64), 0};
	struct sl_follower *f = follower_open("sleeps");
	struct sl_follow_element element;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, push_slowly, &w), 0);
	for (uint64_t n = 0; n < 40; n++) {
		assert_int_equal(
			sl_follow_next(f, SL_FOLLOW_EVERY, 20000, data, sizeof(data), &element), 0);
		assert_true(share_is(&element, n));
	}
	pthread_join(thread, NULL);
	sl_follow_close(f);
	sl_share_close(w.share);
}

static int count_to_five(void *arg, const struct sl_share_description *description,
			 const struct sl_follow_element *element)
{
	uint64_t *got = arg;

	assert_string_equal(description->array[0].name, "image");
	assert_true(share_is(element, *got));
	return ++*got == 5 ? 55 : 0;
}

static void test_each(void **state)
{
	struct sl_share *share = share_open("each", 8);
	struct sl_follower *f = follower_open("each");
	uint64_t got = 0;

	for (uint64_t n = 0; n < 5; n++)
		share_push(share, n);
	assert_int_equal(sl_follow_each(f, SL_FOLLOW_EVERY, 2000, count_to_five, &got), 55);
	assert_int_equal(got, 5);
	sl_follow_close(f);
	sl_share_close(share);
}

/* The share's thread and a follower that waits use no CPU time worth mentioning, also after they
 * were busy. */
static void test_idle(void **state)
{
	struct sl_share *share = share_open("idle", 4);
	struct sl_follower *f = follower_open("idle");
	struct sl_follow_element element;
	struct timespec from, to;
	uint64_t rtt;

	share_push(share, 0);
	assert_int_equal(next(f, SL_FOLLOW_EVERY, &element), 0);
	assert_int_equal(sl_share_send(share, 0, 1, "x", 1), 0);
	assert_int_equal(sl_follow_ping(f, 2000, &rtt), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 300, data, sizeof(data), &element),
			 -ETIMEDOUT);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_true((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec < 100000000);
	sl_follow_close(f);
	sl_share_close(share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_every_element),
		TEST(test_overtaken_elements_are_counted),
		TEST(test_far_behind),
		TEST(test_the_first_one),
		TEST(test_views_and_parts),
		TEST(test_followers_cannot_write),
		TEST(test_the_newest_of_another_layout),
		TEST(test_one_place_is_filled),
		TEST(test_a_fetch_waits_until_it_is_filled),
		TEST(test_too_many_rows),
		TEST(test_another_layout),
		TEST(test_another_layout_without_waiting),
		TEST(test_memory_of_the_application),
		TEST(test_ends),
		TEST(test_ends_elsewhere),
		TEST(test_a_crash),
		TEST(test_names),
		TEST(test_messages),
		TEST(test_back_pressure),
		TEST(test_too_many_followers),
		TEST(test_many_followers),
		TEST(test_senders),
		TEST(test_sleepers_are_woken),
		TEST(test_each),
		TEST(test_idle),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
