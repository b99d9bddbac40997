/* driver.c - control driver `feroce`: front ends with FEROCE's connection manager. */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "control/controls.h"
#include "control/feroce/server.h"
#include "experiment/experiment.h"

struct feroce {
	struct sl_feroce_server *server; /* NULL: not open */
	uint32_t modules;
};

static int modules(const struct sl_experiment *e, bool resumed)
{
	return e->feroce.enable && !resumed && !e->link->oneway ? (int)e->run.modules : -1;
}

static int open(void *state, const struct sl_control_env *env)
{
	struct feroce *feroce = state;
	const struct sl_experiment *e = env->experiment;
	uint64_t all = sl_detector_frames(&e->run, env->geometry);
	struct sl_link_facts facts;
	struct sl_feroce_server_options options = {
		.address = e->feroce.address,
		.port = (uint16_t)e->feroce.port,
		.allow = e->feroce.allow,
		.open = e->feroce.open,
		.host = {.modules = env->modules,
			 .block_bytes = e->feroce.record ? env->block_bytes : env->pixel_bytes,
			 .bare = !e->feroce.record,
			 .frames = all == UINT64_MAX ? 0 : all,
			 .darks = sl_detector_darks(&e->run),
			 .first_ms = (uint32_t)(e->feroce.first_s * 1000),
			 .silence_ms = (uint32_t)(e->feroce.silence_s * 1000)},
	};

	if (e->emulate_local) {
		sl_error("feroce.enable: the emulator is no FEROCE front end; run without "
			 "--emulate");
		return -EINVAL;
	}
	sl_link_facts(e->link, e->link_state, &facts);
	if (!e->feroce.address[0])
		options.address = facts.listen;
	feroce->modules = env->modules;
	env->ops->limit(env->arg, all);
	return sl_feroce_server_open(&options, env->ops, env->arg, &feroce->server);
}

static void close_server(void *state)
{
	struct feroce *feroce = state;

	if (feroce->server)
		sl_feroce_server_close(feroce->server);
	feroce->server = NULL;
}

static unsigned fds(void *state, struct pollfd *fds, unsigned most)
{
	return sl_feroce_server_fds(((struct feroce *)state)->server, fds, most);
}

static void poll_server(void *state, uint64_t now_ns)
{
	sl_feroce_server_poll(((struct feroce *)state)->server, now_ns);
}

static uint32_t planned(const void *state)
{
	return sl_feroce_server_planned(((const struct feroce *)state)->server);
}

static bool ready(const void *state)
{
	return sl_feroce_server_ready(((const struct feroce *)state)->server);
}

static void waits_for(const void *state, char *text, size_t bytes)
{
	snprintf(text, bytes, "%u FEROCE front ends", ((const struct feroce *)state)->modules);
}

static void start(void *state, uint64_t now_ns)
{
	sl_feroce_server_start(((struct feroce *)state)->server);
}

static void stop(void *state)
{
	sl_feroce_server_stop(((struct feroce *)state)->server);
}

static void abandon(void *state)
{
	sl_feroce_server_abandon(((struct feroce *)state)->server);
}

static void bye(void *state, bool more)
{
	sl_feroce_server_bye(((struct feroce *)state)->server);
}

static bool leaving(const void *state)
{
	return sl_feroce_server_leaving(((const struct feroce *)state)->server);
}

const struct sl_control sl_control_feroce = {
	.name = "feroce",
	.doc = "front ends with FEROCE's connection manager; how far they come is what arrives",
	.state_bytes = sizeof(struct feroce),
	.modules = modules,
	.open = open,
	.close = close_server,
	.fds = fds,
	.poll = poll_server,
	.planned = planned,
	.ready = ready,
	.waits_for = waits_for,
	.start = start,
	.stop = stop,
	.abandon = abandon,
	.bye = bye,
	.leaving = leaving,
};
