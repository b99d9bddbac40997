/* samples.h - rates over the last one to two seconds, out of a status that is taken once a second.
 *
 * Threads:   one.
 * Ownership: plain memory; zeroes are the beginning. */
#ifndef SL_SESSION_SAMPLES_H
#define SL_SESSION_SAMPLES_H

#include <sluice/status.h>

#include "monitor/status_json.h"

struct sl_samples {
	struct sl_sample {
		uint64_t ns, frames, bytes; /* ns 0: none */
		uint64_t run;
	} sample[2]; /* of a second or two ago, of the last second */
};

void sl_samples_take(struct sl_samples *samples, const struct sl_status *now);
/* In the first seconds of a run: from its first frame on. 0 when no run is under way. */
struct sl_rates sl_samples_rates(const struct sl_samples *samples, const struct sl_status *now);

#endif
