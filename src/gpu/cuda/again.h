/* again.h - the kernel that has a CUDA device launch a graph again: again.cu. */
#ifndef SL_GPU_CUDA_AGAIN_H
#define SL_GPU_CUDA_AGAIN_H

#include "core/device.h"

extern const struct sl_kernels sl_kernels_again;

#endif
