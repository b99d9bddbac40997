/* absent.c - stands in where libibverbs-dev was not there to build against: the doctor can still
 * ask. */
#include "net/verbs/verbs.h"

const char *sl_verbs_unavailable(void)
{
	return "this program was built without libibverbs-dev; install it (Fedora, RHEL: "
	       "rdma-core-devel) and build again";
}

int sl_verbs_survey(void (*found)(void *arg, const struct sl_verbs_info *info), void *arg)
{
	(void)found;
	(void)arg;
	return 0;
}
