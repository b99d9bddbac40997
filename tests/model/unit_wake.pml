/* unit_wake.pml - how workers of the cpu unit sleep and are woken where a tile waits for the same tile of the batch before
 * (src/unit/cpu/window.c: may_run, note_seen, arrive; cpu.c: submit; worker_main of src/receiver/threads.c).
 *
 * A worker that sleeps too long is no dead end: the others do its work, only later. So what is asked for is more than that the
 * model goes on: whenever no thread is about to ring, no worker sleeps while there is an item that it could take. The bell itself
 * is bell.pml's: here its count moves and sleepers wake in one step, and one that has moved lets no worker fall asleep.
 *
 * invariant WOKEN: when nobody is about to ring, no worker sleeps beside an item that may be run
 *
 * config: -DBATCHES=3 -DTILES=2 -DWORKERS=2 -DSUBMITTED=0
 * config: -DBATCHES=2 -DTILES=2 -DWORKERS=3 -DSUBMITTED=2
 * break LOOK_FIRST: WOKEN      the worker says that it is blocked after it has looked for the last time
 * break SEEN_LATE: WOKEN       the worker looks who is blocked, then says that the tile is done
 * break UNSAID: WOKEN          the worker does not say that it is blocked
 * break CLEAR_LATE: WOKEN      the worker rings, then takes the word back
 * break QUIET_PASS: WOKEN      a pass is concluded, and nobody is told
 * break READ_LATE: WOKEN       the worker reads the bell after it looked for an item
 * break STALE: WOKEN           a tile that another worker has taken and done meanwhile counts as one to wait for
 * break SUBMIT_LATE: WOKEN     the dispatcher rings, then submits */
#define FLIGHTS 2
bool WOKEN = true; /* so that an error names the invariant */

byte submitted = SUBMITTED, finished; /* free-running */
byte ticket_step[FLIGHTS], ticket_tile[FLIGHTS]; /* one word in the code; one pass: step is the number of the batch */
byte arrived[FLIGHTS];
byte seen[TILES]; /* batches that this tile has seen */
bool blocked, stop;
bool moved[WORKERS]; /* whether the bell has rung since this worker read it: count != seen */

#ifdef BREAK_STALE
#define HAS_SEEN(t, b) (seen[t] == b)
#else
#define HAS_SEEN(t, b) (seen[t] >= b)
#endif

/* The truth. */
bool asleep[WORKERS];
byte about_to_ring; /* threads that have made an item free and have not rung yet, or decided not to */

#define FREE(f) (ticket_step[f] < submitted && ticket_tile[f] < TILES && seen[ticket_tile[f]] == ticket_step[f])

inline check()
{
	assert(!WOKEN || about_to_ring || !(FREE(0) || FREE(1)) || !(asleep[0] || asleep[1] || asleep[WORKERS - 1]))
}

/* sl_bell_ring */
inline ring()
{
	d_step {
		moved[0] = true; moved[1] = true; moved[WORKERS - 1] = true;
		asleep[0] = false; asleep[1] = false; asleep[WORKERS - 1] = false
	}
}

inline rung(n)
{
	d_step { about_to_ring = about_to_ring - n; check() }
}

/* begin() in cpu.c */
init
{
	byte i;

	d_step {
		for (i : 0 .. FLIGHTS - 1) {
			ticket_step[i] = i
		}
		arrived[0] = 1;
		i = 0
	}
	atomic {
		run dispatcher();
		for (i : 0 .. WORKERS - 1) {
			run worker(i)
		}
	}
}

/* submit; and, in the end, the stop */
proctype dispatcher()
{
	do
	:: submitted < BATCHES ->
#ifdef BREAK_SUBMIT_LATE
		ring();
		d_step { submitted++; about_to_ring++ }
#else
		d_step { submitted++; about_to_ring++ }
		ring();
#endif
		rung(1)
	:: finished == BATCHES -> break
	od;
	stop = true;
	ring()
}

inline read_bell()
{
	moved[id] = false
}

/* May the tile t of batch b be run? As may_run: look, say so, look again. */
inline may_run()
{
	may = HAS_SEEN(t, b);
	if
	:: may
	:: else ->
#ifdef BREAK_LOOK_FIRST
		may = HAS_SEEN(t, b);
#endif
#ifndef BREAK_UNSAID
		if
		:: !blocked -> blocked = true /* two accesses: another worker may come between */
		:: blocked
		fi;
#endif
#ifndef BREAK_LOOK_FIRST
		may = HAS_SEEN(t, b)
#endif
	fi
}

/* The ticket of flight f, if its item may be run; again when another worker was faster. */
inline take_from(f)
{
	do
	:: true ->
		d_step { t = ticket_tile[f]; b = ticket_step[f]; may = b < submitted && t < TILES };
		if
		:: !may -> break
		:: else
		fi;
		may_run();
		if
		:: !may -> break
		:: else
		fi;
		if
		:: d_step { ticket_step[f] == b && ticket_tile[f] == t -> ticket_tile[f]++; taken = true } break
		:: else
		fi
	od
}

inline note_seen()
{
#ifdef BREAK_SEEN_LATE
	was = blocked;
	d_step { seen[t] = b + 1; about_to_ring++ }
#else
	d_step { seen[t] = b + 1; about_to_ring++ }
	was = blocked;
#endif
	if
	:: was ->
#ifdef BREAK_CLEAR_LATE
		ring();
		blocked = false
#else
		blocked = false;
		ring()
#endif
	:: else
	fi;
	rung(1)
}

/* One arrival at the end of the pass; with the last one the pass is concluded, and that is an arrival at the next batch. In one
 * step here: unit.pml has these. */
inline arrive()
{
	d_step {
		do
		:: arrived[b % FLIGHTS] == TILES ->
			arrived[b % FLIGHTS] = 0;
			finished = b + 1;
			ticket_step[b % FLIGHTS] = b + FLIGHTS; /* open_step() */
			ticket_tile[b % FLIGHTS] = 0;
			freed = 1;
			b++
		:: else -> arrived[b % FLIGHTS]++; break
		od;
		about_to_ring = about_to_ring + freed
	}
	if
	:: freed ->
#ifndef BREAK_QUIET_PASS
		ring();
#endif
		rung(1)
	:: else
	fi
}

/* worker_main, and work() */
proctype worker(byte id)
{
	byte b, t, f, freed;
	bool taken, may, was;

	do
	:: true ->
#ifndef BREAK_READ_LATE
		read_bell();
#endif
		if
		:: stop -> break
		:: else -> f = finished % FLIGHTS /* the oldest batch first */
		fi;
		take_from(f);
		if
		:: taken
		:: else -> f = (f + 1) % FLIGHTS; take_from(f)
		fi;
#ifdef BREAK_READ_LATE
		read_bell();
#endif
		if
		:: taken ->
			note_seen();
			arrive()
		:: else ->
			if
#ifdef BREAK_READ_LATE
			:: d_step { !moved[id] && !stop -> asleep[id] = true; check() }
#else
			:: d_step { !moved[id] -> asleep[id] = true; check() }
#endif
				(!asleep[id])
			:: else
			fi
		fi;
		d_step { b = 0; t = 0; f = 0; freed = 0; taken = false; may = false; was = false }
	od
}
