/* wake.pml - how a credited source, the link's thread and the dispatcher wake each other: asleep,
 * then look once more; the other side publishes, then looks at asleep (shm_wait, announce and grant
 * of src/link/shm; sl_udp_wait, which packet and xdp share; sl_verbs_wait_receive; wake_link of
 * src/receiver/dispatch/dispatch.c).
 *
 * Nobody has a time-out: whoever is not woken sleeps for ever, and spin says "invalid end state".
 * The source may fall silent after any frame, so that nothing that comes later hides a lost
 * wake-up. Loads and stores happen one after the other, as seq_cst promises.
 *
 * invariant WOKEN: no wake-up is lost: nobody sleeps while there is work for it (end state)
 *
 * config: -DSEQUENCES=4
 * break SOURCE_BLIND: WOKEN   the source sleeps without looking at its credit once more
 * break POLLER_BLIND: WOKEN   the poller sleeps without looking at the queue once more
 * break SLOTS_BLIND: WOKEN    the poller sleeps without looking at the slots once more
 * break SEEN_LATE: WOKEN      the poller compares with slots that it has not granted
 * break ANNOUNCE_LATE: WOKEN  the source looks who sleeps, then announces
 * break GRANT_LATE: WOKEN     the poller looks who sleeps, then grants
 * break OPEN_LATE: WOKEN      the dispatcher looks who sleeps, then opens */
#define SLOTS 2

byte granted, head; /* the lane: in frames, not bytes */
byte opened = SLOTS, raised; /* the ring: slots, events */
bool source_asleep, receiver_asleep, wake_asleep;
bool to_source, to_receiver, to_link; /* eventfds */
bool silent; /* the truth: nothing more will be sent */
byte next; /* the assembler's */

#define NOTIFY(fd, asleep) fd = fd || asleep

#ifdef BREAK_SOURCE_BLIND
#define MORE_CREDIT false
#else
#define MORE_CREDIT (granted > k)
#endif
#ifdef BREAK_POLLER_BLIND
#define MORE_ENTRIES false
#else
#define MORE_ENTRIES (head != tail)
#endif
#ifdef BREAK_SLOTS_BLIND
#define MORE_SLOTS false
#else
#define MORE_SLOTS (opened != seen)
#endif
/* All is done: who sleeps now, sleeps rightly. */
#define REST (silent && next == head && granted == opened)

/* shm_post and shm_wait of the front end. */
active proctype source()
{
	byte k;
	bool slept;

	do
	:: k == SEQUENCES -> break
	:: k < SEQUENCES -> break /* no trigger for a long time */
	:: k < SEQUENCES && granted <= k ->
		source_asleep = true;
		if
		:: MORE_CREDIT
		:: else -> to_source; slept = true /* ppoll */
		fi;
		source_asleep = false;
		d_step { to_source = to_source && !slept; slept = false } /* read */
	:: k < SEQUENCES && granted > k -> /* announce */
#ifdef BREAK_ANNOUNCE_LATE
		NOTIFY(to_receiver, receiver_asleep);
		head++;
#else
		head++;
		NOTIFY(to_receiver, receiver_asleep);
#endif
		k++
	od;
	silent = true
}

/* shm_poll, or sl_udp_poll with sl_udp_return_all. */
inline poll()
{
	seen = opened; /* opened_seen: before the grant, so that nothing is seen and not granted */
	if
	:: d_step { tail != head -> tail++; taken = true } raised = tail
	:: else
	fi;
	if
	:: d_step { granted != opened -> room = opened }
#ifdef BREAK_GRANT_LATE
		NOTIFY(to_source, source_asleep);
		granted = room
#else
		granted = room;
		NOTIFY(to_source, source_asleep)
#endif
	:: else
	fi
}

/* link_options */
active proctype poller()
{
	byte seen, tail, room;
	bool taken, slept;

	do
	:: REST -> break
	:: !REST ->
		poll();
		if
		:: taken
		:: else -> /* shm_wait, sl_udp_wait */
#ifdef BREAK_SEEN_LATE
			seen = opened;
#endif
			d_step { receiver_asleep = true; wake_asleep = true };
			if
			:: MORE_ENTRIES
			:: else ->
				if
				:: MORE_SLOTS
				:: else ->
					(to_receiver || to_link || REST); /* ppoll */
					slept = true
				fi
			fi;
			d_step { receiver_asleep = false; wake_asleep = false };
			d_step { /* read */
				to_receiver = to_receiver && !slept;
				to_link = to_link && !slept
			}
		fi;
		d_step { seen = 0; room = 0; taken = false; slept = false }
	od
}

/* sl_dispatcher_main: gives frames out; their slots are opened again. Its own bell is bell.pml's. */
active proctype dispatcher()
{
	do
	:: silent && next == head -> break
	:: next < raised ->
		next++;
#ifdef BREAK_OPEN_LATE
		NOTIFY(to_link, wake_asleep); /* wake_link */
		opened++
#else
		opened++; /* sl_ring_open */
		NOTIFY(to_link, wake_asleep)
#endif
	od
}
