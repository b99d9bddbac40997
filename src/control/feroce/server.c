/* server.c - FEROCE messages on UDP sockets. */
#include "control/feroce/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	SOCKETS = 2,
	PREFIXES = 64,
	BURST = 64, /* datagrams taken per poll and socket: the control thread has other work */
	/* Between two requests. A core loses a request that comes within 70 clocks, a quarter of a
	 * microsecond, of the one before. */
	REQUEST_GAP_NS = 100000,
};

struct prefix {
	uint32_t ip, mask;
};

struct sl_feroce_server {
	struct sl_feroce_host host;
	int fd[SOCKETS];
	unsigned sockets, prefixes;
	struct prefix prefix[PREFIXES];
	uint64_t foreign;      /* datagrams from addresses that are not allowed */
	uint64_t requested_ns; /* when the last request was sent */
};

/* ---- options ---- */

/* The next word of a list that commas and blanks separate; false at its end, or *err set. */
static bool next_word(const char **list, char word[32], int *err)
{
	size_t length;

	*list += strspn(*list, ", ");
	length = strcspn(*list, ", ");
	if (!length)
		return false;
	if (length >= 32) {
		*err = -EINVAL;
		return false;
	}
	memcpy(word, *list, length);
	word[length] = 0;
	*list += length;
	return true;
}

static int parse_ip(const char *text, uint32_t *ip)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		return -EINVAL;
	*ip = ntohl(address.s_addr);
	return 0;
}

/* "10.0.0.0/24"; without a length, one address. */
static int parse_prefix(char *text, struct prefix *prefix)
{
	char *slash = strchr(text, '/'), *end = NULL;
	unsigned long length = 32;

	if (slash) {
		*slash++ = 0;
		length = strtoul(slash, &end, 10);
		if (*slash < '0' || *slash > '9' || *end || length > 32)
			return -EINVAL;
	}
	prefix->mask = length ? UINT32_MAX << (32 - length) : 0;
	if (parse_ip(text, &prefix->ip) || (prefix->ip & ~prefix->mask))
		return -EINVAL;
	return 0;
}

static int read_allow(struct sl_feroce_server *server, const char *list)
{
	const char *all = list;
	char word[32];
	int err = 0;

	while (next_word(&list, word, &err)) {
		if (server->prefixes == PREFIXES ||
		    parse_prefix(word, &server->prefix[server->prefixes]))
			err = -EINVAL;
		if (err)
			break;
		server->prefixes++;
	}
	if (err)
		sl_error("feroce.allow: '%s' is not a list of at most %d IPv4 addresses or "
			 "prefixes, as in  10.0.0.0/24, 10.0.1.7",
			 all, PREFIXES);
	return err;
}

static int read_devices(struct sl_feroce_options *host, const char *list)
{
	const char *all = list;
	char word[32];
	int err = 0;

	for (host->devices = 0; next_word(&list, word, &err); host->devices++) {
		if (host->devices == host->modules || host->devices == SL_FEROCE_SEATS ||
		    parse_ip(word, &host->device[host->devices]))
			err = -EINVAL;
		if (err)
			break;
	}
	if (err)
		sl_error("feroce.open: '%s' is not a list of IPv4 addresses, one for each of "
			 "detector.modules (%u) at most",
			 all, host->modules);
	return err;
}

/* ---- sockets ---- */

static int open_socket(struct sl_feroce_server *server, uint32_t ip, uint16_t port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0) {
		server->fd[server->sockets++] = fd;
		return 0;
	}
	err = -errno;
	sl_error("cannot listen for FEROCE front ends on UDP port %u: %s", port,
		 err == -EADDRINUSE ? "another receiver runs there; stop it or set feroce.port"
				    : strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

static int open_sockets(struct sl_feroce_server *server,
			const struct sl_feroce_server_options *options, uint32_t devices)
{
	uint32_t ip;
	int err = parse_ip(options->address, &ip);

	if (err || !ip) {
		sl_error("feroce.address: '%s' is not the IPv4 address of one interface; FEROCE "
			 "messages have no room for others",
			 options->address);
		return -EINVAL;
	}
	if (!server->prefixes && !devices && ip >> 24 != 127) {
		sl_error("feroce.address: %s can be reached from other hosts, and plans hold "
			 "keys: list the addresses of the front ends in feroce.allow",
			 options->address);
		return -EPERM;
	}
	if (options->port)
		return open_socket(server, ip, options->port);
	err = open_socket(server, ip, SL_FEROCE_PORT);
	return err ? err : open_socket(server, ip, SL_FEROCE_PORT_OF_HOSTS);
}

static void wait_for_gap(struct sl_feroce_server *server)
{
	uint64_t since_ns = sl_clock_ns() - server->requested_ns;

	if (since_ns < REQUEST_GAP_NS)
		nanosleep(&(struct timespec){.tv_nsec = (long)(REQUEST_GAP_NS - since_ns)}, NULL);
}

static void send_message(void *arg, uint32_t ip, uint16_t port,
			 const struct sl_feroce_message *message)
{
	struct sl_feroce_server *server = arg;
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
	uint8_t bytes[SL_FEROCE_BYTES];

	sl_feroce_encode(message, bytes);
	if (!message->answer)
		wait_for_gap(server);
	/* A request that is lost is sent again: no need to look at the result. */
	sendto(server->fd[0], bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&to,
	       sizeof(to));
	/* After sending: this thread may lose its CPU between the gap and the packet. */
	if (!message->answer)
		server->requested_ns = sl_clock_ns();
}

int sl_feroce_server_open(const struct sl_feroce_server_options *options,
			  const struct sl_control_ops *ops, void *arg,
			  struct sl_feroce_server **out)
{
	struct sl_feroce_server *server = calloc(1, sizeof(*server));
	struct sl_feroce_options host = options->host;
	int err;

	if (!server)
		return -ENOMEM;
	host.port = options->port ? options->port : SL_FEROCE_PORT;
	err = read_allow(server, options->allow);
	if (!err)
		err = read_devices(&host, options->open);
	if (!err)
		err = open_sockets(server, options, host.devices);
	sl_feroce_host_init(&server->host, &host, ops, arg, send_message, server);
	if (err) {
		sl_feroce_server_close(server);
		return err;
	}
	*out = server;
	return 0;
}

void sl_feroce_server_close(struct sl_feroce_server *server)
{
	const struct sl_feroce_host *host = &server->host;

	if (server->sockets)
		sl_feroce_host_dismiss(&server->host);
	if (server->foreign || host->malformed || host->misplaced)
		sl_info("FEROCE: %llu datagrams from addresses that are not allowed, %llu that are "
			"no messages, %llu messages that did not fit were ignored",
			(unsigned long long)server->foreign, (unsigned long long)host->malformed,
			(unsigned long long)host->misplaced);
	for (unsigned i = 0; i < server->sockets; i++)
		close(server->fd[i]);
	free(server);
}

static bool allowed(const struct sl_feroce_server *server, uint32_t ip)
{
	for (unsigned i = 0; i < server->prefixes; i++)
		if ((ip & server->prefix[i].mask) == server->prefix[i].ip)
			return true;
	for (uint32_t i = 0; i < server->host.options.devices; i++)
		if (ip == server->host.options.device[i])
			return true;
	return !server->prefixes && ip >> 24 == 127;
}

static void listen_to(struct sl_feroce_server *server, int fd)
{
	uint8_t bytes[SL_FEROCE_BYTES + 1]; /* one more: longer ones are seen to be longer */
	struct sockaddr_in from;

	for (unsigned i = 0; i < BURST; i++) {
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &size);

		if (n < 0 && errno != ECONNREFUSED) /* empty */
			return;
		if (n < 0) /* an answer of ours found nobody */
			continue;
		if (allowed(server, ntohl(from.sin_addr.s_addr)))
			sl_feroce_host_hear(&server->host, ntohl(from.sin_addr.s_addr), bytes,
					    (size_t)n);
		else
			server->foreign++;
	}
}

unsigned sl_feroce_server_fds(const struct sl_feroce_server *server, struct pollfd *fds,
			      unsigned most)
{
	unsigned n = 0;

	for (; n < server->sockets && n < most; n++)
		fds[n] = (struct pollfd){.fd = server->fd[n], .events = POLLIN};
	return n;
}

void sl_feroce_server_poll(struct sl_feroce_server *server, uint64_t now_ns)
{
	for (unsigned i = 0; i < server->sockets; i++)
		listen_to(server, server->fd[i]);
	sl_feroce_host_tick(&server->host, now_ns);
}

uint32_t sl_feroce_server_planned(const struct sl_feroce_server *server)
{
	return sl_feroce_host_planned(&server->host);
}

bool sl_feroce_server_ready(const struct sl_feroce_server *server)
{
	return sl_feroce_host_planned(&server->host) == server->host.options.modules;
}

void sl_feroce_server_start(struct sl_feroce_server *server)
{
	sl_feroce_host_start(&server->host);
}

void sl_feroce_server_stop(struct sl_feroce_server *server)
{
	sl_feroce_host_stop(&server->host);
}

void sl_feroce_server_abandon(struct sl_feroce_server *server)
{
	sl_feroce_host_abandon(&server->host);
}

void sl_feroce_server_bye(struct sl_feroce_server *server)
{
	sl_feroce_host_bye(&server->host);
}

bool sl_feroce_server_leaving(const struct sl_feroce_server *server)
{
	return sl_feroce_host_leaving(&server->host);
}
