/* kill_test.c - a writer that is killed at any moment: everything below its durable mark is
 * readable, and right. With SLUICE_LONG 50 times, else 8. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/raw_rig.h"

struct shared {
	_Atomic uint64_t durable, appended;
};

static void write_until_killed(const struct sl_raw_options *o, struct shared *shared)
{
	struct sl_raw_writer *w;

	if (sl_raw_create(o, "head", 4, &w))
		_exit(1);
	for (uint64_t n = 0;; n++) {
		if (raw_rig_append_one(w, n))
			_exit(2);
		atomic_store(&shared->appended, n + 1);
		atomic_store(&shared->durable, sl_raw_durable(w));
	}
}

static void check_what_is_left(const struct sl_raw_options *o, uint64_t durable, uint64_t appended)
{
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	uint64_t i;

	assert_int_equal(sl_raw_open(o->path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_KILLED);
	assert_true(facts.chunks >= durable || o->keep_ns);
	if (!o->keep_ns)
		for (i = 0; i < durable; i++)
			assert_int_equal(sl_raw_entry(r, i)->chunk, i);
	/* Chunks are 1 ms apart, of which 400 ms are kept. */
	for (i = appended > 350 ? appended - 350 : 0; o->keep_ns && i < durable; i++) {
		uint64_t found;

		assert_int_equal(sl_raw_find(r, SL_RAW_BY_CHUNK, i, &found), 0);
		assert_int_equal(sl_raw_entry(r, found)->chunk, i);
	}
	raw_rig_check_all(r);
	/* The last chunk may have been appended before it was counted. */
	if (facts.chunks)
		assert_true(sl_raw_entry(r, facts.chunks - 1)->chunk <= appended);
	sl_raw_close(r);
}

static void kill_once(struct raw_rig *rig, unsigned round, struct shared *shared)
{
	struct sl_raw_options o = rig->options;
	char folder[2][256];
	const char *list[] = {folder[0], folder[1]};
	int status;
	pid_t pid;

	for (int i = 0; i < 2; i++)
		snprintf(folder[i], sizeof(folder[i]), "%s/disk%d", rig->folder, i);
	o.folder = list;
	o.folders = round % 3 == 1 ? 2 : 0;
	o.keep_ns = round % 4 == 3 ? 400000000 : 0; /* 400 chunks */
	o.plain = round % 5 == 4;
	o.file_bytes = 512 << 10;
	o.flush_ns = 5000000;
	atomic_store(&shared->durable, 0);
	atomic_store(&shared->appended, 0);
	pid = fork();
	if (!pid)
		write_until_killed(&o, shared);
	while (atomic_load(&shared->durable) < 20) {
		usleep(500);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	}
	usleep((useconds_t)(rand() % 60000));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	check_what_is_left(&o, atomic_load(&shared->durable), atomic_load(&shared->appended));
	raw_rig_clean(rig);
}

static void test_killed_at_random_moments(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = (unsigned)time(NULL);

	assert_true(shared != MAP_FAILED);
	print_message("seed %u\n", seed);
	srand(seed);
	for (unsigned round = 0; round < (getenv("SLUICE_LONG") ? 50 : 8); round++)
		kill_once(*state, round, shared);
	munmap(shared, sizeof(*shared));
}

/* Several threads append at the same time, and a reader follows. */
static _Atomic uint64_t next_chunk;

static void *append_some(void *arg)
{
	for (int i = 0; i < 200; i++) {
		uint64_t n = atomic_fetch_add(&next_chunk, 1);
		struct sl_raw_key key = {.sequence = n};
		uint8_t data[RIG_MOST];
		struct iovec part = {data, raw_rig_payload(n, data)};

		if (sl_raw_append(arg, &key, &part, 1))
			return arg;
	}
	return NULL;
}

static void check_sequences(const struct sl_raw_reader *r, uint64_t chunks)
{
	static uint8_t seen[800];

	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; i < chunks; i++) {
		const struct sl_raw_entry *entry = sl_raw_entry(r, i);
		uint8_t data[RIG_MOST], back[RIG_MOST];
		size_t bytes = raw_rig_payload(entry->key.sequence, data);

		assert_true(entry->key.sequence < 800 && !seen[entry->key.sequence]++);
		assert_int_equal(entry->bytes, bytes);
		assert_int_equal(sl_raw_read(r, i, back, sizeof(back)), 0);
		assert_memory_equal(data, back, bytes);
	}
}

static void test_several_threads_append(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	pthread_t thread[4];
	void *result;

	rig->options.file_bytes = 512 << 10;
	rig->options.flush_ns = 1000000;
	assert_int_equal(sl_raw_create(&rig->options, NULL, 0, &w), 0);
	assert_int_equal(sl_raw_open(rig->path, 0, &r), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, append_some, w), 0);
	do {
		assert_int_equal(sl_raw_refresh(r), 0);
		sl_raw_facts(r, &facts);
	} while (facts.chunks < 400);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &result);
		assert_null(result);
	}
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_refresh(r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.chunks, 800);
	check_sequences(r, 800);
	sl_raw_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_killed_at_random_moments),
		RIG_TEST(test_several_threads_append),
	};

	return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
