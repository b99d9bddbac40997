/* flight.h - packets that link threads sample for the flight recorder.
 *
 * Model:     each link thread has a tap: a ring of packet headers, which it writes and the recorder
 *            reads (flight/recorder.h). A link asks sl_flight_due() for each datagram, and where
 *            that is true it describes the datagram to sl_flight_take(). A tap takes
 *            SL_FLIGHT_BURST datagrams in a row and then none until its interval has passed, so
 *            that its ring reaches back about a minute at any rate, and successive packet numbers
 *            are in it.
 * Threads:   a tap is written by one link thread. sl_flight_read() on any thread: a sample that is
 *            being replaced meanwhile is left out (base/sequence.h).
 * Ownership: the receiver's; a link finds the taps of its pollers in its environment (link_env.h),
 *            or NULL: nothing is sampled.
 * Cost:      a comparison for a datagram; some hundred bytes are copied about 140 times a second.
 *            No lock, no allocation, no clock: the time is that of the poll. */
#ifndef SL_CORE_FLIGHT_H
#define SL_CORE_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_FLIGHT_PACKETS = 8192, /* of all taps together: 1 MiB */
	SL_FLIGHT_BURST = 8,
	SL_FLIGHT_SECONDS = 60,
	SL_FLIGHT_HEADER = 76, /* bytes of a UDP payload that are kept */
	SL_FLIGHT_NO_MODULE = UINT16_MAX,
};

struct sl_flight_packet {
	uint64_t at_ns; /* CLOCK_MONOTONIC, of the poll that took it */
	uint32_t bytes; /* of its UDP payload */
	uint16_t source_port, dest_port;
	uint8_t source[16], dest[16]; /* addresses as GIDs (net/net.h) */
	uint16_t module;	      /* whose socket it came to; SL_FLIGHT_NO_MODULE: not known */
	uint8_t tos;		      /* traffic class */
	uint8_t kept;		      /* bytes of `payload` */
	uint8_t payload[SL_FLIGHT_HEADER];
	uint8_t unused[4];
};
enum { SL_FLIGHT_WORDS = sizeof(struct sl_flight_packet) / 8 };
_Static_assert(sizeof(struct sl_flight_packet) % 8 == 0, "it is copied word by word");

struct sl_flight_sample {
	_Atomic uint32_t sequence; /* odd while it is being replaced */
	_Atomic uint64_t number;   /* how many the tap had taken before it */
	_Atomic uint64_t word[SL_FLIGHT_WORDS];
};

struct sl_flight_tap {
	/* The link thread's. */
	_Alignas(64) uint64_t next_ns; /* the next datagram is taken at this time, or later */
	uint64_t interval_ns;
	uint32_t left; /* of the burst */
	uint32_t mask; /* samples that there is room for, less 1 */
	struct sl_flight_sample *sample;
	_Atomic uint64_t taken; /* ever; any thread reads it */
};

/* For `taps` link threads. 0 or -ENOMEM. */
int sl_flight_open(unsigned taps, struct sl_flight_tap **tap);
void sl_flight_close(struct sl_flight_tap *tap); /* NULL: nothing */

/* Nothing has been taken: before a run, while no link thread runs. */
void sl_flight_clear(struct sl_flight_tap *tap, unsigned taps);

/* For each datagram, with the time of the poll. tap NULL: false. */
static inline bool sl_flight_due(const struct sl_flight_tap *tap, uint64_t now_ns)
{
	return __builtin_expect(tap && now_ns >= tap->next_ns, 0);
}

/* Where it is due. */
void sl_flight_take(struct sl_flight_tap *tap, const struct sl_flight_packet *packet);

/* The first bytes of a UDP payload of `bytes`, of which `here` lie at data. */
void sl_flight_keep(struct sl_flight_packet *packet, const void *data, size_t here, size_t bytes);

/* Copies what the tap has, oldest first, at most `most`. Returns how many. */
size_t sl_flight_read(const struct sl_flight_tap *tap, struct sl_flight_packet *packet,
		      size_t most);

#endif
