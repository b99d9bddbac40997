/* checksum.cl - of the raw pixels of every module of every frame, as the kernels of a batch see them.
 *
 * Bytes that must move: the pixels, once. Group 0: of words, 1: of modules, 2: of frames. Sums are 0 before. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/dialect.clh"
#include "bench/gpu/checksum_maths.h"

SL_KERNEL void checksum_modules(SL_GLOBAL const sl_u32x4 *raw, SL_GLOBAL const struct sl_kernel_view *view, sl_u32 fours,
				SL_GLOBAL sl_u32 *sum)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	sl_u32 module = sl_group(2) * sl_groups(1) + sl_group(1), n = 0;
	sl_u32 step = sl_groups(0) * sl_threads(), i = sl_group(0) * sl_threads() + sl_thread();

	raw += view[module].at / 16;
	for (; i < fours; i += step) {
		sl_u32x4 v = raw[i];

		n += sl_checksum_word(v.x, 4 * i) + sl_checksum_word(v.y, 4 * i + 1) + sl_checksum_word(v.z, 4 * i + 2) +
		     sl_checksum_word(v.w, 4 * i + 3);
	}
	n = sl_group_sum(shared, n);
	if (sl_thread() == 0)
		sl_add(&sum[module], n);
}
