/* private.h - the HTTP server between its files.
 *
 * Files:     server.c open and close; request.c what libmicrohttpd calls; admit.c who is let in;
 *            answer.c answers; workers.c threads that may block; connections.c how many there are,
 *            and time limits; events.c streams; audit.c the log of commands; target.c and tokens.c
 *            functions of texts.
 * Locks:     connections.lock, workers.lock, audit.lock and the lock of events are never held
 *            together. */
#ifndef SL_SERVICE_HTTP_PRIVATE_H
#define SL_SERVICE_HTTP_PRIVATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "service/http/server.h"
#include "service/http/target.h"
#include "service/http/tokens.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

enum { SL_HTTP_NOTE = 200, SL_HTTP_FROM = 64 };

/* A connection of libmicrohttpd; connections.lock guards it. */
struct sl_http_connection {
	struct sl_http_connection *next, *previous;
	int fd;
	uint64_t deadline_ns; /* it is cut then; UINT64_MAX: not */
	bool over;	      /* one more than are served */
};

struct sl_http_connections {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* of the thread that cuts */
	struct sl_http_connection *first;
	unsigned n;
	bool stop;
	struct sl_thread thread;
};

struct sl_http_request {
	struct sl_http_server *server;
	struct MHD_Connection *connection;
	struct sl_http_connection *of;
	struct sl_http_request *next;	   /* of the workers' queue */
	const struct sl_http_route *route; /* NULL: not known yet */
	struct sl_http_match match;
	struct sl_http_values values;
	char target[SL_HTTP_TARGET_BYTES + 1]; /* "/path", and from `query` on what is behind '?' */
	size_t path_bytes;
	char *query; /* NULL: it has none */
	bool target_too_long;
	char method[16];
	const char *head; /* of libmicrohttpd: the request as it came, until its body comes */
	bool old;	  /* HTTP/1.0 */
	char from[SL_HTTP_FROM];
	enum sl_role role;
	const char *user;
	bool seen;  /* its head was looked at */
	bool given; /* to its handler */
	bool too_large;
	char *body;
	size_t body_bytes, body_room;
	uint64_t discarded;
	/* The answer: written by the handler's thread, read by the thread of bytes once `ready`. */
	_Atomic bool ready;
	bool suspended;
	struct MHD_Response *response;
	unsigned status;
	char code[32]; /* of an error */
	char note[SL_HTTP_NOTE];
	bool stream;
};

struct sl_http_workers {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct sl_http_request *first, *last;
	unsigned waiting;
	bool stop;
	struct sl_thread thread[SL_HTTP_WORKERS];
};

enum { SL_AUDIT_LINES = 256 };

struct sl_audit {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	char *line[SL_AUDIT_LINES]; /* a ring */
	unsigned first, n;
	bool stop;
	uint64_t lost;	  /* lines that found no room, or could not be written */
	uint64_t missing; /* those of them that could not be written since the last one that was */
	char path[1024];
	int fd;
	uint64_t bytes;
	struct sl_thread thread;
};

struct sl_http_server {
	struct MHD_Daemon *daemon;
	void *service;
	const struct sl_http_route *const *routes;
	struct sl_http_connections connections;
	struct sl_http_workers workers;
	_Atomic unsigned owed; /* requests whose answers are set, and not sent yet */
	struct sl_audit audit;
	bool audited;
	struct sl_tokens tokens; /* n 0: loopback clients may do everything */
	bool any_address;	 /* it listens on all */
	bool quiesced;
	unsigned hosts;
	char host[SL_HTTP_HOSTS + 2][256];
	char *certificate, *key;
	char url[300];
};

/* ---- connections.c ---- */
int sl_http_connections_open(struct sl_http_connections *connections);
void sl_http_connections_close(struct sl_http_connections *connections);
/* NULL: no memory. */
struct sl_http_connection *sl_http_connection_add(struct sl_http_connections *connections, int fd);
void sl_http_connection_remove(struct sl_http_connections *connections,
			       struct sl_http_connection *connection);
/* It is cut after this time; 0: never. */
void sl_http_connection_limit(struct sl_http_connections *connections,
			      struct sl_http_connection *connection, unsigned seconds);

/* ---- admit.c ---- */
/* Look at the head of a request: false: it is refused, and the error is set. */
bool sl_http_admit(struct sl_http_request *request);

/* ---- request.c ---- */
/* Run its handler on this thread; without an answer it is an internal error. */
void sl_http_run(struct sl_http_request *request);
void sl_http_resume(struct sl_http_request *request);

/* ---- answer.c ---- */
void sl_http_answer_none(struct sl_http_request *request); /* forget the one that is set */
void sl_http_answer_response(struct sl_http_request *request, unsigned status,
			     struct MHD_Response *response);

/* ---- workers.c ---- */
int sl_http_workers_open(struct sl_http_workers *workers);
void sl_http_workers_close(struct sl_http_workers *workers);
/* false: too many wait. */
bool sl_http_workers_give(struct sl_http_workers *workers, struct sl_http_request *request);

/* ---- audit.c ---- */
int sl_audit_open(struct sl_audit *audit, const char *path);
void sl_audit_close(struct sl_audit *audit);
void sl_audit_request(struct sl_audit *audit, const struct sl_http_request *request);

#endif
