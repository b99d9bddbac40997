/* nic.h - what the files of src/net/verbs know of a NIC. */
#ifndef SL_NET_VERBS_NIC_H
#define SL_NET_VERBS_NIC_H

#include "net/verbs/library.h"
#include "net/verbs/verbs.h"

struct sl_verbs_nic {
	const struct sl_verbs_library *lib;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct sl_verbs_info info;
	/* Events taken and not acknowledged: that takes a mutex, so it is done when closing. */
	unsigned events;
	bool failed; /* it said so: no request completes any longer */
};

/* find.c: one address after another, until told to stop (true). */
typedef bool sl_verbs_visit_fn(void *arg, struct ibv_context *context,
			       const struct sl_verbs_info *info);
int sl_verbs_visit(const struct sl_verbs_library *lib, const char *names, sl_verbs_visit_fn *visit,
		   void *arg);

#endif
