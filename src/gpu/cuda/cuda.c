/* cuda.c - the CUDA driver as a platform. Every entry makes the device's context the thread's, for
 * a device may be opened on one thread and used on another. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/device.h"
#include "gpu/cuda/device.h"

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

int sl_cuda_fail(struct sl_cuda_device *d, const char *call, CUresult error)
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
	return ((const struct sl_cuda_device *)device)->problem;
}

void sl_cuda_enter(const struct sl_cuda_device *d)
{
	d->cu->p_cuCtxSetCurrent(d->context);
}

/* ---- a device ---- */

static void close_device(struct sl_device *device)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;

	if (d->context)
		d->cu->p_cuDevicePrimaryCtxRelease(d->id);
	free(d);
}

static int open_device(unsigned index, struct sl_device **device)
{
	const char *why = unavailable();
	struct sl_cuda_device *d;
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
		int err = sl_cuda_fail(d, "cuDevicePrimaryCtxRetain", error);

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
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	const struct sl_cuda_library *cu = d->cu;
	int version = 0, processors = 0, threads = 0, ordering = 0;
	char release[64];
	size_t total = 0, free_bytes = 0;

	sl_cuda_enter(d);
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

static int held(struct sl_cuda_device *d, uint64_t bytes, int err)
{
	d->base.refused_bytes = err ? bytes : 0;
	d->base.held_bytes += err ? 0 : bytes;
	return err;
}

static int memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	CUdeviceptr address = 0;
	int err;

	sl_cuda_enter(d);
	err = sl_cuda_fail(d, "cuMemAlloc", d->cu->p_cuMemAlloc(&address, bytes ? bytes : 1));
	if (!err)
		*m = (struct sl_device_memory){.bytes = bytes, .address = address};
	return held(d, bytes, err);
}

static int pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	CUdeviceptr address = 0;
	void *host = NULL;
	int err;

	sl_cuda_enter(d);
	err = sl_cuda_fail(
		d, "cuMemHostAlloc",
		d->cu->p_cuMemHostAlloc(&host, bytes ? bytes : 1,
					CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	if (err)
		return held(d, bytes, err);
	err = sl_cuda_fail(d, "cuMemHostGetDevicePointer",
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
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;

	sl_cuda_enter(d);
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
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	CUresult error;

	sl_cuda_enter(d);
	error = d->cu->p_cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_PORTABLE);
	return error == CUDA_SUCCESS ? 0 : (sl_cuda_fail(d, "cuMemHostRegister", error), -ENOTSUP);
}

static void unpin(struct sl_device *device, void *host)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;

	sl_cuda_enter(d);
	d->cu->p_cuMemHostUnregister(host);
}

/* ---- queues ---- */

static int queue_open(struct sl_device *device, struct sl_device_queue **queue)
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

static void queue_close(struct sl_device_queue *q)
{
	sl_cuda_enter(q->device);
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

	sl_cuda_enter(q->device);
	if (rows == 1 || pitch == row_bytes)
		return sl_cuda_fail(q->device, "cuMemcpyHtoDAsync",
				    cu->p_cuMemcpyHtoDAsync(to->address + offset, from,
							    row_bytes * rows, q->stream));
	return sl_cuda_fail(q->device, "cuMemcpy2DAsync", cu->p_cuMemcpy2DAsync(&copy, q->stream));
}

static int read_memory(struct sl_device_queue *q, void *to, const struct sl_device_memory *from,
		       uint64_t offset, uint64_t bytes)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(
		q->device, "cuMemcpyDtoHAsync",
		q->device->cu->p_cuMemcpyDtoHAsync(to, from->address + offset, bytes, q->stream));
}

static int zero(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		uint64_t bytes)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(
		q->device, "cuMemsetD8Async",
		q->device->cu->p_cuMemsetD8Async(to->address + offset, 0, bytes, q->stream));
}

static int flush(struct sl_device_queue *q)
{
	return 0; /* CUDA holds nothing back */
}

/* ---- marks ---- */

static int mark_open(struct sl_device *device, struct sl_device_mark **mark)
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

static void mark_close(struct sl_device_mark *m)
{
	sl_cuda_enter(m->device);
	m->device->cu->p_cuEventDestroy(m->event);
	free(m);
}

static int mark(struct sl_device_queue *q, struct sl_device_mark *m)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuEventRecord",
			    q->device->cu->p_cuEventRecord(m->event, q->stream));
}

static int wait(struct sl_device_queue *q, struct sl_device_mark *m)
{
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuStreamWaitEvent",
			    q->device->cu->p_cuStreamWaitEvent(q->stream, m->event, 0));
}

static int reached(struct sl_device_mark *m)
{
	CUresult error;

	sl_cuda_enter(m->device);
	error = m->device->cu->p_cuEventQuery(m->event);
	if (error == CUDA_ERROR_NOT_READY)
		return 0;
	return error == CUDA_SUCCESS ? 1 : sl_cuda_fail(m->device, "on the device", error);
}

/* ---- kernels ---- */

static int program_open(struct sl_device *device, const struct sl_kernels *kernels,
			struct sl_device_program **program)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
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
	sl_cuda_enter(d);
	err = sl_cuda_fail(d, "cuModuleLoadData",
			   d->cu->p_cuModuleLoadData(&p->module, kernels->fatbin));
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
	sl_cuda_enter(p->device);
	p->device->cu->p_cuModuleUnload(p->module);
	free(p);
}

static int kernel_open(struct sl_device_program *program, const char *name,
		       struct sl_device_kernel **kernel)
{
	struct sl_cuda_device *d = program->device;
	struct sl_device_kernel *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->device = d;
	sl_cuda_enter(d);
	err = sl_cuda_fail(d, name,
			   d->cu->p_cuModuleGetFunction(&k->function, program->module, name));
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
	sl_cuda_enter(q->device);
	return sl_cuda_fail(q->device, "cuLaunchKernel",
			    q->device->cu->p_cuLaunchKernel(k->function, groups[0], groups[1],
							    groups[2], range->threads, 1, 1, 0,
							    q->stream, list, NULL));
}

/* ---- what other devices write ---- */

/* A dma-buf, which `verbs` registers; unproven, for no host here has an RDMA device beside its GPU.
 */
static int share(struct sl_device *device, const struct sl_device_memory *m, int *fd)
{
	struct sl_cuda_device *d = (struct sl_cuda_device *)device;
	int supported = 0;

	sl_cuda_enter(d);
	d->cu->p_cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, d->id);
	if (!supported || !d->cu->p_cuMemGetHandleForAddressRange)
		return sl_cuda_fail(d, "cuMemGetHandleForAddressRange", CUDA_ERROR_NOT_SUPPORTED);
	return sl_cuda_fail(
		d, "cuMemGetHandleForAddressRange",
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
	.wait_value = sl_cuda_wait_value,
	.record_begin = sl_cuda_record_begin,
	.record_end = sl_cuda_record_end,
	.record_end_looped = sl_cuda_record_end_looped,
	.play = sl_cuda_play,
	.record_close = sl_cuda_record_close,
	.share = share,
};
