/* absent.c - stands in for cuda.c where the program was built without CUDA's header. */
#include "core/device.h"

static const char *unavailable(void)
{
	return "this program was built without CUDA's header (cuda.h); install the CUDA toolkit "
	       "and "
	       "build again";
}

static unsigned devices(void)
{
	return 0;
}

const struct sl_platform sl_platform_cuda = {
	.name = "cuda",
	.doc = "GPUs of NVIDIA, through their driver",
	.unavailable = unavailable,
	.devices = devices,
};
