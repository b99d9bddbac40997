/* credit.pml - credits as positions in the stream, over a wire that loses packets and grants
 * (src/link/credit.c, sl_udp_return_all and catch_up of src/link/udp/return.c, take_grant of
 * src/link/udp/answer.c, send_write of src/link/udp/send.c).
 *
 * Positions count packets here. A packet or a grant is lost at any time, LOSSES of each at most;
 * after that, whoever still stands still stands for ever, and spin says "invalid end state".
 *
 * invariant GRANTED: the source sends of sequence k only after the slot was opened for k
 * invariant FITS:    no more is under way than the window, so that the receive buffer holds it
 * invariant DELAYED: a lost packet or grant only delays: the stream goes on to its end (end state)
 *
 * config: -DSLOTS=2 -DBLOCK=2 -DSEQUENCES=5 -DWINDOW=3 -DLOSSES=3
 * config: -DSLOTS=2 -DBLOCK=2 -DSEQUENCES=5 -DWINDOW=5 -DLOSSES=3
 * config: -DSLOTS=5 -DBLOCK=1 -DSEQUENCES=7 -DWINDOW=8 -DLOSSES=2
 * break NO_SLOTS: GRANTED      grants do not look at the slots
 * break NO_WINDOW: FITS        grants do not look at the window
 * break NO_SETTLE: FITS        the source's word is believed while packets are still under way
 * break NO_REPEAT: DELAYED     a grant that was lost is not repeated
 * break NO_CATCH_UP: DELAYED   the source's word on what it sent is not listened to
 * break WITHHELD: DELAYED      while a small growth is withheld, a lost grant is not repeated */
#define END (SEQUENCES * BLOCK)
#define MIN(a, b) ((a) < (b) -> (a) : (b))
bool GRANTED = true, FITS = true; /* so that an error names the invariant */

chan wire = [WINDOW + 1] of {byte}; /* all that is under way, the receive buffer included */
chan grants = [2] of {byte};
byte granted; /* as the source knows it */
byte reported; /* the source's counts, over TCP */
byte opened, seen;

#ifdef BREAK_NO_SLOTS
#define DUE (seen + WINDOW)
#elif defined(BREAK_NO_WINDOW)
#define DUE (opened * BLOCK)
#else
#define DUE MIN(opened * BLOCK, seen + WINDOW)
#endif
/* sl_credit_due: grown by a quarter, or the source may soon run out (a piece is a packet). */
#define GROWTH (DUE - told)
#define LEFT (told - seen)
#define ENOUGH (told > seen && LEFT >= WINDOW / 2 && LEFT >= 1)
#define WORTH (GROWTH >= WINDOW / 4 || (empty(wire) && !ENOUGH))
#ifdef BREAK_NO_REPEAT
#define MAY_REPEAT false
#elif defined(BREAK_WITHHELD)
#define MAY_REPEAT (DUE == told)
#else
#define MAY_REPEAT true
#endif
#ifdef BREAK_NO_SETTLE
#define SETTLED true
#else
#define SETTLED empty(wire) /* 20 ms old, and the link is idle */
#endif

/* The front end. */
active proctype source()
{
	byte sent, losses, grant;

	do
	:: d_step { sent < MIN(granted, END) -> /* send_write */
		assert(!GRANTED || sent / BLOCK < opened);
		assert(!FITS || len(wire) < WINDOW)
	   }
		if
		:: wire!sent
		:: losses < LOSSES -> losses++
		fi;
		sent++
	:: d_step { grants?grant -> /* take_grant: it never goes back */
		granted = (grant > granted -> grant : granted);
		grant = 0
	   }
	:: reported < sent -> reported = sent
	:: sent == END && reported == END -> break
	od
}

inline send_grant()
{
	if
	:: nfull(grants) -> grants!told
	:: full(grants) /* no room in the socket: the next one does it */
	:: losses < LOSSES -> losses++
	fi
}

/* The link's thread: sl_udp_poll, sl_udp_return_all. */
active proctype receiver()
{
	byte told, heard, losses, packet;

	do
	:: d_step { wire?packet -> /* advance() of place.c */
		assert(!GRANTED || packet / BLOCK < opened);
		seen = (packet + 1 > seen -> packet + 1 : seen);
		packet = 0
	   }
	:: d_step { DUE > told && WORTH -> told = DUE } send_grant()
	/* Again while idle; the model does it only where the last one got lost. */
	:: d_step { empty(wire) && empty(grants) && granted < told && MAY_REPEAT -> told = DUE }
		send_grant()
#ifndef BREAK_NO_CATCH_UP
	:: heard <= seen && reported > seen -> heard = reported /* catch_up: first it is heard */
	:: d_step { heard > seen && SETTLED -> seen = heard } /* once old: sl_placer_catch_up */
#endif
	:: seen == END -> break
	od
}

/* The dispatcher: a frame is done when the stream has passed it, whole or not. */
active proctype dispatcher()
{
	do
	:: opened == SEQUENCES -> break
	:: opened < SLOTS -> opened++
	:: opened >= SLOTS && opened < SEQUENCES && seen >= (opened - SLOTS + 1) * BLOCK -> opened++
	od
}
