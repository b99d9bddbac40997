/* capabilities.c - GET /api/v1: what this host and this program can do. */
#include <unistd.h>

#include "base/clock.h"
#include "service/parts.h"

static void get_capabilities(void *arg, struct sl_http_request *r)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	sl_http_answer_json(r, 200,
			    json_pack("{s:s, s:i, s:I, s:s, s:s}", "version", SL_VERSION, "schema",
				      1, "time_unix_ns", (json_int_t)sl_clock_unix_ns(), "host",
				      host, "role", sl_role_name(sl_http_role(r))));
}

static void get_events(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	const struct sl_event hello = {"hello", NULL,
				       "{\"version\":\"" SL_VERSION "\",\"schema\":1}", false};

	sl_http_answer_events(r, service->events, sl_http_text(r, "session"),
			      sl_http_whole(r, "interval_ms"), &hello, 1);
}

static const struct sl_http_parameter of_events[] = {
	{"session", SL_HTTP_TEXT, 0, 63, NULL, NULL, "only events of this session"},
	{"interval_ms", SL_HTTP_WHOLE, 100, 3600000, "500", NULL,
	 "from one status of a session to the next, at least"},
	{NULL},
};

const struct sl_http_route sl_capabilities_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_capabilities,
	 .doc = "What this host and this program can do.",
	 .said = {{200, "application/json", "capabilities", "capabilities"}}},
	{.method = "GET",
	 .pattern = "/api/v1/events",
	 .role = SL_ROLE_VIEW,
	 .handle = get_events,
	 .doc = "What happens, as Server-Sent Events.",
	 .query = of_events,
	 .said = {{200, "text/event-stream", NULL, "a stream without end"}}},
	{NULL},
};
