/* share.pml - a share on one host: one writer that never waits, a follower that looks, copies and
 * looks again (sl_share_claim, sl_share_done, sl_share_cancel, sl_share_look, sl_share_whole of
 * src/share/layout.c; take, copy, choose and at_the_end of src/share/follow.c; sl_share_resize of
 * src/share/writer.c). Sleeping and waking is share_wake.pml's.
 *
 * Memory is weak here, unlike in the other models. A store of the writer waits in a buffer, and any
 * store that waits may become visible next; a fence, or the release before a store, waits until
 * the buffer is empty. Loads of the follower happen in any order that fence and acquire leave.
 * An element is two words, each of which is n + 1. Its place has `done` and `claim`. The resized
 * share keeps its data in the same memory, as an application may that brings its own.
 *
 * A follower takes the newest element or the next one, as it likes, by copy or as a view. It also
 * asks for elements by numbers that it has guessed: for WHOLE the two looks must be enough.
 *
 * invariant WHOLE:     what a follower gets of an element is of that element, all of it
 * invariant OVERTAKEN: a copy is thrown away only if the writer has taken the element's place
 * invariant COUNTED:   n rises; delivered and missed elements are all that were published between
 *                      the first and the last one, and the last one is delivered
 *
 * config: -DPLACES=1 -DELEMENTS=4
 * config: -DPLACES=2 -DELEMENTS=5
 * config: -DPLACES=3 -DELEMENTS=5
 * config: -DPLACES=1 -DELEMENTS=3 -DRESIZE=2
 * config: -DPLACES=2 -DELEMENTS=4 -DRESIZE=2
 * break NO_FIRST_LOOK: WHOLE        the follower does not look at `done` before it copies
 * break NO_SECOND_LOOK: WHOLE       nor at `claim` behind the copy
 * break NO_VALID: WHOLE             a view counts without sl_follow_is_valid()
 * break CLAIM_LATE: WHOLE           the writer claims the place after it has written data
 * break NO_CLAIM_FENCE: WHOLE       data may be visible before `claim` is
 * break NO_LOOK_FENCE: WHOLE        the follower may load `claim` before data
 * break NO_RELEASE: WHOLE           `done` may be visible before data are
 * break NO_ACQUIRE: WHOLE           the follower may load data before `done`
 * break PUBLISHED_FIRST: OVERTAKEN  `published` is stored before `done`
 * break PUBLISHED_EARLY: OVERTAKEN  `published` may be visible before `done` is
 * break NO_CANCEL: WHOLE            a resize in the same memory leaves old elements as they are
 * break STATE_LATE: COUNTED         the follower reads `state` after `published`
 * break STATE_EARLY: COUNTED        the end may be visible before the last `published` is
 * break NO_NEXT: COUNTED            the follower does not remember what it has had */
#ifndef RESIZE
#define RESIZE 255
#endif
#define LIVE 0
#define MOVED 1
#define ENDED 2
#define S(n) ((n) % PLACES)
bool WHOLE = true, OVERTAKEN = true, COUNTED = true; /* so that an error names the invariant */

/* Words in memory: those of each generation, and the data. */
#define CLAIM(g, n) ((g) * 2 * PLACES + S(n))
#define DONE(g, n) ((g) * 2 * PLACES + PLACES + S(n))
#define A(n) (4 * PLACES + S(n))
#define B(n) (5 * PLACES + S(n))
#define PUBLISHED(g) (6 * PLACES + (g))
#define STATE(g) (6 * PLACES + 2 + (g))
#define WORDS (6 * PLACES + 4)
byte memory[WORDS];
byte first[2], current; /* of each generation; which one the share's thread hands out */

/* The writer's stores that are not visible yet; at most one of each word. */
bool waits[WORDS];
byte stored[WORDS], waiting;

bool taken[ELEMENTS]; /* the truth: the writer has begun to use this element's place again */

active [WORDS] proctype buffer()
{
	byte me = _pid;

end:	do
	:: d_step {
		waits[me] ->
		memory[me] = stored[me];
		waits[me] = false;
		stored[me] = 0;
		waiting--
	   }
	od
}

#define STORE(word, value) \
	atomic { !waits[word] -> waits[word] = true; stored[word] = value; waiting++ }
#define FENCE (waiting == 0)

inline write_data()
{
	STORE(A(n), n + 1);
	STORE(B(n), n + 1)
}

inline store_claim()
{
	STORE(CLAIM(g, n), n + 1)
}

inline write()
{
	d_step {
		if
		:: n >= PLACES -> taken[n - PLACES] = true
		:: else
		fi
	}
#ifdef BREAK_CLAIM_LATE
	write_data();
	FENCE;
	store_claim();
#else
	store_claim(); /* sl_share_claim() */
#ifndef BREAK_NO_CLAIM_FENCE
	FENCE;
#endif
	write_data();
#endif
#ifdef BREAK_PUBLISHED_FIRST
	FENCE;
	STORE(PUBLISHED(g), n + 1);
#endif
#ifndef BREAK_NO_RELEASE
	FENCE;
#endif
	STORE(DONE(g, n), n + 1); /* sl_share_done() */
#ifndef BREAK_PUBLISHED_FIRST
#ifndef BREAK_PUBLISHED_EARLY
	FENCE;
#endif
	STORE(PUBLISHED(g), n + 1);
#endif
	n++
}

/* sl_share_resize(): memory of the new generation is made before any follower can get it. */
inline resize()
{
	d_step {
		memory[PUBLISHED(1)] = n;
		first[1] = n;
		current = 1
	}
#ifndef BREAK_NO_CANCEL
	d_step { /* no element of the old generation can be got from now on */
		i = 0;
		do
		:: i < n -> taken[i] = true; i++
		:: else -> break
		od;
		i = 0
	}
	STORE(CLAIM(0, 0), 255);
#if PLACES > 1
	STORE(CLAIM(0, 1), 255);
#endif
#endif
	FENCE;
	STORE(STATE(0), MOVED);
	g = 1
}

active proctype writer()
{
	byte n, g, i;

	do
	:: n == RESIZE && g == 0 -> resize()
	:: n < ELEMENTS && !(n == RESIZE && g == 0) -> write()
	:: n == ELEMENTS -> break
	od;
#ifndef BREAK_STATE_EARLY
	FENCE;
#endif
	STORE(STATE(g), ENDED) /* sl_share_close() */
}

#ifdef BREAK_NO_FIRST_LOOK
#define THERE had_done
#else
#define THERE (had_done && done == n + 1)
#endif
#ifdef BREAK_NO_ACQUIRE
#define MAY_COPY (!had_done || THERE)
#else
#define MAY_COPY THERE
#endif
#ifdef BREAK_NO_LOOK_FENCE
#define MAY_LOOK_AGAIN THERE
#else
#define MAY_LOOK_AGAIN (THERE && had_a && had_b)
#endif
#ifdef BREAK_NO_SECOND_LOOK
#define IS_STILL true
#else
#define IS_STILL (claim == n + 1)
#endif

/* Loads of what is asked for, each at most once, in any order that is allowed. */
inline look_copy_look()
{
	d_step { had_done = false; had_claim = false; had_a = false; had_b = false; good = false }
	do
	:: !had_done -> done = memory[DONE(g, n)]; had_done = true
	:: MAY_COPY && !had_a -> a = memory[A(n)]; had_a = true
	:: MAY_COPY && !had_b -> b = memory[B(n)]; had_b = true
	:: MAY_LOOK_AGAIN && !had_claim -> claim = memory[CLAIM(g, n)]; had_claim = true
	:: had_done && !THERE -> break
	:: THERE && had_a && had_b && had_claim -> good = IS_STILL; break
	od
}

inline deliver()
{
	d_step {
		assert(!COUNTED || n >= after);
		missed = missed + (had -> n - after : 0);
		start = (had -> start : n);
		had = true;
		got++;
		after = n + 1;
#ifndef BREAK_NO_NEXT
		next = n + 1
#endif
	}
}

/* take() of sl_follow_next() */
inline take_copy()
{
	look_copy_look();
	if
	:: good ->
		assert(!WHOLE || (a == n + 1 && b == n + 1));
		deliver()
	:: else ->
		assert(!OVERTAKEN || taken[n]);
		next = n + 1
	fi
}

/* sl_follow_peek(); then the application reads a word as it likes, and asks sl_follow_is_valid(). */
inline take_view()
{
	look_copy_look();
	if
	:: good ->
		assert(!WHOLE || (a == n + 1 && b == n + 1));
		deliver();
		d_step { had_b = false; had_claim = false };
		do
		:: !had_b -> b = memory[B(n)]; had_b = true
		:: (MAY_LOOK_AGAIN || had_b) && !had_claim ->
			claim = memory[CLAIM(g, n)];
			had_claim = true
		:: had_b && had_claim -> break
		od;
#ifdef BREAK_NO_VALID
		assert(!WHOLE || b == n + 1)
#else
		assert(!WHOLE || claim != n + 1 || b == n + 1)
#endif
	:: else ->
		assert(!OVERTAKEN || taken[n]);
		next = n + 1
	fi
}

/* sl_follow_is_valid() of any number, around a look at its place. */
inline guess()
{
	n = next;
	look_copy_look();
	assert(!WHOLE || !good || (a == n + 1 && b == n + 1))
}

/* choose() of SL_FOLLOW_EVERY */
inline choose_next()
{
	d_step {
		if
		:: p - next >= PLACES ->
			next = p - PLACES + (PLACES > 1 -> (PLACES + 3) / 4 : 0)
		:: else
		fi;
		if
		:: next >= p -> next = p - 1
		:: else
		fi;
		n = next
	}
}

active proctype follower()
{
	byte g, p, state, next, n, a, b, done, claim;
	byte start, after, got, missed; /* what it was told */
	bool had, good, had_a, had_b, had_done, had_claim;

	d_step { /* sl_follow_open() */
		g = current;
		p = memory[PUBLISHED(g)];
		next = (p > first[g] -> p - 1 : first[g])
	}
	do
	:: true -> /* wait_for() */
#ifdef BREAK_STATE_LATE
		p = memory[PUBLISHED(g)];
		state = memory[STATE(g)];
#else
		state = memory[STATE(g)];
		p = memory[PUBLISHED(g)];
#endif
		if
		:: p > next && p > first[g] ->
			if
			:: choose_next()
			:: n = p - 1 /* SL_FOLLOW_NEWEST */
			fi;
			if
			:: take_copy()
			:: take_view()
			fi
		:: next < ELEMENTS -> guess()
		:: (p <= next || p <= first[g]) && state == MOVED ->
			d_step {
				g = current;
				next = (next < first[g] -> first[g] : next)
			}
		:: (p <= next || p <= first[g]) && state == ENDED -> break
		:: (p <= next || p <= first[g]) && state == LIVE ->
			(memory[PUBLISHED(g)] != p || memory[STATE(g)] != LIVE)
		fi;
		d_step { a = 0; b = 0; done = 0; claim = 0; n = 0 }
	od;
	assert(!COUNTED || (after == ELEMENTS && got + missed == ELEMENTS - start))
}
