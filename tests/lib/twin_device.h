/* twin_device.h - OpenCL as a platform whose device is opened once and whose programs are compiled
 * once, however many units use them one after the other.
 *
 * A driver reads the whole text of a program each time, even where it has its code in a cache; for
 * PoCL that is most of a short test. What units let go of is counted, since LeakSanitizer is not
 * asked about what PoCL allocates: some of that is left though all that is counted is closed. */
#ifndef TESTS_LIB_TWIN_DEVICE_H
#define TESTS_LIB_TWIN_DEVICE_H

#include "core/device.h"
#include "lib/twin_rig.h"

enum { TWIN_PROGRAMS = 32 };

extern struct sl_platform twin_platform;

int twin_device_open(unsigned index, struct sl_device **device);

void twin_device_close(struct sl_device *device);

/* To begin with. */
void twin_device_init(void);

/* In the end: nobody has kept anything. */
int twin_device_fini(void);

#endif
