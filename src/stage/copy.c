/* copy.c - raw pixels as a result, so that they outlive the slot. The pipeline adds it when a sink
 * wants raw pixels.
 *
 * Cost: one copy; the tile is then in cache for the stages that follow. */
#include <string.h>

#include <sluice/stage.h>

struct copy {
	size_t pixel_bytes;
};

static const struct sl_option options[] = {SL_OPTION_END};

static int open_copy(void *state, const struct sl_env *env, const struct sl_shape *in,
		     struct sl_stage_terms *terms)
{
	((struct copy *)state)->pixel_bytes = sl_dtype_bytes(in->dtype);
	terms->outputs = 1;
	terms->output[0] = *in;
	strcpy(terms->output[0].name, "raw");
	terms->output[0].image = 1;
	return 0;
}

static void close_copy(void *state)
{
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	size_t bytes = tile->count * ((const struct copy *)state)->pixel_bytes;

	for (uint32_t f = 0; f < batch->frames; f++)
		memcpy(tile->out[f], tile->in[f], bytes);
}

const struct sl_stage sl_stage_copy = {
	.name = "copy",
	.doc = "keeps the raw pixels as a result",
	.state_bytes = sizeof(struct copy),
	.options = options,
	.input = "raw",
	.open = open_copy,
	.close = close_copy,
	.tile = tile,
};
