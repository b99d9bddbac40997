/* gpu_device.h - OpenCL as a platform whose device is opened once and whose programs are compiled
 * once, however many units use them one after the other.
 *
 * A driver reads the whole text of a program each time, even where it has its code in a cache; for
 * PoCL that is most of a short test. What units let go of is counted, since LeakSanitizer is not
 * asked about what PoCL allocates: some of that is left though all that is counted is closed. */
#ifndef TESTS_LIB_GPU_DEVICE_H
#define TESTS_LIB_GPU_DEVICE_H

#include "core/device.h"
#include "lib/gpu_rig.h"

enum { GPU_PROGRAMS = 32 };

extern struct sl_platform gpu_platform;

int gpu_device_open(unsigned index, struct sl_device **device);

void gpu_device_close(struct sl_device *device);

/* To begin with. */
void gpu_device_init(void);

/* In the end: nobody has kept anything. */
int gpu_device_fini(void);

#endif
