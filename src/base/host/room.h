/* room.h - how much memory this process may still take.
 *
 * Model:     a process that takes more than its cgroup allows is killed without a word, so a caller
 *            asks here before it takes much. The limits are memory.max and memory.high of the
 *            process's cgroup and of all cgroups above it (cgroup v2), memory.limit_in_bytes
 *            (v1), and what the host has free. What a cgroup uses now is taken off, less the page
 *            cache of files, which the kernel gives back. Memory on huge pages that were set aside
 *            has limits of its own: hugetlb.2MB.max.
 * Threads:   no state. Not for data threads.
 * Errors:    a file that is absent, or that makes no sense, is no limit. */
#ifndef SL_BASE_HOST_ROOM_H
#define SL_BASE_HOST_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_room {
	uint64_t bytes;	 /* UINT64_MAX: no limit is known */
	char limit[320]; /* which limit it is: "memory.max of /system.slice/x.service" */
};

/* For one piece of `bytes`, which comes from huge pages if enough of them are set aside. root: as
 * in base/sysfile.h. */
void sl_room_read(const char *root, uint64_t bytes, struct sl_room *room);

/* False: `bytes` is more than there is room for. Says so, with what it is for and what may help. */
bool sl_room_for(const char *what, uint64_t bytes, const char *help);

#endif
