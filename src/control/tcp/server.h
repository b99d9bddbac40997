/* server.h - the receiver's side of the plan exchange.
 *
 * Model:     listens on TCP; front ends come, offer modules, get plans. When every module of the
 *            experiment has a plan and every front end is ready, the run may start. From then on
 *            it relays counts, and notices front ends that finish or vanish.
 * Threads:   one, the control thread; callbacks run there.
 * Errors:    what a stranger sends is answered with a reason and dropped; it never ends the run. */
#ifndef SL_CONTROL_TCP_SERVER_H
#define SL_CONTROL_TCP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "control/tcp/proof.h"
#include "control/tcp/wire.h"
#include "core/watch.h"

struct pollfd;

enum { SL_SERVER_FDS = 73 }; /* its listener and all connections */

struct sl_server_options {
	const char *address;
	uint16_t port; /* 0: any */
	const char *token;
	enum sl_proof_purpose purpose; /* that the token is proven for */
	uint32_t modules;
	uint64_t experiment; /* digest that front ends must have too */
	const char *link, *detector;
	/* A front end that says nothing and of which no data come for this time is gone; 0:
	 * never. */
	uint32_t silence_ms;
	/* Modules whose front end is done or gone may be offered again while the run goes on. */
	bool rejoin;
	/* For messages: who comes, who listens here, and the section whose address and port these
	 * are. NULL: front ends, a receiver, control. */
	const char *peer, *self, *section;
};

struct sl_server_ops {
	/* Answer an offer; on error say why in `why`. -EAGAIN, in a run: ask again soon. */
	int (*accept)(void *arg, const struct sl_wire_hello *hello, const struct sl_offer *offer,
		      struct sl_plan *plan, char *why, size_t why_bytes);
	/* On error say why: a count that cannot be true ends the connection. */
	int (*count)(void *arg, uint32_t module, const struct sl_wire_count *count, bool final,
		     char *why, size_t why_bytes);
	void (*cancel_plan)(void *arg, uint16_t transfer); /* its front end left before the start */
	void (*source_lost)(void *arg, uint32_t module);   /* its source vanished without a DONE */
	/* Who offered it in a run left before there was an answer. NULL: no matter. */
	void (*cancel_offer)(void *arg, uint32_t module);
	/* What was seen of a module's data. NULL: words alone are a sign of life. */
	void (*progress)(void *arg, uint32_t module, struct sl_progress *progress);
};

struct sl_server;

/* Logs and returns -errno, -EADDRINUSE among them. */
int sl_server_open(const struct sl_server_options *options, const struct sl_server_ops *ops,
		   void *arg, struct sl_server **server);
void sl_server_close(struct sl_server *server);

uint16_t sl_server_port(const struct sl_server *server);

/* The descriptors to wait for, at most SL_SERVER_FDS; then handle what there is, without
 * waiting. */
unsigned sl_server_fds(const struct sl_server *server, struct pollfd *fds, unsigned most);
void sl_server_handle(struct sl_server *server, uint64_t now_ns);

/* Both, waiting at most timeout_ms for something. */
void sl_server_poll(struct sl_server *server, int timeout_ms);

uint32_t sl_server_planned(const struct sl_server *server); /* modules with a plan */
bool sl_server_ready(
	const struct sl_server *server); /* all modules planned, all front ends ready */
void sl_server_start(struct sl_server *server, uint64_t now_ns);
void sl_server_stop(
	struct sl_server *server); /* ask every front end to end after the current frame */
/* Hang up on every front end that still runs: it is gone, as if it had vanished. */
void sl_server_abandon(struct sl_server *server);

bool sl_server_finished(const struct sl_server *server); /* every module is done or gone */
/* Tell front ends that everything arrived; more: another run may follow. */
void sl_server_bye(struct sl_server *server, bool more);
/* After bye: another run of the same experiment. No module has a plan; front ends that stayed
 * connected are told to offer again. */
void sl_server_again(struct sl_server *server, uint64_t now_ns);
bool sl_server_connected(const struct sl_server *server); /* a front end has not hung up yet */

#endif
