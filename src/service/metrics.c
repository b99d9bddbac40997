/* metrics.c - GET /metrics: all sessions and the service itself, for Prometheus. */
#include "monitor/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "service/parts.h"

/* Of a session that does not answer, the last status is left out: its numbers are old. */
static void add(void *arg, const struct sl_seen *seen)
{
	json_array_append_new(arg, json_pack("{s:s, s:b, s:O*}", "name", seen->info.name, "crashed",
					     !seen->info.alive, "status",
					     seen->answers ? seen->status : NULL));
}

static void write_service(struct sl_metrics_text *out, struct sl_service *service)
{
	sl_metrics_family(out, "sluice_service_viewers", SL_METRIC_GAUGE,
			  "Clients that follow events");
	sl_metrics_count(out, "", NULL, sl_events_viewers(service->events));
	sl_metrics_family(out, "sluice_service_events_missed_total", SL_METRIC_COUNTER,
			  "Events that viewers missed since they read too slowly");
	sl_metrics_count(out, "", NULL, sl_events_missed(service->events));
}

static void get_metrics(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *sessions = json_array();
	struct sl_metrics_text out;
	char *text = NULL;

	if (sessions && !sl_metrics_text_begin(&out)) {
		sl_sessions_each(service->sessions, add, sessions);
		sl_metrics_build(&out);
		sl_metrics_process(&out);
		write_service(&out, service);
		sl_metrics_sessions(&out, sessions);
		text = sl_metrics_text_end(&out);
	}
	json_decref(sessions);
	sl_http_answer_bytes(r, 200, SL_METRICS_CONTENT_TYPE, text, text ? strlen(text) : 0);
}

const struct sl_http_route sl_metrics_routes[] = {
	{.method = "GET",
	 .pattern = "/metrics",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_metrics,
	 .doc = "Metrics of all sessions and of the service, as Prometheus reads them "
		"(docs/reference/metrics.md).",
	 .said = {{200, SL_METRICS_CONTENT_TYPE, NULL, "text format 0.0.4"}}},
	{NULL},
};
