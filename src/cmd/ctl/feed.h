/* feed.h - statuses of sessions as they change, of this host or of a service.
 *
 * Model:     a thread watches, the caller takes what has come. At most 256 messages wait: the
 *            oldest go.
 * Threads:   open, take and close: one at a time.
 * Ownership: texts of a message belong to it, until `each` returns. */
#ifndef SL_CMD_CTL_FEED_H
#define SL_CMD_CTL_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/remote/remote.h"

struct sl_ctl_feed;

enum sl_ctl_feed_kind {
	SL_CTL_FEED_STATUS,  /* text: JSON of a status */
	SL_CTL_FEED_LIST,    /* text: JSON of all sessions, of a service */
	SL_CTL_FEED_STATE,   /* name and state, where there is no status: "crashed", "closed" ... */
	SL_CTL_FEED_PROBLEM, /* text: why nothing comes; "": it comes again */
};

struct sl_ctl_feed_message {
	struct sl_ctl_feed_message *next;
	enum sl_ctl_feed_kind kind;
	char name[64], *text;
};

struct sl_ctl_feed_options {
	struct sl_api *host;	 /* the feed's alone, to its end. NULL: this host */
	const char *const *only; /* names; none: all */
	size_t onlys;
	uint32_t interval_ms;
};

int sl_ctl_feed_open(const struct sl_ctl_feed_options *options, struct sl_ctl_feed **feed);
int sl_ctl_feed_fd(const struct sl_ctl_feed *feed); /* can be read when there is a message */
void sl_ctl_feed_take(struct sl_ctl_feed *feed,
		      void (*each)(void *arg, const struct sl_ctl_feed_message *message),
		      void *arg);
/* Of a service: takes up to two seconds, as its thread waits for the next event; the host is of no
 * use afterwards. */
void sl_ctl_feed_close(struct sl_ctl_feed *feed);

#endif
