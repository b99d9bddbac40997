/* bench_gpu.h - rows of `sluice bench gpu`.
 *
 * Model:     a row is a chain of stages, or a kind of copy, on a platform.
 * Threads:   each row is measured by a process of its own, in every round.
 * Ownership: rows are constants of bench_gpu.c.
 * Cost:      none of it is in the data path. */
#ifndef SL_CMD_BENCH_GPU_H
#define SL_CMD_BENCH_GPU_H

#include "cmd/bench_trigger.h"

enum sl_bench_gpu_way {
	SL_BENCH_GPU_KERNELS,
	SL_BENCH_GPU_COPY, /* within the device's memory */
	SL_BENCH_GPU_UP,
	SL_BENCH_GPU_DOWN,
	SL_BENCH_GPU_UNIT /* all of it, as in a run */
};

struct sl_bench_gpu {
	struct sl_bench_work work;
	enum sl_bench_gpu_way way;
	enum sl_bench_size size;
	uint32_t stack;
	double most_us; /* hoped for: a frame, or an event; 0: nothing is */
};

/* Frames through the unit. */
int sl_bench_gpu_unit(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample);

#endif
