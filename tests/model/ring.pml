/* ring.pml - the hand-over of slots: link threads place and raise, the assembler closes, waits and
 * looks, the unit reads, the dispatcher releases and opens again (include/sluice/ring.h).
 *
 * The source is open-loop: it has no credits and laps the ring as it likes. Packets are lost,
 * doubled, overtaken, and predicted wrongly. The assembler may give a frame up as soon as anything
 * of it or of a later one has come: more often than late_frames and late_timeout_ns ever do.
 *
 * invariant EXCLUSIVE: nobody writes into a block between its hand-over to readers and its
 *                      release, nor into a slot that has gone on to another sequence
 * invariant PROVEN:    a frame is published as good only if every byte of it is its own, from
 *                      its event until the unit gives it back
 *
 * config: -DMODULES=1 -DPACKETS=2 -DSEQUENCES=4 -DODD=1
 * config: -DMODULES=2 -DPACKETS=1 -DSEQUENCES=3 -DODD=0
 * break NO_GENERATION: EXCLUSIVE   may_place looks at the state, not at the sequence beside it
 * break NO_WAIT: EXCLUSIVE         the assembler does not wait for pollers that are inside
 * break EPOCH_FIRST: EXCLUSIVE     close notes epochs before it stores the state
 * break NO_ENTER: EXCLUSIVE        pollers do not say that they are inside
 * break RELEASE_EARLY: EXCLUSIVE   the slot is released when the unit gets the frame
 * break OPEN_ANY: EXCLUSIVE        open does not ask whether the slot is free
 * break OLD_EVENT: PROVEN          an event of the lap before passes for one of this
 * break NO_BITMAP: PROVEN          a packet that comes twice counts twice
 * break RAISE_FIRST: PROVEN        the event before the bytes
 * break GUESS_ANYWHERE: EXCLUSIVE   prediction goes over bytes that were received */
#define SLOTS 2
#define NOBODY 255
#define S(k) ((k) % SLOTS)
#define CELL(k, m) (S(k) * MODULES + (m))
#define BYTES(k, m, i) (CELL(k, m) * PACKETS + (i))
#define ALL_PACKETS ((1 << PACKETS) - 1)

bool EXCLUSIVE = true, PROVEN = true; /* so that an error names the invariant */

mtype = {FREE, OPEN, CLOSED}; /* slots */
mtype = {IDLE, SUBMITTED, FINISHED}; /* the unit's part in it */

typedef slot { mtype state = FREE; byte sequence; mtype unit = IDLE };
slot ring[SLOTS]; /* state and sequence are one word in the code: stored together */
byte opened;
byte event[SLOTS * MODULES]; /* sequence + 1 */
byte reached[MODULES];
byte epoch[MODULES]; /* modulo 4: at worst a poller that came round is waited for once more */
bool ended[MODULES]; /* sl_assembler_end */
byte bytes[SLOTS * MODULES * PACKETS] = NOBODY; /* whose they are */
bool owned[SLOTS]; /* the truth: somebody relies on the bytes */

#ifdef BREAK_NO_GENERATION
#define IS_OPEN(k) (ring[S(k)].state == OPEN)
#else
#define IS_OPEN(k) (ring[S(k)].state == OPEN && ring[S(k)].sequence == (k))
#endif
#ifdef BREAK_OLD_EVENT
#define EVENT(k, m) (event[CELL(k, m)] != 0)
#else
#define EVENT(k, m) (event[CELL(k, m)] == (k) + 1)
#endif
#ifdef BREAK_OPEN_ANY
#define MAY_OPEN true
#else
#define MAY_OPEN (ring[S(opened)].state == FREE)
#endif
#ifdef BREAK_NO_WAIT
#define HAS_LEFT(k, m) true
#else
#define HAS_LEFT(k, m) (!(grace[m] & 1) || epoch[m] != grace[m])
#endif
#ifdef BREAK_NO_ENTER
#define STEP(m) skip
#else
#define STEP(m) epoch[m] = (epoch[m] + 1) & 3
#endif
#define DUE(k, m) (reached[m] > (k) || ended[m])
#if PACKETS == 1
#define OWN(k, m) (bytes[BYTES(k, m, 0)] == (k))
#else
#define OWN(k, m) (bytes[BYTES(k, m, 0)] == (k) && bytes[BYTES(k, m, 1)] == (k))
#endif
#if MODULES == 1
#define ALL(what, k) what(k, 0)
#define ANY(what, k) what(k, 0)
#else
#define ALL(what, k) (what(k, 0) && what(k, 1))
#define ANY(what, k) (what(k, 0) || what(k, 1))
#endif

inline write(whose)
{
	d_step {
		assert(!EXCLUSIVE ||
		       (!owned[S(k)] && ring[S(k)].state != FREE && ring[S(k)].sequence == k));
		bytes[BYTES(k, m, i)] = whose
	}
}

/* mark() of place.c: this thread's own memory. */
inline mark()
{
	d_step {
		if
		:: track[S(k)] != k + 1 -> track[S(k)] = k + 1; bits[S(k)] = 0
		:: else
		fi;
#ifdef BREAK_NO_BITMAP
		fresh = true;
		bits[S(k)] = (bits[S(k)] * 2 + 1) & ALL_PACKETS
#else
		fresh = !(bits[S(k)] & (1 << i));
		bits[S(k)] = bits[S(k)] | (1 << i)
#endif
	}
}

/* place() of place.c, after sl_ring_may_place said yes. */
inline place()
{
	mark();
	if
	:: !fresh /* SL_DROP_DUPLICATE */
	:: else ->
#ifdef BREAK_RAISE_FIRST
		event[CELL(k, m)] = k + 1;
#endif
		write(NOBODY); /* memcpy begins */
		write(k); /* and ends */
		reached[m] = (k + 1 > reached[m] -> k + 1 : reached[m]);
		if
		:: bits[S(k)] == ALL_PACKETS -> event[CELL(k, m)] = k + 1 /* sl_ring_raise */
		:: else
		fi
	fi
}

/* sl_placer_predict: the kernel puts another packet where this one was expected. */
inline predict()
{
	if
#ifndef BREAK_GUESS_ANYWHERE
	:: track[S(k)] == k + 1 && (bits[S(k)] & (1 << i)) /* to scratch */
#endif
	:: else -> write(NOBODY)
	fi
}

/* The link's thread of one module (sl_udp_poll), and the wire before it. */
active [MODULES] proctype poller()
{
	byte m = _pid, at, k, i, odd = ODD, track[SLOTS], bits[SLOTS];
	bool guess, fresh;

	do
	:: d_step { at == SEQUENCES * PACKETS -> ended[m] = true } break
	:: at < SEQUENCES * PACKETS -> at++ /* lost on its way */
	:: atomic { /* sl_ring_enter, with what came */
		if
		:: at < SEQUENCES * PACKETS -> i = at; at++
		:: odd && at > 0 -> odd--; i = at - 1 /* again */
		:: odd && at > SLOTS * PACKETS -> odd--; i = at - 1 - SLOTS * PACKETS /* late */
		:: odd && at < SEQUENCES * PACKETS -> odd--; guess = true; i = at
		:: odd && at > 0 -> odd--; guess = true; i = at - 1
		fi;
		k = i / PACKETS; i = i % PACKETS; STEP(m)
	   }
		if
		:: IS_OPEN(k) && guess -> predict()
		:: IS_OPEN(k) && !guess -> place()
		:: else -> /* SL_PLACE_AHEAD or SL_PLACE_LATE: dropped, but heard of */
			reached[m] = (k + 1 > reached[m] -> k + 1 : reached[m])
		fi;
		d_step { STEP(m); guess = false; fresh = false; k = 0; i = 0 } /* sl_ring_leave */
	od
}

inline close_slot(k)
{
#ifdef BREAK_EPOCH_FIRST
	grace[0] = epoch[0]; grace[MODULES - 1] = epoch[MODULES - 1];
	ring[S(k)].state = CLOSED
#else
	ring[S(k)].state = CLOSED;
	grace[0] = epoch[0]; grace[MODULES - 1] = epoch[MODULES - 1]
#endif
}

inline release(s)
{
	d_step { ring[s].state = FREE; ring[s].unit = IDLE; owned[s] = false }
}

/* sl_dispatch_run, with sl_assembler_next in it. */
active proctype dispatcher()
{
	byte next, grace[MODULES];
	bool closing;

	do
	:: ring[0].unit == FINISHED -> release(0) /* take_back */
	:: ring[1].unit == FINISHED -> release(1)
	:: opened < SEQUENCES && MAY_OPEN -> /* sl_ring_open */
		d_step { ring[S(opened)].state = OPEN; ring[S(opened)].sequence = opened };
		opened++
	:: !closing && next < opened && (ALL(EVENT, next) || ANY(DUE, next)) ->
		close_slot(next);
		closing = true
	:: d_step { closing && (ALL(HAS_LEFT, next) || ALL(EVENT, next)) -> owned[S(next)] = true }
		if
		:: ALL(EVENT, next) -> /* describe: complete */
			d_step {
				ring[S(next)].unit = SUBMITTED;
#ifdef BREAK_RELEASE_EARLY
				ring[S(next)].state = FREE
#endif
			}
		:: else -> release(S(next)) /* discard */
		fi;
		d_step { closing = false; grace[0] = 0; grace[MODULES - 1] = 0; next++ }
	:: next == SEQUENCES && ring[0].state == FREE && ring[1].state == FREE -> break
	od
}

/* What a stage saw at the last byte it read: if a byte was ever another's, so it is now. */
inline finish(s)
{
	d_step {
		ring[s].unit == SUBMITTED ->
		assert(!PROVEN || ALL(OWN, ring[s].sequence));
		ring[s].unit = FINISHED
	}
}

/* The unit. */
active proctype worker()
{
end:	do
	:: finish(0)
	:: finish(1)
	od
}
