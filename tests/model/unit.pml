/* unit.pml - the cpu unit: several batches are in flight; workers take the items (tiles, then frames) of a pass, of the
 * oldest batch first. An item that was run is an arrival at its pass, and so is that the batch before has concluded this
 * pass: the worker of the last arrival concludes it (src/unit/cpu/window.c).
 *
 * invariant EXCLUSIVE: a batch is given back, and its slots released, when no worker reads it
 * invariant ONCE:      every item of every pass over every batch is run once, and every pass is concluded once
 * invariant ORDERED:   passes of a batch come in order; they are concluded in the order of the batches, one batch at a time;
 *                      a tile of a stage that learns sees batches in order; a strict stage sees one batch at a time
 *
 * config: -DBATCHES=3 -DPASSES=1 -DTILES=2
 * config: -DBATCHES=3 -DPASSES=1 -DTILES=2 -DLEARNS
 * config: -DBATCHES=2 -DPASSES=2 -DTILES=2
 * config: -DBATCHES=3 -DPASSES=2 -DTILES=1 -DSTRICT
 * config: -DBATCHES=4 -DPASSES=1 -DTILES=1 -DLEARNS
 * break NO_CAS: ONCE/ORDERED     the ticket is read and then written
 * break COUNT_EARLY: EXCLUSIVE/ORDERED/ONCE an item arrives before it has been run
 * break REUSE: EXCLUSIVE         submit does not ask whether the place is free
 * break NO_LIMIT: ORDERED/ONCE   take does not stop at the last item of a pass
 * break STEP_FIRST: ORDERED      the next pass is open before this one is concluded
 * break NO_SEEN: ORDERED         a tile is run although the batch before still works on the same one
 * break NO_TURN: ORDERED         a pass is concluded without waiting for the batch before
 * break NO_AFTER: ORDERED        a strict stage begins a batch before it is done with the one before */
#define WORKERS 2
#define FLIGHTS 2
#define QUEUE 3
bool EXCLUSIVE = true, ONCE = true, ORDERED = true; /* so that an error names the invariant */

byte submitted, reaped, finished; /* free-running */
typedef place { byte number = 255 };
place batch[QUEUE];
byte ticket_step[FLIGHTS], ticket_tile[FLIGHTS]; /* one word in the code; step: batch * PASSES + pass */
byte arrived[FLIGHTS * PASSES];
byte seen[TILES]; /* batches that this tile of the first pass has seen */

/* The truth. */
bool ran[BATCHES * PASSES * TILES], concluded[BATCHES * PASSES];
byte inside[QUEUE]; /* workers that read this batch */
byte finishing;	    /* workers that are in finish() of a stage */

#ifdef BREAK_REUSE
#define ROOM true
#else
#define ROOM (submitted - reaped < QUEUE)
#endif
#ifdef BREAK_NO_LIMIT
#define HAS_TILES(t) true
#else
#define HAS_TILES(t) (t < TILES)
#endif
#ifdef BREAK_NO_TURN
#define ALL TILES
#else
#define ALL (TILES + 1)
#endif

/* The last pass that the strict stage is in is PASSES - 1, the first is 0. */
#if defined(STRICT) && !defined(BREAK_NO_AFTER)
#define AFTER(b, p) (p != 0 || b == 0 || ticket_step[(b + FLIGHTS - 1) % FLIGHTS] > b * PASSES - 1)
#else
#define AFTER(b, p) true
#endif
#if defined(LEARNS) && !defined(BREAK_NO_SEEN)
#define SEEN(b, p, t) (p != 0 || t >= TILES || seen[t] >= b)
#else
#define SEEN(b, p, t) true
#endif
#define MAY_TAKE(f)                                                                                      \
	(ticket_step[f] / PASSES < submitted && HAS_TILES(ticket_tile[f]) &&                             \
	 AFTER((ticket_step[f] / PASSES), (ticket_step[f] % PASSES)) &&                                  \
	 SEEN((ticket_step[f] / PASSES), (ticket_step[f] % PASSES), ticket_tile[f]))

/* begin() in cpu.c */
init
{
	byte i;

	d_step {
		for (i : 0 .. FLIGHTS - 1) {
			ticket_step[i] = i * PASSES
		}
		for (i : 0 .. PASSES - 1) {
			arrived[i] = ALL - TILES
		}
		i = 0
	}
	atomic {
		run dispatcher();
		for (i : 1 .. WORKERS) {
			run worker()
		}
	}
}

/* submit and reap */
proctype dispatcher()
{
	byte i;

	do
	:: submitted < BATCHES && ROOM ->
		d_step {
			assert(!EXCLUSIVE || !inside[submitted % QUEUE]);
			batch[submitted % QUEUE].number = submitted
		}
		submitted++
	:: d_step { reaped < finished -> /* take_back: sl_ring_release */
		assert(!EXCLUSIVE || !inside[reaped % QUEUE]);
		for (i : 0 .. PASSES * TILES - 1) {
			assert(!ONCE || ran[reaped * PASSES * TILES + i])
		}
		i = 0;
		reaped++
	   }
	:: reaped == BATCHES -> break
	od
}

inline open_step()
{
	if
	:: p < PASSES - 1 -> d_step { ticket_step[b % FLIGHTS] = b * PASSES + p + 1; ticket_tile[b % FLIGHTS] = 0 }
	:: else -> d_step { ticket_step[b % FLIGHTS] = (b + FLIGHTS) * PASSES; ticket_tile[b % FLIGHTS] = 0 }
	fi
}

/* finish() of stages begins and ends; meanwhile others go on. */
inline finish_stages()
{
	d_step {
		assert(!ORDERED || (b == 0 || concluded[(b - 1) * PASSES + p]));
		assert(!ONCE || !concluded[b * PASSES + p]);
		for (i : 0 .. TILES - 1) {
			assert(!ORDERED || ran[(b * PASSES + p) * TILES + i])
		}
		i = 0;
		inside[b % QUEUE]++;
		finishing++;
		assert(!ORDERED || PASSES > 1 || finishing == 1)
	}
	d_step { concluded[b * PASSES + p] = true; inside[b % QUEUE]--; finishing-- }
}

inline conclude()
{
	arrived[b % FLIGHTS * PASSES + p] = 0;
#ifdef BREAK_STEP_FIRST
	open_step();
#endif
	finish_stages();
	if
	:: p == PASSES - 1 -> d_step { assert(!ORDERED || finished == b); finished = b + 1 } /* reap() */
	:: else
	fi;
#ifndef BREAK_STEP_FIRST
	open_step()
#endif
}

/* Arrivals at the end of pass p: this one, then those at the batches behind it. */
inline arrive()
{
	do
	:: true ->
		atomic { arrived[b % FLIGHTS * PASSES + p]++; n = arrived[b % FLIGHTS * PASSES + p] };
		if
		:: n < ALL -> break
		:: else ->
			conclude();
#ifdef BREAK_NO_TURN
			break
#else
			b++
#endif
		fi
	od
}

inline run_item()
{
	d_step {
		assert(!ORDERED || t < TILES);
		assert(!ORDERED || batch[b % QUEUE].number == b);
		assert(!ORDERED || p == 0 || concluded[b * PASSES + p - 1]);
#ifdef LEARNS
		assert(!ORDERED || p != 0 || b == 0 || ran[(b - 1) * PASSES * TILES + t]);
#endif
#ifdef STRICT
		assert(!ORDERED || b == 0 || concluded[b * PASSES - 1]);
#endif
		inside[b % QUEUE]++
	}
	d_step {
		assert(!ONCE || !ran[(b * PASSES + p) * TILES + t]);
		ran[(b * PASSES + p) * TILES + t] = true;
		inside[b % QUEUE]--
	}
}

/* note_seen() */
inline note_seen()
{
#ifdef LEARNS
	if
	:: p == 0 -> seen[t] = b + 1
	:: else
	fi
#else
	skip
#endif
}

/* The ticket of flight f, if its item may be run. */
inline take_from(f)
{
	d_step { s = ticket_step[f]; t = ticket_tile[f]; b = s / PASSES; p = s % PASSES };
	if
	:: b < submitted && HAS_TILES(t) && AFTER(b, p) && SEEN(b, p, t) ->
		if
#ifdef BREAK_NO_CAS
		:: true -> d_step { ticket_step[f] = s; ticket_tile[f] = t + 1; taken = true }
#else
		:: d_step { ticket_step[f] == s && ticket_tile[f] == t -> ticket_tile[f]++; taken = true }
		:: else /* another worker was faster */
#endif
		fi
	:: else
	fi
}

/* work(): the oldest batch first */
proctype worker()
{
	byte b, p, s, t, i, n, f;
	bool taken;

	do
	:: finished == BATCHES -> break
	:: MAY_TAKE(0) || MAY_TAKE(1) ->
		f = finished % FLIGHTS;
		take_from(f);
		if
		:: taken
		:: else -> f = (f + 1) % FLIGHTS; take_from(f)
		fi;
		if
		:: taken ->
#ifdef BREAK_COUNT_EARLY
			n = b;
			s = n;
			arrive();
			b = s;
			run_item();
			note_seen()
#else
			run_item();
			note_seen();
			arrive()
#endif
		:: else
		fi;
		skip; /* where `break` leads */
		d_step { b = 0; p = 0; s = 0; t = 0; n = 0; f = 0; taken = false }
	od
}
