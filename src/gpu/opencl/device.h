/* device.h - between the files of the OpenCL platform.
 *
 * Two things that OpenCL 1.2 does not have are made here (graph.c): launches that are kept
 * and done again, and queues that wait for a word of the host. The latter is looked at whenever the
 * host asks how far a queue has come; so it is for CPUs, where the host sees what queues write. */
#ifndef SL_GPU_OPENCL_DEVICE_H
#define SL_GPU_OPENCL_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/device.h"
#include "gpu/opencl/library.h"

enum { SL_OPENCL_GATES = 32 };

/* A queue stands still before it. */
struct sl_opencl_gate {
	cl_event event; /* NULL: there is none */
	const _Atomic uint32_t *word;
	uint32_t value;
};

struct sl_opencl_device {
	struct sl_device base;
	const struct sl_opencl_library *cl;
	cl_device_id id;
	cl_context context;
	cl_command_queue own; /* to map pinned memory */
	bool is_host;	      /* the device is the host's CPU, and its memory the host's */
	pthread_mutex_t lock; /* of gates: a device may be opened for two units of one process */
	struct sl_opencl_gate gate[SL_OPENCL_GATES];
	char problem[SL_DEVICE_TEXT];
};

struct sl_device_queue {
	struct sl_opencl_device *device;
	cl_command_queue queue;
	struct sl_device_graph *capturing; /* NULL: what is queued is done */
};

struct sl_device_kernel {
	struct sl_opencl_device *device;
	cl_kernel kernel;
};

/* 0, or what the error means; noted as the device's problem. */
static inline int sl_opencl_fail(struct sl_opencl_device *device, const char *call, cl_int error)
{
	if (error == CL_SUCCESS)
		return 0;
	snprintf(device->problem, sizeof(device->problem), "%s: %s (%d)", call,
		 sl_opencl_error(error), error);
	return sl_opencl_errno(error);
}

/* ---- queue.c: of struct sl_platform ---- */

int sl_opencl_queue_open(struct sl_device *device, struct sl_device_queue **queue);
void sl_opencl_queue_close(struct sl_device_queue *queue);
int sl_opencl_write(struct sl_device_queue *queue, const struct sl_device_memory *to,
		    uint64_t offset, const void *from, uint64_t row_bytes, uint64_t rows,
		    uint64_t pitch);
int sl_opencl_read(struct sl_device_queue *queue, void *to, const struct sl_device_memory *from,
		   uint64_t offset, uint64_t bytes);
int sl_opencl_flush(struct sl_device_queue *queue);
int sl_opencl_mark_open(struct sl_device *device, struct sl_device_mark **mark);
void sl_opencl_mark_close(struct sl_device_mark *mark);
int sl_opencl_mark(struct sl_device_queue *queue, struct sl_device_mark *mark);
int sl_opencl_wait(struct sl_device_queue *queue, struct sl_device_mark *mark);
int sl_opencl_reached(struct sl_device_mark *mark);
int sl_opencl_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		     const struct sl_device_range *range, const struct sl_device_argument *argument,
		     unsigned arguments);
int sl_opencl_zero(struct sl_device_queue *queue, const struct sl_device_memory *to,
		   uint64_t offset, uint64_t bytes);

/* ---- graph.c ---- */

int sl_opencl_wait_value(struct sl_device_queue *queue, const struct sl_device_memory *word,
			 uint64_t offset, uint32_t value);
/* Gates whose word has come open. */
void sl_opencl_open_gates(struct sl_opencl_device *device);

int sl_opencl_graph_begin(struct sl_device_queue *queue);
int sl_opencl_graph_end(struct sl_device_queue *queue, struct sl_device_graph **graph);
int sl_opencl_graph_end_looped(struct sl_device_queue *queue, const struct sl_device_memory *stop,
			       struct sl_device_graph **graph);
int sl_opencl_play(struct sl_device_queue *queue, struct sl_device_graph *graph);
void sl_opencl_graph_close(struct sl_device_graph *graph);

int sl_opencl_graph_launch(struct sl_device_graph *graph, struct sl_device_kernel *kernel,
			   const struct sl_device_range *range,
			   const struct sl_device_argument *argument, unsigned arguments);
int sl_opencl_graph_zero(struct sl_device_graph *graph, const struct sl_device_memory *to,
			 uint64_t offset, uint64_t bytes);

#endif
