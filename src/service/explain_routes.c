/* explain_routes.c - why a run lost frames: of a run by its number, of a session by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/load.h"
#include "service/parts.h"
#include "session/folder/folder.h"

#define JSON "application/json"

enum { WHY = 2000 };

/* Consumes the list; NULL: no memory. */
static json_t *json_of(struct sl_explanation *list, size_t n)
{
	char *text = sl_explain_json(list, n);
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	free(list);
	return json;
}

/* NULL: `why` says why not. */
static json_t *of_folder(const char *folder, char why[WHY])
{
	struct sl_explanation *list = NULL;
	size_t n = 0;

	return sl_explain_path(folder, &list, &n, why, WHY) ? NULL : json_of(list, n);
}

static json_t *of_status(const char *name, json_t *status, char why[WHY])
{
	json_t *reply = json_pack("{s:O}", "status", status);
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
	struct sl_explanation *list = NULL;
	size_t n = 0;
	int err = text ? sl_explain_reply(name, text, &list, &n, why, WHY) : -1;

	json_decref(reply);
	free(text);
	return err ? NULL : json_of(list, n);
}

/* ---- of a run ---- */

/* Of a run that lives: as soon as its flight recorder has written what it has. */
static void get_of_run(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	uint64_t run = sl_http_segment_number(r, 0);
	json_t *row = sl_history_row(service->history, run), *json = NULL;
	char folder[SL_SERVICE_PATH + 40], name[32], why[WHY] = "";

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(folder, sizeof(folder), "%s/%s", service->root, name);
	if (!row)
		sl_http_answer_error(r, 404, "not_found", NULL, "GET /api/v1/runs lists them",
				     "there is no run %s", sl_http_segment(r, 0));
	else if ((json = of_folder(folder, why)))
		sl_http_answer_json(r, 200, json);
	else
		sl_http_answer_error(r, 404, "not_found", NULL, NULL,
				     "run %llu cannot be explained yet: %s",
				     (unsigned long long)run, why);
	json_decref(row);
}

/* ---- of a session, whatever its root ---- */

static bool has_a_run_under_way(const json_t *session)
{
	static const char *const states[] = {"armed", "running", "paused", "stopping"};
	const char *state = json_string_value(json_object_get(session, "state"));

	for (size_t i = 0; state && i < sizeof(states) / sizeof(*states); i++)
		if (!strcmp(state, states[i]))
			return true;
	return false;
}

/* Its run under way; or the last one, by the run's folder where it has one. */
static json_t *of_session(const json_t *session, const char *name, char why[WHY])
{
	const char *folder = json_string_value(json_object_get(session, "folder"));
	json_t *status = json_object_get(session, "status"), *json = NULL;

	snprintf(why, WHY, "it has neither a status nor a folder of its run");
	if (folder && !has_a_run_under_way(session))
		json = of_folder(folder, why);
	if (!json && json_is_object(status))
		json = of_status(name, status, why);
	return json;
}

static void get_of_session(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	const char *name = sl_http_segment(r, 0), *kind;
	json_t *session = sl_sessions_one(service->sessions, name), *json = NULL;
	char why[WHY] = "";

	kind = json_string_value(json_object_get(session, "kind"));
	if (!session)
		sl_http_answer_error(r, 404, "not_found", NULL, "GET /api/v1/sessions lists them",
				     "no session is called '%s'", name);
	else if (kind && !strcmp(kind, "detector"))
		sl_http_answer_error(r, 409, "state", NULL, "explain the session that receives",
				     "'%s' is a detector side, and receives nothing", name);
	else if ((json = of_session(session, name, why)))
		sl_http_answer_json(r, 200, json);
	else
		sl_http_answer_error(r, 409, "state", NULL, NULL, "'%s' cannot be explained: %s",
				     name, why);
	json_decref(session);
}

const struct sl_http_route sl_explain_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/runs/{run}/explain",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_of_run,
	 .doc = "Why the run lost frames, as sluice explain says it.",
	 .said = {{200, JSON, "explanation", "the causes, the best first"},
		  {404, JSON, "error", "no such run, or it lives and has lost nothing yet"}}},
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/explain",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_of_session,
	 .doc = "Why the session's run under way, or its last one, lost frames; of any root.",
	 .said = {{200, JSON, "explanation", "the causes, the best first"},
		  {404, JSON, "error", "no such session"},
		  {409, JSON, "error", "it has no status, or is a detector side"}}},
	{NULL},
};
