/* plugin_good.c - a plug-in with a stage and a sink that do nothing, for the tests of loading. */
#include <sluice/plugin.h>

struct nothing {
	uint32_t depth;
};

static const struct sl_option options[] = {
	SL_U32(struct nothing, depth, 3, 1, 9, "layers", "an option, so that there is one"),
	SL_OPTION_END,
};

static int open_stage(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	return 0;
}

static void close_stage(void *state)
{
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
}

static int open_sink(void *state, const struct sl_env *env)
{
	return 0;
}

static int put(void *state, struct sl_frame *frame)
{
	return 0;
}

static int close_sink(void *state, const struct sl_status *status)
{
	return 0;
}

static const struct sl_stage stage = {
	.name = "fixture",
	.doc = "a stage that does nothing",
	.state_bytes = sizeof(struct nothing),
	.options = options,
	.input = "raw",
	.open = open_stage,
	.close = close_stage,
	.finish = finish,
};

static const struct sl_sink sink = {
	.name = "fixture",
	.doc = "a sink that does nothing",
	.state_bytes = sizeof(struct nothing),
	.options = options,
	.open = open_sink,
	.put = put,
	.close = close_sink,
};

static const struct sl_stage *const stages[] = {&stage, NULL};
static const struct sl_sink *const sinks[] = {&sink, NULL};

SL_PUBLIC const struct sl_plugin sl_plugin = {
	SL_PLUGIN_HEAD,	  .name = "fixture",
	.version = "1.2", .doc = "a stage and a sink for the tests of loading",
	.stages = stages, .sinks = sinks,
};
