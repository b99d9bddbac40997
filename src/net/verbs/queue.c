/* queue.c - queue pairs: made, connected by hand, written to. */
#include "net/verbs/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum {
	INLINE_BYTES = 8,
	HOP_LIMIT = 64,
};

struct sl_verbs_queue {
	struct sl_verbs_nic *nic;
	struct ibv_qp *qp;
	bool reliable;
};

static int modify(struct sl_verbs_queue *q, struct ibv_qp_attr *attr, int mask)
{
	return -q->nic->lib->ibv_modify_qp(q->qp, attr, mask);
}

/* Which attributes a transition must and may name is fixed by the kernel, by type of queue. */
static int to_init(struct sl_verbs_queue *q, enum sl_verbs_access access)
{
	static const unsigned flags[] = {
		[SL_VERBS_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
		[SL_VERBS_REMOTE_WRITE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[SL_VERBS_REMOTE_READ] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = q->nic->info.port,
		.qp_access_flags = flags[access],
	};

	return modify(q, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu mtu_of(uint16_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && (128u << mtu) < bytes)
		mtu++;
	return mtu;
}

static int to_receive(struct sl_verbs_queue *q, const struct sl_verbs_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(path->pmtu),
		.dest_qp_num = path->peer_qpn,
		.rq_psn = path->receive_psn,
		.max_dest_rd_atomic = path->reads ? path->reads : 1,
		.min_rnr_timer = path->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = q->nic->info.port,
			    .grh = {.sgid_index = (uint8_t)q->nic->info.gid_index,
				    .hop_limit = HOP_LIMIT,
				    .traffic_class = path->traffic_class}},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	memcpy(attr.ah_attr.grh.dgid.raw, path->peer, SL_VERBS_GID_BYTES);
	if (q->reliable)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return modify(q, &attr, mask);
}

static int to_send(struct sl_verbs_queue *q, const struct sl_verbs_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = path->send_psn,
		.timeout = path->timeout,
		.retry_cnt = path->retry,
		.rnr_retry = path->rnr_retry,
		.max_rd_atomic = path->reads ? path->reads : 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (q->reliable)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return modify(q, &attr, mask);
}

int sl_verbs_queue_open(struct sl_verbs_nic *nic, bool reliable, uint32_t sends, uint32_t receives,
			enum sl_verbs_access access, struct sl_verbs_queue **queue)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = nic->cq,
		.recv_cq = nic->cq,
		.qp_type = reliable ? IBV_QPT_RC : IBV_QPT_UC,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_BYTES},
	};
	struct sl_verbs_queue *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->nic = nic;
	q->reliable = reliable;
	errno = 0;
	q->qp = nic->lib->ibv_create_qp(nic->pd, &attr);
	err = q->qp ? to_init(q, access) : errno ? -errno : -EIO;
	if (err) {
		sl_error("%s: no %s queue pair with %u receives (at most %u): %s", nic->info.name,
			 reliable ? "RC" : "UC", receives, nic->info.max_work, strerror(-err));
		sl_verbs_queue_close(q);
		return err;
	}
	*queue = q;
	return 0;
}

int sl_verbs_queue_connect(struct sl_verbs_queue *q, const struct sl_verbs_path *path)
{
	char peer[INET6_ADDRSTRLEN];
	int err = to_receive(q, path);

	if (!err)
		err = to_send(q, path);
	if (!err)
		return 0;
	inet_ntop(AF_INET6, path->peer, peer, sizeof(peer));
	sl_error("%s: no connection to %s with path MTU %u: %s; the peer must answer ARP or "
		 "neighbour solicitations, or have an entry (ip neigh add ADDRESS lladdr MAC dev "
		 "INTERFACE)",
		 q->nic->info.name, peer, path->pmtu, strerror(-err));
	return err;
}

uint32_t sl_verbs_queue_number(const struct sl_verbs_queue *q)
{
	return q->qp->qp_num;
}

void sl_verbs_queue_reset(struct sl_verbs_queue *q)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (modify(q, &attr, IBV_QP_STATE))
		sl_warn("%s: a queue pair does not reset; it is closed with the link",
			q->nic->info.name);
}

void sl_verbs_queue_close(struct sl_verbs_queue *q)
{
	if (q->qp)
		q->nic->lib->ibv_destroy_qp(q->qp);
	free(q);
}

static enum ibv_wr_opcode opcode_of(uint32_t flags)
{
	if (flags & SL_VERBS_READ)
		return IBV_WR_RDMA_READ;
	if (flags & SL_VERBS_SEND)
		return flags & SL_VERBS_IMMEDIATE ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	return flags & SL_VERBS_IMMEDIATE ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
}

int sl_verbs_post_send(struct sl_verbs_queue *q, const struct sl_verbs_send *send)
{
	struct ibv_sge piece = {.addr = send->local, .length = send->bytes, .lkey = send->lkey};
	struct ibv_send_wr work = {
		.wr_id = send->id,
		.sg_list = &piece,
		.num_sge = send->bytes ? 1 : 0,
		.opcode = opcode_of(send->flags),
		.send_flags = (send->flags & SL_VERBS_SIGNAL ? IBV_SEND_SIGNALED : 0u) |
			      (send->flags & SL_VERBS_INLINE ? IBV_SEND_INLINE : 0u),
		.imm_data = htonl(send->immediate),
		.wr.rdma = {.remote_addr = send->remote, .rkey = send->rkey},
	};
	struct ibv_send_wr *bad;

	return -ibv_post_send(q->qp, &work, &bad);
}

int sl_verbs_post_receive(struct sl_verbs_queue *q, uint64_t id, uint64_t local, uint32_t bytes,
			  uint32_t lkey)
{
	struct ibv_sge piece = {.addr = local, .length = bytes, .lkey = lkey};
	struct ibv_recv_wr work = {.wr_id = id, .sg_list = &piece, .num_sge = bytes ? 1 : 0};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(q->qp, &work, &bad);
}
