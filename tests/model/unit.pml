/* unit.pml - the cpu unit: workers take the items (tiles, then frames) of a pass over a batch, the
 * last one opens the next pass or concludes the batch, and only then come those of the next
 * (src/unit/cpu/cpu.c).
 *
 * invariant EXCLUSIVE: a batch is given back, and its slots released, when no worker reads it
 * invariant ONCE:      every item of every pass over every batch is run once
 * invariant ORDERED:   batches are worked on one at a time, one pass at a time, in order
 *
 * config: -DBATCHES=3 -DPASSES=1 -DTILES=2
 * config: -DBATCHES=2 -DPASSES=1 -DTILES=3
 * config: -DBATCHES=2 -DPASSES=2 -DTILES=2
 * break NO_CAS: ONCE/ORDERED     the ticket is read and then written
 * break COUNT_EARLY: EXCLUSIVE/ORDERED a tile counts before it has been run
 * break REUSE: EXCLUSIVE        submit does not ask whether the place is free
 * break NO_LIMIT: ORDERED       take does not stop at the last item of a pass
 * break TICKET_FIRST: ORDERED   tiles of the next batch may go before this one is finished */
#define WORKERS 2
#define QUEUE 2
bool EXCLUSIVE = true, ONCE = true, ORDERED = true; /* so that an error names the invariant */

byte submitted, reaped, finished; /* free-running */
typedef place { byte number = 255 };
place batch[QUEUE];
byte ticket_step, ticket_tile; /* one word in the code; step: batch * PASSES + pass */
byte tiles_done;

/* The truth. */
bool ran[BATCHES * PASSES * TILES];
byte inside[QUEUE]; /* workers that read this batch */

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

/* submit and reap */
active proctype dispatcher()
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
	tiles_done = 0;
	d_step { ticket_step = s + 1; ticket_tile = 0 } /* last: take() */
}

/* The last item of a pass. */
inline conclude()
{
#ifdef BREAK_TICKET_FIRST
	open_step();
#endif
	if
	:: s % PASSES == PASSES - 1 -> finished++ /* reap() */
	:: else
	fi;
#ifndef BREAK_TICKET_FIRST
	open_step()
#endif
}

inline run_tile()
{
	d_step {
		assert(!ORDERED || (b == finished && batch[b % QUEUE].number == b));
		for (i : 0 .. s * TILES - 1) {
			assert(!ORDERED || ran[i]) /* all passes before */
		}
		i = 0;
		inside[b % QUEUE]++
	}
	d_step {
		assert(!ONCE || !ran[s * TILES + t]);
		ran[s * TILES + t] = true;
		inside[b % QUEUE]--
	}
}

/* work() */
active [WORKERS] proctype worker()
{
	byte b, s, t, i, done;

	do
	:: finished == BATCHES -> break
	:: ticket_step / PASSES != submitted && HAS_TILES(ticket_tile) -> /* take: worth a look */
		d_step { s = ticket_step; b = s / PASSES; t = ticket_tile };
		if
		:: b == submitted || !HAS_TILES(t) -> skip
		:: else ->
			if
#ifdef BREAK_NO_CAS
			:: true -> d_step { ticket_step = s; ticket_tile = t + 1 }
#else
			:: d_step { ticket_step == s && ticket_tile == t -> ticket_tile++ }
			:: else -> goto again /* another worker was faster */
#endif
			fi;
#ifdef BREAK_COUNT_EARLY
			d_step { tiles_done++; done = tiles_done };
			if
			:: done == TILES -> conclude()
			:: else
			fi;
			run_tile();
#else
			run_tile();
			d_step { tiles_done++; done = tiles_done };
			if
			:: done == TILES -> conclude()
			:: else
			fi;
#endif
		fi;
again:		skip;
		d_step { b = 0; s = 0; t = 0; done = 0 }
	od
}
