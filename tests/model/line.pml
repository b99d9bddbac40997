/* line.pml - from the assembler to the ledger: the dispatcher fills batches, the unit works, frames
 * go to the settler in order and come back to the pool (receiver/dispatch/dispatch.c, receiver/settle.c, receiver/pool.c).
 *
 * A bell is one step here; that it may be taken for one is what bell.pml shows. Nobody has a
 * time-out: whoever is not rung for sleeps for ever, and spin says "invalid end state".
 *
 * With TOGETHER link, dispatcher and worker are one thread (receiver/dispatch/together.c), which
 * takes from a socket, and sleeps in the link's wait(): asleep, then look at the bell once more;
 * whoever rings for it looks at asleep after that.
 *
 * invariant ONCE:  every sequence gets one outcome, in order, after the last who had a say in it
 * invariant WOKEN: no wake-up is lost: nobody sleeps while there is work for it (end state)
 *
 * config: -DSEQUENCES=3 -DPOOL=2
 * config: -DSEQUENCES=4 -DPOOL=2 -DTOGETHER
 * config: -DSEQUENCES=3 -DPOOL=1 -DTOGETHER
 * break READ_LATE: WOKEN         the dispatcher reads its bell after it looked for work
 * break NO_RING_FRAME: WOKEN     the settler gives a frame back and does not ring
 * break NO_RING_DONE: WOKEN      the unit finishes and does not ring
 * break NO_RING_LINE: WOKEN      the dispatcher hands on and does not ring
 * break HOLD_BATCH: WOKEN        a part of a batch waits although the unit is idle
 * break HAND_ON: ONCE            frames go to the settler before they are done
 * break LAST_LATE: ONCE          the settler asks whether that was all after it found nothing
 * break STOP_FIRST: WOKEN        a worker asks whether to stop before it reads its bell
 * break BELL_BLIND: WOKEN        the one thread sleeps without looking at its bell once more
 * break ASLEEP_LATE: WOKEN       the one thread looks at its bell, then says that it sleeps
 * break WAKE_EARLY: WOKEN        the settler looks who sleeps, then rings */
#define SLOTS 2
#define BATCH 2	  /* frames in a batch */
#define BATCHES 2 /* one in the unit, one being filled */

bool stop_workers, ONCE = true; /* so that an error names the invariant */

/* Has it rung since its one waiter read it, and does the waiter sleep? */
mtype = {events, todo, settling};
typedef bell { bool rung, asleep };
bell bells[4]; /* by mtype, from 1 */
#define READ(b) bells[b].rung = false
#define RING(b) d_step { bells[b].rung = true; bells[b].asleep = false }
#define WAIT(b) bells[b].asleep = !bells[b].rung; !bells[b].asleep

/* Sets of sequences are bits. */
byte raised; /* sequences below it have arrived, whole or not */
byte whole, judged /* by the unit */;
byte opened = SLOTS;
byte free = POOL; /* frames in sl_pool */
byte submitted, finished; /* batches, free-running */
typedef batch { byte set, frames };
batch batches[BATCHES];
chan to_settle = [POOL] of {byte};
bool dispatched;
byte settled;

/* The dispatcher's bell. With TOGETHER its thread sleeps elsewhere (sl_dispatcher_wake). */
#ifdef TOGETHER
byte sent; /* sequences below it are in the socket */
bool data_asleep, to_data; /* an eventfd */
#ifdef BREAK_WAKE_EARLY
#define WAKE_DISPATCHER to_data = to_data || data_asleep; bells[events].rung = true
#else
#define WAKE_DISPATCHER bells[events].rung = true; to_data = to_data || data_asleep
#endif
#else
#define WAKE_DISPATCHER RING(events)
#endif

#ifndef TOGETHER
/* The link, and what the assembler decides of what it brought. */
active proctype link()
{
	byte k;

	do
	:: k == SEQUENCES -> break
	:: k < SEQUENCES && k < opened ->
		if
		:: whole = whole | (1 << k)
		:: skip
		fi;
		raised = k + 1; /* sl_ring_raise */
		RING(events);
		k++
	od
}
#else
/* The front end: within its credit. */
active proctype front_end()
{
	do
	:: sent == SEQUENCES -> break
	:: sent < SEQUENCES && sent < opened -> sent++
	od
}
#endif

#ifdef BREAK_HAND_ON
#define DONE(k) true
#else
#define DONE(k) (done & (1 << (k)))
#endif
#ifdef BREAK_HOLD_BATCH
#define IDLE false
#else
#define IDLE (submitted == reaped || next == SEQUENCES)
#endif
#define CURRENT batches[submitted % BATCHES]
#define BACK batches[reaped % BATCHES]

/* sl_dispatcher_turn */
inline turn()
{
	do
	:: d_step { reaped < finished -> /* take_back; open_slots opens what it released */
		done = done | BACK.set;
		opened = opened + BACK.frames;
		BACK.set = 0; BACK.frames = 0;
		work = true; reaped++
	   }
	:: else -> break
	od;
	do
	:: d_step { next < raised && free && (filling || submitted - reaped < BATCHES) ->
		free--; filling = true; work = true; /* assemble_one */
		if
		:: whole & (1 << next) ->
			CURRENT.set = CURRENT.set | (1 << next);
			CURRENT.frames++
		:: else -> done = done | (1 << next); opened++ /* discard */
		fi;
		next++
	   }
		if
		:: d_step { CURRENT.frames == BATCH -> submitted++; filling = false }
			RING(todo)
		:: else
		fi
	:: else -> break
	od;
	if /* nothing more now: no part of a batch waits for a unit that is idle */
	:: d_step { filling && CURRENT.frames && IDLE -> submitted++; filling = false }
		RING(todo)
	:: else
	fi;
	do
	:: d_step { first < next && DONE(first) -> /* hand_on */
		to_settle!first;
		done = done & ~(1 << first);
		first++; work = true; handed = true
	   }
	:: else -> break
	od;
	if
#ifndef BREAK_NO_RING_LINE
	:: handed -> RING(settling)
#endif
	:: else
	fi;
}

#ifndef TOGETHER
/* sl_dispatcher_main */
active proctype dispatcher()
{
	byte next, first, reaped, done;
	bool filling, work, handed;

	do
	:: first == SEQUENCES -> break
	:: first < SEQUENCES ->
#ifndef BREAK_READ_LATE
		READ(events);
#endif
		turn();
#ifdef BREAK_READ_LATE
		READ(events);
#endif
		if
		:: !work -> WAIT(events)
		:: else
		fi;
		d_step { work = false; handed = false }
	od;
	dispatched = true;
	RING(settling);
	stop_workers = true; /* join_threads */
	RING(todo)
}

/* worker_run, and a unit with one worker; unit.pml has more. */
active proctype worker()
{
	bool stop;

	do
	:: skip;
#ifdef BREAK_STOP_FIRST
		stop = stop_workers;
		READ(todo);
#else
		READ(todo);
		stop = stop_workers;
#endif
		if
		:: stop -> break
		:: !stop && finished < submitted ->
			d_step { judged = judged | batches[finished % BATCHES].set; finished++ }
#ifndef BREAK_NO_RING_DONE
			RING(events)
#endif
		:: !stop && finished == submitted -> WAIT(todo)
		fi
	od
}
#else
/* sl_together_main: poll, a turn, all that the unit has to do, and a turn again. */
active proctype data()
{
	byte next, first, reaped, done;
	bool filling, work, handed;

	do
	:: first == SEQUENCES -> break
	:: first < SEQUENCES ->
#ifndef BREAK_READ_LATE
		READ(events);
#endif
		do
		:: d_step { raised < sent -> /* poll */
			if
			:: whole = whole | (1 << raised)
			:: skip
			fi;
			raised++; work = true
		   }
		:: else -> break
		od;
		turn();
		do
		:: d_step { finished < submitted ->
			judged = judged | batches[finished % BATCHES].set; finished++; work = true
		   }
		:: else -> break
		od;
		turn();
#ifdef BREAK_READ_LATE
		READ(events);
#endif
		if
		:: !work -> /* sleep_on_link */
#ifndef BREAK_ASLEEP_LATE
			data_asleep = true;
#endif
			if
#ifndef BREAK_BELL_BLIND
			:: bells[events].rung
#endif
			:: else ->
#ifdef BREAK_ASLEEP_LATE
				data_asleep = true;
#endif
				(sent > raised || to_data); to_data = false /* ppoll, read */
			fi;
			data_asleep = false
		:: else
		fi;
		d_step { work = false; handed = false }
	od;
	dispatched = true;
	RING(settling)
}
#endif

/* sl_settler_main */
active proctype settler()
{
	byte k;
	bool last;

	do
	:: READ(settling);
#ifndef BREAK_LAST_LATE
		last = dispatched;
#endif
		if
		:: d_step { to_settle?k ->
			assert(!ONCE || k == settled);
			assert(!ONCE || ((judged | ~whole) & (1 << k)));
			whole = whole & ~(1 << k); judged = judged & ~(1 << k);
			settled++;
			k = 0
		   }
			free++; /* sl_pool_put */
#ifndef BREAK_NO_RING_FRAME
			WAKE_DISPATCHER
#endif
		:: empty(to_settle) ->
#ifdef BREAK_LAST_LATE
			last = dispatched;
#endif
			if
			:: last -> break
			:: else -> WAIT(settling)
			fi
		fi
	od;
	assert(!ONCE || settled == SEQUENCES)
}
