/* server.c - the server is opened: where it listens, who may come, its threads; and closed. */
#include "service/http/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/secret_file.h"
#include "base/log.h"
#include "service/http/request.h"

enum {
	OVER = 256,	      /* connections that get a 503 */
	IDLE_S = 30,	      /* of a connection on which nothing moves */
	MEMORY_BYTES = 32768, /* of a connection: bounds the heads of requests */
	PEM_BYTES = 65536,
	BACKLOG = 256,
};

#define OWED_NS UINT64_C(2000000000)

/* ---- where it listens ---- */

struct place {
	struct sockaddr_storage address;
	socklen_t bytes;
	char host[INET6_ADDRSTRLEN];
	bool loopback, any;
};

static int refuse_listen(const char *listen)
{
	sl_error("--listen %s: takes ADDRESS:PORT with a numeric address, as 127.0.0.1:8765 or "
		 "[::1]:8765",
		 listen);
	return -EINVAL;
}

static int parse_port(const char *text, uint16_t *port)
{
	size_t n = strlen(text);
	unsigned long value = strtoul(text, NULL, 10);

	if (!n || n > 5 || strspn(text, "0123456789") != n || value > 65535)
		return -EINVAL;
	*port = htons((uint16_t)value);
	return 0;
}

static int parse_listen(const char *listen, struct place *place)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&place->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&place->address;
	const char *colon = strrchr(listen, ':');
	bool is_six = listen[0] == '[';
	size_t n = colon ? (size_t)(colon - listen) : 0;
	uint16_t port;

	*place = (struct place){.bytes = is_six ? sizeof(*six) : sizeof(*four)};
	if (!colon || parse_port(colon + 1, &port) || n >= sizeof(place->host))
		return refuse_listen(listen);
	if (is_six && (n < 3 || listen[n - 1] != ']'))
		return refuse_listen(listen);
	snprintf(place->host, sizeof(place->host), "%.*s", (int)(is_six ? n - 2 : n),
		 listen + is_six);
	if (is_six) {
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		if (inet_pton(AF_INET6, place->host, &six->sin6_addr) != 1)
			return refuse_listen(listen);
		place->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
		place->any = IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
		return 0;
	}
	four->sin_family = AF_INET;
	four->sin_port = port;
	if (inet_pton(AF_INET, place->host, &four->sin_addr) != 1)
		return refuse_listen(listen);
	place->loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
	place->any = four->sin_addr.s_addr == htonl(INADDR_ANY);
	return 0;
}

static int make_listener(const struct place *place, const char *where, uint16_t *port)
{
	int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
	    one = 1, err;
	struct sockaddr_storage bound;
	socklen_t bytes = sizeof(bound);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
		   sizeof(one)); /* connections of before do not matter */
	if (bind(fd, (const struct sockaddr *)&place->address, place->bytes) ||
	    listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&bound, &bytes)) {
		err = -errno;
		close(fd);
		sl_error("cannot listen on %s: %s%s", where, strerror(-err),
			 err == -EADDRINUSE
				 ? " (another sluice serve? choose another port with --listen)"
				 : "");
		return err;
	}
	*port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						  : ((struct sockaddr_in *)&bound)->sin_port);
	return fd;
}

/* ---- who may come ---- */

static int add_host(struct sl_http_server *s, const char *host)
{
	char name[256];

	/* As a Host header would have it: an IPv6 address has brackets there. */
	if (strchr(host, ':') ? snprintf(name, sizeof(name), "%s", host) < 0
			      : !sl_http_host_name(host, name, sizeof(name))) {
		sl_error("--host %s: is no name of a host", host);
		return -EINVAL;
	}
	if (s->hosts == sizeof(s->host) / sizeof(*s->host)) {
		sl_error("more than %d times --host", SL_HTTP_HOSTS);
		return -E2BIG;
	}
	snprintf(s->host[s->hosts++], sizeof(*s->host), "%s", name);
	return 0;
}

static int add_hosts(struct sl_http_server *s, const struct sl_http_options *o,
		     const struct place *place)
{
	int err = add_host(s, "localhost");

	if (!err && !place->any)
		err = add_host(s, place->host);
	for (unsigned i = 0; i < o->hosts && !err; i++)
		err = add_host(s, o->host[i]);
	return err;
}

static int check_exposure(const struct sl_http_options *o, const struct place *place)
{
	if (!o->tls_cert != !o->tls_key) {
		sl_error("--tls_cert and --tls_key go together");
		return -EINVAL;
	}
	if (place->loopback)
		return 0;
	if (!o->tokens) {
		sl_error("--listen %s can be reached from other hosts: give --tokens FILE, with "
			 "lines of ROLE NAME "
			 "TOKEN",
			 o->listen);
		return -EPERM;
	}
	if (!o->tls_cert && !o->insecure) {
		sl_error("--listen %s can be reached from other hosts, and tokens would travel in "
			 "the clear: give "
			 "--tls_cert and --tls_key, or --insecure where a proxy in front of it has "
			 "TLS",
			 o->listen);
		return -EPERM;
	}
	return 0;
}

static char *read_pem(const char *path, const char *option)
{
	char *text = malloc(PEM_BYTES), why[300];

	if (!text) {
		sl_error("no memory");
		return NULL;
	}
	if (sl_secret_file_text(path, text, PEM_BYTES, why, sizeof(why)) == 0)
		return text;
	sl_error("%s %s: %s", option, path, why);
	free(text);
	return NULL;
}

/* A certificate is public: any user may read its file. */
static char *read_public(const char *path, const char *option)
{
	char *text = calloc(1, PEM_BYTES);
	FILE *file = text ? fopen(path, "re") : NULL;
	size_t n = file ? fread(text, 1, PEM_BYTES - 1, file) : 0;

	if (file)
		fclose(file);
	if (n)
		return text;
	sl_error("%s %s: cannot be read: %s", option, path, strerror(errno));
	free(text);
	return NULL;
}

/* libmicrohttpd finds out too late, and says little. */
static int check_pair(const struct sl_http_server *s, const struct sl_http_options *o)
{
	gnutls_datum_t certificate = {(unsigned char *)s->certificate,
				      (unsigned)strlen(s->certificate)};
	gnutls_datum_t key = {(unsigned char *)s->key, (unsigned)strlen(s->key)};
	gnutls_certificate_credentials_t credentials;
	int err = gnutls_certificate_allocate_credentials(&credentials);

	if (err)
		return -ENOMEM;
	err = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key,
						  GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(credentials);
	if (err < 0)
		sl_error("--tls_cert %s and --tls_key %s: %s", o->tls_cert, o->tls_key,
			 gnutls_strerror(err));
	return err < 0 ? -EINVAL : 0;
}

static int read_tls(struct sl_http_server *s, const struct sl_http_options *o)
{
	if (!o->tls_cert)
		return 0;
	if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
		sl_error("--tls_cert: this libmicrohttpd has no TLS; put a proxy with TLS in "
			 "front, and use "
			 "--insecure");
		return -ENOTSUP;
	}
	s->certificate = read_public(o->tls_cert, "--tls_cert");
	s->key = s->certificate ? read_pem(o->tls_key, "--tls_key") : NULL;
	return s->key ? check_pair(s, o) : -EINVAL;
}

/* ---- open and close ---- */

static void log_line(void *arg, const char *format, va_list arguments)
{
	char text[400];

	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\r\n")] = 0;
	sl_debug("http: %s", text);
}

/* A descriptor for each connection, and what else the service needs. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= 4096)
		return;
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int start_daemon(struct sl_http_server *s, int fd)
{
	const bool tls = s->key != NULL;
	struct MHD_OptionItem items[] = {
		{MHD_OPTION_LISTEN_SOCKET, fd, NULL},
		{MHD_OPTION_CONNECTION_LIMIT, SL_HTTP_CONNECTIONS + OVER, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES, NULL},
		{MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
		{MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)sl_http_begin, s},
		{MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)sl_http_keep_escapes, s},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)sl_http_end, s},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)sl_http_notice, s},
		{MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
		{tls ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, s->key},
		{MHD_OPTION_HTTPS_MEM_CERT, 0, s->certificate},
		{MHD_OPTION_HTTPS_PRIORITIES, 0,
		 (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
		{MHD_OPTION_END, 0, NULL},
	};
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			 MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0);

	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, sl_http_access, s,
				     MHD_OPTION_EXTERNAL_LOGGER, log_line, NULL, MHD_OPTION_ARRAY,
				     items, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	sl_error("libmicrohttpd cannot start%s",
		 tls ? "; is the certificate that of the key?" : "");
	return -EIO;
}

static int start_threads(struct sl_http_server *s, const struct sl_http_options *o)
{
	int err = sl_http_connections_open(&s->connections);

	if (!err)
		err = sl_http_workers_open(&s->workers);
	if (!err && o->audit) {
		err = sl_audit_open(&s->audit, o->audit);
		s->audited = true;
	}
	return err;
}

static void stop_threads(struct sl_http_server *s)
{
	sl_http_connections_close(&s->connections);
	if (s->audited)
		sl_audit_close(&s->audit);
}

static void free_server(struct sl_http_server *s)
{
	if (s->key)
		explicit_bzero(s->key, strlen(s->key));
	free(s->key);
	free(s->certificate);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

static int listen_and_serve(struct sl_http_server *s, const struct sl_http_options *o,
			    const struct place *place)
{
	uint16_t port = 0;
	int fd, err;

	raise_descriptors();
	fd = make_listener(place, o->listen, &port);
	if (fd < 0)
		return fd;
	snprintf(s->url, sizeof(s->url),
		 place->address.ss_family == AF_INET6 ? "%s://[%s]:%u" : "%s://%s:%u",
		 s->key ? "https" : "http", place->host, port);
	err = start_daemon(s, fd); /* the socket is its own then */
	if (err)
		close(fd);
	return err;
}

int sl_http_open(const struct sl_http_options *o, struct sl_http_server **server)
{
	struct sl_http_server *s = calloc(1, sizeof(*s));
	struct place place;
	int err = s ? parse_listen(o->listen, &place) : -ENOMEM;

	if (!err)
		err = check_exposure(o, &place);
	if (!err && o->tokens)
		err = sl_tokens_read(o->tokens, &s->tokens);
	if (!err)
		err = read_tls(s, o);
	if (!err)
		err = add_hosts(s, o, &place);
	if (err)
		goto undo_server;
	s->routes = o->routes;
	s->service = o->service;
	err = start_threads(s, o);
	if (!err)
		err = listen_and_serve(s, o, &place);
	if (err)
		goto undo_threads;
	*server = s;
	return 0;

undo_threads:
	sl_http_workers_close(&s->workers);
	stop_threads(s);
undo_server:
	if (s)
		free_server(s);
	return err;
}

const char *sl_http_url(const struct sl_http_server *s)
{
	return s->url;
}

const struct sl_http_route *const *sl_http_routes(const struct sl_http_server *s)
{
	return s->routes;
}

void sl_http_quiesce(struct sl_http_server *s)
{
	MHD_socket listener = MHD_quiesce_daemon(s->daemon);

	if (listener != MHD_INVALID_SOCKET)
		close(listener);
	sl_http_workers_close(&s->workers);
}

/* libmicrohttpd drops answers that it has not begun to send. A client that reads slowly must not
 * hold up the end. */
static void send_what_is_owed(const struct sl_http_server *s)
{
	const uint64_t end_ns = sl_clock_ns() + OWED_NS;

	while (atomic_load(&s->owed) && sl_clock_ns() < end_ns)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
}

void sl_http_close(struct sl_http_server *s)
{
	if (!s)
		return;
	send_what_is_owed(s);
	MHD_stop_daemon(s->daemon);
	stop_threads(s);
	free_server(s);
}
