/* watch.h - is a source silent, and has everything come that it sent? The one answer for every
 * driver and for the dispatcher.
 *
 * Model:     a source is quiet from the moment at which data last came, or a word of it was heard.
 *            It is drained when it has been quiet for SL_WATCH_DRAIN_NS and the link has looked
 *            SL_WATCH_LOOKS times meanwhile and found nothing: packets may be on their way longer
 *            than the word that they were sent, and a link thread without a cpu sees nothing. It is
 *            silent when it has been quiet for its limit, as far as the link has looked: packets
 *            that wait in a buffer of this host are no silence. A source that cannot send, because
 *            no slot is open for its next block, is held: that is not silence.
 * Threads:   pure functions of what is passed in, times included. The watch is the caller's. */
#ifndef SL_CORE_WATCH_H
#define SL_CORE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define SL_WATCH_DRAIN_NS UINT64_C(200000000)
enum { SL_WATCH_LOOKS = 3 };

struct sl_progress {	/* what was seen of one module's data */
	uint64_t first; /* sequence with which this run begins */
	uint64_t end; /* the sequence after the last one that was offered; UINT64_MAX: not known */
	uint64_t reached;	/* 1 + the highest sequence of which anything arrived */
	uint64_t opened;	/* sequences below it have or had a slot */
	uint32_t packets;	/* of sequence reached - 1 */
	uint32_t packets_whole; /* of a block; 0: not known */
	uint64_t idle;		/* how often the link looked and found nothing */
	uint64_t looked_ns;	/* what came by then has been taken (look.h); 0: not known */
	uint64_t arrived;	/* packets that were placed, of all modules together */
	bool waits;		/* it can be held back: by credits, or told to come again */
	bool failed;		/* its reliable connection has: nothing more will come */
};

/* No block of it is under way. */
bool sl_progress_between_blocks(const struct sl_progress *progress);

/* No slot is open for its next block. */
bool sl_progress_is_held(const struct sl_progress *progress);

/* 0: it may be quiet for ever. */
struct sl_watch_limits {
	uint64_t first_ns;   /* before anything came of it */
	uint64_t silence_ns; /* afterwards */
	/* Looks in vain before it is called silent. 0 where modules are watched one by one: the
	 * thread of a link that serves busy modules may never find nothing. */
	uint32_t looks;
};

struct sl_sight {		   /* what there is of a source at one moment */
	uint64_t arrived, packets; /* one of them changes when data come; both 0: none so far */
	uint64_t idle, looked_ns;  /* as above */
	uint64_t word_ns;	   /* when it last spoke; 0: it does not */
	bool held;
};

struct sl_watch { /* zeroed: the next look is the first */
	struct sl_sight seen;
	uint64_t quiet_since_ns, quiet_idle;
};

enum sl_watch_says { SL_WATCH_ALIVE, SL_WATCH_HELD, SL_WATCH_DRAINED, SL_WATCH_SILENT };

/* limits: NULL: it is never silent. */
enum sl_watch_says sl_watch_look(struct sl_watch *watch, const struct sl_watch_limits *limits,
				 const struct sl_sight *sight, uint64_t now_ns);

/* The same of one module, from its progress. */
enum sl_watch_says sl_watch_module(struct sl_watch *watch, const struct sl_watch_limits *limits,
				   const struct sl_progress *progress, uint64_t now_ns);

#endif
