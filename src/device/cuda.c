/* cuda.c - the CUDA driver as a platform. Every entry makes the device's context the thread's, for
 * a device may be opened on one thread and used on another. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/device.h>

#include "base/log.h"
#include "device/again.h"
#include "device/cuda_library.h"

struct device {
	struct sl_device base;
	const struct sl_cuda_library *cu;
	CUdevice id;
	CUcontext context;
	char problem[SL_DEVICE_TEXT];
};

struct sl_device_queue {
	struct device *device;
	CUstream stream;
};

struct sl_device_record {
	struct device *device;
	CUgraphExec graph;
	CUmodule again; /* with the kernel that launches it again, and that kernel's words */
};

struct sl_device_mark {
	struct device *device;
	CUevent event;
};

struct sl_device_program {
	struct device *device;
	CUmodule module;
};

struct sl_device_kernel {
	struct device *device;
	CUfunction function;
};

static const char *unavailable(void)
{
	const char *problem = NULL;

	sl_cuda_library(&problem);
	return problem;
}

static unsigned devices(void)
{
	const char *problem;
	const struct sl_cuda_library *cu = sl_cuda_library(&problem);
	int n = 0;

	return cu && cu->p_cuDeviceGetCount(&n) == CUDA_SUCCESS && n > 0 ? (unsigned)n : 0;
}

/* ---- errors ---- */

static int fail(struct device *d, const char *call, CUresult error)
{
	const char *name = NULL, *text = NULL;

	if (error == CUDA_SUCCESS)
		return 0;
	d->cu->p_cuGetErrorName(error, &name);
	d->cu->p_cuGetErrorString(error, &text);
	snprintf(d->problem, sizeof(d->problem), "%s: %s (%s)", call, name ? name : "?",
		 text ? text : "?");
	return sl_cuda_errno(error);
}

static const char *problem(const struct sl_device *device)
{
	return ((const struct device *)device)->problem;
}

static void enter(const struct device *d)
{
	d->cu->p_cuCtxSetCurrent(d->context);
}

/* ---- a device ---- */

static void close_device(struct sl_device *device)
{
	struct device *d = (struct device *)device;

	if (d->context)
		d->cu->p_cuDevicePrimaryCtxRelease(d->id);
	free(d);
}

static int open_device(unsigned index, struct sl_device **device)
{
	const char *why = unavailable();
	struct device *d;
	CUresult error;

	if (why) {
		sl_error("cuda: %s", why);
		return -ENODEV;
	}
	if (index >= devices()) {
		sl_error("cuda: there is no GPU %u on this host, they are numbered 0 to %u", index,
			 devices() - 1);
		return -ENODEV;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->base.platform = &sl_platform_cuda;
	d->cu = sl_cuda_library(&why);
	error = d->cu->p_cuDeviceGet(&d->id, (int)index);
	if (error == CUDA_SUCCESS)
		error = d->cu->p_cuDevicePrimaryCtxRetain(&d->context, d->id);
	if (error != CUDA_SUCCESS) {
		int err = fail(d, "cuDevicePrimaryCtxRetain", error);

		sl_error("cuda: GPU %u cannot be opened: %s", index, d->problem);
		d->context = NULL;
		close_device(&d->base);
		return err;
	}
	*device = &d->base;
	return 0;
}

/* Of the kernel module, which is what NVIDIA calls the version of a driver. */
static void driver_release(char *text, size_t bytes)
{
	FILE *file = fopen("/proc/driver/nvidia/version", "r");
	char line[256] = "", *word, *rest;

	text[0] = '\0';
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	for (word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
		if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
			snprintf(text, bytes, "%s, ", word);
			return;
		}
}

static void describe(struct sl_device *device, struct sl_device_info *info)
{
	struct device *d = (struct device *)device;
	const struct sl_cuda_library *cu = d->cu;
	int version = 0, processors = 0, threads = 0, ordering = 0;
	char release[64];
	size_t total = 0, free_bytes = 0;

	enter(d);
	*info = (struct sl_device_info){0};
	cu->p_cuDeviceGetName(info->name, sizeof(info->name), d->id);
	cu->p_cuDriverGetVersion(&version);
	driver_release(release, sizeof(release));
	snprintf(info->driver, sizeof(info->driver), "driver %sfor CUDA %d.%d", release,
		 version / 1000, version % 1000 / 10);
	cu->p_cuMemGetInfo(&free_bytes, &total);
	cu->p_cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->id);
	cu->p_cuDeviceGetAttribute(&ordering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
				   d->id);
	cu->p_cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, d->id);
	info->memory_bytes = total;
	info->memory_free_bytes = free_bytes;
	info->largest_bytes = total;
	info->polls = 1;
	info->sees_remote_writes = ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
	info->processors = (unsigned)processors;
	info->group_threads = (unsigned)threads;
}

/* ---- memory ---- */

static int held(struct device *d, uint64_t bytes, int err)
{
	d->base.refused_bytes = err ? bytes : 0;
	d->base.held_bytes += err ? 0 : bytes;
	return err;
}

static int memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	struct device *d = (struct device *)device;
	CUdeviceptr address = 0;
	int err;

	enter(d);
	err = fail(d, "cuMemAlloc", d->cu->p_cuMemAlloc(&address, bytes ? bytes : 1));
	if (!err)
		*m = (struct sl_device_memory){.bytes = bytes, .address = address};
	return held(d, bytes, err);
}

static int pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	struct device *d = (struct device *)device;
	CUdeviceptr address = 0;
	void *host = NULL;
	int err;

	enter(d);
	err = fail(d, "cuMemHostAlloc",
		   d->cu->p_cuMemHostAlloc(&host, bytes ? bytes : 1,
					   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	if (err)
		return held(d, bytes, err);
	err = fail(d, "cuMemHostGetDevicePointer",
		   d->cu->p_cuMemHostGetDevicePointer(&address, host, 0));
	if (err) {
		d->cu->p_cuMemFreeHost(host);
		return held(d, bytes, err);
	}
	*m = (struct sl_device_memory){.bytes = bytes, .host = host, .address = address};
	return held(d, bytes, 0);
}

static void memory_close(struct sl_device *device, struct sl_device_memory *m)
{
	struct device *d = (struct device *)device;

	enter(d);
	if (m->host || m->address)
		d->base.held_bytes -= m->bytes;
	if (m->host)
		d->cu->p_cuMemFreeHost(m->host);
	else if (m->address)
		d->cu->p_cuMemFree(m->address);
	*m = (struct sl_device_memory){0};
}

static int pin(struct sl_device *device, void *host, uint64_t bytes)
{
	struct device *d = (struct device *)device;
	CUresult error;

	enter(d);
	error = d->cu->p_cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_PORTABLE);
	return error == CUDA_SUCCESS ? 0 : (fail(d, "cuMemHostRegister", error), -ENOTSUP);
}

static void unpin(struct sl_device *device, void *host)
{
	struct device *d = (struct device *)device;

	enter(d);
	d->cu->p_cuMemHostUnregister(host);
}

/* ---- queues ---- */

static int queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	struct device *d = (struct device *)device;
	struct sl_device_queue *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->device = d;
	enter(d);
	err = fail(d, "cuStreamCreate",
		   d->cu->p_cuStreamCreate(&q->stream, CU_STREAM_NON_BLOCKING));
	if (err)
		free(q);
	else
		*queue = q;
	return err;
}

static void queue_close(struct sl_device_queue *q)
{
	enter(q->device);
	q->device->cu->p_cuStreamDestroy(q->stream);
	free(q);
}

static int write_memory(struct sl_device_queue *q, const struct sl_device_memory *to,
			uint64_t offset, const void *from, uint64_t row_bytes, uint64_t rows,
			uint64_t pitch)
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

	enter(q->device);
	if (rows == 1 || pitch == row_bytes)
		return fail(q->device, "cuMemcpyHtoDAsync",
			    cu->p_cuMemcpyHtoDAsync(to->address + offset, from, row_bytes * rows,
						    q->stream));
	return fail(q->device, "cuMemcpy2DAsync", cu->p_cuMemcpy2DAsync(&copy, q->stream));
}

static int read_memory(struct sl_device_queue *q, void *to, const struct sl_device_memory *from,
		       uint64_t offset, uint64_t bytes)
{
	enter(q->device);
	return fail(
		q->device, "cuMemcpyDtoHAsync",
		q->device->cu->p_cuMemcpyDtoHAsync(to, from->address + offset, bytes, q->stream));
}

static int zero(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		uint64_t bytes)
{
	enter(q->device);
	return fail(q->device, "cuMemsetD8Async",
		    q->device->cu->p_cuMemsetD8Async(to->address + offset, 0, bytes, q->stream));
}

static int flush(struct sl_device_queue *q)
{
	return 0; /* CUDA holds nothing back */
}

/* ---- marks ---- */

static int mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	struct device *d = (struct device *)device;
	struct sl_device_mark *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->device = d;
	enter(d);
	err = fail(d, "cuEventCreate", d->cu->p_cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING));
	if (err)
		free(m);
	else
		*mark = m;
	return err;
}

static void mark_close(struct sl_device_mark *m)
{
	enter(m->device);
	m->device->cu->p_cuEventDestroy(m->event);
	free(m);
}

static int mark(struct sl_device_queue *q, struct sl_device_mark *m)
{
	enter(q->device);
	return fail(q->device, "cuEventRecord",
		    q->device->cu->p_cuEventRecord(m->event, q->stream));
}

static int wait(struct sl_device_queue *q, struct sl_device_mark *m)
{
	enter(q->device);
	return fail(q->device, "cuStreamWaitEvent",
		    q->device->cu->p_cuStreamWaitEvent(q->stream, m->event, 0));
}

static int reached(struct sl_device_mark *m)
{
	CUresult error;

	enter(m->device);
	error = m->device->cu->p_cuEventQuery(m->event);
	if (error == CUDA_ERROR_NOT_READY)
		return 0;
	return error == CUDA_SUCCESS ? 1 : fail(m->device, "on the device", error);
}

/* ---- kernels ---- */

static int program_open(struct sl_device *device, const struct sl_kernels *kernels,
			struct sl_device_program **program)
{
	struct device *d = (struct device *)device;
	struct sl_device_program *p;
	int err;

	if (!kernels->fatbin) {
		sl_error("cuda: this program was built without nvcc, and so without the kernels of "
			 "'%s'; install the CUDA toolkit and build again",
			 kernels->name);
		return -ENODEV;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->device = d;
	enter(d);
	err = fail(d, "cuModuleLoadData", d->cu->p_cuModuleLoadData(&p->module, kernels->fatbin));
	if (err) {
		sl_error("cuda: the kernels of '%s' cannot be loaded: %s", kernels->name,
			 d->problem);
		free(p);
		return err;
	}
	*program = p;
	return 0;
}

static void program_close(struct sl_device_program *p)
{
	enter(p->device);
	p->device->cu->p_cuModuleUnload(p->module);
	free(p);
}

static int kernel_open(struct sl_device_program *program, const char *name,
		       struct sl_device_kernel **kernel)
{
	struct device *d = program->device;
	struct sl_device_kernel *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->device = d;
	enter(d);
	err = fail(d, name, d->cu->p_cuModuleGetFunction(&k->function, program->module, name));
	if (err)
		free(k);
	else
		*kernel = k;
	return err;
}

static void kernel_close(struct sl_device_kernel *k)
{
	free(k);
}

static int launch(struct sl_device_queue *q, struct sl_device_kernel *k,
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
	enter(q->device);
	return fail(q->device, "cuLaunchKernel",
		    q->device->cu->p_cuLaunchKernel(k->function, groups[0], groups[1], groups[2],
						    range->threads, 1, 1, 0, q->stream, list,
						    NULL));
}

/* ---- work that waits for a word, or is kept ---- */

static int wait_value(struct sl_device_queue *q, const struct sl_device_memory *word,
		      uint64_t offset, uint32_t value)
{
	enter(q->device);
	if (!q->device->cu->p_cuStreamWaitValue32)
		return fail(q->device, "cuStreamWaitValue32", CUDA_ERROR_NOT_SUPPORTED);
	return fail(q->device, "cuStreamWaitValue32",
		    q->device->cu->p_cuStreamWaitValue32(q->stream, word->address + offset, value,
							 CU_STREAM_WAIT_VALUE_GEQ));
}

static int record_begin(struct sl_device_queue *q)
{
	enter(q->device);
	return fail(q->device, "cuStreamBeginCapture",
		    q->device->cu->p_cuStreamBeginCapture(q->stream,
							  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static int record_end(struct sl_device_queue *q, struct sl_device_record **record)
{
	struct sl_device_record *r = calloc(1, sizeof(*r));
	CUgraph graph = NULL;
	int err;

	enter(q->device);
	err = fail(q->device, "cuStreamEndCapture",
		   q->device->cu->p_cuStreamEndCapture(q->stream, &graph));
	if (!r)
		err = -ENOMEM;
	if (!err) {
		r->device = q->device;
		err = fail(q->device, "cuGraphInstantiate",
			   q->device->cu->p_cuGraphInstantiateWithFlags(&r->graph, graph, 0));
	}
	if (graph)
		q->device->cu->p_cuGraphDestroy(graph);
	if (err)
		free(r);
	else
		*record = r;
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

/* The last kernel of the graph, which launches the graph. It has words of its own, so each record
 * has a module of its own. */
static int add_again(struct sl_device_queue *q, const struct sl_device_memory *stop,
		     struct sl_device_record *r)
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
		int err = fail(q->device, "cuModuleLoadData", error);

		r->again = NULL;
		return is_foreign(error) ? -ENOTSUP : err;
	}
	error = cu->p_cuModuleGetFunction(&function, r->again, "again");
	if (error == CUDA_SUCCESS)
		error = cu->p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream, arguments,
					     NULL);
	return fail(q->device, "cuLaunchKernel", error);
}

static int make_looped(struct sl_device_queue *q, const struct sl_device_memory *stop,
		       struct sl_device_record *r)
{
	const struct sl_cuda_library *cu = q->device->cu;
	CUgraph graph = NULL;
	int err = add_again(q, stop, r);
	CUresult ended;

	ended = cu->p_cuStreamEndCapture(q->stream, &graph); /* in any case */
	if (!err)
		err = fail(q->device, "cuStreamEndCapture", ended);
	if (!err) {
		err = fail(q->device, "cuGraphInstantiate",
			   cu->p_cuGraphInstantiateWithFlags(&r->graph, graph, BY_THE_DEVICE));
		err = err == -EINVAL ? -ENOTSUP : err; /* not one that this device launches */
	}
	if (graph)
		cu->p_cuGraphDestroy(graph);
	return err;
}

static int record_end_looped(struct sl_device_queue *q, const struct sl_device_memory *stop,
			     struct sl_device_record **record)
{
	struct sl_device_record none = {.device = q->device}, *r = malloc(sizeof(*r));
	int err;

	enter(q->device);
	err = make_looped(q, stop, &none);
	if (!err && r) {
		*r = none;
		*record = r;
		return 0;
	}
	if (none.graph)
		q->device->cu->p_cuGraphExecDestroy(none.graph);
	if (none.again)
		q->device->cu->p_cuModuleUnload(none.again);
	free(r);
	return err ? err : -ENOMEM;
}

static int play(struct sl_device_queue *q, struct sl_device_record *r)
{
	enter(q->device);
	return fail(q->device, "cuGraphLaunch",
		    q->device->cu->p_cuGraphLaunch(r->graph, q->stream));
}

static void record_close(struct sl_device_record *r)
{
	enter(r->device);
	r->device->cu->p_cuGraphExecDestroy(r->graph);
	if (r->again)
		r->device->cu->p_cuModuleUnload(r->again);
	free(r);
}

static int flush_remote(struct sl_device *device)
{
	struct device *d = (struct device *)device;

	enter(d);
	return fail(d, "cuFlushGPUDirectRDMAWrites",
		    d->cu->p_cuFlushGPUDirectRDMAWrites(
			    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
			    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

/* A dma-buf, which `verbs` registers; unproven, for no host here has an RDMA device beside its GPU.
 */
static int share(struct sl_device *device, const struct sl_device_memory *m, int *fd)
{
	struct device *d = (struct device *)device;
	int supported = 0;

	enter(d);
	d->cu->p_cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, d->id);
	if (!supported || !d->cu->p_cuMemGetHandleForAddressRange)
		return fail(d, "cuMemGetHandleForAddressRange", CUDA_ERROR_NOT_SUPPORTED);
	return fail(d, "cuMemGetHandleForAddressRange",
		    d->cu->p_cuMemGetHandleForAddressRange(fd, m->address, m->bytes,
							   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

const struct sl_platform sl_platform_cuda = {
	.name = "cuda",
	.doc = "GPUs of NVIDIA, through their driver",
	.unavailable = unavailable,
	.devices = devices,
	.open = open_device,
	.close = close_device,
	.describe = describe,
	.problem = problem,
	.memory_open = memory_open,
	.pinned_open = pinned_open,
	.memory_close = memory_close,
	.pin = pin,
	.unpin = unpin,
	.queue_open = queue_open,
	.queue_close = queue_close,
	.write = write_memory,
	.read = read_memory,
	.zero = zero,
	.flush = flush,
	.mark_open = mark_open,
	.mark_close = mark_close,
	.mark = mark,
	.wait = wait,
	.reached = reached,
	.program_open = program_open,
	.program_close = program_close,
	.kernel_open = kernel_open,
	.kernel_close = kernel_close,
	.launch = launch,
	.wait_value = wait_value,
	.record_begin = record_begin,
	.record_end = record_end,
	.record_end_looped = record_end_looped,
	.play = play,
	.record_close = record_close,
	.flush_remote = flush_remote,
	.share = share,
};
