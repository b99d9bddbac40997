/* remote_follow.h - a follower of a share on another host, between remote_attach.c, which talks to
 * the share over TCP, remote_read.c, which READs, and remote_follow.c, which decides what.
 *
 * Model:     what is READ lands in slots: the note of an element and its data, in any order. The
 *            READs are posted when a look, or an arrival, has said that the element is published,
 *            and they count once a look that was posted after the last of them had completed says
 *            that its place was not claimed anew. A look is a READ of the line of words that
 *            change; it has a queue pair of its own, so that it does not wait behind data.
 * Threads:   the follower's. The endpoint is polled only inside of its calls. */
#ifndef SL_SHARE_REMOTE_FOLLOW_H
#define SL_SHARE_REMOTE_FOLLOW_H

#include "net/verbs/verbs.h"
#include "share/follower.h"
#include "share/remote.h"

enum {
	SL_SHARE_SLOTS = 8,		  /* elements in flight */
	SL_SHARE_PART = SL_SHARE_SLOTS,	  /* the slot of sl_follow_fetch() */
	SL_SHARE_SLOT_BYTES = 2 << 20,	  /* of all slots: more would not stay in the cache */
	SL_SHARE_SENDS = 64,		  /* of a queue pair: READs of all slots */
	SL_SHARE_READS_OF_SLOT = 2,	  /* that are posted at a time, besides that of its note */
	SL_SHARE_ARRIVALS_AT_A_TIME = 64, /* that the share may send before it hears of us */
};

enum sl_share_slot_state {
	SL_SHARE_FREE,
	SL_SHARE_READING,
	SL_SHARE_READ, /* all of it is here, and a look must follow */
	SL_SHARE_WHOLE,
	SL_SHARE_LOST, /* overtaken */
};

struct sl_share_slot {
	enum sl_share_slot_state state;
	bool ahead;		     /* it lands in `own`, not in the caller's memory */
	struct sl_share_local local; /* `own`, where a NIC reads into it */
	uint64_t n;
	uint64_t from, bytes, posted; /* offset in the share's memory */
	unsigned reads;		      /* under way */
	uint64_t look;		      /* number of the look that decides; 0: not posted yet */
	uint8_t *to, *own;	      /* own: NULL: not needed yet */
	uint64_t own_bytes;
	struct sl_share_place place;
};

enum sl_share_step { /* of attaching */
		     SL_SHARE_ATTACHED,
		     SL_SHARE_BEGINS,
		     SL_SHARE_ASKED, /* CONNECT was sent */
		     SL_SHARE_LOOKS_FIRST,
};

struct sl_share_remote_follower {
	struct sl_share_remote_hello hello;
	char secret[SL_SHARE_SECRET];
	char host[SL_SHARE_REMOTE_HOST];
	char device[SL_VERBS_NAME_BYTES]; /* "": a UDP socket */
	struct sl_share_rdma *rdma;
	struct sl_share_local self; /* this structure: looks and notes land in it */
	enum sl_share_step step;
	unsigned tries;		/* to attach, that have failed */
	uint64_t first_look;	/* number of the look that ends the attempt */
	uint64_t attach_end_ns; /* when to give up, though calls have more time; 0: not attaching */
	struct sl_share_queue *queue[SL_SHARE_QUEUES];
	uint64_t epoch; /* of these queue pairs: their work has it in its id */
	struct sl_share_remote_end ours;
	struct sl_share_remote_offer there;
	struct sl_share_remote_line *line; /* the share WRITEs here */
	uint32_t line_key;

	struct sl_share_words words; /* a look lands here ... */
	uint64_t published, claimed; /* ... and is kept here */
	enum sl_share_state state;
	uint64_t ended_look; /* number of the first look that saw the end; 0: none has */
	uint64_t flag;	     /* published, as far as it is known */
	uint64_t looks_posted, looks_done; /* one at a time */
	struct sl_idle idle;
	uint64_t slow_ns;  /* next look, though nothing arrived */
	uint64_t pause_ns; /* between such looks */
	bool granted;	   /* the share may WRITE to the line */
	unsigned failures; /* of queue pairs, since an element came */
	int failed;	   /* enum sl_status of a READ; 0: none */
	int over;	   /* -errno: the share is gone */
	unsigned depth;	   /* slots in use */
	struct sl_share_slot slot[SL_SHARE_SLOTS + 1];
};

/* remote_read.c */
extern const struct sl_follower_ops sl_follower_there;
void sl_share_slots_reset(struct sl_follower *f); /* queue pairs are new, and so may the layout
						   * of `there` be */
void sl_share_slots_fini(struct sl_follower *f);
/* Begin to READ a part of element n's data, which is published, and its note. to: NULL: ahead. Over
 * a NIC everything is ahead: data land in memory that is registered with it. -ENOMEM: there is
 * none. */
int sl_share_slot_begin(struct sl_follower *f, struct sl_share_slot *slot, uint64_t n,
			uint64_t offset, uint64_t bytes, void *to);
/* Post a look, unless one is under way. */
void sl_share_look_post(struct sl_share_remote_follower *r);
/* An element has come: the next look without an arrival is due after a short pause again. */
void sl_share_look_soon(struct sl_share_remote_follower *r);
/* Take what has arrived, and post what follows from it. Whether there was anything. */
bool sl_share_pump(struct sl_follower *f);
/* Sleep until something arrives, or until then. */
void sl_share_pump_wait(struct sl_follower *f, uint64_t end_ns);
/* What is known without asking. */
uint64_t sl_share_known(const struct sl_follower *f);

/* remote_greet.c: TCP and the secret. */
int sl_share_remote_read_secret(struct sl_follower *f, const struct sl_follow_options *options,
				struct sl_remote_error *error);
int sl_share_remote_dial(struct sl_follower *f, uint16_t port, uint64_t end_ns,
			 struct sl_remote_error *error);
int sl_share_remote_greet(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error);
/* The next answer, in f->in: it has this type and length, or it is an error. */
int sl_share_remote_hear(struct sl_follower *f, enum sl_share_frame_type type, uint64_t bytes,
			 uint64_t end_ns, struct sl_remote_error *error);

/* remote_attach.c */
/* New queue pairs. -ETIMEDOUT, -EAGAIN, -ENOBUFS: call again to go on; -ESTALE: they reach memory
 * of another layout; another -errno: it cannot be done. */
int sl_share_remote_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error);
void sl_share_remote_leave(struct sl_follower *f);

#endif
