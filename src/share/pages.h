/* pages.h - a share's memory in huge pages, where the kernel has some to give.
 *
 * Model:     memory of a memfd is in pages of 4 KiB unless the administrator has said otherwise
 *            (shmem_enabled). MADV_COLLAPSE makes huge pages of it all the same; a mapping shows
 *            them where its address is a multiple of their size. A copy of many MiB then costs a
 *            tenth less and more: docs/reference/benchmarks.md.
 * Errors:    none: without huge pages everything works as with them. */
#ifndef SL_SHARE_PAGES_H
#define SL_SHARE_PAGES_H

#include "share/layout.h"

/* mmap() of a whole file in shared memory, at an address for huge pages. */
void *sl_share_map(int fd, uint64_t bytes, int protection, int flags);

/* Of a file whose pages are not there yet. Where the kernel is slow at it, the rest has small
 * pages: at most about 0.2 s are lost. */
void sl_share_use_huge_pages(int fd, uint64_t bytes);

#endif
