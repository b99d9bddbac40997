/* chain.c - finds each stage's input by name, and gives each output its place in a frame's
 * results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/registry.h"
#include "receiver/chain.h"

static struct sl_shape raw_shape(const struct sl_geometry *geometry)
{
	return (struct sl_shape){
		.name = "raw",
		.dtype = geometry->dtype,
		.rank = 2,
		.dim = {geometry->modules * geometry->rows, geometry->columns},
		.image = 1,
	};
}

/* The latest output of that name; raw pixels are always there. */
static int find_input(const struct sl_chain_build *build, const struct sl_env *env,
		      const char *name)
{
	if (!strcmp(name, "raw"))
		return SL_CHAIN_RAW;
	for (int i = (int)build->results - 1; i >= 0; i--)
		if (!strcmp(build->result[i].name, name))
			return i;
	/* Counting detectors send images. Others have gains, and raw pixels of theirs mean nothing
	 * before these were applied; or they send events, which are no images. */
	return !strcmp(name, "image") && !sl_calibration_has_gains(env->calibration) &&
			       !env->geometry->items
		       ? SL_CHAIN_RAW
		       : SL_CHAIN_NONE;
}

static int check_outputs(const struct sl_chain_build *build, const struct sl_chain_stage *stage)
{
	if (build->results + stage->terms.outputs > SL_RESULTS) {
		sl_error("stage '%s': all stages together add more than %d results",
			 stage->ops->name, SL_RESULTS);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < stage->terms.outputs; i++)
		for (uint32_t k = 0; k < build->results; k++)
			if (!strcmp(build->result[k].name, stage->terms.output[i].name)) {
				sl_error("stage '%s' adds '%s', and so does one before it: results "
					 "need names of their own",
					 stage->ops->name, build->result[k].name);
				return -EINVAL;
			}
	return 0;
}

static int add_outputs(struct sl_chain_build *build, struct sl_chain_stage *stage)
{
	int err = check_outputs(build, stage);

	if (err)
		return err;
	for (uint32_t i = 0; i < stage->terms.constants && build->constants < SL_RESULTS; i++)
		build->constant[build->constants++] = stage->terms.constant[i];
	for (uint32_t i = 0; i < stage->terms.outputs; i++) {
		if (i == 0 && stage->ops->tile && stage->terms.output[i].image)
			stage->output = (int)build->results;
		build->result[build->results++] = stage->terms.output[i];
	}
	return 0;
}

static int add(struct sl_chain_build *build, const struct sl_stage *ops, void *state,
	       const struct sl_env *env)
{
	struct sl_chain *chain = &build->chain;
	struct sl_chain_stage *stage = &chain->stage[chain->stages];
	struct sl_shape raw = raw_shape(env->geometry);
	int err;

	*stage = (struct sl_chain_stage){.ops = ops, .state = state, .output = SL_CHAIN_NONE};
	stage->input = find_input(build, env, ops->input);
	if (stage->input == SL_CHAIN_NONE) {
		sl_error("stage '%s' needs '%s', which no stage before it makes", ops->name,
			 ops->input);
		return -EINVAL;
	}
	stage->in = stage->input == SL_CHAIN_RAW ? raw : build->result[stage->input];
	stage->terms.input = stage->input;
	stage->terms.result = (int)build->results;
	stage->terms.before = build->result;
	chain->stages++; /* from here on close() is due, even if open() fails */
	err = ops->open ? ops->open(state, env, &stage->in, &stage->terms) : 0;
	if (err) {
		sl_error("stage '%s' cannot be opened: %s", ops->name, strerror(-err));
		return err;
	}
	stage->terms.before = NULL;
	if (stage->terms.as)
		stage->ops = stage->terms.as;
	return add_outputs(build, stage);
}

/* A sink asks for raw pixels, and no stage of the experiment makes them a result already. */
static bool wants_raw(const struct sl_experiment *e)
{
	for (unsigned i = 0; i < e->stages; i++)
		if (!strcmp(e->stage[i]->name, "copy"))
			return false;
	for (unsigned i = 0; i < e->sinks; i++)
		if (sl_sink_wants(e->sink[i], e->sink_state[i]) & SL_WANT_RAW)
			return true;
	return false;
}

static bool is_read(const struct sl_experiment *e, const char *image)
{
	for (unsigned i = 0; i < e->sinks; i++)
		if (!e->sink[i]->reads || e->sink[i]->reads(e->sink_state[i], image))
			return true;
	return false;
}

/* As a whole, in its finish(). */
static bool is_read_by_a_stage(const struct sl_chain *chain, int result)
{
	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].terms.reads >> result & 1)
			return true;
	return false;
}

/* Images need not be written to memory when only the next stages read them; results of rejected
 * frames need not come back from a device unless somebody reads them. */
static void mark_unread(const struct sl_experiment *e, struct sl_chain_build *build)
{
	for (unsigned s = 0; s < build->chain.stages; s++) {
		struct sl_chain_stage *stage = &build->chain.stage[s];

		stage->unread = stage->output != SL_CHAIN_NONE &&
				!is_read(e, build->result[stage->output].name) &&
				!is_read_by_a_stage(&build->chain, stage->output);
	}
	for (unsigned i = 0; i < e->sinks; i++) {
		uint32_t wants = sl_sink_wants(e->sink[i], e->sink_state[i]);

		if (wants & (SL_WANT_REJECTED_RESULTS | SL_WANT_REJECTED_IMAGES))
			build->chain.rejected_read = 1;
		if (wants & SL_WANT_REJECTED_IMAGES)
			build->chain.rejected_images = 1;
	}
}

/* Pixels of the other detectors. */
static int add_parts(const struct sl_env *env, struct sl_chain_build *build)
{
	int err = 0;

	for (uint32_t i = 0; i < env->others && !err; i++) {
		build->part[i].detector = &env->other[i];
		err = add(build, &sl_part_stage, &build->part[i], env);
	}
	return err;
}

int sl_chain_open(const struct sl_experiment *e, const struct sl_env *env,
		  struct sl_chain_build *build)
{
	int err = 0;

	*build = (struct sl_chain_build){0};
	build->chain.geometry = env->geometry;
	build->chain.batch_frames = env->batch_frames;
	if (wants_raw(e)) {
		const struct sl_stage *copy = sl_stage_find("copy");

		build->copy_state = calloc(1, copy->state_bytes ? copy->state_bytes : 1);
		if (!build->copy_state)
			return -ENOMEM;
		if (copy->options)
			sl_options_defaults(copy->options, build->copy_state);
		err = add(build, copy, build->copy_state, env);
	}
	if (!err)
		err = add_parts(env, build);
	for (unsigned i = 0; i < e->stages && !err; i++)
		err = add(build, e->stage[i], e->stage_state[i], env);
	if (err)
		sl_chain_close(build);
	else
		mark_unread(e, build);
	return err;
}

void sl_chain_close(struct sl_chain_build *build)
{
	while (build->chain.stages) {
		struct sl_chain_stage *stage = &build->chain.stage[--build->chain.stages];

		if (stage->ops->close)
			stage->ops->close(stage->state);
	}
	free(build->copy_state);
	build->copy_state = NULL;
}
