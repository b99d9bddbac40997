/* pool.h - the frames that travel: allocated once, with their views, verdicts and results.
 *
 * Threads:   get on the dispatcher's thread, put on the settling thread.
 * Ownership: results live in one region; frames come back to where they came from.
 * Cost:      no allocation after init. */
#ifndef SL_RECEIVER_POOL_H
#define SL_RECEIVER_POOL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sluice/frame.h>

#include "base/queue.h"
#include "core/region.h"

struct sl_flow_frame {
	struct sl_frame frame; /* first: a frame is found from it by a cast */
	struct sl_frame *part; /* [feeds]: what each detector has in it; NULL: there is one */
	bool done;	       /* the unit is through with it, or never had it */
	struct sl_pool *home;
	/* Dropped unprocessed: as many more came after it in a row, alike but for their numbers. */
	uint64_t more;
	/* How many of these the prompt sinks have had, and whether one has refused any (decide.c);
	 * the dispatcher's. */
	uint64_t prompted;
	bool prompt_refused;
	/* With the settler: what kind it is (enum sl_wants), and whether every sink that the
	 * settler itself gave the frame to has taken it. */
	uint32_t want;
	bool accepted;
	/* Sinks with threads of their own that still have it, without those of `lingers`
	 * (sink_threads.c); and: one of them has refused it. */
	_Atomic uint32_t at_sinks;
	_Atomic bool refused;
	/* Sinks that still have it, and that its outcome does not wait for (on_slow: drop). */
	_Atomic uint32_t lingers;
	/* A copy that is settled in its place, and waits for it as for a sink; NULL: none does. */
	struct sl_flow_frame *copy;
};

struct sl_pool {
	struct sl_flow_frame *frames;
	struct sl_frame *parts; /* [count][feeds]; NULL: one detector */
	struct sl_view *views;
	struct sl_verdict *verdicts;
	struct sl_region results;
	struct sl_queue free;
	uint32_t count;
};

/* Memory for the results of this many frames. */
uint64_t sl_pool_bytes(uint32_t count, const struct sl_shape *result, uint32_t results);

int sl_pool_init(struct sl_pool *pool, uint32_t count, uint32_t modules, unsigned feeds,
		 uint32_t items, const struct sl_shape *result, uint32_t results);
void sl_pool_fini(struct sl_pool *pool);

/* All frames are back, wherever they were; no thread uses the pool. */
void sl_pool_reset(struct sl_pool *pool);

struct sl_flow_frame *sl_pool_get(struct sl_pool *pool); /* NULL: all are travelling */
void sl_pool_put(struct sl_pool *pool, struct sl_flow_frame *frame);

#endif
