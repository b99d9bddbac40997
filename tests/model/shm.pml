/* shm.pml - a credited source that writes the ring itself (src/link/shm; over verbs the NIC does
 * it).
 *
 * The source copies a block outside of any poll, so that no grace period covers it: credits alone
 * guard the slots, and the order in which one source writes its own blocks. Chunks are lost (then
 * there is no event), and the assembler may give a frame up by its time-out at any moment. How
 * the threads wake each other is in wake.pml.
 *
 * invariant EXCLUSIVE: nobody writes into a block between its hand-over to readers and its release
 * invariant PROVEN:    a frame is published as good only if every byte of it is its own, from its
 *                      event until the unit gives it back
 * invariant GRANTED:   the source writes sequence k only after the slot was opened for k
 * invariant NAMED:     what was announced is called lost only if the time-out gave it up
 *
 * config: -DSEQUENCES=4
 * break NO_CREDIT: GRANTED        the source does not look at its credit
 * break GRANT_MORE: GRANTED       credit for a slot that is not open yet
 * break RELEASE_EARLY: EXCLUSIVE  the slot is released when the unit gets the frame
 * break OPEN_ANY: EXCLUSIVE       open does not ask whether the slot is free
 * break ANNOUNCE_FIRST: PROVEN    the source announces a block before it has copied it
 * break WORD_LATE: NAMED          the poller reads the source's count after the queue
 * known IGNORES: PROVEN           a source that ignores its credit is found out only if it has
 *                                 announced the block before the frame comes back from the unit */
#define SLOTS 2
#define NOBODY 255
#define S(k) ((k) % SLOTS)
#ifdef KNOWN_IGNORES
#define HONEST false
#else
#define HONEST true
#endif
bool EXCLUSIVE = HONEST, GRANTED = HONEST, NAMED = HONEST, PROVEN = true; /* errors name them */

mtype = {FREE, OPEN, CLOSED};
typedef slot { mtype state = FREE; byte sequence, unit };
slot ring[SLOTS]; /* unit: 1 + the sequence that it reads there */
byte opened, event[SLOTS], reached, epoch; /* as in ring.pml */
byte bytes[SLOTS] = NOBODY; /* whose they are */
byte granted, head, entry[SEQUENCES]; /* the lane: in frames, not bytes */
byte reported; /* what the source's counts say, over TCP */
bool announced[SEQUENCES], over; /* the truth */
#ifdef KNOWN_IGNORES
bool away[SEQUENCES + SLOTS];
#endif

#if defined(BREAK_NO_CREDIT) || defined(KNOWN_IGNORES)
#define CREDIT true
#else
#define CREDIT (granted > k)
#endif
#ifdef BREAK_GRANT_MORE
#define LIMIT (opened + 1)
#else
#define LIMIT opened
#endif
#ifdef BREAK_OPEN_ANY
#define MAY_OPEN (ring[S(opened)].state != OPEN)
#else
#define MAY_OPEN (ring[S(opened)].state == FREE)
#endif
#define IS_OPEN(k) (ring[S(k)].state == OPEN && ring[S(k)].sequence == k)
#define QUIET (!(grace & 1) || epoch != grace)
#define EVENT(k) (event[S(k)] == (k) + 1)

inline write(whose)
{
	d_step {
		assert(!GRANTED || k < opened);
		assert(!EXCLUSIVE || !ring[S(k)].unit);
		bytes[S(k)] = whose
	}
}

inline announce()
{
	d_step { entry[head] = k; announced[k] = true };
	head++
}

/* shm_post */
active proctype source()
{
	byte k;

	do
	:: k == SEQUENCES -> break
	:: k < SEQUENCES && CREDIT ->
#ifdef BREAK_ANNOUNCE_FIRST
		announce();
#endif
		write(NOBODY); /* copy begins */
		if
		:: write(k); /* and ends */
#ifndef BREAK_ANNOUNCE_FIRST
			announce()
#endif
		:: skip /* a chunk was lost */
		fi;
		reported = k + 1; /* sl_receiver_count */
		k++
	od
}

/* shm_poll: woken when there is something to do. */
active proctype poller()
{
	byte word, tail, k;
	bool taken;

	do
	:: over -> break
	:: tail != head || granted != LIMIT || reported > reached ->
		epoch = (epoch + 1) & 3; /* sl_ring_enter */
#ifndef BREAK_WORD_LATE
		word = reported;
#endif
		if
		:: d_step { tail != head -> k = entry[tail]; entry[tail] = 0; tail++; taken = true }
			if /* take: sl_ring_may_place, sl_ring_raise, sl_ring_reach */
			:: IS_OPEN(k) -> event[S(k)] = k + 1
#ifdef KNOWN_IGNORES
			:: k >= opened -> away[k] = true /* sl_ring_turn_away */
#endif
			:: else -> assert(!GRANTED || k < opened) /* late, and never ahead */
			fi;
			reached = (k + 1 > reached -> k + 1 : reached)
		:: else
		fi;
#ifdef BREAK_WORD_LATE
		word = reported;
#endif
		if
		:: !taken && word > reached -> reached = word /* catch_up */
		:: else
		fi;
		granted = LIMIT; /* grant */
		epoch = (epoch + 1) & 3; /* sl_ring_leave */
		d_step { k = 0; word = 0; taken = false }
	od
}

inline release(s)
{
	d_step { ring[s].unit -> /* the unit is through with it */
#ifdef KNOWN_IGNORES
		/* check_overwritten: then it is not published. */
		assert(!PROVEN || bytes[s] == ring[s].unit - 1 || away[ring[s].unit - 1 + SLOTS]);
#else
		assert(!PROVEN || bytes[s] == ring[s].unit - 1);
#endif
		/* Only a broken variant has opened it again by now. */
		ring[s].state = (ring[s].sequence == ring[s].unit - 1 -> FREE : ring[s].state);
		ring[s].unit = 0
	}
}

/* sl_dispatcher_main, with sl_assembler_next and the unit in it. */
active proctype dispatcher()
{
	byte next, grace;
	bool timed_out;

	do
	:: release(0)
	:: release(1)
	:: opened < SEQUENCES && MAY_OPEN -> /* sl_ring_open */
		d_step { ring[S(opened)].state = OPEN; ring[S(opened)].sequence = opened };
		opened++
	:: next < opened && IS_OPEN(next) ->
		timed_out = !EVENT(next) && reached <= next;
		ring[S(next)].state = CLOSED;
		grace = epoch;
		(QUIET || EVENT(next));
		if
		:: EVENT(next) ->
			ring[S(next)].unit = next + 1;
#ifdef BREAK_RELEASE_EARLY
			ring[S(next)].state = FREE
#endif
		:: else ->
			assert(!NAMED || timed_out || !announced[next]);
			ring[S(next)].state = FREE
		fi;
		d_step { announced[next] = false; timed_out = false; grace = 0; next++ }
	:: next == SEQUENCES && reported == SEQUENCES && !ring[0].unit && !ring[1].unit -> break
	od;
	over = true
}
