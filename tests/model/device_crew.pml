/* device_crew.pml - what groups of a kernel that never ends do with a block of a ring: crews, notes, the
 * last group (src/stage/rings/device_ring.cl). What source, device and host do with the ring itself is in
 * device_ring.pml; here the source waits, and data is one word.
 *
 * Crew c has blocks c, c + CREWS, ...; SHARE groups of it do a part each. Stores of a group reach the
 * others and the host in any order, unless there was a fence. The last block says more bytes than a
 * buffer has. The source vanishes after any block; the host says stop at any moment.
 *
 * invariant PROVEN:    a group works on data of its own turn alone, and the record says what the
 *                      first group of the crew saw
 * invariant WHOLE:     the answer that the host reads is made of the parts of all groups, of that
 *                      block
 * invariant EXCLUSIVE: parts and answer of a buffer are written when nobody needs those before
 * invariant ONCE:      what was published when the host ends it has one record, and nothing has two
 * invariant WOKEN:     all groups end after stop, and the host waits for nothing that never comes
 *                      (end state)
 *
 * config: -DCREWS=1 -DSHARE=3 -DBUFFERS=2 -DBLOCKS=3
 * config: -DCREWS=2 -DSHARE=2 -DBUFFERS=2 -DBLOCKS=4
 * config: -DCREWS=2 -DSHARE=2 -DBUFFERS=1 -DBLOCKS=4
 * break NO_NOTE: PROVEN              others of a crew do not wait for the note of the first
 * break NO_NOTE_FENCE: PROVEN/ONCE/WOKEN  the note's turn comes before what is to be said of it
 * break OUTCOME_FIRST: PROVEN/ONCE/WOKEN  others read what is to be said before the turn
 * break NO_PART_FENCE: WHOLE         a group counts itself, and what it has written comes later
 * break EARLY: WHOLE                 the answer is put together when one is not through yet
 * break NO_FENCE: WHOLE              nothing between the answer and its record
 * break RECORD_FIRST: WHOLE/EXCLUSIVE  the record before the answer is put together
 * break ONE_SCRATCH: EXCLUSIVE       parts are a crew's, not a buffer's: others are at the next block
 *                                    while the last one puts the answer together
 * break RESET_LATE: ONCE/WOKEN       the count is taken back after the record
 * break NO_LAST_LOOK: ONCE           a crew leaves at stop without looking once more
 * break MUTE: WOKEN                  the first group does not tell the others that there is no more
 * break NO_OTHER_LOOK: ONCE          others leave when the crew has ended, though there is a note for
 *                                    them yet
 * break END_BY_NOTE: ONCE/WOKEN      the end is said by a note: the first group may be a whole ring
 *                                    ahead of another, and this one has not read what was there */
#define GROUPS (CREWS * SHARE)
#define B(k) ((k) % BUFFERS)
#define TURN(k) ((k) + 1)
#if defined(BREAK_ONE_SCRATCH) && BUFFERS >= CREWS /* with fewer there is one scratch anyway */
#define S(k) ((k) % CREWS)
#else
#define S(k) B(k)
#endif
#define PART(k, i) (S(k) * SHARE + (i))
#define NONE 0
#define GOOD 1
#define WRONG 2
#define SEEN_IN(k) ((k) == BLOCKS - 1 -> WRONG : GOOD) /* sl_device_ring_judge */

bool PROVEN = true, WHOLE = true, EXCLUSIVE = true, ONCE = true; /* errors name them */

byte enable[BUFFERS], meta[BUFFERS], record[BUFFERS]; /* turns */
byte outcome[BUFFERS]; /* of the record */
byte note[BUFFERS], said[BUFFERS]; /* the note's turn, and what is to be said */
byte passed[BUFFERS];
bool ended[CREWS];
byte data[BUFFERS], part[BUFFERS * SHARE], result[BUFFERS]; /* whose, k + 1 */
byte published, left; /* left: groups that have ended */
bool stop, over;
/* Stores under way: what is to be said + 1; parts; results; a count that is taken back. */
byte said_flies[BUFFERS], part_flies[BUFFERS * SHARE], result_flies[BUFFERS];
bool reset_flies[BUFFERS];

/* The truth. */
byte needs[BUFFERS]; /* k + 1: parts of it were written, and are not read yet */
byte holds[BUFFERS]; /* k + 1 of a record that the host is not through with */
byte records[BLOCKS + 1];

init {
	byte b, i;

	d_step {
		do
		:: b < BUFFERS -> enable[b] = TURN(b); b++
		:: else -> break
		od;
		b = 0
	}
	atomic {
		do
		:: b < CREWS ->
			i = 0;
			do
			:: i < SHARE -> run group(b, i); i++
			:: else -> break
			od;
			b++
		:: else -> break
		od;
		b = 0; i = 0;
		do
		:: b < BUFFERS -> run memory(b); b++
		:: else -> break
		od;
		b = 0;
		run source(); run host()
	}
}

proctype source()
{
	byte k;

	do
	:: over || k == BLOCKS -> break
	:: k < BLOCKS && enable[B(k)] == TURN(k) && !over ->
		data[B(k)] = k + 1;
		meta[B(k)] = TURN(k);
		published = k + 1;
		k++;
		if
		:: skip
		:: break /* it vanishes */
		fi
	od
}

/* ---- the device ---- */

inline land_part(at)
{
	d_step { part_flies[at] -> part[at] = part_flies[at]; part_flies[at] = 0 }
}

/* Stores to a buffer's words arrive. */
proctype memory(byte b)
{
end:	do
	:: d_step { said_flies[b] -> said[b] = said_flies[b] - 1; said_flies[b] = 0 }
	:: d_step { reset_flies[b] -> passed[b] = 0; reset_flies[b] = false }
	:: d_step {
		result_flies[b] ->
		assert(!EXCLUSIVE || !holds[b] || holds[b] == result_flies[b]);
		result[b] = result_flies[b]; result_flies[b] = 0
	}
	:: part_flies[b * SHARE] -> land_part(b * SHARE)
	:: part_flies[b * SHARE + 1] -> land_part(b * SHARE + 1)
#if SHARE > 2
	:: part_flies[b * SHARE + 2] -> land_part(b * SHARE + 2)
#endif
	od
}

#ifdef BREAK_NO_NOTE_FENCE
#define NOTE_FENCE true
#else
#define NOTE_FENCE (!said_flies[B(k)])
#endif
#ifdef BREAK_NO_PART_FENCE
#define PART_FENCE true
#else
#define PART_FENCE (!part_flies[PART(k, i)])
#endif
#ifdef BREAK_NO_FENCE
#define FENCE true
#else
#define FENCE (!result_flies[B(k)] && !reset_flies[B(k)])
#endif
#ifdef BREAK_EARLY
#define IS_LAST (seen == SHARE - 2)
#else
#define IS_LAST (seen == SHARE - 1)
#endif
#define IS_THERE (meta[B(k)] == TURN(k) && enable[B(k)] == TURN(k))
#ifdef BREAK_NO_LAST_LOOK
#define LAST_LOOK false
#else
#define LAST_LOOK IS_THERE
#endif

#ifdef BREAK_MUTE
#define TELL_END skip
#else
#define TELL_END ended[k % CREWS] = true
#endif
#define IS_TOLD (note[B(k)] == TURN(k))
#ifdef BREAK_NO_OTHER_LOOK
#define OTHER_LOOK false
#else
#define OTHER_LOOK IS_TOLD
#endif

/* look_for_block, and the first group's side of await_block. A look at stop and the last look at the
 * word are one step, as in device_ring.pml. */
inline look_and_tell()
{
	if
	:: IS_THERE -> how = SEEN_IN(k)
	:: stop && !LAST_LOOK -> how = NONE
	fi;
	if
#ifndef BREAK_END_BY_NOTE
	:: how == NONE -> TELL_END
#endif
	:: else ->
		said_flies[B(k)] = how + 1;
		NOTE_FENCE;
		note[B(k)] = TURN(k)
	fi
}

/* await_block, the other groups. Here, too, a look at the crew's end comes before the last look. */
inline be_told()
{
#ifdef BREAK_NO_NOTE
	how = GOOD;
#else
#ifdef BREAK_OUTCOME_FIRST
	how = said[B(k)];
#endif
	if
#ifdef BREAK_OUTCOME_FIRST
	:: IS_TOLD
#else
	:: IS_TOLD -> how = said[B(k)]
#endif
	:: ended[k % CREWS] && !OTHER_LOOK -> how = NONE
	fi
#endif
}

/* do_event, of all events that are this group's */
inline do_part()
{
	assert(!PROVEN || data[B(k)] == k + 1);
	d_step {
		assert(!EXCLUSIVE || !part_flies[PART(k, i)]);
		assert(!EXCLUSIVE || !needs[S(k)] || needs[S(k)] == k + 1);
		needs[S(k)] = k + 1;
		part_flies[PART(k, i)] = k + 1
	}
}

/* list_rings, count_events, copy_out. What a group itself has written it sees at once. */
inline put_together()
{
	do
	:: d_step { at < SHARE -> assert(!WHOLE || at == i || part[PART(k, at)] == k + 1); at++ }
	:: at == SHARE -> break
	od;
	at = 0;
	d_step {
		needs[S(k)] = 0;
		assert(!EXCLUSIVE || (!result_flies[B(k)] && !holds[B(k)]));
		result_flies[B(k)] = k + 1
	}
}

/* sl_chunk_store(record + b, ...) */
inline answer()
{
	d_step {
		assert(!PROVEN || how == SEEN_IN(k));
		assert(!EXCLUSIVE || !holds[B(k)]);
		records[k]++;
		assert(!ONCE || records[k] == 1);
		holds[B(k)] = k + 1;
		record[B(k)] = TURN(k); outcome[B(k)] = how
	}
}

/* work, of the group that is through last */
inline finish()
{
#ifdef BREAK_RECORD_FIRST
	answer();
#endif
	if
	:: how == GOOD -> put_together()
	:: else
	fi;
#ifndef BREAK_RESET_LATE
	reset_flies[B(k)] = true;
#endif
	FENCE;
#ifndef BREAK_RECORD_FIRST
	answer();
#endif
#ifdef BREAK_RESET_LATE
	reset_flies[B(k)] = true
#endif
}

/* Group i of the crew that begins with block k. */
proctype group(byte k, i)
{
	byte how, seen, at;

	do
	:: true ->
		if
		:: i == 0 -> look_and_tell()
		:: else -> be_told()
		fi;
		if
		:: how == NONE -> break
		:: how == GOOD -> do_part()
		:: else
		fi;
		PART_FENCE;
		d_step { seen = passed[B(k)]; passed[B(k)]++ } /* is_last */
		if
		:: IS_LAST -> finish()
		:: else
		fi;
		d_step { how = NONE; seen = 0; k = k + CREWS }
	od;
	left++
}

/* ---- the host ---- */

#define HAS_RECORD (next < BLOCKS && record[B(next)] == TURN(next))

/* sl_device_ring_take, sl_poll_take */
inline take()
{
	assert(!WHOLE || outcome[B(next)] != GOOD || result[B(next)] == next + 1);
	holds[B(next)] = 0
}

proctype host()
{
	byte next, due;

	do
	:: HAS_RECORD ->
		take();
		enable[B(next)] = TURN(next + BUFFERS);
		next++
	:: true -> break
	od;
	/* sl_device_ring_end */
	due = published;
	stop = true;
	left == GROUPS;
	do
	:: HAS_RECORD -> take(); next++
	:: else -> break
	od;
	assert(!ONCE || next >= due);
	over = true
}
