/* udp_send.c - descriptors become packets: gathered from the source frame, sealed, sent in
 * batches, never beyond credit. */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "link/udp.h"
#include "roce/icrc.h"

/* A grant is believed as any other RDMA write would be: ICRC, queue, peer, key and range. It
 * never goes back. */
static void take_grant(struct sl_udp_source *source, const uint8_t *data, size_t bytes,
		       const struct sockaddr_in *from)
{
	struct sl_roce_path path = source->credit_path;
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	uint64_t grant;

	path.source_port = ntohs(from->sin_port);
	sl_udp_gid(&from->sin_addr, path.source);
	if (!sl_roce_icrc_check(&path, data, bytes, sl_crc32) ||
	    sl_roce_parse(data, bytes, &packet) ||
	    sl_roce_responder_receive(&source->responder, &path, &packet, sl_udp_key_of,
				      &source->key, &action) != SL_ROCE_ACCEPTED)
		return;
	if (action.place != SL_ROCE_PLACE_MEMORY || action.bytes != sizeof(grant))
		return;
	memcpy(&grant, packet.payload, sizeof(grant)); /* little-endian on the wire and here */
	if (grant > source->granted)
		source->granted = grant;
}

void sl_udp_take_credits(struct sl_udp *udp, struct sl_udp_source *source)
{
	uint8_t data[256];

	for (;;) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(source->fd, data, sizeof(data), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &size);

		if (n < 0)
			return;
		take_grant(source, data, (size_t)n, &from);
	}
}

/* Bytes offset..offset+bytes of the write, as at most two pieces. */
static size_t gather(const struct sl_write *write, uint32_t offset, uint32_t bytes,
		     struct sl_roce_piece piece[2])
{
	size_t n = 0;

	for (unsigned i = 0; i < 2 && bytes; i++) {
		const struct sl_part *part = &write->part[i];
		uint32_t take;

		if (offset >= part->bytes) {
			offset -= part->bytes;
			continue;
		}
		take = part->bytes - offset < bytes ? part->bytes - offset : bytes;
		piece[n++] = (struct sl_roce_piece){(const uint8_t *)part->data + offset, take};
		bytes -= take;
		offset = 0;
	}
	return n;
}

/* Half a second and more without room in the socket: the interface does not send. */
enum { TRIES_MAX = 10000 };

struct batch {
	struct sl_udp *udp;
	struct sl_udp_source *source;
	unsigned n;
};

static void append(struct batch *batch, const struct sl_write *write,
		   const struct sl_roce_fragment *fragment, const uint8_t *header, bool corrupt)
{
	struct sl_udp_buffers *b = batch->udp->buffers;
	struct sl_udp_source *source = batch->source;
	struct sl_roce_piece piece[2];
	size_t pieces = gather(write, fragment->offset, fragment->bytes, piece);
	unsigned i = batch->n++;
	size_t iovs = 0, trailer;

	memcpy(b->header[i], header, fragment->header_bytes);
	trailer = sl_roce_seal(&source->path, b->header[i], fragment->header_bytes, piece, pieces,
			       sl_crc32, b->trailer[i]);
	if (corrupt)
		b->trailer[i][trailer - 1] ^= 0x10;
	b->iov[i][iovs++] = (struct iovec){b->header[i], fragment->header_bytes};
	for (size_t p = 0; p < pieces; p++)
		b->iov[i][iovs++] = (struct iovec){(void *)piece[p].data, piece[p].bytes};
	b->iov[i][iovs++] = (struct iovec){b->trailer[i], trailer};
	b->message[i].msg_hdr = (struct msghdr){.msg_name = &source->dest,
						.msg_namelen = sizeof(source->dest),
						.msg_iov = b->iov[i],
						.msg_iovlen = iovs};
}

/* All of it: a packet that the socket has no room for now is tried again, since its PSN is
 * spent. */
static int flush(struct batch *batch)
{
	unsigned done = 0, tries = 0;

	while (done < batch->n) {
		int n = sendmmsg(batch->source->fd, batch->udp->buffers->message + done,
				 batch->n - done, 0);

		if (n > 0)
			done += (unsigned)n;
		else if (errno == EMSGSIZE)
			return -EMSGSIZE;
		else if ((errno == EAGAIN || errno == ENOBUFS || errno == EINTR) &&
			 tries++ < TRIES_MAX)
			sl_udp_wait(batch->udp, 50);
		else if (errno != ECONNREFUSED)
			return -errno;
	}
	batch->n = 0;
	return 0;
}

static enum sl_fate fate_of(const struct sl_udp *udp, const struct sl_udp_source *source,
			    const struct sl_write *write, uint32_t packet)
{
	return udp->env.fate ? udp->env.fate(udp->env.fate_arg, source->plan.module,
					     write->sequence, packet)
			     : SL_FATE_SEND;
}

static int begin(struct sl_udp_source *source, const struct sl_write *write)
{
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = SL_ROCE_KIND_WRITE,
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
static int send_write(struct batch *batch, const struct sl_write *write)
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
		enum sl_fate fate;

		if (start + source->cursor.offset + next > source->granted)
			return 0;
		if (!sl_roce_requester_next(&source->cursor, header, &fragment))
			break;
		fate = fate_of(batch->udp, source, write,
			       (fragment.psn - sl_plan_psn(&source->plan, write->sequence, 0)) &
				       0xffffff);
		source->sent = start + fragment.offset + fragment.bytes;
		for (int copies = fate == SL_FATE_DROP	      ? 0
				  : fate == SL_FATE_DUPLICATE ? 2
							      : 1;
		     copies > 0; copies--) {
			append(batch, write, &fragment, header, fate == SL_FATE_CORRUPT);
			if (batch->n == SL_UDP_BATCH && (err = flush(batch)) != 0)
				return err;
		}
	}
	return 1;
}

int sl_udp_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
{
	struct sl_udp *udp = state;
	struct batch batch = {.udp = udp};
	size_t done = 0;
	int err = 0;

	for (uint32_t i = 0; i < udp->sources && !batch.source; i++)
		if (udp->send[i].plan.transfer == transfer && udp->send[i].plan.version)
			batch.source = &udp->send[i];
	if (!batch.source)
		return -EINVAL;
	sl_udp_take_credits(udp, batch.source);
	while (done < n) {
		int sent = send_write(&batch, &write[done]);

		if (sent < 0)
			return sent;
		if (!sent)
			break;
		done++;
	}
	err = flush(&batch);
	return err ? err : (int)done;
}

uint64_t sl_udp_reap(void *state, uint16_t transfer)
{
	struct sl_udp *udp = state;

	/* The kernel copied what was sent: all of it may be reused. */
	for (uint32_t i = 0; i < udp->sources; i++)
		if (udp->send[i].plan.transfer == transfer)
			return udp->send[i].sent;
	return 0;
}
