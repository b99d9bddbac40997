/* experiment.h - an experiment file's detector and stages in one process, without a link: frames as
 * the emulator would send them, given to a unit or a sink by hand.
 *
 * Threads:   one; the caller is the unit's only worker.
 * Ownership: bench_experiment_close() frees all of it; frames belong to the pool. */
#ifndef SL_BENCH_PART_EXPERIMENT_H
#define SL_BENCH_PART_EXPERIMENT_H

#include <sluice/env.h>

#include "base/bell.h"
#include "experiment/experiment.h"
#include "receiver/chain.h"
#include "receiver/pool.h"

enum { BENCH_BATCHES = 4 }; /* of frames in the pool: their results are larger than caches */

struct bench_experiment {
	struct sl_experiment *e;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	struct sl_env env;
	struct sl_chain_build build;
	struct sl_pool pool;
	struct sl_bell todo, done;
	struct sl_frame **line; /* [batch_frames] */
	uint32_t batch, next;	/* frames in a batch; of the pool, the next to use */
	uint64_t sequence;
};

/* Every frame is rendered ahead. 0 or -errno; errors are logged. On failure, close as well. */
int bench_experiment_open(struct bench_experiment *b, const char *path,
			  const char *const *overrides, size_t n);
void bench_experiment_close(struct bench_experiment *b);

/* The next `frames` frames (at most a batch) of the detector, from number `first`, complete and
 * unjudged. */
int bench_experiment_fill(struct bench_experiment *b, uint64_t first, uint32_t frames, bool dark,
			  struct sl_batch *batch);

/* Through all stages. */
int bench_experiment_process(struct bench_experiment *b, struct sl_batch *batch);

uint64_t bench_experiment_frame_bytes(const struct bench_experiment *b);

#endif
