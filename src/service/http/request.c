/* request.c - what libmicrohttpd calls: a request begins, its head and body come, its answer goes,
 * it ends. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/http/request.h"

enum {
	HEAD_S = 20,
	BODY_S = 60,
	ANSWER_S = 120,
	NEXT_S = 60,   /* until the next request of the connection */
	STREAM_S = 60, /* a viewer that takes nothing for that long is cut */
	DISCARD_BYTES = 8 << 20,
	FIRST_ROOM = 4096,
};

/* ---- it begins ---- */

static struct sl_http_connection *connection_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void copy_target(struct sl_http_request *r, const char *uri)
{
	size_t bytes = strlen(uri);

	r->target_too_long = bytes > SL_HTTP_TARGET_BYTES;
	snprintf(r->target, sizeof(r->target), "%s", uri);
	r->path_bytes = strcspn(r->target, "?");
	r->query = r->target[r->path_bytes] ? r->target + r->path_bytes + 1 : NULL;
}

void *sl_http_begin(void *server, const char *uri, struct MHD_Connection *connection)
{
	struct sl_http_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->server = server;
	r->connection = connection;
	r->of = connection_of(connection);
	r->user = "";
	copy_target(r, uri);
	sl_http_connection_limit(&r->server->connections, r->of, HEAD_S);
	return r;
}

size_t sl_http_keep_escapes(void *server, struct MHD_Connection *connection, char *text)
{
	return strlen(text);
}

void sl_http_end(void *server, struct MHD_Connection *connection, void **context,
		 enum MHD_RequestTerminationCode how)
{
	struct sl_http_request *r = *context;

	if (!r)
		return;
	*context = NULL;
	if (atomic_load(&r->ready))
		atomic_fetch_sub(&r->server->owed, 1);
	sl_http_connection_limit(&r->server->connections, r->of, NEXT_S);
	sl_http_answer_none(r);
	free(r->body);
	free(r);
}

void sl_http_notice(void *server, struct MHD_Connection *connection, void **context,
		    enum MHD_ConnectionNotificationCode how)
{
	struct sl_http_server *s = server;
	const union MHD_ConnectionInfo *info;

	if (how == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*context = info ? sl_http_connection_add(&s->connections, info->connect_fd) : NULL;
	} else if (*context) {
		sl_http_connection_remove(&s->connections, *context);
		*context = NULL;
	}
}

/* ---- its answer goes ---- */

static void set_default(struct MHD_Response *response, const char *name, const char *value)
{
	if (!MHD_get_response_header(response, name))
		MHD_add_response_header(response, name, value);
}

static bool is_audited(const struct sl_http_request *r)
{
	if (r->status == 401 || r->status == 403)
		return true;
	return strcmp(r->method, "GET") && strcmp(r->method, "HEAD") &&
	       !(r->route && r->route->quiet);
}

static enum MHD_Result queue(struct sl_http_request *r)
{
	struct MHD_Response *response = r->response;
	enum MHD_Result done;

	if (!response)
		return MHD_NO;
	if (r->server->audited && is_audited(r))
		sl_audit_request(&r->server->audit, r);
	set_default(response, "X-Content-Type-Options", "nosniff");
	set_default(response, "Cache-Control", "no-store");
	set_default(response, "Content-Security-Policy",
		    "default-src 'none'; frame-ancestors 'none'");
	set_default(response, "Referrer-Policy", "no-referrer");
	set_default(response, "Cross-Origin-Resource-Policy", "same-origin");
	sl_http_connection_limit(&r->server->connections, r->of, r->stream ? 0 : ANSWER_S);
	if (r->stream)
		MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT,
					  (unsigned)STREAM_S);
	done = MHD_queue_response(r->connection, r->status, response);
	MHD_destroy_response(response);
	r->response = NULL;
	return done;
}

/* ---- head and body ---- */

static void name_client(struct sl_http_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *from = info ? info->client_addr : NULL;

	if (from && from->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)from)->sin_addr, r->from,
			  sizeof(r->from));
	else if (from && from->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)from)->sin6_addr, r->from,
			  sizeof(r->from));
}

/* A body that is not read would be taken for the next request of the connection. */
static enum MHD_Result refuse(struct sl_http_request *r)
{
	if (sl_http_header(r, "Content-Length") || sl_http_header(r, "Transfer-Encoding"))
		sl_http_answer_header(r, "Connection", "close");
	return queue(r);
}

static enum MHD_Result begin(struct sl_http_request *r, const char *method, const char *version)
{
	r->seen = true;
	r->head = method;
	r->old = !strcmp(version, MHD_HTTP_VERSION_1_0);
	snprintf(r->method, sizeof(r->method), "%s", method);
	name_client(r);
	sl_http_connection_limit(&r->server->connections, r->of, BODY_S);
	return sl_http_admit(r) ? MHD_YES : refuse(r);
}

static bool make_room(struct sl_http_request *r, size_t bytes)
{
	size_t room = r->body_room ? r->body_room : FIRST_ROOM;
	char *more;

	while (room < r->body_bytes + bytes + 1)
		room *= 2;
	if (room == r->body_room)
		return true;
	more = realloc(r->body, room);
	if (!more)
		return false;
	r->body = more;
	r->body_room = room;
	return true;
}

/* Of a body that is too large the rest is read, so that the client reads the answer; but not
 * without end. */
static enum MHD_Result take(struct sl_http_request *r, const char *data, size_t bytes)
{
	if (r->too_large || bytes > SL_HTTP_BODY_BYTES - r->body_bytes) {
		r->too_large = true;
		r->discarded += bytes;
		return r->discarded > DISCARD_BYTES ? MHD_NO : MHD_YES;
	}
	if (!make_room(r, bytes))
		return MHD_NO;
	memcpy(r->body + r->body_bytes, data, bytes);
	r->body_bytes += bytes;
	r->body[r->body_bytes] = 0;
	return MHD_YES;
}

static bool check_body(struct sl_http_request *r)
{
	if (r->too_large)
		sl_http_answer_error(r, 413, "too_large", NULL, NULL, "a body has at most %d bytes",
				     SL_HTTP_BODY_BYTES);
	else if (r->body_bytes && !r->route->body)
		sl_http_answer_error(r, 400, "request", NULL, NULL, "%s %s takes no body",
				     r->method, r->route->pattern);
	else if (!r->body_bytes && r->route->body && !r->route->body_optional)
		sl_http_answer_error(r, 400, "request", NULL, NULL, "%s %s takes a body of %s",
				     r->method, r->route->pattern, r->route->body);
	else
		return true;
	return false;
}

/* ---- its handler ---- */

void sl_http_run(struct sl_http_request *r)
{
	r->route->handle(r->server->service, r);
	if (!r->response)
		sl_http_answer_error(r, 500, "system", NULL, NULL, "no memory for the answer");
}

void sl_http_resume(struct sl_http_request *r)
{
	struct MHD_Connection *connection = r->connection;

	atomic_fetch_add(&r->server->owed, 1); /* sl_http_end() takes it back */
	atomic_store(&r->ready, true);	       /* pairs with the load in sl_http_access() */
	MHD_resume_connection(connection);
}

/* libmicrohttpd does not look at a connection that is suspended, nor close it. */
bool sl_http_client_is_gone(const struct sl_http_request *r)
{
	struct pollfd fd = {.fd = r->of ? r->of->fd : -1, .events = POLLRDHUP};

	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void sl_http_finish(struct sl_http_request *r)
{
	if (!r->response)
		sl_http_answer_error(r, 500, "system", NULL, NULL, "no memory for the answer");
	sl_http_resume(r);
}

static enum MHD_Result give(struct sl_http_request *r)
{
	r->given = true;
	if (!check_body(r))
		return queue(r);
	if (r->route->how == SL_HTTP_AT_ONCE) {
		sl_http_run(r);
		return queue(r);
	}
	sl_http_connection_limit(&r->server->connections, r->of, 0);
	MHD_suspend_connection(r->connection); /* before another thread may resume it */
	if (r->route->how == SL_HTTP_LATER) {
		r->route->handle(r->server->service, r);
		return MHD_YES;
	}
	if (sl_http_workers_give(&r->server->workers, r))
		return MHD_YES;
	sl_http_answer_error(r, 503, "busy", NULL, "try again later", "%d requests wait already",
			     SL_HTTP_JOBS);
	sl_http_answer_header(r, "Retry-After", "1");
	sl_http_resume(r);
	return MHD_YES;
}

enum MHD_Result sl_http_access(void *server, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *bytes, void **context)
{
	struct sl_http_request *r = *context;
	size_t n = *bytes;

	if (!r)
		return MHD_NO;
	if (!r->seen)
		return begin(r, method, version);
	*bytes = 0;
	if (n)
		return take(r, data, n);
	if (!r->given)
		return give(r);
	return atomic_load(&r->ready) ? queue(r) : MHD_YES;
}
