/* peer_verbs.c - a peer over libibverbs, on whichever device has the address. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/peer_backend.h"

enum { CQ_DEPTH = 16384, PORT = 1, HOP_LIMIT = 64 };

static struct ibv_context *device;
static struct ibv_pd *domain;
static struct ibv_cq *queue;
static int gid_index;

struct datagram_handle { /* of a UD queue: where it sent to last */
	struct ibv_ah *route;
	char to[64];
};

struct qp_handle {
	struct ibv_qp *qp;
	struct datagram_handle datagram;
};

static int parse_gid(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof *gid);
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return 0;
	gid->raw[10] = gid->raw[11] = 0xff;
	return inet_pton(AF_INET, text, gid->raw + 12) == 1 ? 0 : -EINVAL;
}

/* The index of a RoCEv2 address among those of a device; -1: it has another. */
static int find_gid(struct ibv_context *context, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	for (int i = 0; i < 64; i++)
		if (!ibv_query_gid_ex(context, PORT, (uint32_t)i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, gid, sizeof *gid))
			return i;
	return -1;
}

static int open_device(const union ibv_gid *gid)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	for (int i = 0; i < count && !device; i++) {
		struct ibv_context *context = ibv_open_device(list[i]);
		if (!context)
			continue;
		gid_index = find_gid(context, gid);
		if (gid_index >= 0)
			device = context;
		else
			ibv_close_device(context);
	}
	if (list)
		ibv_free_device_list(list);
	return device ? 0 : -ENODEV;
}

int peer_open(const char *address)
{
	union ibv_gid gid;
	int result = parse_gid(address, &gid);
	if (!result)
		result = open_device(&gid);
	if (result)
		return result;
	domain = ibv_alloc_pd(device);
	queue = ibv_create_cq(device, CQ_DEPTH, NULL, NULL, 0);
	return domain && queue ? 0 : -errno;
}

void peer_close(void)
{
	ibv_destroy_cq(queue);
	ibv_dealloc_pd(domain);
	ibv_close_device(device);
}

static int access_flags(unsigned access)
{
	return IBV_ACCESS_LOCAL_WRITE | (access & PEER_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       (access & PEER_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0);
}

int peer_region_add(struct peer_region *region)
{
	struct ibv_mr *mr =
		ibv_reg_mr(domain, region->memory, region->bytes, access_flags(region->access));
	if (!mr)
		return -errno;
	region->handle = mr;
	region->rkey = mr->rkey;
	return 0;
}

void peer_region_remove(struct peer_region *region)
{
	ibv_dereg_mr(region->handle);
}

/* ---- queue pairs ---- */

static int to_init(struct ibv_qp *qp, const struct peer_qp *of)
{
	struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (of->transport == PEER_UD) {
		attributes.qkey = of->qkey;
		return ibv_modify_qp(qp, &attributes, mask | IBV_QP_QKEY);
	}
	attributes.qp_access_flags = (unsigned)access_flags(of->access);
	if (of->transport == PEER_UC) /* which knows no READ */
		attributes.qp_access_flags &= ~(unsigned)IBV_ACCESS_REMOTE_READ;
	return ibv_modify_qp(qp, &attributes, mask | IBV_QP_ACCESS_FLAGS);
}

static int create(struct peer_qp *qp, struct qp_handle *handle)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct ibv_qp_init_attr options = {.send_cq = queue,
					   .recv_cq = queue,
					   .qp_type = types[qp->transport],
					   .sq_sig_all = 1,
					   .cap = {.max_send_wr = qp->depth,
						   .max_recv_wr = qp->depth,
						   .max_send_sge = 1,
						   .max_recv_sge = 1}};
	handle->qp = ibv_create_qp(domain, &options);
	if (!handle->qp)
		return -errno;
	int error = to_init(handle->qp, qp);
	if (error)
		ibv_destroy_qp(handle->qp);
	return -error;
}

int peer_qp_create(struct peer_qp *qp)
{
	struct qp_handle *handle = calloc(1, sizeof *handle);
	if (!handle)
		return -ENOMEM;
	int result = create(qp, handle);
	if (result) {
		free(handle);
		return result;
	}
	qp->handle = handle;
	qp->qpn = handle->qp->qp_num;
	return 0;
}

static int set_route(const char *address, struct ibv_ah_attr *route)
{
	*route = (struct ibv_ah_attr){.is_global = 1, .port_num = PORT};
	route->grh.sgid_index = (uint8_t)gid_index;
	route->grh.hop_limit = HOP_LIMIT;
	return parse_gid(address, &route->grh.dgid);
}

static enum ibv_mtu mtu_code(uint32_t pmtu)
{
	enum ibv_mtu code = IBV_MTU_256;
	while (code < IBV_MTU_4096 && 128u << code < pmtu)
		code++;
	return code;
}

static int to_rtr(struct ibv_qp *qp, const struct peer_qp *of)
{
	struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
					 .path_mtu = mtu_code(of->pmtu),
					 .dest_qp_num = of->peer_qpn,
					 .rq_psn = of->peer_psn,
					 .max_dest_rd_atomic = (uint8_t)of->reads,
					 .min_rnr_timer = of->rnr_timer};
	int mask = IBV_QP_STATE;
	if (of->transport != PEER_UD) {
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		if (set_route(of->peer, &attributes.ah_attr))
			return EINVAL;
	}
	if (of->transport == PEER_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attributes, mask);
}

static int to_rts(struct ibv_qp *qp, const struct peer_qp *of)
{
	struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS,
					 .sq_psn = of->psn,
					 .timeout = of->timeout,
					 .retry_cnt = of->retries,
					 .rnr_retry = of->rnr_retries,
					 .max_rd_atomic = (uint8_t)of->reads};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (of->transport == PEER_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attributes, mask);
}

int peer_qp_connect(struct peer_qp *qp)
{
	struct qp_handle *handle = qp->handle;
	int error = to_rtr(handle->qp, qp);
	if (!error)
		error = to_rts(handle->qp, qp);
	return -error;
}

void peer_qp_destroy(struct peer_qp *qp)
{
	struct qp_handle *handle = qp->handle;
	if (handle->datagram.route)
		ibv_destroy_ah(handle->datagram.route);
	ibv_destroy_qp(handle->qp);
	free(handle);
}

const char *peer_qp_state(struct peer_qp *qp)
{
	static const char *const names[] = {"reset", "init",  "rtr",  "rts",
					    "other", "other", "error"};
	struct qp_handle *handle = qp->handle;
	struct ibv_qp_attr attributes;
	struct ibv_qp_init_attr options;
	if (ibv_query_qp(handle->qp, &attributes, IBV_QP_STATE, &options))
		return "other";
	return attributes.qp_state <= IBV_QPS_ERR ? names[attributes.qp_state] : "other";
}

/* ---- work ---- */

static struct ibv_sge piece_of(const struct peer_work *work)
{
	const struct ibv_mr *mr = work->region->handle;
	return (struct ibv_sge){(uintptr_t)work->region->memory + work->offset, work->bytes,
				mr->lkey};
}

int peer_receive(struct peer_qp *qp, const struct peer_work *work)
{
	struct qp_handle *handle = qp->handle;
	struct ibv_sge piece = piece_of(work);
	struct ibv_recv_wr request = {.wr_id = work->id, .sg_list = &piece, .num_sge = 1}, *bad;
	return -ibv_post_recv(handle->qp, &request, &bad);
}

/* The route of a datagram; kept for the next one to the same place. */
static int find_route(struct datagram_handle *datagram, const char *to)
{
	struct ibv_ah_attr attributes;
	if (datagram->route && !strcmp(datagram->to, to))
		return 0;
	if (set_route(to, &attributes))
		return -EINVAL;
	if (datagram->route)
		ibv_destroy_ah(datagram->route);
	datagram->route = ibv_create_ah(domain, &attributes);
	snprintf(datagram->to, sizeof datagram->to, "%s", to);
	return datagram->route ? 0 : -errno;
}

int peer_post(struct peer_qp *qp, const struct peer_work *work)
{
	static const enum ibv_wr_opcode opcodes[PEER_KINDS] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ};
	struct qp_handle *handle = qp->handle;
	struct ibv_sge piece = piece_of(work);
	struct ibv_send_wr request = {.wr_id = work->id,
				      .sg_list = &piece,
				      .num_sge = work->bytes ? 1 : 0,
				      .opcode = opcodes[work->kind],
				      .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	request.imm_data = htonl(work->imm);
	if (qp->transport == PEER_UD) {
		int result = find_route(&handle->datagram, work->to);
		if (result)
			return result;
		request.wr.ud.ah = handle->datagram.route;
		request.wr.ud.remote_qpn = work->to_qpn;
		request.wr.ud.remote_qkey = work->to_qkey;
	} else {
		request.wr.rdma.remote_addr = work->va;
		request.wr.rdma.rkey = work->rkey;
	}
	return -ibv_post_send(handle->qp, &request, &bad);
}

static const char *what_of(enum ibv_wc_opcode opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return "send";
	case IBV_WC_RDMA_WRITE:
		return "write";
	case IBV_WC_RDMA_READ:
		return "read";
	case IBV_WC_RECV:
		return "recv";
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return "recv_write";
	default:
		return "other";
	}
}

bool peer_poll(struct peer_done *done)
{
	struct ibv_wc wc;
	if (ibv_poll_cq(queue, 1, &wc) != 1)
		return false;
	*done = (struct peer_done){.id = wc.wr_id, .qpn = wc.qp_num, .status = (int)wc.status};
	if (wc.status)
		return true;
	done->what = what_of(wc.opcode);
	done->bytes = wc.byte_len;
	done->has_imm = wc.wc_flags & IBV_WC_WITH_IMM;
	done->imm = done->has_imm ? ntohl(wc.imm_data) : 0;
	return true;
}

/* The kernel works by itself. */
void peer_wait(int fd, int timeout_ms)
{
	struct pollfd fds = {fd, POLLIN, 0};
	poll(&fds, 1, timeout_ms < 1 ? timeout_ms : fd < 0 ? 1 : timeout_ms);
}

void peer_counters(char *text, size_t bytes)
{
	text[0] = '\0';
}
