/* bell.h - wake a sleeping thread without a lock.
 *
 * Model:     a counter. The waiter reads it, looks for work, and if there is none sleeps until the
 *            counter has moved:
 *
 *              seen = sl_bell_read(bell);
 *              if (!work())
 *                      sl_bell_wait(bell, seen, timeout_us);
 *
 *            A ring between read and wait makes wait return at once, so no wake-up is lost.
 * Threads:   any number of ringers and waiters in one process.
 * Cost:      ring: one atomic add, and a futex call only when somebody sleeps. */
#ifndef SL_BASE_BELL_H
#define SL_BASE_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct sl_bell {
	_Atomic uint32_t count;
	_Atomic uint32_t sleepers;
};

static inline uint32_t sl_bell_read(struct sl_bell *bell)
{
	return atomic_load_explicit(&bell->count, memory_order_acquire);
}

void sl_bell_ring(struct sl_bell *bell);
void sl_bell_wait(struct sl_bell *bell, uint32_t seen, uint32_t timeout_us);

#endif
