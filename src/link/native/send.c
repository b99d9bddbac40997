/* send.c - blocks become packets as a detector would send them: port by port in turn, open
 * loop, several at a time where the kernel cuts them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "link/native/native.h"
#include "link/native/pack.h"

/* Half a second and more without room in the socket: the interface does not send. */
enum { TRIES_MAX = 10000, TRY_US = 50 };

static struct sl_native_source *source_of(struct sl_native *native, uint16_t transfer)
{
	if (transfer >= SL_NATIVE_MODULES || !native->out[transfer].plan.version)
		return NULL;
	return &native->out[transfer];
}

static int open_port(struct sl_native *native, struct sl_native_source *source, uint32_t port)
{
	const uint8_t *to = native->local[port % 2];
	uint16_t at = (uint16_t)(source->plan.dest.port + port);
	int fd;

	source->to_bytes = sl_net_address(to, at, &source->to[port]);
	fd = sl_net_open(native->from, 0);
	if (fd < 0)
		return fd;
	if (!native->checksum && sl_net_leave_checksum(fd) == 0)
		native->segment = false; /* the kernel cuts nothing that has no checksum */
	native->segment &= sl_net_segments(fd);
	source->fd[port] = fd;
	source->place[port] =
		native->format->place(native, &source->shape, source->plan.module, port);
	source->shape.ports = port + 1;
	return 0;
}

int sl_native_connect(void *state, const struct sl_plan *plan)
{
	struct sl_native *native = state;
	struct sl_native_source *source;
	struct sl_native_shape shape;
	int err;

	if (plan->module >= SL_NATIVE_MODULES || plan->transfer != plan->module || !plan->bare)
		return -EINVAL;
	source = &native->out[plan->module];
	if (source->plan.version)
		return -EBUSY;
	err = native->format->shape(native, plan->module, plan->lines ? plan->lines : 1,
				    plan->lines ? plan->line_bytes : (uint32_t)plan->block_bytes,
				    &shape);
	if (err)
		return err;
	source->plan = *plan;
	source->shape = shape;
	source->shape.ports = 0;
	if (!source->step) { /* made by a receiver, and not here */
		source->step = shape.block_numbers;
		source->first = native->base;
	}
	for (uint32_t i = 0; i < shape.ports && !err; i++)
		err = open_port(native, source, i);
	return err ? err : sl_native_reorder_open(native, source);
}

/* ---- batches ---- */

static void begin(struct sl_native_batch *batch, struct sl_native *native,
		  struct sl_native_source *source, uint32_t port)
{
	uint32_t each = native->format->header_bytes + source->shape.payload;
	unsigned most = SL_NATIVE_SEND_MAX / each;

	batch->native = native;
	batch->source = source;
	batch->port = port;
	batch->packets = batch->iovs = 0;
	batch->most = most < SL_NATIVE_SEGMENTS ? most : SL_NATIVE_SEGMENTS;
}

/* As many messages as packets, or one that the kernel cuts. */
static unsigned lay_out(struct sl_native_batch *batch, uint32_t each)
{
	const struct sl_native_source *source = batch->source;
	struct iovec *iov = batch->iov;

	if (batch->native->segment) {
		struct msghdr *message = &batch->message[0].msg_hdr;

		*message = (struct msghdr){.msg_name = (void *)&source->to[batch->port],
					   .msg_namelen = source->to_bytes,
					   .msg_iov = iov,
					   .msg_iovlen = batch->iovs};
		if (batch->packets > 1)
			sl_net_segment(message, batch->control, (uint16_t)each);
		return 1;
	}
	for (unsigned i = 0; i < batch->packets; i++) {
		size_t bytes = 0;

		batch->message[i].msg_hdr =
			(struct msghdr){.msg_name = (void *)&source->to[batch->port],
					.msg_namelen = source->to_bytes,
					.msg_iov = iov};
		for (; bytes < each; iov++, batch->message[i].msg_hdr.msg_iovlen++)
			bytes += iov->iov_len;
	}
	return batch->packets;
}

int sl_native_send(struct sl_native_batch *batch)
{
	struct sl_native *native = batch->native;
	uint32_t each = native->format->header_bytes + batch->source->shape.payload;
	unsigned messages = batch->packets ? lay_out(batch, each) : 0, done = 0, tries = 0;

	while (done < messages) {
		int n = sendmmsg(batch->source->fd[batch->port], batch->message + done,
				 messages - done, 0);

		if (n > 0)
			done += (unsigned)n;
		else if (errno == EMSGSIZE || (errno == EINVAL && native->segment))
			return -EMSGSIZE; /* the same, said of a packet that is to be cut */
		else if ((errno == EAGAIN || errno == ENOBUFS || errno == EINTR) &&
			 tries++ < TRIES_MAX)
			sl_native_rest(native, TRY_US);
		else if (errno != ECONNREFUSED) /* nobody listens: a detector would not know */
			return -errno;
	}
	batch->packets = batch->iovs = 0;
	return 0;
}

int sl_native_append(struct sl_native_batch *batch, const uint8_t *header,
		     const struct sl_part *part, unsigned parts)
{
	uint32_t bytes = batch->native->format->header_bytes;
	int err = batch->iovs + 1 + parts > SL_NATIVE_IOVS ? sl_native_send(batch) : 0;

	if (err)
		return err;
	memcpy(batch->header[batch->packets], header, bytes);
	batch->iov[batch->iovs++] = (struct iovec){batch->header[batch->packets], bytes};
	for (unsigned i = 0; i < parts; i++)
		batch->iov[batch->iovs++] = (struct iovec){(void *)part[i].data, part[i].bytes};
	return ++batch->packets == batch->most ? sl_native_send(batch) : 0;
}

/* ---- packets ---- */

/* The same of pixels that are packed on the wire: line by line. */
static unsigned pack(struct sl_native_batch *batch, const struct sl_write *write, uint32_t packet,
		     struct sl_part part[SL_NATIVE_PIECES])
{
	const struct sl_native_shape *shape = &batch->source->shape;
	uint8_t *together = batch->together[batch->packets], *to = together;
	struct sl_native_span span = {0};

	while (sl_native_next_span(shape, batch->port, packet, &span)) {
		sl_write_copy(write, (uint32_t)span.at, span.bytes, batch->unpacked);
		sl_native_pack(shape, batch->unpacked, span.skip, span.wire_bytes, to);
		to += span.wire_bytes;
	}
	part[0] = (struct sl_part){together, shape->payload};
	return 1;
}

/* The payload of a packet, out of the frame's memory; copied together where it is in many places.
 */
static unsigned gather(struct sl_native_batch *batch, const struct sl_write *write, uint32_t packet,
		       struct sl_part part[SL_NATIVE_PIECES])
{
	struct sl_native_piece piece[SL_NATIVE_PIECES];
	uint8_t *to = batch->together[batch->packets];
	unsigned parts = 0, n;

	if (batch->source->shape.packed)
		return pack(batch, write, packet, part);
	n = sl_native_pieces(&batch->source->shape, batch->port, packet, piece);
	for (unsigned i = 0; i < n && parts <= SL_NATIVE_PIECES; i++)
		parts += sl_write_gather(write, (uint32_t)piece[i].at, piece[i].bytes, part + parts,
					 SL_NATIVE_PIECES - parts);
	if (parts <= SL_NATIVE_PIECES)
		return parts;
	for (unsigned i = 0; i < n; i++) {
		sl_write_copy(write, (uint32_t)piece[i].at, piece[i].bytes, to);
		to += piece[i].bytes;
	}
	part[0] = (struct sl_part){batch->together[batch->packets], batch->source->shape.payload};
	return 1;
}

static void write_header(const struct sl_native_batch *batch, const struct sl_write *write,
			 uint32_t packet, uint8_t *bytes)
{
	const struct sl_native_source *source = batch->source;
	const struct sl_record *record = write->record;
	const struct sl_native_header header = {
		.number = source->first + write->sequence * source->step +
			  packet * source->shape.packet_numbers,
		.packet = packet + source->shape.first_packet[batch->port],
		.place = source->place[batch->port],
		.timestamp = record ? record->timestamp : 0,
		.cell = record ? record->cell : 0,
		.module = source->plan.module,
		.port = (uint16_t)batch->port,
	};

	batch->native->format->write(batch->native, &header, bytes);
}

/* With what is to happen to it on purpose. */
static int send_packet(struct sl_native_batch *batch, const struct sl_write *write, uint32_t packet)
{
	const struct sl_link_env *env = &batch->native->env;
	const struct sl_native_source *source = batch->source;
	uint32_t index = batch->port * source->shape.packets + packet;
	enum sl_packet_fault fault =
		env->fault ? env->fault(env->fault_arg, source->plan.module, write->sequence, index)
			   : SL_PACKET_FAULT_NONE;
	struct sl_part part[SL_NATIVE_PIECES];
	unsigned parts = gather(batch, write, packet, part);
	uint8_t header[SL_NATIVE_HEADER];
	int err = 0;

	write_header(batch, write, packet, header);
	if (fault == SL_PACKET_FAULT_REORDER)
		sl_native_reorder(batch, header, part, parts);
	else if (fault == SL_PACKET_FAULT_NONE || fault == SL_PACKET_FAULT_DUPLICATE)
		err = sl_native_append(batch, header, part, parts);
	if (!err && fault == SL_PACKET_FAULT_DUPLICATE) {
		err = sl_native_send(batch); /* what was put together may be needed twice */
		parts = gather(batch, write, packet, part);
		if (!err)
			err = sl_native_append(batch, header, part, parts);
	}
	return err || !env->hold ? err : sl_native_pass(batch);
}

/* Ports take turns, some packets each, as their interfaces would at the same time. */
static int send_block(struct sl_native *native, struct sl_native_source *source,
		      const struct sl_write *write)
{
	struct sl_native_batch *batch = native->batch;
	uint32_t packets = source->shape.packets;
	int err = 0;

	for (uint32_t first = 0; first < packets && !err;) {
		uint32_t end = packets;

		for (uint32_t port = 0; port < source->shape.ports && !err; port++) {
			begin(batch, native, source, port);
			end = first + batch->most < packets ? first + batch->most : packets;
			for (uint32_t p = first; p < end && !err; p++)
				err = send_packet(batch, write, p);
			if (!err)
				err = sl_native_send(batch);
		}
		first = end;
	}
	return err;
}

int sl_native_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
{
	struct sl_native *native = state;
	struct sl_native_source *source = source_of(native, transfer);
	size_t done = 0;

	if (!source)
		return -EINVAL;
	for (; done < n; done++) {
		int err;

		if (write[done].bytes != source->plan.block_bytes)
			return -EINVAL;
		err = send_block(native, source, &write[done]);
		if (err)
			return err;
		source->sent = write[done].position;
	}
	return (int)done;
}

uint64_t sl_native_reap(void *state, uint16_t transfer)
{
	const struct sl_native_source *source = source_of(state, transfer);

	return source ? source->sent : 0; /* the kernel copied it */
}

int sl_native_flush(void *state, uint16_t transfer)
{
	struct sl_native *native = state;
	struct sl_native_source *source = source_of(native, transfer);

	return source ? sl_native_release_all(native, source) : -EINVAL;
}
