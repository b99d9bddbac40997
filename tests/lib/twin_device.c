/* twin_device.c - see twin_device.h. */
#include "lib/twin_device.h"

/* Some of what PoCL allocates is left when all is closed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

static struct {
	struct sl_device *device;
	const struct sl_kernels *kernels[TWIN_PROGRAMS];
	struct sl_device_program *program[TWIN_PROGRAMS];
	int programs;
	int open; /* devices, programs, kernels, queues, marks and pieces of memory */
} twin_kept;

struct sl_platform twin_platform;

int twin_device_open(unsigned index, struct sl_device **device)
{
	int err = twin_kept.device || index ? 0 : sl_platform_opencl.open(0, &twin_kept.device);

	if (index)
		return sl_platform_opencl.open(index, device);
	if (err)
		return err;
	twin_kept.open++;
	twin_kept.device->platform = &twin_platform;
	*device = twin_kept.device;
	return 0;
}

void twin_device_close(struct sl_device *device)
{
	assert_ptr_equal(device, twin_kept.device);
	twin_kept.open--;
}

static int twin_program_open(struct sl_device *device, const struct sl_kernels *kernels,
			     struct sl_device_program **program)
{
	int i = 0, err;

	while (i < twin_kept.programs && twin_kept.kernels[i] != kernels)
		i++;
	if (i == twin_kept.programs) {
		assert_true(i < TWIN_PROGRAMS);
		err = sl_platform_opencl.program_open(device, kernels, &twin_kept.program[i]);
		if (err)
			return err;
		twin_kept.kernels[twin_kept.programs++] = kernels;
	}
	twin_kept.open++;
	*program = twin_kept.program[i];
	return 0;
}

static void twin_program_close(struct sl_device_program *program)
{
	twin_kept.open--;
}

static int twin_counted(int err)
{
	twin_kept.open += !err;
	return err;
}

static int twin_kernel_open(struct sl_device_program *program, const char *name,
			    struct sl_device_kernel **kernel)
{
	return twin_counted(sl_platform_opencl.kernel_open(program, name, kernel));
}

static void twin_kernel_close(struct sl_device_kernel *kernel)
{
	sl_platform_opencl.kernel_close(kernel);
	twin_kept.open--;
}

static int twin_queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	return twin_counted(sl_platform_opencl.queue_open(device, queue));
}

static void twin_queue_close(struct sl_device_queue *queue)
{
	sl_platform_opencl.queue_close(queue);
	twin_kept.open--;
}

static int twin_mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	return twin_counted(sl_platform_opencl.mark_open(device, mark));
}

static void twin_mark_close(struct sl_device_mark *mark)
{
	sl_platform_opencl.mark_close(mark);
	twin_kept.open--;
}

static int twin_memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	return twin_counted(sl_platform_opencl.memory_open(device, bytes, m));
}

static int twin_pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	return twin_counted(sl_platform_opencl.pinned_open(device, bytes, m));
}

/* There may be none. */
static void twin_memory_close(struct sl_device *device, struct sl_device_memory *m)
{
	twin_kept.open -= m->handle != NULL;
	sl_platform_opencl.memory_close(device, m);
}

void twin_device_init(void)
{
	twin_platform = sl_platform_opencl;
	twin_platform.open = twin_device_open;
	twin_platform.close = twin_device_close;
	twin_platform.program_open = twin_program_open;
	twin_platform.program_close = twin_program_close;
	twin_platform.kernel_open = twin_kernel_open;
	twin_platform.kernel_close = twin_kernel_close;
	twin_platform.queue_open = twin_queue_open;
	twin_platform.queue_close = twin_queue_close;
	twin_platform.mark_open = twin_mark_open;
	twin_platform.mark_close = twin_mark_close;
	twin_platform.memory_open = twin_memory_open;
	twin_platform.pinned_open = twin_pinned_open;
	twin_platform.memory_close = twin_memory_close;
}

int twin_device_fini(void)
{
	for (int i = 0; i < twin_kept.programs; i++)
		sl_platform_opencl.program_close(twin_kept.program[i]);
	if (twin_kept.device)
		sl_platform_opencl.close(twin_kept.device);
	return twin_kept.open;
}
