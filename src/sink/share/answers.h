/* answers.h - what followers of a run's share say about its elements, and how long that took.
 *
 * Model:     a message of the kind SL_ANSWER_KIND that begins with the number n of an element
 *            (8 bytes, in the byte order of this host) is an answer to it. Its time runs from the
 *            element's commit until the message is here: by one clock, wherever the follower is.
 *            Answers to one of the last SL_ANSWER_ELEMENTS elements are timed; all other messages
 *            are counted.
 * Threads:   committed() belongs to the thread that publishes; a thread of its own takes messages.
 * Ownership: the caller's struct, zeroed, which stays where it is between start and stop. */
#ifndef SL_SINK_SHARE_ANSWERS_H
#define SL_SINK_SHARE_ANSWERS_H

#include <sluice/share.h>

#include "base/histogram.h"
#include "base/thread.h"

enum { SL_ANSWER_KIND = 1, SL_ANSWER_ELEMENTS = 4096 };

struct sl_answers {
	struct sl_share *share;
	struct sl_thread thread;
	_Atomic uint32_t ends;
	_Atomic uint64_t messages;
	_Atomic uint64_t next; /* no element from this one on has been published */
	_Atomic uint64_t committed_ns[SL_ANSWER_ELEMENTS];
	struct sl_histogram ns; /* of answers */
};

/* Messages of this share come here from now on. 0 or -errno. */
int sl_answers_start(struct sl_answers *answers, struct sl_share *share);
void sl_answers_stop(struct sl_answers *answers); /* nothing when it was not started */

/* Before element n is committed, and after it. */
void sl_answers_committed(struct sl_answers *answers, uint64_t n, uint64_t now_ns);

#endif
