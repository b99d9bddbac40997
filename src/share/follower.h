/* follower.h - a follower between its files: follow.c reads elements on this host, remote_follow.c
 * from another; attach.c and remote_attach.c talk to the share. */
#ifndef SL_SHARE_FOLLOWER_H
#define SL_SHARE_FOLLOWER_H

#include "share/private.h"

struct sl_follower;
struct sl_share_remote_follower; /* remote_follow.h */

struct sl_follower_ops { /* where the memory is makes the difference */
	/* The next element, copied to `data`; NULL: its note alone. */
	int (*take)(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, void *data,
		    struct sl_follow_element *element);
	/* A part that lies inside an element's data; n UINT64_MAX: of the newest. */
	int (*fetch)(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes, void *into,
		     struct sl_follow_element *element);
	int (*published)(struct sl_follower *f, uint64_t *n);
	const uint64_t *(*flag)(const struct sl_follower *f);
	uint64_t (*peers)(const struct sl_follower *f); /* 0: not known */
	void (*close)(struct sl_follower *f);
	bool views; /* elements can be looked at without a copy */
};

struct sl_follower {
	const struct sl_follower_ops *ops;
	char name[SL_SHARE_URL];
	int socket;
	struct sl_share_remote_follower *remote; /* NULL: the share is on this host */
	struct sl_share_memory memory;
	const struct sl_share_words *words; /* in it */
	struct sl_share_description description;
	uint64_t first;	      /* n of this generation's first element */
	uint64_t next;	      /* no element before this one is wanted */
	uint64_t after;	      /* one more than that of the last element that was delivered */
	bool had;	      /* there was one */
	uint64_t seen;	      /* `published` when it was looked at last */
	uint32_t wake;	      /* the word `wake` then */
	uint64_t seen_ns;     /* when one of them was found changed */
	uint64_t alive_ns;    /* when the writer was known to live */
	bool said;	      /* that it sleeps */
	uint32_t awake;	      /* calls since it slept */
	bool asked;	      /* for memory, and the answer has not come in time */
	bool ended;	      /* the share has said that it ends */
	bool over;	      /* the connection: all that still comes has arrived */
	int timeout_ms;	      /* of sl_follow_open() */
	uint64_t longest;     /* message that the writer takes */
	uint64_t queue_bytes; /* messages that wait in the inbox */
	uint64_t pings;
	struct sl_share_in in;
	struct sl_share_out out;
	struct sl_share_inbox inbox;
};

uint64_t sl_share_end_ns(int timeout_ms); /* UINT64_MAX: no end */
int sl_share_left_ms(uint64_t end_ns);	  /* -1: no end */

/* follow.c */
extern const struct sl_follower_ops sl_follower_here;
/* The element to take next, of `published`, or UINT64_MAX: there is none. */
uint64_t sl_follower_choose(struct sl_follower *f, enum sl_follow_mode mode, uint64_t published);
void sl_follower_deliver(struct sl_follower *f, uint64_t n, struct sl_follow_element *element);
/* Rows that an array does not have are the writer's mistake, or a lie. */
void sl_follower_limit_rows(const struct sl_follower *f, struct sl_share_note *note);
/* It is attached to memory with this header. */
void sl_follower_describe(struct sl_follower *f, const struct sl_share_header *header);

/* remote_attach.c */
int sl_follower_open_remote(struct sl_follower *f, const char *url,
			    const struct sl_follow_options *options, uint64_t end_ns,
			    struct sl_remote_error *error);

/* attach.c */
int sl_follower_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error);
/* The next frame that answers something: use f->in, then sl_share_in_next(), or
 * sl_follower_discard() if it is not the one that is wanted. Messages go to the inbox. -ENOBUFS: it
 * is full; -EPIPE: the share has ended; -ECONNRESET: the connection is over for another reason. */
int sl_follower_hear(struct sl_follower *f, uint64_t end_ns);
/* The same, of what has arrived, without waiting: 1: there is one; 0: none. */
int sl_follower_take_arrived(struct sl_follower *f);
void sl_follower_discard(struct sl_follower *f);
/* The connection is over: take what still arrived. -EPIPE: the share has ended; -ECONNRESET: it has
 * not said so. */
int sl_follower_hear_the_last(struct sl_follower *f);
/* Send a frame. -EAGAIN: the socket has been full until end_ns. */
int sl_follower_say(struct sl_follower *f, enum sl_share_frame_type type, uint64_t value,
		    const void *payload, uint64_t bytes, uint64_t end_ns);

#endif
