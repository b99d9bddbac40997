/* cause.pml - what is said of a module-frame that did not become whole: turned away, damaged, lost,
 * late (sl_ring_may_place, sl_ring_turn_away, look_at of assembler.c).
 *
 * As in ring.pml the source is open-loop, packets are lost, doubled and overtaken, and the
 * assembler gives up when it likes. Bytes and readers are left out.
 *
 * invariant NAMED: the cause is the true one: overrun is what was turned away for want of an open
 *                  slot, damaged what came in part, lost what did not come while its slot was open;
 *                  and called late is only what found its slot closed
 *
 * config: -DSEQUENCES=4 -DODD=1
 * break ONE_LOOK: NAMED      may_place does not look a second time
 * break OPENED_FIRST: NAMED  open counts the slot before it is open
 * break NO_WAIT: NAMED       the assembler judges while a poller is inside
 * break OLD_CELL: NAMED      progress and turned_away do not say of which sequence
 * known LAPPED: NAMED        a cell remembers one turned-away sequence: where a source is a lap
 *                            ahead of the assembler, the others of that slot are called lost */
#define SLOTS 2
#define PACKETS 2
#define S(k) ((k) % SLOTS)

bool NAMED = true; /* so that an error names the invariant */

mtype = {FREE, OPEN, CLOSED};		/* slots */
mtype = {OK, LATE, AHEAD};		/* sl_ring_may_place */
mtype = {WHOLE, DAMAGED, LOST, OVERRUN}; /* what the assembler says */

typedef slot { mtype state = FREE; byte sequence };
slot ring[SLOTS];
byte opened, reached, epoch;
bool ended;
byte event[SLOTS], progress[SLOTS], turned_away[SLOTS]; /* sequence + 1: the cell of the module */

/* The truth. */
byte closed; /* sequences below it were closed */
bool turned[SEQUENCES], placed[SEQUENCES];

#define IS_OPEN(k) (ring[S(k)].state == OPEN && ring[S(k)].sequence == (k))
#ifdef BREAK_OLD_CELL
#define OF(cell, k) (cell[S(k)] != 0)
#else
#define OF(cell, k) (cell[S(k)] == (k) + 1)
#endif
#ifdef BREAK_NO_WAIT
#define QUIET true
#else
#define QUIET (!(grace & 1) || epoch != grace)
#endif
#ifdef KNOWN_LAPPED
#define LAPPED(k) false
#else
#define TURNED(k) ((k) >= 0 && (k) < SEQUENCES && turned[k])
#define LAPPED(k) (TURNED((k) + SLOTS) || TURNED((k) + 2 * SLOTS) || \
		   TURNED((k) - SLOTS) || TURNED((k) - 2 * SLOTS))
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
			d_step { turned_away[S(k)] = k + 1; turned[k] = true };
			reach()
		:: may == OK ->
			d_step { /* mark, sl_ring_progress */
				if
				:: track[S(k)] != k + 1 -> track[S(k)] = k + 1; bits[S(k)] = 0
				:: else
				fi;
				bits[S(k)] = bits[S(k)] | (1 << i);
				progress[S(k)] = k + 1;
				placed[k] = true
			}
			reach();
			if
			:: bits[S(k)] == (1 << PACKETS) - 1 -> event[S(k)] = k + 1 /* raise */
			:: else
			fi
		fi;
		d_step { epoch = (epoch + 1) & 3; k = 0; i = 0; may = 0 } /* sl_ring_leave */
	od
}

/* look_at() of assembler.c: three loads; only turned_away can still change. */
inline judge()
{
	if
	:: OF(event, next) -> verdict = WHOLE
	:: else ->
		if
		:: OF(turned_away, next) -> verdict = OVERRUN
		:: else -> verdict = (OF(progress, next) -> DAMAGED : LOST)
		fi
	fi;
	d_step {
		assert(!NAMED || (verdict == OVERRUN) == turned[next] || verdict == WHOLE ||
		       LAPPED(next));
		assert(!NAMED || verdict != DAMAGED || placed[next]);
		assert(!NAMED || verdict != LOST || !placed[next])
	}
}

/* sl_dispatch_run, with sl_assembler_next in it. */
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
	:: next < opened && (OF(event, next) || reached > next || ended) ->
		d_step { ring[S(next)].state = CLOSED; closed = next + 1 }; /* sl_ring_close */
		grace = epoch;
		(QUIET || OF(event, next));
		judge();
		ring[S(next)].state = FREE; /* at once, or when the unit is done: sl_ring_release */
		d_step { placed[next] = false; next++; grace = 0; verdict = 0 }
	:: next == SEQUENCES -> break
	od
}
