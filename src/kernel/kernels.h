/* kernels.h - the kernels that are part of the program; one name for each source in this folder. */
#ifndef SL_KERNEL_KERNELS_H
#define SL_KERNEL_KERNELS_H

#include <sluice/device.h>

extern const struct sl_kernels sl_kernels_correct, sl_kernels_rings, sl_kernels_veto;

#endif
