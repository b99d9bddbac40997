/* ingest.c - sluice bench gpu: what five sources write, through the unit, for as long as
 * --seconds says.
 *
 *   PLATFORM/ingest/resident         pixels are in the rings and stay; sources write a stamp of 16
 *                                    bytes into each event, and its record
 *   PLATFORM/ingest/resident/lists   likewise, and 15 % of what comes in goes back as lists
 *   PLATFORM/ingest/written          sources write all pixels of every event */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "bench/gpu/ingest.h"

enum { BUFFERS = 64, WARM = 32 }; /* 32 may be in the unit: the others are being written */
#define TIMEOUT_NS 20000000000ull

int sl_bench_gpu_ingest(const struct sl_bench *bench, const struct sl_bench_row *row,
			struct sl_device *device, struct sl_bench_sample *sample)
{
	const struct sl_ingest_terms terms = {
		.buffers = BUFFERS,
		.warm = WARM,
		.written = row->gpu->way == SL_BENCH_GPU_WRITTEN,
		.run_ns = (uint64_t)(1e9 * bench->o.seconds),
		.timeout_ns = TIMEOUT_NS,
	};
	struct sl_ingest *g = calloc(1, sizeof(*g));
	struct sl_ingest_result r;
	int err = g ? sl_ingest_open(g, &terms, row, &bench->stages->scene[row->size], device)
		    : -ENOMEM;

	if (err)
		return err;
	err = sl_ingest_run(g, &r);
	if (err) {
		sl_error("%s (of %" PRIu64 ": %" PRIu64 " good, %" PRIu64 " wrong, %" PRIu64
			 " unanswered)",
			 r.why, r.published, r.good, r.wrong, r.unanswered);
		return err == -ENODEV ? -EIO : err;
	}
	sample->GB_per_s = (double)r.bytes_in / (double)r.took_ns;
	sample->out_GB_per_s = (double)r.bytes_out / (double)r.took_ns;
	sample->took_s = 1e-9 * (double)r.took_ns;
	sample->bytes = r.bytes_in;
	sample->count = r.events;
	sample->kept = r.kept;
	sample->published = r.published;
	sample->good = r.good;
	sample->wrongs = r.wrong;
	sample->unanswered = r.unanswered;
	sample->frame_bytes = SL_INGEST_SOURCES * g->module_bytes;
	sample->frame_items = 1;
	sl_bench_quantiles(r.ns, r.times, sample->quantile_us);
	return 0;
}
