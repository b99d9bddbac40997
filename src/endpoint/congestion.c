/* congestion.c - a queue pair tells its peer that a switch marked its packets, and slows down when
 * it is told so. UD has no peer to tell, and is not slowed down. */
#include <errno.h>

#include "base/crc.h"
#include "endpoint/state.h"

int sl_congestion_init(struct sl_qp *qp, const struct sl_qp_attributes *attributes)
{
	qp->cnp = (struct sl_roce_cnp){0};
	qp->rate = (struct sl_roce_rate){.line = attributes->line_rate,
					 .scale = attributes->rate_scale};
	qp->paced_until = 0;
	return sl_roce_rate_init(&qp->rate) ? -EINVAL : 0;
}

/* At once and alone, since it has a traffic class of its own. One that a full socket does not take
 * is lost: the next marked packet asks for another. */
void sl_congestion_marked(struct sl_qp *qp, uint64_t now)
{
	struct sl_endpoint *endpoint = qp->endpoint;
	uint8_t packet[SL_ROCE_CNP_BYTES + SL_ROCE_TRAILER_MAX];
	struct iovec piece = {packet, SL_ROCE_CNP_BYTES};
	const struct msghdr message = {.msg_name = &qp->to,
				       .msg_namelen = qp->to_bytes,
				       .msg_iov = &piece,
				       .msg_iovlen = 1};

	if (qp->options.transport == SL_ROCE_UD || !sl_roce_cnp_due(&qp->cnp, now) ||
	    sl_roce_cnp_encode(qp->peer_qpn, packet))
		return;
	piece.iov_len += sl_roce_seal(&qp->path, packet, SL_ROCE_CNP_BYTES, NULL, 0, sl_crc32,
				      packet + SL_ROCE_CNP_BYTES);
	if (sl_net_send(endpoint->fd, &message, SL_ROCE_CNP_DSCP << 2))
		return;
	endpoint->counters.cnps_sent++;
	qp->counters.cnps_sent++;
}

unsigned sl_congestion_notified(struct sl_qp *qp, const struct sl_roce_path *path,
				const struct sl_roce_packet *packet, uint64_t now)
{
	enum sl_roce_drop drop =
		sl_roce_cnp_receive(qp->qpn, qp->path.dest, qp->path.source, path, packet);

	if (drop)
		return drop;
	sl_roce_rate_on_cnp(&qp->rate, now);
	qp->endpoint->counters.cnps_received++;
	qp->counters.cnps_received++;
	return SL_ROCE_ACCEPTED;
}

/* Asked before it is known how long the next packet is; it is charged when it is there. */
bool sl_congestion_allows(struct sl_qp *qp, uint64_t now)
{
	qp->paced_until = qp->rate.active ? sl_roce_rate_allow(&qp->rate, now, 0) : 0;
	return qp->paced_until == 0;
}

void sl_congestion_charge(struct sl_qp *qp, uint64_t now, const struct sl_roce_fragment *fragment)
{
	sl_roce_rate_allow(&qp->rate, now, fragment->header_bytes + fragment->bytes);
}
