/* opencl.c - OpenCL 1.2 as a platform: GPUs of all makers, and CPUs through PoCL. Devices, their
 * memory, and their programs; queue.c has their queues. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/device.h"
#include "gpu/opencl/device.h"

enum { PLATFORMS = 16, DEVICES = 32 };

struct sl_device_program {
	struct sl_opencl_device *device;
	cl_program program;
};

/* ---- which devices there are ---- */

/* GPUs and the like before CPUs: device 0 is what is wanted in most cases. */
static unsigned find_devices(const struct sl_opencl_library *cl, cl_device_id *found)
{
	static const cl_device_type order[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
					       CL_DEVICE_TYPE_CPU};
	cl_platform_id platform[PLATFORMS];
	cl_uint platforms = 0;
	unsigned n = 0;

	if (cl->clGetPlatformIDs(PLATFORMS, platform, &platforms) != CL_SUCCESS)
		return 0;
	if (platforms > PLATFORMS)
		platforms = PLATFORMS;
	for (size_t t = 0; t < sizeof(order) / sizeof(order[0]); t++)
		for (cl_uint p = 0; p < platforms && n < DEVICES; p++) {
			cl_uint more = 0;

			if (cl->clGetDeviceIDs(platform[p], order[t], DEVICES - n, found + n,
					       &more) == CL_SUCCESS)
				n += more < DEVICES - n ? more : DEVICES - n;
		}
	return n;
}

static unsigned devices(void)
{
	const char *problem;
	const struct sl_opencl_library *cl = sl_opencl_library(&problem);
	cl_device_id found[DEVICES];

	return cl ? find_devices(cl, found) : 0;
}

static const char *unavailable(void)
{
	const char *problem = NULL;

	if (!sl_opencl_library(&problem))
		return problem;
	return devices() ? NULL
			 : "OpenCL has no device on this host; install its driver (Debian, Ubuntu: "
			   "apt install pocl-opencl-icd runs it on the CPU)";
}

/* ---- a device ---- */

static const char *problem(const struct sl_device *device)
{
	return ((const struct sl_opencl_device *)device)->problem;
}

static void close_device(struct sl_device *device)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;

	if (d->own)
		d->cl->clReleaseCommandQueue(d->own);
	if (d->context)
		d->cl->clReleaseContext(d->context);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Is it this CPU? Then queues and the host see each other's words. */
static bool is_cpu(struct sl_opencl_device *d)
{
	cl_device_type type = 0;

	d->cl->clGetDeviceInfo(d->id, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	return type & CL_DEVICE_TYPE_CPU;
}

static int open_device(unsigned index, struct sl_device **device)
{
	const char *why = unavailable();
	cl_device_id found[DEVICES];
	const struct sl_opencl_library *cl;
	struct sl_opencl_device *d;
	cl_int error;

	if (why) {
		sl_error("opencl: %s", why);
		return -ENODEV;
	}
	cl = sl_opencl_library(&why);
	if (index >= find_devices(cl, found)) {
		sl_error("opencl: there is no device %u on this host, they are numbered 0 to %u",
			 index, find_devices(cl, found) - 1);
		return -ENODEV;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->base.platform = &sl_platform_opencl;
	d->cl = cl;
	d->id = found[index];
	d->is_host = is_cpu(d);
	pthread_mutex_init(&d->lock, NULL);
	d->context = cl->clCreateContext(NULL, 1, &d->id, NULL, NULL, &error);
	if (error == CL_SUCCESS)
		d->own = cl->clCreateCommandQueue(d->context, d->id, 0, &error);
	if (error != CL_SUCCESS) {
		sl_error("opencl: device %u cannot be opened: %s", index, sl_opencl_error(error));
		close_device(&d->base);
		return sl_opencl_errno(error);
	}
	*device = &d->base;
	return 0;
}

static void get(struct sl_opencl_device *d, cl_device_info what, void *value, size_t bytes)
{
	d->cl->clGetDeviceInfo(d->id, what, bytes, value, NULL);
}

static void describe(struct sl_device *device, struct sl_device_info *info)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;
	char version[SL_DEVICE_TEXT / 2] = "", driver[SL_DEVICE_TEXT / 4] = "";
	cl_ulong memory = 0, largest = 0;
	size_t threads = 1;
	cl_uint units = 0;

	*info = (struct sl_device_info){0};
	get(d, CL_DEVICE_NAME, info->name, sizeof(info->name));
	get(d, CL_DEVICE_VERSION, version, sizeof(version));
	get(d, CL_DRIVER_VERSION, driver, sizeof(driver));
	snprintf(info->driver, sizeof(info->driver), "%s, driver %s", version, driver);
	get(d, CL_DEVICE_GLOBAL_MEM_SIZE, &memory, sizeof(memory));
	get(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &largest, sizeof(largest));
	get(d, CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof(units));
	get(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, &threads, sizeof(threads));
	info->memory_bytes = memory;
	info->largest_bytes = largest;
	info->processors = units;
	info->is_host = info->polls = info->compiles_late = d->is_host;
	info->group_threads = (unsigned)threads;
}

/* ---- memory ---- */

static int create(struct sl_opencl_device *d, cl_mem_flags flags, uint64_t bytes,
		  struct sl_device_memory *m)
{
	cl_int error;
	cl_mem memory = d->cl->clCreateBuffer(d->context, flags, bytes ? bytes : 1, NULL, &error);
	cl_ulong all = 0;

	/* Some drivers promise any memory, and look for it when it is used. */
	get(d, CL_DEVICE_GLOBAL_MEM_SIZE, &all, sizeof(all));
	if (error == CL_SUCCESS && all && (bytes > all || d->base.held_bytes > all - bytes)) {
		d->cl->clReleaseMemObject(memory);
		error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	}
	d->base.refused_bytes = error == CL_SUCCESS ? 0 : bytes;
	if (error != CL_SUCCESS)
		return sl_opencl_fail(d, "clCreateBuffer", error);
	d->base.held_bytes += bytes;
	*m = (struct sl_device_memory){.bytes = bytes, .handle = memory};
	return 0;
}

static int memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	return create((struct sl_opencl_device *)device, CL_MEM_READ_WRITE, bytes, m);
}

static void memory_close(struct sl_device *device, struct sl_device_memory *m)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;

	if (m->host) {
		d->cl->clEnqueueUnmapMemObject(d->own, m->handle, m->host, 0, NULL, NULL);
		d->cl->clFinish(d->own);
	}
	if (m->handle) {
		d->cl->clReleaseMemObject(m->handle);
		d->base.held_bytes -= m->bytes;
	}
	*m = (struct sl_device_memory){0};
}

static int pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;
	struct sl_device_memory made;
	cl_int error;
	int err = create(d, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, &made);

	if (err)
		return err;
	made.host = d->cl->clEnqueueMapBuffer(d->own, made.handle, CL_TRUE,
					      CL_MAP_READ | CL_MAP_WRITE, 0, bytes ? bytes : 1, 0,
					      NULL, NULL, &error);
	if (error != CL_SUCCESS) {
		made.host = NULL;
		memory_close(device, &made);
		d->base.refused_bytes = bytes;
		return sl_opencl_fail(d, "clEnqueueMapBuffer", error);
	}
	*m = made;
	return 0;
}

/* OpenCL has no word for it. */
static int pin(struct sl_device *device, void *host, uint64_t bytes)
{
	return -ENOTSUP;
}

static void unpin(struct sl_device *device, void *host)
{
}

/* ---- kernels ---- */

static void say_why(struct sl_opencl_device *d, const struct sl_kernels *kernels,
		    cl_program program)
{
	char *text = calloc(1, 65536);

	if (!text)
		return;
	d->cl->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 65535, text, NULL);
	sl_error("opencl: the kernels of '%s' cannot be compiled here: %.2000s", kernels->name,
		 text);
	free(text);
}

static int program_open(struct sl_device *device, const struct sl_kernels *kernels,
			struct sl_device_program **program)
{
	struct sl_opencl_device *d = (struct sl_opencl_device *)device;
	struct sl_device_program *p = calloc(1, sizeof(*p));
	cl_int error;

	if (!p)
		return -ENOMEM;
	p->device = d;
	p->program = d->cl->clCreateProgramWithSource(
		d->context, 1, (const char **)&kernels->opencl, NULL, &error);
	if (error != CL_SUCCESS) {
		free(p);
		return sl_opencl_fail(d, "clCreateProgramWithSource", error);
	}
	error = d->cl->clBuildProgram(p->program, 1, &d->id,
				      "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", NULL,
				      NULL);
	if (error != CL_SUCCESS) {
		say_why(d, kernels, p->program);
		d->cl->clReleaseProgram(p->program);
		free(p);
		return sl_opencl_fail(d, "clBuildProgram", error);
	}
	*program = p;
	return 0;
}

static void program_close(struct sl_device_program *p)
{
	p->device->cl->clReleaseProgram(p->program);
	free(p);
}

static int kernel_open(struct sl_device_program *program, const char *name,
		       struct sl_device_kernel **kernel)
{
	struct sl_opencl_device *d = program->device;
	struct sl_device_kernel *k = calloc(1, sizeof(*k));
	cl_int error;

	if (!k)
		return -ENOMEM;
	k->device = d;
	k->kernel = d->cl->clCreateKernel(program->program, name, &error);
	if (error != CL_SUCCESS) {
		free(k);
		return sl_opencl_fail(d, name, error);
	}
	*kernel = k;
	return 0;
}

static void kernel_close(struct sl_device_kernel *k)
{
	k->device->cl->clReleaseKernel(k->kernel);
	free(k);
}

/* No other device writes into memory of OpenCL's. */
static int share(struct sl_device *device, const struct sl_device_memory *m, int *fd)
{
	return -ENOTSUP;
}

const struct sl_platform sl_platform_opencl = {
	.name = "opencl",
	.doc = "OpenCL 1.2: GPUs of all makers, and CPUs through PoCL",
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
	.queue_open = sl_opencl_queue_open,
	.queue_close = sl_opencl_queue_close,
	.write = sl_opencl_write,
	.read = sl_opencl_read,
	.zero = sl_opencl_zero,
	.flush = sl_opencl_flush,
	.mark_open = sl_opencl_mark_open,
	.mark_close = sl_opencl_mark_close,
	.mark = sl_opencl_mark,
	.wait = sl_opencl_wait,
	.reached = sl_opencl_reached,
	.program_open = program_open,
	.program_close = program_close,
	.kernel_open = kernel_open,
	.kernel_close = kernel_close,
	.launch = sl_opencl_launch,
	.wait_value = sl_opencl_wait_value,
	.graph_begin = sl_opencl_graph_begin,
	.graph_end = sl_opencl_graph_end,
	.graph_end_looped = sl_opencl_graph_end_looped,
	.play = sl_opencl_play,
	.graph_close = sl_opencl_graph_close,
	.share = share,
};
