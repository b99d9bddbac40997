/* pages.c - a share's memory in huge pages, where the kernel has some to give. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "share/pages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define HUGE_BYTES (UINT64_C(2) << 20)
/* They cost no more time than small pages, unless the kernel has to move other memory for each of
 * them. So this ends once it is behind 1 GB/s by this much. */
#define BEHIND_NS UINT64_C(200000000)

void *sl_share_map(int fd, uint64_t bytes, int protection, int flags)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
	uint64_t room = used + HUGE_BYTES, before;
	uint8_t *reserved, *at;

	if (bytes < HUGE_BYTES)
		return mmap(NULL, bytes, protection, MAP_SHARED | flags, fd, 0);
	reserved = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	before = (HUGE_BYTES - (uintptr_t)reserved % HUGE_BYTES) % HUGE_BYTES;
	at = mmap(reserved + before, bytes, protection, MAP_SHARED | MAP_FIXED | flags, fd, 0);
	if (at == MAP_FAILED) {
		munmap(reserved, room);
		return MAP_FAILED;
	}
	if (before)
		munmap(reserved, before);
	if (before < HUGE_BYTES)
		munmap(at + used, HUGE_BYTES - before);
	return at;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sl_share_use_huge_pages(int fd, uint64_t bytes)
{
	uint64_t end = now_ns() + BEHIND_NS;
	uint8_t *at = sl_share_map(fd, bytes, PROT_READ | PROT_WRITE, 0);

	if (at == MAP_FAILED)
		return;
	/* One page of each is there first: the kernel makes nothing of nothing. */
	for (uint64_t i = 0; i + HUGE_BYTES <= bytes && now_ns() < end + i; i += HUGE_BYTES)
		if (posix_fallocate(fd, (off_t)i, SL_SHARE_PAGE) ||
		    madvise(at + i, HUGE_BYTES, MADV_COLLAPSE))
			break;
	munmap(at, bytes);
}
