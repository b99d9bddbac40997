/* testing.h - for tests of the plan exchange: a receiver that notes what the server tells it, and
 * messages as a proper front end sends them. */
#ifndef SL_CONTROL_TCP_TESTING_H
#define SL_CONTROL_TCP_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "control/tcp/channel.h"
#include "control/tcp/server.h"

#define ADDRESS	     "127.93.17.1"
#define EXPERIMENT   UINT64_C(0x1234567890)
#define PATIENCE_NS  UINT64_C(5000000000)
#define FIRST_TICKET 500

enum { MODULES = 2, PEERS = 200, IMPATIENT_MS = 120 };

struct world {
	struct sl_server *server;
	struct sl_channel peer[PEERS];
	unsigned peers;
	int refuse_offers;
	/* what the server told us */
	uint16_t next_transfer;
	unsigned accepted, withdrawn, gone, counts, finals;
	uint16_t last_withdrawn;
	uint32_t last_gone, last_module;
	struct sl_wire_hello last_hello;
	struct sl_wire_count last_count;
};

static inline int accept_offer(void *arg, const struct sl_wire_hello *hello,
			       const struct sl_offer *offer, struct sl_plan *plan, char *why,
			       size_t why_bytes)
{
	struct world *w = arg;

	if (w->refuse_offers) {
		snprintf(why, why_bytes, "not in the mood");
		return -EINVAL;
	}
	*plan = (struct sl_plan){.module = offer->module,
				 .transfer = w->next_transfer++,
				 .slots = 32,
				 .block_bytes = offer->block_bytes};
	w->last_hello = *hello;
	w->accepted++;
	return 0;
}

/* Refuses what a receiver that granted a million frames would refuse. */
static inline int take_count(void *arg, uint32_t module, const struct sl_wire_count *count,
			     bool final, char *why, size_t why_bytes)
{
	struct world *w = arg;

	if (count->next > 1000000) {
		snprintf(why, why_bytes, "a count that cannot be true");
		return -EPROTO;
	}
	w->counts += !final;
	w->finals += final;
	w->last_module = module;
	w->last_count = *count;
	return 0;
}

static inline void cancel_plan(void *arg, uint16_t transfer)
{
	struct world *w = arg;

	w->withdrawn++;
	w->last_withdrawn = transfer;
}

static inline void gone(void *arg, uint32_t module)
{
	struct world *w = arg;

	w->gone++;
	w->last_gone = module;
}

static const struct sl_server_ops ops = {accept_offer, take_count, cancel_plan, gone};

static inline struct sl_server_options options_with(const char *token)
{
	return (struct sl_server_options){
		.address = ADDRESS,
		.token = token,
		.modules = MODULES,
		.experiment = EXPERIMENT,
		.link = "udp",
		.detector = "pattern",
	};
}

static inline int open_world(void **state, const char *token, uint32_t silence_ms)
{
	struct sl_server_options options = options_with(token);
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	options.silence_ms = silence_ms;
	w->next_transfer = FIRST_TICKET;
	*state = w;
	return sl_server_open(&options, &ops, w, &w->server);
}

static inline int setup(void **state)
{
	return open_world(state, "", 0);
}

static inline int setup_with_token(void **state)
{
	return open_world(state, "secret", 0);
}

static inline int setup_impatient(void **state)
{
	return open_world(state, "", IMPATIENT_MS);
}

/* In a run that goes on: who comes, begins. */
static inline int setup_rejoin(void **state)
{
	struct sl_server_options options = options_with("");
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	options.rejoin = true;
	w->next_transfer = FIRST_TICKET;
	*state = w;
	if (sl_server_open(&options, &ops, w, &w->server))
		return -1;
	sl_server_start(w->server, sl_clock_ns());
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < w->peers; i++)
		sl_channel_close(&w->peer[i]);
	if (w->server)
		sl_server_close(w->server);
	free(w);
	return 0;
}

static inline struct sockaddr_in at(const char *address, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static inline void say(struct sl_channel *peer, struct sl_wire_message message)
{
	assert_int_equal(sl_channel_send(peer, &message), 0);
}

static inline struct sl_wire_message hello(uint16_t modules)
{
	return (struct sl_wire_message){.type = SL_WIRE_HELLO,
					.hello = {.modules = modules,
						  .host = 77,
						  .experiment = EXPERIMENT,
						  .link = "udp",
						  .detector = "pattern"}};
}

static inline struct sl_wire_message offer(uint16_t module)
{
	return (struct sl_wire_message){.type = SL_WIRE_OFFER,
					.offer = {.module = module, .block_bytes = 4160}};
}

static inline struct sl_wire_message word(enum sl_wire_type type)
{
	return (struct sl_wire_message){.type = type};
}

static inline struct sl_wire_message count(enum sl_wire_type type, uint16_t transfer, uint64_t next)
{
	return (struct sl_wire_message){
		.type = type,
		.count = {
			.transfer = transfer, .next = next, .sent = next, .position = 1000 * next}};
}

#endif
