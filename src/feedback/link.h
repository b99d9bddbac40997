/* link.h - a link by its name, for answers: what both ends of the way back to a front end share.
 *
 * Model:     a way is a link with its options, most of them their defaults, and the terms that
 *            follow from it: one message as the link does it best, a checksum where nothing else
 *            proves that a block is whole. The link is opened once per connection, each time from
 *            the options alone.
 * Threads:   one.
 * Ownership: owns the link's state; open() and close() of the link are the user's. */
#ifndef SL_FEEDBACK_LINK_H
#define SL_FEEDBACK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/link.h"

struct sl_feedback_link {
	const struct sl_link *link;
	void *state;   /* the link's */
	void *options; /* as it is before it is opened */
	uint16_t service, message;
	bool crc;
};

/* `what` begins messages: "answers", "feedback". service: enum sl_service. -EINVAL, logged: there
 * is no such link, it cannot be used here, it knows no way back or not that service. */
int sl_feedback_link_init(struct sl_feedback_link *over, const char *what, const char *link,
			  uint16_t service);
void sl_feedback_link_fini(struct sl_feedback_link *over);

/* Nothing happens where the link has no such option. -EINVAL, logged: it does not take that. */
int sl_feedback_link_set(struct sl_feedback_link *over, const char *what, const char *option,
			 const char *value);

/* As a link's open(): afresh. */
int sl_feedback_link_open(struct sl_feedback_link *over, const struct sl_link_env *env);

#endif
