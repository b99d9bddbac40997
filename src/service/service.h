/* service.h - `sluice serve`: sessions, their runs and experiment files over HTTP.
 *
 * Model:     the service holds nothing that a run needs. Sessions are processes of their own, known
 *            by their status sockets; runs are known by their folders in the root. It can be killed
 *            and started again at any time. docs/explanation/service.md tells more.
 * Threads:   opened and closed by one. It has threads of its own for HTTP, and for what it watches;
 *            they have a nice value of 10, sessions that it starts have that of the caller.
 * Errors:    0 or -errno, logged. */
#ifndef SL_SERVICE_SERVICE_H
#define SL_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct sl_service;

enum { SL_SERVICE_HOSTS = 16, SL_SERVICE_PATH = 1024 };
enum { SL_SERVICE_AUTO, SL_SERVICE_DETACHED, SL_SERVICE_SYSTEMD }; /* how sessions are started */

struct sl_service_options {
	const char *program; /* sluice itself */
	const char *listen;  /* "127.0.0.1:8765" */
	/* of run folders; made where only its last part is missing */
	const char *root;
	const char *experiments; /* folder of experiment files */
	/* more folders that experiments over the network may name */
	const char *data_roots;
	const char *host[SL_SERVICE_HOSTS]; /* further names of this host */
	unsigned hosts;
	const char *tokens, *tls_cert, *tls_key; /* files; NULL: none */
	bool insecure, recover;
	uint32_t sessions; /* SL_SERVICE_AUTO, ... */
};

int sl_service_open(const struct sl_service_options *options, struct sl_service **service);
const char *sl_service_url(const struct sl_service *service);
void sl_service_close(struct sl_service *service);

/* The OpenAPI document as text, malloc'ed; NULL: no memory. It needs no service. */
char *sl_service_openapi(void);

#endif
