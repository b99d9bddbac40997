/* absent.c - stands in for opencl.c where the program was built without OpenCL's headers. */
#include "core/device.h"

static const char *unavailable(void)
{
	return "this program was built without the headers of OpenCL (CL/cl.h); install "
	       "opencl-c-headers and "
	       "build again";
}

static unsigned devices(void)
{
	return 0;
}

const struct sl_platform sl_platform_opencl = {
	.name = "opencl",
	.doc = "OpenCL 1.2: GPUs of all makers, and CPUs through PoCL",
	.unavailable = unavailable,
	.devices = devices,
};
