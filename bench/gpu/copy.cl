/* copy.cl - what a device's memory does: a copy, 16 bytes a thread at a time. */
#include "gpu/dialect/dialect.clh"

SL_KERNEL void bench_copy(SL_GLOBAL const sl_u32x4 *from, SL_GLOBAL sl_u32x4 *to, sl_u64 n)
{
	sl_u64 step = (sl_u64)sl_groups(0) * sl_threads();
	sl_u64 i = (sl_u64)sl_group(0) * sl_threads() + sl_thread();

	for (; i < n; i += step)
		to[i] = from[i];
}
