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

void sl_parcel_header(const struct sl_parcel *parcel, uint8_t header[SL_PARCEL_HEADER])
{
	memcpy(header, magic, sizeof(magic));
	put32(header + 4, SL_PARCEL_VERSION | (uint32_t)parcel->type << 16);
	put32(header + 8, (uint32_t)parcel->bytes);
	put32(header + 12, parcel->fds);
}

int sl_parcel_parse(const uint8_t *data, size_t n, unsigned fds, struct sl_parcel *parcel)
{
	uint32_t kind, bytes;

	if (n < SL_PARCEL_HEADER || memcmp(data, magic, sizeof(magic)) != 0)
		return -EPROTO;
	kind = get32(data + 4);
	bytes = get32(data + 8);
	if ((kind & 0xffff) != SL_PARCEL_VERSION)
		return -EPROTONOSUPPORT;
	if (kind >> 16 == 0 || kind >> 16 >= SL_PARCEL_TYPES || bytes > SL_PARCEL_BODY ||
	    bytes != n - SL_PARCEL_HEADER || get32(data + 12) != fds || fds > SL_PARCEL_FDS)
		return -EPROTO;
	parcel->type = (enum sl_parcel_type)(kind >> 16);
	parcel->bytes = bytes;
	parcel->fds = fds;
	return 0;
}

int sl_parcel_send(int socket, const struct sl_parcel *parcel)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(parcel->fd))] = {0};
	uint8_t header[SL_PARCEL_HEADER];
	struct iovec iov[] = {{header, sizeof(header)}, {(void *)parcel->body, parcel->bytes}};
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};

	sl_parcel_header(parcel, header);
	if (parcel->fds) {
		struct cmsghdr *c;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(parcel->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(parcel->fds * sizeof(int));
		memcpy(CMSG_DATA(c), parcel->fd, parcel->fds * sizeof(int));
	}
	while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		return errno == EAGAIN ? -ETIMEDOUT : errno == EMSGSIZE ? -EMSGSIZE : -EPIPE;
	}
	return 0;
}

/* All descriptors that came, also those of a message that is not believed. */
static unsigned take_fds(struct msghdr *message, int fd[SL_PARCEL_FDS])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t bytes;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = c->cmsg_len - CMSG_LEN(0);
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int one;

			memcpy(&one, CMSG_DATA(c) + at, sizeof(one));
			if (n < SL_PARCEL_FDS)
				fd[n++] = one;
			else
				close(one);
		}
	}
	return n;
}

int sl_parcel_receive(int socket, int timeout_ms, struct sl_parcel *parcel)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(parcel->fd))];
	uint8_t header[SL_PARCEL_HEADER];
	struct iovec iov[] = {{header, sizeof(header)}, {parcel->body, sizeof(parcel->body)}};
	struct msghdr message = {.msg_iov = iov,
				 .msg_iovlen = 2,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	unsigned fds;
	ssize_t n;
	int err;

	parcel->fds = 0;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	fds = take_fds(&message, parcel->fd);
	err = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)
		      ? -EPROTO
		      : sl_parcel_parse(header, (size_t)n, fds, parcel);
	if (!err)
		return 1;
	parcel->fds = fds;
	sl_parcel_close(parcel);
	return err;
}

void sl_parcel_close(struct sl_parcel *parcel)
{
	for (unsigned i = 0; i < parcel->fds; i++)
		close(parcel->fd[i]);
	parcel->fds = 0;
}
