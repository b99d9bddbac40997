/* failing_alloc.c - allocations by number, and a table of those that are live. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "lib/failing_alloc.h"

enum { MOST = 1 << 16, ATTEMPTS = 10000 };

/* By the linker: the real ones, and ours in their place. mmap is mmap64 where offsets have 64 bits,
 * as they do in all of the product. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
void __real_free(void *memory);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
void __wrap_free(void *memory);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *memory, size_t bytes);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[MOST];
static size_t used, count_live;
static unsigned countdown;
static bool failed;

void alloc_fail_at(unsigned n)
{
	pthread_mutex_lock(&lock);
	countdown = n;
	failed = false;
	pthread_mutex_unlock(&lock);
}

bool alloc_has_failed(void)
{
	return failed;
}

size_t alloc_live(void)
{
	return count_live;
}

static bool fails(void)
{
	bool now;

	pthread_mutex_lock(&lock);
	now = countdown && --countdown == 0;
	failed |= now;
	pthread_mutex_unlock(&lock);
	if (now)
		errno = ENOMEM;
	return now;
}

/* A block that libraries have made is freed without being in the table. */
static void forget(const void *memory)
{
	pthread_mutex_lock(&lock);
	for (size_t i = used; memory && i-- > 0;)
		if (live[i] == memory) {
			live[i] = live[--used];
			count_live--;
			break;
		}
	pthread_mutex_unlock(&lock);
}

static void *note(void *memory)
{
	pthread_mutex_lock(&lock);
	if (memory) {
		if (used == MOST)
			abort();
		live[used++] = memory;
		count_live++;
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : note(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : note(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	void *moved;

	if (fails())
		return NULL;
	forget(memory);
	moved = __real_realloc(memory, bytes);
	if (!moved && bytes)
		abort(); /* the machine is out of memory: the table would be wrong */
	return note(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? NULL : note(__real_aligned_alloc(alignment, bytes));
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : note(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t bytes)
{
	return fails() ? NULL : note(__real_strndup(text, bytes));
}

void __wrap_free(void *memory)
{
	forget(memory);
	__real_free(memory);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *memory = fails() ? MAP_FAILED
			       : __real_mmap64(at, bytes, protection, flags, fd, offset);

	return memory == MAP_FAILED || flags & MAP_FIXED ? memory : note(memory);
}

int __wrap_munmap(void *memory, size_t bytes)
{
	forget(memory);
	return __real_munmap(memory, bytes);
}

unsigned alloc_fail_each(int (*attempt)(void *arg), void *arg)
{
	for (unsigned n = 1; n < ATTEMPTS; n++) {
		size_t before = alloc_live(), after;
		bool seen;
		int r;

		alloc_fail_at(n);
		r = attempt(arg);
		seen = failed;
		alloc_fail_at(0);
		after = alloc_live();
		if (r != (seen ? -ENOMEM : 0) || after != before)
			fail_msg("with allocation %u failing: result %d, %zu blocks before and "
				 "%zu after",
				 n, r, before, after);
		if (!seen)
			return n - 1;
	}
	fail_msg("more than %d allocations", ATTEMPTS);
	return 0;
}
