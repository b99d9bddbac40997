/* room_test.c - limits of memory, on hosts that do not exist: a /proc and a /sys in a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host/room.h"

#define MiB (UINT64_C(1) << 20)

static char root[64];

static void command(const char *format)
{
	char text[256];

	snprintf(text, sizeof(text), format, root);
	assert_int_equal(system(text), 0);
}

static int begin(void **state)
{
	snprintf(root, sizeof(root), "/tmp/room-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	command("rm -rf %s");
	return 0;
}

static void write_file(const char *path, const char *text)
{
	char whole[1024];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(whole, 0777);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect(uint64_t piece, uint64_t bytes, const char *limit)
{
	struct sl_room room;

	sl_room_read(root, piece, &room);
	if (room.bytes != bytes || strcmp(room.limit, limit) != 0)
		fail_msg("%llu by '%s', not %llu by '%s'", (unsigned long long)room.bytes,
			 room.limit, (unsigned long long)bytes, limit);
}

static void a_host_without_files_has_no_limit(void **state)
{
	expect(MiB, UINT64_MAX, "no limit");
}

static void the_lowest_limit_of_all_groups_above_counts(void **state)
{
	write_file("/proc/self/cgroup", "0::/a.slice/b.service\n");
	write_file("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
	write_file("/sys/fs/cgroup/a.slice/b.service/memory.high", "max\n");
	write_file("/proc/meminfo", "MemAvailable: 8192 kB\nSwapFree: 1024 kB\n");
	expect(MiB, 9 * MiB, "MemAvailable and SwapFree of this host");
	write_file("/sys/fs/cgroup/a.slice/memory.max", "5242880\n");
	expect(MiB, 5 * MiB, "memory.max of /a.slice");
	write_file("/sys/fs/cgroup/a.slice/b.service/memory.high", "4194304\n");
	expect(MiB, 4 * MiB, "memory.high of /a.slice/b.service");
	write_file("/sys/fs/cgroup/memory.max", "3145728\n"); /* a container's own root */
	expect(MiB, 3 * MiB, "memory.max of /");
}

static void what_is_used_is_taken_off_but_not_file_cache(void **state)
{
	write_file("/proc/self/cgroup", "0::/x\n");
	write_file("/sys/fs/cgroup/x/memory.max", "10485760\n");
	write_file("/sys/fs/cgroup/x/memory.current", "6291456\n");
	expect(MiB, 4 * MiB, "memory.max of /x");
	write_file("/sys/fs/cgroup/x/memory.stat",
		   "anon 1\ninactive_file 2097152\nactive_file 1048576\n");
	expect(MiB, 7 * MiB, "memory.max of /x");
	write_file("/sys/fs/cgroup/x/memory.current", "1048576\n"); /* read at another moment */
	expect(MiB, 10 * MiB, "memory.max of /x");
	write_file("/sys/fs/cgroup/x/memory.current", "99999999999\n");
	expect(MiB, 0, "memory.max of /x");
}

static void version_1_too(void **state)
{
	write_file("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory,pids:/job\n0::/\n");
	write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	expect(MiB, UINT64_MAX, "no limit");
	write_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8388608\n");
	write_file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3145728\n");
	write_file("/sys/fs/cgroup/memory/job/memory.stat",
		   "inactive_file 5\ntotal_inactive_file 1048576\ntotal_active_file 0\n");
	expect(MiB, 6 * MiB, "memory.limit_in_bytes of /job");
}

static void huge_pages_have_limits_of_their_own(void **state)
{
	write_file("/proc/self/cgroup", "0::/x\n");
	write_file("/sys/fs/cgroup/x/memory.max", "1048576\n");
	write_file("/sys/fs/cgroup/x/hugetlb.2MB.max", "6291456\n");
	write_file("/sys/fs/cgroup/x/hugetlb.2MB.current", "2097152\n");
	write_file("/proc/meminfo",
		   "MemAvailable: 1 kB\nHugePages_Free: 4\nHugepagesize: 2048 kB\n");
	expect(8 * MiB, 4 * MiB, "hugetlb.2MB.max of /x");
	expect(8 * MiB + 1, 1024, "MemAvailable and SwapFree of this host"); /* too few are free */
	expect(MiB, 1024, "MemAvailable and SwapFree of this host"); /* too small for them */
	write_file("/proc/meminfo", "HugePages_Free: 4\nHugepagesize: 1048576 kB\n");
	expect(8 * MiB, MiB, "memory.max of /x");
}

static void files_that_make_no_sense_are_no_limit(void **state)
{
	static const char *const groups[] = {
		"",	 "\n",	 ":",	     "::",	    "0:",	    "0::",    "0::x\n",
		"0::\n", "0:/x", "0:memory", "0::relative", "1:memoryx:/x", ",,:,:/x"};
	static const char *const limits[] = {"",
					     "\n",
					     "max",
					     "-1",
					     "x5",
					     "\xff\xff",
					     "9223372036854775807",
					     "99999999999999999999999"};
	char longest[4096] = "0::";

	write_file("/sys/fs/cgroup/x/memory.max", "1048576\n");
	for (unsigned i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		write_file("/proc/self/cgroup", groups[i]);
		expect(MiB, UINT64_MAX, "no limit");
	}
	write_file("/proc/self/cgroup", "0::/x");
	expect(MiB, MiB, "memory.max of /x");
	for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		write_file("/sys/fs/cgroup/x/memory.max", limits[i]);
		expect(MiB, UINT64_MAX, "no limit");
	}
	/* Of a name that is too long, the groups above it. */
	write_file("/sys/fs/cgroup/x/memory.max", "1048576\n");
	memset(longest + 3, 'y', sizeof(longest) - 4);
	memcpy(longest + 3, "/x/", 3);
	write_file("/proc/self/cgroup", longest);
	expect(MiB, MiB, "memory.max of /x");
	/* Outside of this cgroup namespace. */
	write_file("/proc/self/cgroup", "0::/../../x");
	expect(MiB, UINT64_MAX, "no limit");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(a_host_without_files_has_no_limit),
		CASE(the_lowest_limit_of_all_groups_above_counts),
		CASE(what_is_used_is_taken_off_but_not_file_cache),
		CASE(version_1_too),
		CASE(huge_pages_have_limits_of_their_own),
		CASE(files_that_make_no_sense_are_no_limit),
	};

	return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
