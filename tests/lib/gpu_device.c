/* gpu_device.c - see gpu_device.h. */
#include "lib/gpu_device.h"

/* Some of what PoCL allocates is left when all is closed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

static struct {
	struct sl_device *device;
	const struct sl_kernels *kernels[GPU_PROGRAMS];
	struct sl_device_program *program[GPU_PROGRAMS];
	int programs;
	int open; /* devices, programs, kernels, queues, marks and pieces of memory */
} gpu_kept;

struct sl_platform gpu_platform;

int gpu_device_open(unsigned index, struct sl_device **device)
{
	int err = gpu_kept.device || index ? 0 : sl_platform_opencl.open(0, &gpu_kept.device);

	if (index)
		return sl_platform_opencl.open(index, device);
	if (err)
		return err;
	gpu_kept.open++;
	gpu_kept.device->platform = &gpu_platform;
	*device = gpu_kept.device;
	return 0;
}

void gpu_device_close(struct sl_device *device)
{
	assert_ptr_equal(device, gpu_kept.device);
	gpu_kept.open--;
}

static int gpu_program_open(struct sl_device *device, const struct sl_kernels *kernels,
			    struct sl_device_program **program)
{
	int i = 0, err;

	while (i < gpu_kept.programs && gpu_kept.kernels[i] != kernels)
		i++;
	if (i == gpu_kept.programs) {
		assert_true(i < GPU_PROGRAMS);
		err = sl_platform_opencl.program_open(device, kernels, &gpu_kept.program[i]);
		if (err)
			return err;
		gpu_kept.kernels[gpu_kept.programs++] = kernels;
	}
	gpu_kept.open++;
	*program = gpu_kept.program[i];
	return 0;
}

static void gpu_program_close(struct sl_device_program *program)
{
	gpu_kept.open--;
}

static int gpu_counted(int err)
{
	gpu_kept.open += !err;
	return err;
}

static int gpu_kernel_open(struct sl_device_program *program, const char *name,
			   struct sl_device_kernel **kernel)
{
	return gpu_counted(sl_platform_opencl.kernel_open(program, name, kernel));
}

static void gpu_kernel_close(struct sl_device_kernel *kernel)
{
	sl_platform_opencl.kernel_close(kernel);
	gpu_kept.open--;
}

static int gpu_queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	return gpu_counted(sl_platform_opencl.queue_open(device, queue));
}

static void gpu_queue_close(struct sl_device_queue *queue)
{
	sl_platform_opencl.queue_close(queue);
	gpu_kept.open--;
}

static int gpu_mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	return gpu_counted(sl_platform_opencl.mark_open(device, mark));
}

static void gpu_mark_close(struct sl_device_mark *mark)
{
	sl_platform_opencl.mark_close(mark);
	gpu_kept.open--;
}

static int gpu_memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	return gpu_counted(sl_platform_opencl.memory_open(device, bytes, m));
}

static int gpu_pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	return gpu_counted(sl_platform_opencl.pinned_open(device, bytes, m));
}

/* There may be none. */
static void gpu_memory_close(struct sl_device *device, struct sl_device_memory *m)
{
	gpu_kept.open -= m->handle != NULL;
	sl_platform_opencl.memory_close(device, m);
}

void gpu_device_init(void)
{
	gpu_platform = sl_platform_opencl;
	gpu_platform.open = gpu_device_open;
	gpu_platform.close = gpu_device_close;
	gpu_platform.program_open = gpu_program_open;
	gpu_platform.program_close = gpu_program_close;
	gpu_platform.kernel_open = gpu_kernel_open;
	gpu_platform.kernel_close = gpu_kernel_close;
	gpu_platform.queue_open = gpu_queue_open;
	gpu_platform.queue_close = gpu_queue_close;
	gpu_platform.mark_open = gpu_mark_open;
	gpu_platform.mark_close = gpu_mark_close;
	gpu_platform.memory_open = gpu_memory_open;
	gpu_platform.pinned_open = gpu_pinned_open;
	gpu_platform.memory_close = gpu_memory_close;
}

int gpu_device_fini(void)
{
	for (int i = 0; i < gpu_kept.programs; i++)
		sl_platform_opencl.program_close(gpu_kept.program[i]);
	if (gpu_kept.device)
		sl_platform_opencl.close(gpu_kept.device);
	return gpu_kept.open;
}
