/* library.c - finds the CUDA driver at run time. */
#include "gpu/cuda/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static struct sl_cuda_library library;
static char trouble[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *handle, const char *name)
{
	void *symbol = dlsym(handle, name);

	if (!symbol && !trouble[0])
		snprintf(trouble, sizeof(trouble),
			 "libcuda.so.1 has no %s: the NVIDIA driver is older than 470; update it",
			 name);
	return symbol;
}

static void start(void)
{
	CUresult error = library.p_cuInit(0);
	const char *name = NULL;
	int devices = 0;

	if (error != CUDA_SUCCESS) {
		library.p_cuGetErrorName(error, &name);
		snprintf(trouble, sizeof(trouble),
			 "the CUDA driver does not start: %s; does nvidia-smi show a GPU?",
			 name ? name : "for an unknown reason");
	} else if (library.p_cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices < 1) {
		snprintf(trouble, sizeof(trouble), "the CUDA driver finds no GPU on this host");
	}
}

static void load(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		snprintf(trouble, sizeof(trouble),
			 "libcuda.so.1 cannot be loaded: there is no NVIDIA driver on this host");
		return;
	}
#define QUOTED(name)  #name
#define LOOK_UP(name) *(void **)&library.p_##name = find(handle, QUOTED(name));
	SL_CUDA_CALLS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(name) *(void **)&library.p_##name = dlsym(handle, QUOTED(name));
	SL_CUDA_CALLS_OF_515(LOOK_UP)
#undef LOOK_UP
#undef QUOTED
	if (!trouble[0])
		start();
}

const struct sl_cuda_library *sl_cuda_library(const char **problem)
{
	pthread_once(&once, load);
	if (trouble[0]) {
		*problem = trouble;
		return NULL;
	}
	return &library;
}

int sl_cuda_errno(CUresult error)
{
	switch (error) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
		return -ENODEV;
	case CUDA_ERROR_INVALID_VALUE:
	case CUDA_ERROR_NOT_FOUND:
	case CUDA_ERROR_INVALID_HANDLE:
		return -EINVAL;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -ENOTSUP;
	default:
		return -EIO;
	}
}
