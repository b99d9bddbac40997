/* look.h - up to when a link thread has taken everything that came.
 *
 * Model:     a link thread goes through its queues in passes, and takes a limited number of packets
 *            from each. A pass that finds a queue empty has taken everything that was there when
 *            the pass began. A queue that is never found empty (a flood of packets that do not
 *            belong there) is first in, first out: after SL_LOOK_PACKETS more packets, everything
 *            has been taken that was there before them, since no receive buffer holds so many.
 *            The link publishes that time for each module (sl_ring_looked), and the assembler calls
 *            a frame late only by what was taken by then: packets that wait in a buffer of this
 *            host are not late, however long the link thread waits for a cpu.
 * Threads:   pure functions; a struct sl_look is its link thread's.
 * Cost:      a few instructions per pass and queue. */
#ifndef SL_CORE_LOOK_H
#define SL_CORE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* link.receive_buffer is 1 GiB at most, of which the kernel makes 2 GiB; the kernel charges more
 * than 512 bytes for the smallest packet. */
enum { SL_LOOK_PACKETS = 1 << 22 };

struct sl_look {	   /* zeroed: no pass so far */
	uint64_t since_ns; /* the pass in which it was not found empty, the packets since then are
			      counted; 0: the last pass found it empty */
	uint64_t taken;
};

/* A pass that began at now_ns took `taken` packets; emptied: and found no more. Returns the time up
 * to which everything that came has been taken; 0: not known by this pass. */
uint64_t sl_look_pass(struct sl_look *look, uint64_t now_ns, uint64_t taken, bool emptied);

#endif
