/* bell.pml - a bell: wake a sleeping thread without a lock (base/bell.h, base/bell.c).
 *
 * Two ringers make work, two waiters do it. There are no time-outs here: whoever is not woken
 * sleeps for ever, and spin says "invalid end state". Loads and stores happen one after the
 * other, as seq_cst promises; what weaker orders allow, spin does not see.
 *
 * invariant WOKEN: no wake-up is lost: nobody sleeps while there is work for it (end state)
 *
 * config: -DITEMS=2
 * break NO_COMPARE: WOKEN        the waiter sleeps without comparing the count
 * break NO_KERNEL: WOKEN         the kernel does not compare the count again before it sleeps
 * break SLEEPERS_LATE: WOKEN     the waiter compares first and says that it sleeps afterwards
 * break LOOK_FIRST: WOKEN        the ringer looks for sleepers before it moves the count
 * break READ_LATE: WOKEN         the waiter reads the bell after it looked for work
 * break RING_FIRST: WOKEN        the ringer rings before the work is there */
#define RINGERS 2
#define WAITERS 2
#define ALL (RINGERS * ITEMS) /* when that much is done, the run has ended for all */

byte count, sleepers; /* struct sl_bell */
bool asleep[WAITERS]; /* the kernel's */
byte work; /* what the bell is about: cells, batches, frames */
byte taken;

/* sl_bell_ring */
inline ring()
{
#ifdef BREAK_LOOK_FIRST
	sleeping = sleepers;
	count++;
#else
	count++;
	sleeping = sleepers;
#endif
	if
	:: sleeping -> d_step { asleep[0] = false; asleep[1] = false } /* FUTEX_WAKE, INT_MAX */
	:: else
	fi;
	sleeping = 0
}

active [RINGERS] proctype ringer()
{
	byte i, sleeping;

	do
	:: i < ITEMS ->
#ifdef BREAK_RING_FIRST
		ring();
		work++;
#else
		work++;
		ring();
#endif
		i++
	:: else -> break
	od
}

/* sl_bell_wait */
inline wait()
{
#ifndef BREAK_SLEEPERS_LATE
	sleepers++;
#endif
	if
#ifdef BREAK_NO_COMPARE
	:: true ->
#else
	:: count == seen ->
#endif
#ifdef BREAK_SLEEPERS_LATE
		sleepers++;
		asleep[me] = true;
#elif defined(BREAK_NO_COMPARE) || defined(BREAK_NO_KERNEL)
		asleep[me] = true;
#else
		d_step { asleep[me] = (count == seen) }; /* FUTEX_WAIT: compares and sleeps */
#endif
		(!asleep[me] || taken == ALL);
#ifdef BREAK_SLEEPERS_LATE
		sleepers--
#endif
	:: else
	fi;
#ifndef BREAK_SLEEPERS_LATE
	sleepers--
#endif
}

/* As dispatcher, workers and settler do: read, look, wait. */
active [WAITERS] proctype waiter()
{
	byte me = _pid - RINGERS, seen;

	do
	:: taken == ALL -> break
	:: taken < ALL ->
#ifndef BREAK_READ_LATE
		seen = count; /* sl_bell_read */
#endif
		if
		:: d_step { work > 0 -> work--; taken++ }
		:: work == 0 ->
#ifdef BREAK_READ_LATE
			seen = count;
#endif
			wait()
		fi;
		seen = 0
	od
}
