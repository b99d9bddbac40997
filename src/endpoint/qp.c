/* qp.c - queue pairs: making them, and their states. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "endpoint/state.h"
#include "roce/psn.h"

enum {
	DEPTH_DEFAULT = 64,
	DEPTH_MAX = 1 << 20,
	PEER_READS_DEFAULT = 16,
	PEER_READS_MAX = 255, /* what a verbs attribute can hold */
	WINDOW_DEFAULT = 64,  /* packets; Soft-RoCE keeps as many in flight */
	QPN_FIRST = 16,	      /* of the random ones; low numbers have fixed meanings */
	QPN_LAST = 0xfffffe,  /* 0xffffff is multicast */
	RETRIES_MAX = 7,
};

const char *sl_status_name(unsigned status)
{
	switch (status) {
	case SL_STATUS_SUCCESS:
		return "success";
	case SL_STATUS_LOCAL_LENGTH:
		return "receive too small";
	case SL_STATUS_FLUSHED:
		return "flushed";
	case SL_STATUS_BAD_RESPONSE:
		return "bad response";
	case SL_STATUS_REMOTE_INVALID:
		return "invalid request, says the peer";
	case SL_STATUS_REMOTE_ACCESS:
		return "access refused by the peer";
	case SL_STATUS_REMOTE_OPERATION:
		return "the peer failed";
	case SL_STATUS_RETRY_EXCEEDED:
		return "no answer from the peer";
	case SL_STATUS_RNR_EXCEEDED:
		return "the peer has no receive posted";
	default:
		return "unknown status";
	}
}

void sl_qp_attributes_init(struct sl_qp_attributes *attributes)
{
	*attributes = (struct sl_qp_attributes){
		.peer_port = SL_ROCE_UDP_PORT,
		.pmtu = 1024,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.min_rnr_timer = 12, /* 0.64 ms */
		.timeout = 14,	     /* 67 ms */
		.retries = 7,
		.rnr_retries = SL_ROCE_RNR_FOREVER,
		.reads = 16,
	};
}

static int check_options(const struct sl_qp_options *given, struct sl_qp_options *options)
{
	*options = *given;
	if (!options->sends)
		options->sends = DEPTH_DEFAULT;
	if (!options->receives)
		options->receives = DEPTH_DEFAULT;
	if (!options->peer_reads)
		options->peer_reads = PEER_READS_DEFAULT;
	if (options->transport != SL_ROCE_RC && options->transport != SL_ROCE_UC &&
	    options->transport != SL_ROCE_UD)
		return -EINVAL;
	if (options->sends > DEPTH_MAX || options->receives > DEPTH_MAX ||
	    options->peer_reads > PEER_READS_MAX || options->qpn > QPN_LAST)
		return -EINVAL;
	return 0;
}

static int take_number(struct sl_qp *qp)
{
	struct sl_table *numbers = &qp->endpoint->numbers;
	int err;

	if (qp->options.qpn) {
		qp->qpn = qp->options.qpn;
		return sl_table_add(numbers, qp->qpn, qp);
	}
	do {
		qp->qpn = QPN_FIRST + sl_secret_u32() % (QPN_LAST - QPN_FIRST + 1);
		err = sl_table_add(numbers, qp->qpn, qp);
	} while (err == -EEXIST);
	return err;
}

static void enlist(struct sl_qp *qp)
{
	struct sl_qp **head = &qp->endpoint->qps;

	qp->next = *head;
	qp->link = head;
	if (qp->next)
		qp->next->link = &qp->next;
	*head = qp;
}

int sl_qp_create(struct sl_endpoint *endpoint, const struct sl_qp_options *options,
		 struct sl_qp **qp)
{
	struct sl_qp *made = calloc(1, sizeof(*made));
	int err = made ? check_options(options, &made->options) : -ENOMEM;

	if (err)
		goto undo_qp;
	made->endpoint = endpoint;
	made->sending.done = true;
	err = sl_works_init(made);
	if (!err)
		err = take_number(made);
	if (err)
		goto undo_works;
	enlist(made);
	*qp = made;
	return 0;

undo_works:
	sl_works_fini(made);
undo_qp:
	free(made);
	return err;
}

void sl_qp_destroy(struct sl_qp *qp)
{
	struct sl_endpoint *endpoint;

	if (!qp)
		return;
	endpoint = qp->endpoint;
	sl_table_remove(&endpoint->numbers, qp->qpn);
	if (endpoint->turn == qp)
		endpoint->turn = qp->next;
	if (endpoint->reap_turn == qp)
		endpoint->reap_turn = qp->next;
	*qp->link = qp->next;
	if (qp->next)
		qp->next->link = qp->link;
	sl_works_fini(qp);
	free(qp);
}

enum sl_roce_state sl_qp_state(const struct sl_qp *qp)
{
	return qp->options.transport == SL_ROCE_RC ? (enum sl_roce_state)qp->rc.state
						   : (enum sl_roce_state)qp->state;
}

uint32_t sl_qp_number(const struct sl_qp *qp)
{
	return qp->qpn;
}

void sl_qp_count(const struct sl_qp *qp, struct sl_qp_counters *counters)
{
	*counters = qp->counters;
	counters->rate = sl_roce_rate_limit(&qp->rate);
}

void sl_qp_failed(struct sl_qp *qp, unsigned status)
{
	const struct sl_completion guilty = {.status = (uint8_t)status,
					     .kind = SL_COMPLETION_RECEIVE};

	if (status && sl_works_next_receive(qp))
		sl_works_received(qp, &guilty);
	sl_works_flush(qp);
}

/* ---- the way to RTR ---- */

static int set_path(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	const struct sl_endpoint *endpoint = qp->endpoint;

	if (!a->peer_port || !sl_endpoint_same_family(endpoint, a->peer))
		return -EINVAL;
	sl_endpoint_path(endpoint, a->peer, a->peer_port, &qp->path);
	qp->to_bytes = sl_net_address(a->peer, a->peer_port, &qp->to);
	qp->next_id = 0;
	qp->zero_ids = qp->other_ids = 0;
	return 0;
}

static void set_responder(const struct sl_qp *qp, const struct sl_qp_attributes *a,
			  struct sl_roce_responder *responder)
{
	*responder = (struct sl_roce_responder){
		.transport = qp->options.transport,
		.pkey = a->pkey,
		.qpn = qp->qpn,
		.pmtu = a->pmtu,
		.access = qp->options.access,
		.domain = qp->options.domain,
		.expected_psn = a->receive_psn,
	};
	memcpy(responder->peer, a->peer, sizeof(responder->peer));
	memcpy(responder->local, qp->endpoint->options.address, sizeof(responder->local));
}

static int receive_rc(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	struct sl_roce_rc_responder *responder = &qp->rc.responder;

	set_responder(qp, a, &responder->queue);
	responder->peer_qpn = a->peer_qpn;
	responder->rnr_timer = a->min_rnr_timer;
	responder->mig = qp->options.mig;
	return sl_roce_rc_queue_modify(&qp->rc, SL_ROCE_RTR) ? -EINVAL : 0;
}

static void set_datagrams(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	qp->ud = (struct sl_roce_ud_receiver){
		.pkey = a->pkey,
		.qpn = qp->qpn,
		.qkey = a->qkey,
		.pmtu = a->pmtu,
	};
	memcpy(qp->ud.local, qp->endpoint->options.address, sizeof(qp->ud.local));
}

static int ready_to_receive(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	int err = sl_congestion_init(qp, a);

	if (err || !sl_roce_pmtu_valid(a->pmtu))
		return -EINVAL;
	if (qp->options.transport == SL_ROCE_UD) {
		set_datagrams(qp, a);
	} else {
		if (a->peer_qpn > SL_ROCE_QPN_MASK)
			return -EINVAL;
		err = set_path(qp, a);
	}
	if (!err && qp->options.transport == SL_ROCE_RC)
		err = receive_rc(qp, a);
	if (!err && qp->options.transport == SL_ROCE_UC) {
		set_responder(qp, a, &qp->uc);
		err = sl_roce_responder_init(&qp->uc) ? -EINVAL : 0;
	}
	if (err)
		return err;
	qp->pmtu = a->pmtu;
	qp->pkey = a->pkey;
	qp->peer_qpn = a->peer_qpn;
	sl_works_offer(qp);
	return 0;
}

/* ---- the way to RTS ---- */

static int send_rc(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	struct sl_roce_rc_requester *requester = &qp->rc.requester;
	uint32_t ours = sl_endpoint_window(qp->endpoint, qp->pmtu);
	uint32_t window = a->window, most;

	if (!window)
		window = ours < WINDOW_DEFAULT ? ours : WINDOW_DEFAULT;
	requester->psn = a->send_psn;
	requester->window = window;
	requester->ack_every = a->ack_every ? a->ack_every : (window + 3) / 4;
	requester->reads = a->reads;
	requester->timeout_ns = sl_roce_timeout_ns(a->timeout);
	requester->retries = a->retries <= RETRIES_MAX ? a->retries : SL_ROCE_RETRY_FOREVER;
	requester->rnr_retries = a->rnr_retries;
	requester->works = qp->works;
	requester->capacity = qp->sends.depth;
	/* Two parts of a READ fit into the window, and into the buffer that its data comes into. */
	most = (window < ours ? window : ours) / 2;
	qp->part = (most ? most : 1) * qp->pmtu;
	return sl_roce_rc_queue_modify(&qp->rc, SL_ROCE_RTS) ? -EINVAL : 0;
}

static int ready_to_send(struct sl_qp *qp, const struct sl_qp_attributes *a)
{
	if (qp->options.transport == SL_ROCE_RC)
		return send_rc(qp, a);
	if (a->send_psn > SL_ROCE_PSN_MASK)
		return -EINVAL;
	qp->psn = a->send_psn;
	return 0;
}

/* ---- the steps ---- */

/* To RESET or ERROR, which is possible from anywhere. */
static void stop(struct sl_qp *qp, enum sl_roce_state to)
{
	if (qp->options.transport == SL_ROCE_RC)
		sl_roce_rc_queue_modify(&qp->rc, to);
	qp->state = (uint8_t)to;
	qp->replies.taken = qp->replies.put;
	if (to == SL_ROCE_RESET)
		sl_works_forget(qp);
	else
		sl_works_flush(qp);
}

int sl_qp_modify(struct sl_qp *qp, enum sl_roce_state to, const struct sl_qp_attributes *attributes)
{
	int err = 0;

	if (to == SL_ROCE_RESET || to == SL_ROCE_ERROR) {
		stop(qp, to);
		return 0;
	}
	if ((unsigned)to != sl_qp_state(qp) + 1u || to > SL_ROCE_RTS)
		return -EINVAL;
	if (to != SL_ROCE_INIT && !attributes)
		return -EINVAL;
	if (to == SL_ROCE_INIT && qp->options.transport == SL_ROCE_RC)
		err = sl_roce_rc_queue_modify(&qp->rc, to) ? -EINVAL : 0;
	else if (to == SL_ROCE_RTR)
		err = ready_to_receive(qp, attributes);
	else if (to == SL_ROCE_RTS)
		err = ready_to_send(qp, attributes);
	if (err)
		return err;
	qp->state = (uint8_t)to;
	qp->endpoint->kicked = true;
	return 0;
}

int sl_qp_connect(struct sl_qp *qp, const struct sl_qp_attributes *attributes)
{
	int to = (int)sl_qp_state(qp) + 1, err = to <= SL_ROCE_RTS ? 0 : -EINVAL;

	for (; !err && to <= SL_ROCE_RTS; to++)
		err = sl_qp_modify(qp, (enum sl_roce_state)to, attributes);
	return err;
}
