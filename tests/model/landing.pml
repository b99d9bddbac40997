/* landing.pml - an open-loop source over verbs: it writes into a landing beside the ring, and laps
 * it as it likes; each block is copied when its completion comes, and the copy's record and
 * checksum decide (make_landing of src/link/verbs/connect.c, fetch and take_event of
 * src/link/verbs/receive.c, record_problem of src/receiver/assemble/assembler.c).
 *
 * A block is two parts and a record, written and copied one after the other. The checksum is taken
 * for perfect: the record fits the pixels if and only if they are those it was made of.
 *
 * invariant PROVEN:    a frame is published as good only if every byte of it is its own
 * invariant EXCLUSIVE: nobody writes into a block between its hand-over to readers and its release
 *
 * config: -DSEQUENCES=5
 * break NO_CHECKSUM: PROVEN    the record's checksum is not compared
 * break NO_SEQUENCE: PROVEN    the record's sequence is not compared
 * break CHECK_FIRST: PROVEN    the block is checked where it landed, and then copied
 * break IN_PLACE: EXCLUSIVE    nothing is copied: the source writes into the ring itself */
#define SLOTS 2
#define NOBODY 255
#define S(k) ((k) % SLOTS)
bool EXCLUSIVE = true, PROVEN = true; /* so that an error names the invariant */

typedef block { byte a = NOBODY, b = NOBODY, record = NOBODY }; /* whose */
block landing[SLOTS], ring[SLOTS];
byte opened = SLOTS; /* sequences below it have or had a slot */
chan completions = [SLOTS + 1] of {byte}; /* the NIC's queue; a receive is posted for each */
bool owned[SLOTS]; /* the truth: between event and release */

/* record_problem */
#ifdef BREAK_NO_CHECKSUM
#define GOOD(where) (where[S(k)].record == k)
#elif defined(BREAK_NO_SEQUENCE)
#define GOOD(where) (where[S(k)].a == where[S(k)].record && where[S(k)].b == where[S(k)].record)
#else
#define GOOD(where) (where[S(k)].a == k && where[S(k)].b == k && where[S(k)].record == k)
#endif
#ifdef BREAK_IN_PLACE
#define PLACE(part) d_step { assert(!EXCLUSIVE || !owned[S(k)]); ring[S(k)].part = k }
#else
#define PLACE(part) landing[S(k)].part = k
#endif

/* The NIC, with a source behind it that nothing holds back; some messages are lost on their way. */
active proctype nic()
{
	byte k;

	do
	:: k == SEQUENCES -> break
	:: k < SEQUENCES -> k++ /* lost whole */
	:: k < SEQUENCES ->
		PLACE(a);
		PLACE(b);
		PLACE(record);
		completions!k; /* UC: no completion where a packet is missing */
		k++
	:: k < SEQUENCES -> PLACE(a); k++ /* lost in part */
	od
}

/* Poller, assembler and unit, one after the other: none of them holds the source back. */
active proctype receiver()
{
	byte k;
	bool good;

	do
	:: completions?k ->
		if
		:: k >= opened /* ahead: turned away, its slot is being read */
		:: k < opened -> /* or late: then nobody asks any more */
#ifdef BREAK_CHECK_FIRST
			good = GOOD(landing);
#endif
#ifndef BREAK_IN_PLACE
			ring[S(k)].a = landing[S(k)].a; /* fetch */
			ring[S(k)].b = landing[S(k)].b;
			ring[S(k)].record = landing[S(k)].record;
#endif
			owned[S(k)] = true; /* sl_ring_raise, and the frame is given out */
#ifndef BREAK_CHECK_FIRST
			good = GOOD(ring);
#endif
			d_step { /* the unit has read it */
				assert(!PROVEN || !good ||
				       (ring[S(k)].a == k && ring[S(k)].b == k));
				owned[S(k)] = false;
				good = false
			}
			opened = (k + SLOTS + 1 > opened -> k + SLOTS + 1 : opened)
		fi
	:: timeout -> break
	od
}
