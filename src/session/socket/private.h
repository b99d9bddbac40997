/* private.h - the status socket inside: socket.c (its thread), client.c (bytes), calls.c (what
 * requests do). All members belong to its thread, except those that are atomic
 * and what `gate` guards. */
#ifndef SL_SESSION_SOCKET_PRIVATE_H
#define SL_SESSION_SOCKET_PRIVATE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/thread.h"
#include "session/socket/socket.h"

enum { SL_SOCKET_CLIENTS = 16, SL_SOCKET_BAD = 8 };

struct sl_socket_client {
	int fd;			       /* -1: free */
	char in[SL_REQUEST_BYTES + 1]; /* not taken yet */
	size_t in_bytes;
	char *out; /* the reply under way; NULL: none */
	size_t out_bytes, out_sent;
	uint64_t heard_ns; /* of its last request, or when it came */
	uint64_t moved_ns; /* when it last read something of `out` */
	unsigned bad;	   /* lines that were no requests */
	bool ended;	   /* it sends no more */
	bool cut;	   /* close it once `out` is sent */
	bool follows;	   /* its last request was a stop: it may ask for the end */
	bool configures;   /* its reply comes from the worker */
	uint32_t states;   /* waits for one of these; 0: it does not wait */
	uint64_t until_ns; /* at most until then; UINT64_MAX: no limit */
	uint64_t every_ns; /* watches; 0: it does not */
	uint64_t next_ns;  /* when the next line is due */
};

struct sl_socket_worker { /* configure() */
	struct sl_thread thread;
	struct sl_request request;
	struct sl_socket_client *client; /* NULL: it has gone */
	struct sl_error error;
	int err;
	bool busy;
	_Atomic bool done;
};

struct sl_socket {
	const struct sl_socket_ops *ops;
	void *arg;
	struct sl_claim claim;
	struct sl_registry_facts facts;
	int listener, wake;
	struct sl_thread thread;
	_Atomic bool stop, close_asked;
	pthread_mutex_t gate; /* held during a call that changes something */
	bool quiet;	      /* it closes: no more of these */
	_Atomic bool configuring;
	struct sl_socket_worker worker;

	struct sl_socket_client client[SL_SOCKET_CLIENTS];
	unsigned turn;		  /* whose requests are looked at first */
	uint64_t paid_ns;	  /* requests taken so far are paid for until then */
	uint64_t accept_after_ns; /* no descriptor was free: try again then */
	uint64_t sample_next_ns;
	char line[SL_REQUEST_BYTES + 1]; /* the request that is being served */
};

/* ---- client.c ---- */
/* Take a connection, or tell it why not. */
void sl_socket_accept(struct sl_socket *socket, uint64_t now_ns);
void sl_socket_drop(struct sl_socket *socket, struct sl_socket_client *client);
/* The text becomes the client's, which has none under way; NULL (no memory): cut it. */
void sl_socket_reply(struct sl_socket_client *client, char *text, uint64_t now_ns);
void sl_socket_reply_error(struct sl_socket_client *client, enum sl_error_code code,
			   const char *message, const char *hint, uint64_t now_ns);
/* Both drop a client whose connection has ended. */
void sl_socket_read(struct sl_socket *socket, struct sl_socket_client *client);
void sl_socket_write(struct sl_socket *socket, struct sl_socket_client *client, uint64_t now_ns);
/* The length of its first whole line; -1: there is none. */
ssize_t sl_socket_line(const struct sl_socket_client *client);
void sl_socket_take_line(struct sl_socket_client *client, size_t length);

/* ---- calls.c ---- */
/* A snapshot; facts are published where the run has changed. */
void sl_socket_look(struct sl_socket *socket);
void sl_socket_sample(struct sl_socket *socket, uint64_t now_ns);
char *sl_socket_status_line(struct sl_socket *socket, const char *call);
/* Do what a line says. */
void sl_socket_serve_line(struct sl_socket *socket, struct sl_socket_client *client,
			  const char *line, size_t length, uint64_t now_ns);
/* Replies of those that wait, where the time or the state has come. all: of all. */
void sl_socket_serve_waiting(struct sl_socket *socket, uint64_t now_ns, bool all);
void sl_socket_end_configure(struct sl_socket *socket, uint64_t now_ns);

#endif
