/* cpu.c - sluice doctor: cpus for data threads, and where they are. */
#include <errno.h>
#include <string.h>

#include "base/sysfile.h"
#include "cmd/doctor/doctor.h"
#include "core/numa.h"

enum { LIST_BYTES = 512, LIKED = 4 /* link, assembler, processing, files */ };

static void set_of_node(const struct sl_doctor *d, int node, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (int i = 0; i < SL_CPUS; i++)
		if (CPU_ISSET(i, &d->cpus.online) && d->cpus.node[i] == node)
			CPU_SET(i, set);
}

/* What the experiment's threads get, or would get if the process might use all cpus. */
static void check_room(struct sl_doctor *d)
{
	const struct sl_placement *p = &d->placement;
	int online = CPU_COUNT(&d->cpus.online), allowed = CPU_COUNT(&d->cpus.allowed);
	char text[LIST_BYTES], list[LIST_BYTES];

	if (!d->experiment) {
		sl_doctor_say(d, allowed >= LIKED,
			      "%d cores: link, assembler, processing and files each like one",
			      allowed);
		if (allowed < LIKED)
			sl_doctor_fix(d, "(more cores; on this machine everything shares, and it "
					 "works)");
		return;
	}
	sl_placement_describe(p, text, sizeof(text));
	sl_doctor_say(d, true, "threads: %s", p->counts);
	sl_doctor_say(d, !p->crowded || p->fills, "%d cores: %s", allowed, text);
	if (!p->crowded || p->fills)
		return;
	sl_cpu_list_format(&d->cpus.online, list, sizeof(list));
	if (p->shared)
		sl_doctor_fix(d, "(more of them in threads.cpus; %u threads want one each)",
			      p->threads);
	else if (online > allowed && (unsigned)online > p->line)
		sl_doctor_fix(d, "taskset -c %s sluice run %s   # and its cgroup must have them",
			      list, d->file);
	else
		sl_doctor_fix(d, "(more cores; on this machine everything shares, and it works)");
}

static void check_governor(struct sl_doctor *d)
{
	char text[64];
	bool found = false;

	for (int i = 0; i < SL_CPUS; i++) {
		if (!CPU_ISSET(i, &d->cpus.allowed) ||
		    !sl_sysfile_line(d->root, text, sizeof(text),
				     "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i))
			continue;
		found = true;
		if (!strcmp(text, "performance"))
			continue;
		sl_doctor_say(d, false, "cpu %d: frequency governor %s", i, text);
		sl_doctor_fix(d, "sudo cpupower frequency-set -g performance");
		return;
	}
	if (found)
		sl_doctor_say(d, true, "frequency governor performance on all cpus");
}

static bool read_list(const struct sl_doctor *d, const char *name, cpu_set_t *set)
{
	char text[4096];

	CPU_ZERO(set);
	return sl_sysfile_line(d->root, text, sizeof(text), "/sys/devices/system/cpu/%s", name) &&
	       !sl_cpu_list_parse(text, set) && CPU_COUNT(set);
}

/* Who never sleeps is disturbed by everybody else that has work for its cpu. */
static void advise_isolation(struct sl_doctor *d, const char *what)
{
	char list[LIST_BYTES];

	sl_cpu_list_format(&d->placement.set, list, sizeof(list));
	sl_doctor_say(d, false, "%s", what);
	sl_doctor_fix(d,
		      "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus=%s "
		      "nohz_full=%s rcu_nocbs=%s\"' | sudo tee /etc/default/grub.d/sluice.cfg && "
		      "sudo update-grub   # then reboot",
		      list, list, list);
}

static void check_isolation(struct sl_doctor *d)
{
	bool latency = d->experiment && d->placement.pinned &&
		       d->experiment->threads.polling == SL_POLLING_LATENCY;
	cpu_set_t ours, all, tickless, both;
	char list[LIST_BYTES], all_list[LIST_BYTES];

	CPU_AND(&ours, &d->cpus.isolated, &d->cpus.allowed);
	sl_cpu_list_format(&d->cpus.isolated, list, sizeof(list));
	if (!CPU_COUNT(&d->cpus.isolated)) {
		if (latency)
			advise_isolation(d, "no cpu is isolated: others run where threads wait "
					    "without sleeping");
		return;
	}
	if (!CPU_COUNT(&ours)) {
		CPU_OR(&all, &d->cpus.allowed, &d->cpus.isolated);
		sl_cpu_list_format(&all, all_list, sizeof(all_list));
		sl_doctor_say(d, false, "cpus %s are isolated, and this process may not use them",
			      list);
		sl_doctor_fix(d, "taskset -c %s sluice run %s", all_list, d->file);
		return;
	}
	sl_doctor_say(d, true, "cpus %s are isolated; data threads get them first", list);
	read_list(d, "nohz_full", &tickless);
	CPU_AND(&both, &tickless, &d->placement.set);
	if (latency && !CPU_EQUAL(&both, &d->placement.set))
		advise_isolation(d, "the clock interrupts threads that wait without sleeping "
				    "(nohz_full does not have their cpus)");
}

static void check_near(struct sl_doctor *d)
{
	const struct sl_placement *p = &d->placement;
	char list[LIST_BYTES];
	cpu_set_t near, ours;
	bool good;

	if (!d->experiment || p->interface_node < 0)
		return;
	set_of_node(d, p->interface_node, &near);
	sl_cpu_list_format(&near, list, sizeof(list));
	CPU_AND(&ours, &p->set, &near);
	good = p->pinned   ? d->cpus.node[p->cpu[0]] == p->interface_node
	       : p->shared ? CPU_EQUAL(&ours, &p->set)
			   : true;
	sl_doctor_say(d, good || !CPU_COUNT(&near), "%s is on NUMA node %d, which has cpus %s%s",
		      p->interface, p->interface_node, list,
		      good ? "" : "; data threads run elsewhere");
	if (good || !CPU_COUNT(&near))
		return;
	if (d->experiment->threads.cpus[0] || d->experiment->threads.source_cpus[0])
		sl_doctor_fix(d, "set threads.%s: %s", d->front_end ? "source_cpus" : "cpus", list);
	else
		sl_doctor_fix(d, "taskset -c %s sluice run %s", list, d->file);
}

static void check_numa(struct sl_doctor *d)
{
	long long balancing;
	int err;

	if (d->cpus.nodes < 2)
		return;
	check_near(d);
	if (sl_sysfile_number(d->root, &balancing, "/proc/sys/kernel/numa_balancing")) {
		sl_doctor_say(d, !balancing, "NUMA balancing is %s%s", balancing ? "on" : "off",
			      balancing ? ": it takes pages away to see who uses them" : "");
		if (balancing)
			sl_doctor_fix(d, "sudo sysctl -w kernel.numa_balancing=0");
	}
	if (d->root[0])
		return;
	err = sl_numa_prefer(0);
	if (!err)
		sl_numa_forget();
	if (err != -EPERM)
		return;
	sl_doctor_say(d, false, "this process may not choose the NUMA node of its memory");
	sl_doctor_fix(d, "docker run --cap-add SYS_NICE ...   # or what lifts the filter here");
}

void sl_doctor_cpu(struct sl_doctor *d)
{
	check_room(d);
	check_governor(d);
	check_isolation(d);
	check_numa(d);
}
