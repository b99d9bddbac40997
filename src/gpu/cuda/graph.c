/* graph.c - work of a CUDA device that waits for a word, or is kept: graphs that the host
 * launches, and those that the device launches itself. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cuda/again.h"
#include "gpu/cuda/device.h"

struct sl_device_graph {
	struct sl_cuda_device *device;
	CUgraphExec graph;
	CUmodule again; /* with the kernel that launches it again, and that kernel's words */
};

int sl_cuda_wait_value(struct sl_device_queue *q, const struct sl_device_memory *word,
		       uint64_t offset, uint32_t value)
{
	sl_cuda_enter(q->device);
	if (!q->device->cu->p_cuStreamWaitValue32)
		return sl_cuda_fail(q->device, "cuStreamWaitValue32", CUDA_ERROR_NOT_SUPPORTED);
	return sl_cuda_fail(q->device, "cuStreamWaitValue32",
			    q->device->cu->p_cuStreamWaitValue32(q->stream, word->address + offset,
								 value, CU_STREAM_WAIT_VALUE_GEQ));
}

int sl_cuda_graph_begin(struct sl_device_queue *q)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuStreamBeginCapture",
			    q->device->cu->p_cuStreamBeginCapture(
				    q->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

int sl_cuda_graph_end(struct sl_device_queue *q, struct sl_device_graph **made)
{
	struct sl_device_graph *r = calloc(1, sizeof(*r));
	CUgraph graph = NULL;
	int err;

	sl_cuda_enter(q->device);
	err = sl_cuda_fail(q->device, "cuStreamEndCapture",
			   q->device->cu->p_cuStreamEndCapture(q->stream, &graph));
	if (!r)
		err = -ENOMEM;
	if (!err) {
		r->device = q->device;
		err = sl_cuda_fail(
			q->device, "cuGraphInstantiate",
			q->device->cu->p_cuGraphInstantiateWithFlags(&r->graph, graph, 0));
	}
	if (graph)
		q->device->cu->p_cuGraphDestroy(graph);
	if (err)
		free(r);
	else
		*made = r;
	return err;
}

/* ---- graphs that the device launches ---- */

/* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, which headers before CUDA 12 do not have. */
enum { BY_THE_DEVICE = 4 };

/* Code that is not for this GPU, or that this driver cannot take: the kernel is not made of PTX. */
static bool is_foreign(CUresult error)
{
	return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_INVALID_IMAGE ||
	       error == CUDA_ERROR_NOT_SUPPORTED || error == CUDA_ERROR_NOT_FOUND ||
	       error == CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

/* The last kernel of the graph, which launches the graph. It has words of its own, so each graph
 * has a module of its own. */
static int add_again(struct sl_device_queue *q, const struct sl_device_memory *stop,
		     struct sl_device_graph *r)
{
	const struct sl_cuda_library *cu = q->device->cu;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* loading is forbidden else */
	CUdeviceptr word = stop->address;
	void *arguments[] = {&word};
	CUfunction function;
	CUresult error;

	if (!sl_kernels_again.fatbin) {
		snprintf(q->device->problem, sizeof(q->device->problem),
			 "this program was built without the kernel for it");
		return -ENOTSUP;
	}
	cu->p_cuThreadExchangeStreamCaptureMode(&mode);
	error = cu->p_cuModuleLoadData(&r->again, sl_kernels_again.fatbin);
	cu->p_cuThreadExchangeStreamCaptureMode(&mode);
	if (error != CUDA_SUCCESS) {
		int err = sl_cuda_fail(q->device, "cuModuleLoadData", error);

		r->again = NULL;
		return is_foreign(error) ? -ENOTSUP : err;
	}
	error = cu->p_cuModuleGetFunction(&function, r->again, "again");
	if (error == CUDA_SUCCESS)
		error = cu->p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream, arguments,
					     NULL);
	return sl_cuda_fail(q->device, "cuLaunchKernel", error);
}

static int make_looped(struct sl_device_queue *q, const struct sl_device_memory *stop,
		       struct sl_device_graph *r)
{
	const struct sl_cuda_library *cu = q->device->cu;
	CUgraph graph = NULL;
	int err = add_again(q, stop, r);
	CUresult ended;

	ended = cu->p_cuStreamEndCapture(q->stream, &graph); /* in any case */
	if (!err)
		err = sl_cuda_fail(q->device, "cuStreamEndCapture", ended);
	if (!err) {
		err = sl_cuda_fail(
			q->device, "cuGraphInstantiate",
			cu->p_cuGraphInstantiateWithFlags(&r->graph, graph, BY_THE_DEVICE));
		err = err == -EINVAL ? -ENOTSUP : err; /* not one that this device launches */
	}
	if (graph)
		cu->p_cuGraphDestroy(graph);
	return err;
}

int sl_cuda_graph_end_looped(struct sl_device_queue *q, const struct sl_device_memory *stop,
			     struct sl_device_graph **made)
{
	struct sl_device_graph none = {.device = q->device}, *r = malloc(sizeof(*r));
	int err;

	sl_cuda_enter(q->device);
	err = make_looped(q, stop, &none);
	if (!err && r) {
		*r = none;
		*made = r;
		return 0;
	}
	if (none.graph)
		q->device->cu->p_cuGraphExecDestroy(none.graph);
	if (none.again)
		q->device->cu->p_cuModuleUnload(none.again);
	free(r);
	return err ? err : -ENOMEM;
}

int sl_cuda_play(struct sl_device_queue *q, struct sl_device_graph *r)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuGraphLaunch",
			    q->device->cu->p_cuGraphLaunch(r->graph, q->stream));
}

void sl_cuda_graph_close(struct sl_device_graph *r)
{
	sl_cuda_enter(r->device);
	r->device->cu->p_cuGraphExecDestroy(r->graph);
	if (r->again)
		r->device->cu->p_cuModuleUnload(r->again);
	free(r);
}
