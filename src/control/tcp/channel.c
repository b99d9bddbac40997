/* channel.c - messages over TCP, one at a time, with time-outs everywhere. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/tcp/channel.h"

enum { SEND_TIMEOUT_S = 5 };

/* A host that lost power or its cable says nothing: ask it, and give up after about this long. */
enum { IDLE_S = 5, PROBE_S = 2, PROBES = 3, UNACKNOWLEDGED_MS = 10000 };

void sl_channel_init(struct sl_channel *channel, int fd)
{
	struct timeval timeout = {SEND_TIMEOUT_S, 0};
	int one = 1;

	channel->fd = fd;
	channel->have = 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){IDLE_S}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){PROBE_S}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){PROBES}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){UNACKNOWLEDGED_MS}, sizeof(int));
}

void sl_channel_close(struct sl_channel *channel)
{
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = -1;
}

int sl_channel_send(struct sl_channel *channel, const struct sl_wire_message *message)
{
	uint8_t bytes[SL_WIRE_MAX];
	int n = sl_wire_encode(message, bytes, sizeof(bytes)), done = 0;

	if (n < 0)
		return n;
	while (done < n) {
		ssize_t sent = send(channel->fd, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
		done += (int)sent;
	}
	return 0;
}

static int take(struct sl_channel *channel, struct sl_wire_message *message)
{
	int used = sl_wire_decode(channel->in, channel->have, message);

	if (used <= 0)
		return used;
	channel->have -= (size_t)used;
	memmove(channel->in, channel->in + used, channel->have);
	return 1;
}

int sl_channel_receive(struct sl_channel *channel, int timeout_ms, struct sl_wire_message *message)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	int got = channel->have ? take(channel, message) : 0;
	ssize_t n;

	if (got)
		return got;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	n = recv(channel->fd, channel->in + channel->have, sizeof(channel->in) - channel->have,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	channel->have += (size_t)n;
	return take(channel, message);
}

void sl_channel_refuse(struct sl_channel *channel, const char *format, ...)
{
	struct sl_wire_message message = {.type = SL_WIRE_ERROR};
	va_list args;

	va_start(args, format);
	vsnprintf(message.error.text, sizeof(message.error.text), format, args);
	va_end(args);
	sl_channel_send(channel, &message);
}
