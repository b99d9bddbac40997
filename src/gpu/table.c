/* table.c - tables and kernels for a device. */
#include "gpu/table.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

int sl_device_table(struct sl_device *device, struct sl_device_queue *queue, const void *from,
		    uint64_t bytes, struct sl_device_memory *table)
{
	const struct sl_platform *p = device->platform;
	int err = p->memory_open(device, bytes, table);

	if (!err && bytes)
		err = p->write(queue, table, 0, from, bytes, 1, bytes);
	return err;
}

void sl_device_kernels_close(struct sl_device *device, struct sl_device_program *program,
			     struct sl_device_kernel **kernel, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (kernel[i]) {
			device->platform->kernel_close(kernel[i]);
			kernel[i] = NULL;
		}
	if (program)
		device->platform->program_close(program);
}

int sl_device_kernels(struct sl_device *device, const struct sl_kernels *kernels,
		      const char *const *name, unsigned n, struct sl_device_program **program,
		      struct sl_device_kernel **kernel)
{
	struct sl_device_program *made;
	int err = device->platform->program_open(device, kernels, &made);

	if (err)
		return err;
	for (unsigned i = 0; i < n && !err; i++)
		err = device->platform->kernel_open(made, name[i], &kernel[i]);
	if (err) {
		sl_error("%s: %s", device->platform->name, device->platform->problem(device));
		sl_device_kernels_close(device, made, kernel, n);
		return err;
	}
	*program = made;
	return 0;
}

int sl_device_finish(struct sl_device *device, struct sl_device_queue *queue)
{
	const struct sl_platform *p = device->platform;
	struct timespec nap = {0, 20000};
	uint64_t begun = sl_clock_ns();
	struct sl_device_mark *mark;
	int err = p->mark_open(device, &mark);

	if (err)
		return err;
	err = p->mark(queue, mark);
	if (!err)
		err = p->flush(queue);
	while (!err) {
		int done = p->reached(mark);

		if (done)
			err = done < 0 ? done : 0;
		if (done)
			break;
		if (device->patience_ns && sl_clock_ns() - begun > device->patience_ns)
			err = -ETIMEDOUT;
		else
			nanosleep(&nap, NULL);
	}
	p->mark_close(mark);
	return err;
}
