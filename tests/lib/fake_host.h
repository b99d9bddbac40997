/* fake_host.h - a folder with the /proc and /sys of a host that does not exist.
 *
 * fake_begin(); fake_file("/sys/devices/system/cpu/online", "0-3"); ... with fake_root; fake_end().
 * Or a whole machine: fake_machine(). */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fake_root[64];

static inline void fake_begin(void)
{
	strcpy(fake_root, "/tmp/sluice-host-XXXXXX");
	if (!mkdtemp(fake_root))
		abort();
}

static inline void fake_folder(const char *path)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "%s%s", fake_root, path);
	for (char *slash = whole + strlen(fake_root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(whole, 0700);
		*slash = '/';
	}
	mkdir(whole, 0700);
}

static inline void fake_file(const char *path, const char *text)
{
	char folder[512], whole[1024];
	FILE *file;

	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = 0;
	fake_folder(folder);
	snprintf(whole, sizeof(whole), "%s%s", fake_root, path);
	file = fopen(whole, "w");
	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file) != 0)
		abort();
}

static inline int fake_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void fake_end(void)
{
	nftw(fake_root, fake_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* As servers number them: the first threads of all cores, node by node, then the second ones. */
static inline void fake_machine(int nodes, int cores_of_node, int threads_of_core)
{
	int cores = nodes * cores_of_node, cpus = cores * threads_of_core;
	char path[128], text[256];

	snprintf(text, sizeof(text), cpus > 1 ? "0-%d" : "%d", cpus - 1);
	fake_file("/sys/devices/system/cpu/online", text);
	fake_file("/sys/devices/system/cpu/isolated", "");
	for (int cpu = 0; cpu < cpus; cpu++) {
		size_t used = 0;

		for (int t = 0; t < threads_of_core; t++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d",
						 t ? "," : "", cpu % cores + t * cores);
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
		fake_file(path, text);
	}
	snprintf(text, sizeof(text), nodes > 1 ? "0-%d" : "%d", nodes - 1);
	fake_file("/sys/devices/system/node/online", text);
	for (int node = 0; node < nodes; node++) {
		size_t used = 0;

		for (int t = 0; t < threads_of_core; t++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d-%d",
						 t ? "," : "", t * cores + node * cores_of_node,
						 t * cores + (node + 1) * cores_of_node - 1);
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
		fake_file(path, text);
		for (int other = 0, at = 0; other < nodes; other++)
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%d ",
				       other == node ? 10 : 21);
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/distance", node);
		fake_file(path, text);
	}
}

/* What this process may use of it. */
static inline void fake_allow(const char *cpus)
{
	char text[256];

	snprintf(text, sizeof(text), "Name:\tsluice\nCpus_allowed:\tff\nCpus_allowed_list:\t%s",
		 cpus);
	fake_file("/proc/self/status", text);
}

#endif
