/* http.h - HTTP for the service: routes, requests, answers. Event streams are in events.h, the
 * server itself is in server.h. This folder is the one place with <microhttpd.h>.
 *
 * Model:     a route is a row of a table: method, pattern, role, what it takes and answers, and the
 *            function that handles it. A request is given to its route once its client is known
 *            (token, Host, Origin), its query is checked against the route's table, and its body is
 *            whole. The handler sets one answer with sl_http_answer_...(); without one the answer
 *            is an internal error. The OpenAPI document is made of the same rows.
 * Threads:   one thread moves the bytes of all connections and must never wait. `how` of a route
 *            says where its handler runs: SL_HTTP_AT_ONCE on that thread: it must not block, not
 *            even on files. SL_HTTP_ON_WORKER on one of a few worker threads: it may block for
 *            seconds. SL_HTTP_LATER on the thread of bytes, and must not block; the answer is set
 *            then or later by any one thread, which ends with sl_http_finish().
 * Ownership: a request and all texts of it are the server's. They are valid until the handler
 *            returns; of SL_HTTP_LATER until sl_http_finish(), which the handler's owner must call
 *            for every request before the server is closed.
 * Bounds:    a body has at most SL_HTTP_BODY_BYTES, a request target SL_HTTP_TARGET_BYTES. */
#ifndef SL_SERVICE_HTTP_H
#define SL_SERVICE_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_HTTP_BODY_BYTES = 1 << 20,
	SL_HTTP_TARGET_BYTES = 4096,
	SL_HTTP_ANSWERS = 8,
	SL_HTTP_QUERIES = 16, /* parameters of a route */
	SL_HTTP_SEGMENTS = 3, /* {placeholders} of a pattern */
	SL_HTTP_SEGMENT_BYTES = 128,
};

/* Each may do what those before it may. NONE: no token is needed. */
enum sl_role { SL_ROLE_NONE, SL_ROLE_VIEW, SL_ROLE_OPERATE, SL_ROLE_CONFIGURE };
const char *sl_role_name(enum sl_role role); /* "none", "view", ... */

struct sl_http_request;

/* ---- routes ---- */

enum sl_http_how { SL_HTTP_AT_ONCE, SL_HTTP_ON_WORKER, SL_HTTP_LATER };
enum sl_http_type { SL_HTTP_WHOLE /* 0 .. 2^63-1 */, SL_HTTP_FLAG, SL_HTTP_CHOICE, SL_HTTP_TEXT };

struct sl_http_parameter { /* of the query; a table ends with a NULL name */
	const char *name;
	enum sl_http_type type;
	uint64_t min, max;   /* of a whole number; of a text: its bytes */
	const char *def;     /* NULL: none, see sl_http_has() */
	const char *choices; /* "max|mean" */
	const char *doc;
};

struct sl_http_said {	    /* an answer that a route may give */
	unsigned status;    /* 0: the list ends */
	const char *type;   /* media type; NULL: no body */
	const char *schema; /* of application/json: name in schemas.json; NULL: none */
	const char *doc;
};

struct sl_http_route {
	const char *method; /* GET answers HEAD, too. NULL: the table ends */
	/* "/api/v1/sessions/{name}": {name} stands for one segment, a valid name; {run} for a
	 * number from 1; {file} for any text without '/'; {path} for all that is left. */
	const char *pattern;
	enum sl_role role;
	enum sl_http_how how;
	void (*handle)(void *service, struct sl_http_request *request);
	const char *doc;		       /* one sentence, for people */
	const struct sl_http_parameter *query; /* NULL: it takes none */
	const char *body;		       /* media type; NULL: it takes no body */
	const char *body_schema;	       /* of a JSON body: name in schemas.json */
	bool body_optional;
	bool quiet; /* answers are not audited even where the method is no GET */
	struct sl_http_said
		said[SL_HTTP_ANSWERS]; /* errors that any route may give need not be listed */
};

/* ---- requests ---- */

const struct sl_http_route *sl_http_route_of(const struct sl_http_request *request);
/* What stands for the n-th placeholder. */
const char *sl_http_segment(const struct sl_http_request *request, unsigned n);
uint64_t sl_http_segment_number(const struct sl_http_request *request, unsigned n);
/* Of the query: as given, else by default. sl_http_has(): it was given, or has a default. */
bool sl_http_has(const struct sl_http_request *request, const char *name);
uint64_t sl_http_whole(const struct sl_http_request *request, const char *name);
bool sl_http_flag(const struct sl_http_request *request, const char *name);
const char *sl_http_text(const struct sl_http_request *request,
			 const char *name); /* "": not given */
/* NULL: the request has none of that name. */
const char *sl_http_header(const struct sl_http_request *request, const char *name);
/* Of the client: its role, its name in the file of tokens ("local" without one), its address. */
enum sl_role sl_http_role(const struct sl_http_request *request);
const char *sl_http_user(const struct sl_http_request *request);
const char *sl_http_from(const struct sl_http_request *request);
/* With a final zero behind the bytes, which may have zeros. */
const char *sl_http_body(const struct sl_http_request *request, size_t *bytes);
/* The body as a JSON object; an empty body is an empty object. The caller's reference. NULL: it is
 * none, and the error is set as the answer. */
json_t *sl_http_body_json(struct sl_http_request *request);
/* Whether an object has no other members than these (NULL-terminated). If not, the error is set as
 * the answer. */
bool sl_http_only(struct sl_http_request *request, const json_t *object,
		  const char *const *members);

/* ---- answers: the last one that is set counts ---- */

/* The JSON is consumed. NULL: no memory: an internal error. */
void sl_http_answer_json(struct sl_http_request *request, unsigned status, json_t *json);
/* {"error": {"code", "message", "where", "hint"}}; where, hint: NULL: null. */
void sl_http_answer_error(struct sl_http_request *request, unsigned status, const char *code,
			  const char *where, const char *hint, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* The same with members of `also` (consumed; NULL: none) beside "error". */
void sl_http_answer_error_with(struct sl_http_request *request, unsigned status, const char *code,
			       const char *message, const char *where, const char *hint,
			       json_t *also);
/* malloc'ed bytes, which become the server's. NULL: no memory. */
void sl_http_answer_bytes(struct sl_http_request *request, unsigned status, const char *type,
			  void *bytes, size_t n);
/* Bytes of another owner, which the server gives back by release(bytes), from any thread. */
void sl_http_answer_owned(struct sl_http_request *request, unsigned status, const char *type,
			  void *bytes, size_t n, void (*release)(void *bytes));
/* Bytes that never change, as those of embedded files. */
void sl_http_answer_const(struct sl_http_request *request, unsigned status, const char *type,
			  const void *bytes, size_t n);
void sl_http_answer_text(struct sl_http_request *request, unsigned status, const char *type,
			 const char *text);
/* `bytes` of a file from its beginning on; the descriptor becomes the server's. It must be a
 * regular file. */
void sl_http_answer_file(struct sl_http_request *request, unsigned status, const char *type, int fd,
			 uint64_t bytes);
void sl_http_answer_empty(struct sl_http_request *request, unsigned status);
/* One more header of the answer; after the answer is set. */
void sl_http_answer_header(struct sl_http_request *request, const char *name, const char *value);
/* The status that is set; 0: none yet. */
unsigned sl_http_status(const struct sl_http_request *request);
/* A few words for the audit log: what the command was about. */
void sl_http_note(struct sl_http_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The code of an error that was answered as JSON, for the audit log. */
void sl_http_code(struct sl_http_request *request, const char *code);
/* Of SL_HTTP_LATER, before sl_http_finish(): the client has closed the connection, or its
 * side of it. Any thread. */
bool sl_http_client_is_gone(const struct sl_http_request *request);
/* Of SL_HTTP_LATER: the answer is set; the request must not be used any more. */
void sl_http_finish(struct sl_http_request *request);

#endif
