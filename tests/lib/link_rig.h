/* link_rig.h - a receiver and a source of one link in one process, driven step by step: poll and
 * post take turns, so that every case is deterministic. */
#ifndef TESTS_LIB_LINK_RIG_H
#define TESTS_LIB_LINK_RIG_H

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bell.h"
#include "base/clock.h"
#include "core/link.h"

enum { RIG_SLOTS = 4, RIG_MODULES = 2, RIG_PIXELS = 10000, RIG_PMTU = 1024 };

/* How pixels lie, here and at the source, where it is not one piece. Set before rig_new(). */
struct rig_layout {
	const char *name;
	uint16_t message;      /* 0: as the link does it best */
	uint64_t pitch;	       /* of lines in the ring; 0: none */
	uint64_t source_pitch; /* of lines at the source; 0: none */
	bool rectangle;	       /* line by line, in any of these ways */
};
enum { RIG_LINES = 8, RIG_LINE = RIG_PIXELS / RIG_LINES, RIG_SOURCE_PITCH = 2000 };
extern struct rig_layout rig_layout;

struct rig {
	const struct sl_link *link;
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_link_counters counters;
	unsigned pollers; /* 0: one */
	struct sl_wake wake[2];
	void *receiver, *source;
	struct sl_plan plan[RIG_MODULES];
	uint8_t block[RIG_PIXELS + SL_RECORD_BYTES];
	uint8_t wide[RIG_LINES * RIG_SOURCE_PITCH]; /* the same pixels, in a larger frame */
	const void *wide_at;
	struct sl_from rectangle;
	uint64_t receive_buffer;
	const char *listen_at, *send_from;    /* NULL: addresses of this process's own */
	const char *option[4][2];	      /* name and text of more options */
	uint16_t service, operation, message; /* 0: UC, WRITE, as the link does it best */
	uint16_t crc;
	void *notes; /* NULL: no receiver will come after this one */
	const int *handover_fd;
	enum sl_packet_fault (*fault)(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet);
	uint32_t hold;
	/* What both sides are told of the detector (core/link_env.h), and lines of a block, where
	 * it is not RIG_LINES of them; 0: nothing. With bits, rig_fill() keeps pixels within. */
	uint32_t bits, pixel_bytes, unread_rows, lines;
};

/* Hardware: packets are placed and judged by a NIC, which tells of whole blocks only. */
int rig_is_nic(const struct sl_link *link);

void rig_set(const struct sl_link *link, void *state, const char *name, const char *text);

/* An address of this process's own in 127.0.0.0/8, so that test programs can run side by side on
 * port 4791. */
void rig_address(char text[32], unsigned host);

void *rig_state(const struct rig *rig);

int rig_open_receiver(struct rig *rig);

int rig_offer(struct rig *rig, void *source, uint16_t module, struct sl_offer *offer);

/* Connecting may need the receiver to serve meanwhile. */
void rig_open_source(struct rig *rig);

void rig_close_source(struct rig *rig);

void rig_close_receiver(struct rig *rig);

struct rig *rig_new(const struct sl_link *link);

/* Ready to send: all slots open, credits out. */
void rig_make_ready(struct rig *rig);

struct rig *rig_ready(const struct sl_link *link);

void rig_free(struct rig *rig);

/* Pixels of (sequence, module); the last bytes, the record, are no different here. */
void rig_fill(struct rig *rig, uint64_t sequence, uint32_t module);

/* How many bytes from `offset` on are one message: counted by hand, not by the plan. */
uint64_t rig_step(const struct sl_plan *plan, uint64_t offset);

/* The writes of a block under its plan; returns how many. */
size_t rig_writes(struct rig *rig, uint64_t sequence, uint32_t module, struct sl_write *write);

void rig_poll(struct rig *rig);

/* Send one block, polling when the source has to wait. How many of its writes went out within a
 * few hundred tries. */
size_t rig_send(struct rig *rig, uint64_t sequence, uint32_t module);

int rig_arrived(struct rig *rig, uint64_t sequence, uint32_t module);

int rig_intact(struct rig *rig, uint64_t sequence, uint32_t module);

int rig_untouched(struct rig *rig, uint64_t sequence, uint32_t module);

uint64_t rig_dropped(const struct rig *rig, enum sl_drop why);

uint64_t rig_dropped_all(const struct rig *rig);

void rig_release(struct rig *rig, uint64_t sequence);

/* How packets are lost where the link itself cannot do it; NULL: the link can. */
extern void (*rig_lose)(struct rig *rig);

#endif
