/* link_env.h - what a link is given when it opens: the ring, counters, terms of plans, faults.
 *
 * Model:     the receiving side has a ring; the sending side has none, and may have faults.
 * Threads:   counters are written by link threads and read by any thread. The rest is constant
 *            while the link is open.
 * Ownership: the caller's; it outlives the link. */
#ifndef SL_CORE_LINK_ENV_H
#define SL_CORE_LINK_ENV_H

#include <stdatomic.h>
#include <stdint.h>

#include <sluice/status.h>

#include "core/flight.h"
#include "core/ring.h"

enum { SL_LINK_TRANSFERS = 64, SL_LINK_NOTE_BYTES = 256 };

/* What was placed of one transfer. Pollers write to these for every packet, each to those of its
 * own transfers: 64 bytes apart, so that no two of them have a cache line in common. */
struct sl_link_placed {
	_Atomic uint64_t packets, bytes;
	uint64_t unused[6];
};

struct sl_link_counters {
	struct sl_link_placed placed[SL_LINK_TRANSFERS];
	_Atomic uint64_t dropped[SL_DROPS];
	/* Congestion. Receiving: packets that a switch marked, notifications sent. Sending:
	 * notifications received; each slows its transfer down. */
	_Atomic uint64_t marked, notified, slowed;
	/* Receiving: what the kernel gave the smallest of its sockets, in bytes as it counts them;
	 * 0: it needs none. Of it, what waited in the fullest socket at the last look, and at most
	 * so far; the control thread looks (sl_link_receiving.serve). */
	_Atomic uint64_t receive_buffer, waiting, waiting_most;
};

/* On the thread that has the transfer's queue. */
static inline void sl_link_count(struct sl_link_counters *counters, uint16_t transfer,
				 uint64_t packets, uint64_t bytes)
{
	struct sl_link_placed *placed = &counters->placed[transfer % SL_LINK_TRANSFERS];

	atomic_fetch_add_explicit(&placed->packets, packets, memory_order_relaxed);
	atomic_fetch_add_explicit(&placed->bytes, bytes, memory_order_relaxed);
}

/* Of all transfers; any thread. */
static inline uint64_t sl_link_packets(const struct sl_link_counters *counters)
{
	uint64_t packets = 0;

	for (unsigned i = 0; i < SL_LINK_TRANSFERS; i++)
		packets += atomic_load_explicit(&counters->placed[i].packets, memory_order_relaxed);
	return packets;
}

static inline uint64_t sl_link_bytes(const struct sl_link_counters *counters)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < SL_LINK_TRANSFERS; i++)
		bytes += atomic_load_explicit(&counters->placed[i].bytes, memory_order_relaxed);
	return bytes;
}

/* What a front end does to a packet on purpose (fault injection); SL_PACKET_FAULT_NONE is the
 * honest one.
 */
enum sl_packet_fault {
	SL_PACKET_FAULT_NONE,
	SL_PACKET_FAULT_DROP,
	SL_PACKET_FAULT_DUPLICATE,
	SL_PACKET_FAULT_CORRUPT, /* sent with a wrong ICRC */
	SL_PACKET_FAULT_REORDER, /* sent after `hold` packets more of its transfer */
};

/* How a thread that sleeps in wait() is woken when slots were opened. */
struct sl_wake {
	int fd;			 /* wait() returns when it becomes readable, and drains it */
	_Atomic uint32_t asleep; /* set while it sleeps, so that others know to write fd */
};

struct sl_link_env {
	/* receiving side: ring is not NULL */
	struct sl_ring *ring;
	unsigned pollers;     /* threads that call poll() and wait(), at most the link's own */
	struct sl_wake *wake; /* [pollers] */
	struct sl_link_counters *counters; /* NULL, when sending: not wanted */
	struct sl_flight_tap *flight;	   /* [pollers]; NULL: no packet is sampled */
	/* To plan: one bit of each set in plan.h. The sending side is told the service that it
	 * will be asked for, since hardware makes its queues before there is a plan. */
	uint16_t service, operation, message;
	uint16_t pmtu;
	uint16_t crc;
	/* Of a raw pixel: bits that mean something, and bytes in a block; 0: not known. Rows that
	 * a module has above those of a block, and below (sl_geometry.unread_rows). Both sides. */
	uint32_t bits, pixel_bytes, unread_rows;
	/* Where the link goes on writing down what a receiver after this one must know, per
	 * transfer; it outlives the process. NULL: no receiver will follow. */
	void *notes; /* [SL_LINK_TRANSFERS][SL_LINK_NOTE_BYTES] */
	/* The link's own descriptor from an earlier receiver, which the link then owns; NULL: this
	 * is the first receiver. */
	const int *handover_fd;
	/* sending side: may be NULL */
	enum sl_packet_fault (*fault)(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet);
	void *fault_arg;
	uint32_t hold; /* 0: fault holds nothing back */
};

#endif
