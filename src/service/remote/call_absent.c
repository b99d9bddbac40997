/* call_absent.c - stands in for call.c where libcurl was not found. */
#include <errno.h>

#include "service/remote/remote.h"

int sl_host_open(const struct sl_host_options *o, struct sl_host **host, char *why, size_t bytes)
{
	snprintf(why, bytes,
		 "libcurl4-openssl-dev was not found when this was built: --host cannot be used");
	return -ENOTSUP;
}

void sl_host_close(struct sl_host *h)
{
}

int sl_host_call(struct sl_host *h, const char *method, const char *path, const char *type,
		 const char *body, size_t bytes, struct sl_host_answer *answer)
{
	return -ENOTSUP;
}

void sl_host_free(struct sl_host_answer *answer)
{
}

int sl_host_events(struct sl_host *h, const char *path,
		   bool (*each)(void *arg, const char *name, const char *data), void *arg,
		   struct sl_host_answer *answer)
{
	return -ENOTSUP;
}

const char *sl_host_problem(const struct sl_host *h)
{
	return "";
}
