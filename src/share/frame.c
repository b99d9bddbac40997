/* frame.c - frames between a share and its followers, in pieces as the socket takes and gives
 * them. */
#include "share/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SKIPPED = 16384 }; /* bytes of a payload that is too long, at a time */

/* ---- out ---- */

void sl_share_out_init(struct sl_share_out *out)
{
	*out = (struct sl_share_out){0};
	out->end = &out->first;
}

static bool is_offer(const struct sl_share_out_frame *frame)
{
	return frame->head.type == SL_SHARE_FRAME_ATTACHED ||
	       frame->head.type == SL_SHARE_FRAME_CONNECTED;
}

static void drop_first(struct sl_share_out *out)
{
	struct sl_share_out_frame *frame = out->first;

	out->first = frame->next;
	if (!out->first)
		out->end = &out->first;
	out->bytes -= frame->head.bytes;
	out->frames--;
	out->offers -= is_offer(frame);
	for (int i = 0; i < frame->fds; i++)
		close(frame->fd[i]);
	free(frame);
}

void sl_share_out_fini(struct sl_share_out *out)
{
	while (out->first)
		drop_first(out);
	sl_share_out_init(out);
}

int sl_share_out_put(struct sl_share_out *out, enum sl_share_frame_type type, uint64_t value,
		     const void *payload, uint64_t bytes, const int *fd, int fds)
{
	struct sl_share_out_frame *frame;

	if (bytes > SIZE_MAX - sizeof(*frame))
		return -ENOMEM;
	frame = malloc(sizeof(*frame) + bytes);
	if (!frame)
		return -ENOMEM;
	*frame = (struct sl_share_out_frame){.bytes = sizeof(frame->head) + bytes,
					     .fds = fds,
					     .head = {.magic = SL_SHARE_FRAME_MAGIC,
						      .type = type,
						      .value = value,
						      .bytes = bytes}};
	for (int i = 0; i < fds; i++)
		frame->fd[i] = fd[i];
	if (bytes)
		memcpy(&frame->head + 1, payload, bytes);
	*out->end = frame;
	out->end = &frame->next;
	out->bytes += bytes;
	out->frames++;
	out->offers += is_offer(frame);
	return 0;
}

static ssize_t send_piece(struct sl_share_out_frame *frame, int socket)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(frame->fd))] = {0};
	struct iovec piece = {(char *)&frame->head + frame->sent, frame->bytes - frame->sent};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

	if (frame->fds && !frame->sent) {
		struct cmsghdr *c;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE((size_t)frame->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)frame->fds * sizeof(int));
		memcpy(CMSG_DATA(c), frame->fd, (size_t)frame->fds * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int sl_share_out_send(struct sl_share_out *out, int socket)
{
	while (out->first) {
		ssize_t n = send_piece(out->first, socket);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		out->first->sent += (uint64_t)n;
		if (out->first->sent == out->first->bytes)
			drop_first(out);
	}
	return 0;
}

/* ---- in ---- */

void sl_share_in_next(struct sl_share_in *in)
{
	free(in->payload);
	for (int i = 0; i < in->fds; i++)
		close(in->fd[i]);
	*in = (struct sl_share_in){0};
}

void sl_share_in_fini(struct sl_share_in *in)
{
	sl_share_in_next(in);
}

uint8_t *sl_share_in_take(struct sl_share_in *in)
{
	uint8_t *payload = in->payload;

	in->payload = NULL;
	return payload;
}

/* Descriptors beyond the two that a frame may have are closed. */
static void take_descriptors(struct sl_share_in *in, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (in->fds < 2)
				in->fd[in->fds++] = fd;
			else
				close(fd);
		}
	}
}

static ssize_t read_piece(struct sl_share_in *in, int socket, void *at, size_t bytes)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
	struct iovec piece = {at, bytes};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	ssize_t n;

	do
		n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		take_descriptors(in, &message);
	if (n == 0)
		return -ECONNRESET;
	return n > 0 ? n : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

void sl_share_in_skip(struct sl_share_in *in)
{
	in->skips = true;
}

/* The head is whole. */
static int begin_payload(struct sl_share_in *in, uint64_t most)
{
	if (in->head.magic != SL_SHARE_FRAME_MAGIC)
		return -EPROTO;
	if (in->head.bytes > most)
		return in->skips ? 0 : -EMSGSIZE;
	if (in->head.bytes && !in->payload) {
		in->payload = malloc(in->head.bytes);
		if (!in->payload)
			return -ENOMEM;
	}
	return 0;
}

static int read_head(struct sl_share_in *in, int socket)
{
	ssize_t n = read_piece(in, socket, (uint8_t *)&in->head + in->head_bytes,
			       sizeof(in->head) - in->head_bytes);

	in->head_bytes += n > 0 ? (uint64_t)n : 0;
	return n < 0 ? (int)n : 0;
}

static int read_payload(struct sl_share_in *in, int socket)
{
	uint64_t left = in->head.bytes - in->got;
	uint8_t skipped[SKIPPED];
	ssize_t n;

	if (in->skips)
		n = read_piece(in, socket, skipped, left < SKIPPED ? left : SKIPPED);
	else
		n = read_piece(in, socket, in->payload + in->got, left);
	in->got += n > 0 ? (uint64_t)n : 0;
	return n < 0 ? (int)n : 0;
}

int sl_share_in_read(struct sl_share_in *in, int socket, uint64_t most)
{
	int err = 0;

	while (!err && in->head_bytes < sizeof(in->head))
		err = read_head(in, socket);
	if (!err)
		err = begin_payload(in, most);
	while (!err && in->got < in->head.bytes)
		err = read_payload(in, socket);
	return err == -EAGAIN ? 0 : err ? err : 1;
}
