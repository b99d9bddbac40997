/* no_nic.c - stands in for nic.c where libibverbs-dev was not there to build against. */
#include <errno.h>
#include <stdio.h>

#include "net/verbs/verbs.h"
#include "share/rdma/rdma.h"

int sl_share_rdma_open_nic(const char *device, const uint8_t address[SL_NET_GID_BYTES],
			   uint32_t peers, uint32_t sends, struct sl_share_rdma **rdma, char *why,
			   size_t why_bytes)
{
	(void)address;
	(void)peers;
	(void)sends;
	(void)rdma;
	snprintf(why, why_bytes, "device: '%s' cannot be used: %s", device, sl_verbs_unavailable());
	return -EOPNOTSUPP;
}
