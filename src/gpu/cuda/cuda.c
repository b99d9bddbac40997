/* cuda.c - the CUDA driver as a platform: devices, their memory, and their programs; queue.c has
 * their queues. Every entry makes the device's context the thread's, for a device may be opened on
 * one thread and used on another. */
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

/* ---- a device ---- */

static const char *problem(const struct sl_device *device)
{
	return ((const struct sl_cuda_device *)device)->problem;
}

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
	.queue_open = sl_cuda_queue_open,
	.queue_close = sl_cuda_queue_close,
	.write = sl_cuda_write,
	.read = sl_cuda_read,
	.zero = sl_cuda_zero,
	.flush = sl_cuda_flush,
	.mark_open = sl_cuda_mark_open,
	.mark_close = sl_cuda_mark_close,
	.mark = sl_cuda_mark,
	.wait = sl_cuda_wait,
	.reached = sl_cuda_reached,
	.program_open = program_open,
	.program_close = program_close,
	.kernel_open = kernel_open,
	.kernel_close = kernel_close,
	.launch = sl_cuda_launch,
	.wait_value = sl_cuda_wait_value,
	.graph_begin = sl_cuda_graph_begin,
	.graph_end = sl_cuda_graph_end,
	.graph_end_looped = sl_cuda_graph_end_looped,
	.play = sl_cuda_play,
	.graph_close = sl_cuda_graph_close,
	.share = share,
};
