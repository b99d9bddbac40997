/* share_wake.pml - how followers of a share sleep, and how a writer wakes them that makes a system
 * call at most every 50 us, and none where no follower has said that it sleeps (wake_sleepers and
 * end_generation of src/share/writer.c, set_sleeps of src/share/serve.c, wait_for and sleep_on of
 * src/share/follow.c).
 *
 * Time is a number that may rise between any two steps; a thread may be held up at any of them.
 * WAKE stands for 50 us, RECENT for the millisecond in which a follower sleeps only for as long as
 * that. Such a short sleep may end at any moment. A long one ends in the code after 100 ms; here it
 * has no end, so that no wake-up that was lost is hidden. The writer falls silent or ends after
 * any element. Its store of `published` may stay invisible until time passes.
 *
 * invariant WOKEN: no wake-up is lost: no follower sleeps long while there is something that it has
 *                  not had, or after the end (end state)
 *
 * config: -DCOMMITS=2 -DTIME=5
 * config: -DCOMMITS=1 -DTIME=4 -DOTHER
 * config: -DCOMMITS=2 -DTIME=3 -DAWAKENS
 * break NO_RECENT: WOKEN       a follower sleeps long also right after a commit
 * break RECENT_SHORT: WOKEN    it does so once it may have missed a wake that was left out
 * break CLOCK_LATE: WOKEN      it reads the clock after its last look at `published`
 * break NO_WAKE_SEEN: WOKEN    a wake that brought no element does not keep it from sleeping long
 * break NO_LAST_LOOK: WOKEN    it does not look again between the clock and its sleep
 * break READ_LATE: WOKEN       it reads the word `wake` after it has looked for an element
 * break NO_COMPARE: WOKEN      the kernel does not compare that word before it sleeps
 * break NO_THREAD_WAKE: WOKEN  the share's thread counts it as asleep, and does not wake it
 * break STILL_SAID: WOKEN      it does not say again that it sleeps, after it has said that it is awake
 * break WAKE_FIRST: WOKEN      the writer wakes, then publishes
 * break NO_END_WAKE: WOKEN     the end wakes no follower */
#define WAKE 1
#ifdef BREAK_RECENT_SHORT
#define RECENT 1
#else
#define RECENT 3
#endif
#define START 3
#define LAST (START + TIME)

byte now = START;
byte published, wake; /* struct sl_share_words */
bool ended;
bool store_waits; /* the writer's store of `published` */
byte stored;
byte sleepers;
byte woken_at;
bool was_woken;
chan socket = [2] of {bit}; /* SL_SHARE_FRAME_SLEEPS */
bool asleep; /* the kernel's: in a sleep without an end */
bool silent; /* the truth: nothing more comes */

inline futex_wake()
{
	asleep = false
}

active proctype clock()
{
	do
	:: now < LAST && !store_waits -> now++
	:: now == LAST -> break
	od
}

active proctype buffer()
{
end:	do
	:: d_step { store_waits -> published = stored; store_waits = false; stored = 0 }
	od
}

inline publish()
{
	atomic { !store_waits -> store_waits = true; stored = n }
}

/* wake_sleepers() */
inline wake_sleepers()
{
	if
	:: sleepers == 0
	:: sleepers > 0 ->
		t = now;
		if
		:: was_woken && t < woken_at + WAKE
		:: !was_woken || t >= woken_at + WAKE ->
			d_step { woken_at = t; was_woken = true };
			d_step { !store_waits -> wake++ }; /* release: what was published is visible */
			futex_wake()
		fi;
		t = 0
	fi
}

active proctype writer()
{
	byte n, t;

	do
	:: n < COMMITS ->
		n++;
#ifdef BREAK_WAKE_FIRST
		wake_sleepers();
		publish()
#else
		publish();
		wake_sleepers()
#endif
	:: silent = true; break
	:: true -> /* end_generation() */
		d_step { !store_waits -> ended = true };
#ifndef BREAK_NO_END_WAKE
		wake++;
		futex_wake();
#endif
		silent = true;
		break
	od
}

/* The share's thread. */
active proctype server()
{
end:	do
	:: socket?0 -> sleepers--
	:: socket?1 ->
		sleepers++;
#ifndef BREAK_NO_THREAD_WAKE
		wake++;
		futex_wake()
#endif
	od
}

#ifdef OTHER
active proctype other_follower()
{
	socket!1 /* its sleeping brings a wake for all */
}
#endif

inline read_wake()
{
	word = wake;
	if
	:: word != word_seen ->
		word_seen = word;
#ifndef BREAK_NO_WAKE_SEEN
		changed_at = now
#endif
	:: word == word_seen
	fi
}

inline read_published()
{
	p = published;
	if
	:: p != p_seen -> p_seen = p; changed_at = now
	:: p == p_seen
	fi
}

/* All is had, or the end was seen: it sleeps rightly. */
#define REST (silent && !store_waits && next == published && !ended)

#ifdef BREAK_NO_RECENT
#define SLEEPS_LONG true
#else
#define SLEEPS_LONG (at >= changed_at + RECENT)
#endif

active proctype follower()
{
	byte word, word_seen, p, p_seen, changed_at, next, at;
	bool said, unsaid, end_seen;

	do
	:: true ->
#ifndef BREAK_READ_LATE
		read_wake();
#endif
		end_seen = ended;
		read_published();
		if
		:: p > next ->
			next = p;
#ifdef AWAKENS
			if
			:: said && !unsaid -> /* it has not slept for long: say_that_it_is_awake() */
				unsaid = true;
				socket!0;
#ifndef BREAK_STILL_SAID
				said = false
#endif
			:: true
			fi
#endif
		:: p <= next && end_seen -> break
		:: p <= next && !end_seen ->
#ifdef BREAK_READ_LATE
			read_wake();
#endif
			if
			:: !said -> socket!1; said = true
			:: said
			fi;
#ifdef BREAK_CLOCK_LATE
			read_published();
			at = now;
#elif defined(BREAK_NO_LAST_LOOK)
			at = now;
#else
			at = now;
			read_published();
#endif
			if
			:: p > next
			:: p <= next && !SLEEPS_LONG /* a short sleep, which may be over at once */
			:: p <= next && SLEEPS_LONG ->
#ifdef BREAK_NO_COMPARE
				asleep = true;
#else
				d_step { asleep = (wake == word) }; /* FUTEX_WAIT compares */
#endif
				if
				:: !asleep
				:: REST -> break
				fi
			fi
		fi;
		d_step { at = 0; p = 0; word = 0 }
	:: REST -> break
	od
}
