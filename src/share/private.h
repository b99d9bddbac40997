/* private.h - a share and a follower, between the files of this folder. */
#ifndef SL_SHARE_PRIVATE_H
#define SL_SHARE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "client/registry.h"
#include "share/frame.h"
#include "share/layout.h"

enum { SL_SHARE_PEERS = 64, SL_SHARE_WHY = 400, SL_SHARE_URL = 400 };
#define SL_SHARE_QUEUE_BYTES	(UINT64_C(64) << 20)
#define SL_FOLLOWER_QUEUE_BYTES (UINT64_C(1) << 30)

struct sl_share_memory { /* one generation, mapped */
	struct sl_share_header *header;
	struct sl_share_place *place;
	uint8_t *data; /* of place 0 */
	uint64_t stride, count;
	void *second; /* the mapping of the second descriptor; NULL: there is none */
	uint64_t bytes, second_bytes;
	int fd, second_fd; /* read only; -1: none */
	/* Once an application holds it, what is mapped is unmapped with its last owner. */
	struct sl_share_mapping *mapping;
};

struct sl_share_far;	/* remote.h */
struct sl_share_remote; /* remote.h */

struct sl_share_peer {
	struct sl_share_peer *next;
	struct sl_share_far *far; /* it is on another host; NULL: on this one */
	uint64_t id;		  /* 0: it has not said HELLO, or is not welcome yet */
	int socket;
	bool sleeps; /* it waits on the futex */
	bool stuck;  /* its message waits for room in the inbox */
	bool full;   /* its question waits until it has read answers to those before */
	bool deaf;   /* it has closed; what it sent before is still read */
	struct sl_share_in in;
	struct sl_share_out out;
	uint64_t inbox_bytes, inbox_messages; /* that the application has not received yet */
};

struct sl_share_inbox { /* messages that arrived */
	struct sl_share_letter *first, **end;
	uint64_t bytes, messages; /* that wait */
};

struct sl_share_letter {
	struct sl_share_letter *next;
	struct sl_share_message message;
	bool skipped; /* it was too long: its data are not here */
};

struct sl_share {
	struct sl_share_memory memory; /* the writer's; the thread looks at it under `lock` */
	struct sl_share_description description;
	char url[SL_SHARE_URL];
	uint64_t n;		   /* of the next element */
	bool reserved;		   /* it is being filled */
	uint64_t wake_ns;	   /* when followers were woken last */
	_Atomic uint32_t sleepers; /* set by the thread, read by commit: any value is safe */

	struct sl_claim claim;
	int listener, kick; /* an eventfd: the thread has something to do */
	struct sl_thread thread;
	_Atomic bool ends;
	uint64_t queue_bytes;
	uint32_t max_peers;
	bool pauses;			/* the thread's: it accepts no connection for a while */
	bool unserved;			/* under the lock: the thread has ended */
	struct sl_share_remote *remote; /* NULL: it does not listen */

	pthread_mutex_t lock; /* of all below, and of `memory` where others than the writer read */
	pthread_cond_t arrived;
	struct sl_share_peer *peer;
	uint32_t peers;
	uint64_t last_id;
	struct sl_share_inbox inbox;
	struct sl_share_counts counts;
};

/* Messages that a queue of this many bytes may have, however short they are: each takes up memory
 * of its own. */
static inline uint64_t sl_share_most_messages(uint64_t queue_bytes)
{
	return queue_bytes / 64 + 1;
}

/* writer.c: wake all followers that sleep. */
void sl_share_wake(struct sl_share_words *words);

/* memory.c */
int sl_share_memory_make(const struct sl_share_header *plan, int second_fd,
			 struct sl_share_memory *memory, char *why, size_t why_bytes);
/* Of a follower: takes the descriptors, whatever happens. */
int sl_share_memory_map(const int *fd, int fds, struct sl_share_header *checked,
			struct sl_share_memory *memory, char *why, size_t why_bytes);
void sl_share_memory_fini(struct sl_share_memory *memory);
void sl_share_memory_unmap(struct sl_share_memory *memory);
static inline struct sl_share_place *sl_share_place_of(const struct sl_share_memory *memory,
						       uint64_t n)
{
	return &memory->place[n % memory->count];
}
static inline uint8_t *sl_share_data_of(const struct sl_share_memory *memory, uint64_t n)
{
	return memory->data + n % memory->count * memory->stride;
}

/* serve.c: the share's thread. */
int sl_share_serve_start(struct sl_share *share);
void sl_share_serve_stop(struct sl_share *share);
void sl_share_kick(struct sl_share *share);
void sl_share_drop(struct sl_share *share, struct sl_share_peer *peer); /* the thread's */
/* Write the number of followers where each of them can read it. */
void sl_share_show_peers(struct sl_share *share);

/* inbox.c */
void sl_share_inbox_init(struct sl_share_inbox *inbox);
void sl_share_inbox_fini(struct sl_share_inbox *inbox);
int sl_share_inbox_put(struct sl_share_inbox *inbox, uint64_t peer, struct sl_share_in *in);
/* The first message. 1: there is one; 0: none; -EMSGSIZE: it was too long, and has no data. */
int sl_share_inbox_take(struct sl_share_inbox *inbox, struct sl_share_message *message);

/* names.c */
const char *sl_share_name_of(const char *url); /* NULL: it is not one of a share on this host */
int sl_share_folder(bool make, int *folder, char *why, size_t why_bytes);
unsigned sl_share_places(int folder[SL_REGISTRY_PLACES], char *why, size_t why_bytes);
int sl_share_fail(struct sl_remote_error *error, int err, const char *code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int sl_share_code(struct sl_remote_error *error, int err, const char *name, const char *why);

#endif
