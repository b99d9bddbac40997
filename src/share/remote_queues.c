/* remote_queues.c - what both sides of a connection between hosts need: queue pairs, and what TCP
 * knows of the path. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "roce/psn.h"
#include "share/remote.h"

enum {
	/* A host that lost power or its cable says nothing: after about 11 s it has gone. */
	IDLE_S = 5,
	PROBE_S = 2,
	PROBES = 3,
	HEADERS = 40 + 8 + SL_ROCE_HEADERS_MAX + SL_ROCE_TRAILER_MAX, /* IPv6, UDP, RoCEv2 */
	PMTU_LEAST = 256,
	PMTU_MOST = 4096,
};

void sl_share_remote_keep(int socket)
{
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &(int){IDLE_S}, sizeof(int));
	setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &(int){PROBE_S}, sizeof(int));
	setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &(int){PROBES}, sizeof(int));
}

int sl_share_remote_address(int socket, bool other, uint8_t address[SL_NET_GID_BYTES])
{
	union sl_net_address at;
	socklen_t bytes = sizeof(at);
	int failed = other ? getpeername(socket, &at.any, &bytes)
			   : getsockname(socket, &at.any, &bytes);

	if (failed)
		return -errno;
	sl_net_gid(&at, address);
	return 0;
}

uint32_t sl_share_remote_pmtu(int socket)
{
	uint32_t pmtu = PMTU_MOST;
	int mtu = 0, domain = AF_INET;
	socklen_t bytes = sizeof(mtu), domain_bytes = sizeof(domain);

	getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes);
	if (domain == AF_INET6 ? getsockopt(socket, IPPROTO_IPV6, IPV6_MTU, &mtu, &bytes)
			       : getsockopt(socket, IPPROTO_IP, IP_MTU, &mtu, &bytes))
		return 1024; /* fits Ethernet */
	while (pmtu > PMTU_LEAST && pmtu + HEADERS > (uint32_t)mtu)
		pmtu /= 2;
	return pmtu;
}

/* ---- queue pairs ---- */

void sl_share_remote_disconnect(struct sl_share_rdma *rdma,
				struct sl_share_queue *queue[SL_SHARE_QUEUES])
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++) {
		rdma->ops->close_queue(queue[i]);
		queue[i] = NULL;
	}
}

int sl_share_remote_queues(struct sl_share_rdma *rdma, uint32_t sends,
			   const uint32_t access[SL_SHARE_QUEUES],
			   struct sl_share_queue *queue[SL_SHARE_QUEUES],
			   struct sl_share_remote_end *end)
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++) {
		const struct sl_share_queue_options options = {
			.reliable = i != SL_SHARE_ARRIVALS, .access = access[i], .sends = sends};
		int err = rdma->ops->open_queue(rdma, &options, &queue[i]);

		if (err) {
			sl_share_remote_disconnect(rdma, queue);
			return err;
		}
		end->qpn[i] = rdma->ops->number(queue[i]);
		end->psn[i] = sl_secret_u32() & SL_ROCE_PSN_MASK;
	}
	end->port = rdma->ops->port(rdma);
	end->nic = rdma->is_nic;
	end->reads = rdma->reads;
	if (rdma->pmtu < end->pmtu)
		end->pmtu = rdma->pmtu;
	return 0;
}

static uint32_t reads_of(const struct sl_share_remote_end *ours,
			 const struct sl_share_remote_end *theirs)
{
	uint64_t most = theirs->reads ? theirs->reads : SL_SHARE_READS;

	return (uint32_t)(ours->reads < most ? ours->reads : most);
}

int sl_share_remote_connect(struct sl_share_rdma *rdma,
			    struct sl_share_queue *const queue[SL_SHARE_QUEUES],
			    const uint8_t peer[SL_NET_GID_BYTES],
			    const struct sl_share_remote_end *ours,
			    const struct sl_share_remote_end *theirs)
{
	struct sl_share_path path = {
		.port = (uint16_t)theirs->port,
		.pmtu = ours->pmtu < theirs->pmtu ? ours->pmtu : theirs->pmtu,
		.reads = reads_of(ours, theirs),
	};
	int err = 0;

	memcpy(path.peer, peer, sizeof(path.peer));
	for (unsigned i = 0; i < SL_SHARE_QUEUES && !err; i++) {
		path.qpn = theirs->qpn[i];
		path.receive_psn = theirs->psn[i];
		path.send_psn = ours->psn[i];
		err = rdma->ops->connect(queue[i], &path);
	}
	return err;
}
