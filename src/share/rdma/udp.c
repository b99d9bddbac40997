/* udp.c - shares over a UDP socket: an endpoint of src/endpoint. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/rc_queue.h"
#include "share/rdma/rdma.h"

enum { RECEIVE_BUFFER = 8 << 20, KEYS = 8, DOMAIN = 1, BUDGET = 64, QUEUES_OF_A_PEER = 3 };

struct udp {
	struct sl_share_rdma base;
	struct sl_endpoint *endpoint;
};

struct sl_endpoint_fault sl_share_remote_fault;

static struct udp *udp_of(const struct sl_share_rdma *rdma)
{
	return (struct udp *)(uintptr_t)rdma;
}

static struct sl_qp *qp_of(const struct sl_share_queue *queue)
{
	return (struct sl_qp *)(uintptr_t)queue;
}

struct sl_endpoint *sl_share_rdma_endpoint(struct sl_share_rdma *rdma)
{
	return udp_of(rdma)->endpoint;
}

/* ---- what would be logged ---- */

static void keep_first(void *arg, enum sl_log_level level, const char *line)
{
	const struct sl_share_hush *hush = arg;

	if (level == SL_LOG_ERROR && hush->why && !hush->why[0])
		snprintf(hush->why, hush->bytes, "%s", line);
}

void sl_share_hush(struct sl_share_hush *hush, char *why, size_t bytes)
{
	*hush = (struct sl_share_hush){.why = why, .bytes = bytes, .before = sl_log_target()};
	hush->target = (struct sl_log_target){keep_first, hush};
	if (why)
		why[0] = 0;
	sl_log_set_target(&hush->target);
}

void sl_share_unhush(struct sl_share_hush *hush)
{
	sl_log_set_target(hush->before);
}

/* ---- memory ---- */

static int expose(struct sl_share_rdma *rdma, void *at, uint64_t bytes, uint64_t iova,
		  uint32_t access, uint32_t *key)
{
	const struct sl_endpoint_memory memory = {.at = at,
						  .bytes = bytes,
						  .iova = iova,
						  .has_iova = true,
						  .access = access,
						  .domain = DOMAIN};

	return sl_endpoint_register(udp_of(rdma)->endpoint, &memory, key);
}

static void hide(struct sl_share_rdma *rdma, uint32_t key)
{
	sl_endpoint_deregister(udp_of(rdma)->endpoint, key);
}

static int open_local(struct sl_share_rdma *rdma, void *at, uint64_t bytes,
		      struct sl_share_local *local)
{
	(void)rdma;
	*local = (struct sl_share_local){.at = at, .bytes = bytes};
	return 0;
}

static void close_local(struct sl_share_rdma *rdma, struct sl_share_local *local)
{
	(void)rdma;
	*local = (struct sl_share_local){0};
}

/* ---- queue pairs ---- */

static int open_queue(struct sl_share_rdma *rdma, const struct sl_share_queue_options *o,
		      struct sl_share_queue **queue)
{
	const struct sl_qp_options options = {
		.transport = o->reliable ? SL_ROCE_RC : SL_ROCE_UC,
		.domain = DOMAIN,
		.access = o->access,
		.sends = o->sends,
		.receives = 1,
		.peer_reads = SL_SHARE_READS,
	};
	struct sl_qp *qp;
	int err = sl_qp_create(udp_of(rdma)->endpoint, &options, &qp);

	*queue = err ? NULL : (struct sl_share_queue *)qp;
	return err;
}

static void close_queue(struct sl_share_queue *queue)
{
	sl_qp_destroy(qp_of(queue));
}

static uint32_t number(const struct sl_share_queue *queue)
{
	return sl_qp_number(qp_of(queue));
}

static int connect_queue(struct sl_share_queue *queue, const struct sl_share_path *path)
{
	struct sl_qp_attributes a;

	sl_qp_attributes_init(&a);
	memcpy(a.peer, path->peer, sizeof(a.peer));
	a.peer_port = path->port;
	a.pmtu = path->pmtu;
	a.reads = path->reads;
	a.peer_qpn = path->qpn;
	a.receive_psn = path->receive_psn;
	a.send_psn = path->send_psn;
	return sl_qp_connect(qp_of(queue), &a);
}

static int post(struct sl_share_queue *queue, const struct sl_share_work *w)
{
	const struct sl_work work = {
		.id = w->id,
		.kind = w->read ? SL_ROCE_KIND_READ : SL_ROCE_KIND_WRITE,
		.piece = {{w->at, w->bytes}},
		.rkey = w->rkey,
		.va = w->va,
	};

	return sl_qp_send(qp_of(queue), &work);
}

/* ---- progress ---- */

static bool poll_udp(struct sl_share_rdma *rdma, uint64_t now, struct sl_share_done *done,
		     unsigned *n)
{
	struct sl_endpoint *endpoint = udp_of(rdma)->endpoint;
	struct sl_completion c[SL_SHARE_DONE];
	bool any = sl_endpoint_poll(endpoint, now, BUDGET) > 0;

	*n = sl_endpoint_reap(endpoint, NULL, c, SL_SHARE_DONE);
	for (unsigned i = 0; i < *n; i++)
		done[i] = (struct sl_share_done){c[i].id, c[i].status};
	return any;
}

static bool arm(struct sl_share_rdma *rdma)
{
	(void)rdma;
	return false;
}

static int fd(const struct sl_share_rdma *rdma)
{
	return sl_endpoint_fd(udp_of(rdma)->endpoint);
}

static short events(const struct sl_share_rdma *rdma)
{
	return sl_endpoint_events(udp_of(rdma)->endpoint);
}

static uint64_t wake(const struct sl_share_rdma *rdma)
{
	return sl_endpoint_wake(udp_of(rdma)->endpoint);
}

/* ---- open and close ---- */

static uint16_t port_of(const struct sl_share_rdma *rdma)
{
	return sl_endpoint_port(udp_of(rdma)->endpoint);
}

static void close_udp(struct sl_share_rdma *rdma)
{
	if (!rdma)
		return;
	sl_endpoint_close(udp_of(rdma)->endpoint);
	free(rdma);
}

static const struct sl_share_rdma_ops ops = {
	.close = close_udp,
	.port = port_of,
	.expose = expose,
	.hide = hide,
	.open_local = open_local,
	.close_local = close_local,
	.open_queue = open_queue,
	.close_queue = close_queue,
	.number = number,
	.connect = connect_queue,
	.post = post,
	.poll = poll_udp,
	.arm = arm,
	.fd = fd,
	.events = events,
	.wake = wake,
};

int sl_share_rdma_open_udp(const uint8_t address[SL_NET_GID_BYTES], uint16_t port, uint32_t peers,
			   struct sl_share_rdma **rdma, char *why, size_t why_bytes)
{
	struct sl_endpoint_options options = {.port = port,
					      .keys = KEYS,
					      .qps = QUEUES_OF_A_PEER * peers,
					      .receive_buffer = RECEIVE_BUFFER,
					      .fault = sl_share_remote_fault};
	struct udp *udp = calloc(1, sizeof(*udp));
	struct sl_share_hush hush;
	int err;

	if (!udp) {
		snprintf(why, why_bytes, "no memory");
		return -ENOMEM;
	}
	memcpy(options.address, address, sizeof(options.address));
	sl_share_hush(&hush, why, why_bytes);
	err = sl_endpoint_open(&options, &udp->endpoint);
	sl_share_unhush(&hush);
	if (err) {
		if (!why[0])
			snprintf(why, why_bytes, "its UDP socket: %s", strerror(-err));
		free(udp);
		return err;
	}
	udp->base = (struct sl_share_rdma){.ops = &ops,
					   .pmtu = UINT32_MAX,
					   .reads = SL_SHARE_READS,
					   .read_bytes = SL_SHARE_READ_BYTES};
	*rdma = &udp->base;
	return 0;
}
