/* socket.h - the status socket of a session: status and calls for other programs.
 *
 * Model:     a thread of its own, in a poll loop without blocking calls. A request is a line of
 *            JSON, and so is its reply; a client has one reply under way, and is read again once
 *            that is sent. docs/reference/status.md describes the protocol.
 * Bounds:    16 clients; 64 KiB a request; 200 requests a second of all clients together (bursts of
 *            100), taken in turn; further ones wait in their sockets. A client that does not read
 *            for 10 s, or sends 8 wrong lines, is cut. A watcher that reads slowly misses lines.
 * Threads:   no lock is shared with sinks or data threads. The session's lock is held for a
 *            snapshot, never to format or to write. configure() runs on a thread of its own.
 * Ownership: one for each session, from sl_session_open() until its close. */
#ifndef SL_SESSION_SOCKET_H
#define SL_SESSION_SOCKET_H

#include <stdbool.h>

struct sl_session;
struct sl_socket;

/* Take the name and listen; session->socket is set then. Logged, and the session's error set, where
 * that fails. hooks.any_name: take NAME-2, -3 ... where NAME is taken. hooks.may_lack_socket: warn
 * and go on where the folder of sockets cannot be used. root: of run folders; NULL: none. */
int sl_socket_open(struct sl_session *session, const char *name, const char *root);
/* From now on no client changes the session: calls are refused, those under way have returned. */
void sl_socket_quiesce(struct sl_socket *socket);
/* Clients that wait or watch get a last status, within 500 ms. NULL is fine. */
void sl_socket_close(struct sl_socket *socket);

/* The state has changed. NULL is fine. Any thread. */
void sl_socket_wake(struct sl_socket *socket);
const char *sl_socket_name(const struct sl_socket *socket); /* NULL: "" */
bool sl_socket_asked_to_close(const struct sl_socket *socket);

#endif
