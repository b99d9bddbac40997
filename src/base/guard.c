/* guard.c - aborts when a data thread allocates, frees, locks, logs or formats. Linked only into
 * the guarded test program; the product has the weak sl_data_thread_check() of datathread.c.
 *
 * The functions here stand before those of libc because the program's own symbols come first. The
 * heap goes on to glibc's __libc_ names, which need no look-up; the rest is looked up once, before
 * main(), since dlsym() itself allocates and locks. Sanitizers interpose the same names, so a
 * guarded program is built without them. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/datathread.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

/* Not in a header that this file may include, as it defines it. */
void *memalign(size_t alignment, size_t bytes);

void sl_data_thread_check(const char *what)
{
	const char *name = sl_data_thread_name();
	struct iovec line[5];

	if (!name)
		return;
	sl_data_thread_end(); /* what follows may do what it likes */
	line[0] = (struct iovec){"sluice: data thread '", 21};
	line[1] = (struct iovec){(void *)name, strlen(name)};
	line[2] = (struct iovec){"' called ", 9};
	line[3] = (struct iovec){(void *)what, strlen(what)};
	line[4] = (struct iovec){"\n", 1};
	if (writev(STDERR_FILENO, line, 5) < 0)
		_exit(134); /* as a shell reports SIGABRT */
	abort();
}

/* ---- the heap ---- */

void *malloc(size_t bytes)
{
	sl_data_thread_check("malloc");
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	sl_data_thread_check("calloc");
	return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	sl_data_thread_check("realloc");
	return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
	if (memory)
		sl_data_thread_check("free");
	__libc_free(memory);
}

void *memalign(size_t alignment, size_t bytes)
{
	sl_data_thread_check("memalign");
	return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	sl_data_thread_check("aligned_alloc");
	return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	void *made;

	sl_data_thread_check("posix_memalign");
	if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	made = __libc_memalign(alignment, bytes);
	if (!made)
		return ENOMEM;
	*memory = made;
	return 0;
}

/* ---- locks and formatting: checked, then passed on ---- */

/* X(result, name, (parameters), (arguments)) */
#define PASSED_ON(X)                                                                            \
	X(int, pthread_mutex_lock, (pthread_mutex_t * lock), (lock))                            \
	X(int, pthread_mutex_trylock, (pthread_mutex_t * lock), (lock))                         \
	X(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))                        \
	X(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))                        \
	X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))                     \
	X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))                     \
	X(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock))                          \
	X(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t * lock),         \
	  (condition, lock))                                                                    \
	X(int, pthread_cond_timedwait,                                                          \
	  (pthread_cond_t * condition, pthread_mutex_t * lock, const struct timespec *until),   \
	  (condition, lock, until))                                                             \
	X(int, vfprintf, (FILE * file, const char *format, va_list list), (file, format, list)) \
	X(int, vsnprintf, (char *text, size_t bytes, const char *format, va_list list),         \
	  (text, bytes, format, list))                                                          \
	X(int, puts, (const char *text), (text))                                                \
	X(int, fputs, (const char *text, FILE *file), (text, file))                             \
	X(size_t, fwrite, (const void *data, size_t bytes, size_t count, FILE *file),           \
	  (data, bytes, count, file))

#define POINTER(result, name, parameters, arguments) static result(*real_##name) parameters;
#define LOOK_UP(result, name, parameters, arguments) \
	*(void **)&real_##name = dlsym(RTLD_NEXT, #name);
#define FUNCTION(result, name, parameters, arguments)                   \
	result name parameters                                          \
	{                                                               \
		sl_data_thread_check(#name);                            \
		if (!real_##name)                                       \
			look_up(); /* another constructor came first */ \
		return real_##name arguments;                           \
	}

int snprintf(char *text, size_t bytes, const char *format, ...)
{
	va_list list;
	int n;

	sl_data_thread_check("snprintf");
	va_start(list, format);
	n = vsnprintf(text, bytes, format, list);
	va_end(list);
	return n;
}

int fprintf(FILE *file, const char *format, ...)
{
	va_list list;
	int n;

	sl_data_thread_check("fprintf");
	va_start(list, format);
	n = vfprintf(file, format, list);
	va_end(list);
	return n;
}

int printf(const char *format, ...)
{
	va_list list;
	int n;

	sl_data_thread_check("printf");
	va_start(list, format);
	n = vfprintf(stdout, format, list);
	va_end(list);
	return n;
}

/* clang-format off */
PASSED_ON(POINTER)

__attribute__((constructor)) static void look_up(void)
{
	PASSED_ON(LOOK_UP)
}

PASSED_ON(FUNCTION)
