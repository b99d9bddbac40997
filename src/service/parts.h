/* parts.h - the service between its files: what handlers get as `service`, and the tables of
 * routes.
 *
 * Routes:    a file that answers requests has a table `const struct sl_http_route sl_NAME_routes[]`
 *            that ends with {NULL}; declare it here and add it to the list in routes.c. Handlers
 *            get struct sl_service as `service`. */
#ifndef SL_SERVICE_PARTS_H
#define SL_SERVICE_PARTS_H

#include <stdint.h>

#include "service/http/events.h"
#include "service/http/server.h"
#include "service/image/images.h"
#include "service/service.h"

struct sl_service {
	struct sl_http_server *http;
	struct sl_events *events;
	struct sl_image_service *images;
	uint64_t started_unix_ns;
	char root[SL_SERVICE_PATH], experiments[SL_SERVICE_PATH]; /* absolute */
	char own[SL_SERVICE_PATH];				  /* ROOT/.service */
	char listen[300];
};

/* All tables, NULL at the end: routes.c. */
extern const struct sl_http_route *const sl_service_routes[];

extern const struct sl_http_route sl_capabilities_routes[];
extern const struct sl_http_route sl_live_routes[];

#endif
