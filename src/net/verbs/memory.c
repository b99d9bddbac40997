/* memory.c - memory that a NIC may reach: registered, and pinned as long as it is. */
#include "net/verbs/nic.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

static int flags_of(enum sl_verbs_access access)
{
	switch (access) {
	case SL_VERBS_REMOTE_WRITE:
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	case SL_VERBS_REMOTE_READ:
		return IBV_ACCESS_REMOTE_READ;
	default:
		return IBV_ACCESS_LOCAL_WRITE;
	}
}

static int refused(const struct sl_verbs_nic *d, const struct sl_region *region, uint64_t bytes,
		   int err)
{
	double megabytes = (double)bytes * 1e-6;

	if (region->kind == SL_REGION_DEVICE)
		sl_error("%s does not take %.1f MB of device memory (dma-buf): %s; the NIC's "
			 "driver and the kernel (5.12 or newer) must both support it",
			 d->info.name, megabytes, strerror(-err));
	else if (err == -ENOMEM || err == -EAGAIN || err == -EPERM)
		sl_error("%s may not pin %.1f MB: %s; raise the limit (ulimit -l): echo '* - "
			 "memlock unlimited' | sudo tee /etc/security/limits.d/sluice.conf, and "
			 "log in again",
			 d->info.name, megabytes, strerror(-err));
	else
		sl_error("%s does not take %.1f MB of memory: %s", d->info.name, megabytes,
			 strerror(-err));
	return err;
}

int sl_verbs_register(struct sl_verbs_nic *d, const struct sl_region *region, uint64_t offset,
		      uint64_t bytes, uint64_t at, enum sl_verbs_access access,
		      struct sl_verbs_memory *memory)
{
	int flags = flags_of(access);
	struct ibv_mr *mr;

	if (!bytes || offset > region->bytes || bytes > region->bytes - offset)
		return -EINVAL;
	errno = 0;
	if (region->kind != SL_REGION_DEVICE) {
		/* In parentheses, since the header has a macro of that name. */
		mr = (d->lib->ibv_reg_mr_iova)(d->pd, (uint8_t *)region->base + offset, bytes, at,
					       flags);
	} else if (d->lib->ibv_reg_dmabuf_mr) {
		mr = d->lib->ibv_reg_dmabuf_mr(d->pd, offset, bytes, at, region->fd, flags);
	} else {
		sl_error("libibverbs.so.1 cannot register device memory (dma-buf): rdma-core 34 or "
			 "newer can");
		return -EOPNOTSUPP;
	}
	if (!mr)
		return refused(d, region, bytes, errno ? -errno : -EIO);
	*memory = (struct sl_verbs_memory){
		.handle = mr, .at = at, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}

void sl_verbs_unregister(struct sl_verbs_memory *memory)
{
	if (memory->handle)
		sl_verbs_library()->ibv_dereg_mr(memory->handle);
	memory->handle = NULL;
}
