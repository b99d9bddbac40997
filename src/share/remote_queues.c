/* remote_queues.c - what both sides of a connection between hosts need: an endpoint, queue pairs,
 * and what TCP knows of the path. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
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
	RECEIVE_BUFFER = 8 << 20,
	KEYS = 8,
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

/* ---- the endpoint ---- */

struct sl_endpoint_fault sl_share_remote_fault;

struct lines { /* what would be logged */
	char *why;
	size_t bytes;
};

static void keep_first(void *arg, enum sl_log_level level, const char *line)
{
	const struct lines *lines = arg;

	if (level == SL_LOG_ERROR && !lines->why[0])
		snprintf(lines->why, lines->bytes, "%s", line);
}

int sl_share_remote_endpoint(const uint8_t address[SL_NET_GID_BYTES], uint16_t port, uint32_t qps,
			     struct sl_endpoint **endpoint, char *why, size_t why_bytes)
{
	struct sl_endpoint_options options = {.port = port,
					      .keys = KEYS,
					      .qps = qps,
					      .receive_buffer = RECEIVE_BUFFER,
					      .fault = sl_share_remote_fault};
	const struct sl_log_target *before = sl_log_target();
	struct lines lines = {why, why_bytes};
	const struct sl_log_target target = {keep_first, &lines};
	int err;

	memcpy(options.address, address, sizeof(options.address));
	why[0] = 0;
	sl_log_set_target(&target);
	err = sl_endpoint_open(&options, endpoint);
	sl_log_set_target(before);
	if (err && !why[0])
		snprintf(why, why_bytes, "its UDP socket: %s", strerror(-err));
	return err;
}

/* ---- queue pairs ---- */

void sl_share_remote_disconnect(struct sl_qp *qp[SL_SHARE_QUEUES])
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++) {
		sl_qp_destroy(qp[i]);
		qp[i] = NULL;
	}
}

int sl_share_remote_queues(struct sl_endpoint *endpoint, uint32_t sends,
			   const uint32_t access[SL_SHARE_QUEUES],
			   struct sl_qp *qp[SL_SHARE_QUEUES], struct sl_share_remote_end *end)
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++) {
		const struct sl_qp_options options = {
			.transport = i == SL_SHARE_ARRIVALS ? SL_ROCE_UC : SL_ROCE_RC,
			.domain = SL_SHARE_DOMAIN,
			.access = access[i],
			.sends = sends,
			.receives = 1,
			.peer_reads = SL_SHARE_READS,
		};
		int err = sl_qp_create(endpoint, &options, &qp[i]);

		if (err) {
			qp[i] = NULL;
			sl_share_remote_disconnect(qp);
			return err;
		}
		end->qpn[i] = sl_qp_number(qp[i]);
		end->psn[i] = sl_secret_u32() & SL_ROCE_PSN_MASK;
	}
	end->port = sl_endpoint_port(endpoint);
	return 0;
}

int sl_share_remote_connect(struct sl_qp *const qp[SL_SHARE_QUEUES],
			    const uint8_t peer[SL_NET_GID_BYTES],
			    const struct sl_share_remote_end *ours,
			    const struct sl_share_remote_end *theirs)
{
	struct sl_qp_attributes a;
	int err = 0;

	sl_qp_attributes_init(&a);
	memcpy(a.peer, peer, sizeof(a.peer));
	a.peer_port = (uint16_t)theirs->port;
	a.pmtu = ours->pmtu < theirs->pmtu ? ours->pmtu : theirs->pmtu;
	a.reads = SL_SHARE_READS;
	for (unsigned i = 0; i < SL_SHARE_QUEUES && !err; i++) {
		a.peer_qpn = theirs->qpn[i];
		a.receive_psn = theirs->psn[i];
		a.send_psn = ours->psn[i];
		err = sl_qp_connect(qp[i], &a);
	}
	return err;
}
