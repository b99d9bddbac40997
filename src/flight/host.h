/* host.h - what this host counts: threads, cpus, interrupts, interfaces, disks.
 *
 * Model:     each call puts what the files of /proc and /sys say now into the sample under way
 *            (series.h), with names as docs/reference/flight-recorder.md lists them. What a host
 *            has not is absent. Files that are large on large hosts are read with `all` only.
 * Files:     cpu.c cpus, interrupts, pressure, cgroups; thread.c threads of this process; nic.c
 *            interfaces; disk.c disks and file systems; text.c words of such files.
 * Threads:   one; not a data thread.
 * Errors:    none: a file that cannot be read, or makes no sense, is absent. */
#ifndef SL_FLIGHT_HOST_H
#define SL_FLIGHT_HOST_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flight/series.h"

enum { SL_FLIGHT_INTERFACES = 4, SL_FLIGHT_DISKS = 4, SL_FLIGHT_NAME = 64 };

struct sl_flight_disk {
	char path[1024];	   /* a folder there */
	unsigned major, minor;	   /* of its device; 0, 0: it has none, as tmpfs */
	char name[SL_FLIGHT_NAME]; /* of the device; empty: none */
};

struct sl_flight_ethtool; /* what an interface counts by itself */

struct sl_flight_host {
	const char *root; /* base/sysfile.h */
	unsigned interfaces, disks;
	char interface[SL_FLIGHT_INTERFACES][IF_NAMESIZE];
	struct sl_flight_ethtool *ethtool[SL_FLIGHT_INTERFACES]; /* NULL: it counts nothing */
	struct sl_flight_disk disk[SL_FLIGHT_DISKS];
	char cgroup[2][256]; /* version 2, version 1; empty: none */
	size_t text_bytes;
	char *text; /* of a file */
};

/* 0 or -ENOMEM. */
int sl_flight_host_open(struct sl_flight_host *host, const char *root);
void sl_flight_host_close(struct sl_flight_host *host);

/* Of these interfaces and file systems, too. */
void sl_flight_host_add_interface(struct sl_flight_host *host, const char *name);
void sl_flight_host_add_disk(struct sl_flight_host *host, const char *path);

/* all: everything; otherwise what changes quickly and costs little. */
void sl_flight_host_sample(struct sl_flight_host *host, bool all, struct sl_series_ring *ring);

/* ---- between the files ---- */

void sl_flight_sample_cpus(struct sl_flight_host *host, bool all, struct sl_series_ring *ring);
void sl_flight_sample_threads(struct sl_flight_host *host, bool all, struct sl_series_ring *ring);
void sl_flight_sample_interfaces(struct sl_flight_host *host, bool all,
				 struct sl_series_ring *ring);
void sl_flight_sample_disks(struct sl_flight_host *host, struct sl_series_ring *ring);

void sl_flight_find_disk(const char *root, struct sl_flight_disk *disk);
struct sl_flight_ethtool *sl_flight_ethtool_open(const char *interface);
void sl_flight_ethtool_close(struct sl_flight_ethtool *ethtool);

/* A whole file of /proc or /sys into host->text, which ends with 0. NULL: there is none. */
char *sl_flight_file(struct sl_flight_host *host, const char *path, ...)
	__attribute__((format(printf, 2, 3)));
/* The next line of a text, which gets an end; NULL: there is none. */
char *sl_flight_line(char **text);
/* The next word of a line, likewise. */
char *sl_flight_word(char **line);
/* The next number of a line in this base; 0 where there is none. */
uint64_t sl_flight_number(char **line, int base);

#endif
