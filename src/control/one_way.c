/* one_way.c - control driver `one_way`: sources that cannot be asked and hear nothing.
 *
 * Model:     a native UDP detector sends when it likes, and says neither that it begins nor that it
 *            ends. So the receiver makes the offers itself, out of the experiment (core/link.h, one
 *            way), opens all its slots, and waits. A module is over
 *              - when its last frame was reached;
 *              - when another module's was, and nothing has come for a second: the detector sent
 *                that frame, and this module's part of it was lost;
 *              - when nothing has come of any module for silence_s: it is gone (an endless run
 *                waits on: a detector without triggers is no trouble there);
 *              - when the run is stopped: it may go on sending, and is listened to no more.
 *            What it sent is what was seen of it. */
#include "base/log.h"
#include "control/controls.h"
#include "experiment/experiment.h"

#define LAG_NS UINT64_C(1000000000) /* that a module may be behind the others at the end */

enum { MODULES = 64 };

struct one_way {
	struct sl_control_env env;
	uint64_t frames; /* of the run; UINT64_MAX: it is endless */
	uint32_t planned;
	uint16_t port; /* of the first module */
	bool started, over[MODULES];
	/* All modules are watched together: one that misses frames is late, not silent. */
	struct sl_watch_limits limits;
	struct sl_watch watch, lag;
};

static int modules(const struct sl_experiment *e, bool resumed)
{
	return e->link->oneway ? (int)e->run.modules : -1;
}

static int plan(struct one_way *o, uint32_t module)
{
	const struct sl_control_env *env = &o->env;
	const struct sl_geometry *g = env->geometry;
	struct sl_offer offer = {
		.module = (uint16_t)module,
		.block_bytes = g->module_bytes,
		.lines = g->rows,
		.line_bytes = (uint32_t)(g->module_bytes / g->rows),
		.first_frame = g->first_frame,
		.frame_step = g->frame_step,
		.frames = o->frames == UINT64_MAX ? 0 : o->frames,
		.darks = sl_detector_darks(&env->experiment->run),
	};
	char why[160] = "";
	struct sl_plan made;
	int err = env->ops->offer(env->arg, &offer);

	if (!err) /* times of records are ours, wherever the detector is */
		err = env->ops->accept(env->arg, &offer, true, &made, why, sizeof(why));
	if (err && why[0])
		sl_error("module %u: %s", module, why);
	if (err)
		return err;
	if (!module)
		o->port = made.dest.port;
	o->planned++;
	return 0;
}

static int open(void *state, const struct sl_control_env *env)
{
	struct one_way *o = state;
	const struct sl_experiment *e = env->experiment;
	int err = 0;

	o->env = *env;
	o->frames = sl_detector_frames(&e->run, env->geometry);
	o->limits = (struct sl_watch_limits){
		/* wait_s 0: do not wait; a limit of 0 would be no limit. */
		.first_ns = 1 + (uint64_t)(e->control.wait_s * 1e9),
		.silence_ns = (uint64_t)(e->control.silence_s * 1e9),
		.looks = SL_WATCH_LOOKS,
	};
	/* Frames beyond the run have no slot. */
	env->ops->limit(env->arg, o->frames);
	for (uint32_t m = 0; m < env->modules && !err; m++)
		err = plan(o, m);
	return err;
}

static void close_nothing(void *state)
{
}

/* All that will come of it has come, or will within a moment: the dispatcher waits for that. */
static void finish(struct one_way *o, uint32_t module)
{
	const struct sl_control_env *env = &o->env;
	char why[160] = "";

	o->over[module] = true;
	if (env->ops->count(env->arg, module, o->frames, o->frames, 0, true, why, sizeof(why))) {
		sl_warn("%s", why);
		env->ops->source_lost(env->arg, module);
	}
}

static void lose(struct one_way *o, uint32_t module, uint64_t reached)
{
	o->over[module] = true;
	if (o->watch.seen.arrived)
		sl_warn("module %u: nothing came for %g s (control.silence_s), after %llu of the "
			"%llu frames of this run",
			module, (double)o->limits.silence_ns * 1e-9, (unsigned long long)reached,
			(unsigned long long)o->frames);
	else
		sl_warn("module %u: nothing came within %g s (control.wait_s)", module,
			(double)o->limits.first_ns * 1e-9);
	o->env.ops->source_lost(o->env.arg, module);
}

static void poll_sources(void *state, uint64_t now_ns)
{
	static const struct sl_watch_limits lag_limits = {
		.first_ns = LAG_NS, .silence_ns = LAG_NS, .looks = SL_WATCH_LOOKS};
	struct one_way *o = state;
	struct sl_progress progress[MODULES];
	struct sl_sight sight = {.arrived = 0};
	uint64_t newest = 0;
	bool silent, lags;

	if (!o->started)
		return;
	for (uint32_t m = 0; m < o->env.modules; m++) {
		o->env.ops->progress(o->env.arg, m, &progress[m]);
		newest = progress[m].reached > newest ? progress[m].reached : newest;
		sight.arrived = progress[m].arrived;
		sight.idle = progress[m].idle;
		if (!m || progress[m].looked_ns < sight.looked_ns)
			sight.looked_ns = progress[m].looked_ns;
	}
	silent = sl_watch_look(&o->watch, &o->limits, &sight, now_ns) == SL_WATCH_SILENT;
	lags = sl_watch_look(&o->lag, &lag_limits, &sight, now_ns) == SL_WATCH_SILENT &&
	       newest >= o->frames;
	for (uint32_t m = 0; m < o->env.modules; m++) {
		if (o->over[m])
			continue;
		if (progress[m].reached >= o->frames || lags)
			finish(o, m);
		else if (silent && o->frames != UINT64_MAX)
			lose(o, m, progress[m].reached);
	}
}

static uint32_t planned(const void *state)
{
	return ((const struct one_way *)state)->planned;
}

static bool ready(const void *state)
{
	return true;
}

static uint16_t port(const void *state)
{
	return ((const struct one_way *)state)->port;
}

static void start(void *state, uint64_t now_ns)
{
	((struct one_way *)state)->started = true;
	poll_sources(state, now_ns); /* from now on silence counts */
}

static void hurry(void *state)
{
	struct sl_watch_limits *limits = &((struct one_way *)state)->limits;

	if (limits->first_ns > LAG_NS)
		limits->first_ns = LAG_NS;
	if (!limits->silence_ns || limits->silence_ns > LAG_NS)
		limits->silence_ns = LAG_NS;
}

static void stop(void *state)
{
	struct one_way *o = state;

	for (uint32_t m = 0; m < o->env.modules; m++) {
		if (!o->over[m])
			o->env.ops->cut(o->env.arg, m);
		o->over[m] = true;
	}
}

const struct sl_control sl_control_one_way = {
	.name = "one_way",
	.doc = "sources that cannot be asked: offers are made for them, and what arrives is "
	       "counted",
	.state_bytes = sizeof(struct one_way),
	.starts_alone = true,
	.port_option = "link.port",
	.modules = modules,
	.open = open,
	.close = close_nothing,
	.poll = poll_sources,
	.planned = planned,
	.ready = ready,
	.port = port,
	.start = start,
	.stop = stop,
	.hurry = hurry,
	.abandon = stop,
};
