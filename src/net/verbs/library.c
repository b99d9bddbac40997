/* library.c - finds libibverbs at run time, or the words for why it cannot be used. */
#include "net/verbs/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "net/verbs/verbs.h"

static struct sl_verbs_library library;
static char problem[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *handle, const char *name, const char *version)
{
	void *symbol = dlvsym(handle, name, version);

	if (!symbol && !problem[0])
		snprintf(problem, sizeof(problem),
			 "libibverbs.so.1 has no %s (%s): it is older than rdma-core 32; update "
			 "libibverbs1 and ibverbs-providers, or rdma-core",
			 name, version);
	return symbol;
}

static void load(void)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		snprintf(problem, sizeof(problem),
			 "libibverbs.so.1 cannot be loaded; install rdma-core (Debian, Ubuntu: apt "
			 "install libibverbs1 ibverbs-providers; Fedora, RHEL: dnf install "
			 "libibverbs)");
		return;
	}
#define LOOK_UP(name, version) *(void **)&library.name = find(handle, #name, version);
	SL_VERBS_CALLS(LOOK_UP)
#undef LOOK_UP
	*(void **)&library.ibv_reg_dmabuf_mr = dlvsym(handle, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
}

const char *sl_verbs_unavailable(void)
{
	pthread_once(&once, load);
	return problem[0] ? problem : NULL;
}

const struct sl_verbs_library *sl_verbs_library(void)
{
	return sl_verbs_unavailable() ? NULL : &library;
}
