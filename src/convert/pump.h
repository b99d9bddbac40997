/* pump.h - frames of a recorded run into a sink, in their order, read and prepared on several
 * threads.
 *
 * Model:     threads take entry after entry, read and check it, and let the sink prepare it; the
 *            calling thread puts them in order, and calls `after` for each. A sink without workers
 *            gets put().
 * Threads:   the caller's is the sink's own thread; those of the pump are its workers.
 * Ownership: a frame is valid until `after` returns.
 * Cost:      memory for 2 frames per thread, and one. */
#ifndef SL_CONVERT_PUMP_H
#define SL_CONVERT_PUMP_H

#include <sluice/sink.h>

#include "convert/recorded.h"

struct sl_pump {
	const struct sl_recorded *from;
	uint64_t first, end; /* entries */
	uint64_t prepared;   /* entries before this one need not be prepared */
	const struct sl_sink *sink;
	void *state; /* of the sink, which is open */
	/* After entry i was put; an error ends the pump. */
	int (*after)(void *arg, uint64_t i, const struct sl_frame *frame);
	void *arg;
};

/* 0 or the first error; logged. */
int sl_pump_run(const struct sl_pump *pump);

#endif
