/* cause.pml - what is said of a module-frame that did not become whole: turned away, damaged, lost,
 * late (sl_ring_may_place, sl_ring_turn_away and sl_ring_release of src/core/ring.c, look_at of
 * src/receiver/assemble/describe.c).
 *
 * As in ring.pml the source is open-loop, packets are lost, doubled and overtaken, and the
 * assembler gives up when it likes. Bytes and readers are left out; one module.
 *
 * invariant NAMED: the cause is the true one: overrun is what was turned away for want of an open
 *                  slot, damaged what came in part, lost what did not come while its slot was open;
 *                  and called late is only what found its slot closed
 *
 * config: -DSEQUENCES=4 -DPACKETS=2 -DAWAY=8 -DODD=1
 * config: -DSEQUENCES=6 -DPACKETS=1 -DAWAY=5 -DODD=1
 * break ONE_LOOK: NAMED      may_place does not look a second time
 * break OPENED_FIRST: NAMED  open counts the cell before it is open
 * break NO_WAIT: NAMED       the assembler judges while a poller is inside
 * break OLD_CELL: NAMED      progress does not say of which sequence
 * break ONE_MARK: NAMED      a cell remembers one turned-away sequence, and a source that is a lap
 *                            ahead overwrites it
 * break NO_CLEAR: NAMED      release leaves the bit, which then speaks of a later sequence
 * break NO_BOUND: NAMED      a source may be further ahead than there are bits */
#define SLOTS 2
#define S(k) ((k) % SLOTS)

bool NAMED = true; /* so that an error names the invariant */

mtype = {FREE, OPEN, CLOSED};		/* cells */
mtype = {OK, LATE, AHEAD};		/* sl_ring_may_place */
mtype = {WHOLE, DAMAGED, LOST, OVERRUN}; /* what the assembler says */

typedef cell { mtype state = FREE; byte sequence, event, progress }; /* the latter: sequence + 1 */
cell ring[SLOTS];
byte opened, reached, epoch; /* the lane */
bool turned_away, ended;
bool away[AWAY]; /* SL_RING_AWAY */

/* The truth. */
byte closed; /* sequences below it were closed */
bool turned[SEQUENCES], placed[SEQUENCES];

#define IS_OPEN(k) (ring[S(k)].state == OPEN && ring[S(k)].sequence == (k))
#define EVENT(k) (ring[S(k)].event == (k) + 1)
#ifdef BREAK_OLD_CELL
#define PROGRESS(k) (ring[S(k)].progress != 0)
#else
#define PROGRESS(k) (ring[S(k)].progress == (k) + 1)
#endif
#ifdef BREAK_NO_WAIT
#define QUIET true
#else
#define QUIET (!(grace & 1) || epoch != grace)
#endif
#ifdef BREAK_ONE_MARK
byte mark[SLOTS];
#define SET_AWAY(k) mark[S(k)] = k + 1
#define IS_AWAY(k) (mark[S(k)] == (k) + 1)
#define CLEAR_AWAY(k) skip
#else
#define SET_AWAY(k) away[(k) % AWAY] = true
#define IS_AWAY(k) (turned_away && away[(k) % AWAY])
#define CLEAR_AWAY(k) away[(k) % AWAY] = false
#endif
#ifdef BREAK_NO_BOUND
#define IN_BOUNDS(k) true
#else
#define IN_BOUNDS(k) (k < opened + AWAY - 2 * SLOTS)
#endif

inline reach() { reached = (k + 1 > reached -> k + 1 : reached) }

/* sl_ring_may_place: three loads, and the slot may change between them. */
inline look()
{
	if
	:: IS_OPEN(k) -> may = OK
	:: else ->
		if
		:: k >= opened -> may = AHEAD
		:: else ->
#ifdef BREAK_ONE_LOOK
			may = LATE
#else
			may = (IS_OPEN(k) -> OK : LATE)
#endif
		fi
	fi
}

/* The link's thread (sl_udp_poll, place.c), and the wire before it. */
active proctype poller()
{
	byte at, k, i, odd = ODD, track[SLOTS], bits[SLOTS];
	mtype may;

	do
	:: d_step { at == SEQUENCES * PACKETS -> ended = true } break
	:: at < SEQUENCES * PACKETS -> at++ /* lost on its way */
	:: atomic { /* sl_ring_enter, with what came */
		if
		:: at < SEQUENCES * PACKETS -> i = at; at++
		:: odd && at > 0 -> odd--; i = at - 1 /* again */
		:: odd && at > SLOTS * PACKETS -> odd--; i = at - 1 - SLOTS * PACKETS /* late */
		fi;
		k = i / PACKETS; i = i % PACKETS; epoch = (epoch + 1) & 3
	   }
		look();
		if
		:: may == LATE -> assert(!NAMED || k < closed) /* SL_DROP_LATE */
		:: may == AHEAD ->
			if /* sl_ring_turn_away */
			:: d_step { IN_BOUNDS(k) -> SET_AWAY(k); turned[k] = true }
				turned_away = true
			:: else
			fi;
			reach()
		:: may == OK ->
			d_step { /* mark, sl_ring_progress */
				if
				:: track[S(k)] != k + 1 -> track[S(k)] = k + 1; bits[S(k)] = 0
				:: else
				fi;
				bits[S(k)] = bits[S(k)] | (1 << i);
				ring[S(k)].progress = k + 1;
				placed[k] = true
			}
			reach();
			if
			:: bits[S(k)] == (1 << PACKETS) - 1 -> ring[S(k)].event = k + 1 /* raise */
			:: else
			fi
		fi;
		d_step { epoch = (epoch + 1) & 3; k = 0; i = 0; may = 0 } /* sl_ring_leave */
	od
}

/* look_at() of receiver/assemble/describe.c: three loads. */
inline judge()
{
	if
	:: EVENT(next) -> verdict = WHOLE
	:: else ->
		if
		:: IS_AWAY(next) -> verdict = OVERRUN
		:: else -> verdict = (PROGRESS(next) -> DAMAGED : LOST)
		fi
	fi;
	d_step {
		assert(!NAMED || verdict == WHOLE || (verdict == OVERRUN) == turned[next]);
		assert(!NAMED || verdict != DAMAGED || placed[next]);
		assert(!NAMED || verdict != LOST || !placed[next])
	}
}

/* sl_dispatcher_main, with sl_assembler_next in it. */
active proctype dispatcher()
{
	byte next, grace;
	mtype verdict;

	do
	:: opened < SEQUENCES && ring[S(opened)].state == FREE -> /* sl_ring_open */
#ifdef BREAK_OPENED_FIRST
		opened++;
		d_step {
			ring[S(opened - 1)].state = OPEN;
			ring[S(opened - 1)].sequence = opened - 1
		}
#else
		d_step { ring[S(opened)].state = OPEN; ring[S(opened)].sequence = opened };
		opened++
#endif
	:: next < opened && (EVENT(next) || reached > next || ended) ->
		d_step { ring[S(next)].state = CLOSED; closed = next + 1 }; /* sl_ring_close */
		grace = epoch;
		(QUIET || EVENT(next));
		judge();
		if /* sl_ring_release: at once, or when the unit is done */
#ifndef BREAK_NO_CLEAR
		:: turned_away -> CLEAR_AWAY(next)
#endif
		:: else
		fi;
		ring[S(next)].state = FREE;
		d_step {
			placed[next] = false; turned[next] = false;
			next++; grace = 0; verdict = 0
		}
	:: next == SEQUENCES -> break
	od
}
