/* queue.c - queues of a CUDA device (streams): copies, marks and launches go through them. */
#include <errno.h>
#include <stdlib.h>

#include "core/device.h"
#include "gpu/cuda/device.h"

/* ---- queues ---- */

int sl_cuda_queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	struct sl_device_queue *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->device = d;
	sl_cuda_enter(d);
	err = sl_cuda_fail(d, "cuStreamCreate",
			   d->cu->p_cuStreamCreate(&q->stream, CU_STREAM_NON_BLOCKING));
	if (err)
		free(q);
	else
		*queue = q;
	return err;
}

void sl_cuda_queue_close(struct sl_device_queue *q)
{
	sl_cuda_enter(q->device);
	q->device->cu->p_cuStreamDestroy(q->stream);
	free(q);
}

int sl_cuda_write(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		  const void *from, uint64_t row_bytes, uint64_t rows, uint64_t pitch)
{
	const struct sl_cuda_library *cu = q->device->cu;
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to->address + offset,
		.dstPitch = row_bytes,
		.WidthInBytes = row_bytes,
		.Height = rows,
	};

	sl_cuda_enter(q->device);
	if (rows == 1 || pitch == row_bytes)
		return sl_cuda_fail(q->device, "cuMemcpyHtoDAsync",
				    cu->p_cuMemcpyHtoDAsync(to->address + offset, from,
							    row_bytes * rows, q->stream));
	return sl_cuda_fail(q->device, "cuMemcpy2DAsync", cu->p_cuMemcpy2DAsync(&copy, q->stream));
}

int sl_cuda_read(struct sl_device_queue *q, void *to, const struct sl_device_memory *from,
		 uint64_t offset, uint64_t bytes)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(
		q->device, "cuMemcpyDtoHAsync",
		q->device->cu->p_cuMemcpyDtoHAsync(to, from->address + offset, bytes, q->stream));
}

int sl_cuda_zero(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		 uint64_t bytes)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(
		q->device, "cuMemsetD8Async",
		q->device->cu->p_cuMemsetD8Async(to->address + offset, 0, bytes, q->stream));
}

int sl_cuda_flush(struct sl_device_queue *q)
{
	return 0; /* CUDA holds nothing back */
}

/* ---- marks ---- */

int sl_cuda_mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	struct sl_device_mark *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->device = d;
	sl_cuda_enter(d);
	err = sl_cuda_fail(d, "cuEventCreate",
			   d->cu->p_cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING));
	if (err)
		free(m);
	else
		*mark = m;
	return err;
}

void sl_cuda_mark_close(struct sl_device_mark *m)
{
	sl_cuda_enter(m->device);
	m->device->cu->p_cuEventDestroy(m->event);
	free(m);
}

int sl_cuda_mark(struct sl_device_queue *q, struct sl_device_mark *m)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuEventRecord",
			    q->device->cu->p_cuEventRecord(m->event, q->stream));
}

int sl_cuda_wait(struct sl_device_queue *q, struct sl_device_mark *m)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuStreamWaitEvent",
			    q->device->cu->p_cuStreamWaitEvent(q->stream, m->event, 0));
}

int sl_cuda_reached(struct sl_device_mark *m)
{
	CUresult error;

	sl_cuda_enter(m->device);
	error = m->device->cu->p_cuEventQuery(m->event);
	if (error == CUDA_ERROR_NOT_READY)
		return 0;
	return error == CUDA_SUCCESS ? 1 : sl_cuda_fail(m->device, "on the device", error);
}

/* ---- kernels ---- */

int sl_cuda_launch(struct sl_device_queue *q, struct sl_device_kernel *k,
		   const struct sl_device_range *range, const struct sl_device_argument *argument,
		   unsigned arguments)
{
	void *list[SL_DEVICE_ARGUMENTS];
	unsigned groups[3];

	if (arguments > SL_DEVICE_ARGUMENTS)
		return -EINVAL;
	for (unsigned i = 0; i < arguments; i++)
		list[i] = argument[i].memory ? (void *)&argument[i].memory->address
					     : (void *)argument[i].value;
	for (unsigned i = 0; i < 3; i++)
		groups[i] = range->groups[i] ? range->groups[i] : 1;
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuLaunchKernel",
			    q->device->cu->p_cuLaunchKernel(k->function, groups[0], groups[1],
							    groups[2], range->threads, 1, 1, 0,
							    q->stream, list, NULL));
}
