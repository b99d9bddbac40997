/* tcp.c - control driver `tcp`: front ends connect, offer modules, get plans, and count what they
 * send. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/controls.h"
#include "control/tcp/server.h"
#include "experiment/experiment.h"

#define LEAVING_NS UINT64_C(200000000)

struct tcp {
	struct sl_control_env env;
	struct sl_server *server; /* NULL: not open */
	bool stopping, more;
	uint64_t now_ns, bye_ns; /* 0: BYE was not said */
};

static int accept_offer(void *arg, const struct sl_wire_hello *hello, const struct sl_offer *offer,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	const struct sl_control_env *env = &((struct tcp *)arg)->env;

	return env->ops->accept(env->arg, offer, hello->host == sl_clock_host(), plan, why,
				why_bytes);
}

static int take_count(void *arg, uint32_t module, const struct sl_wire_count *count, bool final,
		      char *why, size_t why_bytes)
{
	const struct tcp *tcp = arg;
	const struct sl_control_env *env = &tcp->env;
	struct sl_progress progress;
	int err = env->ops->count(env->arg, module, count->next, count->sent, count->position,
				  final, why, why_bytes);

	if (err || !final || tcp->stopping)
		return err;
	env->ops->progress(env->arg, module, &progress);
	if (progress.end != UINT64_MAX && count->next < progress.end)
		sl_warn("module %u ends after %llu of the %llu frames that it offered", module,
			(unsigned long long)count->next, (unsigned long long)progress.end);
	return 0;
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	const struct sl_control_env *env = &((struct tcp *)arg)->env;

	env->ops->cancel_plan(env->arg, transfer);
}

static void source_lost(void *arg, uint32_t module)
{
	const struct sl_control_env *env = &((struct tcp *)arg)->env;

	sl_warn("the front end of module %u vanished", module);
	env->ops->source_lost(env->arg, module);
}

static void cancel_offer(void *arg, uint32_t module)
{
	const struct sl_control_env *env = &((struct tcp *)arg)->env;

	env->ops->cancel_offer(env->arg, module);
}

static void look(void *arg, uint32_t module, struct sl_progress *progress)
{
	const struct sl_control_env *env = &((struct tcp *)arg)->env;

	env->ops->progress(env->arg, module, progress);
}

static const struct sl_server_ops server_ops = {
	.accept = accept_offer,
	.count = take_count,
	.cancel_plan = cancel_plan,
	.source_lost = source_lost,
	.cancel_offer = cancel_offer,
	.progress = look,
};

/* Where sources have another driver and could come to the wrong port, they are told so. */
static int modules(const struct sl_experiment *e, bool resumed)
{
	if (e->link->oneway)
		return -1;
	return e->feroce.enable || resumed ? 0 : (int)e->run.modules;
}

static int open(void *state, const struct sl_control_env *env)
{
	struct tcp *tcp = state;
	const struct sl_experiment *e = env->experiment;
	const struct sl_server_options options = {
		.address = e->control.address,
		/* A front end that this run starts is told the port: any will do, and two runs do
		 * not get in each other's way. */
		.port = (uint16_t)(e->emulate_local ? 0 : e->control.port),
		.token = e->control.token,
		.modules = env->modules,
		.experiment = sl_experiment_digest(e),
		.link = e->link->wire,
		.detector = e->detector->name,
		.silence_ms = (uint32_t)(e->control.silence_s * 1000),
		/* Frames that are put together by sequence have no place for a source that
		 * returns. */
		.rejoin = e->ring.align != SL_ALIGN_SEQUENCE,
	};

	tcp->env = *env;
	return sl_server_open(&options, &server_ops, tcp, &tcp->server);
}

static void close_server(void *state)
{
	struct tcp *tcp = state;

	if (tcp->server)
		sl_server_close(tcp->server);
	tcp->server = NULL;
}

static unsigned fds(void *state, struct pollfd *fds, unsigned most)
{
	return sl_server_fds(((struct tcp *)state)->server, fds, most);
}

static void poll_server(void *state, uint64_t now_ns)
{
	struct tcp *tcp = state;

	tcp->now_ns = now_ns;
	sl_server_handle(tcp->server, now_ns);
}

static uint32_t planned(const void *state)
{
	return sl_server_planned(((const struct tcp *)state)->server);
}

static bool ready(const void *state)
{
	return sl_server_ready(((const struct tcp *)state)->server);
}

static uint16_t port(const void *state)
{
	return sl_server_port(((const struct tcp *)state)->server);
}

static void waits_for(const void *state, char *text, size_t bytes)
{
	const struct tcp *tcp = state;

	if (tcp->env.modules)
		snprintf(text, bytes, "front ends at %s:%u (sluice emulate %s)",
			 tcp->env.experiment->control.address, port(state), tcp->env.file);
}

static void start(void *state, uint64_t now_ns)
{
	sl_server_start(((struct tcp *)state)->server, now_ns);
}

static void stop(void *state)
{
	struct tcp *tcp = state;

	tcp->stopping = true;
	sl_server_stop(tcp->server);
}

static void abandon(void *state)
{
	sl_server_abandon(((struct tcp *)state)->server);
}

static void bye(void *state, bool more)
{
	struct tcp *tcp = state;

	tcp->bye_ns = tcp->now_ns;
	tcp->more = more;
	sl_server_bye(tcp->server, more);
}

static int again(void *state, const struct sl_control_env *env)
{
	struct tcp *tcp = state;

	tcp->env = *env;
	tcp->stopping = tcp->more = false;
	tcp->bye_ns = 0;
	tcp->now_ns = sl_clock_ns();
	sl_server_again(tcp->server, tcp->now_ns);
	return 0;
}

/* A front end that hangs up first has heard BYE, and leaves no port of ours in TIME_WAIT. */
static bool leaving(const void *state)
{
	const struct tcp *tcp = state;

	return tcp->bye_ns && !tcp->more && tcp->now_ns - tcp->bye_ns < LEAVING_NS &&
	       sl_server_connected(tcp->server);
}

const struct sl_control sl_control_tcp = {
	.name = "tcp",
	.doc = "front ends connect, offer modules, get plans and count what they send",
	.state_bytes = sizeof(struct tcp),
	.port_option = "control.port",
	.modules = modules,
	.open = open,
	.close = close_server,
	.fds = fds,
	.poll = poll_server,
	.planned = planned,
	.ready = ready,
	.port = port,
	.waits_for = waits_for,
	.start = start,
	.stop = stop,
	.abandon = abandon,
	.bye = bye,
	.leaving = leaving,
	.again = again,
};
