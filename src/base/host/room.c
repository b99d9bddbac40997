/* room.c - limits of memory: cgroups and the host. */
#include "base/host/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/cgroup.h"
#include "base/log.h"
#include "base/sysfile.h"

enum {
	HUGE_PAGE = 2 << 20,
	PATH = SL_CGROUP_PATH,
};

/* Version 1 has no word for "no limit", and rounds the largest number down to pages. */
#define NO_LIMIT (INT64_MAX / 2)

/* Where hosts mount the hierarchies, and the files of each. */
struct hierarchy {
	const char *controller; /* in /proc/self/cgroup; "": version 2 */
	const char *mount;
	const char *limit, *used;
	const char *stat[2]; /* keys of memory.stat that are page cache of files; NULL: none */
};

static const struct hierarchy memory[] = {
	{"", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}},
	{"", "/sys/fs/cgroup", "memory.high", "memory.current", {"inactive_file", "active_file"}},
	{"memory",
	 "/sys/fs/cgroup/memory",
	 "memory.limit_in_bytes",
	 "memory.usage_in_bytes",
	 {"total_inactive_file", "total_active_file"}},
};

static const struct hierarchy hugetlb[] = {
	{"", "/sys/fs/cgroup", "hugetlb.2MB.max", "hugetlb.2MB.current", {NULL}},
	{"hugetlb",
	 "/sys/fs/cgroup/hugetlb",
	 "hugetlb.2MB.limit_in_bytes",
	 "hugetlb.2MB.usage_in_bytes",
	 {NULL}},
};

static void lower(struct sl_room *room, uint64_t bytes, const char *file, const char *group)
{
	if (bytes >= room->bytes)
		return;
	room->bytes = bytes;
	snprintf(room->limit, sizeof(room->limit), "%s%s%s", file, *group ? " of " : "", group);
}

static uint64_t file_cache(const char *root, const struct hierarchy *h, const char *group)
{
	char path[PATH + 64], text[64];
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "%s%s/memory.stat", h->mount, group);
	for (unsigned i = 0; i < 2 && h->stat[i]; i++)
		if (sl_sysfile_value(root, path, h->stat[i], text, sizeof(text)))
			bytes += strtoull(text, NULL, 10);
	return bytes;
}

static void look_at(const char *root, const struct hierarchy *h, const char *group,
		    struct sl_room *room)
{
	const char *below = strcmp(group, "/") == 0 ? "" : group;
	long long limit, used = 0;
	uint64_t cache, taken;

	if (!sl_sysfile_number(root, &limit, "%s%s/%s", h->mount, below, h->limit) || limit < 0 ||
	    limit > NO_LIMIT)
		return;
	if (!sl_sysfile_number(root, &used, "%s%s/%s", h->mount, below, h->used) || used < 0)
		used = 0;
	cache = file_cache(root, h, below);
	taken = (uint64_t)used > cache ? (uint64_t)used - cache : 0;
	lower(room, (uint64_t)limit > taken ? (uint64_t)limit - taken : 0, h->limit, group);
}

/* Its cgroup and all above it. */
static void look_up(const char *root, const struct hierarchy *h, struct sl_room *room)
{
	char group[PATH];

	if (!sl_cgroup_find(root, h->controller, group))
		return;
	for (; strcmp(group, "/") != 0; sl_cgroup_go_up(group))
		look_at(root, h, group, room);
	look_at(root, h, group, room);
}

static uint64_t meminfo(const char *root, const char *key)
{
	char text[64];

	return sl_sysfile_value(root, "/proc/meminfo", key, text, sizeof(text))
		       ? strtoull(text, NULL, 10)
		       : 0;
}

void sl_room_read(const char *root, uint64_t bytes, struct sl_room *room)
{
	uint64_t free_kB = meminfo(root, "MemAvailable"),
		 huge = meminfo(root, "Hugepagesize") == HUGE_PAGE / 1024
				? meminfo(root, "HugePages_Free")
				: 0;

	*room = (struct sl_room){.bytes = UINT64_MAX, .limit = "no limit"};
	if (bytes >= HUGE_PAGE && huge >= (bytes - 1) / HUGE_PAGE + 1) {
		for (unsigned i = 0; i < sizeof(hugetlb) / sizeof(*hugetlb); i++)
			look_up(root, &hugetlb[i], room);
		return;
	}
	for (unsigned i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		look_up(root, &memory[i], room);
	if (free_kB && free_kB < UINT64_MAX / 4096)
		lower(room, (free_kB + meminfo(root, "SwapFree")) * 1024,
		      "MemAvailable and SwapFree of this host", "");
}

bool sl_room_for(const char *what, uint64_t bytes, const char *help)
{
	struct sl_room room;

	sl_room_read("", bytes, &room);
	if (bytes <= room.bytes)
		return true;
	sl_error("%s needs %.2f GiB; this process may use %.2f GiB (%s): %s", what,
		 (double)bytes / (1 << 30), (double)room.bytes / (1 << 30), room.limit, help);
	return false;
}
