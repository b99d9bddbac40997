/* region.h - memory that the data path may write.
 *
 * Model:     one contiguous mapping, page-aligned and zeroed: private to the process (huge pages
 *            where the host gives them), or shared (a sealed memfd that another process may map but
 *            never shrink). A device's memory is not mapped: `base` is NULL, and `fd` the dma-buf
 *            by which other devices reach it; who allocated it fills in the region.
 * Threads:   open and close on one thread; the memory itself is everybody's.
 * Cost:      all pages are touched on open, so that the data path never faults. */
#ifndef SL_CORE_REGION_H
#define SL_CORE_REGION_H

#include <stddef.h>
#include <stdint.h>

enum sl_region_kind { SL_REGION_HOST, SL_REGION_SHARED, SL_REGION_DEVICE };

struct sl_region {
	enum sl_region_kind kind;
	void *base;
	uint64_t bytes; /* rounded up to whole pages */
	int fd;		/* shared: the memfd; device: the dma-buf; otherwise -1 */
	int huge;	/* huge pages were asked for and not refused */
};

/* Host or shared. 0 or -errno (-ENOMEM: not that much memory). *region is set only on success. */
int sl_region_open(enum sl_region_kind kind, uint64_t bytes, struct sl_region *region);

/* Map another process's shared region from its fd, which the region then owns. Refuses (-EPERM) a
 * memfd that its owner could still shrink, and (-EINVAL) one smaller than `bytes`. */
int sl_region_map(int fd, uint64_t bytes, struct sl_region *region);
void sl_region_close(struct sl_region *region);

/* Fill with a byte that no test pattern produces for long, so that stale or unwritten pixels never
 * look right. */
void sl_region_poison(struct sl_region *region);

#endif
