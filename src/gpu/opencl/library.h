/* library.h - the calls of OpenCL 1.2 that are used here, found when the program runs. */
#ifndef SL_GPU_OPENCL_LIBRARY_H
#define SL_GPU_OPENCL_LIBRARY_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define SL_OPENCL_CALLS(X)              \
	X(clGetPlatformIDs)             \
	X(clGetPlatformInfo)            \
	X(clGetDeviceIDs)               \
	X(clGetDeviceInfo)              \
	X(clCreateContext)              \
	X(clReleaseContext)             \
	X(clCreateCommandQueue)         \
	X(clReleaseCommandQueue)        \
	X(clCreateBuffer)               \
	X(clReleaseMemObject)           \
	X(clEnqueueMapBuffer)           \
	X(clEnqueueUnmapMemObject)      \
	X(clEnqueueWriteBuffer)         \
	X(clEnqueueWriteBufferRect)     \
	X(clEnqueueReadBuffer)          \
	X(clEnqueueFillBuffer)          \
	X(clEnqueueMarkerWithWaitList)  \
	X(clEnqueueBarrierWithWaitList) \
	X(clGetEventInfo)               \
	X(clCreateUserEvent)            \
	X(clSetUserEventStatus)         \
	X(clReleaseEvent)               \
	X(clFlush)                      \
	X(clFinish)                     \
	X(clCreateProgramWithSource)    \
	X(clBuildProgram)               \
	X(clGetProgramBuildInfo)        \
	X(clReleaseProgram)             \
	X(clCreateKernel)               \
	X(clReleaseKernel)              \
	X(clSetKernelArg)               \
	X(clEnqueueNDRangeKernel)

struct sl_opencl_library {
#define FIELD(name) __typeof__(name) *name;
	SL_OPENCL_CALLS(FIELD)
#undef FIELD
};

/* NULL: it cannot be used, and *problem says why. */
const struct sl_opencl_library *sl_opencl_library(const char **problem);

/* "CL_INVALID_VALUE" and so on. */
const char *sl_opencl_error(cl_int error);

/* As device.h has them. */
int sl_opencl_errno(cl_int error);

#endif
