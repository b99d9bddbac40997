/* bench_gpu.h - rows of `sluice bench gpu`.
 *
 * Model:     a row is a chain of stages, or a kind of copy, on a platform.
 * Threads:   each row is measured by a process of its own, in every round.
 * Ownership: rows are constants of bench_gpu.c.
 * Cost:      none of it is in the data path. */
#ifndef SL_CMD_BENCH_GPU_H
#define SL_CMD_BENCH_GPU_H

#include "cmd/bench_trigger.h"
#include "gpuring/gpuring.h"

enum sl_bench_gpu_way {
	SL_BENCH_GPU_KERNELS,
	SL_BENCH_GPU_COPY, /* within the device's memory */
	SL_BENCH_GPU_UP,
	SL_BENCH_GPU_DOWN,
	SL_BENCH_GPU_UNIT, /* all of it, as in a run */
	SL_BENCH_GPU_RING  /* an event through a ring, and its result back */
};

struct sl_bench_gpu {
	struct sl_bench_work work;
	enum sl_bench_gpu_way way;
	enum sl_bench_size size;
	uint32_t stack;
	double most_us; /* hoped for: a frame, or an event; 0: nothing is */
	/* of rings: */
	enum sl_gpuring_trigger trigger;
	uint32_t event_bytes, buffers;	       /* buffers 0: 16 */
	bool tagged, on_device, cells;	       /* cells: of tracks, nothing else */
	const struct sl_bench_trigger *tracks; /* of sectors: cells and bend; NULL: `weigh` */
};

/* Frames through the unit. */
int sl_bench_gpu_unit(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample);
struct sl_device;

/* Of an event at a time, from before it is written until its result is here. */
int sl_bench_gpu_ring(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_device *device, struct sl_bench_sample *sample);

#endif
