/* server.h - the HTTP server: opened with its routes, closed.
 *
 * Model:     docs/reference/api.md says what clients see: roles, bounds, time limits. Loopback
 *            clients have all roles where there is no file of tokens. Another listen address than
 *            loopback is refused without tokens, and without TLS unless `insecure`.
 * Threads:   open and close on one; a thread of libmicrohttpd, one for time limits, one for the
 *            audit log, SL_HTTP_WORKERS workers.
 * Errors:    0 or -errno, logged. */
#ifndef SL_SERVICE_SERVER_H
#define SL_SERVICE_SERVER_H

#include "service/http/http.h"

enum {
	SL_HTTP_CONNECTIONS = 256, /* that are served; further ones are answered with 503 */
	SL_HTTP_WORKERS = 4,
	SL_HTTP_JOBS = 64, /* requests that wait for a worker; further ones are answered with 503 */
	SL_HTTP_HOSTS = 16,
};

struct sl_http_server;

struct sl_http_options {
	const char *listen;		 /* "127.0.0.1:8765", "[::1]:8765"; port 0: any */
	const char *host[SL_HTTP_HOSTS]; /* further names by which clients call this host */
	unsigned hosts;
	const char *tokens;			   /* file of tokens; NULL: none */
	const char *tls_cert, *tls_key;		   /* PEM files; NULL: no TLS */
	bool insecure;				   /* tokens beyond loopback without TLS */
	const char *audit;			   /* path of the audit log; NULL: none */
	const struct sl_http_route *const *routes; /* tables; NULL at the end */
	void *service;				   /* for handlers */
};

int sl_http_open(const struct sl_http_options *options, struct sl_http_server **server);
/* "http://127.0.0.1:8765": with the port that it got. */
const char *sl_http_url(const struct sl_http_server *server);
const struct sl_http_route *const *sl_http_routes(const struct sl_http_server *server);
/* The server that has this request. */
struct sl_http_server *sl_http_server_of(const struct sl_http_request *request);
/* No more connections; requests of workers are answered. Requests of SL_HTTP_LATER must be finished
 * and streams ended before sl_http_close(). */
void sl_http_quiesce(struct sl_http_server *server);
void sl_http_close(struct sl_http_server *server);

#endif
