/* device_ring.pml - a ring of buffers that a device polls: source, copies, two groups of a kernel that
 * never ends, host (src/gpu/ring, src/gpu/ring/ring.clh, src/gpu/ring/weigh.cl).
 *
 * Events have two words of data. Turns wrap within a search. A group's stores to results reach the
 * host in any order, also after the record, unless there was a fence. The source vanishes anywhere,
 * half way through an event, too; the host says stop at any moment.
 *
 * PLAIN: data, then the word. COPY: the same, by a queue of copies. TAGGED: each word has its turn.
 * ROGUE: a source that does not wait. For it there are two guards: ASK, the device begins with an
 * event when its buffer was enabled for it; BEGIN, the source takes the old word back before it
 * writes data (plain buffers).
 *
 * invariant PROVEN:    a record says good only of data of its own turn, and the result that the
 *                      host reads with it is of that event
 * invariant EXCLUSIVE: results and records are written when those before have come, and the host is
 *                      through with them
 * invariant ONCE:      what was published when the host ends it has one record, and nothing has two
 * invariant GRANTED:   a source that waits for its buffer is never lapped
 * invariant WOKEN:     the device ends after stop, and the host waits for nothing that never comes
 *                      (end state)
 *
 * config: -DPLAIN -DEVENTS=4
 * config: -DPLAIN -DCOPY -DEVENTS=4
 * config: -DTAGGED -DEVENTS=3
 * config: -DPLAIN -DROGUE -DASK -DBEGIN -DEVENTS=3
 * config: -DTAGGED -DROGUE -DASK -DEVENTS=3
 * break NO_CREDIT: GRANTED         the source does not look at the enable word
 * break META_FIRST: PROVEN         the word before the data
 * break NO_FENCE: PROVEN           plain: nothing between results and record
 * break NO_SECOND_LOOK: PROVEN     plain: the word is not looked at again after the work
 * break NO_TURNS: PROVEN           tagged: turns of data are not compared
 * break RESULT_AT_ONCE: PROVEN     tagged: the host does not wait for the result's own turns
 * break ENABLE_FIRST: EXCLUSIVE    the buffer is enabled before its result was read
 * break UNREAD: EXCLUSIVE          tagged: it is released before all of its result has come
 * break NO_LAST_LOOK: ONCE         a group leaves at stop without looking once more
 * break NO_FINISH: ONCE            end() does not wait for copies that are queued
 * break DEAF: WOKEN                a group that waits does not look at stop
 * break NO_BEGIN: PROVEN           plain: a source that does not wait has written data, and not yet
 *                                  the word that the device looks at again
 * break NO_ASK: EXCLUSIVE          a lapped buffer's next event is answered before the host has
 *                                  taken the record and the result of the one before */
#ifdef BREAK_NO_CREDIT
#define ROGUE
#define ASK
#define BEGIN
#endif
#ifdef BREAK_NO_BEGIN
#define ROGUE
#define ASK
#undef BEGIN
#endif
#ifdef BREAK_NO_ASK
#define ROGUE
#define BEGIN
#undef ASK
#endif
#define BUFFERS 2
#define GROUPS 2
#define WORDS 2
#define B(k) ((k) % BUFFERS)
/* As if 13 events had been before; 16 in place of 2^32. */
#define TURN(k) (((k) + 14) & 15)
#define IS_DUE(seen, k) (((seen) - TURN(k) + 16 & 15) < 8)
#define AT(k, i) (B(k) * WORDS + (i))
#define GOOD 1
#define LAPPED 2

#if defined(ROGUE) && !defined(BREAK_NO_CREDIT)
#define HONEST false
#else
#define HONEST true
#endif
bool PROVEN = true, EXCLUSIVE = true, ONCE = true, GRANTED = HONEST; /* errors name them */

byte enable[BUFFERS], meta[BUFFERS]; /* turns */
byte data[BUFFERS * WORDS], data_turn[BUFFERS * WORDS]; /* whose, k + 1; tagged: the turn */
byte result[BUFFERS * WORDS], result_turn[BUFFERS * WORDS], flying[BUFFERS * WORDS];
byte record[BUFFERS], outcome[BUFFERS];
byte published, copied;
bool stop, over;
byte left; /* groups that have ended */
#ifdef COPY
chan queue = [BUFFERS] of { byte };
#endif

/* The truth. */
byte holds[BUFFERS]; /* k + 1 of a record that the host is not through with */
byte records[EVENTS];

/* sl_device_ring_open: clear() */
init {
	d_step {
		byte b = 0;
		do
		:: b < BUFFERS ->
			enable[b] = TURN(b);
			meta[b] = TURN(b + 16 - BUFFERS);
			record[b] = TURN(b + 16 - BUFFERS);
			data_turn[AT(b, 0)] = meta[b]; data_turn[AT(b, 1)] = meta[b];
			result_turn[AT(b, 0)] = meta[b]; result_turn[AT(b, 1)] = meta[b];
			b++
		:: else -> break
		od;
		b = 0
	}
	atomic {
#ifdef COPY
		run copies();
#endif
		run group(0); run group(1);
		run source(); run bus(); run host()
	}
}

/* ---- the source ---- */

#ifdef ROGUE
#define MAY_WRITE true
#else
#define MAY_WRITE (enable[B(k)] == TURN(k)) /* sl_device_ring_may_write */
#endif

#define VANISH if :: skip :: goto gone fi
#ifdef COPY
#define HALF_WAY skip /* a copy that is queued comes */
#else
#define HALF_WAY VANISH
#endif

inline write_word(i)
{
	d_step { data[AT(k, i)] = k + 1; data_turn[AT(k, i)] = TURN(k) }
}

/* put_plain, put_tagged, or a queue's copies; word by word. */
inline write_event()
{
#ifdef BREAK_META_FIRST
	meta[B(k)] = TURN(k);
#endif
#ifdef BEGIN
	meta[B(k)] = TURN(k + 8); /* not due, and no turn that anybody waits for */
#endif
	write_word(0);
	HALF_WAY;
	write_word(1);
	HALF_WAY;
#ifndef BREAK_META_FIRST
	meta[B(k)] = TURN(k)
#endif
}

proctype source()
{
	byte k;

	do
	:: over || k == EVENTS -> break
	:: k < EVENTS && MAY_WRITE && !over ->
#ifdef COPY
		queue ! k;
#else
		write_event();
#endif
		published = k + 1; /* sl_device_ring_publish */
		k++;
		VANISH
	od;
gone:	skip
}

#ifdef COPY
proctype copies()
{
	byte k;

end:	do
	:: queue ? k ->
		write_event();
		copied = k + 1;
		k = 0
	od
}
#endif

/* ---- the device ---- */

inline land(at)
{
	d_step {
		flying[at] ->
		assert(!EXCLUSIVE || !holds[(at) / WORDS] || holds[(at) / WORDS] == flying[at]);
		result[at] = flying[at]; result_turn[at] = TURN(flying[at] - 1); flying[at] = 0
	}
}

/* Stores arrive. */
proctype bus()
{
end:	do
	:: flying[0] -> land(0)
	:: flying[1] -> land(1)
	:: flying[2] -> land(2)
	:: flying[3] -> land(3)
	od
}

/* Another group may have had the buffer before: then nothing orders two stores to one place, and
 * the older one must have arrived. */
inline store_result(i)
{
	d_step {
		assert(!EXCLUSIVE || !flying[AT(k, i)]);
		flying[AT(k, i)] = k + 1
	}
}

#ifdef BREAK_NO_FENCE
#define FENCED true
#else
#define FENCED (!flying[AT(k, 0)] && !flying[AT(k, 1)])
#endif
#ifdef ASK
#define IS_MINE (enable[B(k)] == TURN(k))
#else
#define IS_MINE true
#endif
#ifdef BREAK_DEAF
#define STOP false
#else
#define STOP stop
#endif
#ifdef BREAK_NO_LAST_LOOK
#define LAST_LOOK(there) false
#else
#define LAST_LOOK(there) (there)
#endif
#ifdef BREAK_NO_TURNS
#define IS_OWN(turn) true
#else
#define IS_OWN(turn) ((turn) == TURN(k))
#endif

/* sl_words_store(record + b, ...) */
inline answer()
{
	d_step {
		assert(!PROVEN || how != GOOD || (got[0] == k + 1 && got[1] == k + 1));
		assert(!GRANTED || how == GOOD);
		assert(!EXCLUSIVE || !holds[B(k)]);
		records[k]++;
		assert(!ONCE || records[k] == 1);
		holds[B(k)] = k + 1;
		record[B(k)] = TURN(k); outcome[B(k)] = how
	}
}

#ifdef PLAIN
/* sl_device_ring_wait by the first thread, then weigh_plain. A look at stop comes before the last look at
 * the word: together that is one step here. */
inline await_event()
{
	if
	:: d_step { IS_DUE(meta[B(k)], k) && IS_MINE -> seen = meta[B(k)] }
	:: STOP && !LAST_LOOK(IS_DUE(meta[B(k)], k) && IS_MINE) -> gone = true
	fi
}

inline work()
{
	got[0] = data[AT(k, 0)];
	got[1] = data[AT(k, 1)];
	store_result(0);
	store_result(1);
	FENCED;
#ifdef BREAK_NO_SECOND_LOOK
	how = (seen != TURN(k) -> LAPPED : GOOD)
#else
	how = (seen != TURN(k) || meta[B(k)] != TURN(k) -> LAPPED : GOOD)
#endif
}
#else
/* weigh_tagged: each thread waits for its own chunk, the head among them, in any order. */
#define CHUNK(i) data_turn[AT(k, i)]
#define AWAIT(one, turn) !(read & one) && IS_DUE(turn, k) && IS_MINE -> read = read | one; \
	how = (IS_OWN(turn) -> how : LAPPED)
#define GIVE_UP(one, turn) !(read & one) && STOP && !LAST_LOOK(IS_DUE(turn, k) && IS_MINE) -> \
	read = read | one; gone = true

inline await_event()
{
	how = GOOD;
	do
	:: d_step { AWAIT(1, CHUNK(0)); got[0] = data[AT(k, 0)] }
	:: d_step { AWAIT(2, CHUNK(1)); got[1] = data[AT(k, 1)] }
	:: d_step { AWAIT(4, meta[B(k)]) }
	:: d_step { GIVE_UP(1, CHUNK(0)) }
	:: d_step { GIVE_UP(2, CHUNK(1)) }
	:: d_step { GIVE_UP(4, meta[B(k)]) }
	:: read == 7 -> break
	od
}

inline work()
{
	if
	:: how == GOOD -> store_result(0); store_result(1) /* no fence: they have their turns */
	:: else
	fi
}
#endif

proctype group(byte k)
{
	byte seen, how, read, got[WORDS];
	bool gone;

	do
	:: k < EVENTS ->
		await_event();
		if
		:: gone -> break
		:: else
		fi;
		work();
		answer();
		d_step { seen = 0; how = 0; read = 0; got[0] = 0; got[1] = 0; k = k + GROUPS }
	:: k >= EVENTS -> STOP -> break
	od;
	left++
}

/* ---- the host ---- */

#define HAS_RECORD (next < EVENTS && record[B(next)] == TURN(next))
#if defined(TAGGED) && !defined(BREAK_RESULT_AT_ONCE)
#define RESULT_IS_THERE(i) (result_turn[AT(next, i)] == TURN(next))
#else
#define RESULT_IS_THERE(i) true
#endif

/* sl_device_ring_take, sl_device_ring_result */
inline read_result(i)
{
	d_step { RESULT_IS_THERE(i) -> assert(!PROVEN || result[AT(next, i)] == next + 1) }
}

inline take()
{
	if
#ifndef BREAK_UNREAD
	:: outcome[B(next)] == GOOD -> read_result(0); read_result(1)
#endif
	:: else
	fi
}

inline release()
{
	d_step { holds[B(next)] = (holds[B(next)] == next + 1 -> 0 : holds[B(next)]) }
}

#define ENABLE enable[B(next)] = TURN(next + BUFFERS)

proctype host()
{
	byte next, due;

	do
	:: HAS_RECORD ->
#ifdef BREAK_ENABLE_FIRST
		ENABLE;
		take();
		release();
#else
		take();
		release();
		ENABLE;
#endif
		next++
	:: true -> break
	od;
	/* sl_device_ring_end */
	due = published;
#if defined(COPY) && !defined(BREAK_NO_FINISH)
	copied >= due;
#endif
	stop = true;
	left == GROUPS;
	do
	:: HAS_RECORD -> take(); release(); next++
	:: else -> break
	od;
	/* The ledger: what is left is unanswered. */
	assert(!ONCE || !HONEST || next >= due);
	over = true
}
