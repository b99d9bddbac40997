/* stage_rig.c - see stage_rig.h. */
#include "lib/stage_rig.h"

uint32_t rig_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

void rig_init(struct rig *rig, const struct sl_stage *ops, enum sl_dtype input)
{
	static const float pedestals[3] = {2446, 13584, 14100};
	static const float gains[3] = {41.0f, -1.439f, -0.1145f};

	*rig = (struct rig){.ops = ops, .state = calloc(1, ops->state_bytes)};
	sl_options_defaults(ops->options, rig->state);
	rig->geometry = (struct sl_geometry){
		.detector = "rig",
		.modules = RIG_MODULES,
		.rows = RIG_ROWS,
		.columns = RIG_COLUMNS,
		.dtype = SL_U16,
		.module_bytes = RIG_MODULE_PIXELS * 2,
		.photon_energy_keV = 12.4,
		.pixel_size_m = 75e-6,
		.distance_m = 0.002, /* large angles */
	};
	for (int t = 0; t < 6; t++) {
		rig->table[t] = calloc(RIG_PIXELS, sizeof(float));
		for (int i = 0; i < RIG_PIXELS; i++)
			rig->table[t][i] = t < 3 ? pedestals[t] + (float)(i % 50)
						 : gains[t - 3] * (1 + (float)(i % 7) * 0.01f);
	}
	for (int g = 0; g < 3; g++) {
		rig->calibration.pedestal[g] = rig->table[g];
		rig->calibration.gain[g] = rig->table[3 + g];
	}
	rig->env = (struct sl_env){.geometry = &rig->geometry,
				   .calibration = &rig->calibration,
				   .batch_frames = RIG_BATCH};
	rig->in = (struct sl_shape){
		.dtype = input, .rank = 3, .dim = {RIG_MODULES, RIG_ROWS, RIG_COLUMNS}};
	strcpy(rig->in.name, ops->input);
}

void rig_set_events(struct rig *rig, uint32_t events, uint32_t bytes, bool shared)
{
	assert_true(RIG_MODULES * events * bytes <= RIG_PIXELS * 4);
	assert_true(RIG_MODULES * events <= RIG_ITEMS);
	rig->geometry.rows = rig->geometry.items = events;
	rig->geometry.columns = bytes;
	rig->geometry.dtype = rig->in.dtype;
	rig->geometry.module_bytes = (uint64_t)events * bytes;
	rig->geometry.items_shared = shared;
	rig->events = true;
	rig->in.dim[1] = events;
	rig->in.dim[2] = bytes;
}

void rig_set(struct rig *rig, const char *option, const char *value)
{
	const struct sl_option *row = sl_option_find(rig->ops->options, option);
	char why[128];

	assert_non_null(row);
	assert_int_equal(sl_option_set(row, rig->state, value, why, sizeof(why)), 0);
}

int rig_try_open(struct rig *rig)
{
	int err;

	rig->terms = (struct sl_stage_terms){.input = SL_STAGE_RAW};
	err = rig->ops->open(rig->state, &rig->env, &rig->in, &rig->terms);
	rig->out = rig->terms.output[0];
	if (!err && rig->terms.as)
		rig->ops = rig->terms.as;
	for (int w = 0; w < RIG_WORKERS; w++)
		rig->scratch[w] = calloc(RIG_BATCH, rig->terms.scratch_bytes + 1);
	return err;
}

void rig_open(struct rig *rig)
{
	assert_int_equal(rig_try_open(rig), 0);
}

void rig_close(struct rig *rig)
{
	rig->ops->close(rig->state);
	for (int t = 0; t < 6; t++)
		free(rig->table[t]);
	for (int w = 0; w < RIG_WORKERS; w++)
		free(rig->scratch[w]);
	free(rig->state);
}

void rig_frame_init(struct rig_frame *f, bool dark)
{
	size_t bytes = (RIG_PIXELS + 2 * RIG_CANARY) * 4;

	*f = (struct rig_frame){.in_memory = malloc(bytes),
				.out_memory = aligned_alloc(64, bytes + 64 - bytes % 64)};
	memset(f->in_memory, RIG_POISON, bytes);
	memset(f->out_memory, RIG_POISON, bytes);
	f->in = f->in_memory + RIG_CANARY * 4;
	f->out = f->out_memory + RIG_CANARY * 4;
	f->frame.flags = SL_FRAME_COMPLETE | (dark ? SL_FRAME_DARK : 0);
	f->frame.items = 1;
	f->frame.views = RIG_MODULES;
	f->frame.view = f->view;
	f->frame.verdict = &f->verdict;
	f->verdict.keep = 1;
	for (int i = 0; i < RIG_ITEMS; i++)
		f->item[i].keep = 1;
}

void rig_frame_fini(struct rig_frame *f)
{
	free(f->in_memory);
	free(f->out_memory);
	for (int i = 0; i < SL_STAGE_OUTPUTS; i++)
		free(f->more[i]);
}

bool rig_is_image(const struct sl_shape *shape)
{
	return *shape->name && !shape->ragged && sl_shape_elements(shape) == RIG_PIXELS;
}

void rig_init_views(struct rig *rig, struct rig_frame *f)
{
	size_t canary = RIG_CANARY * 4;
	size_t module = RIG_MODULE_PIXELS * sl_dtype_bytes(rig->in.dtype);

	if (rig->events) {
		module = rig->geometry.module_bytes;
		f->frame.items = sl_geometry_frame_items(&rig->geometry);
		f->frame.verdict = f->item;
	}
	for (uint32_t m = 0; m < RIG_MODULES; m++)
		f->view[m].pixels.host = (char *)f->in + m * module;
	f->frame.results = rig->terms.outputs;
	for (uint32_t i = 0; i < rig->terms.outputs; i++) {
		struct sl_array *result = &f->frame.result[i];
		size_t bytes = sl_shape_bytes(&rig->terms.output[i]);

		result->shape = rig->terms.output[i];
		if (result->host)
			continue;
		if (i == 0 && rig->ops->tile && rig_is_image(&result->shape)) {
			result->host = f->out;
			continue;
		}
		f->more[i] = malloc(bytes + 2 * canary);
		memset(f->more[i], RIG_POISON, bytes + 2 * canary);
		result->host = f->more[i] + canary;
	}
}

void rig_check_canaries(const struct rig *rig, const struct rig_frame *f)
{
	size_t array = rig_is_image(&rig->out) ? sl_shape_bytes(&rig->out) : 0;
	const char *memory = f->out_memory;

	for (uint32_t o = 0; o < rig->terms.outputs; o++)
		for (size_t i = 0; f->more[o] && i < RIG_CANARY * 4; i++) {
			size_t bytes = sl_shape_bytes(&rig->terms.output[o]);

			assert_int_equal(f->more[o][i], RIG_POISON);
			assert_int_equal(f->more[o][RIG_CANARY * 4 + bytes + i], RIG_POISON);
		}

	for (size_t i = 0; i < (RIG_PIXELS + 2 * RIG_CANARY) * 4; i++)
		if (i < RIG_CANARY * 4 || i >= RIG_CANARY * 4 + array)
			assert_int_equal(memory[i], RIG_POISON);
}

void rig_tile(struct rig *rig, struct sl_batch *batch, struct rig_frame *frames, unsigned worker,
	      uint32_t module, uint32_t first, uint32_t count)
{
	const void *in[RIG_BATCH];
	void *out[RIG_BATCH];
	struct sl_tile tile = {module,
			       first,
			       count,
			       in,
			       rig_is_image(&rig->out) ? out : NULL,
			       .stream = rig->stream};
	size_t at = (size_t)module * RIG_MODULE_PIXELS + first;

	for (uint32_t f = 0; f < batch->frames; f++) {
		in[f] = (char *)frames[f].in + at * sl_dtype_bytes(rig->in.dtype);
		out[f] = (char *)frames[f].out + at * sl_dtype_bytes(rig->out.dtype);
	}
	rig->ops->tile(rig->state, rig->scratch[worker], batch, &tile);
}

void rig_batch(struct rig *rig, struct rig_frame *frames, uint32_t n, uint32_t tile,
	       unsigned workers)
{
	struct sl_frame *pointer[RIG_BATCH];
	struct sl_batch batch = {.frame = pointer, .frames = n, .capacity = RIG_BATCH};
	unsigned turn = 0;

	for (uint32_t f = 0; f < n; f++) {
		pointer[f] = &frames[f].frame;
		rig_init_views(rig, &frames[f]);
	}
	for (unsigned w = 0; w < workers; w++)
		for (uint32_t f = 0; f < n; f++) {
			size_t bytes = rig->terms.scratch_bytes, stale = rig->terms.stale_bytes;
			char *entry = (char *)rig->scratch[w] + f * bytes;

			memset(entry, 0, bytes - stale);
			memset(entry + bytes - stale, RIG_POISON, stale);
		}
	/* Backwards: no tile may count on the one before it. */
	for (uint32_t module = rig->ops->tile ? RIG_MODULES : 0; module-- > 0;)
		for (uint32_t first = (RIG_MODULE_PIXELS - 1) / tile * tile;; first -= tile) {
			uint32_t rest = RIG_MODULE_PIXELS - first;

			rig_tile(rig, &batch, frames, turn++ % workers, module, first,
				 rest < tile ? rest : tile);
			if (!first)
				break;
		}
	for (uint32_t f = 0; f < n && rig->ops->frame; f++)
		rig->ops->frame(rig->state,
				(char *)rig->scratch[f % workers] + f * rig->terms.scratch_bytes,
				&batch, f);
	if (rig->ops->finish)
		rig->ops->finish(rig->state, rig->scratch, workers, &batch);
}

void rig_run(struct rig *rig, struct rig_frame *frames, uint32_t n, uint32_t batch, uint32_t tile,
	     unsigned workers)
{
	for (uint32_t f = 0; f < n; f += batch)
		rig_batch(rig, frames + f, n - f < batch ? n - f : batch, tile, workers);
}
