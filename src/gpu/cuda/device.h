/* device.h - between the files of the CUDA platform. */
#ifndef SL_GPU_CUDA_DEVICE_H
#define SL_GPU_CUDA_DEVICE_H

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
int sl_cuda_fail(struct sl_cuda_device *device, const char *call, CUresult error);

/* Its context is the thread's. */
void sl_cuda_enter(const struct sl_cuda_device *device);

/* ---- graph.c ---- */

int sl_cuda_wait_value(struct sl_device_queue *queue, const struct sl_device_memory *word,
		       uint64_t offset, uint32_t value);

int sl_cuda_record_begin(struct sl_device_queue *queue);
int sl_cuda_record_end(struct sl_device_queue *queue, struct sl_device_record **record);
int sl_cuda_record_end_looped(struct sl_device_queue *queue, const struct sl_device_memory *stop,
			      struct sl_device_record **record);
int sl_cuda_play(struct sl_device_queue *queue, struct sl_device_record *record);
void sl_cuda_record_close(struct sl_device_record *record);

#endif
