/* listen.c - the listening socket of a server. */
#include "control/tcp/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/net.h"

enum { LISTEN_BACKLOG = 64 };

/* A shorter token can be found by trying, against one recorded exchange of proofs. */
enum { LONG_ENOUGH = 16 };

const char *sl_server_peer(const struct sl_server_options *options)
{
	return options->peer ? options->peer : "front end";
}

static void log_problem(const struct sl_server_options *o, const char *section, int err)
{
	if (err == -EADDRINUSE)
		sl_error("cannot listen for %ss on %s:%u: another %s runs there; stop it or set "
			 "%s.port",
			 sl_server_peer(o), o->address, o->port, o->self ? o->self : "receiver",
			 section);
	else
		sl_error("cannot listen for %ss on %s:%u: %s", sl_server_peer(o), o->address,
			 o->port, strerror(-err));
}

int sl_server_listen(const struct sl_server_options *o, int *listener)
{
	const char *section = o->section ? o->section : "control";
	union sl_net_address at;
	socklen_t size = sl_net_numeric(o->address, o->port, &at);
	int one = 1, fd, err;

	if (!size) {
		sl_error("%s.address: '%s' is not an IPv4 or IPv6 address", section, o->address);
		return -EINVAL;
	}
	if (!o->token[0] && !sl_net_same_host(&at)) {
		sl_error("%s.address: %s can be reached from other hosts, and plans hold keys: set "
			 "control.token_file to a file with the same secret on both sides",
			 section, o->address);
		return -EPERM;
	}
	if (strlen(o->token) < LONG_ENOUGH && !sl_net_same_host(&at))
		sl_warn("control.token has less than %d characters and can be guessed: 'head -c 32 "
			"/dev/urandom | base64' makes a good one",
			LONG_ENOUGH);
	fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &at.any, size) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		err = -errno;
		close(fd);
		log_problem(o, section, err);
		return err;
	}
	*listener = fd;
	return 0;
}
