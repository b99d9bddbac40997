/* admit.c - who is let in: how many, under which name of this host, from which page, with which
 * role, to which route. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "service/http/fields.h"
#include "service/http/private.h"

/* ---- header fields: a proxy in front of us must see the same request ---- */

struct fields {
	struct sl_http_field field[SL_HTTP_FIELDS];
	size_t n;
};

static enum MHD_Result take_field(void *arg, enum MHD_ValueKind kind, const char *name,
				  size_t name_bytes, const char *value, size_t value_bytes)
{
	struct fields *f = arg;

	if (f->n == SL_HTTP_FIELDS)
		return MHD_NO;
	f->field[f->n++] = (struct sl_http_field){name, value, name_bytes, value ? value_bytes : 0};
	return MHD_YES;
}

/* Versions from 1.0 on refuse zeros and lines that go on by themselves. */
static bool is_to_be_searched(void)
{
	return !strncmp(MHD_get_version(), "0.9.", 4);
}

static const char *problem_of_fields(struct sl_http_request *r)
{
	const union MHD_ConnectionInfo *head =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	int all = MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, NULL, NULL);
	struct fields f = {.n = 0};
	const char *problem;

	MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, take_field, &f);
	if (all < 0 || (size_t)all > f.n)
		return "the request has too many headers";
	problem = sl_http_fields_problem(f.field, f.n, r->old);
	if (!problem && head && is_to_be_searched())
		problem = sl_http_head_problem(f.field, f.n, r->head, head->header_size);
	return problem;
}

static bool check_fields(struct sl_http_request *r)
{
	const char *problem = problem_of_fields(r);

	if (!problem)
		return true;
	sl_http_answer_error(r, 400, "request", NULL, NULL, "%s", problem);
	sl_http_answer_header(r, "Connection", "close"); /* where it ends is not certain */
	return false;
}

/* ---- Host and Origin: a page of another site must not reach us through a browser here ---- */

/* The address of our own end of the connection. */
static bool is_own_address(const struct sl_http_request *r, const char *name)
{
	struct sockaddr_storage local;
	socklen_t bytes = sizeof(local);
	char text[INET6_ADDRSTRLEN] = "";

	if (!r->of || getsockname(r->of->fd, (struct sockaddr *)&local, &bytes))
		return false;
	if (local.ss_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)&local)->sin_addr, text, sizeof(text));
	else if (local.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&local)->sin6_addr, text,
			  sizeof(text));
	return text[0] && !strcmp(text, name);
}

static bool is_our_host(const struct sl_http_request *r, const char *name)
{
	for (unsigned i = 0; i < r->server->hosts; i++)
		if (!strcmp(name, r->server->host[i]))
			return true;
	return is_own_address(r, name);
}

static bool check_host(struct sl_http_request *r)
{
	const char *host = sl_http_header(r, "Host"), *origin = sl_http_header(r, "Origin");
	char name[256];

	if (!host || !sl_http_host_name(host, name, sizeof(name))) {
		sl_http_answer_error(r, 400, "request", NULL, NULL,
				     "the request has no Host header that names a host");
		return false;
	}
	if (!is_our_host(r, name)) {
		sl_http_answer_error(r, 403, "forbidden", NULL,
				     "start the service with --host NAME",
				     "this service is not called '%s'", name);
		return false;
	}
	if (origin && !sl_http_same_origin(origin, host)) {
		sl_http_answer_error(
			r, 403, "forbidden", NULL, NULL,
			"pages of other sites may not use this service (Origin: %.200s)", origin);
		return false;
	}
	return true;
}

/* ---- role ---- */

static void find_client(struct sl_http_request *r)
{
	const char *header = sl_http_header(r, "Authorization");

	r->role = SL_ROLE_NONE;
	r->user = "";
	if (!r->server->tokens.n) {
		r->role = SL_ROLE_CONFIGURE;
		r->user = "local";
	} else if (header && !strncasecmp(header, "Bearer ", 7)) {
		r->role = sl_tokens_find(&r->server->tokens, header + 7, &r->user);
	}
}

static bool check_role(struct sl_http_request *r)
{
	if (r->role >= r->route->role)
		return true;
	if (r->role == SL_ROLE_NONE) {
		sl_http_answer_error(r, 401, "unauthorized", NULL,
				     "send the header Authorization: Bearer TOKEN; "
				     "docs/how-to/serve.md tells more",
				     "this needs a token of the role %s",
				     sl_role_name(r->route->role));
		sl_http_answer_header(r, "WWW-Authenticate", "Bearer realm=\"sluice\"");
	} else {
		sl_http_answer_error(r, 403, "forbidden", NULL, NULL,
				     "this needs the role %s; %s has %s",
				     sl_role_name(r->route->role), r->user, sl_role_name(r->role));
	}
	return false;
}

/* ---- route ---- */

static bool is_method(const struct sl_http_route *route, const char *method)
{
	return !strcmp(route->method, method) ||
	       (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
}

/* The methods that a path takes, for the header Allow. */
static void add_method(char *methods, size_t bytes, const char *method)
{
	size_t used = strlen(methods);

	snprintf(methods + used, bytes - used, "%s%s", used ? ", " : "", method);
}

static bool find_route(struct sl_http_request *r)
{
	char methods[64] = "";

	for (const struct sl_http_route *const *table = r->server->routes; *table; table++)
		for (const struct sl_http_route *route = *table; route->method; route++) {
			if (!sl_http_match(route->pattern, r->target, r->path_bytes, &r->match))
				continue;
			if (is_method(route, r->method)) {
				r->route = route;
				return true;
			}
			add_method(methods, sizeof(methods), route->method);
		}
	if (!methods[0]) {
		sl_http_answer_error(r, 404, "not_found", NULL,
				     "GET /api/v1/openapi.json lists what there is",
				     "there is nothing under this path");
		return false;
	}
	sl_http_answer_error(r, 405, "method", NULL, NULL, "this path takes %s", methods);
	sl_http_answer_header(r, "Allow", methods);
	return false;
}

static bool check_query(struct sl_http_request *r)
{
	char why[300];

	if (!sl_http_query(r->route->query, r->query, &r->values, why, sizeof(why)))
		return true;
	sl_http_answer_error(r, 400, "request", NULL, NULL, "%s", why);
	return false;
}

/* Before its body comes. */
static bool check_length(struct sl_http_request *r)
{
	const char *length = sl_http_header(r, "Content-Length");

	if (!length || strtoull(length, NULL, 10) <= SL_HTTP_BODY_BYTES)
		return true;
	sl_http_answer_error(r, 413, "too_large", NULL, NULL, "a body has at most %d bytes",
			     SL_HTTP_BODY_BYTES);
	return false;
}

bool sl_http_admit(struct sl_http_request *r)
{
	if (r->of && r->of->over) {
		sl_http_answer_error(r, 503, "busy", NULL, "try again later",
				     "%d connections are open already", SL_HTTP_CONNECTIONS);
		sl_http_answer_header(r, "Retry-After", "5");
		sl_http_answer_header(r, "Connection", "close");
		return false;
	}
	if (r->target_too_long) {
		sl_http_answer_error(r, 414, "too_large", NULL, NULL,
				     "a request target has at most %d bytes", SL_HTTP_TARGET_BYTES);
		return false;
	}
	if (!check_fields(r) || !check_host(r))
		return false;
	find_client(r);
	return find_route(r) && check_role(r) && check_query(r) && check_length(r);
}
