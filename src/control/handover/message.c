/* message.c - bytes and descriptors, whole or not at all. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/handover/message.h"

static const uint8_t magic[4] = {'S', 'L', 'K', 'P'};

static void put32(uint8_t *to, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < 4; i++)
		value |= (uint32_t)from[i] << 8 * i;
	return value;
}

void sl_handover_message_header(const struct sl_handover_message *message,
				uint8_t header[SL_HANDOVER_MESSAGE_HEADER])
{
	memcpy(header, magic, sizeof(magic));
	put32(header + 4, SL_HANDOVER_MESSAGE_VERSION | (uint32_t)message->type << 16);
	put32(header + 8, (uint32_t)message->bytes);
	put32(header + 12, message->fds);
}

int sl_handover_message_parse(const uint8_t *data, size_t n, unsigned fds,
			      struct sl_handover_message *message)
{
	uint32_t kind, bytes;

	if (n < SL_HANDOVER_MESSAGE_HEADER || memcmp(data, magic, sizeof(magic)) != 0)
		return -EPROTO;
	kind = get32(data + 4);
	bytes = get32(data + 8);
	if ((kind & 0xffff) != SL_HANDOVER_MESSAGE_VERSION)
		return -EPROTONOSUPPORT;
	if (kind >> 16 == 0 || kind >> 16 >= SL_HANDOVER_MESSAGE_TYPES ||
	    bytes > SL_HANDOVER_MESSAGE_BODY || bytes != n - SL_HANDOVER_MESSAGE_HEADER ||
	    get32(data + 12) != fds || fds > SL_HANDOVER_MESSAGE_FDS)
		return -EPROTO;
	message->type = (enum sl_handover_message_type)(kind >> 16);
	message->bytes = bytes;
	message->fds = fds;
	return 0;
}

int sl_handover_message_send(int socket, const struct sl_handover_message *message)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(message->fd))] = {0};
	uint8_t header[SL_HANDOVER_MESSAGE_HEADER];
	struct iovec iov[] = {{header, sizeof(header)}, {(void *)message->body, message->bytes}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	sl_handover_message_header(message, header);
	if (message->fds) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(message->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(message->fds * sizeof(int));
		memcpy(CMSG_DATA(c), message->fd, message->fds * sizeof(int));
	}
	while (sendmsg(socket, &msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		return errno == EAGAIN ? -ETIMEDOUT : errno == EMSGSIZE ? -EMSGSIZE : -EPIPE;
	}
	return 0;
}

/* All descriptors that came, also those of a message that is not believed. */
static unsigned take_fds(struct msghdr *msg, int fd[SL_HANDOVER_MESSAGE_FDS])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = c->cmsg_len - CMSG_LEN(0);
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int one;

			memcpy(&one, CMSG_DATA(c) + at, sizeof(one));
			if (n < SL_HANDOVER_MESSAGE_FDS)
				fd[n++] = one;
			else
				close(one);
		}
	}
	return n;
}

int sl_handover_message_receive(int socket, int timeout_ms, struct sl_handover_message *message)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(message->fd))];
	uint8_t header[SL_HANDOVER_MESSAGE_HEADER];
	struct iovec iov[] = {{header, sizeof(header)}, {message->body, sizeof(message->body)}};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	unsigned fds;
	ssize_t n;
	int err;

	message->fds = 0;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	fds = take_fds(&msg, message->fd);
	err = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)
		      ? -EPROTO
		      : sl_handover_message_parse(header, (size_t)n, fds, message);
	if (!err)
		return 1;
	message->fds = fds;
	sl_handover_message_close(message);
	return err;
}

void sl_handover_message_close(struct sl_handover_message *message)
{
	for (unsigned i = 0; i < message->fds; i++)
		close(message->fd[i]);
	message->fds = 0;
}
