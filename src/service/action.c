/* action.c - errors and answers of actions, and their way to HTTP. */
#include "service/action.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/text.h"

static json_t *or_null(const char *text)
{
	return text && text[0] ? sl_json_text(text) : json_null();
}

int sl_action_done(struct sl_action *a, unsigned status, json_t *answer)
{
	json_decref(a->answer);
	a->answer = answer;
	a->status = answer ? status : 0;
	return 0;
}

int sl_action_fail(struct sl_action *a, unsigned status, const char *code, const char *where,
		   const char *hint, json_t *also, const char *format, ...)
{
	char message[1024];
	va_list arguments;
	json_t *json;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	json = json_pack("{s:{s:s, s:o, s:o, s:o}}", "error", "code", code, "message",
			 sl_json_text(message), "where", or_null(where), "hint", or_null(hint));
	if (also)
		json_object_update(json, also);
	json_decref(also);
	sl_action_done(a, status, json);
	snprintf(a->code, sizeof(a->code), "%s", code);
	return -1;
}

/* The codes of <sluice/client.h> and docs/reference/errors.md. */
static unsigned status_of(const char *code)
{
	static const struct {
		const char *code;
		unsigned status;
	} table[] = {
		{"absent", 404},     {"state", 409},   {"crashed", 409}, {"name", 409},
		{"experiment", 422}, {"request", 400}, {"timeout", 504}, {"connection", 503},
		{"access", 503},     {"address", 409}, {"output", 500},	 {"memory", 500},
		{"system", 500},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].code, code))
			return table[i].status;
	return 500;
}

int sl_action_fail_remote(struct sl_action *a, const struct sl_remote_error *e)
{
	unsigned status = status_of(e->code);
	json_t *also = NULL;

	/* As errors of a check are: forms show them in the same way. */
	if (status == 422)
		also = json_pack("{s:[{s:s, s:o, s:o, s:n, s:o}]}", "errors", "code", e->code,
				 "message", sl_json_text(e->message), "where", or_null(e->where),
				 "line", "hint", or_null(e->hint));
	return sl_action_fail(a, status, strcmp(e->code, "absent") ? e->code : "not_found",
			      e->where, e->hint, also, "%s", e->message);
}

int sl_action_fail_check(struct sl_action *a, json_t *errors)
{
	const json_t *first = json_array_get(errors, 0);
	const char *message = json_string_value(json_object_get(first, "message"));
	const char *where = json_string_value(json_object_get(first, "where"));
	const char *code = json_string_value(json_object_get(first, "code"));

	return sl_action_fail(a, 422, code ? code : "experiment", where, NULL,
			      json_pack("{s:O}", "errors", errors), "%s",
			      message ? message : "the experiment is wrong");
}

int sl_action_only(struct sl_action *a, const char *const *members)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)a->body, key, value)
	{
		const char *const *known = members;

		while (*known && strcmp(*known, key) != 0)
			known++;
		if (!*known)
			return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
					      "'%.60s' is not known here", key);
	}
	return 0;
}

int sl_action_text(struct sl_action *a, const char *member, const char **text)
{
	const json_t *value = json_object_get(a->body, member);

	*text = "";
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_string(value) || json_string_length(value) > 63 ||
	    strlen(json_string_value(value)) != json_string_length(value))
		return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
				      "%s takes a text of at most 63 bytes", member);
	*text = json_string_value(value);
	return 0;
}

void sl_action_answer(struct sl_http_request *r, struct sl_service *service,
		      void (*run)(struct sl_action *action))
{
	struct sl_action a = {
		.service = service, .role = sl_http_role(r), .name = sl_http_segment(r, 0)};
	json_t *body = sl_http_body_json(r);

	if (!body)
		return;
	a.body = body;
	run(&a);
	if (a.note[0])
		sl_http_note(r, "%s", a.note);
	if (a.status == 204)
		sl_http_answer_empty(r, 204);
	else
		sl_http_answer_json(r, a.status, json_incref(a.answer));
	if (a.code[0])
		sl_http_code(r, a.code);
	json_decref(a.answer);
	json_decref(body);
}
