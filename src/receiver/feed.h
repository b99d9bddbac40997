/* feed.h - one detector of a receiver: its modules, its ring, the link that fills it, and the
 * assembler that empties it.
 *
 * Model:     modules of a receiver have numbers from 0 on, through all detectors; those of one
 *            detector follow each other. Ring, link and assembler of a detector count its own
 *            from 0.
 * Threads:   as core/ring.h says; the assembler is the dispatcher's.
 * Ownership: the memory under the ring stays from run to run (struct sl_feed_memory).
 * Cost:      two loads to find a module's feed. */
#ifndef SL_RECEIVER_FEED_H
#define SL_RECEIVER_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/link.h"
#include "core/ring.h"
#include "experiment/experiment.h"
#include "receiver/assemble/assembler.h"
#include "receiver/assemble/join.h"

enum { SL_FEEDS = SL_JOIN_DETECTORS };

struct sl_feed_memory {
	struct sl_geometry geometry; /* of feeds but the first; that one's is the receiver's */
	bool detector_open;
	void *link_options; /* the link's state before its first open: each run starts from it */
	struct sl_region region;
	int node;   /* where it lies; -1: there is one node, or it cannot be told */
	void *fill; /* ring.incomplete keep: the pixels of a missing module */
};

struct sl_feed {
	struct sl_receiver *receiver;
	struct sl_experiment *experiment; /* with its detector, link and ring */
	const struct sl_geometry *geometry;
	uint32_t first, modules;
	unsigned first_poller, pollers; /* link threads of the receiver that poll this link */
	const struct sl_link *link;
	void *link_state;
	bool link_open;
	uint32_t guards; /* of its sources, as the link is set */
	/* No slot is opened from this sequence on; the same, while the run is paused. */
	_Atomic uint64_t limit, pause_limit;
	/* Slots of its fullest module. Those of feed 0 are the receiver's (slots_used). */
	_Atomic uint64_t slots_now, slots_most;
	struct sl_ring ring;
	struct sl_assembler assembler;
};

/* Below, `of` is a receiver's table: the feed of each module. */

static inline uint64_t sl_feed_opened(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return sl_ring_opened(&f->ring, module - f->first);
}

static inline uint64_t sl_feed_reached(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return sl_ring_reached(&f->ring, module - f->first);
}

static inline uint32_t sl_feed_packets(struct sl_feed *const *of, uint64_t sequence,
				       uint32_t module)
{
	const struct sl_feed *f = of[module];

	return sl_ring_packets(&f->ring, sequence, module - f->first);
}

static inline bool sl_feed_event(struct sl_feed *const *of, uint64_t sequence, uint32_t module,
				 uint64_t *event_ns)
{
	const struct sl_feed *f = of[module];

	return sl_ring_event(&f->ring, sequence, module - f->first, event_ns);
}

static inline uint64_t sl_feed_looked_at(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return sl_ring_looked_at(&f->ring, module - f->first);
}

static inline uint32_t sl_feed_used(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return sl_ring_used(&f->ring, module - f->first);
}

/* Module-frames that were turned away so far. */
static inline uint64_t sl_feed_turned_away(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return atomic_load_explicit(&f->ring.lane[module - f->first].turned_away,
				    memory_order_relaxed);
}

/* The sequence of the oldest module-frame that was not given out, and where its source ended
 * (UINT64_MAX: not known). The dispatcher's. */
static inline uint64_t sl_feed_given_out(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return f->assembler.head[module - f->first].sequence;
}

static inline uint64_t sl_feed_end(struct sl_feed *const *of, uint32_t module)
{
	const struct sl_feed *f = of[module];

	return f->assembler.end[module - f->first];
}

#endif
