/* doctor.h - what the files of sluice doctor share.
 *
 * Model:     each check says what it found: ok, or to be mended, with the exact command. Only what
 *            matters to this experiment on this host is to be mended. Nothing is changed. Most is
 *            read from /proc and /sys below a root folder (base/sysfile.h), so that tests can
 *            invent hosts; what only the kernel knows is asked of the kernel when the root is "".
 * Files:     doctor.c the command; say.c its words; cpu.c cpus and NUMA;
 *            memory.c pages and limits; net.c interfaces, interrupts, buffers;
 *            native.c what native detectors need of them; nic.c what ethtool
 *            knows; rdma.c devices of link verbs.
 * Threads:   one. */
#ifndef SL_CMD_DOCTOR_DOCTOR_H
#define SL_CMD_DOCTOR_DOCTOR_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cpu.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"

struct sl_doctor {
	FILE *out;
	const char *root;
	const char *file;		  /* the experiment's name, for commands */
	struct sl_experiment *experiment; /* NULL: what any would like to have */
	bool front_end; /* this host has link.source, and another one link.listen */
	bool sysctl;	/* a command that does not outlive the next boot was given */
	unsigned wants; /* things to mend */
	struct sl_cpus cpus;
	struct sl_placement placement; /* with an experiment */
	uint64_t ring_bytes;	       /* with an experiment */
};

void sl_doctor_say(struct sl_doctor *doctor, bool good, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The command for what was said before. */
void sl_doctor_fix(struct sl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether this process has a capability, by its number in <linux/capability.h>. */
bool sl_doctor_may(const struct sl_doctor *doctor, unsigned capability);

/* Whether the experiment's link is this one. */
bool sl_doctor_has_link(const struct sl_doctor *doctor, const char *link);

void sl_doctor_cpu(struct sl_doctor *doctor);
void sl_doctor_memory(struct sl_doctor *doctor);
void sl_doctor_buffers(struct sl_doctor *doctor);
void sl_doctor_privileges(struct sl_doctor *doctor);
/* Native UDP detectors (links that go one way): bytes of pixels in a packet; how long a receive
 * buffer lasts. */
bool sl_doctor_is_native(const struct sl_doctor *doctor);
unsigned sl_doctor_native_payload(const struct sl_doctor *doctor);
void sl_doctor_native_buffer(struct sl_doctor *doctor, uint64_t bytes);

void sl_doctor_rdma(struct sl_doctor *doctor);
void sl_doctor_rdma_address(struct sl_doctor *doctor, const char *address);

/* The interface that has this address, and all that belongs to it. `option` names the address. */
void sl_doctor_interface(struct sl_doctor *doctor, const char *address, const char *option);

/* What ethtool knows of a NIC. A number of -1: it does not say. */
struct sl_nic {
	char name[IF_NAMESIZE];
	long rx_ring, rx_ring_max; /* packets */
	int rx_pause, tx_pause;
	int gro, rx_checksum, tx_udp_segmentation, rx_udp_gro_forwarding, rx_gro_list;
	int hash_ports; /* which queue: by ports, too, or by addresses alone */
	int queues;
	bool v6; /* the address is */
};
void sl_nic_read(const char *name, bool v6, struct sl_nic *nic);
void sl_doctor_nic(struct sl_doctor *doctor, const struct sl_nic *nic);

#endif
