/* socket.h - a status socket: status and calls for other programs.
 *
 * Model:     a thread of its own, in a poll loop without blocking calls. A request is a line of
 *            JSON, and so is its reply; a client has one reply under way, and is read again once
 *            that is sent. docs/reference/status.md describes the protocol. What it serves, a
 *            session or a detector side, is behind struct sl_socket_ops.
 * Bounds:    16 clients; 64 KiB a request; 200 requests a second of all clients together (bursts of
 *            100), taken in turn; further ones wait in their sockets. A client that does not read
 *            for 10 s, or sends 8 wrong lines, is cut. A watcher that reads slowly misses lines.
 * Threads:   no lock is shared with sinks or data threads. configure() runs on a thread of its own,
 *            all other operations on the socket's thread: they must not block.
 * Ownership: the socket is its opener's, until sl_socket_close(). Texts that operations return are
 *            the socket's. */
#ifndef SL_SESSION_SOCKET_SOCKET_H
#define SL_SESSION_SOCKET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/error.h>
#include <sluice/status.h>

#include "client/registry.h"
#include "monitor/request.h"

struct sl_socket;

struct sl_socket_ops {
	const char *noun; /* for messages: "session" */
	const char *kind; /* for programs, in NAME.json */
	enum sl_state (*state)(void *arg);
	/* Take a snapshot, which status() formats; run and folder go into `facts`. */
	void (*look)(void *arg, struct sl_registry_facts *facts);
	void (*sample)(void *arg); /* once a second, behind a look: for rates */
	/* A line, with its end. NULL: no memory. */
	char *(*status)(void *arg, const char *call);
	/* -EPROTO: the call is not possible now, and `error` says why. Nothing is logged: a client
	 * could fill the log. */
	int (*check)(void *arg, const struct sl_request *request, struct sl_error *error);
	/* arm, start, pause, resume, stop, abort, close. -errno: `error` says why. */
	int (*change)(void *arg, const struct sl_request *request, struct sl_error *error);
	int (*configure)(void *arg, const struct sl_request *request, struct sl_error *error);
	/* A line; NULL: `error` says why not. */
	char *(*metadata)(void *arg, const struct sl_request *request, struct sl_error *error);
	/* Likewise: a point of a scan. NULL: it takes none. */
	char *(*point)(void *arg, const struct sl_request *request, struct sl_error *error);
};

struct sl_socket_options {
	const char *name;
	const char *experiment, *root; /* for NAME.json; root NULL: it has no run folders */
	bool any_name;		       /* the name is taken: choose NAME-2, -3 ... */
	const struct sl_socket_ops *ops;
	void *arg;
};

/* Take the name and listen; *socket is set before the first operation is called. -EINVAL: that is
 * no name. -EEXIST: it is taken. `why` is what is wrong; it is not logged. */
int sl_socket_open(const struct sl_socket_options *options, struct sl_socket **socket, char *why,
		   size_t why_bytes);
/* From now on no client changes anything: calls are refused, those under way have returned. */
void sl_socket_quiesce(struct sl_socket *socket);
/* Clients that wait or watch get a last status, within 500 ms. NULL is fine. */
void sl_socket_close(struct sl_socket *socket);

/* The state has changed. NULL is fine. Any thread. */
void sl_socket_wake(struct sl_socket *socket);
const char *sl_socket_name(const struct sl_socket *socket); /* NULL: "" */

/* A client wants the end of the program that holds the socket: the program looks. */
void sl_socket_ask_to_close(struct sl_socket *socket);
bool sl_socket_asked_to_close(const struct sl_socket *socket);

/* For operations: an error in these words, -EPROTO returned. */
int sl_socket_refuse(struct sl_error *error, enum sl_error_code code, const char *hint,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
