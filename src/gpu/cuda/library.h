/* library.h - the calls of the CUDA driver that are used here, found when the program runs. */
#ifndef SL_GPU_CUDA_LIBRARY_H
#define SL_GPU_CUDA_LIBRARY_H

#include <cuda.h>

/* cuda.h makes some of them another name with a version; both sides of the macro see that one. */
#define SL_CUDA_CALLS(X)                     \
	X(cuInit)                            \
	X(cuDriverGetVersion)                \
	X(cuGetErrorName)                    \
	X(cuGetErrorString)                  \
	X(cuDeviceGetCount)                  \
	X(cuDeviceGet)                       \
	X(cuDeviceGetName)                   \
	X(cuDeviceTotalMem)                  \
	X(cuDeviceGetAttribute)              \
	X(cuDevicePrimaryCtxRetain)          \
	X(cuDevicePrimaryCtxRelease)         \
	X(cuCtxSetCurrent)                   \
	X(cuMemGetInfo)                      \
	X(cuMemAlloc)                        \
	X(cuMemFree)                         \
	X(cuMemHostAlloc)                    \
	X(cuMemFreeHost)                     \
	X(cuMemHostGetDevicePointer)         \
	X(cuMemHostRegister)                 \
	X(cuMemHostUnregister)               \
	X(cuMemcpyHtoDAsync)                 \
	X(cuMemcpyDtoHAsync)                 \
	X(cuMemcpy2DAsync)                   \
	X(cuMemsetD8Async)                   \
	X(cuStreamCreate)                    \
	X(cuStreamDestroy)                   \
	X(cuEventCreate)                     \
	X(cuEventDestroy)                    \
	X(cuEventRecord)                     \
	X(cuEventQuery)                      \
	X(cuStreamWaitEvent)                 \
	X(cuModuleLoadData)                  \
	X(cuModuleUnload)                    \
	X(cuModuleGetFunction)               \
	X(cuLaunchKernel)                    \
	X(cuStreamBeginCapture)              \
	X(cuStreamEndCapture)                \
	X(cuThreadExchangeStreamCaptureMode) \
	X(cuGraphInstantiateWithFlags)       \
	X(cuGraphLaunch)                     \
	X(cuGraphDestroy)                    \
	X(cuGraphExecDestroy)

/* What drivers before 515 or 520 do not have, and only the units' trigger `wait` and rings that are
 * shared need: may be NULL. */
#define SL_CUDA_CALLS_OF_515(X) X(cuStreamWaitValue32) X(cuMemGetHandleForAddressRange)

struct sl_cuda_library {
#define FIELD(name) __typeof__(name) *p_##name;
	SL_CUDA_CALLS(FIELD)
	SL_CUDA_CALLS_OF_515(FIELD)
#undef FIELD
};

/* The driver, ready to use. NULL: it cannot be used, and *problem says why. */
const struct sl_cuda_library *sl_cuda_library(const char **problem);

/* As device.h has them. */
int sl_cuda_errno(CUresult error);

#endif
