/* batch_slot.cl - trigger `loop` of the units: the kernels around those of a batch, where a graph of all of them is played again and
 * again with nobody on the host to say when.
 *
 * A batch is there when its word has the batch slot's turn; the word comes behind all that is copied there, by the same queue. What the
 * host waits for is written into its memory, and then a word there. */
#include "gpu/dialect/dialect.clh"
#include "gpu/ring/ring.clh"

/* One thread. Where nothing comes any more, kernels behind it find that there is nothing: the host sees to that. */
SL_KERNEL void batch_slot_wait(SL_GLOBAL const sl_u32 *gate, SL_GLOBAL const sl_u32 *turn, sl_u32 slot, SL_GLOBAL const sl_u32 *stop)
{
	sl_u32 looks = 0, now = turn[slot];

	while (!sl_device_ring_is_due(sl_word_load(gate), now)) {
		if (++looks % SL_DEVICE_RING_LOOKS == 0 && sl_word_load(stop))
			break;
		sl_pause(0);
	}
	sl_fence_system();
}

/* One group: verdicts and rows, then the word. */
SL_KERNEL void batch_slot_done(SL_GLOBAL const sl_u32 *verdict, SL_GLOBAL const sl_u32 *rows, sl_u32 verdict_words, sl_u32 rows_words,
			 SL_GLOBAL sl_u32 *down, SL_GLOBAL sl_u32 *turn, sl_u32 slot, SL_GLOBAL sl_u32 *done, sl_u32 done_at)
{
	sl_u32 i;

	for (i = sl_thread(); i < verdict_words; i += sl_threads())
		down[i] = verdict[i];
	for (i = sl_thread(); i < rows_words; i += sl_threads())
		down[verdict_words + i] = rows[i];
	sl_fence_system();
	sl_barrier_all();
	if (sl_thread() == 0) {
		sl_fence_system();
		sl_word_store(done + done_at, turn[slot]);
		turn[slot]++;
	}
}
