/* numa.h - memory on a NUMA node of one's choice.
 *
 * Model:     a wish of the calling thread: pages that it touches first from now on come from this
 *            node as long as it has any, then from others. Threads that it starts have the same
 *            wish. Whoever started the program with a policy (numactl) knows better: then
 *            nothing is changed.
 * Threads:   the wish belongs to the calling thread.
 * Cost:      a system call. */
#ifndef SL_CORE_NUMA_H
#define SL_CORE_NUMA_H

/* 0; -EBUSY: there is a policy already; -errno: this process may not (a container's filter), or the
 * kernel knows no nodes. */
int sl_numa_prefer(int node);

/* The end of the wish, after sl_numa_prefer() returned 0. */
void sl_numa_forget(void);

/* Where the page at this address lies, which must have been touched; -1: cannot be told. */
int sl_numa_of(const void *address);

#endif
