/* silence.c - front ends of which nothing more is to be expected. */
#include "control/tcp/server_private.h"

static bool owes_counts(const struct sl_server *server, const struct connection *c)
{
	for (uint32_t m = 0; m < server->options.modules; m++)
		if (server->module[m].owner == c && !server->module[m].over)
			return true;
	return false;
}

/* What was seen of the data of its modules. */
static struct sl_sight sight_of(const struct sl_server *server, const struct connection *c)
{
	struct sl_sight sight = {.word_ns = c->heard_ns};

	for (uint32_t m = 0; server->ops->progress && m < server->options.modules; m++) {
		struct sl_progress progress;

		if (c->phase != RUNNING || server->module[m].owner != c)
			continue;
		server->ops->progress(server->arg, m, &progress);
		sight.arrived += progress.reached;
		sight.packets += progress.packets;
		if (!sight.looked_ns || progress.looked_ns < sight.looked_ns)
			sight.looked_ns = progress.looked_ns;
	}
	return sight;
}

/* Nothing more will come of one of its modules, whatever it says. */
static bool has_failed(const struct sl_server *server, const struct connection *c)
{
	for (uint32_t m = 0; server->ops->progress && m < server->options.modules; m++) {
		struct sl_progress progress;

		if (server->module[m].owner != c || server->module[m].over)
			continue;
		server->ops->progress(server->arg, m, &progress);
		if (progress.failed)
			return true;
	}
	return false;
}

/* A front end that hangs, or a stranger that connects and waits. A front end that has a plan may
 * wait as long as the others need; one that is done has nothing more to say. */
void sl_server_check_silence(struct sl_server *server, struct connection *c)
{
	uint64_t limit_ns = server->options.silence_ms * UINT64_C(1000000);
	const struct sl_watch_limits limits = {.first_ns = limit_ns, .silence_ns = limit_ns};
	struct sl_sight sight;

	if (c->phase == READY || (c->phase == RUNNING && !owes_counts(server, c)))
		return;
	if (c->phase == RUNNING && has_failed(server, c) && !c->failed_ns)
		c->failed_ns = server->now_ns;
	if (c->failed_ns && limit_ns && server->now_ns - c->failed_ns > limit_ns) {
		sl_server_refuse(server, c, "its reliable connection failed");
		return;
	}
	sight = sight_of(server, c);
	if (sl_watch_look(&c->watch, &limits, &sight, server->now_ns) == SL_WATCH_SILENT)
		sl_server_refuse(server, c, "nothing heard from it for %g s",
				 server->options.silence_ms * 1e-3);
}
