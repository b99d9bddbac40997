/* null.c - takes every frame and keeps nothing: what the rest costs without a file.
 *
 * Cost: two additions per frame. */
#include <sluice/sink.h>

struct null {
	uint64_t frames, bytes;
};

static const struct sl_option options[] = {SL_OPTION_END};

static int reads(const void *state, const char *image)
{
	return 0;
}

static int open_null(void *state, const struct sl_env *env)
{
	return 0;
}

static int put(void *state, struct sl_frame *frame)
{
	struct null *null = state;

	null->frames++;
	for (uint32_t i = 0; i < frame->results; i++)
		null->bytes += sl_shape_bytes(&frame->result[i].shape);
	return 0;
}

static int close_null(void *state, const struct sl_status *status)
{
	return 0;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct null *null = state;

	figure(arg, "frames", null->frames, 0);
	figure(arg, "bytes", null->bytes, 0);
}

const struct sl_sink sl_sink_null = {
	.name = "null",
	.doc = "takes every frame and keeps nothing",
	.state_bytes = sizeof(struct null),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.reads = reads,
	.open = open_null,
	.put = put,
	.close = close_null,
	.figures = figures,
};
