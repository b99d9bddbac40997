/* unit.pml - the cpu unit: workers take the tiles of a batch, the last one concludes it, and only
 * then come the tiles of the next (src/unit/cpu/cpu.c).
 *
 * invariant EXCLUSIVE: a batch is given back, and its slots released, when no worker reads it
 * invariant ONCE:      every tile of every batch is run once
 * invariant ORDERED:   batches are worked on one at a time, in order
 *
 * config: -DBATCHES=3 -DTILES=2
 * config: -DBATCHES=2 -DTILES=3
 * break NO_CAS: ONCE/ORDERED     the ticket is read and then written
 * break COUNT_EARLY: EXCLUSIVE/ORDERED a tile counts before it has been run
 * break REUSE: EXCLUSIVE        submit does not ask whether the place is free
 * break NO_LIMIT: ORDERED       take does not stop at the last tile of a batch
 * break TICKET_FIRST: ORDERED   conclude lets the next tiles go before it resets their count */
#define WORKERS 2
#define QUEUE 2
bool EXCLUSIVE = true, ONCE = true, ORDERED = true; /* so that an error names the invariant */

byte submitted, reaped, finished; /* free-running */
typedef place { byte number = 255 };
place batch[QUEUE];
byte ticket_batch, ticket_tile; /* one word in the code */
byte tiles_done;

/* The truth. */
bool ran[BATCHES * TILES];
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
		for (i : 0 .. TILES - 1) {
			assert(!ONCE || ran[reaped * TILES + i])
		}
		i = 0;
		reaped++
	   }
	:: reaped == BATCHES -> break
	od
}

inline conclude()
{
#ifdef BREAK_TICKET_FIRST
	d_step { ticket_batch = b + 1; ticket_tile = 0 };
	tiles_done = 0;
	finished++
#else
	tiles_done = 0;
	finished++; /* reap() */
	d_step { ticket_batch = b + 1; ticket_tile = 0 } /* last: take() */
#endif
}

inline run_tile()
{
	d_step {
		assert(!ORDERED || (b == finished && batch[b % QUEUE].number == b));
		inside[b % QUEUE]++
	}
	d_step {
		assert(!ONCE || !ran[b * TILES + t]);
		ran[b * TILES + t] = true;
		inside[b % QUEUE]--
	}
}

/* work() */
active [WORKERS] proctype worker()
{
	byte b, t, done;

	do
	:: finished == BATCHES -> break
	:: ticket_batch != submitted && HAS_TILES(ticket_tile) -> /* take: worth a look */
		d_step { b = ticket_batch; t = ticket_tile };
		if
		:: b == submitted || !HAS_TILES(t) -> skip
		:: else ->
			if
#ifdef BREAK_NO_CAS
			:: true -> d_step { ticket_batch = b; ticket_tile = t + 1 }
#else
			:: d_step { ticket_batch == b && ticket_tile == t -> ticket_tile++ }
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
		d_step { b = 0; t = 0; done = 0 }
	od
}
