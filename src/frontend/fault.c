/* fault.c - deterministic damage. */
#include <stdbool.h>

#include "frontend/fault.h"

const struct sl_option sl_fault_options[] = {
	SL_F64(struct sl_fault_options, drop, 0, 0, 1, "of packets", "not sent"),
	SL_F64(struct sl_fault_options, duplicate, 0, 0, 1, "of packets", "sent twice"),
	SL_F64(struct sl_fault_options, corrupt, 0, 0, 1, "of packets",
	       "sent with a wrong checksum"),
	SL_U64(struct sl_fault_options, fault_seed, 1, 0, 1e15, "", "which packets are hurt"),
	SL_STRING(struct sl_fault_options, fault_log, "",
		  "file that gets a line per fault: module sequence packet fault"),
	SL_OPTION_END,
};

static uint64_t mix(uint64_t x)
{
	/* splitmix64's finaliser: every input bit reaches every output bit. */
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static double draw(uint64_t seed, uint16_t module, uint64_t sequence, uint32_t packet)
{
	uint64_t h = mix(seed + UINT64_C(0x9e3779b97f4a7c15));

	h = mix(h ^ module);
	h = mix(h ^ sequence);
	h = mix(h ^ packet);
	return (double)(h >> 11) * 0x1p-53;
}

static bool note(struct sl_faults *faults, struct sl_fault fault)
{
	uint64_t head = atomic_load_explicit(&faults->head, memory_order_relaxed);

	/* Acquire: pairs with drain; the entry has been copied out. */
	if (head - atomic_load_explicit(&faults->tail, memory_order_acquire) == SL_FAULT_LOG)
		return false;
	faults->log[head % SL_FAULT_LOG] = fault;
	atomic_store_explicit(&faults->head, head + 1, memory_order_release);
	return true;
}

enum sl_fate sl_faults_fate(void *arg, uint16_t module, uint64_t sequence, uint32_t packet)
{
	struct sl_faults *faults = arg;
	const struct sl_fault_options *o = &faults->options;
	double x = draw(o->fault_seed, module, sequence, packet);
	enum sl_fate fate = x < o->drop				      ? SL_FATE_DROP
			    : x < o->drop + o->duplicate	      ? SL_FATE_DUPLICATE
			    : x < o->drop + o->duplicate + o->corrupt ? SL_FATE_CORRUPT
								      : SL_FATE_SEND;

	if (fate != SL_FATE_SEND &&
	    !note(faults, (struct sl_fault){sequence, packet, module, (uint16_t)fate}))
		return SL_FATE_SEND;
	return fate;
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

const char *sl_fate_name(enum sl_fate fate)
{
	static const char *const name[] = {
		[SL_FATE_SEND] = "send",
		[SL_FATE_DROP] = "drop",
		[SL_FATE_DUPLICATE] = "duplicate",
		[SL_FATE_CORRUPT] = "corrupt",
	};

	return name[fate];
}
