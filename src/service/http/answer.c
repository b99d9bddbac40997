/* answer.c - what handlers read of a request, and the answers that they set. */
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/text.h"
#include "service/http/private.h"

/* ---- the request ---- */

const struct sl_http_route *sl_http_route_of(const struct sl_http_request *r)
{
	return r->route;
}

struct sl_http_server *sl_http_server_of(const struct sl_http_request *r)
{
	return r->server;
}

const char *sl_http_segment(const struct sl_http_request *r, unsigned n)
{
	return n < r->match.n ? r->match.segment[n] : "";
}

uint64_t sl_http_segment_number(const struct sl_http_request *r, unsigned n)
{
	return strtoull(sl_http_segment(r, n), NULL, 10);
}

bool sl_http_has(const struct sl_http_request *r, const char *name)
{
	int i = sl_http_parameter(r->route->query, name);

	return i >= 0 && r->values.given[i];
}

uint64_t sl_http_whole(const struct sl_http_request *r, const char *name)
{
	int i = sl_http_parameter(r->route->query, name);

	return i < 0 ? 0 : r->values.whole[i];
}

bool sl_http_flag(const struct sl_http_request *r, const char *name)
{
	return sl_http_whole(r, name) != 0;
}

const char *sl_http_text(const struct sl_http_request *r, const char *name)
{
	int i = sl_http_parameter(r->route->query, name);

	return i < 0 ? "" : r->values.text[i];
}

const char *sl_http_header(const struct sl_http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

enum sl_role sl_http_role(const struct sl_http_request *r)
{
	return r->role;
}

const char *sl_http_user(const struct sl_http_request *r)
{
	return r->user;
}

const char *sl_http_from(const struct sl_http_request *r)
{
	return r->from;
}

const char *sl_http_body(const struct sl_http_request *r, size_t *bytes)
{
	if (bytes)
		*bytes = r->body_bytes;
	return r->body ? r->body : "";
}

json_t *sl_http_body_json(struct sl_http_request *r)
{
	json_error_t error;
	json_t *json;

	if (!r->body_bytes)
		return json_object();
	json = json_loadb(r->body, r->body_bytes, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(json))
		return json;
	if (json)
		sl_http_answer_error(r, 400, "request", NULL, NULL,
				     "the body is not a JSON object");
	else
		sl_http_answer_error(r, 400, "request", NULL, NULL,
				     "the body is not JSON: line %d: %s", error.line, error.text);
	json_decref(json);
	return NULL;
}

bool sl_http_only(struct sl_http_request *r, const json_t *object, const char *const *members)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		const char *const *known = members;

		while (*known && strcmp(*known, key) != 0)
			known++;
		if (*known)
			continue;
		sl_http_answer_error(r, 400, "request", NULL, NULL, "'%.60s' is not known here",
				     key);
		return false;
	}
	return true;
}

/* ---- answers ---- */

void sl_http_answer_none(struct sl_http_request *r)
{
	if (r->response)
		MHD_destroy_response(r->response);
	r->response = NULL;
	r->status = 0;
	r->code[0] = 0;
}

void sl_http_answer_response(struct sl_http_request *r, unsigned status,
			     struct MHD_Response *response)
{
	sl_http_answer_none(r);
	r->response = response;
	r->status = status;
}

void sl_http_answer_header(struct sl_http_request *r, const char *name, const char *value)
{
	if (r->response)
		MHD_add_response_header(r->response, name, value);
}

unsigned sl_http_status(const struct sl_http_request *r)
{
	return r->response ? r->status : 0;
}

static void answer_buffer(struct sl_http_request *r, unsigned status, const char *type,
			  const void *bytes, size_t n, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(n, (void *)bytes, mode);

	if (!response && mode == MHD_RESPMEM_MUST_FREE)
		free((void *)bytes);
	sl_http_answer_response(r, status, response);
	if (type)
		sl_http_answer_header(r, "Content-Type", type);
}

void sl_http_answer_bytes(struct sl_http_request *r, unsigned status, const char *type, void *bytes,
			  size_t n)
{
	if (bytes)
		answer_buffer(r, status, type, bytes, n, MHD_RESPMEM_MUST_FREE);
	else
		sl_http_answer_none(r);
}

void sl_http_answer_owned(struct sl_http_request *r, unsigned status, const char *type, void *bytes,
			  size_t n, void (*release)(void *bytes))
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer_with_free_callback(n, bytes, release);

	if (!response)
		release(bytes);
	sl_http_answer_response(r, status, response);
	sl_http_answer_header(r, "Content-Type", type);
}

void sl_http_answer_const(struct sl_http_request *r, unsigned status, const char *type,
			  const void *bytes, size_t n)
{
	answer_buffer(r, status, type, bytes, n, MHD_RESPMEM_PERSISTENT);
}

void sl_http_answer_text(struct sl_http_request *r, unsigned status, const char *type,
			 const char *text)
{
	answer_buffer(r, status, type, text, strlen(text), MHD_RESPMEM_MUST_COPY);
}

void sl_http_answer_empty(struct sl_http_request *r, unsigned status)
{
	answer_buffer(r, status, NULL, "", 0, MHD_RESPMEM_PERSISTENT);
}

void sl_http_answer_file(struct sl_http_request *r, unsigned status, const char *type, int fd,
			 uint64_t bytes)
{
	struct MHD_Response *response = MHD_create_response_from_fd64(bytes, fd);

	if (!response)
		close(fd);
	sl_http_answer_response(r, status, response);
	sl_http_answer_header(r, "Content-Type", type);
}

void sl_http_answer_json(struct sl_http_request *r, unsigned status, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

	json_decref(json);
	sl_http_answer_bytes(r, status, "application/json", text, text ? strlen(text) : 0);
}

static json_t *or_null(const char *text)
{
	return text && text[0] ? sl_json_text(text) : json_null();
}

void sl_http_answer_error_with(struct sl_http_request *r, unsigned status, const char *code,
			       const char *message, const char *where, const char *hint,
			       json_t *also)
{
	json_t *json = json_pack("{s:{s:s, s:o, s:o, s:o}}", "error", "code", code, "message",
				 sl_json_text(message), "where", or_null(where), "hint",
				 or_null(hint));

	if (also)
		json_object_update(json, also);
	json_decref(also);
	sl_http_answer_json(r, status, json);
	snprintf(r->code, sizeof(r->code), "%s", code);
}

void sl_http_answer_error(struct sl_http_request *r, unsigned status, const char *code,
			  const char *where, const char *hint, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	sl_http_answer_error_with(r, status, code, message, where, hint, NULL);
}

void sl_http_code(struct sl_http_request *r, const char *code)
{
	snprintf(r->code, sizeof(r->code), "%s", code);
}

void sl_http_note(struct sl_http_request *r, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(r->note, sizeof(r->note), format, arguments);
	va_end(arguments);
}
