/* bell.c - a futex behind a counter.
 *
 * The handshake is Dekker's: the ringer moves `count` and then looks at `sleepers`; the waiter
 * moves `sleepers` and then looks at `count`. All four accesses are seq_cst, so they have one
 * order, and in every such order at least one side sees the other: either the ringer finds a
 * sleeper and wakes it, or the waiter finds that the bell has rung and does not sleep. The gap
 * between the waiter's look and its sleep is closed by the kernel, which compares `count` again
 * before it sleeps. So no wake-up is lost (invariant WOKEN, tests/model/bell.pml). */
#include "base/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void sl_bell_ring(struct sl_bell *bell)
{
	/* Pairs with the load of count in sl_bell_wait() and the acquire in sl_bell_read(). */
	atomic_fetch_add_explicit(&bell->count, 1, memory_order_seq_cst);
	/* Pairs with the add to sleepers in sl_bell_wait(). */
	if (atomic_load_explicit(&bell->sleepers, memory_order_seq_cst))
		syscall(SYS_futex, &bell->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void sl_bell_wait(struct sl_bell *bell, uint32_t seen, uint32_t timeout_us)
{
	const struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};

	/* Pairs with the load of sleepers in sl_bell_ring(). */
	atomic_fetch_add_explicit(&bell->sleepers, 1, memory_order_seq_cst);
	/* Pairs with the add to count in sl_bell_ring(). */
	if (atomic_load_explicit(&bell->count, memory_order_seq_cst) == seen)
		syscall(SYS_futex, &bell->count, FUTEX_WAIT_PRIVATE, seen, &timeout, NULL, 0);
	/* Nothing is read on the strength of this; a ringer that still sees us wakes nobody. */
	atomic_fetch_sub_explicit(&bell->sleepers, 1, memory_order_relaxed);
}
