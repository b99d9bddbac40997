/* client.c - connections of the status socket: bytes in, lines out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/status_json.h"
#include "session/socket/private.h"

#define ACCEPT_PAUSE_NS UINT64_C(1000000000)
#define IDLE_NS		UINT64_C(10000000000)

static char *error_line(enum sl_error_code code, const char *message, const char *hint)
{
	struct sl_error error = {.code = code};

	snprintf(error.message, sizeof(error.message), "%s", message);
	snprintf(error.hint, sizeof(error.hint), "%s", hint);
	return sl_reply_error(&error);
}

/* A connection that gets no place: one line, as far as it fits, and the end. */
static void turn_away(int fd, enum sl_error_code code, const char *message)
{
	char *line = error_line(code, message, "");

	if (line && send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	free(line);
	close(fd);
}

static bool may_enter(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* A free place; else that of the client that has asked for nothing the longest, and does not wait
 * for anything. */
static struct sl_socket_client *place(struct sl_socket *s, uint64_t now_ns)
{
	struct sl_socket_client *idle = NULL;

	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		struct sl_socket_client *c = &s->client[i];

		if (c->fd < 0)
			return c;
		if (!c->states && !c->every_ns && !c->configures &&
		    now_ns - c->heard_ns > IDLE_NS && (!idle || c->heard_ns < idle->heard_ns))
			idle = c;
	}
	if (idle)
		sl_socket_drop(s, idle);
	return idle;
}

void sl_socket_accept(struct sl_socket *s, uint64_t now_ns)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct sl_socket_client *client;
	char why[100];

	if (fd < 0) {
		/* The connection stays in the queue and would wake the loop again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			s->accept_after_ns = now_ns + ACCEPT_PAUSE_NS;
		return;
	}
	if (!may_enter(fd)) {
		snprintf(why, sizeof(why), "the %s belongs to another user", s->ops->noun);
		turn_away(fd, SL_ERROR_ACCESS, why);
		return;
	}
	client = place(s, now_ns);
	if (!client) {
		turn_away(fd, SL_ERROR_ACCESS, "too many clients are connected");
		return;
	}
	client->fd = fd;
	client->heard_ns = now_ns;
}

void sl_socket_drop(struct sl_socket *s, struct sl_socket_client *c)
{
	if (s->worker.client == c)
		s->worker.client = NULL;
	close(c->fd);
	free(c->out);
	/* All but the buffer, which is large and need not be cleared. */
	c->fd = -1;
	c->out = NULL;
	c->in_bytes = c->out_bytes = c->out_sent = 0;
	c->bad = 0;
	c->ended = c->cut = c->configures = c->follows = false;
	c->states = 0;
	c->every_ns = c->next_ns = c->until_ns = 0;
}

void sl_socket_reply(struct sl_socket_client *c, char *text, uint64_t now_ns)
{
	c->out = text;
	c->out_bytes = text ? strlen(text) : 0;
	c->out_sent = 0;
	c->moved_ns = now_ns;
	if (!text)
		c->cut = true;
}

void sl_socket_reply_error(struct sl_socket_client *c, enum sl_error_code code, const char *message,
			   const char *hint, uint64_t now_ns)
{
	sl_socket_reply(c, error_line(code, message, hint), now_ns);
}

ssize_t sl_socket_line(const struct sl_socket_client *c)
{
	const char *end = memchr(c->in, '\n', c->in_bytes);

	return end ? end - c->in : -1;
}

void sl_socket_take_line(struct sl_socket_client *c, size_t length)
{
	c->in_bytes -= length + 1;
	memmove(c->in, c->in + length + 1, c->in_bytes);
}

void sl_socket_read(struct sl_socket *s, struct sl_socket_client *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_bytes, sizeof(c->in) - c->in_bytes, MSG_DONTWAIT);

	if (n > 0) {
		c->in_bytes += (size_t)n;
	} else if (n == 0) {
		c->ended = true;
		/* The last line may lack its end. */
		if (c->in_bytes && c->in_bytes < sizeof(c->in) && c->in[c->in_bytes - 1] != '\n')
			c->in[c->in_bytes++] = '\n';
	} else if (errno != EAGAIN && errno != EINTR) {
		sl_socket_drop(s, c);
	}
}

void sl_socket_write(struct sl_socket *s, struct sl_socket_client *c, uint64_t now_ns)
{
	ssize_t n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		sl_socket_drop(s, c);
		return;
	}
	if (n <= 0)
		return;
	c->out_sent += (size_t)n;
	c->moved_ns = now_ns;
	if (c->out_sent < c->out_bytes)
		return;
	free(c->out);
	c->out = NULL;
}
