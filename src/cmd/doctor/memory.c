/* memory.c - sluice doctor: memory for the ring, huge pages, locked memory. */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/room.h"
#include "base/sysfile.h"
#include "cmd/doctor/doctor.h"

enum {
	HUGE_PAGE = 2 << 20,
	XDP_LOCKED = 64 << 20, /* 2048 chunks of 4096 bytes, of eight receive queues */
};

static uint64_t meminfo(const struct sl_doctor *d, const char *key)
{
	char text[64];

	if (!sl_sysfile_value(d->root, "/proc/meminfo", key, text, sizeof(text)))
		return 0;
	return strtoull(text, NULL, 10); /* kB, or a number of pages */
}

/* A program that takes more than its cgroup allows is killed; a service has a cgroup of its own. */
static void check_limits(struct sl_doctor *d)
{
	struct sl_room room;

	sl_room_read(d->root, d->ring_bytes, &room);
	if (d->ring_bytes <= room.bytes)
		return;
	sl_doctor_say(d, false, "this process may use %.2f GB (%s), the ring takes %.2f GB",
		      (double)room.bytes * 1e-9, room.limit, (double)d->ring_bytes * 1e-9);
	sl_doctor_fix(d, "set ring.slots lower, or raise the limit (of a service: MemoryMax=)");
}

static void check_ring(struct sl_doctor *d)
{
	uint64_t have = meminfo(d, "MemAvailable") * 1024 +
			meminfo(d, "HugePages_Free") * HUGE_PAGE;

	if (!d->ring_bytes || d->front_end)
		return;
	sl_doctor_say(d, d->ring_bytes < have, "a ring of %u slots takes %.2f GB; %.1f GB are free",
		      d->experiment->ring.slots, (double)d->ring_bytes * 1e-9, (double)have * 1e-9);
	if (d->ring_bytes >= have)
		sl_doctor_fix(d, "set ring.slots lower");
	else
		check_limits(d);
}

/* The choice that a file of /sys shows in brackets. */
static bool read_choice(const struct sl_doctor *d, const char *name, char *text, size_t bytes)
{
	char line[128], *open, *close;

	if (!sl_sysfile_line(d->root, line, sizeof(line), "/sys/kernel/mm/transparent_hugepage/%s",
			     name))
		return false;
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return false;
	*close = 0;
	snprintf(text, bytes, "%s", open + 1);
	return true;
}

/* Set aside ones are taken first, transparent ones else. */
static void check_huge_pages(struct sl_doctor *d)
{
	bool shared = d->experiment && d->experiment->link->places == SL_REGION_SHARED;
	const char *name = shared ? "shmem_enabled" : "enabled";
	uint64_t total = meminfo(d, "HugePages_Total"), needed = 0;
	uint64_t set_aside = meminfo(d, "HugePages_Free");
	char choice[32];
	bool good;

	if (d->front_end)
		return;
	if (meminfo(d, "Hugepagesize") == HUGE_PAGE / 1024)
		needed = (d->ring_bytes + HUGE_PAGE - 1) / HUGE_PAGE;
	if (needed && set_aside >= needed) {
		sl_doctor_say(d, true, "huge pages: %llu are set aside, the ring takes %llu",
			      (unsigned long long)set_aside, (unsigned long long)needed);
		return;
	}
	if (!read_choice(d, name, choice, sizeof(choice)))
		return;
	good = strcmp(choice, "never") != 0 && strcmp(choice, "deny") != 0;
	sl_doctor_say(d, good, "transparent huge pages%s: %s", shared ? " of shared memory" : "",
		      choice);
	if (good)
		return;
	sl_doctor_fix(d, "echo %s | sudo tee /sys/kernel/mm/transparent_hugepage/%s",
		      shared ? "advise" : "madvise", name);
	if (needed)
		sl_doctor_fix(d, "sudo sysctl -w vm.nr_hugepages=%llu   # or set some aside",
			      (unsigned long long)(total - set_aside + needed));
}

/* An RDMA NIC pins the ring, AF_XDP its packet memory; others lock nothing. */
static void check_locked(struct sl_doctor *d)
{
	bool verbs = sl_doctor_has_link(d, "verbs"), xdp = sl_doctor_has_link(d, "xdp");
	unsigned long long limit, needed = verbs ? d->ring_bytes : xdp ? XDP_LOCKED : 0;
	char text[256], *end;

	if (!sl_sysfile_value(d->root, "/proc/self/limits", "Max locked memory", text,
			      sizeof(text)))
		return;
	limit = strtoull(text, &end, 10);
	if (end == text || sl_doctor_may(d, CAP_IPC_LOCK)) {
		sl_doctor_say(d, true, "locked memory (ulimit -l): unlimited");
		return;
	}
	sl_doctor_say(d, limit >= needed, "locked memory (ulimit -l): at most %llu KiB; %s",
		      limit / 1024,
		      verbs ? "an RDMA NIC pins the whole ring"
		      : xdp ? "link xdp pins its packets"
			    : "only links verbs and xdp need more");
	if (limit < needed)
		sl_doctor_fix(d, "echo '* - memlock unlimited' | sudo tee "
				 "/etc/security/limits.d/sluice.conf   # then log in again");
}

void sl_doctor_memory(struct sl_doctor *d)
{
	check_huge_pages(d);
	check_locked(d);
	check_ring(d);
}
