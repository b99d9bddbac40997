/* shm.h - what the files of the shm link share.
 *
 * Model:     source and receiver on one host. The ring's pixels are a sealed memfd that the
 *            source maps and writes; per transfer a second, small memfd (a lane) carries
 *            descriptors one way and the grant the other; two eventfds wake. All are passed over
 *            a Unix socket to who knows the transfer's key. The receiver believes nothing it
 *            reads from a lane: indices are bounded, descriptors copied and checked like
 *            packets. Slot states, cells and counters are in memory that the source never maps. */
#ifndef SL_LINK_SHM_SHM_H
#define SL_LINK_SHM_SHM_H

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "core/link.h"
#include "core/look.h"
#include "core/region.h"

enum {
	SL_SHM_TRANSFERS = 64,
	/* More than any ring has slots, so that an honest source never fills it. */
	SL_SHM_ENTRIES = 1024,
	SL_SHM_FDS = 4, /* ring, lane, to wake the receiver, to wake the source */
};

/* "sequence is written": the shared-memory counterpart of a write with immediate. */
struct sl_shm_entry {
	uint64_t sequence, va;
	uint32_t rkey, bytes;
};

struct sl_shm_lane {			   /* in shared memory */
	_Atomic uint64_t granted;	   /* receiver writes */
	_Atomic uint32_t source_asleep;	   /* source writes */
	_Atomic uint32_t receiver_asleep;  /* receiver writes */
	alignas(64) _Atomic uint64_t head; /* source writes; entries below it are filled */
	alignas(64) struct sl_shm_entry entry[SL_SHM_ENTRIES];
};

struct sl_shm_hello { /* what a source says to get in */
	uint32_t magic, transfer, rkey, reserved;
};

struct sl_shm_queue { /* one transfer, either side */
	_Atomic uint32_t active;
	struct sl_plan plan;
	struct sl_region lane_region;
	struct sl_shm_lane *lane;
	int wake_receiver, wake_source, connection;
	uint64_t tail;		/* receiving: the next entry to read */
	struct sl_look look;	/* likewise */
	uint64_t sent;		/* sending: position */
	uint64_t broken_plus_1; /* sending: the last sequence of which something was lost */
	_Atomic uint64_t reported;
};

struct sl_shm {
	char name[64]; /* option */
	struct sl_link_env env;
	int listener;
	char location[SL_LOCATION_BYTES];
	struct sl_region ring; /* sending: the receiver's ring, mapped here */
	uint32_t queues;
	uint64_t opened_seen;
	struct sl_shm_queue *queue; /* [SL_SHM_TRANSFERS] */
};

/* connect.c: sockets and descriptors; control thread only. */
int sl_shm_listen(struct sl_shm *shm);
int sl_shm_serve(void *state);
int sl_shm_connect(void *state, const struct sl_plan *plan);
int sl_shm_queue_open(struct sl_shm_queue *queue);
void sl_shm_queue_close(struct sl_shm_queue *queue);

/* receive.c: of struct sl_link_receiving. */
int sl_shm_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan);
int sl_shm_poll(void *state, unsigned poller, unsigned budget);

/* send.c: of struct sl_link_sending. */
int sl_shm_offer(void *state, struct sl_offer *offer);
int sl_shm_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n);
uint64_t sl_shm_reap(void *state, uint16_t transfer);

static inline void sl_shm_wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake anyway */
}

#endif
