/* send.c - descriptors become packets: gathered from the source frame, sealed, sent in
 * batches, never beyond credit. This is UC; RC is in send_rc.c. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc.h"
#include "link/udp/udp.h"
#include "roce/icrc.h"

/* Half a second and more without room in the socket: the interface does not send. */
enum { TRIES_MAX = 10000 };

/* Bytes of the write as pieces. Many small ones are put together: each costs the kernel as much as
 * some hundred bytes. */
static size_t gather(const struct sl_write *write, const struct sl_roce_fragment *fragment,
		     uint8_t *together, struct sl_roce_piece piece[SL_UDP_PIECES])
{
	struct sl_part part[SL_UDP_PIECES];
	size_t n = sl_write_gather(write, fragment->offset, fragment->bytes, part, SL_UDP_PIECES);

	if (n > SL_UDP_PIECES) {
		sl_write_copy(write, fragment->offset, fragment->bytes, together);
		piece[0] = (struct sl_roce_piece){together, fragment->bytes};
		return 1;
	}
	for (size_t i = 0; i < n; i++)
		piece[i] = (struct sl_roce_piece){part[i].data, part[i].bytes};
	return n;
}

/* Whether a packet of this length goes out with those before it in one send, to be cut from it by
 * the kernel: all of one length, but the last may be shorter. */
static bool joins(const struct sl_udp_batch *batch, uint32_t bytes)
{
	return batch->udp->segment && batch->sends && !batch->ended &&
	       batch->together < SL_UDP_SEGMENTS && bytes <= batch->segment_bytes &&
	       (batch->together + 1) * batch->segment_bytes <= SL_UDP_SEND_MAX;
}

static struct msghdr *message_for(struct sl_udp_batch *batch, uint32_t bytes)
{
	struct sl_udp_buffers *b = batch->udp->buffers;
	struct sl_udp_path *out = &batch->source->out;

	if (joins(batch, bytes)) {
		batch->ended = bytes < batch->segment_bytes;
	} else {
		b->message[batch->sends++].msg_hdr = (struct msghdr){
			.msg_name = &out->to,
			.msg_namelen = out->to_bytes,
			.msg_iov = &b->iov[batch->iovs],
		};
		batch->together = 0;
		batch->segment_bytes = bytes;
		batch->ended = false;
	}
	return &b->message[batch->sends - 1].msg_hdr;
}

static void add(struct sl_udp_batch *batch, struct msghdr *message, const void *data, size_t bytes)
{
	batch->udp->buffers->iov[batch->iovs++] = (struct iovec){(void *)data, bytes};
	message->msg_iovlen++;
}

static void append(struct sl_udp_batch *batch, const struct sl_write *write,
		   const struct sl_roce_fragment *fragment, const uint8_t *header, bool corrupt)
{
	struct sl_udp_buffers *b = batch->udp->buffers;
	struct sl_roce_path path = batch->source->out.path;
	unsigned i = batch->n++;
	struct sl_roce_piece piece[SL_UDP_PIECES];
	size_t pieces = gather(write, fragment, b->packet[i], piece), trailer;
	uint32_t bytes = fragment->header_bytes + fragment->bytes + fragment->pad +
			 SL_ROCE_ICRC_BYTES;
	struct msghdr *message = message_for(batch, bytes);

	/* The kernel numbers the packets of one send in the IP identification. */
	path.ip_id = (uint16_t)batch->together++;
	memcpy(b->header[i], header, fragment->header_bytes);
	trailer = sl_roce_seal(&path, b->header[i], fragment->header_bytes, piece, pieces, sl_crc32,
			       b->trailer[i]);
	if (corrupt)
		b->trailer[i][trailer - 1] ^= 0x10;
	add(batch, message, b->header[i], fragment->header_bytes);
	for (size_t p = 0; p < pieces; p++)
		add(batch, message, piece[p].data, piece[p].bytes);
	add(batch, message, b->trailer[i], trailer);
	if (batch->together == 2)
		sl_net_segment(message, b->control[batch->sends - 1],
			       (uint16_t)batch->segment_bytes);
}

/* All of it: a packet that the socket has no room for now is tried again, since its PSN is
 * spent. */
int sl_udp_flush(struct sl_udp_batch *batch)
{
	unsigned done = 0, tries = 0;

	while (done < batch->sends) {
		int n = sendmmsg(batch->source->fd, batch->udp->buffers->message + done,
				 batch->sends - done, 0);

		if (n > 0)
			done += (unsigned)n;
		else if (errno == EMSGSIZE || (errno == EINVAL && batch->udp->segment))
			return -EMSGSIZE; /* the same, said of a packet that is to be cut */
		else if ((errno == EAGAIN || errno == ENOBUFS || errno == EINTR) &&
			 tries++ < TRIES_MAX)
			sl_udp_wait(batch->udp, 0, 50);
		else if (errno != ECONNREFUSED)
			return -errno;
	}
	batch->n = batch->iovs = batch->sends = batch->together = 0;
	return 0;
}

int sl_udp_put(struct sl_udp_batch *batch, const struct sl_write *write,
	       const struct sl_roce_fragment *fragment, const uint8_t *header, bool corrupt)
{
	append(batch, write, fragment, header, corrupt);
	return batch->n == SL_UDP_BATCH ? sl_udp_flush(batch) : 0;
}

int sl_udp_append(struct sl_udp_batch *batch, const struct sl_write *write,
		  const struct sl_roce_fragment *fragment, const uint8_t *header, bool again)
{
	const struct sl_link_env *env = &batch->udp->env;
	const struct sl_plan *plan = &batch->source->plan;
	uint32_t packet = sl_roce_psn_add(
		fragment->psn, SL_ROCE_PSN_MASK + 1 - sl_plan_psn(plan, write->sequence, 0));
	enum sl_packet_fault fault = env->fault && !again ? env->fault(env->fault_arg, plan->module,
								       write->sequence, packet)
							  : SL_PACKET_FAULT_NONE;
	int copies = fault == SL_PACKET_FAULT_DROP || fault == SL_PACKET_FAULT_REORDER ? 0
		     : fault == SL_PACKET_FAULT_DUPLICATE			       ? 2
										       : 1;
	int err = 0;

	if (fault == SL_PACKET_FAULT_REORDER)
		sl_udp_reorder(batch, write, fragment, header);
	for (; copies > 0 && !err; copies--)
		err = sl_udp_put(batch, write, fragment, header, fault == SL_PACKET_FAULT_CORRUPT);
	return err || again || !env->hold ? err : sl_udp_pass(batch);
}

bool sl_udp_may_send(struct sl_udp_source *source, uint32_t bytes, uint64_t now_ns)
{
	source->paced_until = sl_roce_rate_allow(&source->rate, now_ns, bytes);
	return source->paced_until == 0;
}

static int begin(struct sl_udp_source *source, const struct sl_write *write)
{
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = write->flags & SL_WRITE_SEND ? SL_ROCE_KIND_SEND : SL_ROCE_KIND_WRITE,
		.immediate = write->flags & SL_WRITE_IMM,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = source->plan.pmtu,
		.qpn = source->plan.qpn,
		.psn = write->psn,
		.imm = write->imm,
		.rkey = write->rkey,
		.va = write->va,
		.bytes = write->bytes,
	};

	return sl_roce_requester_begin(&source->cursor, &message) ? -EINVAL : 0;
}

/* As many packets of one write as credit allows. 1: all of it, 0: not yet, or an error. */
static int send_write(struct sl_udp_batch *batch, const struct sl_write *write)
{
	struct sl_udp_source *source = batch->source;
	uint64_t start = write->position - write->bytes;
	int err;

	if (source->cursor.done) {
		err = begin(source, write);
		if (err)
			return err;
	}
	while (!source->cursor.done) {
		uint32_t rest = write->bytes - source->cursor.offset;
		uint32_t next = rest < source->plan.pmtu ? rest : source->plan.pmtu;
		uint8_t header[SL_ROCE_HEADERS_MAX];
		struct sl_roce_fragment fragment;

		if (start + source->cursor.offset + next > source->granted ||
		    !sl_udp_may_send(source, next, batch->now_ns))
			return 0;
		if (!sl_roce_requester_next(&source->cursor, header, &fragment))
			break;
		source->sent = start + fragment.offset + fragment.bytes;
		err = sl_udp_append(batch, write, &fragment, header, false);
		if (err)
			return err;
	}
	return 1;
}

static int post_uc(struct sl_udp_batch *batch, const struct sl_write *write, size_t n)
{
	size_t done = 0;
	int err;

	while (done < n) {
		int sent = send_write(batch, &write[done]);

		if (sent < 0)
			return sent;
		if (!sent)
			break;
		done++;
	}
	err = sl_udp_flush(batch);
	return err ? err : (int)done;
}

struct sl_udp_source *sl_udp_source_of(struct sl_udp *udp, uint16_t transfer)
{
	for (uint32_t i = 0; i < udp->sources; i++)
		if (udp->send[i].plan.transfer == transfer && udp->send[i].plan.version)
			return &udp->send[i];
	return NULL;
}

/* Credits that are not needed yet can be read later: each look is a system call. */
static bool should_look(const struct sl_udp_source *source)
{
	uint64_t left = source->granted - source->sent;

	return source->plan.service == SL_SERVICE_RC || source->granted < source->sent ||
	       source->granted == UINT64_MAX || left < source->plan.window_bytes / 2 ||
	       left < 2 * (uint64_t)source->plan.pmtu;
}

int sl_udp_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
{
	struct sl_udp *udp = state;
	struct sl_udp_batch batch = {
		.udp = udp, .source = sl_udp_source_of(udp, transfer), .now_ns = sl_clock_ns()};

	if (!batch.source)
		return -EINVAL;
	if (should_look(batch.source) || !n)
		sl_udp_take_answers(udp, batch.source, batch.now_ns);
	return batch.source->plan.service == SL_SERVICE_RC ? sl_udp_post_rc(&batch, write, n)
							   : post_uc(&batch, write, n);
}

uint64_t sl_udp_reap(void *state, uint16_t transfer)
{
	const struct sl_udp_source *source = sl_udp_source_of(state, transfer);

	if (!source)
		return 0;
	/* UC: the kernel copied what was sent, and nothing is sent again. */
	return source->plan.service == SL_SERVICE_RC ? source->acknowledged : source->sent;
}
