/* frame_rig.c - see frame_rig.h. */
#include "lib/frame_rig.h"

void frame_rig_init(struct frame_rig *rig, const struct sl_stage *ops, enum sl_dtype dtype,
		    uint32_t modules, uint32_t rows, uint32_t columns)
{
	*rig = (struct frame_rig){.ops = ops, .state = calloc(1, ops->state_bytes)};
	sl_options_defaults(ops->options, rig->state);
	rig->geometry = (struct sl_geometry){
		.detector = "rig",
		.modules = modules,
		.rows = rows,
		.columns = columns,
		.dtype = dtype,
		.photon_energy_keV = 12.5,
	};
	rig->env = (struct sl_env){.geometry = &rig->geometry,
				   .calibration = &rig->calibration,
				   .batch_frames = FRAME_RIG_BATCH};
	rig->in = (struct sl_shape){
		.name = "image", .dtype = dtype, .rank = 3, .dim = {modules, rows, columns}};
}

void frame_rig_set(struct frame_rig *rig, const char *option, const char *value)
{
	const struct sl_option *row = sl_option_find(rig->ops->options, option);
	char why[128];

	assert_non_null(row);
	assert_int_equal(sl_option_set(row, rig->state, value, why, sizeof(why)), 0);
}

int frame_rig_try_open(struct frame_rig *rig)
{
	rig->terms = (struct sl_stage_terms){.input = rig->raw ? SL_STAGE_RAW : 0,
					     .result = rig->raw ? 0 : 1};
	return rig->ops->open(rig->state, &rig->env, &rig->in, &rig->terms);
}

void frame_rig_open(struct frame_rig *rig)
{
	size_t bytes;

	assert_int_equal(frame_rig_try_open(rig), 0);
	assert_true(rig->terms.stale_bytes <= rig->terms.scratch_bytes);
	bytes = FRAME_RIG_BATCH * rig->terms.scratch_bytes;
	rig->scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
	memset(rig->scratch, FRAME_RIG_POISON, bytes);
}

void frame_rig_close(struct frame_rig *rig)
{
	rig->ops->close(rig->state);
	free(rig->scratch);
	free(rig->state);
}

void frame_rig_frame_init(struct frame_rig *rig, struct frame_rig_frame *f, void *image)
{
	uint64_t module = sl_shape_bytes(&rig->in) / rig->geometry.modules;
	int first = rig->terms.result;

	*f = (struct frame_rig_frame){.frame = {.flags = SL_FRAME_COMPLETE, .items = 1}};
	f->frame.verdict = &f->verdict;
	f->verdict.keep = 1;
	f->frame.view = f->view;
	f->frame.views = rig->geometry.modules;
	for (uint32_t m = 0; m < rig->geometry.modules; m++)
		f->view[m].pixels.host = (char *)image + m * module;
	if (!rig->raw)
		f->frame.result[0].host = image;
	for (uint32_t i = 0; i < rig->terms.outputs; i++) {
		uint64_t bytes = sl_shape_bytes(&rig->terms.output[i]);

		f->memory[i] = malloc(bytes + FRAME_RIG_CANARY);
		memset(f->memory[i], FRAME_RIG_POISON, bytes + FRAME_RIG_CANARY);
		f->frame.result[first + (int)i].shape = rig->terms.output[i];
		f->frame.result[first + (int)i].host = f->memory[i];
	}
	f->frame.results = (uint32_t)first + rig->terms.outputs;
}

void frame_rig_frame_fini(struct frame_rig *rig, struct frame_rig_frame *f)
{
	for (uint32_t i = 0; i < rig->terms.outputs; i++) {
		uint64_t bytes = sl_shape_bytes(&rig->terms.output[i]);

		for (int k = 0; k < FRAME_RIG_CANARY; k++)
			assert_int_equal(f->memory[i][bytes + (uint64_t)k], FRAME_RIG_POISON);
		free(f->memory[i]);
	}
}

struct sl_array *frame_rig_result(struct frame_rig *rig, struct frame_rig_frame *f, int i)
{
	return &f->frame.result[rig->terms.result + i];
}

void frame_rig_run(struct frame_rig *rig, struct frame_rig_frame *f, uint32_t number)
{
	struct sl_frame *pointer[FRAME_RIG_BATCH] = {NULL};
	struct sl_batch batch = {.frame = pointer, .frames = FRAME_RIG_BATCH};
	size_t entry = rig->terms.scratch_bytes, fresh = entry - rig->terms.stale_bytes;

	pointer[number] = &f->frame;
	for (size_t i = 0; fresh && i < FRAME_RIG_BATCH; i++)
		memset(rig->scratch + i * entry, 0, fresh);
	rig->ops->frame(rig->state, rig->scratch + number * entry, &batch, number);
}

/* ---- images ---- */

uint32_t frame_rig_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

double frame_rig_uniform(uint64_t *state)
{
	return frame_rig_random(state) / 2147483648.;
}

double frame_rig_counts(uint64_t *state, double mean)
{
	double limit = exp(-mean), product = 1, sum = 0;
	int n = -1;

	if (mean > 20) {
		for (int i = 0; i < 12; i++)
			sum += frame_rig_uniform(state);
		return floor(mean + sqrt(mean) * (sum - 6));
	}
	do {
		product *= frame_rig_uniform(state);
		n++;
	} while (product > limit);
	return n;
}

void frame_rig_store(enum sl_dtype dtype, void *image, uint64_t at, double value)
{
	bool bad = isnan(value);

	switch (dtype) {
	case SL_U8:
		((uint8_t *)image)[at] = bad ? UINT8_MAX : (uint8_t)fmin(fmax(value, 0), 254);
		break;
	case SL_U16:
		((uint16_t *)image)[at] = bad ? UINT16_MAX : (uint16_t)fmin(fmax(value, 0), 65534);
		break;
	case SL_U32:
		((uint32_t *)image)[at] = bad ? UINT32_MAX
					      : (uint32_t)fmin(fmax(value, 0), 4294967294.);
		break;
	case SL_I16:
		((int16_t *)image)[at] = bad ? (at % 2 ? INT16_MIN : INT16_MAX)
					     : (int16_t)fmin(fmax(value, -32767), 32766);
		break;
	default:
		((float *)image)[at] = bad ? (at % 2 ? NAN : INFINITY) : (float)value;
	}
}

double frame_rig_load(enum sl_dtype dtype, const void *image, uint64_t at)
{
	switch (dtype) {
	case SL_U8: {
		uint8_t v = ((const uint8_t *)image)[at];

		return v == UINT8_MAX ? NAN : v;
	}
	case SL_U16: {
		uint16_t v = ((const uint16_t *)image)[at];

		return v == UINT16_MAX ? NAN : v;
	}
	case SL_U32: {
		uint32_t v = ((const uint32_t *)image)[at];

		return v == UINT32_MAX ? NAN : v;
	}
	case SL_I16: {
		int16_t v = ((const int16_t *)image)[at];

		return v == INT16_MIN || v == INT16_MAX ? NAN : v;
	}
	default: {
		float v = ((const float *)image)[at];

		return isfinite(v) ? (double)v : NAN;
	}
	}
}
