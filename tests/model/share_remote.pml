/* share_remote.pml - a share and a follower on another host, which READs (sl_share_claim and
 * sl_share_done of src/share/layout.c; sl_share_slot_begin, sl_share_look_post, complete, judge and
 * looked of src/share/remote_read.c; take and at_the_end of src/share/remote_follow.c;
 * sl_share_resize of src/share/writer.c with sl_share_remote_settle of src/share/remote_open.c).
 *
 * The writer is that of share.pml, with its weak memory: any store that waits may become visible
 * next, and a fence waits until none waits. The responder is the share's thread or a NIC. A READ
 * that is posted is executed word by word, in any order, each word at any time until the READ
 * completes, and again after a packet was lost: the last answer counts. An element is a word of its
 * note (`done`) and two of data. A look reads the three words that change, in any order. Arrivals
 * are WRITEs of `published` by the share's thread, which may be lost.
 *
 * The resized share keeps its data in the same memory. The key of the generation before is given up
 * first: READs fail from then on, and the follower attaches again.
 *
 * invariant WHOLE:     what a follower gets of an element is of that element, all of it
 * invariant OVERTAKEN: a copy is thrown away only if the writer has taken the element's place
 * invariant COUNTED:   n rises, so that what was missed between two elements is known, and the last
 *                      element is delivered
 *
 * config: -DPLACES=1 -DELEMENTS=3
 * config: -DPLACES=2 -DELEMENTS=4
 * config: -DPLACES=1 -DELEMENTS=3 -DRESIZE=1
 * break NO_LOOK: WHOLE             what was READ counts without a look
 * break LOOK_WITH_DATA: WHOLE      the look is posted together with the READs of the data
 * break LOOK_UNDER_WAY: WHOLE      a look counts that was posted before the data had come
 * break READ_EARLY: WHOLE/OVERTAKEN  the READs are posted before the element is known to be published
 * break NO_PACKET_FENCE: WHOLE     the responder may load what a look brings before what the packets
 *                                  before it brought
 * break ONE_TOO_MANY: WHOLE        a copy counts whose place the writer has just claimed
 * break CLAIM_LATE: WHOLE          the writer claims the place after it has written data
 * break NO_CLAIM_FENCE: WHOLE      data may be visible before `claimed` is
 * break NO_RELEASE: WHOLE/OVERTAKEN  `published` may be visible before data are
 * break NO_SETTLE: WHOLE           the writer goes on in the same memory before the key is given up
 * break OLD_COMPLETION: WHOLE    completions of queue pairs that were closed count (a NIC may bring them
 *                                late; work_of() of src/share/remote_read.c tells them apart)
 * break DONE_LATE: OVERTAKEN       `published` may be visible before `done` is
 * break END_AT_ONCE: COUNTED       the look that sees the end is the last one
 * break STATE_EARLY: COUNTED       the end may be visible before the last `published` is
 * break NO_NEXT: COUNTED           the follower does not remember what it has had */
#ifndef RESIZE
#define RESIZE 255
#define GENERATIONS 1
#else
#define GENERATIONS 2
#endif
#define LIVE 0
#define ENDED 1
#define S(n) ((n) % PLACES)
bool WHOLE = true, OVERTAKEN = true, COUNTED = true; /* so that an error names the invariant */

/* Words in memory: the data, and those of each generation. */
#define A(n) (S(n))
#define B(n) (PLACES + S(n))
#define OWN(g) (2 * PLACES + (g) * (PLACES + 3))
#define DONE(g, n) (OWN(g) + S(n))
#define CLAIMED(g) (OWN(g) + PLACES)
#define PUBLISHED(g) (OWN(g) + PLACES + 1)
#define STATE(g) (OWN(g) + PLACES + 2)
#define WORDS (OWN(GENERATIONS))
byte memory[WORDS];
byte first[GENERATIONS], current; /* of each generation; which one the share offers */
bool has_key[GENERATIONS]; /* READs reach it */
bool opened; /* the follower is there */

/* The writer's stores that are not visible yet; at most one of each word. */
bool waits[WORDS];
byte stored[WORDS], waiting;

byte line; /* the follower's, where arrivals land */
byte attached; /* the generation whose arrivals the share sends */

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
	STORE(CLAIMED(g), n + 1);
#else
	STORE(CLAIMED(g), n + 1); /* sl_share_claim() */
#ifndef BREAK_NO_CLAIM_FENCE
	FENCE;
#endif
	write_data();
#endif
#ifndef BREAK_NO_RELEASE
	FENCE;
#endif
	STORE(DONE(g, n), n + 1); /* sl_share_done() */
#if !defined(BREAK_DONE_LATE) && !defined(BREAK_NO_RELEASE)
	FENCE;
#endif
	STORE(PUBLISHED(g), n + 1);
	n++
}

/* sl_share_resize(): the new generation is there before any follower can get it. */
inline resize()
{
	d_step {
		memory[CLAIMED(GENERATIONS - 1)] = n;
		memory[PUBLISHED(GENERATIONS - 1)] = n;
		first[GENERATIONS - 1] = n;
		has_key[GENERATIONS - 1] = true;
		current = GENERATIONS - 1;
		i = 0;
		do
		:: i < n -> taken[i] = true; i++
		:: else -> break
		od;
		i = 0
	}
#ifndef BREAK_NO_SETTLE
	!has_key[0]; /* sl_share_remote_move() */
#endif
	g = GENERATIONS - 1
}

active proctype writer()
{
	byte n, g, i;

	opened;
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

/* The share's thread: it tells of arrivals, and gives up the key of the generation before. */
active proctype server()
{
end:	do
	:: line != memory[PUBLISHED(attached)] -> line = memory[PUBLISHED(attached)]
	:: current > 0 && has_key[0] -> has_key[0] = false
	od
}

#ifdef BREAK_NO_LOOK
#define GOOD (done == n + 1)
#elif defined(BREAK_ONE_TOO_MANY)
#define GOOD (done == n + 1 && claimed <= n + PLACES + 1)
#else
#define GOOD (done == n + 1 && claimed <= n + PLACES)
#endif
#ifdef BREAK_READ_EARLY
#define MAY_READ (next < ELEMENTS && p >= next)
#else
#define MAY_READ (p > next && p > first[g])
#endif
/* It looks for elements, or at what was READ. */
#ifdef BREAK_LOOK_WITH_DATA
#define MAY_LOOK (reading || has_read || !MAY_READ)
#else
#define MAY_LOOK (has_read || (!reading && !MAY_READ))
#endif

/* sl_follower_choose() */
inline choose()
{
#ifdef BREAK_READ_EARLY
	n = next
#else
	if
	:: d_step { /* SL_FOLLOW_EVERY */
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
	:: n = p - 1 /* SL_FOLLOW_NEWEST */
	fi
#endif
}

/* sl_share_slot_begin() */
inline begin()
{
	d_step {
		reading = true;
		had_done = false;
		had_a = false;
		had_b = false
	}
}

inline post_look()
{
	d_step {
		look_out = true;
		judges = has_read;
#if defined(BREAK_LOOK_WITH_DATA)
		judges = has_read || reading;
#elif defined(BREAK_LOOK_UNDER_WAY)
		judges = true;
#endif
		had_claimed = false;
		had_published = false;
		had_state = false
	}
}

/* judge() */
inline decide()
{
	if
	:: GOOD ->
		d_step {
			assert(!WHOLE || (a == n + 1 && b == n + 1));
			assert(!COUNTED || n >= after);
			after = n + 1;
#ifndef BREAK_NO_NEXT
			next = n + 1
#endif
		}
	:: else ->
		d_step {
			assert(!OVERTAKEN || taken[n]);
			next = n + 1
		}
	fi;
	d_step { has_read = false; a = 0; b = 0; done = 0; n = 0 }
}

/* looked(), then judge() */
inline finish_look()
{
	d_step {
		look_out = false;
		p = (published > p -> published : p);
		/* at_the_end(): the look behind the one that has seen the end. */
		over = ended;
		ended = ended || (state == ENDED)
#ifdef BREAK_END_AT_ONCE
		; over = ended
#endif
	};
	if
	:: has_read && judges -> decide()
	:: else
	fi;
	d_step { judges = false; claimed = 0; published = 0; state = 0 }
}

/* A READ has failed: the key was given up. */
inline attach()
{
	d_step {
#ifdef BREAK_OLD_COMPLETION
		old = reading;
#endif
		reading = false;
		has_read = false;
		look_out = false;
		judges = false;
		ended = false;
		over = false;
		a = 0; b = 0; done = 0; n = 0;
		claimed = 0; published = 0; state = 0;
		g = current;
		attached = g;
		line = 0;
		p = memory[PUBLISHED(g)]; /* the first look */
		next = (next < first[g] -> first[g] : next)
	}
}

active proctype follower()
{
	byte g, p, next, n, a, b, done, claimed, published, state;
	byte after; /* n + 1 of the last one that was delivered */
	bool reading, has_read, had_done, had_a, had_b; /* of the slot */
	bool look_out, judges, had_claimed, had_published, had_state; /* of the look */
	bool ended, over;
#ifdef BREAK_NO_PACKET_FENCE
	byte early;
#endif
#ifdef BREAK_OLD_COMPLETION
	bool old; /* a READ of the data was under way when its queue pair was closed */
#endif

	d_step { has_key[0] = true; opened = true }; /* sl_follow_open(): before the first element */
	do
	:: d_step { line > p && attached == g -> p = line } /* sl_share_known() */
	:: !reading && !has_read && MAY_READ -> atomic { choose(); begin() }
	/* Packets of READs, in any order, and again after a loss. */
	:: d_step { reading && has_key[g] -> done = memory[DONE(g, n)]; had_done = true }
	:: d_step { reading && has_key[g] -> a = memory[A(n)]; had_a = true }
	:: d_step { reading && has_key[g] -> b = memory[B(n)]; had_b = true }
	:: reading && had_done && had_a && had_b ->
		d_step { reading = false; has_read = true };
#ifdef BREAK_NO_LOOK
		decide()
#endif
	:: !look_out && MAY_LOOK -> post_look()
#ifdef BREAK_NO_PACKET_FENCE
	:: d_step { has_key[g] -> early = memory[CLAIMED(g)] }
	:: d_step { look_out && has_key[g] -> claimed = early; had_claimed = true }
#else
	:: d_step { look_out && has_key[g] -> claimed = memory[CLAIMED(g)]; had_claimed = true }
#endif
	:: d_step { look_out && has_key[g] -> published = memory[PUBLISHED(g)]; had_published = true }
	:: d_step { look_out && has_key[g] -> state = memory[STATE(g)]; had_state = true }
	:: look_out && had_claimed && had_published && had_state -> finish_look()
	:: (reading || look_out) && !has_key[g] -> attach()
#ifdef BREAK_OLD_COMPLETION
	:: d_step { old && reading -> had_a = true; had_b = true; old = false }
#endif
	:: over && !reading && !has_read && !(p > next && p > first[g]) -> break
	od;
	assert(!COUNTED || after == ELEMENTS)
}
