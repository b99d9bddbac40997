/* parts.h - the service between its files: what handlers get as `service`, and the tables of
 * routes.
 *
 * Routes:    a file that answers requests has a table `const struct sl_http_route
 *            sl_NAME_routes[]` that ends with {NULL}; declare it here and add it to the list in
 *            routes.c. Handlers get struct sl_service as `service`.
 * Order:     parts are opened in the order of their members, and closed the other way round; the
 *            server stops asking handlers before the first of them is closed. */
#ifndef SL_SERVICE_PARTS_H
#define SL_SERVICE_PARTS_H

#include <pthread.h>
#include <stdint.h>

#include "service/experiments/experiments.h"
#include "service/history/history.h"
#include "service/http/events.h"
#include "service/http/server.h"
#include "service/image/images.h"
#include "service/service.h"
#include "service/sessions/sessions.h"

enum { SL_SERVICE_SCHEMA = 1 };

struct sl_telegrams;

struct sl_service {
	uint64_t started_unix_ns;
	char program[SL_SERVICE_PATH];			     /* sluice itself */
	char root[SL_SERVICE_PATH], folder[SL_SERVICE_PATH]; /* of runs, of experiments; absolute */
	char own[SL_SERVICE_PATH];			     /* ROOT/.service */
	char data_roots[4 * SL_SERVICE_PATH];		     /* with commas between them */
	int lock;					     /* of ROOT/.service/lock */
	json_t *addons, *absent;			     /* never change */

	struct sl_events *events;
	struct sl_experiments *experiments;
	struct sl_sessions *sessions;
	struct sl_history *history;
	struct sl_image_service *images;
	struct sl_telegrams *telegrams;
	struct sl_http_server *http;
	pthread_mutex_t drawing; /* one picture at a time */
};

/* All tables, NULL at the end: routes.c. */
extern const struct sl_http_route *const sl_service_routes[];

extern const struct sl_http_route sl_capabilities_routes[], sl_experiment_routes[],
	sl_explain_routes[], sl_live_routes[], sl_metrics_routes[], sl_openapi_routes[],
	sl_run_routes[], sl_session_routes[], sl_telegram_routes[];

/* telegram.c */
int sl_telegrams_open(struct sl_service *service, struct sl_telegrams **telegrams);
/* Those under way wait no longer, and are answered; before the server is closed. NULL is fine. */
void sl_telegrams_end(struct sl_telegrams *telegrams);
void sl_telegrams_close(struct sl_telegrams *telegrams);

#endif
