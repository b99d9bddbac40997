/* host_test.c - a host that does not exist: its /proc and /sys in a folder; and this one. */
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

#include "flight/host.h"

static char root[] = "/tmp/flight-host-XXXXXX";

static void make(const char *path, const char *text)
{
	char whole[600], *slash;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0777);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_host(void **state)
{
	assert_non_null(mkdtemp(root));
	make("/proc/stat", "cpu  10 2 30 400 5 6 7 8 9 0\ncpu0 1 2 3 4 5 6 7 8\nintr 12345 1 2 3\n"
			   "ctxt 99\nprocs_running 2\n");
	make("/proc/softirqs", "                    CPU0       CPU1\n      NET_RX:        100"
			       "         23\n       TIMER:          1          2\n");
	make("/proc/net/softnet_stat",
	     "00000010 00000002 00000003 0\n00000001 0000000f 00000000 0\n");
	make("/proc/pressure/cpu", "some avg10=1.00 avg60=2.00 avg300=3.00 total=777\n"
				   "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
	make("/proc/self/cgroup", "3:cpu,cpuacct:/v1/b\n0::/a/b\n");
	make("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\n"
					    "throttled_usec 1000\n");
	make("/sys/fs/cgroup/a/cpu.stat", "nr_throttled 1\nthrottled_usec 30\n");
	make("/sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
	make("/sys/fs/cgroup/cpu/v1/cpu.stat", "nr_throttled 2\nthrottled_time 7000\n");
	make("/proc/self/task/17/comm", "link-0\n");
	make("/proc/self/task/17/schedstat", "111 222 333\n");
	make("/proc/self/task/17/status", "Name:\tlink-0\nvoluntary_ctxt_switches:\t12\n"
					  "nonvoluntary_ctxt_switches:\t34\n");
	make("/proc/self/task/18/comm", "link-0\n");
	make("/proc/self/task/18/schedstat", "1 2 3\n");
	make("/sys/class/net/eth1/statistics/rx_dropped", "55\n");
	make("/sys/class/net/eth1/statistics/rx_missed_errors", "66\n");
	make("/proc/interrupts",
	     "           CPU0       CPU1\n 24:   100   11  PCI-MSI  eth1-rx-0\n"
	     " 25:   1   0  PCI-MSI  eth10-rx-0\nLOC: 5 6 Local timer interrupts\n");
	make("/proc/net/snmp", "Ip: Forwarding DefaultTTL ReasmFails\nIp: 1 64 3\n"
			       "Udp: InDatagrams NoPorts InErrors RcvbufErrors\nUdp: 9 8 7 6\n");
	make("/proc/self/io", "rchar: 1\nwchar: 22\nread_bytes: 3\nwrite_bytes: 44\n");
	return 0;
}

static int remove_host(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* SL_SERIES_ABSENT: there is no such series. */
static uint64_t value(const struct sl_series_ring *ring, const char *name)
{
	for (unsigned i = 0; i < ring->n; i++)
		if (!strcmp(ring->series[i].name, name))
			return sl_series_value(ring, sl_series_count(ring) - 1, i);
	return SL_SERIES_ABSENT;
}

static void sample(struct sl_flight_host *h, bool all, struct sl_series_ring *ring)
{
	sl_series_begin(ring);
	sl_flight_host_sample(h, all, ring);
	sl_series_commit(ring, 1);
}

static void everything_is_read(void **state)
{
	static const struct {
		const char *name;
		uint64_t value;
	} wanted[] = {
		{"cpu.user", 100},
		{"cpu.system", 300},
		{"cpu.steal", 80},
		{"interrupts", 12345},
		{"context_switches", 99},
		{"softirq.NET_RX", 123},
		{"softirq.TIMER", 3},
		{"softnet.processed", 0x11},
		{"softnet.dropped", 0x11},
		{"softnet.squeezed", 3},
		{"pressure.cpu.some", 777},
		{"pressure.cpu.full", 5},
		{"cgroup.throttled", 7},
		{"cgroup.throttled_us", 1037},
		{"thread.link-0.preempted", 34},
		{"thread.link-0.slept", 12},
		{"nic.eth1.rx_dropped", 55},
		{"nic.eth1.rx_missed_errors", 66},
		{"nic.eth1.interrupts", 111},
		{"kernel.Ip.ReasmFails", 3},
		{"kernel.Udp.NoPorts", 8},
		{"kernel.Udp.InErrors", 7},
		{"kernel.Udp.RcvbufErrors", 6},
		{"io.wchar", 22},
		{"io.write_bytes", 44},
	};
	struct sl_series_ring *ring = sl_series_open();
	struct sl_flight_host h;

	assert_int_equal(sl_flight_host_open(&h, root), 0);
	sl_flight_host_add_interface(&h, "eth1");
	sl_flight_host_add_interface(&h, "eth1");
	assert_int_equal(h.interfaces, 1);
	sample(&h, true, ring);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (value(ring, wanted[i].name) != wanted[i].value)
			fail_msg("%s is %llu", wanted[i].name,
				 (unsigned long long)value(ring, wanted[i].name));
	/* Two threads of one name, whatever their order. */
	assert_int_not_equal(value(ring, "thread.link-0.run"), SL_SERIES_ABSENT);
	assert_int_equal(value(ring, "thread.link-0.run") +
				 (value(ring, "thread.link-0-18.run") != SL_SERIES_ABSENT
					  ? value(ring, "thread.link-0-18.run")
					  : value(ring, "thread.link-0-17.run")),
			 112);
	assert_int_equal(value(ring, "kernel.Udp.InDatagrams"), SL_SERIES_ABSENT);
	sample(&h, false, ring);
	assert_int_equal(value(ring, "cpu.user"), SL_SERIES_ABSENT);
	assert_int_equal(value(ring, "softnet.dropped"), 0x11);
	sl_flight_host_close(&h);
	sl_series_close(ring);
}

/* Files that are empty, cut off or nonsense do no harm. */
static void nonsense_is_no_harm(void **state)
{
	static const char *const files[] = {"/proc/stat",
					    "/proc/softirqs",
					    "/proc/net/softnet_stat",
					    "/proc/pressure/cpu",
					    "/proc/self/cgroup",
					    "/proc/interrupts",
					    "/proc/net/snmp",
					    "/proc/self/io",
					    "/proc/self/task/17/comm",
					    "/proc/diskstats",
					    "/proc/self/task/17/schedstat"};
	static const char *const texts[] = {
		"",    "\n\n\n",	"cpu", ":", " : ", "Udp:\nUdp:\n", "a b c d e\n1:2:3",
		"24:", "\x01\xff\n \t "};
	struct sl_series_ring *ring = sl_series_open();
	struct sl_flight_host h;

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
			make(files[i], texts[t]);
		assert_int_equal(sl_flight_host_open(&h, root), 0);
		sl_flight_host_add_interface(&h, "eth1");
		sl_flight_host_add_disk(&h, root);
		sample(&h, true, ring);
		sl_flight_host_close(&h);
	}
	sl_series_close(ring);
}

static void this_host_is_read(void **state)
{
	struct sl_series_ring *ring = sl_series_open();
	struct sl_flight_host h;

	assert_int_equal(sl_flight_host_open(&h, ""), 0);
	sl_flight_host_add_interface(&h, "lo");
	sl_flight_host_add_interface(&h, "no-such-nic");
	sl_flight_host_add_disk(&h, "/tmp");
	sl_flight_host_add_disk(&h, "/no/such/folder");
	sample(&h, true, ring);
	assert_int_not_equal(value(ring, "cpu.user"), SL_SERIES_ABSENT);
	assert_int_not_equal(value(ring, "nic.lo.rx_packets"), SL_SERIES_ABSENT);
	assert_int_equal(value(ring, "nic.no-such-nic.rx_packets"), SL_SERIES_ABSENT);
	assert_int_not_equal(value(ring, "space.0"), SL_SERIES_ABSENT);
	assert_int_equal(value(ring, "space.1"), SL_SERIES_ABSENT);
	sl_flight_host_close(&h);
	sl_series_close(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(nonsense_is_no_harm),
		cmocka_unit_test(this_host_is_read),
	};

	return cmocka_run_group_tests(tests, make_host, remove_host);
}
