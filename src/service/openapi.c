/* openapi.c - the OpenAPI document, made of the tables of routes: what is answered is what is
 * described. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/parts.h"

/* schemas.json, and docs/reference/status.schema.json, embedded by the build. */
extern const char sl_openapi_schemas[], sl_openapi_status[];

#define REF "#/components/schemas/"

static json_t *reference(const char *schema)
{
	char text[100];

	snprintf(text, sizeof(text), REF "%s", schema);
	return json_pack("{s:s}", "$ref", text);
}

/* ---- schemas ---- */

/* The definitions of the status become schemas beside it: "#/$defs/gauge" is
 * "#/components/schemas/status_gauge". */
static void move_references(json_t *json)
{
	const char *text = json_string_value(json_object_get(json, "$ref")), *key;
	json_t *value;
	char moved[120];
	size_t i;

	if (text && !strncmp(text, "#/$defs/", 8)) {
		snprintf(moved, sizeof(moved), REF "status_%s", text + 8);
		json_object_set_new(json, "$ref", json_string(moved));
	}
	json_object_foreach(json, key, value) move_references(value);
	json_array_foreach(json, i, value) move_references(value);
}

static json_t *schemas_json(void)
{
	json_t *schemas = json_loads(sl_openapi_schemas, 0, NULL),
	       *status = json_loads(sl_openapi_status, 0, NULL);
	json_t *definition;
	const char *key;
	char name[80];

	move_references(status);
	json_object_foreach(json_object_get(status, "$defs"), key, definition)
	{
		snprintf(name, sizeof(name), "status_%s", key);
		json_object_set(schemas, name, definition);
	}
	json_object_del(status, "$defs");
	json_object_del(status, "$schema");
	json_object_set_new(schemas, "status", status);
	return schemas;
}

/* ---- routes ---- */

static json_t *path_parameter(const char *placeholder, size_t length)
{
	bool is_name = length == 4 && !strncmp(placeholder, "name", 4), is_run = length == 3;
	json_t *schema = is_run	   ? json_pack("{s:s, s:i}", "type", "integer", "minimum", 1)
			 : is_name ? json_pack("{s:s, s:s}", "type", "string", "pattern",
					       "^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$")
				   : json_pack("{s:s}", "type", "string");

	return json_pack("{s:s%, s:s, s:b, s:o}", "name", placeholder, length, "in", "path",
			 "required", 1, "schema", schema);
}

static json_t *query_schema(const struct sl_http_parameter *p)
{
	json_t *choices = json_array();

	for (const char *at = p->choices; at && *at;) {
		size_t n = strcspn(at, "|");

		json_array_append_new(choices, json_stringn(at, n));
		at += n + (at[n] == '|');
	}
	if (p->type == SL_HTTP_CHOICE)
		return json_pack("{s:o, s:s?}", "enum", choices, "default", p->def);
	json_decref(choices);
	if (p->type == SL_HTTP_FLAG)
		return json_pack("{s:s, s:b}", "type", "boolean", "default",
				 p->def && !strcmp(p->def, "true"));
	if (p->type == SL_HTTP_TEXT)
		return json_pack("{s:s, s:I, s:I}", "type", "string", "minLength",
				 (json_int_t)p->min, "maxLength", (json_int_t)p->max);
	choices = json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)p->min,
			    "maximum", (json_int_t)p->max);
	if (p->def)
		json_object_set_new(choices, "default", json_integer(atoll(p->def)));
	return choices;
}

static json_t *parameters_json(const struct sl_http_route *route)
{
	json_t *list = json_array();

	for (const char *at = strchr(route->pattern, '{'); at; at = strchr(at, '{')) {
		at++;
		json_array_append_new(list, path_parameter(at, strcspn(at, "}")));
	}
	for (const struct sl_http_parameter *p = route->query; p && p->name; p++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", p->name, "in",
						      "query", "description", p->doc, "schema",
						      query_schema(p)));
	return list;
}

static json_t *content(const char *type, const char *schema)
{
	return json_pack("{s:{s:o}}", type, "schema", schema ? reference(schema) : json_object());
}

static json_t *response(unsigned status, const char *doc, const char *type, const char *schema)
{
	json_t *json = json_pack("{s:s}", "description", doc);

	if (type)
		json_object_set_new(json, "content", content(type, schema));
	/* What is refused before the handler sees it is told as JSON. */
	if (type && status >= 400 && strcmp(type, "application/json") != 0)
		json_object_set_new(json_object_get(json, "content"), "application/json",
				    json_pack("{s:o}", "schema", reference("error")));
	return json;
}

static json_t *responses_json(const struct sl_http_route *route)
{
	json_t *all = json_object();
	char status[16];

	for (unsigned i = 0; i < SL_HTTP_ANSWERS && route->said[i].status; i++) {
		snprintf(status, sizeof(status), "%u", route->said[i].status);
		json_object_set_new(all, status,
				    response(route->said[i].status, route->said[i].doc,
					     route->said[i].type, route->said[i].schema));
	}
	if (route->role > SL_ROLE_NONE) {
		json_object_set_new(all, "401",
				    response(400, "a token is missing, or not known",
					     "application/json", "error"));
		json_object_set_new(
			all, "403",
			response(400, "the role is not enough, or the page or host is another one",
				 "application/json", "error"));
	}
	json_object_set_new(
		all, "default",
		response(400, "any other error: 400 a wrong request, 413 too large, 500, 503 busy",
			 "application/json", "error"));
	return all;
}

/* "get_api_v1_sessions_name": names for generated clients. */
static void operation_id(const struct sl_http_route *route, char *text, size_t bytes)
{
	size_t used = (size_t)snprintf(text, bytes, "%s", route->method);

	for (const char *at = route->pattern; *at && used + 2 < bytes; at++)
		if (isalnum((unsigned char)*at))
			text[used++] = *at;
		else if (text[used - 1] != '_')
			text[used++] = '_';
	while (used && text[used - 1] == '_')
		used--;
	text[used] = 0;
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

static json_t *operation_json(const struct sl_http_route *route)
{
	json_t *json, *parameters = parameters_json(route);
	char id[128];

	operation_id(route, id, sizeof(id));
	json = json_pack("{s:s, s:s, s:s, s:o}", "operationId", id, "summary", route->doc, "x-role",
			 sl_role_name(route->role), "responses", responses_json(route));
	if (json_array_size(parameters))
		json_object_set(json, "parameters", parameters);
	json_decref(parameters);
	if (route->body)
		json_object_set_new(json, "requestBody",
				    json_pack("{s:b, s:o}", "required", !route->body_optional,
					      "content", content(route->body, route->body_schema)));
	if (route->role == SL_ROLE_NONE)
		json_object_set_new(json, "security", json_array());
	return json;
}

static json_t *paths_json(void)
{
	json_t *paths = json_object();

	for (const struct sl_http_route *const *table = sl_service_routes; *table; table++)
		for (const struct sl_http_route *route = *table; route->method; route++) {
			json_t *path = json_object_get(paths, route->pattern);
			char method[16];

			if (!path) {
				path = json_object();
				json_object_set_new(paths, route->pattern, path);
			}
			snprintf(method, sizeof(method), "%s", route->method);
			for (char *c = method; *c; c++)
				*c = (char)tolower((unsigned char)*c);
			json_object_set_new(path, method, operation_json(route));
		}
	return paths;
}

static json_t *openapi_json(void)
{
	return json_pack(
		"{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:[]}], s:o, s:{s:{s:{s:s, s:s}}, "
		"s:o}}",
		"openapi", "3.1.0", "info", "title", "Sluice", "version", SL_VERSION, "description",
		"Sessions, runs and experiment files of a host. docs/reference/api.md tells more.",
		"license", "name", "Apache-2.0", "identifier", "Apache-2.0", "security", "token",
		"paths", paths_json(), "components", "securitySchemes", "token", "type", "http",
		"scheme", "bearer", "schemas", schemas_json());
}

char *sl_service_openapi(void)
{
	json_t *json = openapi_json();
	char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;

	json_decref(json);
	return text;
}

static void get_openapi(void *service, struct sl_http_request *r)
{
	sl_http_answer_json(r, 200, openapi_json());
}

const struct sl_http_route sl_openapi_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/openapi.json",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_openapi,
	 .doc = "This document.",
	 .said = {{200, "application/json", "openapi", "OpenAPI 3.1"}}},
	{NULL},
};
