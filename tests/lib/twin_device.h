/* twin_device.h - OpenCL as a platform whose device is opened once and whose programs are compiled
 * once, however many units use them one after the other.
 *
 * A driver reads the whole text of a program each time, even where it has its code in a cache; for
 * PoCL that is most of a short test. What units let go of is counted all the same. */
#ifndef TESTS_LIB_TWIN_DEVICE_H
#define TESTS_LIB_TWIN_DEVICE_H

#include <sluice/device.h>

#include "lib/twin_rig.h"

enum { TWIN_PROGRAMS = 32 };

static struct {
	struct sl_device *device;
	const struct sl_kernels *kernels[TWIN_PROGRAMS];
	struct sl_device_program *program[TWIN_PROGRAMS];
	int programs, devices_open, programs_open;
} twin_kept;

static struct sl_platform twin_platform;

static inline int twin_device_open(unsigned index, struct sl_device **device)
{
	int err = twin_kept.device || index ? 0 : sl_platform_opencl.open(0, &twin_kept.device);

	if (index)
		return sl_platform_opencl.open(index, device);
	if (err)
		return err;
	twin_kept.devices_open++;
	twin_kept.device->platform = &twin_platform;
	*device = twin_kept.device;
	return 0;
}

static inline void twin_device_close(struct sl_device *device)
{
	assert_ptr_equal(device, twin_kept.device);
	twin_kept.devices_open--;
}

static inline int twin_program_open(struct sl_device *device, const struct sl_kernels *kernels,
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
	twin_kept.programs_open++;
	*program = twin_kept.program[i];
	return 0;
}

static inline void twin_program_close(struct sl_device_program *program)
{
	twin_kept.programs_open--;
}

/* To begin with. */
static inline void twin_device_init(void)
{
	twin_platform = sl_platform_opencl;
	twin_platform.open = twin_device_open;
	twin_platform.close = twin_device_close;
	twin_platform.program_open = twin_program_open;
	twin_platform.program_close = twin_program_close;
}

/* In the end: nobody has kept anything. */
static inline int twin_device_fini(void)
{
	for (int i = 0; i < twin_kept.programs; i++)
		sl_platform_opencl.program_close(twin_kept.program[i]);
	if (twin_kept.device)
		sl_platform_opencl.close(twin_kept.device);
	return twin_kept.devices_open || twin_kept.programs_open;
}

#endif
