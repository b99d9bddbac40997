/* numa.c - memory policies of the kernel, without libnuma. */
#include "core/numa.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 1024, WORD = 8 * (int)sizeof(unsigned long) }; /* the most that Linux can have */

int sl_numa_prefer(int node)
{
	unsigned long mask[NODES / WORD] = {0};
	int mode;

	if (node < 0 || node >= NODES)
		return -EINVAL;
	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) < 0)
		return -errno;
	if (mode != MPOL_DEFAULT)
		return -EBUSY;
	mask[node / WORD] = 1ul << node % WORD;
	/* The kernel takes one bit less than it is told. */
	if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, (unsigned long)NODES + 1) < 0)
		return -errno;
	return 0;
}

void sl_numa_forget(void)
{
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

int sl_numa_of(const void *address)
{
	int node;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0, address, MPOL_F_NODE | MPOL_F_ADDR) < 0)
		return -1;
	return node;
}
