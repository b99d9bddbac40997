/* library.c - finds the OpenCL loader at run time, and names its errors. */
#include "gpu/opencl/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static struct sl_opencl_library library;
static char trouble[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *handle, const char *name)
{
	void *symbol = dlsym(handle, name);

	if (!symbol && !trouble[0])
		snprintf(trouble, sizeof(trouble),
			 "libOpenCL.so.1 has no %s: it is older than OpenCL 1.2", name);
	return symbol;
}

static void load(void)
{
	void *handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		snprintf(trouble, sizeof(trouble),
			 "libOpenCL.so.1 cannot be loaded; install an OpenCL loader and a driver "
			 "(Debian, Ubuntu: apt install ocl-icd-libopencl1 pocl-opencl-icd runs it "
			 "on the CPU)");
		return;
	}
#define LOOK_UP(name) *(void **)&library.name = find(handle, #name);
	SL_OPENCL_CALLS(LOOK_UP)
#undef LOOK_UP
}

const struct sl_opencl_library *sl_opencl_library(const char **problem)
{
	pthread_once(&once, load);
	if (trouble[0]) {
		*problem = trouble;
		return NULL;
	}
	return &library;
}

static const struct {
	cl_int error;
	const char *name;
} errors[] = {
#define NAME(error)           \
	{                     \
		error, #error \
	}
	NAME(CL_DEVICE_NOT_FOUND),
	NAME(CL_DEVICE_NOT_AVAILABLE),
	NAME(CL_COMPILER_NOT_AVAILABLE),
	NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
	NAME(CL_OUT_OF_RESOURCES),
	NAME(CL_OUT_OF_HOST_MEMORY),
	NAME(CL_MEM_COPY_OVERLAP),
	NAME(CL_BUILD_PROGRAM_FAILURE),
	NAME(CL_MAP_FAILURE),
	NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
	NAME(CL_INVALID_VALUE),
	NAME(CL_INVALID_PLATFORM),
	NAME(CL_INVALID_DEVICE),
	NAME(CL_INVALID_CONTEXT),
	NAME(CL_INVALID_COMMAND_QUEUE),
	NAME(CL_INVALID_HOST_PTR),
	NAME(CL_INVALID_MEM_OBJECT),
	NAME(CL_INVALID_BINARY),
	NAME(CL_INVALID_BUILD_OPTIONS),
	NAME(CL_INVALID_PROGRAM),
	NAME(CL_INVALID_PROGRAM_EXECUTABLE),
	NAME(CL_INVALID_KERNEL_NAME),
	NAME(CL_INVALID_KERNEL),
	NAME(CL_INVALID_ARG_INDEX),
	NAME(CL_INVALID_ARG_VALUE),
	NAME(CL_INVALID_ARG_SIZE),
	NAME(CL_INVALID_KERNEL_ARGS),
	NAME(CL_INVALID_WORK_DIMENSION),
	NAME(CL_INVALID_WORK_GROUP_SIZE),
	NAME(CL_INVALID_WORK_ITEM_SIZE),
	NAME(CL_INVALID_EVENT_WAIT_LIST),
	NAME(CL_INVALID_EVENT),
	NAME(CL_INVALID_OPERATION),
	NAME(CL_INVALID_BUFFER_SIZE),
	NAME(CL_INVALID_GLOBAL_WORK_SIZE),
#undef NAME
};

const char *sl_opencl_error(cl_int error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].name;
	return "an unknown OpenCL error";
}

int sl_opencl_errno(cl_int error)
{
	switch (error) {
	case CL_SUCCESS:
		return 0;
	case CL_MEM_OBJECT_ALLOCATION_FAILURE:
	case CL_OUT_OF_RESOURCES:
	case CL_OUT_OF_HOST_MEMORY:
	case CL_INVALID_BUFFER_SIZE:
		return -ENOMEM;
	case CL_DEVICE_NOT_FOUND:
	case CL_DEVICE_NOT_AVAILABLE:
		return -ENODEV;
	case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
	case CL_BUILD_PROGRAM_FAILURE:
	case CL_MAP_FAILURE:
		return -EIO;
	default:
		return error <= CL_INVALID_VALUE ? -EINVAL : -EIO;
	}
}
