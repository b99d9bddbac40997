/* follower.h - a follower between its files: follow.c reads elements, attach.c talks to the
 * share. */
#ifndef SL_SHARE_FOLLOWER_H
#define SL_SHARE_FOLLOWER_H

#include "share/private.h"

struct sl_follower {
	char name[SL_REGISTRY_NAME];
	int socket;
	struct sl_share_memory memory;
	const struct sl_share_words *words; /* in it */
	struct sl_share_description description;
	uint64_t first;	   /* n of this generation's first element */
	uint64_t next;	   /* no element before this one is wanted */
	uint64_t after;	   /* one more than that of the last element that was delivered */
	bool had;	   /* there was one */
	uint64_t seen;	   /* `published` when it was looked at last */
	uint32_t wake;	   /* the word `wake` then */
	uint64_t seen_ns;  /* when one of them was found changed */
	uint64_t alive_ns; /* when the writer was known to live */
	bool said;	   /* that it sleeps */
	uint64_t pings;
	struct sl_share_in in;
	struct sl_share_out out;
	struct sl_share_inbox inbox;
};

uint64_t sl_share_end_ns(int timeout_ms); /* UINT64_MAX: no end */
int sl_share_left_ms(uint64_t end_ns);	  /* -1: no end */

/* attach.c */
/* Get the share's memory as it is now, in the place of what there was. error: NULL is fine. */
int sl_follower_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error);
/* Send a frame. -EAGAIN: the socket has been full until end_ns. */
int sl_follower_say(struct sl_follower *f, enum sl_share_frame_type type, uint64_t value,
		    const void *payload, uint64_t bytes, uint64_t end_ns);

#endif
