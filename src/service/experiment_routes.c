/* experiment_routes.c - /api/v1/experiments. */
#include <stdio.h>
#include <string.h>

#include "service/action.h"
#include "service/parts.h"

#define JSON "application/json"

static void absent(struct sl_http_request *r)
{
	sl_http_answer_error(r, 404, "not_found", NULL, "GET /api/v1/experiments lists them",
			     "there is no experiment '%s'", sl_http_segment(r, 0));
}

static void set_tag(struct sl_http_request *r, const char *sha256)
{
	char tag[80];

	snprintf(tag, sizeof(tag), "\"%.64s\"", sha256);
	sl_http_answer_header(r, "ETag", tag);
}

static void get_all(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *list = sl_experiments_list(service->experiments);

	if (list)
		sl_http_answer_json(r, 200, list);
	else
		sl_http_answer_error(r, 500, "system", NULL, NULL,
				     "the folder of experiments cannot be read");
}

static void get_one(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *one = sl_experiments_get(service->experiments, sl_http_segment(r, 0));
	char sha256[65];

	if (!one) {
		absent(r);
		return;
	}
	snprintf(sha256, sizeof(sha256), "%s", json_string_value(json_object_get(one, "sha256")));
	sl_http_answer_json(r, 200, one);
	set_tag(r, sha256);
}

/* ---- check ---- */

static void check(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	const char *name = sl_http_segment(r, 0), *text;
	char path[1200];
	json_t *found;
	size_t bytes;

	text = sl_http_body(r, &bytes);
	if (!bytes && !sl_experiments_path(service->experiments, name, path, sizeof(path))) {
		absent(r);
		return;
	}
	found = sl_experiments_check(service->experiments, name, bytes ? text : NULL, bytes, NULL,
				     0, bytes ? SL_DISTRUST_FILE : SL_DISTRUST_NOTHING);
	sl_http_answer_json(r, 200, found);
}

/* ---- put ---- */

static void answer_invalid(struct sl_http_request *r, const json_t *found)
{
	json_t *errors = json_object_get(found, "errors");
	const json_t *first = json_array_get(errors, 0);
	const char *message = json_string_value(json_object_get(first, "message"));

	sl_http_answer_error_with(r, 422, "experiment",
				  message ? message : "the experiment is wrong",
				  json_string_value(json_object_get(first, "where")), NULL,
				  json_pack("{s:O}", "errors", errors));
}

static void put(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	const char *name = sl_http_segment(r, 0), *match = sl_http_header(r, "If-Match");
	const char *none = sl_http_header(r, "If-None-Match"), *text;
	char sha256[65] = "", why[300] = "";
	json_t *found = NULL;
	enum sl_put done;
	size_t bytes;

	text = sl_http_body(r, &bytes);
	done = sl_experiments_put(service->experiments, name, text, bytes, match,
				  none && !strcmp(none, "*"), sha256, &found, why, sizeof(why));
	sl_http_note(r, "%zu bytes, sha256 %.64s", bytes, sha256);
	switch (done) {
	case SL_PUT_INVALID:
		answer_invalid(r, found);
		break;
	case SL_PUT_CONFLICT:
		sl_http_answer_error(r, 412, "conflict", NULL,
				     "read it again, and put your change into that", "%s", why);
		break;
	case SL_PUT_FAILED:
		sl_http_answer_error(r, 500, "output", NULL, NULL, "%s", why);
		break;
	default:
		sl_http_answer_json(r, done == SL_PUT_MADE ? 201 : 200,
				    json_pack("{s:s, s:s, s:O}", "name", name, "sha256", sha256,
					      "warnings", json_object_get(found, "warnings")));
		set_tag(r, sha256);
	}
	json_decref(found);
}

const struct sl_http_route sl_experiment_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/experiments",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_all,
	 .doc = "All experiment files, checked, with the parameters that they declare.",
	 .said = {{200, JSON, "experiments", "by name"}}},
	{.method = "GET",
	 .pattern = "/api/v1/experiments/{name}",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_one,
	 .doc = "An experiment file, with its text. The header ETag is for If-Match.",
	 .said = {{200, JSON, "experiment", "the file"},
		  {404, JSON, "error", "no such experiment"}}},
	{.method = "PUT",
	 .pattern = "/api/v1/experiments/{name}",
	 .role = SL_ROLE_CONFIGURE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = put,
	 .doc = "Make or replace an experiment file, once its text is checked. With If-Match only "
		"what has not changed "
		"since is replaced; with If-None-Match: * nothing is.",
	 .body = "text/yaml",
	 .said = {{200, JSON, "experiment_put", "replaced"},
		  {201, JSON, "experiment_put", "made"},
		  {412, JSON, "error", "the file is not as If-Match or If-None-Match want it"},
		  {422, JSON, "errors", "the text has mistakes; nothing was written"}}},
	{.method = "POST",
	 .pattern = "/api/v1/experiments/{name}/check",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = check,
	 .doc = "Check a text, or without a body the file: every mistake, with line and what is "
		"allowed.",
	 .body = "text/yaml",
	 .body_optional = true,
	 .quiet = true,
	 .said = {{200, JSON, "check", "what was found"},
		  {404, JSON, "error", "no such experiment"}}},
	{NULL},
};
