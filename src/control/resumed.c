/* resumed.c - control driver `resumed`: sources that were taken over from an earlier receiver, and
 * do not speak to this one.
 *
 * Model:     a source has ended when it was seen to send all that it offered to its first receiver;
 *            it is gone when nothing came for silence_s, unless it waits for slots. Stopping means
 *            to open no more slots and take what comes into those that are open, or not to listen
 *            any more to a source that cannot be held back. */
#include "base/log.h"
#include "control/controls.h"
#include "experiment/experiment.h"

enum { MODULES = 64 };

struct resumed {
	struct sl_control_env env;
	struct sl_watch_limits limits;
	bool started, stopping;
	struct resumed_module {
		struct sl_watch watch;
		bool over;
	} module[MODULES];
};

static int modules(const struct sl_experiment *e, bool resumed)
{
	return resumed ? (int)e->run.modules : -1;
}

static int open(void *state, const struct sl_control_env *env)
{
	struct resumed *r = state;
	const struct sl_experiment *e = env->experiment;
	double silence_s = e->feroce.enable ? e->feroce.silence_s : e->control.silence_s;

	r->env = *env;
	r->limits.first_ns = r->limits.silence_ns = (uint64_t)(silence_s * 1e9);
	return 0;
}

static void close_nothing(void *state)
{
}

/* It has sent all that it offered, or, after a stop, all that it will. */
static bool has_ended(const struct resumed *r, const struct sl_progress *progress,
		      enum sl_watch_says says)
{
	if (progress->reached >= progress->end && sl_progress_between_blocks(progress))
		return true;
	return r->stopping && (says == SL_WATCH_HELD || says == SL_WATCH_DRAINED);
}

static void poll_sources(void *state, uint64_t now_ns)
{
	struct resumed *r = state;

	for (uint32_t i = 0; r->started && i < r->env.modules; i++) {
		struct resumed_module *m = &r->module[i];
		struct sl_progress progress;
		enum sl_watch_says says;

		if (m->over)
			continue;
		r->env.ops->progress(r->env.arg, i, &progress);
		says = sl_watch_module(&m->watch, &r->limits, &progress, now_ns);
		if (has_ended(r, &progress, says)) {
			m->over = true;
			r->env.ops->end(r->env.arg, i);
		} else if (says == SL_WATCH_SILENT) {
			m->over = true;
			sl_warn("the source of module %u fell silent (%s.silence_s)", i,
				r->env.experiment->feroce.enable ? "feroce" : "control");
			r->env.ops->source_lost(r->env.arg, i);
		}
	}
}

static uint32_t planned(const void *state)
{
	return ((const struct resumed *)state)->env.modules;
}

static bool ready(const void *state)
{
	return true;
}

static void start(void *state, uint64_t now_ns)
{
	((struct resumed *)state)->started = true;
	poll_sources(state, now_ns); /* from now on silence counts */
}

static void stop(void *state)
{
	struct resumed *r = state;
	struct sl_progress progress[MODULES];
	uint64_t opened = 0;

	if (r->stopping)
		return;
	r->stopping = true;
	for (uint32_t i = 0; i < r->env.modules; i++) {
		r->env.ops->progress(r->env.arg, i, &progress[i]);
		if (progress[i].opened > opened)
			opened = progress[i].opened;
	}
	for (uint32_t i = 0; i < r->env.modules; i++) {
		if (progress[i].waits) {
			r->env.ops->limit(r->env.arg, opened);
		} else if (!r->module[i].over) {
			r->module[i].over = true;
			r->env.ops->cut(r->env.arg, i);
		}
	}
}

static void abandon(void *state)
{
	struct resumed *r = state;

	for (uint32_t i = 0; i < r->env.modules; i++) {
		if (!r->module[i].over)
			r->env.ops->source_lost(r->env.arg, i);
		r->module[i].over = true;
	}
}

const struct sl_control sl_control_resumed = {
	.name = "resumed",
	.doc = "sources of an earlier receiver go on by the plans that it gave",
	.state_bytes = sizeof(struct resumed),
	.modules = modules,
	.open = open,
	.close = close_nothing,
	.poll = poll_sources,
	.planned = planned,
	.ready = ready,
	.start = start,
	.stop = stop,
	.abandon = abandon,
};
