/* table.h - what GPU sides of stages do all the time: tables and kernels for a device. */
#ifndef SL_GPU_TABLE_H
#define SL_GPU_TABLE_H

#include "core/device.h"

/* Memory of the device with a copy of what is here, which must stay until the queue is through. */
int sl_device_table(struct sl_device *device, struct sl_device_queue *queue, const void *from,
		    uint64_t bytes, struct sl_device_memory *table);

/* Open all kernels of a program, by name. On failure none is. */
int sl_device_kernels(struct sl_device *device, const struct sl_kernels *kernels,
		      const char *const *name, unsigned n, struct sl_device_program **program,
		      struct sl_device_kernel **kernel);

/* NULLs may be among them. */
void sl_device_kernels_close(struct sl_device *device, struct sl_device_program *program,
			     struct sl_device_kernel **kernel, unsigned n);

/* Wait until all that is queued is done, as long as there is patience: -ETIMEDOUT then. 0 or what
 * went wrong. */
int sl_device_finish(struct sl_device *device, struct sl_device_queue *queue);

/* Groups of `threads` that n items make. */
static inline uint32_t sl_device_groups(uint64_t n, uint32_t threads)
{
	return (uint32_t)((n + threads - 1) / threads);
}

#endif
