/* device.h - between the files of the CUDA platform. */
#ifndef SL_GPU_CUDA_DEVICE_H
#define SL_GPU_CUDA_DEVICE_H

#include <stdio.h>

#include "core/device.h"
#include "gpu/cuda/library.h"

struct sl_cuda_device {
	struct sl_device base;
	const struct sl_cuda_library *cu;
	CUdevice id;
	CUcontext context;
	char problem[SL_DEVICE_TEXT];
};

struct sl_device_queue {
	struct sl_cuda_device *device;
	CUstream stream;
};

struct sl_device_mark {
	struct sl_cuda_device *device;
	CUevent event;
};

struct sl_device_program {
	struct sl_cuda_device *device;
	CUmodule module;
};

struct sl_device_kernel {
	struct sl_cuda_device *device;
	CUfunction function;
};

/* 0, or what the error means; noted as the device's problem. */
static inline int sl_cuda_fail(struct sl_cuda_device *device, const char *call, CUresult error)
{
	const char *name = NULL, *text = NULL;

	if (error == CUDA_SUCCESS)
		return 0;
	device->cu->p_cuGetErrorName(error, &name);
	device->cu->p_cuGetErrorString(error, &text);
	snprintf(device->problem, sizeof(device->problem), "%s: %s (%s)", call, name ? name : "?",
		 text ? text : "?");
	return sl_cuda_errno(error);
}

/* Its context is the thread's. */
static inline void sl_cuda_enter(const struct sl_cuda_device *device)
{
	device->cu->p_cuCtxSetCurrent(device->context);
}

/* ---- queue.c: of struct sl_platform ---- */

int sl_cuda_queue_open(struct sl_device *device, struct sl_device_queue **queue);
void sl_cuda_queue_close(struct sl_device_queue *queue);
int sl_cuda_write(struct sl_device_queue *queue, const struct sl_device_memory *to, uint64_t offset,
		  const void *from, uint64_t row_bytes, uint64_t rows, uint64_t pitch);
int sl_cuda_read(struct sl_device_queue *queue, void *to, const struct sl_device_memory *from,
		 uint64_t offset, uint64_t bytes);
int sl_cuda_zero(struct sl_device_queue *queue, const struct sl_device_memory *to, uint64_t offset,
		 uint64_t bytes);
int sl_cuda_flush(struct sl_device_queue *queue);
int sl_cuda_mark_open(struct sl_device *device, struct sl_device_mark **mark);
void sl_cuda_mark_close(struct sl_device_mark *mark);
int sl_cuda_mark(struct sl_device_queue *queue, struct sl_device_mark *mark);
int sl_cuda_wait(struct sl_device_queue *queue, struct sl_device_mark *mark);
int sl_cuda_reached(struct sl_device_mark *mark);
int sl_cuda_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		   const struct sl_device_range *range, const struct sl_device_argument *argument,
		   unsigned arguments);

/* ---- graph.c ---- */

int sl_cuda_wait_value(struct sl_device_queue *queue, const struct sl_device_memory *word,
		       uint64_t offset, uint32_t value);

int sl_cuda_graph_begin(struct sl_device_queue *queue);
int sl_cuda_graph_end(struct sl_device_queue *queue, struct sl_device_graph **graph);
int sl_cuda_graph_end_looped(struct sl_device_queue *queue, const struct sl_device_memory *stop,
			     struct sl_device_graph **graph);
int sl_cuda_play(struct sl_device_queue *queue, struct sl_device_graph *graph);
void sl_cuda_graph_close(struct sl_device_graph *graph);

#endif
