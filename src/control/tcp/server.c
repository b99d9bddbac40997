/* server.c - offers in, plans out, counts in. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/tcp/channel.h"
#include "control/tcp/listen.h"
#include "control/tcp/proof.h"
#include "control/tcp/server.h"
#include "control/tcp/server_private.h"
#include "net/net.h"

static const char *peer_of(const struct sl_server *server)
{
	return sl_server_peer(&server->options);
}

int sl_server_open(const struct sl_server_options *options, const struct sl_server_ops *ops,
		   void *arg, struct sl_server **out)
{
	struct sl_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->options = *options;
	server->ops = ops;
	server->arg = arg;
	server->listener = -1;
	err = sl_server_listen(options, &server->listener);
	if (!err)
		server->port = sl_net_port(server->listener);
	if (err) {
		sl_server_close(server);
		return err;
	}
	*out = server;
	return 0;
}

void sl_server_close(struct sl_server *server)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase != FREE)
			sl_channel_close(&server->connection[i].channel);
	if (server->listener >= 0)
		close(server->listener);
	free(server);
}

uint16_t sl_server_port(const struct sl_server *server)
{
	return server->port;
}

static bool has_modules(const struct sl_server *server, const struct connection *c)
{
	for (uint32_t m = 0; m < server->options.modules; m++)
		if (server->module[m].owner == c)
			return true;
	return false;
}

/* Forget a connection. Modules it had planned but not started are free to be offered again;
 * running ones are gone. */
static void hang_up(struct sl_server *server, struct connection *c)
{
	if (c->waiting && server->ops->cancel_offer)
		server->ops->cancel_offer(server->arg, c->offer.module);
	c->waiting = false;
	for (uint32_t m = 0; m < server->options.modules; m++) {
		struct module *module = &server->module[m];

		if (module->owner != c || module->over)
			continue;
		if (server->started) {
			module->over = true;
			server->ops->source_lost(server->arg, m);
		} else {
			module->owner = NULL;
			server->ops->cancel_plan(server->arg, module->transfer);
		}
	}
	sl_channel_close(&c->channel);
	/* Modules that it had know it still. */
	c->phase = c->phase == RUNNING && has_modules(server, c) ? OVER : FREE;
}

void sl_server_refuse(struct sl_server *server, struct connection *c, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_warn("a %s was turned away: %s", peer_of(server), text);
	sl_channel_refuse(&c->channel, "%s", text);
	hang_up(server, c);
}

/* False: it was refused. */
static bool admit(struct sl_server *server, struct connection *c)
{
	const struct sl_server_options *o = &server->options;
	const struct sl_wire_hello *hello = &c->hello;

	if (server->started && !server->options.rejoin)
		sl_server_refuse(server, c, "the run has already started");
	else if (strcmp(hello->link, o->link) != 0)
		sl_server_refuse(
			server, c,
			"its link speaks '%s', here it is '%s': both must use one experiment file",
			hello->link, o->link);
	else if (strcmp(hello->detector, o->detector) != 0 ||
		 (hello->experiment && hello->experiment != o->experiment))
		sl_server_refuse(server, c,
				 "the detector section differs between front end and receiver: "
				 "both must use "
				 "one experiment file");
	else if (!hello->modules || hello->modules > o->modules)
		sl_server_refuse(server, c, "%u modules offered, the experiment has %u",
				 hello->modules, o->modules);
	else
		c->phase = OFFERING;
	return c->phase == OFFERING;
}

/* A stranger is told nothing about the experiment before it has proven that it knows the token. */
static void greet(struct sl_server *server, struct connection *c, const struct sl_wire_hello *hello)
{
	const char *token = server->options.token;
	struct sl_wire_message challenge = {.type = SL_WIRE_CHALLENGE};

	c->hello = *hello;
	c->terms = (struct sl_proof_terms){.purpose = server->options.purpose, .hello = *hello};
	if (!token[0] && sl_proof_is_asked(hello)) {
		sl_server_refuse(server, c,
				 "it has a control.token, and there is none here: set the same on "
				 "both sides");
	} else if (!token[0]) {
		admit(server, c);
	} else if (!sl_proof_is_asked(hello)) {
		sl_server_refuse(server, c,
				 "control.token has to be proven by challenge and response, and "
				 "its HELLO has no nonce");
	} else if (sl_proof_set_listener(&c->terms, SL_PROOF_LISTENS, c->channel.fd)) {
		hang_up(server, c); /* it is gone */
	} else {
		sl_secret_fill(challenge.challenge.nonce, sizeof(challenge.challenge.nonce));
		c->terms.challenge = challenge.challenge;
		c->phase = PROVING;
		if (sl_channel_send(&c->channel, &challenge))
			hang_up(server, c);
	}
}

static void check_proof(struct sl_server *server, struct connection *c,
			const struct sl_wire_proof *proof)
{
	const char *token = server->options.token;
	struct sl_wire_message mine = {.type = SL_WIRE_PROOF};
	char at[SL_NET_TEXT_BYTES];

	if (!sl_proof_is_right(SL_PROOF_CONNECTS, token, &c->terms, proof)) {
		sl_net_format(c->terms.ip, at);
		sl_server_refuse(server, c,
				 "wrong control.token, or it dialled another address than %s, "
				 "port %u, and a relay brought it here",
				 at, c->terms.port);
		return;
	}
	/* No proof for a peer that wants something else than is given here. */
	if (!admit(server, c))
		return;
	sl_proof_make(SL_PROOF_LISTENS, token, &c->terms, &mine.proof);
	if (sl_channel_send(&c->channel, &mine))
		hang_up(server, c);
}

static void answer(struct sl_server *server, struct connection *c, const struct sl_offer *offer)
{
	struct sl_wire_message reply = {.type = SL_WIRE_PLAN};
	struct connection *before;
	char why[160] = "the link does not take it";
	int err;

	if (offer->module >= server->options.modules) {
		sl_server_refuse(server, c, "module %u offered, the experiment has %u",
				 offer->module, server->options.modules);
		return;
	}
	if (server->module[offer->module].owner && !server->module[offer->module].over) {
		sl_server_refuse(server, c, "module %u is already served by another %s",
				 offer->module, peer_of(server));
		return;
	}
	err = server->ops->accept(server->arg, &c->hello, offer, &reply.plan, why, sizeof(why));
	c->waiting = err == -EAGAIN && server->started;
	if (c->waiting) {
		c->offer = *offer;
		return;
	}
	if (err) {
		sl_server_refuse(server, c, "module %u: %s", offer->module, why);
		return;
	}
	before = server->module[offer->module].owner;
	server->module[offer->module] =
		(struct module){.owner = c, .transfer = reply.plan.transfer};
	if (before && before->phase == OVER && !has_modules(server, before))
		before->phase = FREE;
	if (++c->offers == c->hello.modules)
		c->phase = PLANNED;
	if (sl_channel_send(&c->channel, &reply))
		hang_up(server, c);
}

static void take_count(struct sl_server *server, struct connection *c,
		       const struct sl_wire_count *count, bool final)
{
	char why[160] = "the count is not taken";

	for (uint32_t m = 0; m < server->options.modules; m++) {
		struct module *module = &server->module[m];

		if (module->owner != c || module->transfer != count->transfer)
			continue;
		if (module->over) {
			sl_server_refuse(server, c,
					 "a count for transfer %u, which has ended with your DONE",
					 count->transfer);
			return;
		}
		if (server->ops->count(server->arg, m, count, final, why, sizeof(why)))
			sl_server_refuse(server, c, "%s", why);
		else
			module->over = final;
		return;
	}
	sl_server_refuse(server, c, "a count for transfer %u, which is not yours", count->transfer);
}

static void tell_one(struct connection *c, enum sl_wire_type type, enum phase to)
{
	const struct sl_wire_message message = {.type = type};

	c->phase = to;
	sl_channel_send(&c->channel, &message); /* that it is gone is noticed when listening */
}

static void start_one(struct sl_server *server, struct connection *c)
{
	c->heard_ns = server->now_ns; /* its turn begins now */
	tell_one(c, SL_WIRE_START, RUNNING);
}

/* A front end that comes back in a run does not wait for the others. */
static void become_ready(struct sl_server *server, struct connection *c)
{
	c->phase = READY;
	if (server->started)
		start_one(server, c);
}

static void handle(struct sl_server *server, struct connection *c,
		   const struct sl_wire_message *message)
{
	if (message->type == SL_WIRE_HELLO && c->phase == GREETING)
		greet(server, c, &message->hello);
	else if (message->type == SL_WIRE_PROOF && c->phase == PROVING)
		check_proof(server, c, &message->proof);
	else if (message->type == SL_WIRE_OFFER && c->phase == OFFERING && !c->waiting)
		answer(server, c, &message->offer);
	else if (message->type == SL_WIRE_READY && c->phase == PLANNED)
		become_ready(server, c);
	else if (message->type == SL_WIRE_COUNT && c->phase == RUNNING)
		take_count(server, c, &message->count, false);
	else if (message->type == SL_WIRE_DONE && c->phase == RUNNING)
		take_count(server, c, &message->count, true);
	else if (message->type == SL_WIRE_ERROR) {
		sl_warn("the %s says: %s", peer_of(server), message->error.text);
		hang_up(server, c);
	} else
		sl_server_refuse(server, c, "%s was not expected now", sl_wire_name(message->type));
}

static void listen_to(struct sl_server *server, struct connection *c)
{
	struct sl_wire_message message;
	int got = 1;

	while (c->phase != FREE && c->phase != OVER &&
	       (got = sl_channel_receive(&c->channel, 0, &message)) > 0) {
		c->heard_ns = server->now_ns;
		handle(server, c, &message);
	}
	if (c->phase == FREE || c->phase == OVER || got > 0)
		return;
	if (got == 0) {
		sl_server_check_silence(server, c);
		return;
	}
	if (got == -EPROTONOSUPPORT)
		sl_server_refuse(server, c,
				 "it speaks another version of the plan protocol; this one is %d",
				 SL_WIRE_VERSION);
	else if (got == -EPROTO)
		sl_server_refuse(server, c, "what it says is not the plan protocol");
	else
		hang_up(server, c);
}

/* A place for one more. Of the connections that have not said or not proven what they are, the one
 * that has been silent longest gives way, so that strangers that connect and wait keep no front
 * end out. NULL: there is none. */
static struct connection *free_place(struct sl_server *server)
{
	struct connection *end = server->connection + CONNECTIONS, *silent = NULL;

	for (struct connection *c = server->connection; c < end; c++) {
		if (c->phase == FREE)
			return c;
		if (c->phase <= PROVING && (!silent || c->heard_ns < silent->heard_ns))
			silent = c;
	}
	if (silent)
		sl_server_refuse(server, silent,
				 "it has not said what it is, and there is no place for more");
	return silent;
}

static void welcome(struct sl_server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct connection *c = free_place(server);

		if (!c) {
			close(fd);
			continue;
		}
		memset(c, 0, sizeof(*c));
		sl_channel_init(&c->channel, fd);
		c->heard_ns = server->now_ns;
		c->phase = GREETING;
	}
}

unsigned sl_server_fds(const struct sl_server *server, struct pollfd *fds, unsigned most)
{
	unsigned n = 0;

	if (most)
		fds[n++] = (struct pollfd){.fd = server->listener, .events = POLLIN};
	for (unsigned i = 0; i < CONNECTIONS && n < most; i++)
		if (server->connection[i].phase != FREE && server->connection[i].phase != OVER)
			fds[n++] = (struct pollfd){.fd = server->connection[i].channel.fd,
						   .events = POLLIN};
	return n;
}

void sl_server_handle(struct sl_server *server, uint64_t now_ns)
{
	server->now_ns = now_ns;
	welcome(server);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &server->connection[i];

		listen_to(server, c);
		if (c->waiting) {
			const struct sl_offer offer = c->offer;

			answer(server, c, &offer);
		}
	}
}

void sl_server_poll(struct sl_server *server, int timeout_ms)
{
	struct pollfd fds[SL_SERVER_FDS];

	poll(fds, sl_server_fds(server, fds, SL_SERVER_FDS), timeout_ms);
	sl_server_handle(server, sl_clock_ns());
}

uint32_t sl_server_planned(const struct sl_server *server)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < server->options.modules; m++)
		n += server->module[m].owner != NULL;
	return n;
}

bool sl_server_ready(const struct sl_server *server)
{
	for (uint32_t m = 0; m < server->options.modules; m++) {
		const struct module *module = &server->module[m];

		if (!module->owner || module->owner->phase != READY)
			return false;
	}
	return true;
}

static void tell_running(struct sl_server *server, enum sl_wire_type type)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase == RUNNING)
			tell_one(&server->connection[i], type, RUNNING);
}

void sl_server_start(struct sl_server *server, uint64_t now_ns)
{
	server->started = true;
	server->now_ns = now_ns;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase == READY)
			start_one(server, &server->connection[i]);
}

void sl_server_stop(struct sl_server *server)
{
	tell_running(server, SL_WIRE_STOP);
}

void sl_server_abandon(struct sl_server *server)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase == RUNNING)
			hang_up(server, &server->connection[i]);
}

bool sl_server_finished(const struct sl_server *server)
{
	for (uint32_t m = 0; m < server->options.modules; m++)
		if (!server->module[m].over)
			return false;
	return true;
}

void sl_server_bye(struct sl_server *server, bool more)
{
	const struct sl_wire_message bye = {.type = SL_WIRE_BYE, .bye = {.more = more}};

	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase == RUNNING)
			sl_channel_send(&server->connection[i].channel, &bye);
}

/* Connections that never came as far as a run are strangers, or front ends that have yet to
 * offer: they go on as they were. */
void sl_server_again(struct sl_server *server, uint64_t now_ns)
{
	server->started = false;
	server->now_ns = now_ns;
	memset(server->module, 0, sizeof(server->module));
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &server->connection[i];

		if (c->phase == OVER)
			c->phase = FREE;
		if (c->phase == FREE)
			continue;
		c->heard_ns = now_ns;
		c->watch = (struct sl_watch){0};
		c->failed_ns = 0;
		c->offers = 0;
		if (c->phase == RUNNING)
			tell_one(c, SL_WIRE_AGAIN, GREETING);
	}
}

bool sl_server_connected(const struct sl_server *server)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (server->connection[i].phase == RUNNING)
			return true;
	return false;
}
