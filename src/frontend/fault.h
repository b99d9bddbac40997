/* fault.h - faults on demand: what happens to a packet, decided by a seed, and a log of what was
 * done.
 *
 * Model:     the fate of a packet is a function of (seed, module, sequence, packet), so the same
 *            seed always hurts the same packets, whatever the link or the timing. Each fault is
 *            logged before it happens; a fault that cannot be logged does not happen.
 * Threads:   fate on the sending data thread; drain on one other thread.
 * Cost:      one hash per packet. */
#ifndef SL_FRONTEND_FAULT_H
#define SL_FRONTEND_FAULT_H

#include <stdatomic.h>
#include <stdint.h>

#include <sluice/link.h>
#include <sluice/option.h>

enum { SL_FAULT_LOG = 1 << 16 };

struct sl_fault_options {
	double drop, duplicate, corrupt; /* shares of packets */
	uint64_t fault_seed;
	char fault_log[256];
};
extern const struct sl_option sl_fault_options[];

struct sl_fault { /* one that was done */
	uint64_t sequence;
	uint32_t packet;
	uint16_t module;
	uint16_t fate;
};

struct sl_faults {
	struct sl_fault_options options;
	_Atomic uint64_t head, tail;
	struct sl_fault log[SL_FAULT_LOG];
};

/* An sl_link_env.fate: arg is a struct sl_faults. */
enum sl_fate sl_faults_fate(void *arg, uint16_t module, uint64_t sequence, uint32_t packet);

/* The next fault done and not yet taken: 1, or 0 when there is none now. */
int sl_faults_drain(struct sl_faults *faults, struct sl_fault *fault);

const char *sl_fate_name(enum sl_fate fate);

#endif
