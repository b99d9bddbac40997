/* session_routes.c - /api/v1/sessions. */
#include <stdio.h>
#include <string.h>

#include "board/causes.h"
#include "service/action.h"
#include "service/parts.h"

#define JSON "application/json"
#define ERROR(status, doc)                 \
	{                                  \
		status, JSON, "error", doc \
	}

static void absent(struct sl_http_request *r)
{
	sl_http_answer_error(r, 404, "not_found", NULL, "GET /api/v1/sessions lists them",
			     "no session is called '%s'", sl_http_segment(r, 0));
}

static void get_all(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	char why[512];

	if (sl_sessions_refused(service->sessions, why, sizeof(why)))
		sl_http_answer_error(r, 503, "access", NULL, NULL, "%s", why);
	else
		sl_http_answer_json(r, 200, sl_sessions_list(service->sessions));
}

static void get_one(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *one = sl_sessions_one(service->sessions, sl_http_segment(r, 0));

	if (one)
		sl_http_answer_json(r, 200, one);
	else
		absent(r);
}

static void get_ledger(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *one = sl_sessions_one(service->sessions, sl_http_segment(r, 0));
	json_t *ledger = json_object_get(json_object_get(one, "status"), "ledger");

	if (!one)
		absent(r);
	else if (!ledger)
		sl_http_answer_error(r, 409, "state", NULL, NULL, "the session has no status yet");
	else
		sl_http_answer_json(r, 200,
				    json_pack("{s:O, s:o}", "ledger", ledger, "words",
					      sl_causes_words(ledger)));
	json_decref(one);
}

/* ---- actions ---- */

static void start_session(void *service, struct sl_http_request *r)
{
	sl_action_answer(r, service, sl_action_start_session);
}

static void configure(void *service, struct sl_http_request *r)
{
	sl_action_answer(r, service, sl_action_configure_session);
}

static void close_session(void *service, struct sl_http_request *r)
{
	sl_action_answer(r, service, sl_action_close_session);
}

static void metadata(void *service, struct sl_http_request *r)
{
	sl_action_answer(r, service, sl_action_metadata);
}

#define CALL(name)                                                      \
	static void run_##name(struct sl_action *a)                     \
	{                                                               \
		sl_action_call_session(a, #name);                       \
	}                                                               \
	static void do_##name(void *service, struct sl_http_request *r) \
	{                                                               \
		sl_action_answer(r, service, run_##name);               \
	}

CALL(arm)
CALL(start)
CALL(pause)
CALL(resume)
CALL(stop)
CALL(abort)

#define CALL_ROUTE(name, words, schema)                                                   \
	{                                                                                 \
		.method = "POST", .pattern = "/api/v1/sessions/{name}/" #name,            \
		.role = SL_ROLE_OPERATE, .how = SL_HTTP_ON_WORKER, .handle = do_##name,   \
		.doc = words, .body = JSON, .body_schema = schema, .body_optional = true, \
		.said = {                                                                 \
			{202, JSON, "state", "it is asked for; the state follows"},       \
			ERROR(404, "no such session"),                                    \
			ERROR(409, "not possible in this state"),                         \
			ERROR(503, "the session ended or took no more connections"),      \
			ERROR(504, "the session did not answer")                          \
		}                                                                         \
	}

const struct sl_http_route sl_session_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/sessions",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_all,
	 .doc = "All sessions of this user on this host, with their status.",
	 .said = {{200, JSON, "sessions", "living and crashed sessions"},
		  ERROR(503, "other users could enter the folder of their sockets")}},
	{.method = "POST",
	 .pattern = "/api/v1/sessions",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = start_session,
	 .doc = "Start a session of an experiment, as a process of its own.",
	 .body = JSON,
	 .body_schema = "session_start",
	 .said = {{201, JSON, "name", "it answers"},
		  ERROR(403, "set needs the role configure"),
		  ERROR(404, "no such experiment"),
		  ERROR(409, "a session of that name is running"),
		  {422, JSON, "errors", "the experiment or a parameter is wrong"},
		  ERROR(503, "other users could enter the folder of its socket"),
		  ERROR(504, "it did not begin in time")}},
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_one,
	 .doc = "A session with its latest status.",
	 .said = {{200, JSON, "session", "the session"}, ERROR(404, "no such session")}},
	{.method = "DELETE",
	 .pattern = "/api/v1/sessions/{name}",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = close_session,
	 .doc = "Close a session: the run under way is stopped first. Of a crashed one: forget it; "
		"its data stay.",
	 .said = {{202, JSON, "state", "it is asked to close"},
		  {200, JSON, "state", "it had crashed, and is forgotten"},
		  ERROR(404, "no such session"),
		  ERROR(409, "not possible in this state"),
		  ERROR(503, "the session ended or took no more connections"),
		  ERROR(504, "the session did not answer")}},
	{.method = "POST",
	 .pattern = "/api/v1/sessions/{name}/configure",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = configure,
	 .doc = "Read the experiment again, with these parameters, between two runs.",
	 .body = JSON,
	 .body_schema = "configure",
	 .body_optional = true,
	 .said = {{200, JSON, "state", "the next run has them"},
		  ERROR(403, "set needs the role configure"),
		  ERROR(404, "no such session"),
		  ERROR(409, "not possible in this state"),
		  {422, JSON, "errors", "the experiment or a parameter is wrong"},
		  ERROR(503, "the session ended or took no more connections"),
		  ERROR(504, "the session did not answer")}},
	CALL_ROUTE(arm, "Plan the sources, register memory, make outputs.", "nothing"),
	CALL_ROUTE(start, "Start the next run; arms first where that was not done.", "nothing"),
	CALL_ROUTE(pause, "Pause at a frame boundary.", "nothing"),
	CALL_ROUTE(resume, "Go on after a pause.", "nothing"),
	CALL_ROUTE(stop, "End the run properly: what was sent is processed.", "reason"),
	CALL_ROUTE(abort, "End the run at once.", "reason"),
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/metadata",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = metadata,
	 .doc = "What users say of the run under way, or of the next one.",
	 .said = {{200, JSON, "metadata", "texts by key"},
		  ERROR(404, "no such session"),
		  ERROR(409, "it has crashed"),
		  ERROR(503, "the session ended or took no more connections"),
		  ERROR(504, "the session did not answer")}},
	{.method = "PATCH",
	 .pattern = "/api/v1/sessions/{name}/metadata",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = metadata,
	 .doc = "Change what users say of the run; null removes a key.",
	 .body = JSON,
	 .body_schema = "metadata_set",
	 .said = {{200, JSON, "metadata", "all of them now"},
		  ERROR(404, "no such session"),
		  ERROR(409, "it has crashed"),
		  ERROR(503, "the session ended or took no more connections"),
		  ERROR(504, "the session did not answer")}},
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/ledger",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_ledger,
	 .doc = "What became of every module-frame, with words for every cause that occurred.",
	 .said = {{200, JSON, "ledger", "the ledger"},
		  ERROR(404, "no such session"),
		  ERROR(409, "no status yet")}},
	{NULL},
};
