/* doctor.c - sluice doctor: what stands between this host and line rate, each with the command
 * that mends it. Reads only; changes nothing; everything also works without, only slower. */
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "net/net.h"
#include "pipeline/experiment.h"
#include "verbs/verbs.h"

enum {
	WANTED_RMEM = 64 << 20, /* 5 ms at 100 Gb/s */
	HEADERS = 84,		/* IPv6, UDP, BTH, RETH, immediate, ICRC */
};

static unsigned wants; /* things to mend */

__attribute__((format(printf, 2, 3))) static void say(bool good, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf(good ? "  ok    " : "  mend  ");
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	wants += !good;
}

static void fix(const char *command)
{
	printf("          %s\n", command);
}

/* The first line of a small file; false when there is none. */
static bool read_line(const char *path, char *text, int bytes)
{
	FILE *file = fopen(path, "r");
	bool got = file && fgets(text, bytes, file);

	if (file)
		fclose(file);
	if (got)
		text[strcspn(text, "\n")] = 0;
	return got;
}

static void check_buffers(void)
{
	char text[64], command[128];

	if (!read_line("/proc/sys/net/core/rmem_max", text, sizeof(text)))
		return;
	say(atoll(text) >= WANTED_RMEM,
	    "net.core.rmem_max is %s bytes: the largest receive buffer a user may have", text);
	if (atoll(text) < WANTED_RMEM) {
		snprintf(command, sizeof(command), "sudo sysctl -w net.core.rmem_max=%d",
			 WANTED_RMEM);
		fix(command);
	}
}

static void check_huge_pages(void)
{
	char text[128];
	bool good;

	if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)))
		return;
	good = !strstr(text, "[never]");
	say(good, "transparent huge pages: %s", text);
	if (!good)
		fix("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

static void check_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		say(true, "locked memory (ulimit -l): unlimited");
	else {
		say(geteuid() == 0,
		    "locked memory (ulimit -l): at most %llu KiB; an RDMA NIC pins the whole ring",
		    (unsigned long long)limit.rlim_cur / 1024);
		if (geteuid() != 0)
			fix("echo '* - memlock unlimited' | sudo tee "
			    "/etc/security/limits.d/sluice.conf   # then log in again");
	}
}

static void tell_address(void *arg, const struct sl_verbs_info *info)
{
	static const uint8_t none[SL_VERBS_GID_BYTES];
	char text[SL_NET_TEXT_BYTES];

	(void)arg;
	if (memcmp(info->gid, none, sizeof(none)) == 0) {
		say(false, "RDMA: %s has no RoCE v2 address that can be used%s", info->name,
		    info->max_work ? "" : ", or this user may not open it");
		fix(info->max_work ? "sudo ip address add ADDRESS/PREFIX dev INTERFACE   # rdma "
				     "link shows which"
				   : "ls -l /dev/infiniband   # uverbs* must be readable and "
				     "writable");
		return;
	}
	sl_net_format(info->gid, text);
	say(info->active, "RDMA: %s port %u has %s (GID %u), path MTU %u%s", info->name, info->port,
	    text, info->gid_index, info->pmtu, info->active ? "" : ", port down");
	if (!info->active)
		fix("sudo ip link set INTERFACE up   # and a cable");
}

/* What link verbs needs. Where nobody asks for it, its absence is not a fault. */
static void check_rdma(bool wanted)
{
	const char *why = sl_verbs_unavailable();

	if (!why && sl_verbs_survey(tell_address, NULL) > 0)
		return;
	say(!wanted, "RDMA: no %s, which link verbs needs", why ? "library" : "device");
	fix(why ? why
		: "a card, or Soft-RoCE: sudo modprobe rdma_rxe && sudo rdma link add rxe0 type "
		  "rxe netdev INTERFACE");
}

static void check_cpus(void)
{
	char text[64];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	bool good;

	say(cores >= 4, "%ld cores: link, assembler, processing and files each like one", cores);
	if (cores < 4)
		fix("(more cores; on this machine everything shares, and it works)");
	if (!read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text)))
		return;
	good = !strcmp(text, "performance");
	say(good, "CPU frequency governor: %s", text);
	if (!good)
		fix("sudo cpupower frequency-set -g performance");
}

struct wanted {
	uint8_t gid[SL_NET_GID_BYTES];
	bool found;
};

static void compare(void *arg, const struct sl_verbs_info *info)
{
	struct wanted *w = arg;

	w->found |= memcmp(info->gid, w->gid, sizeof(w->gid)) == 0;
}

static void check_rdma_address(const char *address)
{
	struct wanted w = {.found = false};

	if (sl_verbs_unavailable() || sl_net_parse("link.listen", address, w.gid))
		return;
	sl_verbs_survey(compare, &w);
	if (w.found)
		return;
	say(false, "RDMA: no device has the address %s (link.listen)", address);
	fix("rdma link; ip -brief address   # show devices, their interfaces, and addresses");
}

/* The interface that has this address. */
static bool find_interface(const char *address, char *name, size_t bytes)
{
	uint8_t wanted[SL_NET_GID_BYTES], has[SL_NET_GID_BYTES];
	union sl_net_address at;
	struct ifaddrs *all, *i;
	bool found = false;

	if (!sl_net_numeric(address, 0, &at) || getifaddrs(&all) != 0)
		return false;
	sl_net_gid(&at, wanted);
	for (i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != at.any.sa_family)
			continue;
		sl_net_gid((const union sl_net_address *)i->ifa_addr, has);
		found = (sl_net_same_host(&at) && (i->ifa_flags & IFF_LOOPBACK)) ||
			!memcmp(has, wanted, sizeof(has));
		if (found)
			snprintf(name, bytes, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

static void check_pause(int fd, const char *name)
{
	struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ifreq request = {.ifr_data = (char *)&pause};
	char command[128];

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCETHTOOL, &request) != 0)
		return; /* loopback and virtual interfaces have none */
	say(pause.rx_pause && pause.tx_pause, "%s: pause frames rx %s, tx %s", name,
	    pause.rx_pause ? "on" : "off", pause.tx_pause ? "on" : "off");
	if (!pause.rx_pause || !pause.tx_pause) {
		snprintf(command, sizeof(command), "sudo ethtool -A %s rx on tx on", name);
		fix(command);
	}
}

static void check_interface(const char *address, unsigned pmtu)
{
	struct ifreq request = {0};
	char name[IFNAMSIZ], command[128];
	int fd;

	if (!find_interface(address, name, sizeof(name))) {
		say(false, "no interface of this host has the address %s (link.listen)", address);
		fix("ip -brief address   # shows those it has");
		return;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFMTU, &request) == 0) {
		bool good = request.ifr_mtu >= (int)pmtu + HEADERS;

		say(good, "%s (%s): MTU %d, packets carry %u bytes", name, address, request.ifr_mtu,
		    pmtu);
		if (!good) {
			snprintf(command, sizeof(command),
				 "sudo ip link set %s mtu %d   # or link.pmtu: 1024", name, 9000);
			fix(command);
		}
	}
	check_pause(fd, name);
	close(fd);
}

static void check_memory(const struct sl_experiment *e, uint64_t module_bytes)
{
	uint64_t ring = sl_ring_region_bytes(e->ring.slots, e->run.modules, module_bytes);
	uint64_t have = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	say(ring < have, "a ring of %u slots takes %.2f GB; %.1f GB are free", e->ring.slots,
	    (double)ring * 1e-9, (double)have * 1e-9);
	if (ring >= have)
		fix("set ring.slots lower");
}

static bool is_verbs(const struct sl_experiment *e)
{
	return strcmp(e->link->name, "verbs") == 0;
}

static void check_experiment(struct sl_experiment *e)
{
	const struct sl_option *listen = sl_option_find(e->link->options, "listen");
	struct sl_geometry geometry;
	char addresses[256] = "";

	if (listen)
		sl_option_print(listen, e->link_state, addresses, sizeof(addresses));
	/* Several, where the link takes several; none: the link finds them itself. */
	for (char *save, *one = strtok_r(addresses, ", ", &save); one;
	     one = strtok_r(NULL, ", ", &save)) {
		check_interface(one, sl_experiment_pmtu(e));
		if (is_verbs(e))
			check_rdma_address(one);
	}
	if (e->detector->open(e->detector_state, &e->run, &geometry) == 0)
		check_memory(e, geometry.module_bytes);
	e->detector->close(e->detector_state);
}

int sl_cmd_doctor(const struct sl_command *command, int argc, char **argv)
{
	struct sl_experiment *experiment = NULL;
	struct sl_args args;
	int err = sl_args_read(command, NULL, NULL, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains &&
	    sl_experiment_open(args.plain[0], NULL, args.set, args.sets, &experiment))
		return 1;
	check_cpus();
	check_buffers();
	check_huge_pages();
	check_memlock();
	check_rdma(experiment && is_verbs(experiment));
	if (experiment) {
		check_experiment(experiment);
		sl_experiment_close(experiment);
	} else
		check_interface("127.0.0.1", 4096);
	printf("\n%s\n", wants ? "What is marked 'mend' costs speed, not correctness."
			       : "This host lacks nothing we know of.");
	return 0;
}
