/* fence.h - for tests: memory between two pages that nobody may touch, with canaries around what
 * may be written. Ends the test program when the system has no memory. */
#ifndef TESTS_LIB_FENCE_H
#define TESTS_LIB_FENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FENCE_PAGE = 4096 };

struct fence {
	uint8_t *pages; /* between the guard pages */
	size_t pages_bytes;
	uint8_t *inside; /* what may be used; canaries are on its other side */
	size_t bytes;
};

static inline uint8_t fence_canary(size_t at)
{
	return (uint8_t)(0xa5 ^ at * 29);
}

/* At the end: the byte after it is forbidden. Otherwise the byte before it is. protection is that
 * of mprotect(), for all of it. */
static inline void fence_make(struct fence *fence, size_t bytes, bool at_end, int protection)
{
	size_t pages_bytes = (bytes / FENCE_PAGE + 1) * FENCE_PAGE;
	uint8_t *map = mmap(NULL, pages_bytes + 2 * FENCE_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		abort();
	fence->pages = map + FENCE_PAGE;
	fence->pages_bytes = pages_bytes;
	fence->inside = fence->pages + (at_end ? pages_bytes - bytes : 0);
	fence->bytes = bytes;
	for (size_t i = 0; i < pages_bytes; i++)
		fence->pages[i] = fence_canary(i);
	if (mprotect(map, FENCE_PAGE, PROT_NONE) ||
	    mprotect(fence->pages + pages_bytes, FENCE_PAGE, PROT_NONE) ||
	    mprotect(fence->pages, pages_bytes, protection))
		abort();
}

/* The canaries are as they were. */
static inline bool fence_intact(const struct fence *fence)
{
	for (size_t i = 0; i < fence->pages_bytes; i++) {
		const uint8_t *p = fence->pages + i;

		if (p >= fence->inside && p < fence->inside + fence->bytes)
			continue;
		if (*p != fence_canary(i))
			return false;
	}
	return true;
}

/* Nothing of what lies inside was ever written. */
static inline bool fence_untouched(const struct fence *fence)
{
	for (size_t i = 0; i < fence->pages_bytes; i++) {
		if (fence->pages[i] != fence_canary(i))
			return false;
	}
	return true;
}

static inline bool fence_holds(const struct fence *fence, const uint8_t *at, size_t bytes)
{
	return at >= fence->inside && bytes <= fence->bytes &&
	       (size_t)(at - fence->inside) <= fence->bytes - bytes;
}

#endif
