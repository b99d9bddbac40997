/* absent.c - what is left of this folder in a build without libxdp and libbpf. */
#include "net/xdp/xdp.h"

const char *sl_xdp_unavailable(void)
{
	return "libxdp-dev or libbpf-dev was not found when this was built";
}

const char *sl_xdp_kernel_limit(const char *release)
{
	(void)release;
	return NULL;
}
