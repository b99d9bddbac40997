/* call_absent.c - stands in for call.c where libcurl was not found. */
#include <errno.h>

#include "service/remote/remote.h"

int sl_api_open(const struct sl_api_options *o, struct sl_api **host, char *why, size_t bytes)
{
	snprintf(why, bytes,
		 "libcurl4-openssl-dev was not found when this was built: --host cannot be used");
	return -ENOTSUP;
}

void sl_api_close(struct sl_api *h)
{
}

int sl_api_call(struct sl_api *h, const char *method, const char *path, const char *type,
		const char *body, size_t bytes, struct sl_api_answer *answer)
{
	return -ENOTSUP;
}

void sl_api_stop(struct sl_api *h)
{
}

void sl_api_free(struct sl_api_answer *answer)
{
}

int sl_api_events(struct sl_api *h, const char *path,
		  bool (*each)(void *arg, const char *name, const char *data), void *arg,
		  struct sl_api_answer *answer)
{
	return -ENOTSUP;
}

const char *sl_api_problem(const struct sl_api *h)
{
	return "";
}
