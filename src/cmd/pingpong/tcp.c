/* tcp.c - making acquaintance over TCP, as the ibv_*_pingpong programs do. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/pingpong/pingpong.h"
#include "cmd/signals.h"
#include "net/net.h"

enum { STEP_S = 10, SLICE_MS = 200 };

static const char done[] = "done"; /* with its zero byte */

/* Until it is readable or writable; 0, -ETIMEDOUT, or -EINTR when the user wants to end. */
static int await(int fd, short events, uint64_t limit_ns)
{
	struct pollfd wanted = {.fd = fd, .events = events};

	for (;;) {
		int n = poll(&wanted, 1, SLICE_MS);

		if (sl_signal)
			return -EINTR;
		if (n > 0)
			return 0;
		if (sl_clock_ns() > limit_ns)
			return -ETIMEDOUT;
	}
}

static uint64_t step_limit(void)
{
	return sl_clock_ns() + STEP_S * UINT64_C(1000000000);
}

/* ---- server ---- */

/* All addresses of both families, or IPv4 alone where the host has no IPv6. */
static socklen_t any_address(uint16_t port, union sl_net_address *at, int *fd)
{
	memset(at, 0, sizeof(*at));
	*fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0) {
		setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
		at->v6.sin6_family = AF_INET6;
		at->v6.sin6_port = htons(port);
		return sizeof(at->v6);
	}
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at->v4.sin_family = AF_INET;
	at->v4.sin_port = htons(port);
	return sizeof(at->v4);
}

static int open_listener(const char *address, uint16_t port)
{
	uint8_t gid[SL_NET_GID_BYTES];
	union sl_net_address at;
	socklen_t bytes;
	int fd, err;

	if (address) {
		err = sl_net_parse("--listen", address, gid);
		if (err)
			return err;
		bytes = sl_net_address(gid, port, &at);
		fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	} else {
		bytes = any_address(port, &at, &fd);
	}
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
		if (bind(fd, &at.any, bytes) == 0 && listen(fd, 1) == 0)
			return fd;
	}
	err = -errno;
	sl_error("cannot listen on TCP %s port %u: %s", address ? address : "(all addresses)", port,
		 strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

int sl_pingpong_accept(const char *listen, uint16_t port)
{
	int fd = open_listener(listen, port), connection, err;

	if (fd < 0)
		return fd;
	sl_info("waiting for a client on TCP port %u", port);
	err = await(fd, POLLIN, UINT64_MAX);
	connection = err ? err : accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (!err && connection < 0) {
		connection = -errno;
		sl_error("cannot accept a client: %s", strerror(-connection));
	}
	close(fd);
	return connection;
}

/* ---- client ---- */

/* So that the peer sees, and answers to, the address that our packets come from. */
static int bind_source(int fd, int family, const char *source)
{
	uint8_t gid[SL_NET_GID_BYTES];
	union sl_net_address at;
	socklen_t bytes;

	if (!source || sl_net_parse("--source", source, gid))
		return source ? -EINVAL : 0;
	bytes = sl_net_address(gid, 0, &at);
	/* A host may be asked over one family about the other. */
	if (at.any.sa_family != family)
		return 0;
	return bind(fd, &at.any, bytes) < 0 ? -errno : 0;
}

static int connect_to(const struct addrinfo *to, const char *source)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	socklen_t size = sizeof(err);

	if (fd < 0)
		return -errno;
	err = bind_source(fd, to->ai_family, source);
	if (!err && connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		err = -errno;
	if (err == -EINPROGRESS)
		err = await(fd, POLLOUT, step_limit());
	if (!err && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) == 0)
		err = -err;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int sl_pingpong_connect(const char *host, uint16_t port, const char *source)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	char service[8];
	int fd = -EHOSTUNREACH, wrong;

	snprintf(service, sizeof(service), "%u", port);
	wrong = getaddrinfo(host, service, &hints, &list);
	if (wrong) {
		sl_error("'%s': %s", host, gai_strerror(wrong));
		return -EINVAL;
	}
	for (const struct addrinfo *to = list; to && fd < 0 && !sl_signal; to = to->ai_next)
		fd = connect_to(to, source);
	freeaddrinfo(list);
	if (fd == -ECONNREFUSED)
		sl_error("nobody listens at %s port %u: start the other side first, without an "
			 "address (ibv_rc_pingpong -g INDEX, or sluice pingpong)",
			 host, port);
	else if (fd < 0 && !sl_signal)
		sl_error("cannot connect to %s port %u: %s", host, port, strerror(-fd));
	return fd;
}

int sl_pingpong_local(int fd, uint8_t gid[SL_ROCE_GID_BYTES])
{
	union sl_net_address at;
	socklen_t bytes = sizeof(at);

	if (getsockname(fd, &at.any, &bytes) < 0)
		return -errno;
	sl_net_gid(&at, gid);
	return 0;
}

/* ---- both ---- */

/* The other programs read each text with one read(): it goes out in one piece. */
static int send_all(int fd, const char *text, size_t bytes)
{
	ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

	if (n == (ssize_t)bytes)
		return 0;
	sl_error("cannot write to the other side: %s", n < 0 ? strerror(errno) : "cut short");
	return -EPIPE;
}

static int receive_all(int fd, char *text, size_t bytes, const char *what)
{
	uint64_t limit = step_limit();

	for (size_t have = 0; have < bytes;) {
		int err = await(fd, POLLIN, limit);
		ssize_t n = err ? 0 : recv(fd, text + have, bytes - have, 0);

		if (err == -EINTR)
			return err;
		if (err || n <= 0) {
			sl_error("the other side %s instead of %s; is it a pingpong program?",
				 err ? "said nothing for 10 s" : "hung up", what);
			return err ? err : -ECONNRESET;
		}
		have += (size_t)n;
	}
	return 0;
}

int sl_pingpong_send(int fd, const struct sl_greeting *ours)
{
	char text[SL_GREETING_BYTES];

	sl_greeting_format(ours, text);
	return send_all(fd, text, sizeof(text));
}

int sl_pingpong_receive(int fd, struct sl_greeting *theirs)
{
	char text[SL_GREETING_BYTES];
	int err = receive_all(fd, text, sizeof(text), "telling its address");

	if (err)
		return err;
	if (sl_greeting_parse(text, theirs) == 0)
		return 0;
	text[sizeof(text) - 1] = 0;
	sl_error("the other side told an address that is none; is it a pingpong program?");
	return -EPROTO;
}

int sl_pingpong_send_done(int fd)
{
	return send_all(fd, done, sizeof(done));
}

int sl_pingpong_receive_done(int fd)
{
	char text[sizeof(done)];
	int err = receive_all(fd, text, sizeof(text), "confirming");

	if (err || memcmp(text, done, sizeof(done)) == 0)
		return err;
	sl_error("the other side did not confirm with 'done'; is it a pingpong program?");
	return -EPROTO;
}
