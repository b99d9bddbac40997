/* guard_test.c - the guard stops a data thread from what it must not do, and from nothing else.
 *
 * Linked with guard.c. Each act runs in a child (this program again, with the act's name), on a
 * data thread and on a plain one; the child of a forbidden act must die by SIGABRT and say why. */
#include "base/datathread.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/crc.h"
#include "base/histogram.h"
#include "base/log.h"

/* What the acts work on, made before the thread starts. `escape` keeps the compiler from leaving
 * out an allocation that nobody uses. */
static void *volatile escape;
static void *block;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static int sockets[2];
static FILE *file;
static char text[64];

static void act_malloc(void)
{
	escape = malloc(16);
}

static void act_calloc(void)
{
	escape = calloc(2, 16);
}

static void act_realloc(void)
{
	escape = realloc(block, 4096);
}

static void act_free(void)
{
	free(block);
}

static void act_posix_memalign(void)
{
	void *memory = NULL;

	if (!posix_memalign(&memory, 64, 64))
		escape = memory;
}

static void act_aligned_alloc(void)
{
	escape = aligned_alloc(64, 64);
}

static void act_memalign(void)
{
	escape = memalign(64, 64);
}

static void act_strdup(void)
{
	escape = strdup("text");
}

static void act_mutex_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void act_mutex_trylock(void)
{
	if (!pthread_mutex_trylock(&mutex))
		pthread_mutex_unlock(&mutex);
}

static void act_rwlock_rdlock(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static void act_rwlock_wrlock(void)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static void act_rwlock_tryrdlock(void)
{
	if (!pthread_rwlock_tryrdlock(&rwlock))
		pthread_rwlock_unlock(&rwlock);
}

static void act_rwlock_trywrlock(void)
{
	if (!pthread_rwlock_trywrlock(&rwlock))
		pthread_rwlock_unlock(&rwlock);
}

static void act_spin_lock(void)
{
	pthread_spin_lock(&spinlock);
	pthread_spin_unlock(&spinlock);
}

static void act_cond_timedwait(void)
{
	struct timespec past = {0};

	pthread_cond_timedwait(&condition, &mutex, &past);
}

static void act_snprintf(void)
{
	snprintf(text, sizeof(text), "%d", (int)sizeof(sockets));
}

static void act_fprintf(void)
{
	fprintf(file, "%d\n", (int)sizeof(sockets));
}

static void act_fputs(void)
{
	fputs(text, file);
}

static void act_fwrite(void)
{
	if (fwrite(text, 1, sizeof(text), file) != sizeof(text))
		_exit(3);
}

static void act_log(void)
{
	sl_log_level(SL_LOG_ERROR);
	sl_debug("not even written");
}

/* ---- and what a data thread lives on ---- */

static void act_copy(void)
{
	char from[64] = "abc";

	memcpy(text, from, sizeof(from));
	memset(text, 0, sizeof(text));
	free(NULL);
}

static void act_bell(void)
{
	static struct sl_bell bell;

	sl_bell_ring(&bell);
	sl_bell_wait(&bell, sl_bell_read(&bell), 1000);
}

static void act_sendmsg(void)
{
	struct iovec part = {text, sizeof(text)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (sendmsg(sockets[0], &message, 0) != sizeof(text) ||
	    recvmsg(sockets[1], &message, 0) != sizeof(text))
		_exit(3);
}

static void act_measure(void)
{
	static struct sl_histogram histogram;

	sl_histogram_add(&histogram, sl_clock_ns());
	text[0] = (char)sl_crc32c(sl_crc32(0, text, sizeof(text)), text, sizeof(text));
}

static const struct act {
	const char *name;
	void (*call)(void);
	const char *said; /* NULL: allowed */
} acts[] = {
	{"malloc", act_malloc, "malloc"},
	{"calloc", act_calloc, "calloc"},
	{"realloc", act_realloc, "realloc"},
	{"free", act_free, "free"},
	{"posix_memalign", act_posix_memalign, "posix_memalign"},
	{"aligned_alloc", act_aligned_alloc, "aligned_alloc"},
	{"memalign", act_memalign, "memalign"},
	{"strdup", act_strdup, "malloc"},
	{"mutex_lock", act_mutex_lock, "pthread_mutex_lock"},
	{"mutex_trylock", act_mutex_trylock, "pthread_mutex_trylock"},
	{"rwlock_rdlock", act_rwlock_rdlock, "pthread_rwlock_rdlock"},
	{"rwlock_wrlock", act_rwlock_wrlock, "pthread_rwlock_wrlock"},
	{"rwlock_tryrdlock", act_rwlock_tryrdlock, "pthread_rwlock_tryrdlock"},
	{"rwlock_trywrlock", act_rwlock_trywrlock, "pthread_rwlock_trywrlock"},
	{"spin_lock", act_spin_lock, "pthread_spin_lock"},
	{"cond_timedwait", act_cond_timedwait, "pthread_cond_timedwait"},
	{"snprintf", act_snprintf, "snprintf"},
	{"fprintf", act_fprintf, "fprintf"},
	{"fputs", act_fputs, "fputs"},
	{"fwrite", act_fwrite, "fwrite"},
	{"log", act_log, "sl_log"},
	{"copy", act_copy, NULL},
	{"bell", act_bell, NULL},
	{"sendmsg", act_sendmsg, NULL},
	{"measure", act_measure, NULL},
};

enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* ---- the child ---- */

static void *run_on_data_thread(void *argument)
{
	const struct act *act = argument;

	sl_data_thread_begin("receive");
	act->call();
	sl_data_thread_end();
	return NULL;
}

static void *run_on_plain_thread(void *argument)
{
	const struct act *act = argument;

	act->call();
	return NULL;
}

static int child(const char *kind, const char *name)
{
	const struct rlimit no_core = {0, 0};
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &no_core);
	block = malloc(64);
	file = fopen("/dev/null", "w");
	pthread_spin_init(&spinlock, 0);
	if (!block || !file || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets))
		return 2;
	for (size_t i = 0; i < ACTS; i++) {
		if (strcmp(acts[i].name, name))
			continue;
		if (pthread_create(&thread, NULL,
				   *kind == 'd' ? run_on_data_thread : run_on_plain_thread,
				   (void *)&acts[i]))
			return 2;
		pthread_join(thread, NULL);
		return 0;
	}
	return 2;
}

/* ---- the parent ---- */

/* Runs the act; its exit status as from waitpid(), and what it wrote to stderr. */
static int run(const char *kind, const char *name, char *said, size_t bytes)
{
	char *const arguments[] = {"guard_test", (char *)kind, (char *)name, NULL};
	posix_spawn_file_actions_t actions;
	int capture = memfd_create("stderr", MFD_CLOEXEC), status = -1;
	ssize_t n;
	pid_t pid;

	assert_true(capture >= 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, capture, STDERR_FILENO);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	n = pread(capture, said, bytes - 1, 0);
	said[n > 0 ? n : 0] = 0;
	close(capture);
	return status;
}

static void forbidden_on_a_data_thread(void **state)
{
	const struct act *act = *state;
	char said[512], expected[128];
	int status = run("data", act->name, said, sizeof(said));

	snprintf(expected, sizeof(expected), "sluice: data thread 'receive' called %s\n",
		 act->said);
	assert_string_equal(said, expected);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void allowed(const char *kind, const struct act *act)
{
	char said[512];
	int status = run(kind, act->name, said, sizeof(said));

	assert_string_equal(said, "");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void allowed_on_a_data_thread(void **state)
{
	allowed("data", *state);
}

static void everything_is_allowed_on_a_plain_thread(void **state)
{
	for (size_t i = 0; i < ACTS; i++)
		allowed("plain", &acts[i]);
}

static void a_thread_that_ended_its_work_is_plain(void **state)
{
	assert_false(sl_is_data_thread());
	sl_data_thread_begin("here");
	escape = sl_is_data_thread() ? text : NULL;
	sl_data_thread_end();
	assert_non_null(escape);
	assert_false(sl_is_data_thread());
	assert_null(sl_data_thread_name());
	act_malloc();
	free(escape);
}

static pthread_mutex_t baton_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t baton_condition = PTHREAD_COND_INITIALIZER;
static int baton;

static void *hand_over(void *argument)
{
	pthread_mutex_lock(&baton_mutex);
	baton = 1;
	pthread_cond_signal(&baton_condition);
	pthread_mutex_unlock(&baton_mutex);
	return NULL;
}

/* libc has two pthread_cond_wait()s, of which the old one does not fit the others. */
static void conditions_still_work(void **state)
{
	pthread_t thread;

	pthread_mutex_lock(&baton_mutex);
	assert_int_equal(pthread_create(&thread, NULL, hand_over, NULL), 0);
	while (!baton)
		pthread_cond_wait(&baton_condition, &baton_mutex);
	pthread_mutex_unlock(&baton_mutex);
	pthread_join(thread, NULL);
}

static void the_heap_still_works(void **state)
{
	char *memory = calloc(3, 100), *moved;
	void *pages = NULL;

	assert_non_null(memory);
	for (int i = 0; i < 300; i++)
		assert_int_equal(memory[i], 0);
	memset(memory, 7, 300);
	moved = realloc(memory, 100000);
	assert_non_null(moved);
	assert_int_equal(moved[299], 7);
	free(moved);
	assert_int_equal(posix_memalign(&pages, 4096, 10), 0);
	assert_int_equal((uintptr_t)pages % 4096, 0);
	free(pages);
	assert_int_not_equal(posix_memalign(&pages, 3, 10), 0);
}

int main(int count, char **arguments)
{
	static char names[ACTS][64];
	struct CMUnitTest tests[ACTS + 4] = {
		cmocka_unit_test(everything_is_allowed_on_a_plain_thread),
		cmocka_unit_test(a_thread_that_ended_its_work_is_plain),
		cmocka_unit_test(conditions_still_work),
		cmocka_unit_test(the_heap_still_works),
	};

	if (count == 3)
		return child(arguments[1], arguments[2]);
	for (size_t i = 0; i < ACTS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s_is_%s", acts[i].name,
			 acts[i].said ? "forbidden" : "allowed");
		tests[4 + i] = (struct CMUnitTest){
			.name = names[i],
			.test_func = acts[i].said ? forbidden_on_a_data_thread
						  : allowed_on_a_data_thread,
			.initial_state = (void *)&acts[i],
		};
	}
	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
