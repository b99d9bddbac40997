/* cpu.h - the processors of this host, and the order in which to give them to busy threads.
 *
 * Model:     a cpu is a hardware thread, by the kernel's number. What /sys says of each: the NUMA
 *            node it belongs to, which of the threads of its core it is, whether the kernel keeps
 *            others off it (isolcpus). Allowed are those that this process may run on, by taskset,
 *            cgroup or cpuset.
 * Threads:   no state; read before any data thread starts. */
#ifndef SL_BASE_CPU_H
#define SL_BASE_CPU_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_CPUS = CPU_SETSIZE, SL_CPU_NODES = 64, SL_CPU_NO_NODE = -1 };

struct sl_cpus {
	cpu_set_t online, allowed, isolated;
	unsigned nodes;	       /* NUMA nodes; 1 where the kernel knows none */
	int8_t node[SL_CPUS];  /* of a cpu */
	uint8_t rank[SL_CPUS]; /* of a cpu among the threads of its core, from 0 */
	uint8_t distance[SL_CPU_NODES][SL_CPU_NODES]; /* as the firmware says; near is small */
};

/* root: see sysfile.h. What /sys does not tell is taken to be plain: one node, whole cores. */
void sl_cpus_read(const char *root, struct sl_cpus *cpus);

/* Those of the cpus that are allowed, best first: isolated ones, whole cores before second threads
 * of a core, near `node` before far from it (SL_CPU_NO_NODE: near the first one), and cpu 0, where
 * the kernel likes to do its own work, after its like. How many. */
unsigned sl_cpus_order(const struct sl_cpus *cpus, int node, int order[SL_CPUS]);

/* Bytes of the largest cache that one cpu can fill alone: on a processor of several chiplets that
 * of one chiplet, where glibc's sysconf() gives the sum of all. 0: /sys does not tell. */
uint64_t sl_cpu_last_cache_bytes(const char *root);

/* "0-3,8" to a set and back. -EINVAL: not such a list, or a number that no cpu can have. */
int sl_cpu_list_parse(const char *text, cpu_set_t *set);
void sl_cpu_list_format(const cpu_set_t *set, char *text, size_t bytes);

/* The numbers in the order in which the list has them. -EINVAL, or how many. */
int sl_cpu_list_numbers(const char *text, int number[SL_CPUS]);

#endif
