/* race_test.c - a writer at full speed and followers that it overtakes: threads, processes, rings
 * of few places, other layouts on the way. Every word of an element is made of its number, so that
 * a mixed element shows.
 *
 * ThreadSanitizer knows memory by its address, and a follower maps the share once more. In its
 * build followers look through the writer's mapping: so it sees all that they share. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/sanitized.h"
#include "lib/share_rig.h"
#include "share/follower.h"

enum { WORDS = 96, MOST_WORDS = 2 * WORDS };

#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1, ELEMENTS = 1000, MOST_PLACES = 2 };
#else
enum { THREAD_SANITIZER = 0, ELEMENTS = SANITIZED ? 10000 : 24000, MOST_PLACES = 3 };
#endif

static uint64_t mix(uint64_t n, uint64_t i)
{
	uint64_t x = (n + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xd1b54a32d192ed03);

	return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* ---- the writer ---- */

static struct sl_share_array words_of(uint32_t words)
{
	return (struct sl_share_array){.name = "words", .type = "<u8", .rank = 1, .dim = {words}};
}

static struct sl_share_options options_of(const struct sl_share_array *array, uint64_t places)
{
	return (struct sl_share_options){
		.bytes = sizeof(struct sl_share_options),
		.arrays = 1,
		.array = array,
		.count = places,
	};
}

static struct sl_share *open_ring(const char *name, uint64_t places)
{
	const struct sl_share_array array = words_of(WORDS);
	const struct sl_share_options options = options_of(&array, places);
	struct sl_remote_error error;
	struct sl_share *share = NULL;

	if (sl_share_open(name, &options, &share, &error))
		fail_msg("%s", error.message);
	return share;
}

static void push(struct sl_share *share, uint64_t n)
{
	uint32_t words = sl_share_describe(share)->array[0].dim[0];
	struct sl_share_note note = {.number = mix(n, 1000)};
	uint64_t data[MOST_WORDS];
	const void *from[] = {data};

	for (unsigned i = 0; i < SL_SHARE_USER; i++)
		note.user[i] = mix(n, 2000 + i);
	for (uint32_t i = 0; i < words; i++)
		data[i] = mix(n, i);
	assert_int_equal(sl_share_push(share, &note, from), n);
}

/* Now and then it lets others run: one that never does shows followers of one place nothing. */
static void push_many(struct sl_share *share, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		push(share, n);
		if (mix(n, 7) % 64 == 0)
			sched_yield();
		if (mix(n, 8) % 1024 == 0)
			usleep(200);
	}
}

/* ---- followers ---- */

enum way { EVERY, NEWEST, VIEW, FETCH, WAYS };

struct watcher {
	struct sl_follower *follower;
	const struct sl_share *through; /* look through its mapping; NULL: through one's own */
	enum way way;
	uint64_t last; /* n of the element that is the last one */
	/* what it found */
	const char *problem;
	uint64_t first, got, missed, at, stale, invalid;
};

static const char *check_words(const struct sl_follow_element *element, const uint64_t *data,
			       uint32_t words)
{
	if (element->note.number != mix(element->n, 1000))
		return "the note is of another element";
	for (unsigned i = 0; i < SL_SHARE_USER; i++)
		if (element->note.user[i] != mix(element->n, 2000 + i))
			return "a part of the note is of another element";
	for (uint32_t i = 0; i < words; i++)
		if (data[i] != mix(element->n, i))
			return "a word is of another element";
	return NULL;
}

static void count(struct watcher *w, const struct sl_follow_element *element)
{
	if (w->got && element->n <= w->at)
		w->problem = "n does not rise";
	if (w->got && element->n - w->at - 1 != element->missed)
		w->problem = "missed elements were miscounted";
	w->first = w->got ? w->first : element->n;
	w->missed += element->missed;
	w->at = element->n;
	w->got++;
}

/* One element, or an error. */
static int take_one(struct watcher *w, struct sl_follow_element *element)
{
	uint64_t data[MOST_WORDS], bytes = sl_follow_describe(w->follower)->data_bytes;
	const uint64_t *view;
	const char *problem;
	int err;

	if (w->way == FETCH)
		err = sl_follow_fetch(w->follower, UINT64_MAX, 0, 0, data, element);
	else if (w->way == VIEW)
		err = sl_follow_peek(w->follower, SL_FOLLOW_NEWEST, 5000, element);
	else
		err = sl_follow_next(w->follower,
				     w->way == EVERY ? SL_FOLLOW_EVERY : SL_FOLLOW_NEWEST, 5000,
				     data, sizeof(data), element);
	if (err)
		return err;
	if (w->way == VIEW) {
		view = element->data;
		sl_share_load(data, view, bytes);
		if (!sl_follow_is_valid(w->follower, element->n)) {
			w->invalid++;
			return 0;
		}
	}
	problem = check_words(element, data, (uint32_t)(bytes / sizeof(uint64_t)));
	w->problem = w->problem ? w->problem : problem;
	return 0;
}

static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct sl_follow_element element = {0};

	while (!w->problem && (!w->got || w->at != w->last)) {
		int err = take_one(w, &element);

		if (err == -ESTALE)
			w->stale++;
		else if (err == -ETIMEDOUT || (err && err != -EAGAIN && err != -ENODATA))
			w->problem = strerror(-err);
		else if (!err && w->way != FETCH)
			count(w, &element);
		else if (!err) { /* the newest once more is the same one */
			if (w->got && element.n < w->at)
				w->problem = "the newest is older than one before";
			w->at = element.n;
			w->got++;
		}
	}
	if (!w->problem && w->way != FETCH && w->got + w->missed != w->last + 1 - w->first)
		w->problem = "delivered and missed are not all";
	return NULL;
}

static void look_through(struct sl_follower *f, const struct sl_share *share,
			 struct sl_share_memory *own)
{
	*own = f->memory;
	f->memory.header = share->memory.header;
	f->memory.place = share->memory.place;
	f->memory.data = share->memory.data;
	f->words = &share->memory.header->words;
}

static void *watch_thread(void *arg)
{
	struct watcher *w = arg;
	struct sl_share_memory own;

	if (!w->through)
		return watch(w);
	look_through(w->follower, w->through, &own);
	watch(w);
	w->follower->memory = own;
	w->follower->words = &own.header->words;
	return NULL;
}

static void report(const struct watcher *w, uint64_t places)
{
	if (w->problem)
		fail_msg("way %d, %lu places, element %lu: %s", w->way, (unsigned long)places,
			 (unsigned long)w->at, w->problem);
	assert_true(w->got > 0);
}

/* ---- threads ---- */

static void race_of_threads(uint64_t places)
{
	struct sl_share *share = open_ring("race", places);
	struct watcher watcher[WAYS];
	pthread_t thread[WAYS];

	for (unsigned i = 0; i < WAYS; i++) {
		watcher[i] = (struct watcher){.follower = follower_open("race"),
					      .through = THREAD_SANITIZER ? share : NULL,
					      .way = i,
					      .last = ELEMENTS - 1};
		assert_int_equal(pthread_create(&thread[i], NULL, watch_thread, &watcher[i]), 0);
	}
	push_many(share, 0, ELEMENTS);
	for (unsigned i = 0; i < WAYS; i++) {
		pthread_join(thread[i], NULL);
		report(&watcher[i], places);
		sl_follow_close(watcher[i].follower);
	}
	sl_share_close(share);
}

static void test_threads(void **state)
{
	for (uint64_t places = 1; places <= MOST_PLACES; places++)
		race_of_threads(places);
	race_of_threads(64);
}

/* ---- processes ---- */

struct process {
	pid_t id;
	int go, told; /* pipes: to it, from it */
};

/* A process that follows, made before there are threads: it begins with a byte, and tells what it
 * found. */
static struct process start_process(const char *name, enum way way, uint64_t last)
{
	struct watcher w = {.way = way, .last = last};
	struct process p;
	int go[2], told[2];
	char byte;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	p.id = fork();
	if (p.id == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		if (sl_follow_open(name, NULL, &w.follower, NULL) || write(told[1], "x", 1) != 1)
			_exit(3);
		watch(&w);
		if (w.problem)
			fprintf(stderr, "way %d, element %lu: %s\n", way, (unsigned long)w.at,
				w.problem);
		sl_follow_close(w.follower);
		_exit(w.problem ? 4 : 0);
	}
	close(go[0]);
	close(told[1]);
	p.go = go[1];
	p.told = told[0];
	return p;
}

static void begin_process(const struct process *p)
{
	char byte;

	assert_int_equal(write(p->go, "x", 1), 1);
	assert_int_equal(read(p->told, &byte, 1), 1); /* it has attached */
}

static int end_process(const struct process *p)
{
	int status;

	assert_int_equal(waitpid(p->id, &status, 0), p->id);
	close(p->go);
	close(p->told);
	return status;
}

static void race_of_processes(uint64_t places)
{
	struct process process[WAYS];
	struct sl_share *share;

	for (unsigned i = 0; i < WAYS; i++)
		process[i] = start_process("race", i, ELEMENTS - 1);
	share = open_ring("race", places);
	for (unsigned i = 0; i < WAYS; i++)
		begin_process(&process[i]);
	push_many(share, 0, ELEMENTS);
	for (unsigned i = 0; i < WAYS; i++)
		assert_int_equal(end_process(&process[i]), 0);
	sl_share_close(share);
}

static void test_processes(void **state)
{
	if (THREAD_SANITIZER)
		skip(); /* it sees one process alone */
	for (uint64_t places = 1; places <= MOST_PLACES; places++)
		race_of_processes(places);
}

/* ---- other layouts on the way ---- */

/* mine: memory of the application, the same for all generations; 0: each has its own. */
static void race_of_layouts(uint64_t places, int mine)
{
	enum { STEP = ELEMENTS / 20 };
	const struct sl_share_array array[2] = {words_of(WORDS), words_of(MOST_WORDS)};
	struct sl_share_options options = options_of(&array[0], places);
	struct watcher watcher[WAYS];
	pthread_t thread[WAYS];
	struct sl_share *share;
	uint64_t n = 0;

	options.memory_fd = mine;
	assert_int_equal(sl_share_open("moves", &options, &share, NULL), 0);
	for (unsigned i = 0; i < WAYS; i++) {
		watcher[i] = (struct watcher){
			.follower = follower_open("moves"), .way = i, .last = ELEMENTS - 1};
		assert_int_equal(pthread_create(&thread[i], NULL, watch, &watcher[i]), 0);
	}
	for (unsigned step = 1; n < ELEMENTS; step++) {
		uint64_t to = n + STEP < ELEMENTS ? n + STEP : ELEMENTS;

		push_many(share, n, to);
		n = to;
		if (n == ELEMENTS)
			break;
		options.array = &array[step % 2];
		options.count = places + step % 2;
		assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	}
	for (unsigned i = 0; i < WAYS; i++) {
		pthread_join(thread[i], NULL);
		report(&watcher[i], places);
		assert_true(watcher[i].stale > 0);
		sl_follow_close(watcher[i].follower);
	}
	sl_share_close(share);
}

static void test_layouts(void **state)
{
	enum { BYTES = 1 << 20 };
	int mine = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(mine, BYTES), 0);
	for (uint64_t places = 1; places <= MOST_PLACES; places++) {
		race_of_layouts(places, 0);
		race_of_layouts(places, mine);
	}
	close(mine);
}

/* ---- followers that stall or die ---- */

static void wait_for_peers(struct sl_share *share, uint64_t wanted)
{
	struct sl_share_counts counts = {0};

	for (unsigned i = 0; i < 2000; i++) {
		sl_share_count(share, &counts);
		if (counts.peers == wanted)
			return;
		usleep(5000);
	}
	assert_int_equal(counts.peers, wanted);
}

/* A process that is stopped amid its copies, then killed: every commit returns all the same, and
 * another follower gets what it always gets. */
static void test_stopped_and_killed(void **state)
{
	enum { MANY = 20000 };
	struct process process;
	struct sl_follow_element element;
	struct sl_share *share;
	struct sl_follower *f;
	uint64_t data[WORDS];
	int status;

	if (THREAD_SANITIZER)
		skip();
	process = start_process("stalls", EVERY, UINT64_MAX);
	share = open_ring("stalls", 2);
	begin_process(&process);
	f = follower_open("stalls");
	push_many(share, 0, MANY);
	assert_int_equal(kill(process.id, SIGSTOP), 0);
	push_many(share, MANY, 2 * MANY);
	/* Its socket fills up, and nothing waits for it. */
	while (sl_share_send(share, 0, 1, data, sizeof(data)) == 0) {
		struct sl_share_message m;
		struct sl_share_counts counts;

		assert_int_equal(sl_follow_receive(f, 5000, &m), 0);
		sl_remote_free(m.data);
		sl_share_count(share, &counts);
		if (counts.messages_out > 2000)
			break;
	}
	push_many(share, 2 * MANY, 3 * MANY);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 5000, data, sizeof(data), &element),
			 0);
	assert_int_equal(element.n, 3 * MANY - 1);
	assert_int_equal(kill(process.id, SIGCONT), 0);
	push_many(share, 3 * MANY, 4 * MANY);
	assert_int_equal(kill(process.id, SIGKILL), 0);
	push_many(share, 4 * MANY, 5 * MANY);
	status = end_process(&process);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	wait_for_peers(share, 1);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_NEWEST, 5000, data, sizeof(data), &element),
			 0);
	assert_int_equal(element.n, 5 * MANY - 1);
	sl_follow_close(f);
	sl_share_close(share);
}

/* ---- a writer that dies amid an element ---- */

static void test_killed_writer(void **state)
{
	struct sl_follow_element element;
	uint64_t data[MOST_WORDS];
	struct sl_follower *f, *late;
	struct sl_share *share;
	int up[2], err;
	pid_t child;
	char byte;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		share = open_ring("dies", 3);
		push_many(share, 0, 100);
		if (write(up[1], "x", 1) != 1)
			_exit(1);
		for (uint64_t n = 100;; n++)
			push(share, n);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	f = follower_open("dies");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	do { /* what it has published is whole */
		err = sl_follow_next(f, SL_FOLLOW_EVERY, 5000, data, sizeof(data), &element);
		if (!err)
			assert_null(check_words(&element, data, WORDS));
	} while (!err);
	assert_int_equal(err, -ECONNRESET);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), -ECONNRESET);
	assert_int_equal(sl_follow_open("dies", NULL, &late, NULL), -ENOENT);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
}

/* ---- a writer that is stopped ---- */

/* Whatever its followers ask for ends in time, and works again once it goes on. */
static void test_stopped_writer(void **state)
{
	const struct sl_follow_options options = {.bytes = sizeof(options), .timeout_ms = 50};
	struct sl_follow_element element;
	uint64_t data[MOST_WORDS], ns;
	struct sl_share_message m;
	struct sl_follower *f, *late;
	struct sl_share *share;
	int up[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		share = open_ring("stops", 3);
		push(share, 0);
		if (write(up[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	f = follower_open("stops");
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_int_equal(sl_follow_ping(f, 50, &ns), -ETIMEDOUT);
	assert_int_equal(sl_follow_receive(f, 50, &m), -ETIMEDOUT);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 50, data, sizeof(data), &element), 0);
	assert_int_equal(sl_follow_next(f, SL_FOLLOW_EVERY, 50, data, sizeof(data), &element),
			 -ETIMEDOUT);
	assert_int_equal(sl_follow_fetch(f, UINT64_MAX, 0, 0, data, &element), 0);
	assert_int_equal(sl_follow_open("stops", &options, &late, NULL), -ETIMEDOUT);
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_int_equal(sl_follow_ping(f, 20000, &ns), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	sl_follow_close(f);
	close(up[0]);
	close(up[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_threads),	  TEST(test_processes),
		TEST(test_layouts),	  TEST(test_stopped_and_killed),
		TEST(test_killed_writer), TEST(test_stopped_writer),
	};

	return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
