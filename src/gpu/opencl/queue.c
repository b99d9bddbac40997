/* queue.c - queues of an OpenCL device: copies, marks and launches go through them. */
#include <errno.h>
#include <stdlib.h>

#include "core/device.h"
#include "gpu/opencl/device.h"

struct sl_device_mark {
	struct sl_opencl_device *device;
	cl_event event; /* NULL: never marked */
};

/* ---- queues ---- */

int sl_opencl_queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;
	struct sl_device_queue *q = calloc(1, sizeof(*q));
	cl_int error;

	if (!q)
		return -ENOMEM;
	q->device = d;
	q->queue = d->cl->clCreateCommandQueue(d->context, d->id, 0, &error);
	if (error != CL_SUCCESS) {
		free(q);
		return sl_opencl_fail(d, "clCreateCommandQueue", error);
	}
	*queue = q;
	return 0;
}

void sl_opencl_queue_close(struct sl_device_queue *q)
{
	q->device->cl->clReleaseCommandQueue(q->queue);
	free(q);
}

int sl_opencl_write(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		    const void *from, uint64_t row_bytes, uint64_t rows, uint64_t pitch)
{
	const struct sl_opencl_library *cl = q->device->cl;
	size_t there[3] = {offset, 0, 0}, here[3] = {0}, extent[3] = {row_bytes, rows, 1};

	if (rows == 1 || pitch == row_bytes)
		return sl_opencl_fail(q->device, "clEnqueueWriteBuffer",
				      cl->clEnqueueWriteBuffer(q->queue, to->handle, CL_FALSE,
							       offset, row_bytes * rows, from, 0,
							       NULL, NULL));
	return sl_opencl_fail(q->device, "clEnqueueWriteBufferRect",
			      cl->clEnqueueWriteBufferRect(q->queue, to->handle, CL_FALSE, there,
							   here, extent, row_bytes, 0, pitch, 0,
							   from, 0, NULL, NULL));
}

int sl_opencl_read(struct sl_device_queue *q, void *to, const struct sl_device_memory *from,
		   uint64_t offset, uint64_t bytes)
{
	return sl_opencl_fail(q->device, "clEnqueueReadBuffer",
			      q->device->cl->clEnqueueReadBuffer(q->queue, from->handle, CL_FALSE,
								 offset, bytes, to, 0, NULL, NULL));
}

int sl_opencl_zero(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		   uint64_t bytes)
{
	cl_uchar pattern = 0;

	if (q->capturing)
		return sl_opencl_graph_zero(q->capturing, to, offset, bytes);
	return sl_opencl_fail(q->device, "clEnqueueFillBuffer",
			      q->device->cl->clEnqueueFillBuffer(q->queue, to->handle, &pattern, 1,
								 offset, bytes, 0, NULL, NULL));
}

int sl_opencl_flush(struct sl_device_queue *q)
{
	sl_opencl_open_gates(q->device);
	return sl_opencl_fail(q->device, "clFlush", q->device->cl->clFlush(q->queue));
}

/* ---- marks ---- */

int sl_opencl_mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	struct sl_device_mark *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->device = (struct sl_opencl_device *)device;
	*mark = m;
	return 0;
}

static void forget(struct sl_device_mark *m)
{
	if (m->event)
		m->device->cl->clReleaseEvent(m->event);
	m->event = NULL;
}

void sl_opencl_mark_close(struct sl_device_mark *m)
{
	forget(m);
	free(m);
}

int sl_opencl_mark(struct sl_device_queue *q, struct sl_device_mark *m)
{
	forget(m);
	return sl_opencl_fail(
		q->device, "clEnqueueMarkerWithWaitList",
		q->device->cl->clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &m->event));
}

int sl_opencl_wait(struct sl_device_queue *q, struct sl_device_mark *m)
{
	if (!m->event)
		return 0;
	return sl_opencl_fail(
		q->device, "clEnqueueBarrierWithWaitList",
		q->device->cl->clEnqueueBarrierWithWaitList(q->queue, 1, &m->event, NULL));
}

int sl_opencl_reached(struct sl_device_mark *m)
{
	cl_int status = CL_COMPLETE, error;

	if (!m->event)
		return 1;
	sl_opencl_open_gates(m->device);
	error = m->device->cl->clGetEventInfo(m->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
					      sizeof(status), &status, NULL);
	if (error != CL_SUCCESS)
		return sl_opencl_fail(m->device, "clGetEventInfo", error);
	if (status < 0)
		return sl_opencl_fail(m->device, "on the device", status);
	return status == CL_COMPLETE;
}

/* ---- kernels ---- */

int sl_opencl_launch(struct sl_device_queue *q, struct sl_device_kernel *k,
		     const struct sl_device_range *range, const struct sl_device_argument *argument,
		     unsigned arguments)
{
	const struct sl_opencl_library *cl = q->device->cl;
	size_t local[3] = {range->threads, 1, 1}, global[3];
	cl_int error = CL_SUCCESS;

	if (q->capturing)
		return sl_opencl_graph_launch(q->capturing, k, range, argument, arguments);
	for (unsigned i = 0; i < 3; i++)
		global[i] = local[i] * (range->groups[i] ? range->groups[i] : 1);
	for (unsigned i = 0; i < arguments && error == CL_SUCCESS; i++) {
		const struct sl_device_argument *a = &argument[i];

		error = a->memory ? cl->clSetKernelArg(k->kernel, i, sizeof(cl_mem),
						       &a->memory->handle)
				  : cl->clSetKernelArg(k->kernel, i, a->bytes, a->value);
	}
	if (error != CL_SUCCESS)
		return sl_opencl_fail(q->device, "clSetKernelArg", error);
	return sl_opencl_fail(q->device, "clEnqueueNDRangeKernel",
			      cl->clEnqueueNDRangeKernel(q->queue, k->kernel, 3, NULL, global,
							 local, 0, NULL, NULL));
}
