/* send_rc.c - the reliable way out: writes wait in the queue pair until they are acknowledged,
 * and go out as its window, the credit and the batch allow. */
#include <errno.h>

#include "link/udp/udp.h"

enum { PACKETS_PER_POST = 256 }; /* then other transfers have their turn */

static int error_of(uint8_t status)
{
	switch (status) {
	case SL_ROCE_RETRY_EXCEEDED:
		return -ETIMEDOUT;
	case SL_ROCE_RNR_EXCEEDED:
		return -ENOBUFS;
	case SL_ROCE_REMOTE_ACCESS:
		return -EACCES;
	case SL_ROCE_REMOTE_OPERATION:
		return -EREMOTEIO;
	case SL_ROCE_FLUSHED:
		return -EPIPE;
	default:
		return -EPROTO;
	}
}

static bool enqueue(struct sl_udp_source *source, const struct sl_write *write)
{
	const struct sl_roce_work work = {
		.id = source->posted,
		.kind = write->flags & SL_WRITE_SEND ? SL_ROCE_KIND_SEND : SL_ROCE_KIND_WRITE,
		.immediate = write->flags & SL_WRITE_IMM,
		.quiet = true, /* SL_UDP_ACK_EVERY is often enough */
		.imm = write->imm,
		.rkey = write->rkey,
		.va = write->va,
		.bytes = write->bytes,
	};

	if (sl_roce_rc_queue_post(&source->rc, &work))
		return false;
	source->write[source->posted % source->rc.requester.capacity] = *write;
	source->posted++;
	return true;
}

/* Where the next packet ends in the stream: packets are numbered as the plan numbers them. */
static bool covered(const struct sl_udp_source *source)
{
	const struct sl_plan *plan = &source->plan;
	uint64_t packet = source->rc.requester.next;
	uint64_t sequence = plan->first_sequence + packet / plan->packets;
	struct sl_plan_packet at;

	sl_plan_packet(plan, (uint32_t)(packet % plan->packets), &at);
	return sl_plan_position(plan, sequence, at.offset + at.bytes) <= source->granted;
}

static int pump(struct sl_udp_batch *batch)
{
	struct sl_udp_source *source = batch->source;
	struct sl_roce_rc_requester *requester = &source->rc.requester;
	int err;

	/* Time first: it may send the queue back to packets that credit covers. */
	sl_roce_rc_tick(requester, batch->now_ns);
	if (requester->failed)
		sl_roce_rc_queue_modify(&source->rc, SL_ROCE_ERROR);
	for (unsigned n = 0; n < PACKETS_PER_POST; n++) {
		uint8_t header[SL_ROCE_HEADERS_MAX];
		struct sl_roce_request request;
		const struct sl_write *write;

		/* Charged before it is known whether there is a packet: nothing is, when idle. */
		if (!covered(source) || requester->next == requester->end ||
		    !sl_udp_may_send(source, source->plan.pmtu, batch->now_ns) ||
		    !sl_roce_rc_queue_next(&source->rc, batch->now_ns, header, &request))
			break;
		write = &source->write[request.id % requester->capacity];
		err = sl_udp_append(batch, write, &request.fragment, header, request.again);
		if (err)
			return err;
	}
	return sl_udp_flush(batch);
}

static void collect(struct sl_udp_source *source)
{
	struct sl_roce_completion completion;

	while (sl_roce_rc_queue_complete(&source->rc, &completion)) {
		uint64_t at = completion.id % source->rc.requester.capacity;

		if (completion.status == SL_ROCE_SUCCESS)
			source->acknowledged = source->write[at].position;
		else if (!source->error || source->error == -EPIPE)
			source->error = error_of(completion.status);
	}
}

int sl_udp_post_rc(struct sl_udp_batch *batch, const struct sl_write *write, size_t n)
{
	struct sl_udp_source *source = batch->source;
	size_t done = 0;
	int err;

	collect(source);
	while (done < n && !source->error && enqueue(source, &write[done]))
		done++;
	err = pump(batch);
	collect(source);
	if (source->rc.state == SL_ROCE_ERROR && !source->error)
		source->error = -EPIPE; /* the peer broke the rules of the connection */
	if (err || source->error)
		return err ? err : source->error;
	source->sent = done ? write[done - 1].position : source->sent;
	return (int)done;
}
