/* ring.pml - the hand-over of cells (a slot of one module): link threads place and raise, the
 * assembler closes, waits and looks, the unit reads, the dispatcher releases and opens again
 * (src/core/ring.h).
 *
 * The source is open-loop: it has no credits and laps the ring as it likes. Packets are lost,
 * doubled, overtaken, and predicted wrongly. The assembler may give a head up as soon as anything
 * of it or of a later one has come: more often than late_frames and late_timeout_ns ever do. Each
 * head goes by itself or with others, however they are aligned.
 *
 * invariant EXCLUSIVE: nobody writes into a block between its hand-over to readers and its
 *                      release, nor into a cell that has gone on to another sequence
 * invariant PROVEN:    a frame is published as good only if every byte of it is its own, from
 *                      its event until the unit gives it back
 *
 * config: -DMODULES=1 -DSLOTS=2 -DPACKETS=2 -DSEQUENCES=4 -DODD=1
 * config: -DMODULES=2 -DSLOTS=1 -DPACKETS=1 -DSEQUENCES=3 -DODD=0
 * break NO_GENERATION: EXCLUSIVE   may_place looks at the state, not at the sequence beside it
 * break NO_WAIT: EXCLUSIVE         the assembler does not wait for pollers that are inside
 * break EPOCH_FIRST: EXCLUSIVE     close notes epochs before it stores the state
 * break NO_ENTER: EXCLUSIVE        pollers do not say that they are inside
 * break RELEASE_EARLY: EXCLUSIVE   the cell is released when the unit gets the frame
 * break OPEN_ANY: EXCLUSIVE        open does not ask whether the cell is free
 * break OLD_EVENT: PROVEN          an event of the lap before passes for one of this
 * break NO_BITMAP: PROVEN          a packet that comes twice counts twice
 * break RAISE_FIRST: PROVEN        the event before the bytes
 * break GUESS_ANYWHERE: EXCLUSIVE   prediction goes over bytes that were received */
/* Two cells in each config: two slots of one module, or one slot of two modules. */
#define NOBODY 255
#define S(k) ((k) % SLOTS)
#define CELL(k, m) (S(k) * MODULES + (m))
#define BYTES(k, m, i) (CELL(k, m) * PACKETS + (i))
#define ALL_PACKETS ((1 << PACKETS) - 1)

bool EXCLUSIVE = true, PROVEN = true; /* so that an error names the invariant */

mtype = {FREE, OPEN, CLOSED}; /* cells */
mtype = {IDLE, SUBMITTED, FINISHED}; /* the unit's part in it */

typedef cell {
	mtype state = FREE; byte sequence; /* one word in the code: stored together */
	byte event; /* sequence + 1 */
	mtype unit = IDLE;
	bool owned /* the truth: somebody relies on the bytes */
};
cell ring[SLOTS * MODULES];
byte opened[MODULES], reached[MODULES];
byte epoch[MODULES]; /* modulo 4: at worst a poller that came round is waited for once more */
bool ended[MODULES]; /* sl_assembler_end */
byte bytes[SLOTS * MODULES * PACKETS] = NOBODY; /* whose they are */

#define AT(k, m) ring[CELL(k, m)]
#ifdef BREAK_NO_GENERATION
#define IS_OPEN(k, m) (AT(k, m).state == OPEN)
#else
#define IS_OPEN(k, m) (AT(k, m).state == OPEN && AT(k, m).sequence == (k))
#endif
#ifdef BREAK_OLD_EVENT
#define EVENT(m) (AT(head[m], m).event != 0)
#else
#define EVENT(m) (AT(head[m], m).event == head[m] + 1)
#endif
#ifdef BREAK_OPEN_ANY
#define MAY_OPEN(m) true
#else
#define MAY_OPEN(m) (AT(opened[m], m).state == FREE)
#endif
#ifdef BREAK_NO_WAIT
#define HAS_LEFT(m) true
#else
#define HAS_LEFT(m) (!(grace[m] & 1) || epoch[m] != grace[m])
#endif
#ifdef BREAK_NO_ENTER
#define STEP(m) skip
#else
#define STEP(m) epoch[m] = (epoch[m] + 1) & 3
#endif
#if PACKETS == 1
#define OWN(c) (bytes[c] == ring[c].sequence)
#else
#define OWN(c) (bytes[2 * (c)] == ring[c].sequence && bytes[2 * (c) + 1] == ring[c].sequence)
#endif

inline write(whose)
{
	d_step {
		assert(!EXCLUSIVE ||
		       (!AT(k, m).owned && AT(k, m).state != FREE && AT(k, m).sequence == k));
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
		AT(k, m).event = k + 1;
#endif
		write(NOBODY); /* memcpy begins */
		write(k); /* and ends */
		reached[m] = (k + 1 > reached[m] -> k + 1 : reached[m]);
		if
		:: bits[S(k)] == ALL_PACKETS -> AT(k, m).event = k + 1 /* sl_ring_raise */
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
		:: IS_OPEN(k, m) && guess -> predict()
		:: IS_OPEN(k, m) && !guess -> place()
		:: else -> /* SL_PLACE_AHEAD or SL_PLACE_LATE: dropped, but heard of */
			reached[m] = (k + 1 > reached[m] -> k + 1 : reached[m])
		fi;
		d_step { STEP(m); guess = false; fresh = false; k = 0; i = 0 } /* sl_ring_leave */
	od
}

/* A head that is open, has no event, and is due: late_frames, late_timeout_ns, or the end. */
#define MAY_GIVE_UP(m) (head[m] < opened[m] && !EVENT(m) && (reached[m] > head[m] || ended[m]))
#define CLOSE(m) AT(head[m], m).state = CLOSED
#define GRACE grace[0] = epoch[0]; grace[MODULES - 1] = epoch[MODULES - 1]

/* close_heads() of receiver/assemble/assembler.c: sl_ring_close for each, then sl_ring_grace */
inline close_heads(first, last, which)
{
#ifdef BREAK_EPOCH_FIRST
	GRACE;
	CLOSE(first);
	CLOSE(last);
#else
	CLOSE(first);
	CLOSE(last);
	GRACE;
#endif
	closing = which
}

inline release(c)
{
	d_step { ring[c].state = FREE; ring[c].unit = IDLE; ring[c].owned = false }
}

inline open(m)
{
	d_step { AT(opened[m], m).state = OPEN; AT(opened[m], m).sequence = opened[m] };
	opened[m]++
}

/* receiver/assemble/describe.c: a head whose event is there is finished without waiting for anybody, and goes to the
 * unit, or is discarded for want of a partner. */
inline give_out(m)
{
	d_step { AT(head[m], m).state = CLOSED; AT(head[m], m).owned = true }; /* sl_ring_finish */
	if
	:: d_step {
		AT(head[m], m).unit = SUBMITTED;
#ifdef BREAK_RELEASE_EARLY
		AT(head[m], m).state = FREE
#endif
	   }
	:: release(CELL(head[m], m))
	fi;
	head[m]++
}

/* One that was given up and has no event is discarded; one that has an event after all waits. */
inline judge(m)
{
	if
	:: (closing & (1 << m)) && !EVENT(m) -> release(CELL(head[m], m)); head[m]++
	:: else
	fi
}

#if MODULES == 1
#define QUIET HAS_LEFT(0)
#define ALL_CAME EVENT(0)
#else
#define QUIET (HAS_LEFT(0) && HAS_LEFT(1))
#define ALL_CAME ((!(closing & 1) || EVENT(0)) && (!(closing & 2) || EVENT(1)))
#endif

/* sl_dispatcher_main, with sl_assembler_next in it. */
active proctype dispatcher()
{
	byte head[MODULES], grace[MODULES], closing; /* a bit per module */

	do
	:: ring[0].unit == FINISHED -> release(0) /* take_back */
	:: ring[1].unit == FINISHED -> release(1)
	:: opened[0] < SEQUENCES && MAY_OPEN(0) -> open(0) /* sl_ring_open */
	:: !closing && MAY_GIVE_UP(0) -> close_heads(0, 0, 1)
	:: !closing && head[0] < opened[0] && EVENT(0) -> give_out(0)
#if MODULES == 2
	:: opened[1] < SEQUENCES && MAY_OPEN(1) -> open(1)
	:: !closing && MAY_GIVE_UP(1) -> close_heads(1, 1, 2)
	:: !closing && MAY_GIVE_UP(0) && MAY_GIVE_UP(1) -> close_heads(0, 1, 3)
	:: !closing && head[1] < opened[1] && EVENT(1) -> give_out(1)
#endif
	:: closing && (QUIET || ALL_CAME) -> /* closed(): sl_ring_quiet, or whole after all */
		judge(0);
#if MODULES == 2
		judge(1);
#endif
		d_step { closing = 0; grace[0] = 0; grace[MODULES - 1] = 0 }
	:: head[0] == SEQUENCES && head[MODULES - 1] == SEQUENCES -> break
	od
}

/* What a stage saw at the last byte it read: if a byte was ever another's, so it is now. */
inline finish(c)
{
	d_step {
		ring[c].unit == SUBMITTED ->
		assert(!PROVEN || OWN(c));
		ring[c].unit = FINISHED
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
