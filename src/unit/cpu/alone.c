/* alone.c - without order: a worker goes through all passes of a batch without the help of others,
 * and no worker waits for another at the end of a pass. */
#include "unit/cpu/engine.h"

static bool take(struct sl_cpu_engine *e, uint64_t *number)
{
	*number = atomic_load_explicit(&e->next, memory_order_relaxed);
	do {
		/* Pairs with submit(). */
		if (*number == atomic_load_explicit(&e->submitted, memory_order_acquire))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&e->next, number, *number + 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

int sl_cpu_work_alone(struct sl_cpu_engine *e, unsigned worker)
{
	struct sl_cpu_flight *flight = &e->flight[0];
	struct sl_batch *batch;
	uint64_t number;

	if (!take(e, &number))
		return 0;
	batch = e->batch[number % SL_CPU_QUEUE];
	sl_cpu_scratch_clear(e, flight, worker, batch->frames);
	for (unsigned p = 0; p < e->passes.n; p++) {
		const struct sl_cpu_pass *pass = &e->passes.pass[p];

		for (uint32_t item = 0; item < sl_cpu_items(e, pass); item++)
			sl_cpu_run_item(e, flight, worker, pass, batch, item);
		sl_cpu_finish_stages(e, flight, pass, batch, UINT64_C(1) << worker);
	}
	batch->status = 0;
	/* Pairs with reap_any(). */
	atomic_store_explicit(&e->whole[number % SL_CPU_QUEUE], 1, memory_order_release);
	sl_bell_ring(e->done);
	return 1;
}
