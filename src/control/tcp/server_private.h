/* server_private.h - the receiver's side of the plan exchange inside: server.c, silence.c. */
#ifndef SL_CONTROL_TCP_SERVER_PRIVATE_H
#define SL_CONTROL_TCP_SERVER_PRIVATE_H

#include "control/tcp/channel.h"
#include "control/tcp/proof.h"
#include "control/tcp/server.h"

enum { CONNECTIONS = SL_SERVER_FDS - 1, MODULES = 64 };

enum phase { FREE, GREETING, PROVING, OFFERING, PLANNED, READY, RUNNING, OVER };

struct connection {
	enum phase phase;
	struct sl_channel channel;
	struct sl_wire_hello hello;
	struct sl_proof_terms terms; /* of the proofs; with a token */
	uint32_t offers;	     /* so far */
	bool waiting;		     /* for the answer to this one */
	struct sl_offer offer;
	uint64_t heard_ns;  /* when it last said something */
	uint64_t failed_ns; /* when a reliable connection was seen to have failed; 0: none has */
	struct sl_watch watch;
};

struct module {
	struct connection *owner; /* NULL: no front end has offered it yet */
	uint16_t transfer;
	bool over;
};

struct sl_server {
	struct sl_server_options options;
	const struct sl_server_ops *ops;
	void *arg;
	int listener;
	uint16_t port;
	bool started;
	uint64_t now_ns; /* as the caller says */
	struct connection connection[CONNECTIONS];
	struct module module[MODULES];
};

/* Tell it why, log that, and hang up. */
__attribute__((format(printf, 3, 4))) void
sl_server_refuse(struct sl_server *server, struct connection *c, const char *format, ...);

/* silence.c: a front end that hangs, or whose connection failed, is refused. */
void sl_server_check_silence(struct sl_server *server, struct connection *c);

#endif
