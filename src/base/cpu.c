/* cpu.c - processors, from /sys. */
#include "base/cpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sysfile.h"

enum { LIST_BYTES = 4096, NEAR = 10, FAR = 20 }; /* distances as in ACPI's SLIT */

#define CACHE_OF_CPU "/sys/devices/system/cpu/cpu0/cache/index"

/* One "a" or "a-b" at *text, which moves past it. */
static int read_range(const char **text, int *first, int *last)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	*first = *last = (int)strtoul(*text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return -EINVAL;
		*last = (int)strtoul(end + 1, &end, 10);
	}
	*text = end;
	return *first >= 0 && *last >= *first && *last < SL_CPUS ? 0 : -EINVAL;
}

int sl_cpu_list_numbers(const char *text, int number[SL_CPUS])
{
	int n = 0, first, last;

	while (*text) {
		text += strspn(text, ", ");
		if (!*text)
			break;
		if (read_range(&text, &first, &last))
			return -EINVAL;
		if (*text && *text != ',' && *text != ' ')
			return -EINVAL;
		for (; first <= last && n < SL_CPUS; first++)
			number[n++] = first;
	}
	return n;
}

int sl_cpu_list_parse(const char *text, cpu_set_t *set)
{
	int number[SL_CPUS], n = sl_cpu_list_numbers(text, number);

	if (n < 0)
		return n;
	CPU_ZERO(set);
	for (int i = 0; i < n; i++)
		CPU_SET(number[i], set);
	return 0;
}

void sl_cpu_list_format(const cpu_set_t *set, char *text, size_t bytes)
{
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < SL_CPUS && used < bytes; i++) {
		int last = i;

		if (!CPU_ISSET(i, set))
			continue;
		while (last + 1 < SL_CPUS && CPU_ISSET(last + 1, set))
			last++;
		used += (size_t)snprintf(text + used, bytes - used, last > i ? "%s%d-%d" : "%s%d",
					 used ? "," : "", i, last);
		i = last;
	}
}

static bool read_set(const char *root, const char *path, cpu_set_t *set)
{
	char text[LIST_BYTES];

	return sl_sysfile_line(root, text, sizeof(text), "%s", path) &&
	       sl_cpu_list_parse(text, set) == 0;
}

/* What this process may use of them: its main thread's word, which others have from it. */
static void read_allowed(const char *root, struct sl_cpus *cpus)
{
	char text[LIST_BYTES];

	cpus->allowed = cpus->online;
	if (sl_sysfile_value(root, "/proc/self/status", "Cpus_allowed_list", text, sizeof(text)) &&
	    sl_cpu_list_parse(text, &cpus->allowed) == 0)
		CPU_AND(&cpus->allowed, &cpus->allowed, &cpus->online);
}

static void read_distances(const char *root, struct sl_cpus *cpus, int node)
{
	char text[LIST_BYTES];
	const char *at = text;

	for (int other = 0; other < SL_CPU_NODES; other++)
		cpus->distance[node][other] = other == node ? NEAR : FAR;
	if (!sl_sysfile_line(root, text, sizeof(text), "/sys/devices/system/node/node%d/distance",
			     node))
		return;
	for (int other = 0; other < SL_CPU_NODES && *at; other++) {
		char *end;
		unsigned long value = strtoul(at, &end, 10);

		if (end == at)
			break;
		cpus->distance[node][other] = (uint8_t)(value < 255 ? value : 255);
		at = end;
	}
}

static void read_nodes(const char *root, struct sl_cpus *cpus)
{
	cpu_set_t nodes, of_node; /* numbers of nodes are listed as those of cpus are */
	char path[64];

	if (!read_set(root, "/sys/devices/system/node/online", &nodes)) {
		cpus->nodes = 1;
		return;
	}
	for (int node = 0; node < SL_CPU_NODES; node++) {
		if (!CPU_ISSET(node, &nodes))
			continue;
		cpus->nodes++;
		read_distances(root, cpus, node);
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
		if (!read_set(root, path, &of_node))
			continue; /* memory without processors */
		for (int i = 0; i < SL_CPUS; i++)
			if (CPU_ISSET(i, &of_node))
				cpus->node[i] = (int8_t)node;
	}
}

static void read_rank(const char *root, struct sl_cpus *cpus, int cpu)
{
	cpu_set_t siblings;
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	if (!read_set(root, path, &siblings))
		return;
	for (int i = 0; i < cpu; i++)
		cpus->rank[cpu] += CPU_ISSET(i, &siblings) ? 1 : 0;
}

void sl_cpus_read(const char *root, struct sl_cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	if (!read_set(root, "/sys/devices/system/cpu/online", &cpus->online))
		CPU_SET(0, &cpus->online);
	read_allowed(root, cpus);
	if (!read_set(root, "/sys/devices/system/cpu/isolated", &cpus->isolated))
		CPU_ZERO(&cpus->isolated);
	read_nodes(root, cpus);
	for (int i = 0; i < SL_CPUS; i++)
		if (CPU_ISSET(i, &cpus->online))
			read_rank(root, cpus, i);
}

uint64_t sl_cpu_last_cache_bytes(const char *root)
{
	long long level, kib, most = 0, last_kib = 0;

	for (int i = 0; sl_sysfile_number(root, &level, CACHE_OF_CPU "%d/level", i); i++)
		if (level > most &&
		    sl_sysfile_number(root, &kib, CACHE_OF_CPU "%d/size", i)) { /* as in "512K" */
			most = level;
			last_kib = kib;
		}
	return last_kib > 0 ? (uint64_t)last_kib * 1024 : 0;
}

static uint32_t cost_of(const struct sl_cpus *cpus, int cpu, int node)
{
	uint32_t distance = cpus->nodes > 1 ? cpus->distance[node][cpus->node[cpu]] : 0;

	return (CPU_ISSET(cpu, &cpus->isolated) ? 0u : 1u) << 24 | (uint32_t)cpus->rank[cpu] << 16 |
	       distance << 8 | (cpu == 0 ? 1u : 0u);
}

unsigned sl_cpus_order(const struct sl_cpus *cpus, int node, int order[SL_CPUS])
{
	unsigned n = 0;

	for (int cpu = 0; cpu < SL_CPUS; cpu++) {
		unsigned at = n;

		if (!CPU_ISSET(cpu, &cpus->allowed))
			continue;
		if (node < 0 || node >= SL_CPU_NODES)
			node = cpus->node[cpu];
		/* Stable: among equals the lower number comes first. */
		for (; at && cost_of(cpus, order[at - 1], node) > cost_of(cpus, cpu, node); at--)
			order[at] = order[at - 1];
		order[at] = cpu;
		n++;
	}
	return n;
}
