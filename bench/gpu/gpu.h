/* gpu.h - rows of `sluice bench gpu`.
 *
 * Model:     a row is a chain of stages, or a kind of copy, on a platform.
 * Threads:   each row is measured by a process of its own, in every round.
 * Ownership: rows are constants of rows.c.
 * Cost:      none of it is in the data path. */
#ifndef SL_BENCH_GPU_GPU_H
#define SL_BENCH_GPU_GPU_H

#include <stdatomic.h>

#include "bench/trigger/trigger.h"
#include "gpu/ring/ring.h"

extern const struct sl_kernels sl_kernels_checksum, sl_kernels_copy;

enum { SL_BENCH_GPU_STACK = 10 }; /* frames of rows that are kernels alone */

enum sl_bench_gpu_way {
	SL_BENCH_GPU_KERNELS,
	SL_BENCH_GPU_COPY, /* within the device's memory */
	SL_BENCH_GPU_UP,
	SL_BENCH_GPU_DOWN,
	SL_BENCH_GPU_UNIT,     /* all of it, as in a run */
	SL_BENCH_GPU_RING,     /* an event through a ring, and its result back */
	SL_BENCH_GPU_RESIDENT, /* five rings through the unit; pixels stay */
	SL_BENCH_GPU_WRITTEN,  /* likewise; pixels are written */
	SL_BENCH_GPU_PACED,    /* events through the unit, at a rate */
};

struct sl_bench_gpu {
	struct sl_bench_work work;
	enum sl_bench_gpu_way way;
	enum sl_bench_size size;
	uint32_t stack;
	double most_us; /* hoped for: a frame, or an event; 0: nothing is */
	/* SL_BENCH_GPU_PACED: events that come, in millions; the unit's trigger, if it is not that
	 * of a run that says nothing */
	double M_per_s;
	const char *unit_trigger;
	/* of rings: */
	uint32_t event_bytes, buffers;	       /* buffers 0: 16 */
	bool at_once;			       /* each as soon as the one before is through */
	bool tagged, on_device, cells;	       /* cells: of tracks, nothing else */
	bool alone;			       /* events are all there: the kernel's own time */
	const struct sl_bench_trigger *tracks; /* of sectors: cells and bend; NULL: `weigh` */
};

/* Frames through the unit. */
int sl_bench_gpu_unit(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample);

/* The unit of a row, with options, up to the first that is NULL: after sl_bench_subject_open(). */
int sl_bench_unit_open(struct sl_bench_subject *s, const char *name,
		       const char *const (*options)[2], unsigned n);

struct sl_bench_worker { /* a thread for the unit's work() */
	struct sl_thread thread;
	struct sl_bench_subject *subject;
	_Atomic bool stop;
};

int sl_bench_worker_start(struct sl_bench_worker *worker, struct sl_bench_subject *s);
void sl_bench_worker_stop(struct sl_bench_worker *worker);

struct sl_device;

/* What five sources write, through the unit. */
int sl_bench_gpu_ingest(const struct sl_bench *bench, const struct sl_bench_row *row,
			struct sl_device *device, struct sl_bench_sample *sample);

/* Events at a rate, through the unit. */
int sl_bench_gpu_paced(const struct sl_bench *bench, const struct sl_bench_row *row,
		       struct sl_device *device, struct sl_bench_sample *sample);

/* Of an event at a time, from before it is written until its result is here. */
int sl_bench_gpu_ring(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_device *device, struct sl_bench_sample *sample);

/* Events that are all in the device's memory, one after another by one group: the kernel alone. The
 * quantiles are over runs of all of them. */
struct sl_bench_alone {
	const struct sl_device_ring_work *work;
	uint32_t threads, bytes, result_bytes; /* bytes: of an event */
	uint64_t events;		       /* that there are */
	void *arg;
	const void *(*event)(void *arg, uint64_t n);
	bool (*is_right)(void *arg, uint64_t n, const struct sl_device_ring_completion *record,
			 const void *result);
};

int sl_bench_gpu_alone(struct sl_device *device, const struct sl_bench_alone *terms,
		       uint64_t most_ns, struct sl_bench_sample *sample);

#endif
