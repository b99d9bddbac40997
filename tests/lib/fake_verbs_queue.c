/* fake_verbs_queue.c - the data path of the fake library: requests are carried out by memcpy, as
 * IBTA's responders would. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fake_verbs.h"
#include "lib/fake_verbs_private.h"

static unsigned retries = 3; /* looks at a request that cannot be carried out */
static bool (*lose_packet)(void *arg, uint32_t qpn, uint32_t psn);
static void *lose_arg;

void fake_verbs_lose(bool (*lose)(void *arg, uint32_t qpn, uint32_t psn), void *arg)
{
	fake_lock();
	lose_packet = lose;
	lose_arg = arg;
	fake_unlock();
}

void fake_verbs_retry(unsigned tries)
{
	fake_lock();
	retries = tries;
	fake_unlock();
}

static uint32_t bytes_of(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

/* The memory behind a key of a domain, or NULL. */
static uint8_t *reach(const struct ibv_pd *pd, uint32_t key, uint64_t at, uint64_t bytes,
		      int access)
{
	for (unsigned i = 0; i < FAKE_REGIONS; i++) {
		const struct fake_mr *mr = fake_region[i];

		if (!mr || mr->base.rkey != key || mr->base.pd != pd ||
		    (mr->access & access) != access)
			continue;
		if (at < mr->iova || at - mr->iova > mr->base.length ||
		    bytes > mr->base.length - (at - mr->iova))
			return NULL;
		return (uint8_t *)mr->base.addr + (at - mr->iova);
	}
	return NULL;
}

static void push(struct ibv_cq *base, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	uint64_t one = 1;

	if (cq->head - cq->tail == (uint32_t)cq->base.cqe)
		fake_die("a completion queue overflowed");
	cq->entry[cq->head++ % (uint32_t)cq->base.cqe] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	cq->reported++;
	if (write(cq->base.channel->fd, &one, sizeof(one)) != sizeof(one))
		fake_die("a completion channel is full");
}

static bool is_read(const struct fake_send *s)
{
	return s->wr.opcode == IBV_WR_RDMA_READ;
}

static void complete_send(struct fake_qp *qp, const struct fake_send *send,
			  enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = send->wr.wr_id, .status = status, .qp_num = qp->base.qp_num};

	wc.opcode = is_read(send) ? IBV_WC_RDMA_READ
		    : send->wr.opcode == IBV_WR_SEND || send->wr.opcode == IBV_WR_SEND_WITH_IMM
			    ? IBV_WC_SEND
			    : IBV_WC_RDMA_WRITE;
	if (status != IBV_WC_SUCCESS)
		wc.opcode = 0x7f; /* not said on errors: nobody may rely on it */
	qp->done++;
	qp->tries = 0;
	if (status != IBV_WC_SUCCESS || (send->wr.send_flags & IBV_SEND_SIGNALED))
		push(qp->base.send_cq, &wc);
}

void fake_fail_queue(struct fake_qp *qp)
{
	qp->base.state = IBV_QPS_ERR;
	while (qp->done != qp->posted)
		complete_send(qp, &qp->send[qp->done % qp->cap.max_send_wr], IBV_WC_WR_FLUSH_ERR);
	for (; qp->taken != qp->offered; qp->taken++) {
		struct ibv_wc wc = {.wr_id = qp->receive[qp->taken % qp->cap.max_recv_wr].id,
				    .status = IBV_WC_WR_FLUSH_ERR,
				    .opcode = 0x7f,
				    .qp_num = qp->base.qp_num};

		push(qp->base.recv_cq, &wc);
	}
}

/* The other end, if it is there and looks here. */
static struct fake_qp *peer_of(const struct fake_qp *qp)
{
	for (unsigned i = 0; i < FAKE_QUEUES; i++) {
		struct fake_qp *p = fake_queue[i];

		if (p && p->base.qp_num == qp->attr.dest_qp_num &&
		    p->base.qp_type == qp->base.qp_type &&
		    (p->base.state == IBV_QPS_RTR || p->base.state == IBV_QPS_RTS) &&
		    !memcmp(&p->local, &qp->attr.ah_attr.grh.dgid, sizeof(p->local)) &&
		    !memcmp(&p->attr.ah_attr.grh.dgid, &qp->local, sizeof(qp->local)))
			return p;
	}
	return NULL;
}

static bool is_send(const struct fake_send *s)
{
	return s->wr.opcode == IBV_WR_SEND || s->wr.opcode == IBV_WR_SEND_WITH_IMM;
}

static bool has_immediate(const struct fake_send *s)
{
	return s->wr.opcode == IBV_WR_SEND_WITH_IMM || s->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Where its payload goes, or comes from; NULL with *status when the responder refuses. */
static uint8_t *target_of(struct fake_qp *peer, const struct fake_send *s,
			  enum ibv_wc_status *status)
{
	const struct fake_receive *r = &peer->receive[peer->taken % peer->cap.max_recv_wr];
	uint8_t *to;

	if (is_send(s) && s->sge.length > r->sge.length) {
		*status = IBV_WC_REM_INV_REQ_ERR;
		return NULL;
	}
	if (is_read(s)) {
		to = reach(peer->base.pd, s->wr.wr.rdma.rkey, s->wr.wr.rdma.remote_addr,
			   s->sge.length, IBV_ACCESS_REMOTE_READ);
		if (!to || !(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
			*status = IBV_WC_REM_ACCESS_ERR;
		return *status == IBV_WC_SUCCESS ? to : NULL;
	}
	to = is_send(s) ? reach(peer->base.pd, r->sge.lkey, r->sge.addr, s->sge.length,
				IBV_ACCESS_LOCAL_WRITE)
			: reach(peer->base.pd, s->wr.wr.rdma.rkey, s->wr.wr.rdma.remote_addr,
				s->sge.length, IBV_ACCESS_REMOTE_WRITE);
	if (!to || (!is_send(s) && !(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)))
		*status = IBV_WC_REM_ACCESS_ERR;
	return *status == IBV_WC_SUCCESS ? to : NULL;
}

/* A NIC reads and writes memory while programs use it: to ThreadSanitizer that is no access. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZED_THREADS 1
#elif defined(__has_feature)
#define SANITIZED_THREADS __has_feature(thread_sanitizer)
#else
#define SANITIZED_THREADS 0
#endif

#if SANITIZED_THREADS
__attribute__((no_sanitize_thread)) static void copy(uint8_t *to, const uint8_t *from,
						     uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
}
#else
static void copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	memcpy(to, from, bytes);
}
#endif

/* A word arrives at once, as credits need it; of more, nobody may know what is there. */
static void put(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint64_t word;

	if (bytes != sizeof(word) || (uintptr_t)to % sizeof(word)) {
		copy(to, from, bytes);
		return;
	}
	copy((uint8_t *)&word, from, sizeof(word));
	atomic_store_explicit((_Atomic uint64_t *)(void *)to, word, memory_order_release);
}

/* Packet by packet; false: one was lost, and what followed it was thrown away. */
static bool carry(struct fake_qp *qp, const struct fake_send *s, const uint8_t *from, uint8_t *to)
{
	uint32_t mtu = bytes_of(qp->attr.path_mtu), at = 0;
	bool whole = true;

	do {
		uint32_t n = s->sge.length - at < mtu ? s->sge.length - at : mtu;

		if (qp->base.qp_type == IBV_QPT_UC && lose_packet &&
		    lose_packet(lose_arg, qp->attr.dest_qp_num, qp->psn))
			whole = false;
		if (whole && to)
			put(to + at, from + at, n);
		qp->psn = (qp->psn + 1) & 0xffffff;
		at += n;
	} while (at < s->sge.length);
	return whole;
}

static void raise_event(struct fake_qp *peer, const struct fake_send *s)
{
	struct ibv_wc wc = {
		.wr_id = peer->receive[peer->taken++ % peer->cap.max_recv_wr].id,
		.status = IBV_WC_SUCCESS,
		.opcode = is_send(s) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = s->sge.length,
		.imm_data = s->wr.imm_data,
		.qp_num = peer->base.qp_num,
		.wc_flags = has_immediate(s) ? IBV_WC_WITH_IMM : 0,
	};

	push(peer->base.recv_cq, &wc);
}

/* RC: the responder says no, and both ends are finished. */
static void refuse(struct fake_qp *qp, struct fake_qp *peer, const struct fake_send *s,
		   enum ibv_wc_status status)
{
	struct ibv_async_event event = {.event_type = status == IBV_WC_REM_ACCESS_ERR
							      ? IBV_EVENT_QP_ACCESS_ERR
							      : IBV_EVENT_QP_REQ_ERR,
					.element.qp = &peer->base};

	complete_send(qp, s, status);
	fake_fail_queue(qp);
	fake_fail_queue(peer);
	fake_tell(peer->base.context, &event);
}

/* Answers are as reliable as requests. */
static void fetch(struct fake_qp *qp, const struct fake_qp *peer, const struct fake_send *s,
		  const uint8_t *from)
{
	uint8_t *to =
		reach(qp->base.pd, s->sge.lkey, s->sge.addr, s->sge.length, IBV_ACCESS_LOCAL_WRITE);

	if (!to)
		fake_die("a READ would land in memory that may not be written");
	if (qp->base.qp_type != IBV_QPT_RC || !qp->attr.max_rd_atomic ||
	    qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic)
		fake_die("a READ that the other end has no room for");
	put(to, from, s->sge.length);
}

/* The oldest request; false: it has to wait. */
static bool carry_out(struct fake_qp *qp)
{
	struct fake_send *s = &qp->send[qp->done % qp->cap.max_send_wr];
	bool reliable = qp->base.qp_type == IBV_QPT_RC;
	struct fake_qp *peer = peer_of(qp);
	bool no_receive = peer && (is_send(s) || has_immediate(s)) && peer->taken == peer->offered;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	const uint8_t *from =
		s->wr.send_flags & IBV_SEND_INLINE
			? s->inlined
			: reach(qp->base.pd, s->sge.lkey, s->sge.addr, s->sge.length, 0);
	uint8_t *to;

	if (!from)
		fake_die("a request names memory that is not registered");
	if (reliable && (!peer || no_receive)) {
		if (no_receive && qp->attr.rnr_retry == 7)
			return false;
		if (qp->tries++ < retries)
			return false;
		complete_send(qp, s, peer ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR);
		fake_fail_queue(qp);
		return false;
	}
	to = peer && !no_receive ? target_of(peer, s, &status) : NULL;
	if (reliable && status != IBV_WC_SUCCESS) {
		refuse(qp, peer, s, status);
		return false;
	}
	if (is_read(s) && to)
		fetch(qp, peer, s, to);
	else if (carry(qp, s, from, to) && to && (is_send(s) || has_immediate(s)))
		raise_event(peer, s);
	complete_send(qp, s, IBV_WC_SUCCESS);
	return true;
}

static bool is_broken(const struct fake_qp *qp)
{
	return ((const struct fake_device *)qp->base.context->device)->broken;
}

static void work(void)
{
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		while (fake_queue[i] && fake_queue[i]->base.state == IBV_QPS_RTS &&
		       !is_broken(fake_queue[i]) && fake_queue[i]->done != fake_queue[i]->posted &&
		       carry_out(fake_queue[i]))
			;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	struct fake_send *s = &qp->send[qp->posted % qp->cap.max_send_wr];

	*bad = wr;
	if (wr->next || wr->num_sge > 1)
		fake_die("one request of one piece at a time");
	if ((qp->base.state != IBV_QPS_RTS && qp->base.state != IBV_QPS_ERR) ||
	    wr->num_sge > (int)qp->cap.max_send_sge)
		return EINVAL;
	if (qp->posted - qp->retired == qp->cap.max_send_wr)
		return ENOMEM;
	s->wr = *wr;
	s->sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){0};
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (s->sge.length > qp->cap.max_inline_data)
			return EINVAL;
		memcpy(s->inlined, (const void *)(uintptr_t)s->sge.addr, s->sge.length);
	}
	qp->posted++;
	if (qp->base.state == IBV_QPS_ERR)
		fake_fail_queue(qp);
	else
		work();
	return 0;
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err;

	fake_lock();
	err = post_send(base, wr, bad);
	fake_unlock();
	return err;
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	*bad = wr;
	if (qp->base.state == IBV_QPS_RESET || wr->num_sge > (int)qp->cap.max_recv_sge)
		return EINVAL;
	if (qp->offered - qp->taken == qp->cap.max_recv_wr)
		return ENOMEM;
	qp->receive[qp->offered++ % qp->cap.max_recv_wr] = (struct fake_receive){
		wr->wr_id, wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){0}};
	if (qp->base.state == IBV_QPS_ERR)
		fake_fail_queue(qp);
	else
		work();
	return 0;
}

int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err;

	fake_lock();
	err = post_recv(base, wr, bad);
	fake_unlock();
	return err;
}

/* A completion that was polled makes room for its request and all before it. */
static void retire(const struct ibv_wc *wc)
{
	for (unsigned i = 0; i < FAKE_QUEUES; i++) {
		struct fake_qp *qp = fake_queue[i];

		if (!qp || qp->base.qp_num != wc->qp_num)
			continue;
		for (uint32_t n = qp->retired; n != qp->done; n++)
			if (qp->send[n % qp->cap.max_send_wr].wr.wr_id == wc->wr_id &&
			    !(wc->opcode & IBV_WC_RECV))
				qp->retired = n + 1;
	}
}

int fake_poll_cq(struct ibv_cq *base, int room, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int n = 0;

	fake_lock();
	work();
	for (; n < room && cq->tail != cq->head; n++) {
		wc[n] = cq->entry[cq->tail++ % (uint32_t)cq->base.cqe];
		retire(&wc[n]);
	}
	fake_unlock();
	return n;
}

int fake_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	fake_lock();
	((struct fake_cq *)base)->armed = true;
	fake_unlock();
	return 0;
}
