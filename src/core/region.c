/* region.c - anonymous and sealed shared mappings for the data path. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/region.h"

enum {
	POISON = 0xa5,
	HUGE_PAGE = 2 << 20,
};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static int map_host(struct sl_region *region)
{
	enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };
	void *base = MAP_FAILED;

	/* Huge pages that were set aside (vm.nr_hugepages), where there are enough. */
	if (region->bytes % HUGE_PAGE == 0)
		base = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, PRIVATE | MAP_HUGETLB, -1,
			    0);
	region->huge = base != MAP_FAILED;
	/* Otherwise transparent ones: no reservation to fail, no setting needed; the kernel
	 * decides. */
	if (base == MAP_FAILED)
		base = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, PRIVATE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (!region->huge)
		region->huge = madvise(base, region->bytes, MADV_HUGEPAGE) == 0;
	region->base = base;
	return 0;
}

/* A file of memory that another process may map. Grow and shrink are sealed: a peer that truncates
 * could kill every reader with SIGBUS. */
static int map_file(struct sl_region *region, unsigned kind)
{
	int err;

	region->fd = memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING | kind);
	if (region->fd < 0)
		return -errno;
	if (ftruncate(region->fd, (off_t)region->bytes) < 0 ||
	    fcntl(region->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto undo_fd;
	region->base = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (region->base == MAP_FAILED)
		goto undo_fd;
	return 0;

undo_fd:
	err = -errno;
	close(region->fd);
	region->fd = -1;
	region->base = NULL;
	return err;
}

static int map_shared(struct sl_region *region)
{
	int err;

	/* As for private memory: huge pages that were set aside, or else whatever the kernel gives
	 * (transparent_hugepage/shmem_enabled). */
	if (region->bytes % HUGE_PAGE == 0 && !map_file(region, MFD_HUGETLB)) {
		region->huge = 1;
		return 0;
	}
	err = map_file(region, 0);
	if (!err)
		region->huge = madvise(region->base, region->bytes, MADV_HUGEPAGE) == 0;
	return err;
}

int sl_region_open(enum sl_region_kind kind, uint64_t bytes, struct sl_region *region)
{
	struct sl_region r = {.kind = kind, .fd = -1};
	int err;

	if (!bytes || bytes > SIZE_MAX / 2 || kind == SL_REGION_DEVICE)
		return -EINVAL;
	r.bytes = round_up(bytes, bytes >= HUGE_PAGE ? HUGE_PAGE : (uint64_t)getpagesize());
	err = kind == SL_REGION_SHARED ? map_shared(&r) : map_host(&r);
	if (err)
		return err;
	/* Populate now and learn now that memory is short: a fault on the data path would be a
	 * SIGBUS or a kill there. */
	if (madvise(r.base, r.bytes, MADV_POPULATE_WRITE) < 0) {
		if (errno == ENOMEM || errno == EFAULT) {
			sl_region_close(&r);
			return -ENOMEM;
		}
		memset(r.base, 0, r.bytes); /* kernels before 5.14 */
	}
	*region = r;
	return 0;
}

int sl_region_map(int fd, uint64_t bytes, struct sl_region *region)
{
	struct sl_region r = {.kind = SL_REGION_SHARED, .fd = fd};
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!bytes || (uint64_t)st.st_size < bytes)
		return -EINVAL;
	r.bytes = (uint64_t)st.st_size;
	r.base = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r.base == MAP_FAILED)
		return -errno;
	*region = r;
	return 0;
}

void sl_region_close(struct sl_region *region)
{
	if (region->base)
		munmap(region->base, region->bytes);
	if (region->fd >= 0)
		close(region->fd);
	*region = (struct sl_region){.fd = -1};
}

void sl_region_poison(struct sl_region *region)
{
	memset(region->base, POISON, region->bytes);
}
