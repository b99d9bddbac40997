/* service.h - `sluice serve`: sessions, their runs and experiment files over HTTP.
 *
 * Model:     the service holds nothing that a run needs. Sessions are processes of their own, known
 *            by their status sockets; runs are known by their folders in the root. It can be killed
 *            and started again at any time. docs/explanation/service.md tells more.
 * Threads:   opened and closed by one. It has threads of its own for HTTP, and for what it watches.
 * Errors:    0 or -errno, logged. */
#ifndef SL_SERVICE_SERVICE_H
#define SL_SERVICE_SERVICE_H

#include <stdbool.h>

struct sl_service;

enum { SL_SERVICE_HOSTS = 16, SL_SERVICE_PATH = 1024 };

struct sl_service_options {
	const char *listen;	 /* "127.0.0.1:8765" */
	const char *root;	 /* of run folders; made where only its last part is missing */
	const char *experiments; /* folder of experiment files */
	const char *host[SL_SERVICE_HOSTS]; /* further names of this host */
	unsigned hosts;
	const char *tokens, *tls_cert, *tls_key; /* files; NULL: none */
	bool insecure;
};

int sl_service_open(const struct sl_service_options *options, struct sl_service **service);
const char *sl_service_url(const struct sl_service *service);
void sl_service_close(struct sl_service *service);

#endif
