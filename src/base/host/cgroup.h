/* cgroup.h - the cgroups of this process: their paths, for the files that hold limits and counts.
 *
 * Model:     every limit of a cgroup holds for all groups below it, so a caller looks at the group
 *            of this process and goes up from there.
 * Threads:   no state. Not for data threads. */
#ifndef SL_BASE_HOST_CGROUP_H
#define SL_BASE_HOST_CGROUP_H

#include <stdbool.h>

enum { SL_CGROUP_PATH = 256 }; /* of a longer one only the groups above it are looked at */

/* The cgroup of this process below the mount of its hierarchy: "/a/b"; "/" where it is outside of
 * what can be seen here. controller: of version 1; "": version 2. False: there is none. root: as in
 * base/sysfile.h. */
bool sl_cgroup_find(const char *root, const char *controller, char group[SL_CGROUP_PATH]);

/* To the group above; of "/a" that is "/". */
void sl_cgroup_go_up(char *path);

#endif
