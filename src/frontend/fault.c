/* fault.c - deterministic damage. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frontend/fault.h"

const struct sl_option sl_fault_options[] = {
	SL_F64(struct sl_fault_options, drop, 0, 0, 1, "of packets", "not sent"),
	SL_F64(struct sl_fault_options, duplicate, 0, 0, 1, "of packets", "sent twice"),
	SL_F64(struct sl_fault_options, corrupt, 0, 0, 1, "of packets",
	       "sent with a wrong checksum"),
	SL_F64(struct sl_fault_options, reorder, 0, 0, 1, "of packets",
	       "held back until reorder_packets more have passed"),
	SL_U32(struct sl_fault_options, reorder_packets, 1, 1, 64, "packets",
	       "that overtake one that is held back"),
	SL_F64(struct sl_fault_options, burst, 0, 0, 1, "of packets",
	       "not sent, nor are those behind it: burst_packets in all"),
	SL_U32(struct sl_fault_options, burst_packets, 10, 1, 1000000, "packets",
	       "lost in one burst"),
	SL_F64(struct sl_fault_options, wrong_key, 0, 0, 1, "of writes",
	       "sent with a key that the receiver did not give out"),
	SL_F64(struct sl_fault_options, spoil, 0, 0, 1, "of blocks",
	       "a bit is flipped before the packets' checksums are made: link.crc can tell"),
	SL_F64(struct sl_fault_options, skip, 0, 0, 1, "of blocks",
	       "never produced: the module misses a frame"),
	SL_F64(struct sl_fault_options, delay, 0, 0, 1, "of blocks",
	       "wait, with those behind, until the frame delay_frames later is due"),
	SL_U32(struct sl_fault_options, delay_frames, 2, 1, 1022, "frames",
	       "that a delayed module falls behind"),
	SL_U64(struct sl_fault_options, restart_after, 0, 0, 1e15, "frames",
	       "then a front end whose modules are all in fault_modules goes away, once; 0: never"),
	SL_U32(struct sl_fault_options, restart_frames, 10, 0, 1000000, "frames",
	       "that it misses before it comes back, under a new plan"),
	SL_F64(struct sl_fault_options, drift_ppm, 0, -1e5, 1e5, "ppm",
	       "module m's clock is fast by m times this"),
	SL_F64(struct sl_fault_options, clock_offset_ns, 0, -1e12, 1e12, "ns",
	       "module m's clock is ahead by m times this"),
	SL_STRING(struct sl_fault_options, fault_modules, "",
		  "only these are hurt: one, or first-last; empty: all"),
	SL_U64(struct sl_fault_options, fault_seed, 1, 0, 1e15, "", "which of them are hurt"),
	SL_STRING(struct sl_fault_options, fault_log, "",
		  "file that gets a line per fault: module sequence packet fault"),
	SL_STRING(struct sl_fault_options, counts, "",
		  "file that gets what was sent of each module, with checksums of link.crc, for "
		  "'sluice audit --source'"),
	SL_OPTION_END,
};

const char *sl_fault_name(enum sl_fault_kind kind)
{
	static const char *const name[SL_FAULT_KINDS] = {
		[SL_FAULT_NONE] = "none",
		[SL_FAULT_DROP] = "drop",
		[SL_FAULT_DUPLICATE] = "duplicate",
		[SL_FAULT_CORRUPT] = "corrupt",
		[SL_FAULT_REORDER] = "reorder",
		[SL_FAULT_BURST] = "burst",
		[SL_FAULT_WRONG_KEY] = "wrong_key",
		[SL_FAULT_SPOIL] = "spoil",
		[SL_FAULT_SPOIL_RECORD] = "spoil_record",
		[SL_FAULT_SKIP] = "skip",
		[SL_FAULT_DELAY] = "delay",
		[SL_FAULT_DRIFT] = "drift",
		[SL_FAULT_RESTART] = "restart",
	};

	return name[kind];
}

/* ---- what was asked for ---- */

/* "3", "2-5", or nothing for all of them: a bit each. 0: none of that. */
static uint64_t modules_of(const char *text)
{
	unsigned first, last;
	int used = 0;

	if (!text[0])
		return UINT64_MAX;
	/* scanf alone would take signs, too. */
	if (text[strspn(text, "0123456789-")] || text[0] == '-')
		return 0;
	if (sscanf(text, "%2u-%2u%n", &first, &last, &used) != 2 || text[used]) {
		if (sscanf(text, "%2u%n", &first, &used) != 1 || text[used])
			return 0;
		last = first;
	}
	if (first > last || last >= SL_FAULT_MODULES)
		return 0;
	return (UINT64_MAX >> (63 - last)) & (UINT64_MAX << first);
}

static double of_packets(const struct sl_fault_options *o)
{
	return o->drop + o->duplicate + o->corrupt + o->reorder + o->burst;
}

bool sl_fault_options_any(const struct sl_fault_options *o)
{
	return of_packets(o) + o->wrong_key + o->spoil + o->skip + o->delay > 0 || o->drift_ppm ||
	       o->clock_offset_ns || o->restart_after;
}

bool sl_fault_options_of_packets(const struct sl_fault_options *o)
{
	return of_packets(o) > 0;
}

/* The first that this link cannot do to a packet; NULL: none. */
static const char *beyond_link(const struct sl_fault_options *o, const struct sl_link *link)
{
	const struct {
		const char *name;
		double share;
		enum sl_packet_fault fault;
	} asked[] = {
		{"drop", o->drop, SL_PACKET_FAULT_DROP},
		{"duplicate", o->duplicate, SL_PACKET_FAULT_DUPLICATE},
		{"corrupt", o->corrupt, SL_PACKET_FAULT_CORRUPT},
		{"reorder", o->reorder, SL_PACKET_FAULT_REORDER},
		{"burst", o->burst, SL_PACKET_FAULT_DROP},
	};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (asked[i].share > 0 && !(link->packet_faults >> asked[i].fault & 1))
			return asked[i].name;
	return NULL;
}

static bool modules_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
			  char *why, size_t bytes)
{
	uint64_t modules = modules_of(o->fault_modules);

	if (!modules)
		snprintf(why, bytes, "fault_modules: '%s': takes one module, or first-last",
			 o->fault_modules);
	else if (o->fault_modules[0] && modules >> (setting->modules - 1) > 1)
		snprintf(why, bytes, "fault_modules: '%s': there are modules 0 to %u",
			 o->fault_modules, setting->modules - 1);
	else
		return false;
	return true;
}

static bool key_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
		      char *why, size_t bytes)
{
	if (o->wrong_key > 0 && setting->operation == SL_OPERATION_SEND)
		snprintf(why, bytes, "wrong_key: operation send has no keys");
	else if (o->wrong_key > 0 && setting->link->oneway)
		snprintf(why, bytes, "wrong_key: link '%s' has no keys", setting->link->name);
	else
		return false;
	return true;
}

static bool restart_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
			  char *why, size_t bytes)
{
	if (o->restart_after && setting->link->oneway)
		snprintf(why, bytes, "restart_after: nothing makes a new plan over link '%s'",
			 setting->link->name);
	else if (o->restart_after && setting->by_sequence)
		snprintf(why, bytes,
			 "restart_after: who comes back counts anew: set ring.align: frame");
	else
		return false;
	return true;
}

static bool delay_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
			char *why, size_t bytes)
{
	if (!(o->delay > 0) || o->delay_frames <= setting->slack)
		return false;
	snprintf(why, bytes,
		 "delay_frames (%u) must be at most ring.slots - ring.late_frames - 2 (%u): the "
		 "other modules would have to wait for the delayed one",
		 o->delay_frames, setting->slack);
	return true;
}

static bool packets_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
			  char *why, size_t bytes)
{
	if (!(of_packets(o) > 1))
		return false;
	snprintf(why, bytes,
		 "drop, duplicate, corrupt, reorder and burst are more than all packets");
	return true;
}

static bool link_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
		       char *why, size_t bytes)
{
	const char *beyond = beyond_link(o, setting->link);

	if (!beyond)
		return false;
	snprintf(why, bytes, "%s: link '%s' cannot do that to a packet", beyond,
		 setting->link->name);
	return true;
}

static bool skip_wrong(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
		       char *why, size_t bytes)
{
	if (!(o->skip > 0) || !setting->by_sequence || setting->service != SL_SERVICE_RC)
		return false;
	snprintf(why, bytes,
		 "skip: a reliable connection has no gaps: set link.service: uc, or "
		 "ring.align: frame");
	return true;
}

bool sl_fault_rule_broken(const struct sl_fault_options *o, const struct sl_fault_setting *setting,
			  unsigned rule, char *why, size_t why_bytes)
{
	static bool (*const rules[SL_FAULT_RULES])(const struct sl_fault_options *,
						   const struct sl_fault_setting *, char *,
						   size_t) = {
		modules_wrong, packets_wrong, link_wrong,  key_wrong,
		restart_wrong, skip_wrong,    delay_wrong,
	};

	return rules[rule](o, setting, why, why_bytes);
}

int sl_faults_restart_of(const struct sl_fault_options *o, uint32_t first, uint32_t end,
			 uint32_t modules)
{
	uint64_t chosen = modules_of(o->fault_modules), own;

	if (!o->restart_after || end > SL_FAULT_MODULES)
		return 0;
	own = (UINT64_MAX >> (SL_FAULT_MODULES - end)) & (UINT64_MAX << first);
	if (!(own & chosen))
		return 0;
	return (own & chosen) == own && end - first < modules ? 1 : -EINVAL;
}

void sl_faults_init(struct sl_faults *faults, const struct sl_fault_options *options)
{
	memset(faults, 0, sizeof(*faults));
	faults->options = *options;
	faults->modules = modules_of(options->fault_modules);
}

/* ---- whom it hits ---- */

static uint64_t mix(uint64_t x)
{
	/* splitmix64's finaliser: every input bit reaches every output bit. */
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t bits_of(const struct sl_faults *faults, enum sl_fault_kind kind, uint16_t module,
			uint64_t sequence, uint32_t packet)
{
	uint64_t h = mix(faults->options.fault_seed + UINT64_C(0x9e3779b97f4a7c15));

	/* All that can happen to a packet on its way is one draw. */
	if (kind > SL_FAULT_BURST)
		h = mix(h ^ (uint64_t)kind << 32);
	h = mix(h ^ module);
	h = mix(h ^ sequence);
	return mix(h ^ packet);
}

static double draw(const struct sl_faults *faults, enum sl_fault_kind kind, uint16_t module,
		   uint64_t sequence, uint32_t packet)
{
	return (double)(bits_of(faults, kind, module, sequence, packet) >> 11) * 0x1p-53;
}

static bool concerns(const struct sl_faults *faults, uint16_t module)
{
	return module >= SL_FAULT_MODULES ? faults->modules == UINT64_MAX
					  : faults->modules >> module & 1;
}

static bool note(struct sl_faults *faults, enum sl_fault_kind kind, uint16_t module,
		 uint64_t sequence, uint32_t packet)
{
	uint64_t head = atomic_load_explicit(&faults->head, memory_order_relaxed);

	/* Acquire: pairs with drain; the entry has been copied out. */
	if (head - atomic_load_explicit(&faults->tail, memory_order_acquire) == SL_FAULT_LOG)
		return false;
	faults->log[head % SL_FAULT_LOG] =
		(struct sl_fault){sequence, packet, module, (uint16_t)kind};
	atomic_store_explicit(&faults->head, head + 1, memory_order_release);
	return true;
}

int sl_faults_drain(struct sl_faults *faults, struct sl_fault *fault)
{
	uint64_t tail = atomic_load_explicit(&faults->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&faults->head, memory_order_acquire))
		return 0;
	*fault = faults->log[tail % SL_FAULT_LOG];
	atomic_store_explicit(&faults->tail, tail + 1, memory_order_release);
	return 1;
}

/* ---- packets on their way ---- */

static enum sl_fault_kind of_packet(const struct sl_fault_options *o, double x)
{
	if ((x -= o->drop) < 0)
		return SL_FAULT_DROP;
	if ((x -= o->duplicate) < 0)
		return SL_FAULT_DUPLICATE;
	if ((x -= o->corrupt) < 0)
		return SL_FAULT_CORRUPT;
	if ((x -= o->reorder) < 0)
		return SL_FAULT_REORDER;
	return x - o->burst < 0 ? SL_FAULT_BURST : SL_FAULT_NONE;
}

enum sl_packet_fault sl_faults_of_packet(void *arg, uint16_t module, uint64_t sequence,
					 uint32_t packet)
{
	struct sl_faults *faults = arg;
	uint32_t *left = &faults->burst_left[module % SL_FAULT_MODULES];
	enum sl_fault_kind kind;

	if (!concerns(faults, module))
		return SL_PACKET_FAULT_NONE;
	kind = *left ? SL_FAULT_BURST
		     : of_packet(&faults->options,
				 draw(faults, SL_FAULT_NONE, module, sequence, packet));
	if (kind == SL_FAULT_NONE || !note(faults, kind, module, sequence, packet))
		return SL_PACKET_FAULT_NONE;
	if (kind != SL_FAULT_BURST)
		return (enum sl_packet_fault)kind;
	*left = (*left ? *left : faults->options.burst_packets) - 1;
	return SL_PACKET_FAULT_DROP;
}

/* ---- writes and blocks ---- */

static bool strikes(struct sl_faults *faults, enum sl_fault_kind kind, double share,
		    uint16_t module, uint64_t sequence, uint32_t packet)
{
	return share > 0 && concerns(faults, module) &&
	       draw(faults, kind, module, sequence, packet) < share &&
	       note(faults, kind, module, sequence, packet);
}

bool sl_faults_wrong_key(struct sl_faults *faults, uint16_t module, uint64_t sequence,
			 uint32_t packet)
{
	return strikes(faults, SL_FAULT_WRONG_KEY, faults->options.wrong_key, module, sequence,
		       packet);
}

bool sl_faults_skip(struct sl_faults *faults, uint16_t module, uint64_t frame, uint64_t sequence)
{
	return faults->options.skip > 0 && concerns(faults, module) &&
	       draw(faults, SL_FAULT_SKIP, module, frame, 0) < faults->options.skip &&
	       note(faults, SL_FAULT_SKIP, module, sequence, 0);
}

bool sl_faults_delay(struct sl_faults *faults, uint16_t module, uint64_t sequence)
{
	return strikes(faults, SL_FAULT_DELAY, faults->options.delay, module, sequence, 0);
}

bool sl_faults_restart(struct sl_faults *faults, uint16_t module, uint64_t sequence)
{
	return note(faults, SL_FAULT_RESTART, module, sequence, 0);
}

bool sl_faults_spoil(struct sl_faults *faults, const struct sl_plan *plan, uint64_t sequence,
		     uint64_t *bit)
{
	uint64_t pixels = sl_plan_pixel_bytes(plan), bits;
	uint16_t module = plan->module;

	if (faults->options.spoil <= 0 || !concerns(faults, module) ||
	    draw(faults, SL_FAULT_SPOIL, module, sequence, 0) >= faults->options.spoil)
		return false;
	bits = bits_of(faults, SL_FAULT_SPOIL, module, sequence, 1) % (8 * plan->block_bytes);
	if (!note(faults, bits / 8 < pixels ? SL_FAULT_SPOIL : SL_FAULT_SPOIL_RECORD, module,
		  sequence, sl_plan_packet_of(plan, bits / 8)))
		return false;
	*bit = bits;
	return true;
}

uint64_t sl_faults_clock(struct sl_faults *faults, uint16_t module, uint64_t sequence,
			 uint64_t timestamp)
{
	const struct sl_fault_options *o = &faults->options;
	uint64_t bit = UINT64_C(1) << module % SL_FAULT_MODULES;
	double ahead = module * (o->clock_offset_ns + (double)timestamp * 1e-6 * o->drift_ppm);

	if ((!o->drift_ppm && !o->clock_offset_ns) || !module || !concerns(faults, module))
		return timestamp;
	if (!(faults->drifts & bit) && !note(faults, SL_FAULT_DRIFT, module, sequence, 0))
		return timestamp;
	faults->drifts |= bit;
	/* A clock that was set back beyond its beginning shows 0. */
	if (ahead < -(double)timestamp)
		return 0;
	return ahead < 0 ? timestamp - (uint64_t)-ahead : timestamp + (uint64_t)ahead;
}
