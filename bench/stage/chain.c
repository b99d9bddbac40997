/* chain.c - what is measured: the row's stages, joined as the pipeline joins them, in
 * the cpu unit, over the frames of a scene. Only the link, the assembler and the sinks are not
 * there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/gpu/ingest.h"
#include "bench/stage/stage.h"
#include "core/gpu.h"
#include "core/registry.h"

/* ---- photons that are there already ---- */

static const struct sl_option no_options[] = {SL_OPTION_END};

static int open_given(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	terms->outputs = 1;
	terms->output[0] = *in;
	strcpy(terms->output[0].name, "image");
	terms->output[0].dtype = SL_I16;
	return 0;
}

static void frame_given(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
}

/* Stands for `correct` where the stages after it are measured alone: the result is in the frame
 * before it runs. A stage of frames, not of tiles: nobody moves what it "makes". */
static int open_given_gpu(void *state, const struct sl_gpu_env *env,
			  const struct sl_chain_stage *stage)
{
	return 0;
}

static void close_given_gpu(void *state)
{
}

static int enqueue_given(void *state, const struct sl_gpu_batch *batch)
{
	return 0;
}

/* On an accelerator, too: whoever measures has put it there. */
static const struct sl_gpu given_gpu = {.state_bytes = 1,
					.open = open_given_gpu,
					.close = close_given_gpu,
					.enqueue = enqueue_given};

static const struct sl_stage given = {
	.name = "image",
	.doc = "photons that are there already",
	.state_bytes = 1,
	.options = no_options,
	.input = "raw",
	.gpu = &given_gpu,
	.open = open_given,
	.frame = frame_given,
};

/* ---- who reads the images that stages make: they must go to memory, or need not ---- */

static int reads(const void *state, const char *image)
{
	return 1;
}

static const struct sl_sink reader = {.name = "reader", .reads = reads};

/* ---- stages by name ---- */

static int set_option(const struct sl_stage *stage, void *state, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(stage->options, name);
	char why[128];

	if (!option) {
		sl_error("stage '%s' has no option '%s'", stage->name, name);
		return -ENODEV;
	}
	if (sl_option_set(option, state, text, why, sizeof(why)) != 0) {
		sl_error("stage '%s': %s: '%s': %s", stage->name, name, text, why);
		return -ENODEV;
	}
	return 0;
}

/* "name=value,name=value"; the value HIGH is where the radial range of the scene ends. */
static int set_options(const struct sl_bench_scene *scene, const struct sl_stage *stage,
		       void *state, char *text)
{
	char high[32];
	char *rest = NULL;
	int err = 0;

	for (char *word = text ? strtok_r(text, ",", &rest) : NULL; word && !err;
	     word = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(word, '=');

		if (!equals)
			return -EINVAL;
		*equals = '\0';
		snprintf(high, sizeof(high), "%.17g", scene->high);
		err = set_option(stage, state, word,
				 strcmp(equals + 1, "HIGH") ? equals + 1 : high);
	}
	return err;
}

static int add_stage(struct sl_bench_subject *s, char *word)
{
	char *colon = strchr(word, ':');
	const struct sl_stage *stage;
	void *state;
	int err;

	if (colon)
		*colon = '\0';
	stage = !strcmp(word, given.name)		      ? &given
		: !strcmp(word, sl_bench_checksum_stage.name) ? &sl_bench_checksum_stage
							      : sl_stage_find(word);
	if (!stage) {
		sl_error("no stage '%s' in this program", word);
		return -ENODEV;
	}
	state = calloc(1, stage->state_bytes ? stage->state_bytes : 1);
	if (!state)
		return -ENOMEM;
	sl_options_defaults(stage->options, state);
	err = set_options(s->scene, stage, state, colon ? colon + 1 : NULL);
	if (!err && s->row->vectors && sl_option_find(stage->options, "vectors"))
		err = set_option(stage, state, "vectors", s->row->vectors);
	s->e.stage[s->e.stages] = stage;
	s->e.stage_state[s->e.stages++] = state;
	return err;
}

static int open_chain(struct sl_bench_subject *s)
{
	char text[256], *rest = NULL;
	int err = 0;

	snprintf(text, sizeof(text), "%s", s->row->work->chain);
	for (char *word = strtok_r(text, " ", &rest); word && !err;
	     word = strtok_r(NULL, " ", &rest))
		err = add_stage(s, word);
	if (!s->row->work->unread)
		s->e.sink[s->e.sinks++] = &reader;
	return err ? err : sl_chain_open(&s->e, &s->env, &s->build);
}

static int open_unit(struct sl_bench_subject *s)
{
	const struct sl_option *option;
	unsigned workers;
	char text[16], why[128];

	s->unit = sl_unit_find("cpu");
	s->unit_state = s->unit ? calloc(1, s->unit->state_bytes) : NULL;
	if (!s->unit_state)
		return -ENOMEM;
	sl_options_defaults(s->unit->options, s->unit_state);
	option = sl_option_find(s->unit->options, "workers");
	snprintf(text, sizeof(text), "%u", s->row->cores);
	if (!option || sl_option_set(option, s->unit_state, text, why, sizeof(why)))
		return -EINVAL;
	return s->unit->open(s->unit_state, &s->build.chain, &s->todo, &s->done, &workers);
}

/* ---- frames ---- */

static bool is_given(const struct sl_bench_subject *s)
{
	return s->e.stage[0] == &given;
}

static void *block_of(const struct sl_bench_scene *scene, uint32_t frame, uint32_t module)
{
	const struct sl_geometry *g = &scene->geometry;

	if (!scene->events)
		return scene->raw + frame * scene->pixels;
	return scene->events + ((uint64_t)frame * g->modules + module) * g->module_bytes;
}

/* Those of the scene; where many cores work on several batches, as many times as it takes for eight
 * batches that have results of their own. */
static uint32_t frames_of(const struct sl_bench_subject *s)
{
	uint32_t n = s->scene->frames;

	while (s->row->cores > 2 && n < 8 * s->row->stack)
		n += s->scene->frames;
	return n;
}

/* Results in memory of their own, but for an image that is given. */
static int open_frames(struct sl_bench_subject *s)
{
	const struct sl_geometry *g = &s->scene->geometry;
	struct sl_shape result[SL_RESULTS];
	int err;

	memcpy(result, s->build.result, sizeof(result));
	if (is_given(s))
		result[0].dim[0] = 0;
	err = sl_pool_init(&s->pool, frames_of(s), g->modules, 1, sl_geometry_frame_items(g),
			   result, s->build.results);
	for (uint32_t i = 0; !err && i < s->pool.count; i++) {
		struct sl_frame *frame = &s->pool.frames[i].frame;

		frame->sequence = frame->number = i;
		frame->flags = SL_FRAME_COMPLETE;
		for (uint32_t m = 0; m < g->modules; m++) {
			frame->view[m].pixels.host = block_of(s->scene, i % s->scene->frames, m);
			frame->view[m].outcome = SL_NO_OUTCOME;
		}
		if (is_given(s)) {
			frame->result[0].shape = s->build.result[0];
			frame->result[0].host = s->scene->image +
						i % s->scene->frames * s->scene->pixels;
		}
	}
	return err;
}

static int open_batches(struct sl_bench_subject *s)
{
	uint32_t stack = s->row->stack;

	s->batches = s->pool.count / stack;
	s->batch = calloc(s->batches, sizeof(*s->batch));
	s->line = calloc(s->pool.count, sizeof(*s->line));
	if (!s->batch || !s->line)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->pool.count; i++)
		s->line[i] = &s->pool.frames[i].frame;
	for (uint32_t b = 0; b < s->batches; b++)
		s->batch[b] = (struct sl_batch){
			.frame = s->line + b * stack, .frames = stack, .capacity = stack};
	return 0;
}

int sl_bench_subject_open(struct sl_bench_subject *s, const struct sl_bench_row *row,
			  const struct sl_bench_scene *scene)
{
	static const struct sl_refine_options tilt = {.rot1 = 0.3,
						      .rot2 = -0.2,
						      .beam_row = SL_REFINE_NO_BEAM,
						      .beam_column = SL_REFINE_NO_BEAM};
	int err;

	s->row = row;
	s->scene = scene;
	s->geometry = scene->geometry;
	err = row->work->tilted ? sl_refine(&tilt, &s->geometry, &s->refined) : 0;
	if (err)
		return err;
	s->env = (struct sl_env){
		.geometry = &s->geometry,
		.calibration = &scene->calibration,
		.batch_frames = row->stack,
		.link = "",
		.guard = "",
		.proof = "",
		.experiment = "",
	};
	err = open_chain(s);
	if (err)
		return err;
	s->env.result = s->build.result;
	s->env.results = s->build.results;
	err = row->gpu ? 0 : open_unit(s);
	if (!err)
		err = open_frames(s);
	return err ? err : open_batches(s);
}

void sl_bench_subject_close(struct sl_bench_subject *s)
{
	if (s->unit_state)
		s->unit->close(s->unit_state);
	free(s->unit_state);
	sl_chain_close(&s->build);
	for (unsigned i = 0; i < s->e.stages; i++)
		free(s->e.stage_state[i]);
	sl_pool_fini(&s->pool);
	sl_refined_free(&s->refined);
	free(s->batch);
	free(s->line);
}
