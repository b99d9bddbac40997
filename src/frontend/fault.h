/* fault.h - faults on demand: what goes wrong, decided by a seed, and a log of what was done.
 *
 * Model:     whether a packet, a write or a block is hurt is a function of (seed, kind of fault,
 *            module, sequence, packet), so the same seed always hurts the same ones, whatever the
 *            link or the timing; a burst goes on over the packets that are sent after its first.
 *            Each fault is logged before it happens; a fault that cannot be logged does not happen.
 *            What happens to packets on their way is done by the link (core/link.h, enum
 *            sl_packet_fault), all else by who prepares them.
 * Threads:   drain on one thread; all else on the sending data thread.
 * Cost:      one hash per packet, and one per block for each kind that was asked for. */
#ifndef SL_FRONTEND_FAULT_H
#define SL_FRONTEND_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/option.h>

#include "core/link.h"

enum { SL_FAULT_LOG = 1 << 16, SL_FAULT_MODULES = 64 };

struct sl_fault_options {
	double drop, duplicate, corrupt, reorder, burst; /* shares of packets */
	double wrong_key;				 /* of writes */
	double spoil, skip, delay;			 /* of blocks */
	uint32_t reorder_packets, burst_packets, delay_frames;
	uint64_t restart_after;
	uint32_t restart_frames;
	double drift_ppm, clock_offset_ns;
	char fault_modules[32];
	uint64_t fault_seed;
	char fault_log[256];
	char counts[256]; /* no fault: the account of what was sent */
};
extern const struct sl_option sl_fault_options[];

/* What was done. Those that a link does to packets have its word for it. */
enum sl_fault_kind {
	SL_FAULT_NONE = SL_PACKET_FAULT_NONE,
	SL_FAULT_DROP = SL_PACKET_FAULT_DROP,
	SL_FAULT_DUPLICATE = SL_PACKET_FAULT_DUPLICATE,
	SL_FAULT_CORRUPT = SL_PACKET_FAULT_CORRUPT,
	SL_FAULT_REORDER = SL_PACKET_FAULT_REORDER,
	SL_FAULT_BURST,
	SL_FAULT_WRONG_KEY,
	SL_FAULT_SPOIL,	       /* a bit of a pixel */
	SL_FAULT_SPOIL_RECORD, /* a bit of the record */
	SL_FAULT_SKIP,
	SL_FAULT_DELAY,
	SL_FAULT_DRIFT,	  /* of the module's clock, from this sequence on */
	SL_FAULT_RESTART, /* before this sequence */
	SL_FAULT_KINDS,
};
const char *sl_fault_name(enum sl_fault_kind kind); /* "drop", ... */

struct sl_fault { /* one that was done */
	uint64_t sequence;
	uint32_t packet; /* of its block; 0 where the block as a whole is meant */
	uint16_t module;
	uint16_t kind;
};

struct sl_faults {
	struct sl_fault_options options;
	uint64_t modules; /* a bit for each that may be hurt */
	uint32_t burst_left[SL_FAULT_MODULES];
	uint64_t drifts; /* a bit per module: it was logged */
	_Atomic uint64_t head, tail;
	struct sl_fault log[SL_FAULT_LOG];
};

/* Whether anything was asked for. */
bool sl_fault_options_any(const struct sl_fault_options *options);

/* Whether a packet is to be hurt on its way: then the link must be told. */
bool sl_fault_options_of_packets(const struct sl_fault_options *options);

/* Whether the options break rule 0..SL_FAULT_RULES-1, and how: shares of more than all packets,
 * what the link cannot do to a packet, what the connection would not survive. */
enum { SL_FAULT_RULES = 7 };
struct sl_fault_setting {
	const struct sl_link *link;
	uint16_t service, operation;
	uint32_t modules;
	bool by_sequence; /* frames are put together by it, so that who misses one leaves a gap */
	uint32_t slack;	  /* frames that a module may be behind the others */
};
bool sl_fault_rule_broken(const struct sl_fault_options *options,
			  const struct sl_fault_setting *setting, unsigned rule, char *why,
			  size_t why_bytes);

/* Options must have been looked at. */
void sl_faults_init(struct sl_faults *faults, const struct sl_fault_options *options);

/* An sl_link_env.fault: arg is a struct sl_faults. */
enum sl_packet_fault sl_faults_of_packet(void *arg, uint16_t module, uint64_t sequence,
					 uint32_t packet);

/* True: it was logged, and is to be done. */
bool sl_faults_wrong_key(struct sl_faults *faults, uint16_t module, uint64_t sequence,
			 uint32_t packet);
/* frame: counts on over skipped ones, also where they leave no gap in the sequences. */
bool sl_faults_skip(struct sl_faults *faults, uint16_t module, uint64_t frame, uint64_t sequence);
bool sl_faults_delay(struct sl_faults *faults, uint16_t module, uint64_t sequence);

/* Whether these modules, first..end-1, are to go away before the frame: all of them, and they
 * are not all that there are. -EINVAL: some only. */
int sl_faults_restart_of(const struct sl_fault_options *options, uint32_t first, uint32_t end,
			 uint32_t modules);
bool sl_faults_restart(struct sl_faults *faults, uint16_t module, uint64_t sequence);

/* The bit of the block to flip: pixels, then the record. */
bool sl_faults_spoil(struct sl_faults *faults, const struct sl_plan *plan, uint64_t sequence,
		     uint64_t *bit);

/* What the module's own clock shows at this time. */
uint64_t sl_faults_clock(struct sl_faults *faults, uint16_t module, uint64_t sequence,
			 uint64_t timestamp);

/* The next fault done and not yet taken: 1, or 0 when there is none now. */
int sl_faults_drain(struct sl_faults *faults, struct sl_fault *fault);

#endif
