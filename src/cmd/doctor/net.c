/* net.c - sluice doctor: interfaces, their interrupts, buffers of sockets, privileges. */
#include <dirent.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sysfile.h"
#include "cmd/doctor/doctor.h"
#include "net/interface.h"
#include "net/xdp/xdp.h"

enum {
	WANTED_RMEM = 64 << 20, /* 5 ms at 100 Gb/s */
	WANTED_BACKLOG = 1000,	/* the kernel's own default */
	MENDED_BACKLOG = 16384,
	HEADERS = 84,	     /* IPv6, UDP, BTH, RETH, immediate, ICRC */
	NATIVE_HEADERS = 96, /* IPv6, UDP, 48 of a detector */
	LIST_BYTES = 512,
};

/* ---- buffers ---- */

static void check_receive_buffer(struct sl_doctor *d)
{
	uint64_t wanted = WANTED_RMEM;
	struct sl_link_facts facts = {.sockets = true};
	long long most;
	bool good;

	if (!sl_sysfile_number(d->root, &most, "/proc/sys/net/core/rmem_max"))
		return;
	if (d->experiment)
		sl_link_facts(d->experiment->link, d->experiment->link_state, &facts);
	if (facts.sockets && facts.receive_buffer)
		wanted = facts.receive_buffer;
	if (sl_doctor_may(d, CAP_NET_ADMIN)) {
		sl_doctor_say(d, true,
			      "net.core.rmem_max is %lld bytes; this process may have "
			      "larger receive buffers (CAP_NET_ADMIN)",
			      most);
		if (sl_doctor_is_native(d))
			sl_doctor_native_buffer(d, wanted);
		return;
	}
	good = (uint64_t)most >= wanted || !facts.sockets || d->front_end;
	sl_doctor_say(d, good,
		      "net.core.rmem_max is %lld bytes: the largest receive buffer a user may have",
		      most);
	if (!good)
		sl_doctor_fix(d, "sudo sysctl -w net.core.rmem_max=%llu",
			      (unsigned long long)wanted);
	if (sl_doctor_is_native(d))
		sl_doctor_native_buffer(d, (uint64_t)most < wanted ? (uint64_t)most : wanted);
}

/* Packets that a cpu had no room for since the host was started: the second number of a line. */
static unsigned long long backlog_drops(const struct sl_doctor *d)
{
	unsigned long long all = 0, one;
	char path[512], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/net/softnet_stat", d->root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*x %llx", &one) == 1)
			all += one;
	if (file)
		fclose(file);
	return all;
}

static void check_backlog(struct sl_doctor *d)
{
	unsigned long long drops = backlog_drops(d);
	long long backlog;
	bool good;

	if (!sl_sysfile_number(d->root, &backlog, "/proc/sys/net/core/netdev_max_backlog") ||
	    sl_doctor_has_link(d, "shm") || sl_doctor_has_link(d, "verbs"))
		return;
	good = backlog >= WANTED_BACKLOG && (!drops || backlog >= MENDED_BACKLOG);
	sl_doctor_say(d, good,
		      "net.core.netdev_max_backlog is %lld packets; %llu were dropped there so far",
		      backlog, drops);
	if (!good)
		sl_doctor_fix(d, "sudo sysctl -w net.core.netdev_max_backlog=%d", MENDED_BACKLOG);
}

void sl_doctor_buffers(struct sl_doctor *d)
{
	check_receive_buffer(d);
	check_backlog(d);
}

/* ---- privileges ---- */

/* Link xdp does with smaller packets, too; fewer and larger ones are better. */
static void check_xdp_packets(struct sl_doctor *d)
{
	char release[64];
	const char *why;

	if (sl_experiment_pmtu(d->experiment) <= SL_XDP_PMTU_SMALL ||
	    !sl_sysfile_line(d->root, release, sizeof(release), "/proc/sys/kernel/osrelease"))
		return;
	why = sl_xdp_kernel_limit(release);
	sl_doctor_say(d, !why, "Linux %s: link xdp has packets of %u bytes%s%s", release,
		      why ? SL_XDP_PMTU_SMALL : sl_experiment_pmtu(d->experiment),
		      why ? " at most, since " : "", why ? why : "");
	if (why)
		sl_doctor_fix(d, "(a newer kernel, or link.pmtu: %d)", SL_XDP_PMTU_SMALL);
}

void sl_doctor_privileges(struct sl_doctor *d)
{
	bool raw = sl_doctor_may(d, CAP_NET_RAW), admin = sl_doctor_may(d, CAP_NET_ADMIN);
	bool bpf = sl_doctor_may(d, CAP_BPF) || sl_doctor_may(d, CAP_SYS_ADMIN);
	bool packet = sl_doctor_has_link(d, "packet"), xdp = sl_doctor_has_link(d, "xdp");
	bool good = d->front_end || ((!packet || raw) && (!xdp || (raw && admin && bpf)));
	char program[512];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (d->experiment && !packet && !xdp)
		return;
	program[n > 0 ? n : 0] = 0;
	sl_doctor_say(d, good,
		      "privileges: CAP_NET_RAW %s (links packet and xdp), CAP_NET_ADMIN "
		      "%s and CAP_BPF %s (link xdp)",
		      raw ? "yes" : "no", admin ? "yes" : "no", bpf ? "yes" : "no");
	if (!good)
		sl_doctor_fix(d, "sudo setcap %s+ep %s",
			      xdp ? "cap_net_raw,cap_net_admin,cap_bpf" : "cap_net_raw",
			      n > 0 ? program : "\"$(command -v sluice)\"");
	if (xdp && !d->front_end)
		check_xdp_packets(d);
}

/* ---- interrupts ---- */

/* Where the interrupts of a device go; false: it does not tell of any. */
static bool read_interrupts(const struct sl_doctor *d, const char *device, cpu_set_t *set)
{
	char path[512], text[LIST_BYTES];
	struct dirent *entry;
	cpu_set_t one;
	DIR *folder;

	CPU_ZERO(set);
	snprintf(path, sizeof(path), "%s/sys/class/net/%s/%s/msi_irqs", d->root, device,
		 sl_net_interface_folder(d->root, device));
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		int irq = atoi(entry->d_name);

		if (irq <= 0 ||
		    (!sl_sysfile_line(d->root, text, sizeof(text),
				      "/proc/irq/%d/effective_affinity_list", irq) &&
		     !sl_sysfile_line(d->root, text, sizeof(text), "/proc/irq/%d/smp_affinity_list",
				      irq)) ||
		    sl_cpu_list_parse(text, &one))
			continue;
		CPU_OR(set, set, &one);
	}
	if (folder)
		closedir(folder);
	return CPU_COUNT(set) > 0;
}

/* Where they should go: near the device, beside the data threads, not on isolated cpus. */
static void choose_interrupts(const struct sl_doctor *d, int node, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (int i = 0; i < SL_CPUS; i++)
		if (CPU_ISSET(i, &d->cpus.online) && !CPU_ISSET(i, &d->cpus.isolated) &&
		    !(d->placement.pinned && CPU_ISSET(i, &d->placement.set)) &&
		    (node < 0 || d->cpus.node[i] == node))
			CPU_SET(i, set);
}

static void check_interrupts(struct sl_doctor *d, const char *device)
{
	int node = d->cpus.nodes > 1 ? sl_net_interface_node(d->root, device) : -1;
	char list[LIST_BYTES], better[LIST_BYTES];
	cpu_set_t now, wanted, both;

	if (!read_interrupts(d, device, &now))
		return;
	choose_interrupts(d, node, &wanted);
	CPU_AND(&both, &now, &wanted);
	sl_cpu_list_format(&now, list, sizeof(list));
	sl_cpu_list_format(&wanted, better, sizeof(better));
	if (!CPU_COUNT(&wanted) || CPU_EQUAL(&both, &now)) {
		sl_doctor_say(d, true, "%s: interrupts go to cpus %s", device, list);
		return;
	}
	sl_doctor_say(d, false,
		      "%s: interrupts go to cpus %s; best are %s, near it and beside data threads",
		      device, list, better);
	sl_doctor_fix(d,
		      "for i in /sys/class/net/%s/%s/msi_irqs/*; do echo %s | sudo tee "
		      "/proc/irq/${i##*/}/smp_affinity_list; done   # irqbalance would undo it: "
		      "sudo systemctl stop irqbalance",
		      device, sl_net_interface_folder(d->root, device), better);
}

/* ---- interfaces ---- */

static void check_mtu(struct sl_doctor *d, const char *name, const char *address)
{
	bool native = sl_doctor_is_native(d);
	unsigned pmtu = native		? sl_doctor_native_payload(d)
			: d->experiment ? sl_experiment_pmtu(d->experiment)
					: 4096;
	long long mtu;
	char state[32];
	bool good;

	if (sl_sysfile_line(d->root, state, sizeof(state), "/sys/class/net/%s/operstate", name) &&
	    !strcmp(state, "down")) {
		sl_doctor_say(d, false, "%s (%s) is down", name, address);
		sl_doctor_fix(d, "sudo ip link set %s up", name);
	}
	if (!sl_sysfile_number(d->root, &mtu, "/sys/class/net/%s/mtu", name))
		return;
	good = mtu >= (long long)pmtu + (native ? NATIVE_HEADERS : HEADERS);
	sl_doctor_say(d, good, "%s (%s): MTU %lld, packets carry %u bytes", name, address, mtu,
		      pmtu);
	if (!good)
		sl_doctor_fix(d, "sudo ip link set %s mtu 9000%s", name,
			      native ? "" : "   # or link.pmtu: 1024");
}

void sl_doctor_interface(struct sl_doctor *d, const char *address, const char *option)
{
	char name[IF_NAMESIZE], device[IF_NAMESIZE], path[512];
	struct sl_nic nic;
	struct stat st;

	if (!sl_net_interface(address, name)) {
		sl_doctor_say(d, false, "no interface of this host has the address %s (%s)",
			      address, option);
		sl_doctor_fix(d, "ip -brief address   # shows those it has");
		return;
	}
	check_mtu(d, name, address);
	sl_net_interface_device(d->root, name, device);
	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device", d->root, device);
	if (stat(path, &st) != 0)
		return; /* loopback and virtual interfaces have nothing below them */
	if (!d->root[0]) {
		sl_nic_read(device, strchr(address, ':') != NULL, &nic);
		sl_doctor_nic(d, &nic);
	}
	if (!sl_doctor_has_link(d, "verbs") && !d->front_end)
		check_interrupts(d, device);
}
