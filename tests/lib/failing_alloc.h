/* failing_alloc.h - one allocation of this program fails, and nothing may be lost or freed twice.
 *
 * Model:     a program that is linked with `wrap_alloc` (tests/lib/meson.build) has malloc, calloc,
 *            realloc, aligned_alloc, strdup, strndup and mmap of the product counted. After
 *            alloc_fail_at(n) the n-th of them returns NULL (mmap: MAP_FAILED) with errno ENOMEM.
 *            Allocations inside of libraries are not counted. By the linker's --wrap, so that
 *            sanitizers keep a malloc of their own below it.
 * Threads:   any number of them; which allocation is the n-th is then a matter of chance. */
#ifndef TESTS_LIB_FAILING_ALLOC_H
#define TESTS_LIB_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* 0: none fails. */
void alloc_fail_at(unsigned n);

/* Whether an allocation has failed since alloc_fail_at(). */
bool alloc_has_failed(void);

/* Blocks of the product that are neither freed nor unmapped. */
size_t alloc_live(void);

/* Calls attempt(arg) with its first allocation failing, then with its second, until none fails.
 * `attempt` makes something and takes it down again, also after a failure where its owner would do
 * so, and returns what making it returned. Fails the test unless each failure is -ENOMEM, no block
 * is left behind, and the last attempt returns 0. Returns the number of allocations. */
unsigned alloc_fail_each(int (*attempt)(void *arg), void *arg);

#endif
