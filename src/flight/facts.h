/* facts.h - what a run was set up with, as far as it decides what is lost: written into flight.json
 * beside the counters (docs/reference/flight-recorder.md).
 *
 * Threads:   plain memory of the caller. */
#ifndef SL_FLIGHT_FACTS_H
#define SL_FLIGHT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/status.h>

struct sl_flight_facts {
	char experiment[SL_STATUS_PATH], transfer[SL_STATUS_NAME];
	uint64_t run; /* 0: it has no number */

	char link[16], listen[256]; /* addresses, with commas between them; "": none */
	bool credits, one_way;
	uint32_t modules, slots;
	/* Bytes of pixels in a packet; the longest IP packet of the plan; packets and bytes of a
	 * block. 0: not known. */
	uint32_t pmtu, longest_packet, block_packets;
	uint64_t block_bytes, receive_buffer_wanted;
	uint32_t mtu;	     /* of the first interface; 0: not known */
	char interface[16];  /* empty: none */
	const char *overrun; /* ring.overrun, incomplete, align: the words of the options */
	const char *incomplete, *align;
	uint32_t late_frames;
	uint64_t late_timeout_us;
	double frame_rate_Hz; /* 0: as fast as it goes */
	/* What the experiment asks an emulated front end to do wrong: shares of packets, of
	 * packets, of blocks. */
	double inject_drop, inject_corrupt, inject_skip;
	int cpus_allowed, cpus_online;
};

#endif
